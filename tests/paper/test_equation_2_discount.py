"""Eq. 2: planning with γ_p < γ is planning with γ and (1 - ε) T + ε · 0, where ε = (γ - γ_p) / γ."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
from certeq import InputError, Rows, plan, solve, weights
from strategies import SEEDS, WEIGHTS, counts, models

DISCOUNTS = st.floats(0.01, 1)


@given(DISCOUNTS, st.floats(0, 1))
def test_the_weight_is_how_much_lower_the_planning_discount_is(gamma, share):
    planning = share * gamma
    assert weights.from_discounts(gamma, planning) == pytest.approx(naive.discount_weight(gamma, planning), abs=1e-15)


@given(DISCOUNTS, WEIGHTS)
def test_weight_and_planning_discount_convert_both_ways(gamma, weight):
    planning = weights.planning_discount(gamma, weight)
    assert planning == pytest.approx((1 - weight) * gamma)
    assert weights.from_discounts(gamma, planning) == pytest.approx(weight, abs=1e-14)


@given(models(), WEIGHTS)
def test_a_mixture_with_zeros_has_the_values_of_the_lower_discount(world, weight):
    """Rows that lack as little as rounding does are refused as numbers; wrapped in `Rows`, they are meant."""
    T, R, gamma = world
    mixed = solve(Rows(naive.mix(T, weight, np.zeros_like(T))), R, gamma)
    lower = solve(T, R, (1 - weight) * gamma)
    np.testing.assert_allclose(mixed.values, lower.values, atol=1e-11)
    np.testing.assert_allclose(mixed.action_values, lower.action_values, atol=1e-11)


@given(counts(ended=st.just(False)), SEEDS, st.floats(0.01, 0.99), st.floats(0, 1))
def test_discount_regularization_of_data_plans_in_the_mle_with_the_lower_discount(table, seed, gamma, share):
    R = np.random.default_rng(seed).random(table.visits.shape)
    planning = share * gamma
    regularized = plan(table, R, gamma, regularizer="discount", planning_discount=planning)
    rows = naive.mle(table.transitions)  # uniform where there are no data, as the authors do
    policy = regularized.policy
    chosen = rows[np.arange(len(rows)), policy]
    direct = np.linalg.solve(np.eye(len(rows)) - planning * chosen, R[np.arange(len(rows)), policy])
    np.testing.assert_allclose(regularized.values, direct, atol=1e-10)
    best = solve(rows, R, planning)
    np.testing.assert_allclose(regularized.values, best.values, atol=1e-10)
    np.testing.assert_allclose(regularized.advantages, best.advantages, atol=1e-10)


@given(counts(), SEEDS)
def test_a_planning_discount_of_zero_ignores_the_future(table, seed):
    R = np.random.default_rng(seed).random(table.visits.shape)
    bandit = plan(table, R, 0.95, regularizer="discount", planning_discount=0)
    np.testing.assert_array_equal(bandit.policy, R.argmax(axis=-1))
    np.testing.assert_array_equal(bandit.values, R.max(axis=-1))


@given(models(), st.floats(0.01, 1))
def test_without_discounting_the_weight_is_the_chance_of_ending_at_each_step(world, weight):
    T, R, _ = world
    ending = solve((1 - weight) * T, R, 1.0)
    np.testing.assert_allclose(ending.values, solve(T, R, 1 - weight).values, rtol=1e-9, atol=1e-10)


def test_a_discount_of_zero_needs_no_lowering():
    assert weights.from_discounts(0, 0) == 0


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_planning_discount_above_the_discount_is_refused(gamma, planning):
    assume(planning > gamma)
    with pytest.raises(InputError, match=r"planning discount .* may not exceed"):
        weights.from_discounts(gamma, planning)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_discounts_outside_the_unit_interval_are_named(value):
    with pytest.raises(InputError, match=r"^discount must"):
        weights.from_discounts(value, 0)
    with pytest.raises(InputError, match=r"^planning_discount must"):
        weights.from_discounts(1, value)
