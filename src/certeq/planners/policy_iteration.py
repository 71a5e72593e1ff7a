"""Policy iteration: value the policy exactly, improve it, until nothing improves."""

from __future__ import annotations

import numpy as np

from certeq.planners.backup import backup, greedy, improve, value_policy
from certeq.planners.problem import How, Problem, Solution


def policy_iteration(problem: Problem, how: How) -> Solution:
    """Solve exactly. The plain twin of ``compiled.small``, ``compiled.medium`` and ``gpu``."""
    model, reward, discount, allowed = problem
    values = np.zeros((*problem.batch, problem.n_states))
    q = backup(model, reward, discount, allowed, values)
    policy = greedy(q)
    iterations = np.zeros(problem.batch, dtype=np.int64)
    moving = np.ones(problem.batch, dtype=bool)
    for iteration in range(1, how.limit + 1):
        values = value_policy(model, reward, discount, policy, values)
        q = backup(model, reward, discount, allowed, values)
        better = improve(q, policy)
        iterations[moving] = iteration
        moving = (better != policy).any(axis=-1)
        policy = better
        if not moving.any():
            break
    residual = np.abs(q.max(axis=-1) - values).max(axis=-1)
    return Solution(greedy(q), values, iterations, residual, ~moving)
