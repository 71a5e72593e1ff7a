"""Planning a fixed number of decisions ahead is as many backups of value iteration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import InputError, solve
from certeq.planners import solve_finite
from strategies import SEEDS, models, random_model


@given(models(ends=st.booleans(), discount=st.floats(0, 1)), st.integers(1, 6))
def test_each_decision_is_a_backup_of_what_follows(world, horizon):
    found = solve_finite(*world, horizon)
    assert found.horizon == horizon
    for left in range(1, horizon + 1):
        values, q = naive.value_iteration(*world, sweeps=left)
        np.testing.assert_allclose(found.values[horizon - left], values, atol=1e-12)
        np.testing.assert_allclose(found.action_values[horizon - left], q, atol=1e-12)
    at_best = np.take_along_axis(found.advantages, found.policy[..., None], axis=-1)
    np.testing.assert_allclose(at_best, 0, atol=1e-9)


def test_a_batch_is_a_loop():
    T, R, gamma = random_model(0, 4, 2, batch=(2, 3))
    together = solve_finite(T, R, gamma, 3)
    for index in np.ndindex(2, 3):
        alone = solve_finite(T[index], R[index], gamma, 3)
        np.testing.assert_allclose(together.values[:, *index], alone.values, atol=1e-14)


def test_masked_actions_are_not_planned_with():
    T, R, gamma = random_model(1, 3, 2)
    allowed = np.array([[True, False]] * 3)
    found = solve_finite(T, R, gamma, 4, allowed=allowed)
    np.testing.assert_allclose(found.values, solve_finite(T[:, :1], R[:, :1], gamma, 4).values)
    assert (found.policy == 0).all()


@pytest.mark.parametrize("horizon", [0, -1, 1.5])
def test_a_horizon_is_a_whole_number_of_decisions(horizon):
    with pytest.raises(InputError, match="horizon"):
        solve_finite(*random_model(0, 3, 2), horizon)


def by_hand(T, R, gamma, horizon, allowed):
    """Backward induction with plain loops; the first of the best actions, at every decision."""
    S, A = len(R), len(R[0])
    values, policy = [0.0] * S, []
    for _ in range(horizon):
        q = [[R[s][a] + gamma * sum(T[s][a][n] * values[n] for n in range(S)) for a in range(A)] for s in range(S)]
        choices = [[a for a in range(A) if allowed[s][a]] for s in range(S)]
        policy.insert(0, [max(choices[s], key=lambda a, s=s: q[s][a]) for s in range(S)])
        values = [q[s][policy[0][s]] for s in range(S)]
    return policy, values


@given(models(ends=st.booleans(), discount=st.floats(0, 1)), st.integers(1, 5), SEEDS)
def test_it_is_backward_induction_by_hand(world, horizon, seed):
    allowed = np.random.default_rng(seed).random(world.reward.shape) < 0.6
    allowed[:, 0] |= ~allowed.any(axis=1)
    found = solve_finite(*world, horizon, allowed=allowed)
    policy, values = by_hand(world.transition.tolist(), world.reward.tolist(), world.discount, horizon, allowed)
    np.testing.assert_allclose(found.values[0], values, atol=1e-12)
    best = np.take_along_axis(found.action_values, np.array(policy)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(best, found.values, atol=1e-9)
    assert np.isneginf(found.action_values[:, ~allowed]).all()
    assert allowed[np.arange(len(allowed)), found.policy].all()


def test_one_decision_takes_the_largest_reward():
    T, R, gamma = random_model(2, 5, 3)
    found = solve_finite(T, R, gamma, 1)
    np.testing.assert_array_equal(found.policy, [R.argmax(axis=1)])
    np.testing.assert_allclose(found.values, [R.max(axis=1)])


def test_without_discounting_the_decisions_add_up_even_where_nothing_ends():
    stay = np.eye(2)[:, None, :]
    found = solve_finite(stay, [[1.0], [-2.0]], 1.0, 7)
    np.testing.assert_allclose(found.values[:, 0], [7, 6, 5, 4, 3, 2, 1])
    np.testing.assert_allclose(found.values[0], [7, -14])


def test_a_long_horizon_begins_like_planning_for_ever():
    T, R, gamma = random_model(3, 6, 3, discount=0.8)
    forever, found = solve(T, R, gamma), solve_finite(T, R, gamma, 150)
    np.testing.assert_array_equal(found.policy[0], forever.policy)
    np.testing.assert_allclose(found.values[0], forever.values, atol=1e-9)


def test_the_last_decision_may_differ_from_the_first():
    """Invest while there is time, cash in at the end."""
    T = [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]
    R = [[-1.0, 0.0], [0.0, 10.0]]
    assert solve_finite(T, R, 1.0, 3).policy[:, 0].tolist() == [0, 0, 1]


def test_advice_can_be_withdrawn_for_every_decision():
    found = solve_finite(*random_model(0, 3, 2), 2).without_advice(np.array([False, True, False]))
    assert (found.policy[:, 1] == -1).all()
    assert (found.policy[:, [0, 2]] >= 0).all()


def test_rows_that_are_no_distributions_are_refused():
    with pytest.raises(InputError):
        solve_finite([[[1.5, 0]], [[0, 1]]], [[0.0], [0.0]], 0.9, 2)
    with pytest.raises(InputError, match="discount"):
        solve_finite(*random_model(0, 3, 2)[:2], 1.5, 2)
