"""Chances: ties are shared, nothing is counted twice, and what is counted is what a literal reading says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import naive
from certeq.planners.backup import tied
from certeq.questions.credible import ENOUGH, Posterior, chances, gained, leads, once, steepness
from strategies import SEEDS

EACH = 4


@given(SEEDS, st.integers(1, 4), st.booleans())
def test_leads_and_chances_are_those_that_are_counted_by_hand(seed, A, allowed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(EACH * ENOUGH + 2, 3, A)).round(int(rng.integers(3)))
    if allowed and A > 1:
        q[:, 0, 0] = -np.inf
    q[:, 2] += 5 * np.arange(A)  # one action is far ahead
    ahead = leads(q, tied(q))
    np.testing.assert_allclose(ahead, [[naive.leads(row, 1e-9) for row in each] for each in q])
    for each in (1, EACH):
        wanted = [naive.best_chances(ahead[:, s].tolist(), each, ENOUGH) for s in range(3)]
        found = chances(ahead, each)
        np.testing.assert_allclose(found, wanted)
        assert (found.sum(axis=-1) <= 1 + 1e-12).all()
        assert found[2].argmax() == A - 1


@given(SEEDS)
def test_another_order_of_actions_or_of_data_sets_changes_no_chance(seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(EACH * ENOUGH, 2, 3)).round(1)
    actions, sets = rng.permutation(3), rng.permutation(ENOUGH)
    plain = chances(leads(q, tied(q)), EACH)
    other = q.reshape(ENOUGH, EACH, 2, 3)[sets].reshape(q.shape)[..., actions]
    np.testing.assert_allclose(chances(leads(other, tied(other)), EACH), plain[..., actions])


def test_actions_that_are_all_the_same_share_the_chance():
    """Models in which nothing pays say nothing about which action is best."""
    q = np.zeros((40, 1, 4))
    np.testing.assert_allclose(chances(leads(q, tied(q)), EACH), [[0.25] * 4])
    q[:10, 0, 1] = 1.0
    np.testing.assert_allclose(chances(leads(q, tied(q)), EACH), [[0.1875, 0.4375, 0.1875, 0.1875]])


def test_what_is_not_known_is_counted_once():
    """Data sets are as far apart as the models drawn from each: pooled, the spread is √2 times what it should be."""
    rng = np.random.default_rng(1)
    values = (rng.normal(size=(20_000, 1)) + rng.normal(size=(20_000, EACH))).ravel() + 1.0
    assert values.std() == pytest.approx(np.sqrt(2), rel=0.02)
    assert once(values, EACH).std() == pytest.approx(1.0, rel=0.02)
    assert np.median(once(values, EACH)) == pytest.approx(np.median(values))
    assert gained(values, each=EACH).better == pytest.approx(norm.cdf(1.0), abs=0.01)
    assert gained(values).better == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.01)


def test_spread_of_one_kind_alone_stays_as_it_is():
    rng = np.random.default_rng(2)
    for values in (np.repeat(rng.normal(size=4000), EACH), rng.normal(size=4000 * EACH), np.zeros(80)):
        np.testing.assert_allclose(once(values, EACH).std(), values.std(), rtol=0.03)
    few = rng.normal(size=EACH * (ENOUGH - 1))
    np.testing.assert_array_equal(once(few, EACH), few)
    np.testing.assert_array_equal(once(few, 1), few)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_the_size_of_values_does_not_matter(size):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(EACH * ENOUGH, 2, 3))
    np.testing.assert_allclose(once(values * size, EACH), size * once(values, EACH), rtol=1e-12)
    q = values * size
    np.testing.assert_array_equal(chances(leads(q, tied(q)), EACH), chances(leads(values, tied(values)), EACH))


@given(SEEDS, st.booleans(), st.floats(0, 3), st.floats(0, 200))
def test_ends_are_those_that_are_found_by_hand(seed, exact, flattery, rests):
    rng = np.random.default_rng(seed)
    sets = rng.gamma(2.0, size=(30, 1)) if seed % 2 else rng.normal(size=(30, 1))
    draws = (sets + (0.1 + np.abs(sets)) * rng.normal(size=(30, EACH))).ravel()
    claimed = float(rng.normal())
    made = {"each": EACH, "flattery": flattery, "history": 0.2, "overstated": 0.1, "exact": exact, "rests": rests}
    found = Posterior(
        ("a",), draws[None, :, None], np.ones(1), np.array([claimed]), np.ones((1, 2)), np.ones(1), **made
    )
    wanted = naive.ends(draws.tolist(), EACH, claimed, flattery, 0.1 + 0.2, rests, exact)
    np.testing.assert_allclose(found.interval("a")[1:], wanted)


@given(SEEDS, st.booleans(), st.floats(0, 3), st.floats(0, 200))
def test_the_chance_of_a_gain_is_the_one_that_is_counted_by_hand(seed, exact, flattery, rests):
    rng = np.random.default_rng(seed)
    draws = rng.normal(1.0, 2.0, size=(2, 30 * EACH))
    draws[1, rng.random(30 * EACH) < 0.1 * (seed % 3)] = 0.0
    draws[0, draws[1] == 0] = 0.0  # worth the same
    made = {"each": EACH, "flattery": flattery, "history": 0.2, "overstated": 0.1, "exact": exact, "rests": rests}
    found = Posterior(("a", "b"), draws[..., None], np.ones(1), np.zeros(2), np.ones((1, 2)), np.ones(1), **made)
    wanted = naive.better((draws[0] - draws[1]).tolist(), flattery, 0.2 + 0.1, rests, exact)
    assert (found.difference("a", "b").better, found.bare("b")) == pytest.approx(wanted)
    assert found.difference("b", "a").better == pytest.approx(1 - wanted[0])


def test_draws_of_one_posterior_are_left_as_they_are():
    draws = np.random.default_rng(3).normal(size=200)
    found = Posterior(("a",), draws[None, :, None], np.ones(1), np.array([9.0]), np.ones((1, 2)), np.ones(1), rests=50)
    assert found.interval("a")[1:] == pytest.approx(np.quantile(draws, (0.05, 0.95), method="weibull"))


def test_half_of_the_variance_is_kept_where_a_value_rests_on_many_rows():
    """Data sets are as far apart as models of one of them, so that pooled draws have twice the variance."""
    rng = np.random.default_rng(4)
    draws = (rng.normal(size=(50_000, 1)) + rng.normal(size=(50_000, EACH))).ravel()
    made = {"each": EACH, "exact": True, "rests": 1e9}
    found = Posterior(("a",), draws[None, :, None], np.ones(1), np.zeros(1), np.ones((1, 2)), np.ones(1), **made)
    np.testing.assert_allclose(found.interval("a")[1:], norm.ppf([0.05, 0.95]), atol=0.03)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_only_what_is_less_certain_where_it_is_higher_reaches_farther_up(size):
    rng = np.random.default_rng(6)
    mean = rng.uniform(1, 9, size=(400, 1))
    rising, falling = (size * (mean + mean**power * rng.normal(size=(400, EACH))) for power in (0.5, -0.5))
    assert steepness(rising.ravel(), EACH) > 1.03
    assert steepness(falling.ravel(), EACH) == 1.0
    assert steepness(rising.ravel()[: EACH * (ENOUGH - 1)], EACH) == 1.0
    assert steepness(rising.ravel(), 1) == 1.0
    assert steepness(np.full(80, size), EACH) == 1.0
