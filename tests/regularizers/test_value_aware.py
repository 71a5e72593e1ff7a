"""Value-aware weights: the formula against plain loops and Monte Carlo, the fixed point, and what they look at."""

import numpy as np
import pytest
from hypothesis import given

from certeq import Counts, InputError, environment, plan, sampling, shrink, solve, tally
from certeq.model.evidence import learn_magnitudes
from certeq.model.frequencies import mle
from certeq.model.kernel import Mixture
from strategies import SEEDS, random_counts


def literal(table, values, w0):
    """The weights that answer to given values, pair by pair, from the posterior Dirichlet(c + M/N) of each row."""
    c = table.transitions if table.ended is None else np.append(table.transitions, table.ended[..., None], axis=-1)
    v = values if table.ended is None else np.append(values, 0.0)
    v = v / np.abs(v).max()
    S, A, N = c.shape
    weight = np.ones((S, A))
    for s in range(S):
        for a in range(A):
            n = c[s, a].sum()
            if n == 0:
                continue
            M = n * w0[s, a] / (1 - w0[s, a])
            alpha = c[s, a] + M / N
            total = n + M
            m = alpha / total
            variance = (m * v**2).sum() - (m @ v) ** 2
            spread = variance * total / (total + 1)  # E Var_T v
            bias = (v.mean() - m @ v) ** 2 + variance / (total + 1)  # E (q v - T v)²
            weight[s, a] = (spread / n + 1e-10 * w0[s, a]) / (spread / n + bias + 1e-10)
    return weight


@given(seed=SEEDS)
def test_the_weights_answer_to_the_values_of_their_own_plan(seed):
    table = random_counts(seed, 4, 2, ended=True)
    reward = np.random.default_rng(seed).random((4, 2))
    found = shrink(table, "value_aware", discount=0.9, reward=reward)
    w0 = learn_magnitudes(table).weight
    np.testing.assert_allclose(found.weight, literal(table, found.details.values, w0), atol=2e-9)
    if found.details.settled:
        again = solve(Mixture(mle(table), found.weight, found.target), reward, 0.9).values
        np.testing.assert_allclose(again, found.details.values, rtol=1e-3)


def test_the_moments_are_those_of_draws_from_the_posterior():
    """Monte Carlo: E Var_T V and E (qV - TV)² over Dirichlet rows give the weight that the closed form gives."""
    table = Counts(np.array([[[6, 1, 0]], [[2, 0, 2]], [[0, 0, 3]]]))
    reward = np.array([[0.0], [1.0], [3.0]])
    found = shrink(table, "value_aware", discount=0.9, reward=reward)
    w0, v = learn_magnitudes(table).weight, found.details.values
    rng = np.random.default_rng(0)
    for s in range(3):
        n = table.visits[s, 0]
        M = n * w0[s, 0] / (1 - w0[s, 0])
        T = rng.dirichlet(table.transitions[s, 0] + M / 3, size=400_000)
        noise = (T @ v**2 - (T @ v) ** 2).mean() / n
        bias = ((v.mean() - T @ v) ** 2).mean()
        assert found.weight[s, 0] == pytest.approx(noise / (noise + bias), rel=0.01)


def test_a_row_whose_outcomes_are_worth_the_same_is_left_to_evidence():
    table = Counts(np.array([[[3, 1]], [[1, 3]]]))
    found = shrink(table, "value_aware", discount=0.9, reward=np.ones((2, 1)))
    np.testing.assert_allclose(found.weight, learn_magnitudes(table).weight, atol=1e-6)


@pytest.mark.parametrize("world", ["river_swim", "loop", "stay_or_leave"])
def test_weights_and_plan_come_to_agree(world):
    truth = environment(world)
    batch = sampling.uniform_pairs(truth, 100, data_sets=50, rng=4)
    found = shrink(tally(batch), "value_aware", discount=truth.discount, reward=truth.reward)
    assert found.details.settled.mean() >= 0.9


def test_it_needs_rewards_and_only_looks_at_allowed_actions():
    table = random_counts(3, 3, 2)
    with pytest.raises(InputError, match="needs the rewards and the discount"):
        shrink(table, "value_aware")
    reward = np.array([[0.0, 5.0], [1.0, 9.0], [2.0, 0.0]])
    first = np.array([[True, False]] * 3)
    free = shrink(table, "value_aware", discount=0.9, reward=reward)
    bound = shrink(table, "value_aware", discount=0.9, reward=reward, allowed=first)
    only = plan(table, np.where(first, reward, -1e3), 0.9, regularizer="value_aware")
    assert not np.allclose(free.weight, bound.weight)
    assert (only.policy == 0).all()
