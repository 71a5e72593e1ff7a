"""Problems without discounting: they have values only if every policy is sure to end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.errors import InputError
from certeq.model.kernel import MASS_TOLERANCE, check_rows
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import How, Problem
from certeq.planners.progress import Watch


def check_problem(problem: Problem, trusted: bool) -> None:
    """Raise if rows that are not ``trusted`` are no distributions, or if some policy could go on forever."""
    if not trusted:
        check_rows(problem.model.dense())
    check_ends(problem)


def check_ends(
    problem: Problem,
    names: Sequence[str] | None = None,
    remedy: str = "Mark where episodes end (a row that sums to less than 1)",
) -> None:
    """Raise, naming states, if some policy could go on forever while the discount is 1.

    The states where that can happen are the largest set in which each state has an allowed action that surely stays in
    the set: start from all states and drop those that cannot.
    """
    model, _, discount, allowed = problem
    if not (discount == 1).any():
        return
    batch, S = problem.batch, problem.n_states
    mass = np.broadcast_to(np.where(allowed, model.mass(), 0), (*batch, *allowed.shape[-2:]))
    goes_on = mass >= 1 - MASS_TOLERANCE
    trapped = np.broadcast_to((discount == 1)[..., None], (*batch, S)).copy()
    while True:
        stays = goes_on & (model.expect(trapped.astype(np.float64)) >= 1 - MASS_TOLERANCE)
        remaining = trapped & stays.any(axis=-1)
        if (remaining == trapped).all():
            break
        trapped = remaining
    if trapped.any():
        element = trapped.reshape(-1, S)[trapped.reshape(-1, S).any(axis=1)][0]
        states = np.flatnonzero(element)
        called = [str(s) if names is None else repr(names[s]) for s in states[:10]]
        shown = ", ".join(called) + (", ..." if len(states) > 10 else "")
        raise InputError(
            f"With discount 1 every policy must be sure to end, but one can stay forever among the states {shown}. "
            f"{remedy}, or use a discount below 1."
        )


def longest(problem: Problem) -> Floats:
    """Most discounted steps that can lie ahead under any policy, ``(...)``: 1 / (1 - γ·mass) where that says anything.

    With discount 1 it is found by planning for length: reward 1 for each step.
    """
    model, _, discount, allowed = problem
    mass = np.where(allowed, model.mass(), 0).max(axis=(-2, -1))
    with np.errstate(divide="ignore"):
        steps = np.asarray(1 / np.maximum(1 - discount * np.minimum(mass, 1), 0))
    if np.isfinite(steps).all():
        return steps
    how = How(0.0, 1000, Watch(), None)
    counted = policy_iteration(problem._replace(reward=np.ones(problem.reward.shape)), how)
    return np.asarray(np.where(np.isfinite(steps), steps, counted.values.max(axis=-1)))
