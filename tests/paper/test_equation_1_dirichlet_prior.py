"""Eq. 1: the posterior mean under a Dirichlet prior is (1 - ε) T_MLE + ε T_prior, with ε = Σα / (Σc + Σα)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naive
from certeq import InputError, shrink, weights
from certeq.learning.equivalence import estimate
from strategies import SEEDS, all_outcomes, counts, full_rows, random_counts, random_rows

MAGNITUDES = st.floats(1e-3, 1e3)


@given(st.integers(0, 1000), st.lists(st.floats(1e-3, 100), min_size=1, max_size=6))
def test_the_weight_is_the_priors_share_of_all_observations(visits, alpha):
    assert weights.dirichlet(visits, sum(alpha)) == pytest.approx(naive.dirichlet_weight(visits, alpha), rel=1e-12)


@given(counts(), SEEDS, MAGNITUDES)
def test_an_expert_prior_plans_with_the_posterior_mean(table, seed, magnitude):
    S, A, N = table.n_states, table.n_actions, table.n_outcomes
    target = random_rows(np.random.default_rng(seed), (S, A, S), ends=table.ended is not None)
    alpha = magnitude * full_rows(target, N)
    posterior = estimate(table, regularizer="expert_prior", target=target, magnitude=magnitude)
    rows = full_rows(posterior.transition.dense(), N)
    seen = all_outcomes(table)
    for s in range(S):
        for a in range(A):
            np.testing.assert_allclose(rows[s, a], naive.posterior_mean(seen[s, a], alpha[s, a]), atol=1e-12)


@given(counts(), MAGNITUDES)
def test_a_uniform_prior_plans_with_scipys_posterior_mean(table, magnitude):
    N = table.n_outcomes
    rows = full_rows(estimate(table, regularizer="uniform_prior", magnitude=magnitude).transition.dense(), N)
    seen = all_outcomes(table)
    for s in range(table.n_states):
        for a in range(table.n_actions):
            posterior = stats.dirichlet(seen[s, a] + magnitude / N) if N > 1 else None
            np.testing.assert_allclose(rows[s, a], posterior.mean() if posterior else 1.0, atol=1e-12)


@given(counts(), st.just(0.0) | st.floats(1e-6, 0.99))
def test_a_strength_is_the_weight_of_a_pair_with_the_mean_visits(table, strength):
    weight = shrink(table, "uniform_prior", strength=strength).weight
    M = strength / (1 - strength) * table.visits.mean()
    for place, visits in np.ndenumerate(table.visits):
        expected = naive.dirichlet_weight(visits, [M]) if visits else 1.0
        assert weight[place] == pytest.approx(expected, rel=1e-12)
    if table.visits.mean() > 0:
        assert weights.dirichlet(table.visits.mean(), M) == pytest.approx(strength, rel=1e-12)


def test_the_mean_visits_are_those_of_each_data_set_on_its_own():
    table = random_counts(1, 4, 2, batch=(3,))
    weight = shrink(table, "uniform_prior", strength=0.3).weight
    for d in range(3):
        alone = shrink(table.transitions[d], "uniform_prior", strength=0.3).weight
        np.testing.assert_array_equal(weight[d], alone)


@given(st.integers(1, 1000), MAGNITUDES)
def test_the_magnitude_of_the_weight_of_a_magnitude_is_that_magnitude(visits, magnitude):
    assert weights.magnitude(visits, weights.dirichlet(visits, magnitude)) == pytest.approx(magnitude, rel=1e-9)


@pytest.mark.parametrize("magnitude", [0, 1e-300, 3, np.inf])
def test_without_visits_the_prior_is_all_there_is_whatever_its_magnitude(magnitude):
    assert weights.dirichlet(0, magnitude) == 1


def test_a_magnitude_too_small_to_divide_by_is_quietly_no_prior():
    assert weights.dirichlet(20, 1e-310) == 0


def test_no_prior_has_no_weight_and_an_infinite_one_all_of_it():
    assert weights.dirichlet(7, 0) == 0
    assert weights.dirichlet(7, np.inf) == 1
    assert shrink(np.full((2, 1, 2), 3), "uniform_prior", strength=1).weight.tolist() == [[1], [1]]
    assert weights.magnitude(7, 1) == np.inf
    assert weights.magnitude(0, 1) == 0


@pytest.mark.parametrize("magnitude", [-1, [2, -0.5], np.nan])
def test_a_negative_magnitude_is_refused(magnitude):
    with pytest.raises(InputError, match="magnitude"):
        weights.dirichlet([1, 2], magnitude)
