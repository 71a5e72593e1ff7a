"""The door to planning: what it finds by itself, and what it refuses, by name and place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import InputError, solve
from strategies import models, random_model

TWO = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # stay, or change places
SMALL = {"S": st.integers(1, 3), "A": st.integers(1, 3), "ends": st.booleans()}


@given(models(**SMALL))
def test_no_policy_is_better_than_the_plan(world):
    found = solve(*world)
    best = naive.best_policy_by_enumeration(*world)
    np.testing.assert_allclose(found.values, naive.exact_value_of_policy(*world, best), atol=1e-10)
    np.testing.assert_allclose(naive.exact_value_of_policy(*world, found.policy), found.values, atol=1e-10)
    assert naive.loss(*world, found.policy) == pytest.approx(0, abs=1e-10)


@given(models(ends=st.booleans(), discount=st.floats(0, 0.9)))
def test_action_values_and_advantages_are_those_of_plain_value_iteration(world):
    values, q = naive.value_iteration(*world, sweeps=250)
    found = solve(*world)
    np.testing.assert_allclose(found.action_values, q, atol=1e-10)
    np.testing.assert_allclose(found.advantages, q - values[:, None], atol=1e-10)


def test_a_masked_action_has_no_say_however_good_it_is():
    found = solve(TWO, [[0, 1e12], [1, 0]], 0.5, allowed=np.array([[True, False], [True, True]]))
    assert found.policy.tolist() == [0, 0]
    np.testing.assert_allclose(found.values, [0, 2])


def test_ties_do_not_depend_on_the_unit_of_reward():
    T, R, gamma = random_model(5, 6, 3)
    R[2, 1] = R[2, 0]
    T[2, 1] = T[2, 0]
    for unit in (1e-9, 1, 1e9):
        found = solve(T, unit * R, gamma)
        assert found.tied[2, 0] == found.tied[2, 1]
        assert found.tied.sum() == solve(T, R, gamma).tied.sum()


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_an_empty_batch_gives_an_empty_plan(engine):
    found = solve(np.zeros((0, 3, 2, 3)), np.ones((3, 2)), 0.9, engine=engine)
    assert found.policy.shape == found.values.shape == (0, 3)
    assert found.bound.shape == found.iterations.shape == (0,)
    assert found.outcome == "optimal"


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
    "axes that do not broadcast": (
        {"reward": np.ones((3, 2, 1)), "discount": [0.5, 0.9]},
        "leading axes do not broadcast",
    ),
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


@pytest.mark.parametrize("method", ["modified_policy_iteration", "value_iteration"])
def test_sweeps_follow_the_best_action_and_not_one_that_ties_with_it(method):
    """Followed, an action that is worse by half a tie would keep the residual from ever meeting the tolerance."""
    stay = np.eye(2)[:, None, :].repeat(2, axis=1)
    reward = np.array([[1 - 1e-5, 1.0], [-1e5, -1e5]])  # beside such a spread, 1e-5 is a tie
    plan = solve(stay, reward, 0.99, method=method, engine="numpy", tolerance=1e-11)
    assert plan.tied[0].all()
    assert plan.converged.all()
    assert plan.iterations.max() < 5000
    np.testing.assert_allclose(plan.values, [100, -1e7], rtol=1e-6)
