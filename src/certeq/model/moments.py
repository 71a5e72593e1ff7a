"""The few numbers that a weight rule needs to know of a row, and what they say about the error of an estimate.

A least-error weight depends on a row T only through Σᵢ Tᵢ², on a fixed target q also through Σᵢ qᵢTᵢ and Σᵢ qᵢ², and on
the other actions through the products Σᵢ TᵢT'ᵢ. T itself is unknown; a *plug-in* stands for it:

- ``mle``: the observed frequencies. A pair seen once looks deterministic, which is why the paper prefers
- ``posterior``: the mean over Dirichlet(counts + pseudo_count), in closed form (no sampling);
- ``unbiased``: estimates whose mean over data sets is right; they lead to the Hausser-Strimmer intensity.

The outcome "the episode ends" takes part in every sum like a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import ArrayLike, Floats, floats
from certeq.base.errors import InputError, unknown
from certeq.data.counts import Counts
from certeq.model.kernel import Rows, SparseRows

PLUG_INS = ("mle", "posterior", "unbiased")


@dataclass(frozen=True)
class Moments:
    """What is known of each row, and of its distance to a fixed target q."""

    visits: Floats  # (..., S, A)
    square: Floats  # (..., S, A): E Σ T²
    overlap: Floats  # (..., S, A): E Σ qT
    target_square: Floats  # (..., S or 1, A or 1): Σ q²

    @property
    def spread(self) -> Floats:
        """Σ T(1 - T): visits times the variance of the MLE row."""
        return _settle(1 - self.square)

    @property
    def distance(self) -> Floats:
        """Σ (q - T)²: squared distance from the row to the target."""
        return _settle(self.square - 2 * self.overlap + self.target_square)


@dataclass(frozen=True)
class ActionMoments:
    """What is known of the rows of a state together, for targets that average over its actions."""

    visits: Floats  # (..., S, A)
    gram: Floats  # (..., S, A, A): E Σ TₐTᵦ

    @property
    def variance(self) -> Floats:
        """Σ Var of each MLE row, ``(..., S, A)``; zero for an unvisited action, whose stand-in is no estimate."""
        spread = _settle(1 - np.diagonal(self.gram, axis1=-2, axis2=-1))
        return np.asarray(np.where(self.visits > 0, spread / np.maximum(self.visits, 1), 0.0))

    @property
    def distance(self) -> Floats:
        """D = Σᵢ (T̄ᵢ - Tₖᵢ)², ``(..., S, A)``, with T̄ the average over the actions."""
        own = np.diagonal(self.gram, axis1=-2, axis2=-1)
        return _settle(self.gram.mean(axis=(-2, -1))[..., None] - 2 * self.gram.mean(axis=-1) + own)


def _settle(difference: Floats) -> Floats:
    """Take a difference of numbers up to 1 that is no more than rounding for the zero it stands for."""
    return np.asarray(np.where(np.abs(difference) < 2e-15, 0.0, difference))


def true_moments(visits: ArrayLike, row: ArrayLike, target: ArrayLike) -> Moments:
    """Moments when T is known: rows and target rows ``(..., N)`` over all outcomes. For oracles and for plots."""
    T, q = floats("row", row), floats("target", target)
    return Moments(floats("visits", visits), (T * T).sum(-1), (q * T).sum(-1), (q * q).sum(-1))


def true_action_moments(visits: ArrayLike, rows: ArrayLike) -> ActionMoments:
    """Action moments when T is known: ``rows`` is ``(..., A, N)`` over all outcomes, ``visits`` is ``(..., A)``."""
    T = floats("rows", rows)
    return ActionMoments(floats("visits", visits), T @ np.swapaxes(T, -1, -2))


def moments(
    counts: Counts, target: Rows | SparseRows, *, plug_in: str = "posterior", pseudo_count: float = 0.5
) -> Moments:
    """Moments of every pair and a fixed target, from counts."""
    _check(plug_in, pseudo_count)
    visits = counts.visits.astype(np.float64)
    a0 = pseudo_count if plug_in == "posterior" else 0.0
    total = visits + counts.n_outcomes * a0
    shared = count_overlap(counts, target) + a0 * _reach(counts, target)  # Σ q(c + a0)
    overlap = shared / np.where(total > 0, total, 1)
    squared = _target_square(target)
    square = _square(counts, total, plug_in, a0)
    if plug_in == "unbiased":  # one visit says nothing of spread: such a row is taken to be the target itself
        few = visits < 2
        square = np.where(few, squared, square)
        overlap = np.where(few, squared, overlap)
    return Moments(visits, square, overlap, squared)


def action_moments(counts: Counts, *, plug_in: str = "posterior", pseudo_count: float = 0.5) -> ActionMoments:
    """Action moments of every state, from counts. An unvisited action stands in as the uniform row, known exactly."""
    _check(plug_in, pseudo_count)
    N = counts.n_outcomes
    visits = counts.visits.astype(np.float64)
    a0 = pseudo_count if plug_in == "posterior" else 0.0
    total = visits + N * a0
    products = _count_gram(counts) + a0 * (visits[..., :, None] + visits[..., None, :]) + N * a0**2
    gram = products / np.maximum(total[..., :, None] * total[..., None, :], 1e-300)
    square = _square(counts, total, plug_in, a0)
    if plug_in == "unbiased":
        square = np.where(visits < 2, 1 / N, square)
    unseen = visits == 0
    gram = np.where(unseen[..., :, None] | unseen[..., None, :], 1 / N, gram)
    own = np.eye(counts.n_actions, dtype=bool)
    return ActionMoments(visits, np.where(own, np.where(unseen, 1 / N, square)[..., None], gram))


def _square(counts: Counts, total: Floats, plug_in: str, a0: float) -> Floats:
    """E Σ T² under the plug-in; ``total`` is visits + N·a0."""
    raw = counts.square_sum
    visits = counts.visits
    if plug_in == "posterior":  # Σ aᵢ(aᵢ + 1) / (A(A + 1)) with aᵢ = cᵢ + a0
        squares = raw + 2 * a0 * visits + counts.n_outcomes * a0**2
        return np.asarray((squares + total) / (total * (total + 1)))
    if plug_in == "unbiased":  # Σ c(c - 1) / (C(C - 1))
        return np.asarray((raw - visits) / np.maximum(visits * (visits - 1.0), 1))
    return np.asarray(raw / np.maximum(visits.astype(np.float64), 1) ** 2)


def count_overlap(counts: Counts, target: Rows | SparseRows) -> Floats:
    """Σᵢ qᵢcᵢ for each pair, ``(..., S, A)``, over all outcomes."""
    S, A = counts.n_states, counts.n_actions
    if not counts.sparse:
        seen = np.einsum("...i,...i->...", counts.transitions, target.dense())
    elif isinstance(target, Rows):
        if target.shape[:2] != (1, 1):
            raise InputError("Sparse counts need a target that is one shared row or a sparse matrix, not dense rows.")
        seen = np.asarray(counts.transitions @ target.array[0, 0]).reshape(S, A)
    else:
        lines = np.broadcast_to(np.arange(target.s_axis * target.a_axis).reshape(target.shape[:2]), (S, A)).ravel()
        seen = np.asarray(counts.transitions.multiply(target.matrix[lines]).sum(axis=1)).reshape(S, A)
    return np.asarray(seen if counts.ended is None else seen + counts.ended * (1 - target.mass()))


def _reach(counts: Counts, target: Rows | SparseRows) -> Floats:
    """Σ q over the outcomes that the counts know of: one, unless the target may end and the data never do."""
    return target.mass() if counts.ended is None else np.ones_like(target.mass())


def _target_square(target: Rows | SparseRows) -> Floats:
    """Σ q² of each target row, ending included."""
    if isinstance(target, Rows):
        squares = np.einsum("...i,...i->...", target.array, target.array)
    else:
        squares = np.asarray(target.matrix.multiply(target.matrix).sum(axis=1)).reshape(target.shape[:2])
    end = np.maximum(1 - target.mass(), 0)
    return np.asarray(squares + end * end)


def _count_gram(counts: Counts) -> Floats:
    """Σᵢ c(s,a,i)·c(s,b,i), ``(..., S, A, A)``."""
    S, A = counts.n_states, counts.n_actions
    if counts.sparse:
        matrix = counts.transitions.astype(np.float64)
        by_action: list[Any] = [sp.csr_array(matrix[np.arange(S) * A + a]) for a in range(A)]
        gram = np.empty((S, A, A))
        for a in range(A):
            for b in range(a, A):
                gram[:, a, b] = gram[:, b, a] = by_action[a].multiply(by_action[b]).sum(axis=1)
    else:
        values = counts.transitions.astype(np.float64)
        gram = values @ np.swapaxes(values, -1, -2)
    if counts.ended is not None:
        gram = gram + counts.ended[..., :, None] * counts.ended[..., None, :].astype(np.float64)
    return gram


def _check(plug_in: str, pseudo_count: float) -> None:
    if plug_in not in PLUG_INS:
        raise unknown("plug-in", plug_in, PLUG_INS)
    if plug_in == "posterior" and not (np.isfinite(pseudo_count) and pseudo_count > 0):
        raise InputError(f"pseudo_count must be a positive number; got {pseudo_count}. For none, use plug_in='mle'.")
