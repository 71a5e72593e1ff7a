"""Regularizers by the error of their rows: the paper's way to tell which of them suits a world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, floats
from certeq.base.errors import InputError
from certeq.data.counts import Counts, as_counts
from certeq.model import weights
from certeq.model.kernel import Mixture, Operator, Rows
from certeq.model.moments import action_moments, moments, true_action_moments, true_moments
from certeq.regularizers import Shrinkage, shrink


def transition_mse(
    counts: Counts | ArrayLike | Any,
    regularizers: Mapping[str, Mapping[str, Any]],
    *,
    rows: ArrayLike | None = None,
    plug_in: str = "posterior",
    pseudo_count: float = 0.5,
    discount: ArrayLike | None = None,
) -> dict[str, Floats]:
    """Mean squared error of the rows of each regularizer, pair by pair, ``(..., S, A)``.

    This is Eq. 4, or the appendix's form for regularizers that average over a state's actions: the error that data sets
    with these visits have on average, at the weights that these counts lead to. A target that was itself learned counts
    as given. What a smaller error is worth is another question; see ``docs/explanation/error-is-not-loss.md``.

    Parameters
    ----------
    counts
        `Counts`, or an integer array ``(..., S, A, S)``, or a sparse matrix ``(S * A, S)``.
    regularizers
        Names in ``REGULARIZERS``, each with its settings.
    rows
        The true rows ``(..., S, A, S)``, where they are known; else a plug-in stands for them.
    plug_in, pseudo_count
        What stands for the unknown rows: ``posterior`` (with this pseudo-count), ``mle`` or ``unbiased``. Where visits
        are few, the posterior leans to the uniform row and favors those who pull there; ``unbiased`` favors nobody.
    discount
        For regularizers that take a planning discount.

    >>> from certeq import transition_mse
    >>> counts = [[[2, 2], [3, 1]], [[1, 1], [0, 4]]]
    >>> found = transition_mse(counts, {"none": {}, "uniform_prior": {"strength": 0.5}})
    >>> {name: round(float(error.mean()), 3) for name, error in found.items()}
    {'none': 0.104, 'uniform_prior': 0.067}
    """
    table = as_counts(counts)
    truth = None if rows is None else _known(floats("rows", rows), table)
    how = {"plug_in": plug_in, "pseudo_count": pseudo_count}
    return {
        name: mse_of(table, shrink(table, name, discount=discount, **settings), truth, how)
        for name, settings in regularizers.items()
    }


def _known(rows: Floats, counts: Counts) -> Floats:
    """True rows over all outcomes, ending included."""
    if rows.shape[-3:] != (counts.n_states, counts.n_actions, counts.n_states):
        S, A = counts.n_states, counts.n_actions
        raise InputError(f"True rows need the shape (..., {S}, {A}, {S}); got {rows.shape}.")
    return _with_ending(rows, counts)


def _with_ending(rows: Floats, counts: Counts) -> Floats:
    if counts.ended is None:
        return rows
    return np.append(rows, np.maximum(1 - rows.sum(axis=-1, keepdims=True), 0), axis=-1)


def mse_of(
    counts: Counts, shrinkage: Shrinkage, truth: Floats | None = None, how: Mapping[str, Any] | None = None
) -> Floats:
    """Mean squared error of rows that were regularized so; ``truth`` is over all outcomes, ``how`` the plug-in."""
    how = how or {}
    visits = counts.visits.astype(np.float64)
    if shrinkage.averages_actions:
        state = action_moments(counts, **how) if truth is None else true_action_moments(visits, truth)
        return weights.action_average_mse(state, shrinkage.weight)
    target = shrinkage.target
    if isinstance(target, Mixture | Operator):
        target = Rows.trusted(target.dense())
    if truth is None:
        return weights.mse(moments(counts, target, **how), shrinkage.weight)
    return weights.mse(true_moments(visits, truth, _with_ending(target.dense(), counts)), shrinkage.weight)
