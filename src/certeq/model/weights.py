"""Weights: one function per equation of the paper, all element by element, so that everything broadcasts.

The weight w (the paper's ε) is the share of the target in the regularized row: ``(1 - w) * T_data + w * T_target``.
Where print and mathematics differ, the docstring says so; tests/paper shows it.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, within
from certeq.base.errors import InputError
from certeq.model.moments import ActionMoments, Moments

GIVEN, CONSTANT, MAGNITUDE, RELATIVE = range(4)  # what weights are made of; the regularizers' `WeightRule` tells more


def dirichlet(visits: ArrayLike, magnitude: ArrayLike) -> Floats:
    """Eq. 1: w = M / (c + M), the weight of a Dirichlet prior with magnitude M = Σα.

    An unvisited pair has weight 1 whatever M is, even 0: there is nothing else to go by. M may be infinite.
    """
    c, M = within("visits", visits, 0, np.inf), read_magnitude(magnitude)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weight = np.asarray(c / M)  # 1 / (1 + c/M), in place: there is one for each data set, strength and pair
    weight += 1
    np.divide(1, weight, out=weight)
    np.copyto(weight, 1.0, where=c == 0)
    return weight


def read_magnitude(magnitude: ArrayLike) -> Floats:
    """Read prior magnitudes: numbers of at least 0, infinity included."""
    try:
        M = np.asarray(magnitude, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"A prior magnitude is a number; got {magnitude!r}.") from None
    if not (M >= 0).all():
        raise InputError(f"A prior magnitude is not negative; got {M[~(M >= 0)].flat[0]:g}.")
    return M


def from_discounts(discount: ArrayLike, planning_discount: ArrayLike) -> Floats:
    """Eq. 2: w = (γ - γ_p) / γ, the weight on the zero target that planning with γ_p instead of γ amounts to."""
    g = within("discount", discount, 0, 1)
    gp = within("planning_discount", planning_discount, 0, 1)
    if (gp > g).any():
        raise InputError(f"The planning discount ({gp.max():g}) may not exceed the discount ({g.min():g}).")
    return np.asarray(np.where(g > 0, (g - gp) / np.where(g > 0, g, 1), 0.0))


def planning_discount(discount: ArrayLike, weight: ArrayLike) -> Floats:
    """Eq. 2 solved for γ_p: γ_p = (1 - w)γ."""
    return (1 - within("weight", weight, 0, 1)) * within("discount", discount, 0, 1)


def implied_magnitude(visits: ArrayLike, discount: ArrayLike, planning_discount: ArrayLike) -> Floats:
    """Eq. 3: Σα = c(γ - γ_p) / γ_p, the prior that a planning discount amounts to: larger where there are more data.

    At γ_p = 0 it is infinite for every pair with data: the future is not discounted but ignored.
    """
    return magnitude(visits, from_discounts(discount, planning_discount))


def magnitude(visits: ArrayLike, weight: ArrayLike) -> Floats:
    """Eq. 1 solved for the magnitude: M = c·w / (1 - w); infinite at w = 1. Zero visits imply no prior at all: 0."""
    c, w = within("visits", visits, 0, np.inf), within("weight", weight, 0, 1)
    full = w >= 1
    return np.asarray(np.where(c > 0, np.where(full, np.inf, c * w / np.where(full, 1, 1 - w)), 0.0))


def implied_planning_discount(visits: ArrayLike, discount: ArrayLike, magnitude: ArrayLike) -> Floats:
    """Eq. 3 solved for γ_p: the planning discount whose effect on a pair with c visits is that of a prior M."""
    return planning_discount(discount, dirichlet(visits, magnitude))


def variance(moments: Moments, weight: ArrayLike) -> Floats:
    """First term of Eq. 4: (1 - w)² Σ T(1 - T) / c, infinite for an unvisited pair unless w = 1."""
    w = np.asarray(weight, dtype=np.float64)
    c = moments.visits
    spread = np.where(c > 0, moments.spread / np.maximum(c, 1), np.inf)
    with np.errstate(invalid="ignore"):  # (1 - 1)² · ∞ where the target stands alone: no data, no variance
        return np.asarray(np.where(w == 1, 0.0, (1 - w) ** 2 * spread))


def bias_squared(moments: Moments, weight: ArrayLike) -> Floats:
    """Second term of Eq. 4, corrected: w² Σ (q - T)². The main text prints w for w²; its appendix has w²."""
    return np.asarray(np.asarray(weight, dtype=np.float64) ** 2 * moments.distance)


def mse(moments: Moments, weight: ArrayLike) -> Floats:
    """Eq. 4: mean squared error of a regularized row, summed over the outcomes."""
    return variance(moments, weight) + bias_squared(moments, weight)


def least_mse(moments: Moments) -> Floats:
    """Eq. 5: w* = V / (V + cD), the minimizer of Eq. 4, with V = Σ T(1 - T) and D = Σ (q - T)².

    Weight 1 where there are no data, and where V + cD is not positive (the row *is* the target). With ``unbiased``
    moments this is the Hausser-Strimmer intensity, clipped to [0, 1].
    """
    V, c = moments.spread, moments.visits
    denominator = V + c * moments.distance
    usable = (c > 0) & (denominator > 0)
    return np.asarray(np.where(usable, np.clip(V / np.where(usable, denominator, 1), 0, 1), 1.0))


def action_average_variance(moments: ActionMoments, weight: ArrayLike) -> Floats:
    """Variance of a row shrunk toward its state's action average: (1 - rw)² vₖ + (w/A)² Σ_{m≠k} vₘ, r = (A - 1)/A."""
    w = np.asarray(weight, dtype=np.float64)
    own, others, A = _own_and_others(moments)
    return np.asarray((1 - (1 - 1 / A) * w) ** 2 * own + (w / A) ** 2 * others)


def action_average_bias_squared(moments: ActionMoments, weight: ArrayLike) -> Floats:
    """Squared bias of a row shrunk toward its state's action average: w²D."""
    return np.asarray(np.asarray(weight, dtype=np.float64) ** 2 * moments.distance)


def action_average_mse(moments: ActionMoments, weight: ArrayLike) -> Floats:
    """Appendix: mean squared error under epsilon-greedy regularization."""
    return action_average_variance(moments, weight) + action_average_bias_squared(moments, weight)


def least_mse_action_average(moments: ActionMoments) -> Floats:
    """Appendix, corrected: w* = r·vₖ / (r²vₖ + A⁻² Σ_{m≠k} vₘ + D), clipped to [0, 1]; r = (A - 1)/A.

    The print has Σᵢ Σ_{m≠k} (Tₘᵢ - Tₖᵢ)² / A² for D = Σᵢ (Σ_{m≠k} (Tₘᵢ - Tₖᵢ))² / A², which agree for two actions
    only. The minimizer may exceed 1; the error is convex in w, so clipping is exact. Weight 1 for an unvisited pair,
    and where the row is the average already.
    """
    own, others, A = _own_and_others(moments)
    r = 1 - 1 / A
    denominator = r * r * own + others / A**2 + moments.distance
    usable = (moments.visits > 0) & (denominator > 1e-14)  # a sum of terms up to 1; less is rounding
    weight = np.clip(r * own / np.where(usable, denominator, 1), 0, 1)
    return np.asarray(np.where(usable, weight, 1.0))


def _own_and_others(moments: ActionMoments) -> tuple[Floats, Floats, int]:
    own = moments.variance
    return own, own.sum(axis=-1, keepdims=True) - own, own.shape[-1]
