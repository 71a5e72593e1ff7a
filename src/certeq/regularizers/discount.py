"""Discount regularization: plan with a lower discount."""

from __future__ import annotations

from certeq.base.arrays import ArrayLike
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.regularizers.shrinkage import Shrinkage, constant, strength_of


def discount(
    counts: Counts,
    *,
    strength: ArrayLike | None = None,
    planning_discount: ArrayLike | None = None,
    discount: ArrayLike | None = None,
) -> Shrinkage:
    """Eq. 2: the same weight (γ - γ_p)/γ for every pair, toward rows of zeros."""
    epsilon = strength_of("discount", strength, planning_discount, discount)
    return Shrinkage(constant(counts, epsilon), targets.zeros(counts), learned=False)
