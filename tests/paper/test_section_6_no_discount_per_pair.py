"""Sec. 6: a weight for each pair, mixed in toward one shared row, is no discount for each pair.

In the proof of Theorem 1 the mixed-in row adds γ·ε(s, a)·V̄ to a pair, V̄ being the mean value under that row. With one ε
for all pairs that is a constant and changes no plan. With a weight for each pair it differs from pair to pair.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import shrink, solve
from certeq.model.kernel import Mixture, Rows
from strategies import SEEDS, models, random_counts, random_rows


def blended(T, weight, q):
    return Mixture(Rows(T), weight, Rows(q[None, None]))


def discounted(T, weight):
    """A discount γ(1 - ε(s, a)) for each pair: the rest of each row is lost, as toward a row of zeros."""
    return Mixture(Rows(T), weight, Rows(np.zeros((1, 1, len(T)))))


@given(models(), SEEDS)
def test_the_two_differ_by_what_the_proof_adds_to_a_pair(world, seed):
    T, R, gamma = world
    random = np.random.default_rng(seed)
    weight, q = random.random(R.shape), random_rows(random, (len(T),))
    blend = solve(blended(T, weight, q), R, gamma)
    added = gamma * weight * (q @ blend.values)  # c(s, a) of the proof
    made_up = solve(discounted(T, weight), R + added, gamma)
    np.testing.assert_allclose(made_up.values, blend.values, atol=1e-8)
    np.testing.assert_allclose(made_up.advantages, blend.advantages, atol=1e-8)


@given(models(), SEEDS, st.floats(0, 1))
def test_with_one_weight_for_all_pairs_it_is_theorem_1(world, seed, weight):
    T, R, gamma = world
    q = random_rows(np.random.default_rng(seed), (len(T),))
    everywhere = np.full(R.shape, weight)
    blend, lower = (solve(m, R, gamma) for m in (blended(T, everywhere, q), discounted(T, everywhere)))
    np.testing.assert_allclose(blend.advantages, lower.advantages, atol=1e-9)


def test_with_the_papers_weights_the_plans_part():
    """ε* of random counts: often another policy, and where the policy is the same, other advantages."""
    other, apart = 0, []
    for seed in range(50):
        counts, random = random_counts(seed, 4, 2), np.random.default_rng(seed)
        found, R = shrink(counts, "least_mse"), random.random((4, 2))
        T = random_rows(random, (4, 2, 4))
        assert np.ptp(found.weight) > 0
        blend, lower = (
            solve(m, R, 0.95) for m in (blended(T, found.weight, np.full(4, 0.25)), discounted(T, found.weight))
        )
        other += not np.array_equal(blend.policy, lower.policy)
        apart.append(np.abs(blend.advantages - lower.advantages).max())
    assert other >= 10
    assert min(apart) > 0.01


def test_a_discount_for_each_pair_prefers_what_has_more_data():
    """Two actions that do the same: the blend says so, and a discount for each pair wants the better known one."""
    T, R = np.full((2, 2, 2), 0.5), np.ones((2, 2))
    weight = np.array([[0.1, 0.6], [0.1, 0.6]])
    q = np.array([0.5, 0.5])
    np.testing.assert_allclose(solve(blended(T, weight, q), R, 0.9).advantages, 0, atol=1e-12)
    lower = solve(discounted(T, weight), R, 0.9)
    assert lower.policy.tolist() == [0, 0]
    assert lower.advantages[0, 1] == pytest.approx(-0.9 * 0.5 * lower.values[0])
