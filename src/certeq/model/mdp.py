"""MDP: a decision problem that is fully known, such as an environment's truth or a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, floats, names, together, within
from certeq.base.errors import InputError
from certeq.data.positions import as_positions
from certeq.model.kernel import Kernel, kernel


@dataclass(frozen=True)
class MDP:
    """Transitions, rewards and a discount; leading axes make it a batch of MDPs.

    ``state_names`` and ``action_names`` are for people; where they are empty, states and actions go by number.
    ``start`` is the distribution of the first state; ``positions`` tell where the states lie, if they lie anywhere.
    """

    transition: Kernel  # rows of (..., S, A, S)
    reward: Floats  # (..., S, A)
    discount: float
    start: Any = None  # (S,), floats once it is born; uniform unless given
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    positions: Any = None  # `Positions` once it is born, or None

    def __post_init__(self) -> None:
        transition = kernel(self.transition)
        S, A, N = transition.shape[-3:]
        if S != N:
            raise InputError(f"An MDP needs a row for each of its {N} states; the transitions are {transition.shape}.")
        reward = floats("reward", self.reward)
        if reward.shape[-2:] != (S, A):
            raise InputError(f"Rewards of {S} states x {A} actions need the shape (..., {S}, {A}); got {reward.shape}.")
        start = np.full(S, 1 / S) if self.start is None else within("start", self.start, 0, 1)
        if start.shape != (S,) or abs(start.sum() - 1) > 1e-9:
            what = f"shape {start.shape}, sum {start.sum():.9g}"
            raise InputError(f"The start distribution needs {S} probabilities that sum to 1; got {what}.")
        object.__setattr__(self, "transition", transition)
        object.__setattr__(self, "reward", reward)
        discount = within("discount", self.discount, 0, 1)
        if discount.ndim:
            raise InputError(f"An MDP has one discount; got an array of shape {discount.shape}.")
        together(transition=transition.batch, reward=reward.shape[:-2])
        object.__setattr__(self, "discount", float(discount))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "state_names", names("state", self.state_names, S))
        object.__setattr__(self, "action_names", names("action", self.action_names, A))
        object.__setattr__(self, "positions", as_positions(self.positions, S))

    @property
    def n_states(self) -> int:
        """S."""
        return self.transition.shape[-3]

    @property
    def n_actions(self) -> int:
        """A."""
        return self.transition.shape[-2]

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes: empty for one MDP."""
        return np.broadcast_shapes(self.transition.batch, self.reward.shape[:-2])
