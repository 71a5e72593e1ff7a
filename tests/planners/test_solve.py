"""Planning in a known model: right against literal twins, by every method, for every shape of argument."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import InputError, solve
from certeq.model.kernel import Rows
from certeq.planners import METHODS
from strategies import SHAPES, models, random_model, random_rows

each_method = pytest.mark.parametrize("method", METHODS)
TWO = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # stay, or change places
SMALL = {"S": st.integers(1, 3), "A": st.integers(1, 3), "ends": st.booleans()}


def close(values, tolerance=1e-9):
    """What a method with the default tolerance may be off."""
    return tolerance * max(np.abs(values).max(), 1e-3) * 1.01


@given(models(**SMALL))
def test_no_policy_is_better_than_the_plan(world):
    found = solve(*world)
    best = naive.best_policy_by_enumeration(*world)
    np.testing.assert_allclose(found.values, naive.exact_value_of_policy(*world, best), atol=1e-10)
    np.testing.assert_allclose(naive.exact_value_of_policy(*world, found.policy), found.values, atol=1e-10)
    assert naive.loss(*world, found.policy) == pytest.approx(0, abs=1e-10)


@each_method
@given(models(ends=st.booleans(), discount=st.floats(0, 0.9)))
def test_every_method_finds_the_values_of_plain_value_iteration(method, world):
    values, q = naive.value_iteration(*world, sweeps=250)
    found = solve(*world, method=method)
    np.testing.assert_allclose(found.values, values, atol=close(values) + 1e-11)
    np.testing.assert_allclose(found.action_values, q, atol=close(values) + 1e-11)
    np.testing.assert_allclose(found.advantages, q - q.max(axis=1, keepdims=True), atol=2 * close(values) + 1e-11)
    assert found.outcome == "optimal"
    assert found.method == method


@given(models(discount=st.sampled_from([0.0, 0.5, 0.95, 0.99]), ends=st.booleans()))
def test_all_methods_agree(world):
    plans = [solve(*world, method=method) for method in METHODS]
    exact = plans[0]
    for other in plans[1:]:
        np.testing.assert_allclose(other.values, exact.values, atol=close(exact.values))
        regret = -np.take_along_axis(exact.advantages, other.policy[:, None], axis=1)
        assert regret.max() <= 3 * close(exact.values)


@each_method
@given(models(discount=st.just(0.0)))
def test_without_a_future_the_best_reward_is_taken(method, world):
    found = solve(*world, method=method)
    np.testing.assert_array_equal(found.policy, world.reward.argmax(axis=-1))
    np.testing.assert_array_equal(found.values, world.reward.max(axis=-1))


@each_method
@given(st.integers(0, 1000), SHAPES, SHAPES, SHAPES, SHAPES)
def test_every_argument_broadcasts(method, seed, t, r, g, m):
    rng = np.random.default_rng(seed)
    S, A = 3, 2
    T, R = random_rows(rng, (*t, S, A, S), ends=True), rng.uniform(-1, 1, (*r, S, A))
    gamma, allowed = rng.choice([0.0, 0.5, 0.9], size=g), rng.random((*m, S, A)) < 0.7
    allowed[..., 0] |= ~allowed.any(axis=-1)
    try:
        batch = np.broadcast_shapes(t, r, g, m)
    except ValueError:
        with pytest.raises(InputError, match="leading axes do not broadcast"):
            solve(T, R, gamma, allowed=allowed, method=method)
        return
    found = solve(T, R, gamma, allowed=allowed, method=method)
    assert found.policy.shape == found.values.shape == (*batch, S)
    assert found.action_values.shape == found.advantages.shape == found.tied.shape == (*batch, S, A)
    assert found.bound.shape == found.iterations.shape == found.residual.shape == found.converged.shape == batch
    parts = (
        np.broadcast_to(T, (*batch, S, A, S)),
        np.broadcast_to(R, (*batch, S, A)),
        np.broadcast_to(gamma, batch),
        np.broadcast_to(allowed, (*batch, S, A)),
    )
    for index in np.ndindex(batch):
        T1, R1, g1, m1 = (part[index] for part in parts)
        alone = solve(T1, R1, g1, allowed=m1, method=method)
        np.testing.assert_allclose(found.values[index], alone.values, atol=close(alone.values))
        np.testing.assert_array_equal(found.policy[index], alone.policy)


@each_method
@given(models(S=st.integers(2, 4), A=st.integers(2, 3), ends=st.booleans()), st.integers(0, 1000))
def test_a_masked_action_is_as_if_it_did_not_exist(method, world, seed):
    T, R, gamma = world
    allowed = np.random.default_rng(seed).random(R.shape) < 0.5
    allowed[:, -1] |= ~allowed.any(axis=1)
    found = solve(T, R, gamma, allowed=allowed, method=method)
    # In its place, a copy of an action that is allowed:
    stand_in = np.where(allowed, np.arange(R.shape[1]), allowed.argmax(axis=1)[:, None])
    lines = np.arange(len(T))[:, None]
    without = solve(T[lines, stand_in], R[lines, stand_in], gamma, method=method)
    np.testing.assert_allclose(found.values, without.values, atol=close(without.values))
    assert allowed[np.arange(len(T)), found.policy].all()
    assert (found.action_values[~allowed] == -np.inf).all()
    assert not found.tied[~allowed].any()


def test_a_masked_action_has_no_say_however_good_it_is():
    found = solve(TWO, [[0, 1e12], [1, 0]], 0.5, allowed=np.array([[True, False], [True, True]]))
    assert found.policy.tolist() == [0, 0]
    np.testing.assert_allclose(found.values, [0, 2])


@each_method
def test_the_lowest_of_tied_actions_is_taken_and_all_are_listed(method):
    ring = np.stack([np.roll(np.eye(6), 1, axis=1), np.roll(np.eye(6), -1, axis=1), np.eye(6)], axis=1)
    reward = np.zeros((6, 3))
    reward[0] = 1
    found = solve(ring, reward, 0.9, method=method)
    assert found.policy.tolist() == [2, 1, 1, 0, 0, 0]  # opposite the reward, both ways round are as good
    assert found.ties() == [(3,)]
    assert found.tied[3].tolist() == [True, True, False]


@each_method
def test_a_tie_between_different_ways_to_the_same_value_is_seen(method):
    """Ten at once, or one a step for ever at discount 0.9: no symmetry makes these equal, only the arithmetic."""
    T = np.zeros((3, 2, 3))
    T[0, 0, 1] = T[0, 1, 2] = 1
    T[1, :, 1] = 1
    found = solve(T, [[0, 0], [1, 1], [10, 10]], 0.9, method=method)
    assert found.ties() == [(0,), (1,), (2,)]
    assert found.policy.tolist() == [0, 0, 0]


@each_method
def test_where_nothing_is_ever_earned_every_action_is_tied(method):
    found = solve(TWO, np.zeros((2, 2)), 0.9, method=method)
    assert found.tied.all()
    assert found.ties() == [(0,), (1,)]
    assert found.policy.tolist() == [0, 0]


@each_method
def test_ties_of_a_batch_name_the_element(method):
    found = solve(TWO, np.array([[[0, 0.5], [1, 0]], [[1, 1], [1, 1]]]), 0.5, method=method)
    assert found.ties() == [(1, 0), (1, 1)]


def test_ties_do_not_depend_on_the_unit_of_reward():
    T, R, gamma = random_model(5, 6, 3)
    R[2, 1] = R[2, 0]
    T[2, 1] = T[2, 0]
    for unit in (1e-9, 1, 1e9):
        found = solve(T, unit * R, gamma)
        assert found.tied[2, 0] == found.tied[2, 1]
        assert found.tied.sum() == solve(T, R, gamma).tied.sum()


@each_method
def test_an_empty_batch_gives_an_empty_plan(method):
    found = solve(np.zeros((0, 3, 2, 3)), np.ones((3, 2)), 0.9, method=method)
    assert found.policy.shape == found.values.shape == (0, 3)
    assert found.bound.shape == found.iterations.shape == (0,)
    assert found.outcome == "optimal"


@pytest.mark.parametrize("axes", [(1, 1), (1, 2), (3, 1)])
def test_rows_may_be_shared_between_states_or_actions(axes):
    rng = np.random.default_rng(3)
    rows, R = random_rows(rng, (*axes, 3)), rng.random((3, 2))
    full = np.broadcast_to(rows, (3, 2, 3))
    for method in METHODS:
        shared, written = (solve(T, R, 0.9, method=method) for T in (Rows(rows), full))
        np.testing.assert_allclose(shared.values, written.values, atol=1e-8)


@pytest.mark.parametrize("shape", [(3, 1), (1, 2), (1, 1), (5, 3, 1)])
def test_rewards_may_be_shared_between_states_or_actions(shape):
    rng = np.random.default_rng(4)
    T, R = random_rows(rng, (3, 2, 3)), rng.random(shape)
    written = solve(T, np.broadcast_to(R, (*shape[:-2], 3, 2)), 0.9)
    for method in METHODS:
        np.testing.assert_allclose(solve(T, R, 0.9, method=method).values, written.values, atol=1e-8)


@given(models(S=st.just(4), A=st.just(2)))
def test_the_arguments_are_left_as_they_were(world):
    before = world.transition.copy(), world.reward.copy()
    world.transition.flags.writeable = world.reward.flags.writeable = False
    solve(*world)
    np.testing.assert_array_equal(world.transition, before[0])
    np.testing.assert_array_equal(world.reward, before[1])


BAD = {
    "a negative entry": (
        {"transition": np.array([[[1.1, -0.1]], [[0, 1.0]]])},
        r"state 0, action 0 has the entry -0\.1",
    ),
    "a row past one": ({"transition": np.array([[[0.5, 0.5]], [[0.7, 0.5]]])}, r"state 1, action 0 sums to 1\.2"),
    "a NaN row": ({"transition": np.array([[[0.5, 0.5]], [[np.nan, 0.5]]])}, "state 1, action 0 has the entry nan"),
    "not square": ({"transition": np.ones((2, 1, 3)) / 3}, "2 states but 3 next states"),
    "too few axes": ({"transition": np.ones((2, 2)) / 2}, r"need the axes \(..., states, actions, next states\)"),
    "NaN reward": ({"reward": [[0], [np.nan]]}, r"reward\[1, 0\] is nan"),
    "infinite reward": ({"reward": [[np.inf], [0]]}, r"reward\[0, 0\] is inf"),
    "reward by state only": ({"reward": [0, 1]}, r"need rewards of shape \(..., 2, 1\); got \(2,\)"),
    "wrong states": ({"reward": [[0], [1], [2]]}, r"need rewards of shape \(..., 2, 1\); got \(3, 1\)"),
    "words": ({"reward": [["a"], ["b"]]}, "reward must be an array of numbers"),
    "discount above 1": ({"discount": 1.5}, r"discount must lie between 0 and 1; discount is 1\.5"),
    "negative discount": ({"discount": [0.5, -0.1]}, r"discount\[1\] is -0\.1"),
    "NaN discount": ({"discount": np.nan}, "discount must be finite"),
    "no action": ({"allowed": np.array([[True], [False]])}, "State 1 has no allowed action"),
    "mask of numbers": ({"allowed": [[1], [1]]}, "allowed must be booleans"),
    "mask of wrong shape": ({"allowed": [True, True]}, r"booleans of shape \(..., 2, 1\)"),
    "method": ({"method": "policy_iterations"}, "Did you mean 'policy_iteration'"),
    "engine": ({"engine": "numbas"}, "Did you mean 'numba'"),
    "negative limit": ({"max_iterations": -1}, "max_iterations"),
    "no iterations": ({"max_iterations": 0}, "max_iterations"),
    "negative tolerance": ({"tolerance": -1.0, "method": "value_iteration", "max_iterations": 9}, "tolerance"),
    "NaN tolerance": ({"tolerance": np.nan, "method": "value_iteration"}, "tolerance"),
}


@pytest.mark.parametrize(("wrong", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_by_name_and_place(wrong, says):
    right = {"transition": np.full((2, 1, 2), 0.5), "reward": [[0], [1]], "discount": 0.9}
    with pytest.raises(InputError, match=says):
        solve(**(right | wrong))


def test_a_bad_row_of_a_batch_names_the_element():
    T = np.full((3, 2, 1, 2), 0.5)
    T[2, 1, 0, 0] = 0.9
    with pytest.raises(InputError, match=r"state 1, action 0 of batch element \[2\] sums to 1\.4"):
        solve(T, [[0], [1]], 0.9)
