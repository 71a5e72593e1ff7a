"""What arithmetic can promise: how far a backup may be off, and how many steps such an error can go on for.

Rows may sum to a little more than one (`certeq.model.kernel.MASS_TOLERANCE`). Such a row stands for itself divided by
its sum, and what it has too much counts like rounding. All of this holds in exact arithmetic, for floats as they are.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.errors import InputError
from certeq.model.kernel import terms
from certeq.planners.backup import backup
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import SMALLER, How, Problem
from certeq.planners.progress import Watch

UNIT, TINY = float(np.finfo(np.float64).eps), 5e-324  # of rounding: relative, and where numbers end
NEAR = 1e-8  # of one: discounts that are closer may leave nothing but rounding
TELLING = 0.5  # of the values: where rounding, step after step, adds up to more than this, they say nothing


def added(problem: Problem) -> int:
    """Units in the last place that a backup may lose: one for each term of a sum, and some."""
    return 16 + terms(problem.model)


def slip(problem: Problem, values: Floats) -> Floats:
    """How far a backup of values may be off, ``(...)``: rounding, and what rows have too much.

    Next to a discount of one this is all there is to know: with 1 - 1e-9, values of which every digit is right by their
    residual may be off in the eighth.
    """
    earned, worth = (np.abs(problem.reward).max(axis=(-2, -1)), np.abs(values).max(axis=-1, initial=0))
    return np.asarray(added(problem) * (UNIT * (earned + worth) + TINY) + excess(problem) * worth)


def excess(problem: Problem) -> Floats:
    """What the heaviest row that may be chosen has more than one, ``(...)``."""
    return np.maximum(_greatest_mass(problem) - 1, 0)


def longest(problem: Problem) -> Floats:
    """Most discounted steps that can lie ahead under any policy, ``(...)``: 1 / (1 - γ·mass) where that says anything.

    With discount 1 it is found by planning for length, reward 1 for each step: where nowhere a step more makes lengths
    longer by ρ < 1 or more, they are at least 1 - ρ times the longest.
    """
    steps = _steps(problem)
    if np.isfinite(steps).all():
        return steps
    counting = problem._replace(reward=np.ones(problem.reward.shape))
    with np.errstate(all="ignore"):  # of lengths beyond all numbers
        length = policy_iteration(counting, How(0.0, 1000, Watch(), None)).values
        most, grown = length.max(axis=-1), (backup(*counting, length).max(axis=-1) - length).max(axis=-1)
        left = 1 - np.maximum(grown + added(problem) * UNIT * (1 + most), 0)
        counted = np.where((left >= TELLING) & (length.min(axis=-1) >= 0), most / left * (1 + 8 * UNIT), np.inf)
    found = np.asarray(np.where(np.isfinite(steps), steps, counted))
    if not np.isfinite(found).all():
        raise InputError(
            "With discount 1 an episode can last so long here that rounding hides how long. "
            "Use a discount below 1, or mark more often where episodes end."
        )
    return found


def certified(problem: Problem, error: Floats, beside: Floats | float, times: int) -> Floats:
    """An error of each step on the longest way ahead, ``(...)``; or, where less, ``times`` all that can be earned.

    ``beside`` is added to the latter: how large the values are that are compared with what can be earned.
    """
    ahead, earned = longest(problem), np.abs(problem.reward).max(axis=(-2, -1), initial=0)
    with np.errstate(over="ignore"):
        found = np.minimum(error * ahead, beside + times * earned * ahead) * (1 + 8 * UNIT)
    if not np.isfinite(found).all():
        raise InputError(f"Rewards can add up to more than numbers can hold here. {SMALLER}")
    return np.asarray(found)


def check_telling(problem: Problem) -> None:
    """Raise where the discount is so near to one that rounding, or rows above one, could make any values."""
    near = float(problem.discount[problem.discount < 1].max(initial=0))
    if 1 - near > NEAR:
        return
    rounding, above = added(problem) * UNIT, excess(problem)
    lost = np.where(problem.discount < 1, (rounding + above) * _steps(problem), 0)
    if (lost > TELLING).any():
        heavy = float(np.max(above))
        remedy = f"Divide each row by its sum; one sums to 1 + {heavy:.3g}." if heavy > rounding else ""
        raise InputError(
            f"A discount of 1 - {1 - near:.3g} is too near to 1 here: what numbers of sixteen digits lose in a step "
            f"would add up to more than the values. {remedy or 'Use a smaller one, or 1 where every policy must end.'}"
        )


def _steps(problem: Problem) -> Floats:
    """1 / (1 - γ·mass) for the heaviest row, ``(...)``, rounded up."""
    discount, mass = problem.discount, _greatest_mass(problem) * (1 + added(problem) * UNIT)
    with np.errstate(divide="ignore"):
        return np.asarray((1 + 8 * UNIT) / ((1 - discount) + discount * (1 - np.minimum(mass, 1))))


def _greatest_mass(problem: Problem) -> Floats:
    """Greatest sum of a row that may be chosen, ``(...)``."""
    if problem.allowed.ndim == 2 and problem.allowed.all():
        return np.asarray(problem.model.mass().max(axis=(-2, -1), initial=0))
    return np.asarray(np.where(problem.allowed, problem.model.mass(), 0).max(axis=(-2, -1), initial=0))
