"""Theorem 1 without a model (Sec. 8): Q-learning with simulated uniform updates plans as Q-learning at (1 - ε)γ does.

Its mean update is that of the blended world, so in the limit its Q is that world's; by Theorem 1 the advantages are
those of the lower discount, and Q itself is larger by the constant of the proof.
"""

import numpy as np
import pytest

from certeq import Schedule, q_learning, solve
from certeq.model.kernel import Mixture, Rows
from certeq.worlds import random_chain

GAMMA, EPSILON = 0.8, 0.4
LIFE = {"steps": 200_000, "replications": 16, "step_size": Schedule(1, decay=0.75), "exploration": 1.0}


def advantages(q):
    return q - q.max(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def world():
    return random_chain(n_states=3, n_actions=2, successors=2, discount=GAMMA, rng=4)


@pytest.fixture(scope="module")
def lives(world):
    simulated = q_learning(world, variant="constant", probability=EPSILON, rng=1, **LIFE)
    shortsighted = q_learning(world, variant="standard", discount=(1 - EPSILON) * GAMMA, rng=2, **LIFE)
    return simulated, shortsighted


def test_the_limit_is_the_blended_world(world, lives):
    row = Rows(np.full((1, 1, 3), 1 / 3))
    blend = solve(Mixture(world.transition, np.full((1, 1), EPSILON), row), world.reward, GAMMA)
    np.testing.assert_allclose(lives[0].q, np.broadcast_to(blend.action_values, lives[0].q.shape), atol=0.05)


def test_advantages_are_those_of_the_lower_discount(world, lives):
    lower = solve(world.transition, world.reward, (1 - EPSILON) * GAMMA).advantages
    for lived in lives:
        assert lower.min() < -0.1  # there is something to tell apart
        np.testing.assert_allclose(advantages(lived.q), np.broadcast_to(lower, lived.q.shape), atol=0.01)


def test_values_are_not(lives):
    simulated, shortsighted = (lived.q for lived in lives)
    gap = (simulated - shortsighted).mean(axis=0)
    assert gap.min() > 1
    assert np.ptp(gap) < 0.01  # the same for every pair
