"""Theorem 1: a lower discount (1 - ε)γ and a blend (1 - ε)T + εq, any row q shared by all pairs, have the same plan.

Shown on advantages, which say more than policies: every action's distance from the best is the same. The theorem needs
every row to be blended. Where ending is an absorbing state worth 0 that nobody blends, it does not hold.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import Counts, plan, solve
from certeq.model.kernel import Mixture, Rows
from certeq.worlds import river_swim
from strategies import SEEDS, WEIGHTS, counts, models, random_rows

GAMMA, WEIGHT = 0.99, 0.5  # of the example at the end
MAP = naive.VECTORS["heat_map"]


@given(models(), WEIGHTS, SEEDS, st.booleans())
def test_advantages_are_those_of_the_lower_discount_for_any_shared_row(world, weight, seed, ends):
    T, R, gamma = world
    q = random_rows(np.random.default_rng(seed), (1, 1, len(T)), ends=ends)  # the row itself may end
    blend = solve(Mixture(Rows(T), np.full((1, 1), weight), Rows(q)), R, gamma)
    lower = solve(T, R, (1 - weight) * gamma)
    np.testing.assert_allclose(blend.advantages, lower.advantages, atol=1e-10)


@given(models(S=st.integers(2, 3), A=st.integers(1, 3)), WEIGHTS, SEEDS)
def test_the_twins_of_the_planners_say_the_same(world, weight, seed):
    T, R, gamma = world
    q = random_rows(np.random.default_rng(seed), (1, 1, len(T)))
    blended = naive.mix(T, weight, q)
    policy = naive.best_policy_by_enumeration(blended, R, gamma)
    # Optimal in the blend, so without loss at the lower discount:
    assert naive.loss(T, R, (1 - weight) * gamma, policy) == pytest.approx(0, abs=1e-7)
    values = naive.exact_value_of_policy(blended, R, gamma, policy)
    np.testing.assert_allclose(solve(blended, R, gamma).values, values, atol=1e-8)


@given(models(), WEIGHTS, SEEDS)
def test_values_differ_by_the_constant_of_the_proof(world, weight, seed):
    T, R, gamma = world
    q = random_rows(np.random.default_rng(seed), (1, 1, len(T)))
    blend = solve(naive.mix(T, weight, q), R, gamma).values
    lower = solve(T, R, (1 - weight) * gamma).values
    constant = gamma * weight * (q[0, 0] @ blend) / (1 - (1 - weight) * gamma)
    np.testing.assert_allclose(blend, lower + constant, rtol=1e-9, atol=1e-9)


@given(counts(ended=st.just(False)), SEEDS, WEIGHTS, st.floats(0, 0.99))
def test_the_regularizers_of_data_have_the_same_advantages(table, seed, strength, gamma):
    R = np.random.default_rng(seed).random(table.visits.shape)
    lower, blend = (
        plan(table, R, gamma, regularizer=name, strength=strength).advantages for name in ("discount", "uniform_blend")
    )
    np.testing.assert_allclose(lower, blend, atol=1e-10)


@given(counts(ended=st.just(False)), SEEDS, WEIGHTS, st.floats(0, 0.99))
def test_a_blend_with_any_row_of_the_users_has_them_too(table, seed, strength, gamma):
    random = np.random.default_rng(seed)
    R, q = random.random(table.visits.shape), random_rows(random, (table.n_states,))
    lower = plan(table, R, gamma, regularizer="discount", strength=strength)
    blend = plan(table, R, gamma, regularizer="uniform_blend", row=q, strength=strength)
    np.testing.assert_allclose(lower.advantages, blend.advantages, atol=1e-10)


@given(SEEDS, st.integers(1, 9), WEIGHTS, st.floats(0, 0.99))
def test_with_equal_counts_a_uniform_prior_has_them_too(seed, each, strength, gamma):
    rng = np.random.default_rng(seed)
    equal, R = rng.multinomial(each, random_rows(rng, (4, 2, 4))), rng.random((4, 2))
    lower, prior = (
        plan(equal, R, gamma, regularizer=name, strength=strength).advantages for name in ("discount", "uniform_prior")
    )
    np.testing.assert_allclose(lower, prior, atol=1e-10)


def test_with_unequal_counts_a_uniform_prior_has_others():
    """Otherwise the tests above could not tell the two apart."""
    rng = np.random.default_rng(0)
    uneven, R = rng.multinomial(rng.integers(1, 20, size=(4, 2)), random_rows(rng, (4, 2, 4))), rng.random((4, 2))
    lower, prior = (
        plan(uneven, R, 0.9, regularizer=name, strength=0.5).advantages for name in ("discount", "uniform_prior")
    )
    assert np.abs(lower - prior).max() > 0.01


def test_a_target_that_differs_between_pairs_changes_the_plan():
    T, R = naive.river_swim()
    left, right = np.eye(6)[[0]], np.eye(6)[[5]]
    torn = np.stack([np.repeat(right, 6, axis=0), np.repeat(left, 6, axis=0)], axis=1)
    blend = solve(naive.mix(T, 0.5, torn), R, 0.999)
    lower = solve(T, R, 0.4995)
    assert (blend.policy != lower.policy).any()


def test_river_swim_has_the_papers_heat_map():
    T, R, gamma = river_swim().transition.array, river_swim().reward, MAP["gamma"]
    lower = solve(T, R, MAP["planning_discount"])
    blend = solve(naive.mix(T, MAP["weight"], np.full(6, 1 / 6)), R, gamma)
    authors = solve(naive.mix(T, MAP["weight"], np.full(6, MAP["authors_target_cell"])), R, gamma)
    for found, values in ((lower, "lower_discount"), (blend, "uniform_blend"), (authors, "authors_blend")):
        assert found.policy.tolist() == MAP["optimal_policy"]
        digits = 5e-4 if values == "uniform_blend" else 5e-6
        np.testing.assert_allclose(found.values, MAP[f"value_{values}"], atol=digits * 1.001)


# Its limit. In state 0 one may stop (reward 1, and on to state 1, which ends the episode) or go on (reward 0.4, stay).
# A short horizon stops: 1 > 0.4 / (1 - 0.495). State 1 can be written as a state that loops to itself without reward.
STOP, GO = 0, 1
LOOPING = np.zeros((2, 2, 2))
LOOPING[0, STOP, 1] = LOOPING[0, GO, 0] = LOOPING[1, :, 1] = 1
PAY = np.array([[1, 0.4], [0, 0]])
UNIFORM = np.full((1, 1, 2), 0.5)


def test_it_holds_when_the_terminal_rows_are_regularized_too():
    lower = solve(LOOPING, PAY, (1 - WEIGHT) * GAMMA)
    blend = solve(naive.mix(LOOPING, WEIGHT, UNIFORM), PAY, GAMMA)
    assert lower.policy[0] == blend.policy[0] == STOP
    np.testing.assert_allclose(blend.advantages, lower.advantages, atol=1e-12)


def test_it_fails_when_the_terminal_rows_stay_absorbing_and_worth_nothing():
    absorbing = naive.mix(LOOPING, np.array([[WEIGHT, WEIGHT], [0, 0]]), UNIFORM)
    lower, blend = solve(LOOPING, PAY, (1 - WEIGHT) * GAMMA), solve(absorbing, PAY, GAMMA)
    assert lower.policy[0] == STOP
    assert blend.policy[0] == GO
    assert blend.values[1] == 0


def test_it_fails_in_the_same_way_when_ending_is_missing_mass():
    """Data with endings say so by rows that lack mass, and nothing is blended into what lies beyond the end."""
    data = Counts([[[0], [8]]], [[8, 0]])  # stopped eight times and always ended, went on eight times and always stayed
    lower, blend = (
        plan(data, PAY[:1], GAMMA, regularizer=name, strength=WEIGHT) for name in ("discount", "uniform_blend")
    )
    assert lower.policy.tolist() == [STOP]
    assert blend.policy.tolist() == [GO]
