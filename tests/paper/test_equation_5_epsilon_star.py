"""Eq. 5: ε* = K / (K + c), K = Σ T(1 - T) / Σ (q - T)², the minimizer of Eq. 4; and its three plug-ins for T."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import naive
from certeq import shrink, weights
from certeq.model.moments import true_moments
from strategies import SEEDS, all_outcomes, counts, full_rows, random_rows

ROWS_OF_COUNTS = st.lists(st.integers(0, 20), min_size=2, max_size=8)


def one_row(seen, **settings):
    """ε* for a single pair whose outcomes were counted so: state 0 of a model where the other states were not seen."""
    table = np.zeros((len(seen), 1, len(seen)), dtype=int)
    table[0, 0] = seen
    return float(shrink(table, "least_mse", **settings).weight[0, 0])


def each_pair(table):
    return np.ndindex(table.n_states, table.n_actions)


@given(SEEDS, st.integers(1, 8), st.integers(0, 100))
def test_it_is_the_formula(seed, N, visits):
    row, target = random_rows(np.random.default_rng(seed), (2, N))
    expected = naive.epsilon_star(row, target, visits)
    assert weights.least_mse(true_moments(visits, row, target)) == pytest.approx(expected, abs=1e-12)


@given(SEEDS, st.integers(2, 8), st.integers(1, 100))
def test_it_is_where_scipy_finds_the_least_error(seed, N, visits):
    row, target = random_rows(np.random.default_rng(seed), (2, N))
    known = true_moments(visits, row, target)
    assume(known.distance + known.spread > 1e-3)  # else the error is flat
    found = minimize_scalar(lambda w: weights.mse(known, w), bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    assert weights.mse(known, weights.least_mse(known)) <= found.fun + 1e-15
    assert weights.least_mse(known) == pytest.approx(found.x, abs=1e-4)


def test_it_is_where_a_grid_finds_the_least_error():
    row, target = [0.7, 0.2, 0.1], [1 / 3] * 3
    expected = naive.epsilon_star_by_grid(row, target, 6, points=10_001)
    assert weights.least_mse(true_moments(6, row, target)) == pytest.approx(expected, abs=1e-4)


@given(SEEDS, st.integers(2, 8), st.integers(1, 100))
def test_it_has_the_papers_form(seed, N, visits):
    row = np.random.default_rng(seed).dirichlet(np.ones(N))
    K = (row * (1 - row)).sum() / ((1 / N - row) ** 2).sum()
    star = weights.least_mse(true_moments(visits, row, np.full(N, 1 / N)))
    assert star == pytest.approx(K / (K + visits), rel=1e-9)


@pytest.mark.parametrize("case", naive.VECTORS["epsilon_star"])
def test_it_agrees_with_cases_worked_by_hand(case):
    star = weights.least_mse(true_moments(case["visits"], case["row"], case["target"]))
    assert star == pytest.approx(case["weight"], abs=1e-15)


def test_a_certain_row_is_left_alone_a_uniform_row_and_an_unseen_one_are_replaced():
    uniform = np.full(4, 0.25)
    assert weights.least_mse(true_moments(3, [0, 1, 0, 0], uniform)) == 0
    assert weights.least_mse(true_moments(3, uniform, uniform)) == 1
    assert weights.least_mse(true_moments(0, [0, 1, 0, 0], uniform)) == 1


@given(counts())
def test_with_the_mle_plugged_in_it_is_the_formula_of_the_frequencies(table):
    seen, N = all_outcomes(table), table.n_outcomes
    weight = shrink(table, "least_mse", plug_in="mle").weight
    for pair in each_pair(table):
        frequencies = seen[pair] / max(seen[pair].sum(), 1)
        expected = naive.epsilon_star(frequencies, [1 / N] * N, seen[pair].sum())
        assert weight[pair] == pytest.approx(expected, abs=1e-12)


@given(counts(), st.floats(0.01, 10), SEEDS)
def test_with_the_posterior_plugged_in_it_is_the_closed_form_for_any_target(table, pseudo_count, seed):
    seen, N = all_outcomes(table), table.n_outcomes
    assume(N > 1)
    shape = (table.n_states, table.n_actions, table.n_states)
    target = random_rows(np.random.default_rng(seed), shape, ends=table.ended is not None)
    outcomes = full_rows(target, N)
    weight = shrink(table, "least_mse", plug_in="posterior", pseudo_count=pseudo_count, target=target).weight
    for pair in each_pair(table):
        expected = naive.posterior_epsilon_star(seen[pair], pseudo_count, outcomes[pair])
        assert weight[pair] == pytest.approx(expected, abs=1e-10)


@given(st.integers(1, 100), st.floats(0.01, 10))
def test_with_a_single_outcome_the_row_is_the_target_and_the_weight_1(visits, pseudo_count):
    assert shrink([[[visits]]], "least_mse", pseudo_count=pseudo_count).weight == 1


@pytest.mark.parametrize("pseudo_count", [0.1, 0.5, 2.0])
def test_the_posterior_weight_is_a_monte_carlo_minimizer(pseudo_count):
    seen = np.array(naive.VECTORS["posterior_epsilon_star"]["counts"])
    N, c, draws = len(seen), seen.sum(), 200_000
    T = np.random.default_rng(8).dirichlet(seen + pseudo_count, size=draws)
    spread, distance = (T * (1 - T)).sum(axis=1), ((T - 1 / N) ** 2).sum(axis=1)
    # The average error over draws is least at mean(V) / (mean(V) + c mean(B)); its noise, by the delta method.
    minimizer = spread.mean() / (spread.mean() + c * distance.mean())
    noise = ((1 - minimizer) * spread - minimizer * c * distance).std() / (spread + c * distance).mean() / draws**0.5
    assert abs(one_row(seen, pseudo_count=pseudo_count) - minimizer) < 4 * noise
    assert noise < 1e-3


def test_the_papers_own_sampling_leads_to_the_closed_form():
    case = naive.VECTORS["posterior_epsilon_star"]
    target = [0.1] * 10
    sampled = naive.posterior_epsilon_star_monte_carlo(case["counts"], 0.5, target, 3000, np.random.default_rng(0))
    assert one_row(case["counts"], pseudo_count=0.5) == pytest.approx(sampled, abs=0.01)


def test_the_posterior_weight_is_not_the_mean_of_the_weights():
    """The paper minimizes the average error; the average of the minimizers is another number."""
    seen = np.array([1, 1, 0, 0, 1, 0, 0, 0, 4, 0])
    T = np.random.default_rng(1).dirichlet(seen + 0.5, size=20_000)
    mean_of_weights = weights.least_mse(true_moments(seen.sum(), T, np.full(10, 0.1))).mean()
    assert abs(one_row(seen) - mean_of_weights) > 0.01


@given(ROWS_OF_COUNTS)
def test_the_unbiased_weight_is_the_hausser_strimmer_intensity(seen):
    assert one_row(seen, plug_in="unbiased") == pytest.approx(naive.hausser_strimmer(seen), abs=1e-12)


@given(counts())
def test_the_unbiased_weight_is_the_hausser_strimmer_intensity_with_endings_too(table):
    weight = shrink(table, "least_mse", plug_in="unbiased").weight
    for pair in each_pair(table):
        assert weight[pair] == pytest.approx(naive.hausser_strimmer(all_outcomes(table)[pair]), abs=1e-12)


@pytest.mark.parametrize("case", naive.VECTORS["hausser_strimmer"])
def test_both_plug_ins_agree_with_cases_worked_by_hand(case):
    assert one_row(case["counts"], plug_in="unbiased") == pytest.approx(case["intensity"], abs=1e-12)
    assert one_row(case["counts"], plug_in="mle") == pytest.approx(case["plug_in"], abs=1e-12)


@given(ROWS_OF_COUNTS)
def test_the_mle_weight_is_smaller_than_the_intensity_by_a_known_amount(seen):
    c, N = sum(seen), len(seen)
    assume(c >= 2 and len(set(seen)) > 1)
    p = np.array(seen) / c
    intensity = (1 - p @ p) / (c - 1) / ((1 / N - p) ** 2).sum()  # unclipped
    assert one_row(seen, plug_in="mle") == pytest.approx(intensity / (intensity + c / (c - 1)), abs=1e-12)


def test_a_single_visit_looks_certain_to_the_mle_and_says_nothing_to_the_others():
    assert one_row([1, 0, 0], plug_in="mle") == 0
    assert one_row([1, 0, 0], plug_in="unbiased") == 1
    assert 0 < one_row([1, 0, 0], plug_in="posterior") < 1


@given(SEEDS)
def test_to_the_unbiased_plug_in_a_single_visit_says_nothing_whatever_the_target(seed):
    rng = np.random.default_rng(seed)
    single = np.eye(4, dtype=int)[rng.integers(4, size=(4, 2))]
    assert (shrink(single, "least_mse", plug_in="unbiased", target=random_rows(rng, (4, 2, 4))).weight == 1).all()


@given(ROWS_OF_COUNTS, st.floats(0.01, 10))
def test_the_posterior_weight_is_strictly_inside_wherever_there_are_data(seen, pseudo_count):
    assume(sum(seen) >= 1)
    assert 0 < one_row(seen, pseudo_count=pseudo_count) < 1
