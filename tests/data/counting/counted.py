"""Logged decisions, and the plain way to count them: all of them in memory."""

import numpy as np
import polars as pl

from certeq import read, tally
from certeq.data.sums import add_up

ROLES = {  # of the columns of `rows`
    "state": ["ward", "stage"],
    "next_state": ["next_ward", "next_stage"],
    "action": ["drug"],
    "reward": "reward",
    "done": "done",
    "truncated": "cut",
}


def in_memory(path, **told):
    """The plain way: read all rows, every column as labels by default, then count them."""
    bins = dict.fromkeys((*told["state"], *told["action"]), "labels") | dict(told.pop("bins", {}))
    batch = read(path, layout="explicit", episode=False, time=False, bins=bins, max_states=10**6, **told)
    return batch, tally(batch), None if batch.reward is None else add_up(batch)


def dense(counts):
    """All counts as one array."""
    return counts.transitions.toarray() if counts.sparse else counts.transitions


def same_counts(one, other):
    """Whether two counts are the same, bit for bit, and kept in the same way."""
    assert one.sparse == other.sparse
    assert (one.n_states, one.n_actions) == (other.n_states, other.n_actions)
    assert np.array_equal(dense(one), dense(other))
    assert (one.ended is None) == (other.ended is None)
    assert one.ended is None or np.array_equal(one.ended, other.ended)


def rows(n=900, seed=0, S=12, A=3):
    """Logged decisions with all that occurs in practice: labels, gaps, endings, rows that were cut off."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "ward": rng.choice(["A", "B", "C "], n),
            "stage": rng.integers(-3, S, n),
            "drug": rng.choice([f"drug {i}" for i in range(A)], n),
            "reward": rng.normal(3, 2, n).round(3),
            "done": rng.random(n) < 0.1,
            "cut": rng.random(n) < 0.05,
            "next_ward": rng.choice(["A", "B", "C"], n),
            "next_stage": rng.integers(-3, S, n),
        }
    )
    gone = pl.Series(rng.random(n) < 0.5) & (frame["done"] | frame["cut"])
    idle = pl.Series(rng.random(n) < 0.05)
    return frame.with_columns(
        next_stage=pl.when(gone).then(None).otherwise(pl.col("next_stage")),
        drug=pl.when(idle).then(None).otherwise(pl.col("drug")),
    )
