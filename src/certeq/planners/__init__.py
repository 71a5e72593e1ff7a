"""Planners: from a known model to a `Plan`.

``policy_iteration`` is exact and the default for dense models; ``value_iteration`` and ``modified_policy_iteration``
sweep until a certified error is small enough, and never build a mixture, so they suit sparse models.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from certeq.arrays import ArrayLike, whole
from certeq.errors import InputError, unknown
from certeq.kernel import Kernel, check_rows, is_sparse
from certeq.planners import compiled
from certeq.planners.episodic import check_ends
from certeq.planners.finite_horizon import FinitePlan, solve_finite
from certeq.planners.plan import Plan
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import Problem, Solution, read_problem
from certeq.planners.sweeps import modified_policy_iteration, value_iteration

__all__ = ["METHODS", "FinitePlan", "Plan", "solve", "solve_finite"]

METHODS: dict[str, Callable[[Problem, float, int], Solution]] = {
    "policy_iteration": policy_iteration,
    "value_iteration": value_iteration,
    "modified_policy_iteration": modified_policy_iteration,
}
ENGINES = ("auto", "numpy", "numba")


def solve(
    transition: Kernel | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    *,
    allowed: ArrayLike | None = None,
    method: str = "auto",
    tolerance: float = 1e-9,
    max_iterations: int | None = None,
    engine: str = "auto",
    threads: int | None = None,
) -> Plan:
    """Plan optimally in a known model; every argument broadcasts over leading batch axes.

    Parameters
    ----------
    transition
        Rows ``(..., S, A, S)``, a sparse matrix ``(S * A, S)``, or a kernel. Mass missing from a row ends the episode.
    reward
        ``(..., S, A)``.
    discount
        ``(...)``, between 0 and 1. With 1, every policy must be sure to end.
    allowed
        ``(..., S, A)``, which actions may be chosen; all unless said.
    method
        A name in ``METHODS``; ``auto`` is policy iteration, and modified policy iteration for sparse models.
    tolerance
        Largest certified error of the values, relative to the largest value, for methods that are not exact.
    max_iterations
        When to give up; the plan's ``outcome`` and ``bound`` then tell what was reached.
    engine
        ``numpy``, ``numba`` (compiled, for dense policy iteration) or ``auto``: compiled when the work is worth it.
    threads
        For the compiled engine; all processors unless said. The result does not depend on it.

    >>> from certeq import solve
    >>> plan = solve([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]], 0.5)
    >>> plan.policy
    array([1, 0])
    >>> plan.values
    array([1., 2.])
    """
    if method not in (*METHODS, "auto"):
        raise unknown("planning method", method, (*METHODS, "auto"))
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    problem, trusted = read_problem(transition, reward, discount, allowed)
    if method == "auto":
        method = "modified_policy_iteration" if is_sparse(problem.model) else "policy_iteration"
    usual = 1_000 if method == "policy_iteration" else 1_000_000
    limit = usual if max_iterations is None else whole("max_iterations", max_iterations, 1)
    if not tolerance > 0:
        raise InputError(f"tolerance must be a positive number; got {tolerance}.")
    fast = engine == "numba" or (engine == "auto" and method == "policy_iteration" and compiled.pays(problem))
    if fast and (method != "policy_iteration" or is_sparse(problem.model)):
        raise InputError("engine='numba' does policy iteration in dense models; use engine='auto' here.")
    if not trusted and not (fast and problem.n_states <= compiled.SMALL):
        check_rows(problem.model.dense())  # small compiled plans check the rows while they read them
    check_ends(problem)
    if prod(problem.batch) == 0:
        empty = np.zeros(problem.batch)
        shape = (*problem.batch, problem.n_states)
        return Plan(
            np.zeros(shape, np.int64), np.zeros(shape), empty.astype(int), empty, empty > -1, 0.0, method, problem
        )
    if fast:
        return Plan(*compiled.plan(problem, tolerance, limit, threads), method, problem)
    return Plan(*METHODS[method](problem, tolerance, limit), method, problem)
