"""Appendix: epsilon-greedy regularization, its error, and the weight with the least error, corrected.

The printed ε* has Σ_{m≠k} (T_k - T_m)² where the square of the sum belongs: right for two actions, wrong for three.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
from certeq import evaluate, plan, shrink, weights
from certeq.data.counts import Counts
from certeq.learning.equivalence import estimate
from certeq.model.moments import action_moments, true_action_moments
from strategies import SEEDS, WEIGHTS, all_outcomes, counts, random_rows

VISITED = st.integers(2, 4)


def rows_and_visits(seed, A, N=4):
    """Rows of one state's actions, and how often each was tried, at least once."""
    rng = np.random.default_rng(seed)
    return random_rows(rng, (A, N)), rng.integers(1, 20, size=A)


def visited_counts(seed, S=3, A=3):
    rng = np.random.default_rng(seed)
    return rng.multinomial(rng.integers(1, 9, size=(S, A)), random_rows(rng, (S, A, S))), rng.random((S, A))


@given(SEEDS, st.integers(1, 4), WEIGHTS)
def test_rows_and_rewards_are_averaged_over_the_actions(seed, A, strength):
    table, R = visited_counts(seed, A=A)
    model = estimate(table, regularizer="epsilon_greedy", strength=strength)
    expected = naive.epsilon_greedy_transition(naive.mle(table), strength)
    np.testing.assert_allclose(model.transition.dense() + np.zeros_like(expected), expected, atol=1e-14)
    np.testing.assert_allclose(model.reward(R), naive.epsilon_greedy_reward(R, strength), atol=1e-14)


@given(SEEDS, st.integers(1, 4), WEIGHTS)
def test_the_plan_is_worth_what_its_policy_earns_when_actions_slip(seed, A, strength):
    """An outside oracle: the ε-greedy version of the policy, evaluated in the unregularized model."""
    table, R = visited_counts(seed, A=A)
    greedy = plan(table, R, 0.9, regularizer="epsilon_greedy", strength=strength)
    slipping = (1 - strength) * np.eye(A)[greedy.policy] + strength / A
    earned = evaluate(naive.mle(table), R, 0.9, slipping / slipping.sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(greedy.values, earned, atol=1e-10)


@given(SEEDS, VISITED, WEIGHTS)
def test_the_error_is_the_formula(seed, A, weight):
    rows, visits = rows_and_visits(seed, A)
    errors = weights.action_average_mse(true_action_moments(visits, rows), weight)
    for k in range(A):
        assert errors[k] == pytest.approx(naive.epsilon_greedy_mse(rows, visits, k, weight), abs=1e-13)


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_the_error_is_what_a_simulation_finds(weight):
    rows, visits = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]), np.array([3, 8, 5])
    known, data_sets = true_action_moments(visits, rows), 100_000
    drawn = np.random.default_rng(6).multinomial(visits, rows, size=(data_sets, 3)) / visits[:, None]
    shrunk = (1 - weight) * drawn + weight * drawn.mean(axis=1, keepdims=True)
    squared = ((shrunk - rows) ** 2).sum(axis=-1)
    error = squared.std(axis=0) / np.sqrt(data_sets)
    assert (np.abs(squared.mean(axis=0) - weights.action_average_mse(known, weight)) < 4 * error).all()
    bias = ((shrunk.mean(axis=0) - rows) ** 2).sum(axis=-1)
    np.testing.assert_allclose(bias, weights.action_average_bias_squared(known, weight), atol=2e-3)


@given(SEEDS, VISITED)
def test_the_weight_is_the_corrected_formula(seed, A):
    rows, visits = rows_and_visits(seed, A)
    star = weights.least_mse_action_average(true_action_moments(visits, rows))
    for k in range(A):
        assert star[k] == pytest.approx(naive.epsilon_greedy_star(rows, visits, k), abs=1e-9)


@given(SEEDS, VISITED)
def test_no_weight_of_a_grid_has_a_smaller_error_so_clipping_is_exact(seed, A):
    rows, visits = rows_and_visits(seed, A)
    known = true_action_moments(visits, rows)
    least = weights.action_average_mse(known, weights.least_mse_action_average(known))
    on_grid = weights.action_average_mse(known, np.linspace(0, 1, 1001)[:, None])
    assert (least <= on_grid.min(axis=0) + 1e-14).all()


@pytest.mark.parametrize("case", naive.VECTORS["epsilon_greedy_star"])
def test_cases_worked_by_hand(case):
    star = weights.least_mse_action_average(true_action_moments(case["visits"], case["rows"]))[0]
    assert star == pytest.approx(case["corrected"], abs=1e-12)
    assert abs(star - case["as_printed"]) > 0.1


@pytest.mark.parametrize("case", naive.VECTORS["epsilon_greedy_star"])
def test_with_three_actions_the_printed_weight_has_a_larger_error(case):
    known = true_action_moments(case["visits"], case["rows"])
    printed = naive.epsilon_greedy_star_printed(case["rows"], case["visits"], 0)
    corrected = weights.least_mse_action_average(known)
    assert (
        weights.action_average_mse(known, min(printed, 1))[0] > weights.action_average_mse(known, corrected)[0] + 1e-3
    )


@given(SEEDS)
def test_with_two_actions_the_printed_weight_is_right_once_clipped(seed):
    rows, visits = rows_and_visits(seed, 2)
    star = weights.least_mse_action_average(true_action_moments(visits, rows))
    for k in range(2):
        assert star[k] == pytest.approx(min(1, naive.epsilon_greedy_star_printed(rows, visits, k)), abs=1e-9)


@given(SEEDS, st.integers(2, 4), st.integers(1, 30))
def test_with_equal_visits_it_is_of_the_form_K_over_K_plus_C(seed, A, C):
    rows = random_rows(np.random.default_rng(seed), (A, 4))
    V = (rows * (1 - rows)).sum(axis=1)
    D = ((rows.mean(axis=0) - rows) ** 2).sum(axis=1)
    assume((D > 1e-6).all())
    r = (A - 1) / A
    K, K_prime = r * V / D, (r**2 * V + (V.sum() - V) / A**2) / D
    star = weights.least_mse_action_average(true_action_moments(np.full(A, C), rows))
    np.testing.assert_allclose(star, np.minimum(K / (K_prime + C), 1), atol=1e-9)


def test_an_action_that_is_the_average_already_is_replaced_for_less_variance():
    same = np.tile([0.5, 0.3, 0.2], (3, 1))
    assert weights.least_mse_action_average(true_action_moments([1, 9, 9], same)).tolist()[0] == 1


@given(counts(), st.floats(0.01, 10))
def test_with_the_posterior_plugged_in_it_is_the_closed_form(table, pseudo_count):
    assume(table.n_outcomes > 1 and table.n_actions > 1)
    seen = all_outcomes(table)
    weight = shrink(table, "least_mse_epsilon_greedy", pseudo_count=pseudo_count).weight
    for s in range(table.n_states):
        for k in range(table.n_actions):
            expected = naive.epsilon_greedy_star_posterior(seen[s], pseudo_count, k)
            assert weight[s, k] == pytest.approx(expected, abs=1e-9)


@given(counts())
def test_with_the_mle_plugged_in_an_unvisited_action_counts_as_a_known_uniform_row(table):
    N, seen = table.n_outcomes, all_outcomes(table)
    assume(N > 1)
    visits = seen.sum(axis=-1)
    frequencies = np.where(visits[..., None] > 0, seen / np.maximum(visits, 1)[..., None], 1 / N)
    weight = shrink(table, "least_mse_epsilon_greedy", plug_in="mle").weight
    for s in range(table.n_states):
        for k in range(table.n_actions):
            # Where every weight is as good, rounding may decide; then only the error must agree.
            expected = naive.epsilon_greedy_star(frequencies[s], visits[s], k)
            if visits[s, k]:
                errors = [naive.epsilon_greedy_mse(frequencies[s], visits[s], k, w) for w in (weight[s, k], expected)]
                assert errors[0] == pytest.approx(errors[1], abs=1e-12)
            else:
                assert weight[s, k] == expected == 1


def test_the_posterior_weight_is_a_monte_carlo_minimizer():
    seen, draws = np.array([[3, 1, 0, 0], [0, 2, 2, 1], [1, 0, 0, 6]]), 200_000
    A, k = 3, 1
    rng = np.random.default_rng(7)
    T = np.stack([rng.dirichlet(row + 0.5, size=draws) for row in seen], axis=1)  # (draws, A, N)
    v = (T * (1 - T)).sum(axis=-1) / seen.sum(axis=-1)
    D = ((T.mean(axis=1) - T[:, k]) ** 2).sum(axis=-1)
    r, own, others = (A - 1) / A, v[:, k].mean(), (v.sum(axis=1) - v[:, k]).mean()
    minimizer = r * own / (r**2 * own + others / A**2 + D.mean())
    table = np.zeros((4, A, 4), dtype=int)
    table[0] = seen
    found = shrink(table, "least_mse_epsilon_greedy", pseudo_count=0.5).weight[0, k]
    assert found == pytest.approx(minimizer, abs=2e-3)
    assert 0 < found < 1


@given(SEEDS, st.integers(2, 4))
def test_unbiased_moments_are_right_on_average(seed, A):
    """Exactly: the mean of the squared distance and of the variances over all data sets of two visits each."""
    rows = random_rows(np.random.default_rng(seed), (A, 2))
    truth = true_action_moments(np.full(A, 2), rows)
    mean_distance, mean_variance = 0.0, 0.0
    for ones in product(range(3), repeat=A):  # how often outcome 1 was seen
        chance = np.prod([[(1 - p) ** 2, 2 * p * (1 - p), p**2][n] for n, p in zip(ones, rows[:, 1], strict=True)])
        table = np.zeros((2, A, 2), dtype=int)
        table[:] = np.stack([2 - np.array(ones), ones], axis=1)
        found = action_moments(Counts(table), plug_in="unbiased")
        mean_distance = mean_distance + chance * found.distance[0]
        mean_variance = mean_variance + chance * found.variance[0]
    np.testing.assert_allclose(mean_distance, truth.distance, atol=1e-12)
    np.testing.assert_allclose(mean_variance, truth.variance, atol=1e-12)
