"""The random chain: a distribution over small worlds in which discount regularization was first seen to help.

Each pair (s, a) has a few successors, picked among all states without replacement. Their probabilities are drawn from
U[0, 1] and scaled to sum to one. Nothing else ties the states together, so "chain" is only its name. The paper draws
a new world for each data set: ``size`` draws them all at once.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats, Rng, generator, whole
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.settings import Size, leading_axes, one_of

REWARDS = ("pair", "bonus", "state")


def random_chain(
    *,
    n_states: int = 10,
    n_actions: int = 2,
    successors: int = 5,
    rewards: str = "pair",
    size: Size = None,
    discount: float = 0.99,
    rng: Rng = None,
) -> MDP:
    """Draw one random world, or with ``size`` a batch of them; the start is uniform.

    ``rewards`` says what U[0, 1] draws the reward is made of: ``"pair"``, one for each pair, as the paper tells it;
    ``"bonus"``, the same with 1 more for action 0 in state 0, as in the code of its follow-up; ``"state"``, one for
    each state whatever the action.
    """
    S, A = whole("n_states", n_states, 1), whole("n_actions", n_actions, 1)
    k = whole("successors", successors, 1, at_most=S)
    variant, batch, random = one_of("rewards", rewards, REWARDS), leading_axes(size), generator(rng)
    transition = _sparse_rows((*batch, S, A, S), k, random)
    return MDP(Rows(transition), _rewards((*batch, S, A), variant, random), discount)


def _sparse_rows(shape: tuple[int, ...], k: int, random: np.random.Generator) -> Floats:
    """Rows with exactly k successors: those whose lottery ticket is among the k lowest of their row."""
    rank = random.random(shape).argsort(axis=-1).argsort(axis=-1)
    weight = np.where(rank < k, 1 - random.random(shape), 0)  # 1 - U lies in (0, 1]: no chosen successor gets lost
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _rewards(shape: tuple[int, ...], variant: str, random: np.random.Generator) -> Floats:
    if variant == "state":
        return np.repeat(random.random((*shape[:-1], 1)), shape[-1], axis=-1)
    reward = random.random(shape)
    if variant == "bonus":
        reward[..., 0, 0] += 1
    return reward
