"""What the rows say about those who made them: how episodes began, went on, and which actions were taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import Floats, first
from certeq.base.errors import InputError
from certeq.data.batch import ENDED, Batch
from certeq.data.counts import Counts
from certeq.data.order import Episodes, episodes

UNWATCHED = 0.1  # share of the time that counts after watching stopped, above which values leave it out


def watched(batch: Batch | None, discount: float) -> int | None:
    """Decisions that values are to be told of: as many as half of the episodes were watched for; None for all of them.

    It is all of them, unless most of the time that counts, discounted, lies after watching stopped: what the rows do
    not tell, nobody can give an interval for.
    """
    if batch is None or batch.episode is None or len(batch) == 0:
        return None
    order = episodes(batch)
    stopped = ~batch.ended[order.row[order.last]]
    if np.mean(stopped * discount**order.length) <= UNWATCHED:
        return None
    return int(np.quantile(order.length[stopped], 0.5, method="lower"))


def check_whole(batch: Batch, order: Episodes) -> None:
    """Raise, naming the row, unless each row of an episode leads to the next: nothing is left out in between."""
    now, then = order.row[:-1], order.row[1:]
    inside = order.number[:-1] == order.number[1:]
    broken = inside & (batch.next_state[now] != batch.state[then])
    if batch.time is not None:
        pace = batch.time[then] - batch.time[now]
        broken |= inside & (pace != np.min(pace[inside], initial=np.iinfo(np.int64).max))
        broken |= inside & (pace == 0)
    if broken.any():
        (at,) = first(broken)
        raise InputError(
            f"{_gap(batch, int(now[at]), int(then[at]))} Gaps in all: {int(broken.sum()):,}. "
            "Off-policy evaluation needs whole episodes: fill in what is missing, or give the parts episodes of their "
            "own."
        )


def _gap(batch: Batch, here: int, there: int) -> str:
    """Two rows of an episode that do not follow one another, in words; a page may show them, so no episode is named."""
    name, after, now = batch.state_names, int(batch.next_state[here]), int(batch.state[there])
    if after == now and batch.time is not None:
        between = f"times {batch.time[here]} and {batch.time[there]} of an episode"
        return f"Rows {here} and {there} have {between}, which is not its usual step."
    led = "ends the episode" if after == ENDED else f"leads to state {name[after]!r}"
    return f"Row {here} {led}, but the next row of the same episode, row {there}, is in state {name[now]!r}."


def starts(batch: Batch) -> Floats:
    """Where episodes begin, ``(S,)``: shares of their first states; without episodes, shares of all rows' states."""
    return batch.starts


def behavior(counts: Counts, *, smoothing: float = 0.0) -> Floats:
    """Who made the data: how often each action was taken in each state, ``(..., S, A)``.

    (c(s, a) + k/A) / (c(s) + k), where ``smoothing`` k is a number of rows of each state that are made up and spread
    evenly over the actions; none by default. In a state without rows every action is as likely as any other.
    """
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"smoothing is a number of rows, 0 or more; got {smoothing}.")
    return _shares(counts.visits + smoothing / counts.n_actions)


def _shares(weights: Any) -> Floats:
    """Weights as shares of their sum along the last axis; where all are 0, equal shares."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0, weights / np.where(total > 0, total, 1), 1 / weights.shape[-1]))
