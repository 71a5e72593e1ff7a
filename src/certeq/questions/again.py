"""Data drawn again: had other episodes been recorded, what would have been learned from them?

Episodes are drawn anew, with replacement, as many as there are (rows, where there are no episodes), and counts, rewards
and beliefs follow as they did from the data. The outcomes that are possible (states, and ending where the data have it)
stay those of the data, and so do the rules.

Models are drawn from each such posterior, a few from each (BayesBag). A posterior knows only what its own model leaves
open; how far the model moves when other episodes are recorded it does not know. Pooled, the draws hold both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from certeq.base.arrays import Integers, Rng, generator, whole
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.data.sums import Sums, add_up
from certeq.learning.case import Case
from certeq.model.rewards import estimate as rewards_of
from certeq.questions.draws import Draws, draw_models

EACH = 4  # models that are drawn from the posterior of one data set


def draw_bagged(case: Case, draws: int, *, rng: Rng = None) -> Iterator[tuple[Draws, Case | None]]:
    """So many models in all, from the posteriors of data sets drawn again, each with its case.

    Where rows are lost, they come from the posterior of the data alone, and there is no other case.
    """
    size, random, batch = whole("draws", draws, 1), generator(rng), case.data.batch
    if batch is None:
        yield draw_models(case.model, case.table, size, rewards=case.rewards, rng=random), None
        return
    for first, seed in zip(range(0, size, EACH), random.spawn(-(-size // EACH)), strict=True):
        again, rows = drawn_again(case, batch, seed)
        some, reward = min(EACH, size - first), again.data.reward
        if isinstance(reward, Sums):  # how means borrow does not matter to what the rows leave open
            told = rewards_of(reward, by_next_state=case.rules.reward_by == "next_state")
            yield draw_models(again.model, None, some, rewards=told, batch=rows, rng=seed), again
        else:
            yield draw_models(again.model, reward, some, rng=seed), again


def drawn_again(case: Case, batch: Batch, random: np.random.Generator) -> tuple[Case, Batch]:
    """The case of as many episodes drawn with replacement, and their rows."""
    member = np.arange(len(batch)) if batch.episode is None else np.unique(batch.episode, return_inverse=True)[1]
    units = int(member.max()) + 1
    often = np.bincount(random.integers(units, size=units), minlength=units)[member]
    reward = case.data.reward
    again = case.given(
        count_again(batch, often, case.data.counts), add_up(batch, often) if isinstance(reward, Sums) else reward
    )
    return again, _taken(batch, np.repeat(np.arange(len(batch)), often))


def count_again(batch: Batch, often: Integers, like: Counts) -> Counts:
    """Counts of a batch whose rows stand there so many times, ``(n,)``."""
    S, A = batch.n_states, batch.n_actions
    pair, stays = batch.state * A + batch.action, ~batch.ended
    ended = None if like.ended is None else _sum(pair, often * ~stays, S * A).reshape(S, A)
    if like.sparse:
        place = (pair[stays], batch.next_state[stays])
        matrix = sp.coo_array((often[stays], place), shape=(S * A, S)).tocsr()
        matrix.eliminate_zeros()
        return Counts(matrix, ended, A, like.positions)
    table = _sum(pair[stays] * S + batch.next_state[stays], often[stays], S * A * S).reshape(S, A, S)
    return Counts(table, ended, A, like.positions)


def _sum(place: Integers, often: Integers, size: int) -> Integers:
    return np.bincount(place, often, minlength=size).astype(np.int64)


def _taken(batch: Batch, rows: Integers) -> Batch:
    """Some rows, as numbers alone; without episodes, which do not matter to what rewards leave open."""
    columns: dict[str, Any] = {name: getattr(batch, name)[rows] for name in ("state", "action", "next_state")}
    reward = None if batch.reward is None else batch.reward[rows]
    return Batch(**columns, n_states=batch.n_states, n_actions=batch.n_actions, reward=reward)
