"""The two uniform regularizers: a prior of one magnitude, and a blend of one weight."""

from __future__ import annotations

from certeq.base.arrays import ArrayLike
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.regularizers.shrinkage import Shrinkage, constant, fixed, prior, strength_of


def uniform_prior(
    counts: Counts,
    *,
    strength: ArrayLike | None = None,
    magnitude: ArrayLike | None = None,
    planning_discount: ArrayLike | None = None,
    discount: ArrayLike | None = None,
) -> Shrinkage:
    """Eq. 1: a uniform Dirichlet prior with the same magnitude for every pair: weight M/(c + M)."""
    rule = prior("uniform_prior", counts, strength, magnitude, planning_discount, discount)
    target = targets.uniform(counts)
    return Shrinkage(rule, target, learned=True, beliefs=(fixed(rule, target),))


def uniform_blend(
    counts: Counts,
    *,
    strength: ArrayLike | None = None,
    planning_discount: ArrayLike | None = None,
    discount: ArrayLike | None = None,
    row: ArrayLike | None = None,
) -> Shrinkage:
    """The same weight for every pair, toward the uniform row, or another ``row`` that all pairs share.

    By Theorem 1 it has the same policies as ``discount``, whatever the row.
    """
    epsilon = strength_of("uniform_blend", strength, planning_discount, discount)
    target = targets.uniform(counts) if row is None else targets.shared_row(row, counts)
    return Shrinkage(constant(counts, epsilon), target, learned=False)
