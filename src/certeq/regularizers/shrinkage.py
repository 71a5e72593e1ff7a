"""Shrinkage: a weight for each pair and what it pulls toward. What every regularizer returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Rng, together, within
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model import weights
from certeq.model.evidence import draw_magnitudes
from certeq.model.kernel import Kernel, Mixture

LEAST, MOST = 1e-9, 1e12  # magnitudes that rows are drawn with: nothing, and certainty


@dataclass(frozen=True)
class Belief:
    """A law that rows may have: Dirichlet around ``target``, with magnitudes that have a law of their own."""

    target: Kernel
    magnitudes: Callable[..., Floats]  # (draws, rng=) -> (draws, S, A), given the data
    chance: Floats  # (...): how much it is believed, given the data


@dataclass(frozen=True)
class Shrinkage:
    """``T_plan = (1 - weight) * T_data + weight * target``."""

    weight: Floats  # (..., S, A), in [0, 1]
    target: Kernel
    learned: bool  # whether the weight answers to the visits of the pair; a constant does not
    averages_actions: bool = False  # whether rewards by pair are averaged over the actions with the same weight
    details: Any = None  # why the weights are what they are, where a regularizer can tell
    beliefs: tuple[Belief, ...] = ()  # laws that the weights are an average over; none where they come from no prior

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


def by_evidence(counts: Counts, target: Kernel, chance: ArrayLike = 1.0, **law: Any) -> Belief:
    """The belief whose magnitudes the data choose, as `certeq.model.evidence` tells; ``law`` are its settings."""
    return Belief(target, partial(draw_magnitudes, counts, target=target, **law), np.asarray(chance))


def fixed(counts: Counts, target: Kernel, magnitude: Floats) -> Belief:
    """The belief in magnitudes that somebody has said, ``(...)``."""
    shape = (*counts.batch, counts.n_states, counts.n_actions)
    M = np.broadcast_to(np.clip(magnitude, LEAST, MOST)[..., None, None], (*magnitude.shape, *shape[-2:]))
    return Belief(target, partial(_same, M), np.ones(()))


def _same(magnitude: Floats, draws: int, *, rng: Rng = None) -> Floats:
    return np.broadcast_to(magnitude, (draws, *magnitude.shape))


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
) -> tuple[Floats, Floats]:
    """Dirichlet weight (Eq. 1) with one magnitude for all pairs of a data set, and that magnitude, ``(...)``.

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
    return weights.dirichlet(counts.visits, M[..., None, None]), M
