"""The laws that every world of the catalogue obeys, so that all of the library works in it."""

from functools import cache
from inspect import signature

import numpy as np
import pytest

from certeq import ENVIRONMENTS, environment, loss, plan, sampling, solve, tally

each_world = pytest.mark.parametrize("name", ENVIRONMENTS)


@cache
def world(name):
    """The world as it comes; a random one always the same."""
    return environment(name, **({"rng": 0} if "rng" in signature(ENVIRONMENTS[name]).parameters else {}))


@each_world
def test_its_rows_are_distributions_and_nobody_can_change_the_world_by_planning(name):
    mdp = world(name)
    before = mdp.transition.dense().copy(), mdp.reward.copy()
    solve(mdp.transition, mdp.reward, mdp.discount)
    np.testing.assert_array_equal(mdp.transition.dense(), before[0])
    np.testing.assert_array_equal(mdp.reward, before[1])
    assert (before[0] >= 0).all()
    np.testing.assert_allclose(before[0].sum(axis=-1), 1, atol=1e-12)


@each_world
def test_its_optimal_values_are_those_of_plain_value_iteration(name):
    mdp = world(name)
    T, R, values = mdp.transition.dense(), mdp.reward, np.zeros(mdp.n_states)
    for _ in range(150):
        q = R + 0.8 * T @ values
        values = q.max(axis=-1)
    found = solve(mdp.transition, mdp.reward, 0.8)
    np.testing.assert_allclose(found.values, values, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.action_values, q, rtol=1e-10, atol=1e-10)


@each_world
def test_the_best_policy_loses_nothing_and_a_random_one_something(name):
    mdp = world(name)
    best = solve(mdp.transition, mdp.reward, mdp.discount).policy
    random = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    assert loss(mdp.transition, mdp.reward, mdp.discount, best) == pytest.approx(0, abs=1e-10)
    assert loss(mdp.transition, mdp.reward, mdp.discount, random) > 0.01


@each_world
def test_a_great_many_data_lead_to_a_good_policy_by_any_sampler(name):
    mdp = world(name)
    S, A = mdp.n_states, mdp.n_actions
    uniform = np.full(S, 1 / S)
    for batch in (
        sampling.uniform_pairs(mdp, 400 * S * A, rng=1),
        sampling.equal_pairs(mdp, 400, rng=2),
        sampling.trajectories(mdp, 20 * S * A, 20, start=uniform, rng=3),
    ):
        policy = plan(tally(batch), mdp.reward, mdp.discount, regularizer="least_mse").policy
        scale = loss(mdp.transition, mdp.reward, mdp.discount, np.full((S, A), 1 / A))
        assert loss(mdp.transition, mdp.reward, mdp.discount, policy) < 0.1 * scale
