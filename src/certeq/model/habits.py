"""Habits: how likely people were to take each action in each state, as far as all their rows together tell.

Of four rows in a state, three of one action and one of another: was the one a choice, or a slip? The other states tell.
Each has a usual action u, as likely to be one as another, and people took the actions with chances that were drawn
around it, but for one state in twenty, which has habits of its own:

    π(s, ·) ~ 19/20 · Dirichlet(b + (a - b)·[action = u]) + 1/20 · Dirichlet(½),   a ≥ b

with those a and b, of a grid, under which the rows of all states are most likely. Where people erred alike everywhere,
a and b are large, and four rows tell which action was usual; where they acted at random, a = b; where every state has
habits of its own, both are small. In the end the rows of the state itself have the say.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers

LEANS = np.append(np.arange(20) / 20, 0.98)  # how far the usual action's expected share is on the way from 1/A to 1
ROWS = 2.0 ** np.arange(-1, 11)  # a + (A - 1)·b: how many rows the habits of all count for
APART = 0.05  # of the states have habits of their own
OWN = 0.5  # rows of each action that stand for not knowing those
MANY = 200  # rows of a state that have a say in the habits of all; shares of more are rounded
AT_ONCE = 1_000_000  # numbers in memory
NEAR = 1e-9  # logarithms of likelihoods that differ by no more are tied, lest rounding decide
BEYOND = 2.0  # standard deviations beyond chance


def shares(visits: Integers) -> Floats:
    """Expected chance of each action in each state, ``(..., S, A)``, from how often each was taken."""
    return _known(visits.astype(np.int64, copy=False).tobytes(), visits.shape)


@lru_cache(maxsize=1)  # which actions are usual is asked first, and then how careful people were
def _known(held: bytes, shape: tuple[int, ...]) -> Floats:
    S, A = shape[-2:]
    several = np.frombuffer(held, dtype=np.int64).reshape(-1, S, A)
    step = max(int((AT_ONCE / max(S, 1)) ** 0.5), 1)  # data sets, each with up to S patterns of its own
    found = [_shares(several[i : i + step]) for i in range(0, len(several), step)]
    whole = np.concatenate([np.empty((0, S, A)), *found]).reshape(shape)
    whole.flags.writeable = False
    return whole


def differ(visits: Integers) -> Booleans:
    """Whether people acted differently in different states, beyond chance, ``(...)``: Pearson's statistic tells."""
    of_state, of_action = visits.sum(axis=-1, keepdims=True), visits.sum(axis=-2, keepdims=True)
    total = of_state.sum(axis=-2, keepdims=True)
    expected = of_state * of_action / np.maximum(total, 1)
    statistic = ((visits - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=(-2, -1))
    freedom = ((of_state > 0).sum(axis=(-2, -1)) - 1) * ((of_action > 0).sum(axis=(-2, -1)) - 1)
    chance = freedom * (total / np.maximum(total - 1, 1))[..., 0, 0]  # its mean over all ways to shuffle the actions
    return np.asarray(statistic - chance > BEYOND * np.sqrt(2 * np.maximum(freedom, 0)))


def _shares(visits: Integers) -> Floats:
    """The same of some data sets, ``(D, S, A)``; whatever several states have in common is worked out once."""
    (D, S, A), total = visits.shape, visits.sum(axis=2, keepdims=True)
    if A == 1 or total.max(initial=0) < 2:  # one row alone tells nothing of habits
        return np.full(visits.shape, 1 / A)
    told = np.where(total > MANY, visits * MANY // np.maximum(total, 1), visits)
    patterns, which = _patterns(told.reshape(-1, A))
    which = which.reshape(D, S)
    times = np.bincount((which + len(patterns) * np.arange(D)[:, None]).ravel(), minlength=D * len(patterns))
    times = times.reshape(D, -1).T.astype(np.float64)  # how often each pattern is in each data set
    own = _likelihood(patterns, A, np.array([OWN]), np.array([OWN]))[0]
    fits = np.array([_mixed(_likelihood(patterns, A, *_parameters(rows, A)), own) @ times for rows in ROWS])
    fits = fits.reshape(-1, D)
    row, lean = np.divmod((fits >= fits.max(axis=0) - NEAR).argmax(axis=0), len(LEANS))  # of ties, the fewest rows
    a, b = (each[row, lean] for each in _parameters(ROWS[:, None], A))
    gain = _gain(a, b, told.reshape(D, -1), by_line=True).reshape(told.shape)
    usual = np.exp(gain - gain.max(axis=2, keepdims=True))  # how likely each action is the usual one
    more = (a - b)[:, None, None] * usual / usual.sum(axis=2, keepdims=True)
    common = (visits + b[:, None, None] + more) / (total + ROWS[row][:, None, None])
    apart = APART * np.exp(own - _mixed(_likelihood(patterns, A, a, b), own))
    apart = np.take_along_axis(apart, which, axis=1)[..., None]
    found = common + apart * ((visits + OWN) / (total + OWN * A) - common)
    return np.asarray(np.where(total.max(axis=1, keepdims=True) < 2, 1 / A, found))


def _patterns(tries: Integers) -> tuple[Integers, Integers]:
    """How often the most tried action of a state was taken, the second, ...: each way once, and whose it is."""
    falling = -np.sort(-tries, axis=1)
    falling = falling[:, falling.any(axis=0)]
    order = np.lexsort(falling.T)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (falling[order[1:]] != falling[order[:-1]]).any(axis=1)
    which = np.empty_like(order)
    which[order] = np.cumsum(new) - 1
    return falling[order[new]], which


def _parameters(rows: Any, A: int) -> tuple[Floats, Floats]:
    """The a and b of each lean, ``(..., L)``."""
    top = 1 / A + LEANS * (1 - 1 / A)
    return rows * top, rows * (1 - top) / (A - 1)


def _mixed(alike: Floats, own: Floats) -> Floats:
    return np.asarray(np.logaddexp(np.log1p(-APART) + alike, np.log(APART) + own))


def _rising(start: Floats, tries: Integers, by_line: bool = False) -> Floats:
    """Logarithms of x(x + 1)...(x + n - 1) for each x and each n that are given, or for those in its own line of n."""
    steps = np.log(start[:, None] + np.arange(tries.max(initial=0)))
    table = np.concatenate([np.zeros((len(start), 1)), np.cumsum(steps, axis=1)], axis=1)
    return np.take_along_axis(table, tries, axis=1) if by_line else table[:, tries]


def _gain(a: Floats, b: Floats, tries: Integers, by_line: bool = False) -> Floats:
    """How much likelier rows become if the action is the usual one, as a logarithm; it rises with the tries."""
    return _rising(a, tries, by_line) - _rising(b, tries, by_line)


def _likelihood(patterns: Integers, A: int, a: Floats, b: Floats) -> Floats:
    """Logarithm of how likely the rows of a state with each pattern are, ``(L, P)``."""
    step, found = max(AT_ONCE // (len(a) * patterns.shape[1]), 1), []
    for i in range(0, len(patterns), step):
        part = patterns[i : i + step]
        gain = _gain(a, b, part)
        most = gain[..., 0]
        odds = np.exp(gain - most[..., None]).sum(axis=-1) + (A - part.shape[1]) * np.exp(-most)
        total = _rising(a + (A - 1) * b, part.sum(axis=1))
        found.append(_rising(b, part).sum(axis=-1) + most + np.log(odds / A) - total)
    return np.concatenate(found, axis=1)
