"""Shrinkage: a weight for each pair and what it pulls toward. What every regularizer returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, together, within
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model import weights
from certeq.model.kernel import Kernel, Mixture


@dataclass(frozen=True)
class Shrinkage:
    """``T_plan = (1 - weight) * T_data + weight * target``."""

    weight: Floats  # (..., S, A), in [0, 1]
    target: Kernel
    learned: bool  # whether the weight answers to the visits of the pair; a constant does not
    averages_actions: bool = False  # whether rewards by pair are averaged over the actions with the same weight
    details: Any = None  # why the weights are what they are, where a regularizer can tell

    def at(self, pairs: Booleans, weight: float) -> Shrinkage:
        """Set the weight of some pairs."""
        return replace(self, weight=np.where(pairs, weight, self.weight))

    def mix(self, data: Kernel) -> Mixture:
        """The one line, as an operator."""
        return Mixture(data, self.weight, self.target)

    def mix_reward(self, reward: Floats) -> Floats:
        """Rewards as the plan sees them: a random action also earns a random action's reward."""
        if not self.averages_actions:
            return reward
        return np.asarray((1 - self.weight) * reward + self.weight * reward.mean(axis=-1, keepdims=True))

    def magnitude(self, counts: Counts) -> Floats:
        """Pseudo-observations that the weight amounts to for each pair, c·w / (1 - w)."""
        return weights.magnitude(counts.visits, self.weight)


def strength_of(
    name: str, strength: ArrayLike | None, planning_discount: ArrayLike | None, discount: ArrayLike | None
) -> Floats:
    """Read the strength ε of a global method, said directly or through a planning discount."""
    if (strength is None) == (planning_discount is None):
        raise InputError(f"{name} needs either strength= (between 0 and 1) or planning_discount=, and not both.")
    if strength is not None:
        return within("strength", strength, 0, 1)
    if discount is None:
        raise InputError(f"{name} with planning_discount= also needs discount=, to tell how much lower it is.")
    return weights.from_discounts(discount, planning_discount if planning_discount is not None else 0.0)


def constant(counts: Counts, strength: Floats) -> Floats:
    """The same weight for every pair, ``(..., S, A)``; ``strength`` broadcasts against the data sets."""
    batch = together(strength=strength.shape, counts=counts.batch)
    pairs = (counts.n_states, counts.n_actions)
    return np.broadcast_to(strength[..., None, None], (*batch, *pairs))


def prior_weight(
    name: str,
    counts: Counts,
    strength: ArrayLike | None,
    magnitude: ArrayLike | None,
    planning_discount: ArrayLike | None,
    discount: ArrayLike | None,
) -> Floats:
    """Dirichlet weight (Eq. 1) with one magnitude for all pairs of a data set.

    A strength ε means M = ε/(1 - ε)·c̄ with c̄ the data set's mean visits per pair: a pair with c̄ visits gets weight ε.
    """
    if magnitude is None and strength is None and planning_discount is None:
        raise InputError(
            f"{name} needs either strength= (between 0 and 1), magnitude= (pseudo-observations of each pair) or "
            "planning_discount= (at most the discount)."
        )
    if magnitude is None:
        epsilon = strength_of(name, strength, planning_discount, discount)
        together(strength=epsilon.shape, counts=counts.batch)
        M = weights.magnitude(counts.mean_visits, epsilon)
    elif strength is not None or planning_discount is not None:
        raise InputError(f"{name} takes one of strength=, magnitude= and planning_discount=, not several.")
    else:
        M = weights.read_magnitude(magnitude)
    together(magnitude=M.shape, counts=counts.batch)
    return weights.dirichlet(counts.visits, M[..., None, None])
