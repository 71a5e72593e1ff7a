"""Algorithm 1: the loss of the policy planned from each data set at each of the paper's strengths."""

import numpy as np
import pytest

import naive
from certeq import loss, plan, sampling, shrink, solve, tally
from certeq.worlds import loop, random_chain, river_swim

STRENGTHS = np.array(naive.VECTORS["authors_weights"])
METHODS = ("discount", "uniform_blend", "uniform_prior")
DATA_SETS = 6


@pytest.fixture(scope="module")
def worlds():
    """A small random world for each data set, so that the twins can try every policy."""
    return random_chain(n_states=4, n_actions=2, successors=3, size=DATA_SETS, discount=0.95, rng=1)


def literal_loss(world, d, batch, method, strength):
    """One turn of the inner loop, as printed."""
    T, R, gamma = world.transition.array[d], world.reward[d], world.discount
    rows = batch.data_set == d
    counts, _ = naive.tally(batch.state[rows], batch.action[rows], batch.next_state[rows], 4, 2)
    T_mle = naive.mle(counts)  # uniform where there are no data
    if method == "discount":
        policy = naive.best_policy_by_enumeration(T_mle, R, (1 - strength) * gamma)
    elif method == "uniform_blend":
        policy = naive.best_policy_by_enumeration(naive.mix(T_mle, strength, np.full(4, 0.25)), R, gamma)
    else:
        prior = strength / (1 - strength) * len(batch.state[rows]) / 8  # Σα = ε / (1 - ε) of the mean visits
        posterior = [
            [naive.posterior_mean(counts[s, a], [prior / 4] * 4) if counts[s, a].any() else [0.25] * 4 for a in (0, 1)]
            for s in range(4)
        ]
        policy = naive.best_policy_by_enumeration(np.array(posterior), R, gamma)
    return naive.loss(T, R, gamma, policy)


def losses(world, batch, method, strengths=STRENGTHS):
    """All data sets and all strengths in one call, (D, E)."""
    counts = tally(batch).transitions[:, None]
    truth, reward = world.transition.array, world.reward
    if truth.ndim == 4:
        truth, reward = truth[:, None], reward[:, None]
    policies = plan(counts, reward, world.discount, regularizer=method, strength=strengths).policy
    return loss(truth, reward, world.discount, policies)


@pytest.mark.parametrize("method", METHODS)
def test_losses_are_those_of_the_literal_algorithm(worlds, method):
    batch = sampling.uniform_pairs(worlds, 20, rng=2)
    found = losses(worlds, batch, method)
    assert found.shape == (DATA_SETS, len(STRENGTHS))
    expected = [[literal_loss(worlds, d, batch, method, e) for e in STRENGTHS] for d in range(DATA_SETS)]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found.max() > 0.01  # there was something to lose


def test_with_equal_counts_the_losses_are_identical_at_all_strengths():
    chains = random_chain(size=300, rng=3)
    batch = sampling.equal_pairs(chains, 4, rng=4)
    discount, blend, prior = (losses(chains, batch, method) for method in METHODS)
    assert discount.shape == (300, 12)
    np.testing.assert_array_equal(discount, blend)
    np.testing.assert_array_equal(discount, prior)
    assert (discount.mean(axis=0)[1:] != discount.mean(axis=0)[0]).all()  # the strength matters


@pytest.mark.parametrize("world", [river_swim(), loop()], ids=["river_swim", "loop"])
def test_with_equal_counts_the_losses_are_identical_in_the_other_worlds(world):
    batch = sampling.equal_pairs(world, 3, data_sets=100, rng=5)
    discount, blend, prior = (losses(world, batch, method) for method in METHODS)
    np.testing.assert_allclose(discount, blend, atol=1e-9)
    np.testing.assert_allclose(discount, prior, atol=1e-9)


def test_with_unequal_counts_the_prior_parts_from_the_other_two():
    chains = random_chain(size=300, rng=6)
    batch = sampling.uniform_pairs(chains, 80, rng=7)
    discount, blend, prior = (losses(chains, batch, method) for method in METHODS)
    np.testing.assert_array_equal(discount, blend)
    assert (discount[:, 0] == prior[:, 0]).all()  # strength 0 is no regularization, whoever offers it
    assert np.abs(discount - prior).max(axis=0)[1:].min() > 0


def test_at_full_strength_all_three_ignore_the_future():
    """γ_p = 0, infinite magnitude."""
    chains = random_chain(size=50, rng=8)
    batch = sampling.uniform_pairs(chains, 80, rng=9)
    shortsighted = loss(chains.transition, chains.reward, 0.99, chains.reward.argmax(axis=-1))
    for method in METHODS:
        np.testing.assert_allclose(losses(chains, batch, method, strengths=1.0)[:, 0], shortsighted, atol=1e-9)
    assert np.isinf(shrink(tally(batch), "discount", strength=1.0).magnitude(tally(batch))).any()


def test_nothing_is_lost_with_unlimited_data():
    river = river_swim()
    exact = np.round(river.transition.array * 20).astype(int)  # the rows are multiples of 1/20
    for method in METHODS:
        policy = plan(exact, river.reward, river.discount, regularizer=method, strength=0).policy
        assert policy.tolist() == solve(river.transition, river.reward, river.discount).policy.tolist()
        assert loss(river.transition, river.reward, river.discount, policy) == pytest.approx(0, abs=1e-12)
