"""Planning for a fixed number of decisions: backward induction gives a policy that depends on the time left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, whole
from certeq.base.limits import check_pairs
from certeq.model.kernel import Kernel, check_plain
from certeq.planners.backup import backup, best_supported, greedy, tied
from certeq.planners.problem import check_range, read_problem


@dataclass(frozen=True)
class FinitePlan:
    """What to do at decision t = 0, 1, ..., H - 1, and what it is worth from there on."""

    policy: Integers  # (H, ..., S); -1 for no advice
    values: Floats  # (H, ..., S)
    action_values: Floats  # (H, ..., S, A)

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.policy)

    @property
    def advantages(self) -> Floats:
        """Q minus the best Q of the state, ``(H, ..., S, A)``."""
        return np.asarray(self.action_values - self.action_values.max(axis=-1, keepdims=True))

    @property
    def tied(self) -> Booleans:
        """Which actions are as good as the best, ``(H, ..., S, A)``."""
        return tied(self.action_values)

    def supported(self, visits: Integers) -> FinitePlan:
        """The same plan, with the best supported of tied actions; ``visits`` of pairs are ``(..., S, A)``."""
        policy = np.where(self.policy < 0, -1, best_supported(self.tied, visits))
        return FinitePlan(policy, self.values, self.action_values)

    def without_advice(self, states: Booleans) -> FinitePlan:
        """Withdraw the advice for some states, ``(..., S)``."""
        policy = np.where(states, -1, self.policy)
        return FinitePlan(policy, self.values, self.action_values)


def solve_finite(
    transition: Kernel | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    horizon: int,
    *,
    allowed: ArrayLike | None = None,
) -> FinitePlan:
    """Plan ``horizon`` decisions ahead; arguments as for `certeq.solve`, and any discount up to 1 is fine.

    >>> from certeq import solve_finite
    >>> plan = solve_finite([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]], 1.0, 2)
    >>> plan.policy
    array([[1, 0],
           [0, 0]])
    """
    problem, trusted = read_problem(transition, reward, discount, allowed)
    if not trusted:
        check_plain(problem.model.dense())
    check_pairs(problem.n_states, problem.n_actions, whole("horizon", horizon, 1))
    check_range(problem.reward, np.minimum(problem.discount, 1 - 1 / (1 + horizon)))
    values = np.zeros((*problem.batch, problem.n_states))
    backups = []
    for _ in range(horizon):
        backups.append(backup(*problem, values))
        values = backups[-1].max(axis=-1)
    q = np.stack(backups[::-1])
    return FinitePlan(greedy(q), q.max(axis=-1), q)
