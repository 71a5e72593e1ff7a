"""Plan: what a planner returns. The policy, its values, and how much to trust them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from certeq.arrays import Booleans, Floats, Integers
from certeq.planners.backup import backup, tied
from certeq.planners.episodic import longest
from certeq.planners.problem import Problem


@dataclass(frozen=True)
class Plan:
    """A policy for each MDP of a batch.

    ``policy`` is the lowest-numbered of the tied best actions, -1 for "no advice". ``bound`` certifies the values:
    nowhere is \\|values - optimal values\\| larger.
    """

    policy: Integers  # (..., S)
    values: Floats  # (..., S)
    iterations: Integers  # (...)
    residual: Floats  # (...): largest \|max Q - V\|
    converged: Booleans  # (...)
    error: Floats | float  # (...): how far the values may be off, up to a shift, when actions are compared
    method: str
    problem: Problem = field(repr=False)  # what was planned in

    @cached_property
    def bound(self) -> Floats:
        """Certified distance to the optimal values of the model, ``(...)``: residual times the longest way ahead."""
        return np.asarray(self.residual * longest(self.problem))

    @property
    def outcome(self) -> str:
        """What happened, in words."""
        early = int(np.size(self.converged) - np.sum(self.converged))
        if not early:
            return "optimal"
        which = f"{early} of {np.size(self.converged)} plans"
        return f"stopped early: {which} reached the iteration limit, or what rounding allows; see bound"

    @cached_property
    def action_values(self) -> Floats:
        """Q, ``(..., S, A)``; minus infinity where an action is not allowed."""
        return backup(*self.problem, self.values)

    @cached_property
    def advantages(self) -> Floats:
        """Q minus the best Q of the state, ``(..., S, A)``: 0 for the best, negative for the others."""
        return np.asarray(self.action_values - self.action_values.max(axis=-1, keepdims=True))

    @cached_property
    def tied(self) -> Booleans:
        """Which actions are as good as the best, ``(..., S, A)``."""
        return tied(self.action_values, self.error)

    def ties(self) -> list[tuple[int, ...]]:
        """Where more than one action is best: indices ``(..., s)``."""
        return [tuple(map(int, place)) for place in np.argwhere(self.tied.sum(axis=-1) > 1)]

    def without_advice(self, states: Booleans) -> Plan:
        """Withdraw the advice for some states, ``(..., S)``."""
        return replace(self, policy=np.where(states, -1, self.policy)) if states.any() else self
