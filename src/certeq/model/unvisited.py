"""Pairs without data: the conventions in use, one of which must be chosen in plain sight.

A pair is *thin* when it has fewer than ``min_visits`` visits (1 by default: then thin means never tried). What stands
for its row is a decision, not an estimate:

- ``target``: what the regularizer says. Its target where its weight answers to the data, else the uniform row, as
  in the paper's experiments. The default of `certeq.plan` and `certeq.shrink`.
- ``uniform``: the uniform row;
- ``zero``: the episode ends, worth 0: pessimistic where values are positive and optimistic where they are negative;
- ``self_loop``: stay in the state;
- ``average``: the average of the state's visited actions;
- ``exclude``: the action may not be chosen. A state where that leaves nothing gets no advice (action -1); the plan
  treats it as a random action followed by the uniform row. The default of ``certeq learn``.

Besides, an action may be kept from being chosen where people were much less likely to take it than the state's usual
one (``min_share``; see `certeq.model.habits`): if they knew what they did they avoided it, and a prior that is kinder
than the world would gamble on it. Its row stays what the data say, and `certeq.learning.proven` and
`certeq.learning.shown` let in what the rows show to be better for sure.

A convention other than ``target`` replaces a learned weight at thin pairs; a constant weight applies on top of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, whole
from certeq.base.errors import unknown
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.model.frequencies import mle
from certeq.model.habits import shares
from certeq.model.kernel import Kernel, Mixture, Rows

ROUNDING = 1e-9

CONVENTIONS: dict[str, Callable[[Counts], Kernel]] = {
    "target": targets.uniform,
    "uniform": targets.uniform,
    "zero": targets.zeros,
    "self_loop": targets.self_loop,
    "average": targets.tried_average,
    "exclude": targets.uniform,
}


@dataclass(frozen=True)
class Filled:
    """What stands for T_data once a convention has filled the gaps."""

    rows: Kernel
    thin: Booleans  # (..., S, A): pairs with too few visits
    allowed: Booleans  # (..., S, A): actions the plan may choose
    stranded: Booleans  # (..., S): states without any action that may be advised


def fill(counts: Counts, convention: str, min_visits: int = 1, min_share: float = 0.0) -> Filled:
    """Apply a convention to the pairs with fewer than ``min_visits`` visits, and keep avoided actions from advice."""
    if convention not in CONVENTIONS:
        raise unknown("convention for unvisited pairs", convention, CONVENTIONS)
    visits = counts.visits
    thin = visits < whole("min_visits", min_visits, 1)
    rows, often = _fill_rows(counts, convention, thin), usual(visits, min_share)
    if convention != "exclude":
        return Filled(rows, thin, often, np.zeros(thin.shape[:-1], dtype=bool))
    stranded = np.asarray(thin.all(axis=-1))
    return Filled(rows, thin, (often & ~thin) | stranded[..., None], stranded)


def usual(visits: Integers, min_share: float) -> Booleans:
    """Which actions were at least this share as likely as the likeliest one of their state, ``(..., S, A)``."""
    if not min_share:
        return np.ones(visits.shape, dtype=bool)
    return at_least(shares(visits), min_share)


def at_least(likely: Floats, share: float) -> Booleans:
    """Which actions have this share of what the likeliest one of their state has."""
    return np.asarray(likely >= share * likely.max(axis=-1, keepdims=True) * (1 - ROUNDING))


def _fill_rows(counts: Counts, convention: str, thin: Booleans) -> Kernel:
    if not thin.any():
        return mle(counts)
    if convention == "average" and not (thin == counts.unvisited).all():
        counts = _without(counts, thin)  # a thin action has no say in the average
    rows, instead = mle(counts), CONVENTIONS[convention](counts)
    if isinstance(rows, Rows):
        filled, row = rows.array, instead.dense()  # both are new
        filled[thin] = row.ravel() if row.size == row.shape[-1] else np.broadcast_to(row, filled.shape)[thin]
        return Rows.trusted(filled)
    return Mixture(rows, thin.astype(np.float64), instead)


def _without(counts: Counts, thin: Booleans) -> Counts:
    """Forget the visits of thin pairs."""
    ended = None if counts.ended is None else np.where(thin, 0, counts.ended)
    if not counts.sparse:
        return Counts(np.where(thin[..., None], 0, counts.transitions), ended, positions=counts.positions)
    matrix = counts.transitions.copy()
    matrix.data = np.where(np.repeat(thin.ravel(), np.diff(matrix.indptr)), 0, matrix.data)
    matrix.eliminate_zeros()
    return Counts(matrix, ended, counts.n_actions, counts.positions)
