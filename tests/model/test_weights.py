"""Weights beyond the paper's equations (see tests/paper): shapes, decisions in plain sight, and bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import Counts, InputError, shrink, weights
from certeq.model.moments import ActionMoments, Moments, action_moments
from strategies import SEEDS


def test_every_rule_is_element_by_element():
    visits, weight = np.arange(6).reshape(2, 3), np.linspace(0, 1, 4)[:, None, None]
    assert weights.dirichlet(visits, weight).shape == (4, 2, 3)
    assert weights.magnitude(visits, weight).shape == (4, 2, 3)
    assert weights.implied_magnitude(visits, 0.9, weight * 0.9).shape == (4, 2, 3)
    assert weights.implied_planning_discount(visits, 0.9, weight).shape == (4, 2, 3)
    assert weights.planning_discount([0.5, 0.9], weight[..., 0]).shape == (4, 2)
    one = weights.dirichlet(visits, weight)
    assert one[2, 1, 0] == weights.dirichlet(visits[1, 0], weight[2, 0, 0])


@given(st.integers(1, 100), st.floats(0, 1), st.floats(0, 1))
def test_more_visits_mean_less_weight_and_a_larger_prior_more(visits, share, other):
    low, high = sorted((100 * share, 100 * other))
    assert weights.dirichlet(visits, low) <= weights.dirichlet(visits, high)
    assert weights.dirichlet(visits + 1, high) <= weights.dirichlet(visits, high)


def test_a_pair_without_data_implies_no_prior_at_any_discount():
    np.testing.assert_array_equal(weights.implied_magnitude(0, 0.9, [0.0, 0.3, 0.9]), 0)


def test_the_full_weight_is_exactly_one_where_every_weight_is_as_good():
    """A certain row that is its own target; the docstring decides for 1."""
    certain = Moments(np.array(3.0), np.array(1.0), np.array(1.0), np.array(1.0))
    assert weights.least_mse(certain) == 1
    alike = ActionMoments(np.array([3.0, 3.0]), np.ones((2, 2)))
    assert weights.least_mse_action_average(alike).tolist() == [1, 1]


def test_rounding_does_not_decide_where_every_weight_is_as_good():
    """Both of these data sets say the same of action 0, with the two actions listed in either order."""
    five_and_one = Counts(np.zeros((2, 2, 2), dtype=int), [[5, 1], [1, 20]])
    swapped = Counts(np.zeros((2, 2, 2), dtype=int), [[1, 5], [20, 1]])
    one, two = (shrink(t, "least_mse_epsilon_greedy", plug_in="unbiased").weight for t in (five_and_one, swapped))
    np.testing.assert_allclose(one, two[:, ::-1], atol=1e-12)


@given(SEEDS, st.sampled_from(["mle", "posterior", "unbiased"]))
def test_a_state_with_one_action_is_its_own_average(seed, plug_in):
    rng = np.random.default_rng(seed)
    table = Counts(rng.integers(0, 5, size=(3, 1, 3)))
    weight = weights.least_mse_action_average(action_moments(table, plug_in=plug_in))
    error = weights.action_average_mse(action_moments(table, plug_in=plug_in), weight)
    plain = weights.action_average_mse(action_moments(table, plug_in=plug_in), np.zeros((3, 1)))
    np.testing.assert_allclose(error, plain, atol=1e-15)


BAD = {
    "weight above 1": (lambda: weights.magnitude(1, 1.5), r"weight must lie between 0 and 1; weight is 1\.5"),
    "weight of a batch": (lambda: weights.planning_discount(0.9, [0.5, -1]), r"weight\[1\] is -1"),
    "NaN visits": (lambda: weights.dirichlet([1, np.nan], 1), r"visits\[1\] is nan"),
    "negative visits": (lambda: weights.dirichlet([1, -1], 1), "visits"),
    "negative visits in a magnitude": (lambda: weights.magnitude(-1, 0.5), "visits"),
    "magnitude": (lambda: weights.implied_planning_discount(1, 0.9, -2), "magnitude is not negative; got -2"),
    "words": (lambda: weights.dirichlet("many", 1), "visits must be an array of numbers"),
    "a word for a magnitude": (lambda: weights.dirichlet(1, "large"), "magnitude"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, says):
    with pytest.raises(InputError, match=says):
        call()
