"""Data drawn again: had other episodes been recorded, what would have been learned from them?

Episodes are drawn anew, with replacement, as many as there are (sections of long ones, where there are few; rows, where
there are no episodes), and counts, rewards and beliefs follow as they did from the data. The outcomes that are possible
(states, and ending where the data have it) stay those of the data, and so do the rules.

Models are drawn from each such posterior, a few from each (BayesBag). A posterior knows only what its own model leaves
open; how far the model moves when other episodes are recorded it does not know. Pooled, the draws hold both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, generator, whole
from certeq.data.batch import Batch
from certeq.data.counts import Counts, count_again
from certeq.data.order import unit_of
from certeq.data.sums import Sums, add_up
from certeq.learning.case import Case
from certeq.model.rewards import estimate as rewards_of
from certeq.questions.draws import Draws, draw_models

EACH = 4  # models that are drawn from the posterior of one data set
TOGETHER = 2_000_000  # numbers in the counts of data sets that are learned from together


class Bag(NamedTuple):
    """Models from the posteriors of some data sets drawn again."""

    draws: list[Draws]  # one for each data set
    case: Case | None  # of the data sets; None where rows are lost, and the models are from the posterior of the data
    starts: Floats | None  # (draws, S): where the episodes begin that a model was drawn with


def draw_bagged(case: Case, draws: int, *, rng: Rng = None) -> Iterator[Bag]:
    """So many models in all, from the posteriors of data sets drawn again: some data sets at a time."""
    size, random, batch = whole("draws", draws, 1), generator(rng), case.data.batch
    if batch is None:
        yield Bag([draw_models(case.model, case.table, size, rewards=case.rewards, rng=random)], None, None)
        return
    seeds, S, A = random.spawn(-(-size // EACH)), batch.n_states, batch.n_actions
    some = 1 if case.data.counts.sparse else max(1, TOGETHER // (S * A * S))
    for first in range(0, len(seeds), some):
        own = seeds[first : first + some]
        again, often = drawn_again(case, batch, own)
        sizes = [min(EACH, size - at) for at in range(first * EACH, size, EACH)][: len(own)]
        parts = enumerate(zip(own, often, sizes, strict=True))
        made = [_draw(again, i, batch, times, each, seed) for i, (seed, times, each) in parts]
        yield Bag(made, again, np.repeat(starts_again(batch, often), sizes, axis=0))


def _draw(case: Case, i: int, batch: Batch, often: Integers, draws: int, random: np.random.Generator) -> Draws:
    """Models from the posterior of one data set of a case, in which the rows of a batch stand so many times."""
    model, reward = case.model, case.data.reward
    if model.counts.batch:
        model, reward = model[i], reward[i] if isinstance(reward, Sums) else reward
    if not isinstance(reward, Sums):
        return draw_models(model, reward, draws, rng=random)
    # how means borrow does not matter to what the rows leave open
    told = rewards_of(reward, by_next_state=case.rules.reward_by == "next_state")
    return draw_models(model, None, draws, rewards=told, batch=taken(batch, often), rng=random)


def drawn_again(case: Case, batch: Batch, random: Sequence[np.random.Generator]) -> tuple[Case, Integers]:
    """The case of data sets of as many episodes drawn with replacement, and how often each has each row, ``(D, n)``.

    Data sets are along a leading axis, unless there is one and its counts are sparse.
    """
    member = unit_of(batch)
    size = int(member.max()) + 1
    often = np.stack([np.bincount(each.integers(size, size=size), minlength=size)[member] for each in random])
    counts, reward = [count_again(batch, times, case.data.counts) for times in often], case.data.reward
    if isinstance(reward, Sums):
        reward = Sums.stack([add_up(batch, times) for times in often])
    if not counts[0].sparse:
        return case.given(Counts.stack(counts), reward), often
    return case.given(counts[0], reward[0] if isinstance(reward, Sums) else reward), often


def starts_again(batch: Batch, often: Integers) -> Floats:
    """Where episodes begin in data sets that have each row so many times, ``(D, S)``; if none does, as in the data."""
    at = batch.first_rows
    found = np.array([np.bincount(batch.state[at], times[at], minlength=batch.n_states) for times in often])
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.maximum(total, 1), batch.starts)


def taken(batch: Batch, often: Integers) -> Batch:
    """Rows so many times, as numbers alone; without episodes, which do not matter to what rewards leave open."""
    rows = np.repeat(np.arange(len(batch)), often)
    columns: dict[str, Any] = {name: getattr(batch, name)[rows] for name in ("state", "action", "next_state")}
    reward = None if batch.reward is None else batch.reward[rows]
    return Batch(**columns, n_states=batch.n_states, n_actions=batch.n_actions, reward=reward)
