"""A prior that somebody who knows the field has written down."""

from __future__ import annotations

from typing import Any

from certeq.base.arrays import ArrayLike
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.regularizers.shrinkage import Shrinkage, fixed, prior


def expert_prior(
    counts: Counts,
    *,
    target: Any,
    strength: ArrayLike | None = None,
    magnitude: ArrayLike | None = None,
    planning_discount: ArrayLike | None = None,
    discount: ArrayLike | None = None,
) -> Shrinkage:
    """Eq. 1 with the user's rows as the mean of the prior, and the same magnitude for every pair."""
    rows = targets.expert(target, counts)
    rule = prior("expert_prior", counts, strength, magnitude, planning_discount, discount)
    return Shrinkage(rule, rows, learned=True, beliefs=(fixed(rule, rows),))
