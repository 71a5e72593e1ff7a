"""Eq. 3: a planning discount implies a prior of magnitude Σα = c (γ - γ_p) / γ_p: larger where there are more data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import plan, solve, weights
from certeq.model.kernel import Mixture, Rows
from strategies import SEEDS, random_rows

FIGURE = naive.VECTORS["implied_prior_figure"]
SHARES = st.floats(0, 1)


@given(st.integers(0, 1000), st.floats(0.01, 1), st.floats(0.001, 1))
def test_it_is_the_formula(visits, gamma, share):
    expected = naive.implied_magnitude(visits, gamma, share * gamma)
    assert weights.implied_magnitude(visits, gamma, share * gamma) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("planning", "alpha"), FIGURE["alpha_per_state"].items())
def test_it_draws_the_papers_figure(planning, alpha):
    magnitude = weights.implied_magnitude(FIGURE["visits"], FIGURE["gamma"], planning)
    assert magnitude / FIGURE["states"] == pytest.approx(alpha, abs=1e-12)


def test_ignoring_the_future_implies_infinite_priors_wherever_there_are_data():
    magnitude = weights.implied_magnitude([0, 1, 20], 0.99, 0)
    assert magnitude.tolist() == [0, np.inf, np.inf]
    assert magnitude.tolist() == [naive.implied_magnitude(c, 0.99, 0) for c in (0, 1, 20)]


@given(st.integers(1, 1000), st.floats(0.01, 1), SHARES)
def test_twice_the_data_imply_twice_the_prior(visits, gamma, share):
    once, twice = weights.implied_magnitude([visits, 2 * visits], gamma, share * gamma)
    assert twice == 2 * once  # infinity included


@given(st.integers(1, 1000), st.floats(0.01, 1), SHARES)
def test_the_implied_prior_has_the_weight_of_the_discount(visits, gamma, share):
    magnitude = weights.implied_magnitude(visits, gamma, share * gamma)
    weight = weights.from_discounts(gamma, share * gamma)
    assert weights.dirichlet(visits, magnitude) == pytest.approx(weight, abs=1e-12)


@given(st.integers(1, 1000), st.floats(0.01, 1), SHARES)
def test_the_implied_planning_discount_undoes_it(visits, gamma, share):
    magnitude = weights.implied_magnitude(visits, gamma, share * gamma)
    assert weights.implied_planning_discount(visits, gamma, magnitude) == pytest.approx(share * gamma, abs=1e-12)


@given(SEEDS, st.floats(0.1, 0.99), SHARES)
def test_the_implied_priors_lead_to_the_plan_of_the_discount(seed, gamma, share):
    """However unevenly the pairs are visited, and whatever row the priors have in common."""
    rng = np.random.default_rng(seed)
    visits = rng.integers(1, 50, size=(4, 3))
    counts = rng.multinomial(visits, random_rows(rng, (4, 3, 4)))
    reward, row = rng.random((4, 3)), Rows(random_rows(rng, (1, 1, 4)))
    weight = weights.dirichlet(visits, weights.implied_magnitude(visits, gamma, share * gamma))
    prior = solve(Mixture(Rows(counts / visits[..., None]), weight, row), reward, gamma)
    lower = plan(counts, reward, gamma, regularizer="discount", planning_discount=share * gamma)
    np.testing.assert_allclose(prior.advantages, lower.advantages, atol=1e-10)
