"""Algorithm 2: ε*(s, a) for every pair, the rows shrunk with it, the plan, its loss."""

import numpy as np
import pytest

import naive
from certeq import Counts, loss, plan, sampling, shrink, tally
from certeq.learning.equivalence import estimate
from certeq.worlds import random_chain

DATA_SETS, S, A = 8, 4, 3
PLUG_INS = {
    "mle": lambda c: naive.epsilon_star(c / max(c.sum(), 1), [1 / S] * S, c.sum()),
    "posterior": lambda c: naive.posterior_epsilon_star(c, 0.5, [1 / S] * S),
    "unbiased": naive.hausser_strimmer,
}


@pytest.fixture(scope="module")
def worlds():
    return random_chain(n_states=S, n_actions=A, successors=3, size=DATA_SETS, discount=0.9, rng=1)


@pytest.fixture(scope="module")
def counts(worlds):
    counts = tally(sampling.uniform_pairs(worlds, 30, rng=2))
    assert (counts.visits == 0).any()
    assert (counts.visits == 1).any()
    return counts


def literal_loss(worlds, d, model, reward):
    """Plan in the regularized model by trying every policy; lose in the truth."""
    policy = naive.best_policy_by_enumeration(model, reward, worlds.discount)
    return naive.loss(worlds.transition.array[d], worlds.reward[d], worlds.discount, policy)


def each_pair(function):
    return np.array([[function(s, a) for a in range(A)] for s in range(S)])


@pytest.mark.parametrize("plug_in", PLUG_INS)
def test_losses_are_those_of_the_literal_algorithm(worlds, counts, plug_in):
    policies = plan(counts, worlds.reward, worlds.discount, regularizer="least_mse", plug_in=plug_in).policy
    found = loss(worlds.transition, worlds.reward, worlds.discount, policies)
    for d in range(DATA_SETS):
        table = counts.transitions[d]
        star = each_pair(lambda s, a, table=table: PLUG_INS[plug_in](table[s, a]))
        model = naive.mix(naive.mle(table), star, np.full(S, 1 / S))
        assert found[d] == pytest.approx(literal_loss(worlds, d, model, worlds.reward[d]), abs=1e-9)


def test_losses_of_the_epsilon_greedy_version_too(worlds, counts):
    """An unvisited action stands in as the uniform row, for itself as for the others."""
    settings = {"regularizer": "least_mse_epsilon_greedy", "pseudo_count": 0.25}
    policies = plan(counts, worlds.reward, worlds.discount, **settings).policy
    found = loss(worlds.transition, worlds.reward, worlds.discount, policies)
    for d in range(DATA_SETS):
        table, R = counts.transitions[d], worlds.reward[d]
        star = each_pair(lambda s, a, table=table: naive.epsilon_greedy_star_posterior(table[s], 0.25, a))
        model = naive.epsilon_greedy_transition(naive.mle(table), star)
        np.testing.assert_allclose(
            estimate(table, **settings).transition.dense(), model, atol=1e-12, err_msg=f"data set {d}"
        )
        expected = literal_loss(worlds, d, model, naive.epsilon_greedy_reward(R, star))
        assert found[d] == pytest.approx(expected, abs=1e-9)


def test_the_authors_grid_and_draws_only_approximate_the_closed_form():
    """They tried ε on a grid of 100 and averaged the error over 100 posterior draws at each."""
    seen, grid, rng = np.array([4, 1, 0, 2, 0]), np.linspace(0, 1, 100), np.random.default_rng(3)
    table = np.zeros((5, 1, 5), dtype=int)
    table[0, 0] = seen
    closed = shrink(table, "least_mse", pseudo_count=0.5).weight[0, 0]
    T = rng.dirichlet(seen + 0.5, size=(2000, 100))  # fresh draws for each point of the grid
    variance = (T * (1 - T)).sum(-1) / seen.sum()
    distance = ((T - 0.2) ** 2).sum(-1)
    errors = (1 - grid) ** 2 * variance + grid**2 * distance
    chosen = grid[errors.reshape(20, 100, 100).mean(axis=1).argmin(axis=-1)]
    assert chosen.mean() == pytest.approx(closed, abs=0.06)
    assert chosen.std() > 0.01
    assert grid[errors.mean(axis=0).argmin()] == pytest.approx(closed, abs=0.05)


def test_pairs_with_fewer_visits_are_regularized_more():
    """What the paper proposes, against what a planning discount does."""
    table = np.zeros((S, 1, S), dtype=int)
    table[:, 0] = np.array([1, 2, 4, 8])[:, None] * [3, 1, 0, 0]
    specific = shrink(table, "least_mse")
    assert (np.diff(specific.weight[:, 0]) < 0).all()
    implied = shrink(table, "discount", strength=0.3).magnitude(Counts(table))
    assert (np.diff(implied[:, 0]) > 0).all()
