"""What a planner is given and what it gives back, between `solve` and the algorithms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, floats, together, within
from certeq.base.errors import InputError
from certeq.model.kernel import Kernel, Rows, is_sparse, kernel
from certeq.planners.progress import Watch

LARGEST = 1e305  # of values, with room for sums of them
SMALLER = "Divide all rewards by a constant; that changes no advice."


class Problem(NamedTuple):
    """A checked planning problem; leading axes broadcast."""

    model: Kernel  # (..., S, A, S)
    reward: Floats  # (..., S, A)
    discount: Floats  # (...)
    allowed: Booleans  # (..., S, A)

    @property
    def batch(self) -> tuple[int, ...]:
        """The broadcast leading axes."""
        lead = (self.model.batch, self.reward.shape[:-2], self.discount.shape, self.allowed.shape[:-2])
        return np.broadcast_shapes(*lead) if any(lead) else ()

    @property
    def n_states(self) -> int:
        """S."""
        return self.model.shape[-1]

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.allowed.shape[-1])

    @property
    def dense(self) -> bool:
        """Whether the rows may be written out."""
        return not is_sparse(self.model)


class How(NamedTuple):
    """How the caller wants it done."""

    tolerance: float  # largest certified error of the values, relative to the largest; exact methods need none
    limit: int  # iterations at most
    watch: Watch
    threads: int | None  # all processors by default
    plain: bool = False  # whether rows are plain numbers that nobody has checked, for a planner that does it itself


class Solution(NamedTuple):
    """What an algorithm found."""

    policy: Integers  # (..., S)
    values: Floats  # (..., S)
    iterations: Integers  # (...)
    residual: Floats  # (...)
    converged: Booleans  # (...)
    error: Floats | float = 0.0  # (...): certified error of the values, up to a shift; 0 for exact methods
    interrupted: bool = False  # whether somebody stopped it
    finite: bool = False  # whether it is known already that all values are finite


def read_problem(
    transition: Any, reward: ArrayLike, discount: ArrayLike, allowed: ArrayLike | None
) -> tuple[Problem, bool]:
    """Check the parts of a problem; the second value tells whether the rows themselves are checked already."""
    trusted = not isinstance(transition, np.ndarray)
    if trusted:
        model = kernel(transition)
    else:
        try:
            array = np.asarray(transition, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"Transitions must be an array of numbers; got one of {transition.dtype}.") from None
        Rows(np.empty((0, *array.shape[-3:])) if array.ndim >= 3 else array)  # the shape alone
        model = Rows.trusted(array)
    S = model.shape[-1]
    rewards = floats("reward", reward)
    A = max(model.shape[-2], rewards.shape[-1] if rewards.ndim else 1)
    fits = rewards.ndim >= 2 and rewards.shape[-2] in (1, S) and rewards.shape[-1] in (1, A)
    if not fits or model.shape[-2] not in (1, A):
        expected = f"(..., {S}, {model.shape[-2]})"
        raise InputError(f"Transitions of shape {model.shape} need rewards of shape {expected}; got {rewards.shape}.")
    if rewards.shape[-2:] != (S, A):
        rewards = np.broadcast_to(rewards, (*rewards.shape[:-2], S, A))
    problem = Problem(model, rewards, within("discount", discount, 0, 1), read_allowed(allowed, S, A))
    check_range(rewards, problem.discount)
    together(
        transition=model.batch,
        reward=rewards.shape[:-2],
        discount=problem.discount.shape,
        allowed=problem.allowed.shape[:-2],
    )
    return problem, trusted


def check_single(problem: Problem) -> None:
    """Raise if there is a batch of rewards, discounts or weights for a sparse model."""
    if not problem.dense and problem.batch:
        raise InputError(f"A sparse model takes one reward and one discount at a time; got a batch {problem.batch}.")


def check_range(reward: Floats, discount: Floats) -> None:
    """Refuse rewards that would add up to more than a float can hold."""
    largest = max(float(reward.max(initial=0)), -float(reward.min(initial=0)))
    near = float(discount.max(initial=0))
    if near == 1:
        near = float(discount[discount < 1].max(initial=0))
    if largest > LARGEST * (1 - near):
        raise InputError(f"Rewards of {largest:.3g} can add up to values beyond what numbers can hold. {SMALLER}")


def read_allowed(allowed: ArrayLike | None, S: int, A: int) -> Booleans:
    """Check a mask of actions: every state needs one."""
    if allowed is None:
        return np.ones((S, A), dtype=bool)
    mask = np.asarray(allowed)
    if mask.dtype != bool or mask.shape[-2:] != (S, A):
        raise InputError(f"allowed must be booleans of shape (..., {S}, {A}); got {mask.dtype} {mask.shape}.")
    without = ~mask.any(axis=-1) if not mask.all() else np.zeros(0, dtype=bool)
    if without.any():
        *batch, s = np.argwhere(without)[0].tolist()
        where = f" of batch element {batch}" if batch else ""
        raise InputError(f"State {s}{where} has no allowed action; each state needs at least one.")
    return mask
