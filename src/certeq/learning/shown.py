"""Shown: what people seldom did may be advised if it turned out better where they did it, over all states together.

One state may have too few rows to prove anything (`certeq.learning.proven`), and all states together may have enough.
Four fifths of the episodes make two plans: one that keeps to what was usual, and a bold one that may also advise
whatever has a few rows. The other episodes tell which of the two turned out better where they differ, so that no row is
judged by a plan that was chosen for it. What a row was worth, people saw for themselves,

    x = r + γr' + γ²r'' + ...,

over the next k decisions, or to the end of the episode; only what lies beyond is the model's guess: where the episode
goes on, γᵏ times what going on as people did is worth there. In a state with n rows that did what the bold plan says,
and m that did what the other one says,

    d(s) = x̄(bold) - x̄(usual),    w(s) = n·m / (n + m),    D = Σ_s w(s)·d(s) / Σ_s w(s)

The least of D / se(D), over the k of ``AHEAD``, with standard errors that take each episode as a whole, must be large.
Models of cells that are too coarse believe in gains that are not there, and returns do not. But where people acted on
more than the states hold (`certeq.data.guided`), they did the unusual where it was right, so there nothing is shown.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.data.batch import Batch
from certeq.data.guided import guided, strongest
from certeq.data.order import Episodes, sections
from certeq.learning.proven import SURE

AHEAD = (3, 5)  # decisions; docs/decisions/0015-avoided-actions.md
FOLDS = 5
FEWEST = 50  # rows that did what the bold plan says, without which nothing is shown
EPISODES = 10  # episodes, likewise

Learn = Callable[[Integers], tuple[Integers, Integers]]  # how often each row counts -> the usual plan and the bold one


def shown(batch: Batch, paid: Floats, values: Floats, discount: float, learn: Learn) -> float:
    """How many standard errors better what people seldom did turned out; 0 where nobody can tell, or it did not.

    ``paid`` is what each row was paid, ``values`` ``(S,)`` what it is worth to go on as people did.
    """
    order = sections(batch)
    if len(order.length) < EPISODES:
        return 0.0
    at, fold = order.row, _deal(batch, order, paid)[order.number]
    state, action = batch.state[at], batch.action[at]
    bold, usual = np.zeros((2, len(at)), dtype=bool)
    for part in range(FOLDS):
        others = np.ones(len(at), dtype=np.int64)
        others[at[fold == part]] = 0
        keeps, goes = (plan[state] for plan in learn(others))
        asked = (fold == part) & (keeps != goes) & (keeps >= 0) & (goes >= 0)
        bold |= asked & (action == goes)
        usual |= asked & (action == keeps)
    told = min(apart(worth(batch, order, paid, values, discount, k), state, bold, usual, order.number) for k in AHEAD)
    return 0.0 if told > SURE and strongest(guided(batch)) is not None else max(told, 0.0)


def worth(batch: Batch, order: Episodes, paid: Floats, values: Floats, discount: float, ahead: int) -> Floats:
    """What each row, in order, was worth over so many decisions, with what lies beyond them."""
    at, n = order.row, len(order.row)
    left = order.length[order.number] - order.step  # rows of the episode from here on, this one included
    steps = np.minimum(left, ahead)
    found = np.zeros(n)
    for k in range(ahead):
        there = np.flatnonzero(k < steps)
        found[there] += discount**k * paid[at[there + k]]
    then = batch.next_state[at[np.arange(n) + steps - 1]]
    return np.asarray(found + discount**steps * np.where(then >= 0, values[np.maximum(then, 0)], 0.0))


def apart(worth: Floats, state: Integers, bold: Booleans, usual: Booleans, episode: Integers) -> float:
    """How many standard errors more the bold rows were worth than the usual ones of their states, all together."""
    size = int(state.max()) + 1
    n, m = (np.bincount(state[rows], minlength=size) for rows in (bold, usual))
    weight = n * m / np.maximum(n + m, 1)
    if n[weight > 0].sum() < FEWEST:
        return 0.0
    high, low = (
        np.bincount(state[rows], worth[rows], minlength=size) / np.maximum(number, 1)
        for rows, number in ((bold, n), (usual, m))
    )
    mean = (weight * (high - low)).sum() / weight.sum()
    own = np.where(bold, (weight / np.maximum(n, 1))[state] * (worth - low[state] - mean), 0.0)
    own -= np.where(usual, (weight / np.maximum(m, 1))[state] * (worth - low[state]), 0.0)
    error = np.sqrt((np.bincount(episode, own) ** 2).sum())
    return float(mean * weight.sum() / error) if error > 0 else 0.0


def _deal(batch: Batch, order: Episodes, paid: Floats) -> Integers:
    """The part of each episode, ``(E,)``, by how it went: neither names nor the order of the table count."""
    at, number, when = order.row, order.number, order.step + 1
    pair = batch.state * batch.n_actions + batch.action
    often = np.bincount(pair)[pair][at]
    keys = (np.bincount(number, each) for each in (when * paid[at], paid[at], when * often, often))
    rank = np.empty(len(order.length), dtype=np.int64)
    rank[np.lexsort((*keys, order.length))] = np.arange(len(rank))
    return rank % FOLDS
