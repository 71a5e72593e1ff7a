"""Epsilon-greedy regularization: plan as if a random action were taken now and then."""

from __future__ import annotations

from certeq.base.arrays import ArrayLike
from certeq.data.counts import Counts
from certeq.model import targets, weights
from certeq.model.moments import action_moments
from certeq.regularizers.shrinkage import Shrinkage, constant, strength_of


def epsilon_greedy(
    counts: Counts,
    *,
    strength: ArrayLike | None = None,
    planning_discount: ArrayLike | None = None,
    discount: ArrayLike | None = None,
) -> Shrinkage:
    """The same weight for every pair, toward the average of the state's actions."""
    epsilon = strength_of("epsilon_greedy", strength, planning_discount, discount)
    return Shrinkage(constant(counts, epsilon), targets.action_average(counts), learned=False, averages_actions=True)


def least_mse_epsilon_greedy(counts: Counts, *, plug_in: str = "posterior", pseudo_count: float = 0.5) -> Shrinkage:
    """Appendix, corrected: for each pair, the weight toward its state's action average with the least error."""
    weight = weights.least_mse_action_average(action_moments(counts, plug_in=plug_in, pseudo_count=pseudo_count))
    return Shrinkage(weight, targets.action_average(counts), learned=True, averages_actions=True)
