"""The bootstrap: had other episodes been recorded, what would have been advised?

Episodes are drawn anew, with replacement, as many as there are (rows, where there are no episodes), and the whole
pipeline runs again: count, estimate rewards, regularize, plan. A replicate is a multiplicity for each row, so nothing
is copied, and many replicates are planned at once. The outcomes that are possible (states, and ending where the data
have it) stay those of the data.

What this shows is how much the *procedure* depends on which episodes happened to be recorded. The interval is for the
value that the fitted model claims for its own best policy, which is optimistic in every replicate as it is in the
data; what the policy is worth is another question (`certeq.questions.posterior`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from certeq.base import places
from certeq.base.arrays import Floats, Integers, Rng, generator, middle, whole
from certeq.base.display import number, several, told
from certeq.base.errors import InputError, unknown
from certeq.base.keeping import fingerprint, keep, recall
from certeq.base.writing import check_free
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.data.sums import Sums, add_up
from certeq.learning.case import Case
from certeq.learning.learned import Learned, asked
from certeq.planners import compiled
from certeq.questions.episodes import starts
from certeq.questions.words import advised, listed

UNITS = ("episode", "row")
ROOM = 8_000_000  # numbers in the counts of the replicates that are planned together
BLOCKS, LEAST = 32, 8  # about so many blocks for workers to share, and at least so many replicates in each
LEVEL = 0.9
STEADY = 0.9  # advice that is the same in at least so many replicates is called steady


@dataclass(frozen=True)
class Bootstrap:
    """What the pipeline advises and claims in data sets drawn anew."""

    unit: str  # what was drawn: episode or row
    units: int  # how many there are
    advice: Integers  # (S,), from the data themselves
    policies: Integers  # (replicates, S), -1 for no advice
    values: Floats  # (replicates, S): value claimed in each state
    claimed: Floats  # (S,): value claimed from the data themselves
    start: Floats  # (S,): distribution of the first state
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    @property
    def replicates(self) -> int:
        """How many data sets were drawn."""
        return len(self.policies)

    @property
    def shares(self) -> Floats:
        """Share of the replicates that advise each action, ``(S, A + 1)``; the last is no advice."""
        options = [*range(len(self.action_names)), -1]
        return np.stack([(self.policies == a).mean(axis=0) for a in options], axis=-1)

    @property
    def same(self) -> Floats:
        """Share of the replicates with the advice that the data gave, ``(S,)``; NaN where they gave none."""
        share = (self.policies == self.advice).mean(axis=0)
        return np.where(self.advice >= 0, share, np.nan)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Where the value claimed from the start lies in so many of the replicates, equal tails."""
        low, high = middle(self.values @ self.start, level)
        return float(low), float(high)

    def state_intervals(self, level: float = LEVEL) -> Floats:
        """The same for each state, ``(S, 2)``."""
        return middle(self.values, level, axis=0).T

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The bootstrap in words."""
        given = np.flatnonzero(self.advice >= 0)
        same = self.same[given]
        steady, shaky = int((same >= STEADY).sum()), given[same < 0.5]
        low, high = self.interval()
        return [
            f"With {several(self.units, self.unit)} drawn anew {several(self.replicates, 'time')}, the advice is the "
            f"same in at least {STEADY:.0%} of the replicates in {steady:,} of {several(len(given), 'state')}, and in "
            f"less than half of them in {len(shaky):,}{listed(self.state_names, shaky)}. (No advice, for lack of data "
            "in a replicate, is not the same.)",
            f"The value that the fitted model claims for its advice is {number(float(self.claimed @ self.start))}; in "
            f"{LEVEL:.0%} of the replicates it lies between {number(low)} and {number(high)}. That is the spread of "
            "the claim, which is as optimistic in each replicate as it is in the data.",
        ]

    def to_json(self) -> dict[str, Any]:
        """Write the bootstrap as plain values."""
        low, high = self.interval()
        return {
            "format": "certeq-bootstrap",
            "version": 1,
            "unit": self.unit,
            "units": self.units,
            "replicates": self.replicates,
            "states": list(self.state_names),
            "actions": list(self.action_names),
            "advice": advised(self.advice, self.action_names),
            "shares": self.shares.tolist(),
            "claimed": float(self.claimed @ self.start),
            "interval": {"level": LEVEL, "low": low, "high": high},
            "state_intervals": self.state_intervals().tolist(),
            "words": self.lines(),
        }


def bootstrap(
    learned: Learned,
    replicates: int = 200,
    *,
    rng: Rng = 0,
    unit: str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    executor: Executor | None = None,
    resume: str | Path | None = None,
) -> Bootstrap:
    """Learn again from data sets drawn anew.

    Parameters
    ----------
    learned
        What `certeq.learn` returned.
    replicates, rng
        How many data sets, and the seed.
    unit
        What is drawn: ``episode``, or ``row`` as if rows had nothing to do with one another. Episodes unless there are
        none.
    workers, scheduler, executor
        Where to run blocks of replicates: on local processes, on the Dask cluster of this address, or on an executor
        that is open already; here unless said. The result does not depend on it. Where others work, they get the rows,
        as numbers of states and actions.
    resume
        A folder in which blocks of replicates are kept as they are done; the same call then goes on where an earlier
        one was stopped, to the same numbers.
    """
    case = asked(learned)
    batch = case.data.rows("Episodes are drawn anew")
    drawn = unit or ("row" if batch.episode is None else "episode")
    if drawn not in UNITS:
        raise unknown("unit to draw", drawn, UNITS)
    member = np.arange(len(batch)) if drawn == "row" else _episode_of(batch)
    seeds = generator(rng).integers(2**32, size=(whole("replicates", replicates, 1), 4))
    bare = replace(batch, recipe=None, action_recipe=None, state_names=(), action_names=())  # what workers need of it
    S, A = batch.n_states, batch.n_actions
    fair = max(LEAST, -(-len(seeds) // BLOCKS))
    size = 1 if case.data.counts.sparse else max(1, min(fair, ROOM // (S * A * S)))  # whatever the workers
    blocks = [seeds[i : i + size] for i in range(0, len(seeds), size)]
    nameless = Case(case.data.bare(), case.rules)
    # by all replicates and not by the block, since engines differ in last digits
    engine = "numba" if not case.data.counts.sparse and compiled.worth((len(seeds),), S) else "auto"
    work = partial(_learn_again, nameless, bare, member, engine)
    with places.pool(executor, workers, scheduler) as pool:
        found = _all(work, blocks, pool, None if resume is None else Path(resume))
    advice = case.advise()
    policies, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Bootstrap(
        unit=drawn,
        units=int(member.max()) + 1,
        advice=advice.policy,
        policies=policies,
        values=values,
        claimed=advice.values,
        start=starts(batch),
        state_names=case.data.state_names,
        action_names=case.data.action_names,
    )


def _all(
    work: partial[tuple[Integers, Floats]],
    blocks: Sequence[Integers],
    executor: Executor | None,
    folder: Path | None,
) -> list[tuple[Integers, Floats]]:
    """Advice and values of all blocks of replicates; those that the folder has are taken from there."""
    found: dict[int, tuple[Integers, Floats]] = {}
    abouts: list[dict[str, str]] = []
    if folder is not None:
        check_free([folder / "kept"], force=True)
        data = fingerprint(work.args)
        abouts = [{"task": "bootstrap", "data": data, "seeds": fingerprint(block)} for block in blocks]
        known = {i: recall(folder, about) for i, about in enumerate(abouts)}
        found = {i: (arrays["policies"], arrays["values"]) for i, arrays in known.items() if arrays is not None}
    missing = [i for i in range(len(blocks)) if i not in found]
    run = map if executor is None else executor.map
    results = iter(run(work, [blocks[i] for i in missing]))
    for i in missing:
        try:
            found[i] = policies, values = next(results)
        except InputError as error:
            raise InputError(f"In a data set drawn anew: {error}") from None
        if folder is not None:
            keep(folder, abouts[i], {"policies": policies, "values": values})
    return [found[i] for i in range(len(blocks))]


def _learn_again(case: Case, batch: Batch, member: Integers, engine: str, seeds: Integers) -> tuple[Integers, Floats]:
    """Advice and values ``(k, S)`` of a block of replicates, one for each seed."""
    units = int(member.max()) + 1
    draws = (np.random.default_rng(seed).integers(units, size=units) for seed in seeds)
    times = np.stack([np.bincount(draw, minlength=units)[member] for draw in draws])  # (k, n)
    counts, reward = count_again(batch, times, case.data.counts), case.data.reward
    if isinstance(reward, Sums):
        reward = add_up(batch, times[0]) if counts.sparse else Sums.stack([add_up(batch, often) for often in times])
    advice = case.given(counts, reward).advise(**({"engine": engine} if case.rules.horizon is None else {}))
    return np.atleast_2d(advice.policy), np.atleast_2d(advice.values)


def count_again(batch: Batch, times: Integers, like: Counts) -> Counts:
    """Counts of a batch whose rows stand there so many times, ``(k, n)``; sparse ones are counted singly (k = 1)."""
    S, A = batch.n_states, batch.n_actions
    pair, stays = batch.state * A + batch.action, ~batch.ended
    if like.sparse:
        (often,) = times
        place = (pair[stays], batch.next_state[stays])
        matrix = sp.coo_array((often[stays], place), shape=(S * A, S)).tocsr()
        matrix.eliminate_zeros()
        return Counts(
            matrix, None if like.ended is None else _sum(pair, often * ~stays, S * A).reshape(S, A), A, like.positions
        )
    cell = np.where(stays, pair * (S + 1) + batch.next_state, pair * (S + 1) + S)
    table = np.stack([_sum(cell, often, S * A * (S + 1)) for often in times]).reshape(-1, S, A, S + 1)
    return Counts(table[..., :S], None if like.ended is None else table[..., S], A, like.positions)


def _sum(place: Integers, often: Integers, size: int) -> Integers:
    return np.bincount(place, often, minlength=size).astype(np.int64)


def _episode_of(batch: Batch) -> Integers:
    """Number of each row's episode, 0 .. E - 1."""
    if batch.episode is None:
        raise InputError("The rows are not in episodes, so rows are what can be drawn: unit='row'.")
    return np.asarray(np.unique(batch.episode, return_inverse=True)[1])
