"""Targets: what a row is pulled toward. Each is a kernel, never larger than it needs to be."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import ArrayLike, Floats, floats
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model.frequencies import mle
from certeq.model.kernel import Kernel, Mixture, Operator, Rows, SparseRows, kernel


def zeros(counts: Counts) -> Rows:
    """A row of zeros for every pair: the episode ends. The target of discount regularization (Eq. 2)."""
    return Rows.trusted(np.zeros((1, 1, counts.n_states)))


def uniform(counts: Counts) -> Rows:
    """1/N for every outcome, the same for every pair; N counts ending as an outcome when the data have it."""
    return Rows.trusted(np.full((1, 1, counts.n_states), 1 / counts.n_outcomes))


def shared_row(row: ArrayLike, counts: Counts) -> Rows:
    """Take one row, given by the user, for every pair."""
    array = floats("row", row)
    if array.shape != (counts.n_states,):
        raise InputError(f"A shared target row needs {counts.n_states} probabilities; got shape {array.shape}.")
    return Rows(array[None, None, :])


def expert(matrix: Any, counts: Counts) -> Rows | SparseRows:
    """Rows given by the user: ``(S, A, S)``, with 1 for an axis that does not matter, or sparse ``(S * A, S)``."""
    S, A = counts.n_states, counts.n_actions
    if matrix is None:
        raise InputError(f"The expert's rows are missing: give them as target=, an array of shape ({S}, {A}, {S}).")
    try:
        rows = kernel(matrix)
    except InputError as error:
        raise InputError(f"The target is not a transition matrix. {error}") from None
    if isinstance(rows, Mixture | Operator):
        raise InputError("An expert target is an array or a sparse matrix, not a mixture.")
    s, a, n = rows.shape[-3:]
    if s not in (1, S) or a not in (1, A) or n != S:
        raise InputError(f"The expert's rows need the shape ({S}, {A}, {S}) (or 1 for an axis); got {rows.shape}.")
    return rows


def self_loop(counts: Counts) -> Rows | SparseRows:
    """Stay where you are, one row per state."""
    S = counts.n_states
    return SparseRows(sp.eye_array(S, format="csr"), S, 1) if counts.sparse else Rows.trusted(np.eye(S)[:, None, :])


def action_average(counts: Counts) -> Kernel:
    """Average of the rows of the state's actions, as epsilon-greedy planning sees it; an unvisited one is uniform."""
    return _fill_up(counts, np.asarray(counts.unvisited.mean(axis=-1, keepdims=True)))


def tried_average(counts: Counts) -> Kernel:
    """Average of the rows of those actions of the state that were tried; uniform where none was."""
    return _fill_up(counts, np.asarray(counts.unvisited.all(axis=-1, keepdims=True), dtype=np.float64))


def _fill_up(counts: Counts, share: Floats) -> Kernel:
    """Average of the tried actions with a share ``(..., S, 1)`` of the uniform row."""
    tried = (~counts.unvisited).sum(axis=-1, keepdims=True)  # (..., S, 1)
    average = _tried_rows(counts, 1.0 / np.maximum(tried, 1))
    return Mixture(average, share, uniform(counts)) if share.any() else average


def _tried_rows(counts: Counts, each: Floats) -> Rows | SparseRows:
    """Rows of each state added up, each with the same weight, ``(..., S, 1, S)``."""
    rows = mle(counts)
    if isinstance(rows, Rows):
        return Rows.trusted(rows.array.sum(axis=-2, keepdims=True) * each[..., None])
    S, A = counts.n_states, counts.n_actions
    lines = np.repeat(np.arange(S), A)
    add_up = sp.csr_array((np.repeat(each[:, 0], A), (lines, np.arange(S * A))), shape=(S, S * A))
    return SparseRows(add_up @ rows.matrix, S, 1)
