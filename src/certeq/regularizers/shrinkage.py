"""Shrinkage: a weight for each pair and what it pulls toward. What every regularizer returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Rng, together, within
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model import weights
from certeq.model.evidence import draw_magnitudes
from certeq.model.kernel import Kernel, Mixture, one_of

LEAST, MOST = 1e-9, 1e12  # magnitudes that rows are drawn with: nothing, and certainty


@dataclass(frozen=True)
class Belief:
    """A law that rows may have: Dirichlet around ``target``, with magnitudes that have a law of their own."""

    target: Kernel
    magnitudes: Callable[..., Floats]  # (draws, rng=) -> (draws, S, A), given the data; data_set= of several
    chance: Floats  # (...): how much it is believed, given the data

    def __getitem__(self, data_set: int | Booleans) -> Belief:
        """The same of one data set of several."""
        chance = self.chance[data_set] if self.chance.ndim else self.chance
        return Belief(one_of(self.target, data_set), partial(self.magnitudes, data_set=data_set), chance)


@dataclass(frozen=True)
class WeightRule:
    """Weights that follow from one number of each data set, and are written out only where somebody looks at them.

    A strength ε is the weight of every pair or, of a prior, the weight of a pair with the data set's mean visits c̄:
    M = ε/(1 - ε)·c̄. A magnitude M is that of a prior: Eq. 1, M/(c + M).
    """

    counts: Counts
    kind: int  # weights.CONSTANT, weights.RELATIVE or weights.MAGNITUDE
    amount: Floats  # (...): a strength, or a magnitude

    def __post_init__(self) -> None:
        together(**{"magnitude" if self.kind == weights.MAGNITUDE else "strength": self.amount.shape},
                 counts=self.counts.batch)  # fmt: skip

    def magnitude(self) -> Floats:
        """The magnitude of the prior, ``(...)``."""
        return (
            self.amount if self.kind == weights.MAGNITUDE else weights.magnitude(self.counts.mean_visits, self.amount)
        )

    def weight(self) -> Floats:
        """The weights, ``(..., S, A)``."""
        if self.kind != weights.CONSTANT:
            return weights.dirichlet(self.counts.visits, self.magnitude()[..., None, None])
        batch = np.broadcast_shapes(self.amount.shape, self.counts.batch)
        return np.broadcast_to(self.amount[..., None, None], (*batch, self.counts.n_states, self.counts.n_actions))


@dataclass(frozen=True)
class Shrinkage:
    """``T_plan = (1 - weight) * T_data + weight * target``."""

    pull: Floats | WeightRule  # weights (..., S, A), in [0, 1], or what they follow from
    target: Kernel
    learned: bool  # whether the weight answers to the visits of the pair; a constant does not
    averages_actions: bool = False  # whether rewards by pair are averaged over the actions with the same weight
    details: Any = None  # why the weights are what they are, where a regularizer can tell
    beliefs: tuple[Belief, ...] = ()  # laws that the weights are an average over; none where they come from no prior

    @cached_property
    def weight(self) -> Floats:
        """The weight of each pair, ``(..., S, A)``, in [0, 1]."""
        return self.pull.weight() if isinstance(self.pull, WeightRule) else self.pull

    def at(self, pairs: Booleans, weight: float) -> Shrinkage:
        """Set the weight of some pairs."""
        return replace(self, pull=np.where(pairs, weight, self.weight))

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


def fixed(rule: WeightRule, target: Kernel) -> Belief:
    """The belief in magnitudes that somebody has said."""
    return Belief(target, partial(_same, rule), np.ones(()))


def _same(rule: WeightRule, draws: int, *, rng: Rng = None, data_set: int | None = None) -> Floats:
    said = np.clip(rule.magnitude(), LEAST, MOST)
    own = said if data_set is None or not said.ndim else said[data_set]
    return np.broadcast_to(own[..., None, None], (draws, *own.shape, rule.counts.n_states, rule.counts.n_actions))


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


def constant(counts: Counts, strength: Floats) -> WeightRule:
    """The same weight for every pair; ``strength`` broadcasts against the data sets."""
    return WeightRule(counts, weights.CONSTANT, strength)


def prior(
    name: str,
    counts: Counts,
    strength: ArrayLike | None,
    magnitude: ArrayLike | None,
    planning_discount: ArrayLike | None,
    discount: ArrayLike | None,
) -> WeightRule:
    """Dirichlet weights with one magnitude for all pairs of a data set, said directly or through a strength."""
    if magnitude is None and strength is None and planning_discount is None:
        raise InputError(
            f"{name} needs either strength= (between 0 and 1), magnitude= (pseudo-observations of each pair) or "
            "planning_discount= (at most the discount)."
        )
    if magnitude is None:
        return WeightRule(counts, weights.RELATIVE, strength_of(name, strength, planning_discount, discount))
    if strength is not None or planning_discount is not None:
        raise InputError(f"{name} takes one of strength=, magnitude= and planning_discount=, not several.")
    return WeightRule(counts, weights.MAGNITUDE, weights.read_magnitude(magnitude))
