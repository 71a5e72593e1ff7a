"""Planners: from a known model to a `Plan`.

``policy_iteration`` is exact and the default for dense models; ``value_iteration`` and ``modified_policy_iteration``
sweep until a certified error is small enough, and never build a mixture, so they suit sparse models. For large sparse
models there is ``inexact_policy_iteration``, compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, whole
from certeq.base.errors import InputError, unknown
from certeq.model.kernel import Kernel, check_rows, is_sparse
from certeq.planners import compiled
from certeq.planners import sparse as large
from certeq.planners.episodic import check_ends
from certeq.planners.finite_horizon import FinitePlan, solve_finite
from certeq.planners.gpu import solving as on_gpu
from certeq.planners.plan import Plan
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import Problem, Solution, read_problem
from certeq.planners.progress import Progress, Watch
from certeq.planners.value_iteration import modified_policy_iteration, value_iteration

__all__ = ["METHODS", "FinitePlan", "Plan", "Progress", "solve", "solve_finite"]

METHODS: dict[str, Callable[[Problem, float, int, Watch], Solution]] = {
    "policy_iteration": lambda problem, tolerance, limit, watch: policy_iteration(problem, tolerance, limit),
    "value_iteration": value_iteration,
    "modified_policy_iteration": modified_policy_iteration,
}
ENGINES = ("auto", "numpy", "numba")
INTERRUPTS = ("raise", "return")
DEVICES = ("cpu", "gpu")


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
    progress: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
    device: str = "cpu",
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
        A name in ``METHODS``, or ``inexact_policy_iteration`` for one sparse model. ``auto`` is policy iteration in
        dense models; in sparse ones modified policy iteration, and the inexact one where there is enough to do.
    tolerance
        Largest certified error of the values, relative to the largest value, for methods that are not exact.
    max_iterations
        When to give up; the plan's ``outcome`` and ``bound`` then tell what was reached.
    engine
        ``numpy``, ``numba`` (compiled, for dense policy iteration and sparse inexact policy iteration) or ``auto``:
        compiled when the work is worth it.
    threads
        For the compiled engine; all processors unless said. The result does not depend on it.
    progress
        Called with a `Progress` after each iteration of a method that is not exact.
    on_interrupt
        What Ctrl-C (or a ``KeyboardInterrupt`` from ``progress``) does to such a method: ``raise`` it, or ``return``
        the plan so far, whose ``outcome`` and ``bound`` tell what it is worth.
    device
        ``cpu``, or ``gpu`` for batches of dense MDPs of up to 32 states (needs ``certeq[gpu]``). What is on the GPU
        stays there: given CuPy arrays, or a `certeq.gpu.DeviceMixture` of them, this returns a `DevicePlan` of CuPy
        arrays, whose ``get()`` is the plan on the host. NumPy arrays are copied, which takes longer than planning.

    >>> from certeq import solve
    >>> plan = solve([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]], 0.5)
    >>> plan.policy
    array([1, 0])
    >>> plan.values
    array([1., 2.])
    """
    if method not in (*METHODS, large.NAME, "auto"):
        raise unknown("planning method", method, (*METHODS, large.NAME, "auto"))
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if on_interrupt not in INTERRUPTS:
        raise unknown("way to be interrupted", on_interrupt, INTERRUPTS)
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    if device == "gpu":
        there: Plan = on_gpu.plan(transition, reward, discount, allowed, method, engine, max_iterations)
        return there
    problem, trusted = read_problem(transition, reward, discount, allowed)
    if method == "auto":
        method = _choose(problem, engine)
    usual = 1_000 if method == "policy_iteration" else 1_000_000
    limit = usual if max_iterations is None else whole("max_iterations", max_iterations, 1)
    if not tolerance > 0:
        raise InputError(f"tolerance must be a positive number; got {tolerance}.")
    inexact = method == large.NAME
    if inexact and (engine == "numpy" or not large.able(problem)):
        raise InputError(
            f"{large.NAME} is compiled, and plans in one sparse model with a discount below 1 (or where every row may "
            "end the episode). Use method='auto' and engine='auto' here."
        )
    fast = engine == "numba" or (engine == "auto" and method == "policy_iteration" and compiled.pays(problem))
    if fast and not inexact and (method != "policy_iteration" or is_sparse(problem.model)):
        raise InputError(
            "engine='numba' does policy iteration in dense models, and inexact policy iteration in sparse ones; use "
            "engine='auto' here."
        )
    if not trusted and not (fast and problem.n_states <= compiled.SMALL):
        check_rows(problem.model.dense())  # small compiled plans check the rows while they read them
    check_ends(problem)
    if prod(problem.batch) == 0:
        empty = np.zeros(problem.batch)
        shape = (*problem.batch, problem.n_states)
        return Plan(
            np.zeros(shape, np.int64), np.zeros(shape), empty.astype(int), empty, empty > -1, 0.0, method, problem
        )
    watch = Watch(progress, returns=on_interrupt == "return")
    if inexact:
        return Plan.of(large.plan(problem, tolerance, limit, watch, threads), method, problem)
    if fast:
        return Plan.of(compiled.plan(problem, tolerance, limit, threads), method, problem)
    return Plan.of(METHODS[method](problem, tolerance, limit, watch), method, problem)


def _choose(problem: Problem, engine: str) -> str:
    """The method for those who do not care."""
    if not is_sparse(problem.model):
        return "policy_iteration"
    inexact = large.able(problem) if engine == "numba" else engine == "auto" and large.pays(problem)
    return large.NAME if inexact else "modified_policy_iteration"
