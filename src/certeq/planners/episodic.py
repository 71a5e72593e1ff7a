"""Problems without discounting: they have values only if every policy is sure to end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certeq.base.errors import InputError
from certeq.model.kernel import MASS_TOLERANCE, check_meant, check_plain
from certeq.planners.certify import check_telling
from certeq.planners.problem import Problem


def check_problem(problem: Problem, trusted: bool) -> None:
    """Raise if rows that are not ``trusted`` are no distributions, or if some policy could go on forever."""
    if not trusted:
        check_plain(problem.model.dense())
    check_ends(problem)


def check_clear(problem: Problem, trusted: bool) -> None:
    """Raise if rows that are not ``trusted`` lack so little that it may be rounding."""
    if not trusted:
        check_meant(problem.model.mass())


def check_ends(
    problem: Problem,
    names: Sequence[str] | None = None,
    remedy: str = "Mark where episodes end (a row that sums to less than 1)",
) -> None:
    """Raise, naming states, if some policy could go on forever while the discount is 1, or all but 1.

    The states where that can happen are the largest set in which each state has an allowed action that surely stays in
    the set: start from all states and drop those that cannot.
    """
    model, _, discount, allowed = problem
    check_telling(problem)
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
