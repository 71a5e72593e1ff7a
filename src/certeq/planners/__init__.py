"""Planners: from a known model to a `Plan`.

``policy_iteration`` is exact and the default for dense models; ``value_iteration`` and ``modified_policy_iteration``
sweep until a certified error is small enough, and never build a mixture, so they suit sparse models. For large sparse
models there is ``inexact_policy_iteration``. Compiled engines take over where there is enough to do: see ``catalogue``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np

from certeq.base.arrays import ArrayLike, whole
from certeq.base.errors import InputError, unknown
from certeq.model.kernel import Kernel
from certeq.planners.catalogue import DEVICES, ENGINES, METHODS, PLANNERS, asked_for, choose
from certeq.planners.finite_horizon import FinitePlan, solve_finite
from certeq.planners.gpu import solving as on_gpu
from certeq.planners.plan import Plan
from certeq.planners.problem import How, Problem, Solution, check_single, read_problem
from certeq.planners.progress import Progress, Watch

__all__ = ["METHODS", "PLANNERS", "FinitePlan", "Plan", "Progress", "solve", "solve_finite"]

INTERRUPTS = ("raise", "return")


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
        Rows ``(..., S, A, S)``, a sparse matrix ``(S * A, S)``, or a kernel. Mass missing from a row ends the episode;
        plain numbers whose rows lack between 1e-9 and 1e-6 are refused, as that may be rounding: wrap them in `Rows`.
    reward
        ``(..., S, A)``.
    discount
        ``(...)``, between 0 and 1. With 1, every policy must be sure to end.
    allowed
        ``(..., S, A)``, which actions may be chosen; all by default.
    method
        A name in ``METHODS``. ``auto`` is policy iteration in dense models; in sparse ones modified policy iteration,
        and the inexact one where there is enough to do.
    tolerance
        Largest certified error of the values, relative to the largest value, for methods that are not exact.
    max_iterations
        When to give up; the plan's ``outcome`` and ``bound`` then tell what was reached.
    engine
        ``numpy``, ``numba`` (compiled, for dense policy iteration and sparse inexact policy iteration) or ``auto``:
        compiled when the work is worth it.
    threads
        For the compiled engine; all processors by default. The result does not depend on it.
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
    for kind, name, names in (
        ("planning method", method, ("auto", *METHODS)),
        ("engine", engine, ("auto", *ENGINES)),
        ("way to be interrupted", on_interrupt, INTERRUPTS),
        ("device", device, DEVICES),
    ):
        if name not in names:
            raise unknown(kind, name, names)
    if not tolerance > 0:
        raise InputError(f"tolerance must be a positive number; got {tolerance}.")
    limit = None if max_iterations is None else whole("max_iterations", max_iterations, 1)
    asked = asked_for(method, engine, device)
    if device == "gpu" and on_gpu.there(transition, reward, discount, allowed):
        return cast("Plan", on_gpu.plan_there(transition, reward, discount, allowed, limit or asked[0].limit))
    problem, trusted = read_problem(transition, reward, discount, allowed)
    check_single(problem)
    planner = choose(asked, problem)
    planner.check(problem, trusted)
    run = planner.run if prod(problem.batch) else _nothing
    how = How(
        tolerance, limit or planner.limit, Watch(progress, returns=on_interrupt == "return"), threads, not trusted
    )
    return Plan.of(run(problem, how), planner.method, problem)


def _nothing(problem: Problem, how: How) -> Solution:
    """What is found in an empty batch."""
    shape, empty = (*problem.batch, problem.n_states), np.zeros(problem.batch)
    return Solution(np.zeros(shape, np.int64), np.zeros(shape), empty.astype(int), empty, empty > -1)
