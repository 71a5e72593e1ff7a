"""Posterior of mean rewards: closed forms against plain Gaussian algebra, draws against closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from certeq import Batch
from certeq.model.rewards import estimate
from certeq.questions.reward_posterior import RewardPosterior, _trust, likelihood, reward_posterior
from strategies import SEEDS

FLAT = 1e5  # variance of m that is as good as a flat prior


def problem(seed, S=3, A=2):
    rng = np.random.default_rng(seed)
    visits = rng.choice([0, 0, 1, 2, 7], size=(S, A))
    visits[0, 0] = 3
    return np.where(visits > 0, rng.normal(2, 1, size=(S, A)), 0.0), visits


def prior_covariance(S, A, omega, tau):
    """Of μ, state by state: every pair shares m, pairs of a state share b."""
    state = np.repeat(np.arange(S), A)
    return FLAT + omega * (state[:, None] == state) + tau * np.eye(S * A)


def gaussian_posterior(own, visits, noise, omega, tau):
    """Mean and covariance of μ given the pairs' means, by matrix algebra."""
    S, A = own.shape
    precise = (visits / noise).ravel()
    covariance = np.linalg.inv(np.linalg.inv(prior_covariance(S, A, omega, tau)) + np.diag(precise))
    return (covariance @ (precise * own.ravel())).reshape(S, A), covariance


def law_of(own, visits, noise, omega, tau, freedom=10**9):
    """The law with known spreads."""
    return RewardPosterior(own, visits, noise, freedom, np.array([[omega, tau]]), np.ones(1))


VARIANCES = st.sampled_from([0.04, 0.5, 2.0])


@given(SEEDS, VARIANCES, VARIANCES, VARIANCES)
def test_moments_are_those_of_gaussian_algebra(seed, noise, omega, tau):
    own, visits = problem(seed)
    mean, variance = law_of(own, visits, noise, omega, tau).moments
    expected, covariance = gaussian_posterior(own, visits, noise, omega, tau)
    np.testing.assert_allclose(mean, expected, atol=1e-3)
    np.testing.assert_allclose(variance.ravel(), np.diag(covariance), rtol=1e-3)


@given(SEEDS, VARIANCES)
def test_pairs_may_be_noisier_than_others(seed, noise):
    own, visits = problem(seed)
    noisier = np.random.default_rng(seed).choice([0.1, 1.0, 3.0], size=own.shape)
    mean, variance = replace(law_of(own, visits, noise, 0.5, 2.0), noisier=noisier).moments
    expected, covariance = gaussian_posterior(own, visits, noise * noisier, 0.5, 2.0)
    np.testing.assert_allclose(mean, expected, atol=1e-3)
    np.testing.assert_allclose(variance.ravel(), np.diag(covariance), rtol=1e-3)


def test_a_pair_that_always_paid_the_same_is_taken_at_its_word():
    state, action = np.repeat([0, 0, 1], 40), np.repeat([0, 1, 0], 40)
    reward = np.where((state == 0) & (action == 1), np.where(np.arange(120) % 8, -1.0, -100.0), -1.0)
    batch = Batch(state, action, np.zeros(120, dtype=int), 2, 2, reward=reward)
    law = reward_posterior(estimate(batch), batch)
    assert law.noisier[0, 1] == 1  # it varies more than all do together, and does not count as noisier for that
    assert law.noisier[0, 0] == law.noisier[1, 0] == pytest.approx(0.1 / 39.1)
    assert law.noisier[1, 1] == 1
    drawn = law.draw(2000, np.random.default_rng(0))
    assert drawn[:, 0, 0].std() < drawn[:, 0, 1].std() / 5
    assert reward_posterior(estimate(batch), None).noisier == 1.0


@pytest.mark.parametrize("k", [0.3, 3.0])
def test_how_much_pairs_differ_in_noise_is_found_from_the_rows(k):
    rng = np.random.default_rng(0)
    freedom = np.full(4000, 5)
    square = k / rng.chisquare(k, 4000) * rng.chisquare(freedom)
    assert _trust(square, freedom) == k
    assert _trust(rng.chisquare(freedom), freedom) >= 100


@given(SEEDS, VARIANCES)
def test_spreads_are_weighed_by_the_likelihood_of_the_means(seed, noise):
    """Up to a constant, which m's flat prior leaves open."""
    own, visits = problem(seed)
    spreads = np.array([[0.1, 0.1], [2.0, 0.1], [0.1, 2.0], [1.0, 1.0]])
    found = likelihood(own, visits, np.full(4, noise), *spreads.T)
    seen = np.flatnonzero(visits.ravel())
    error = np.diag(noise / visits.ravel()[seen])
    expected = [
        stats.multivariate_normal(cov=prior_covariance(3, 2, o, t)[np.ix_(seen, seen)] + error).logpdf(
            own.ravel()[seen]
        )
        for o, t in spreads
    ]
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=1e-3)


def test_draws_have_the_posterior_mean_and_covariance():
    own, visits = problem(1)
    drawn = law_of(own, visits, 0.5, 1.0, 0.3).draw(40_000, np.random.default_rng(0)).reshape(40_000, 6)
    mean, covariance = gaussian_posterior(own, visits, 0.5, 1.0, 0.3)
    np.testing.assert_allclose(drawn.mean(axis=0), mean.ravel(), atol=5 * drawn.std() / 200)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.05)


def test_a_pair_that_is_left_to_itself_is_students_t():
    own, visits = np.array([[1.0, -2.0]]), np.array([[3, 5]])
    drawn = law_of(own, visits, 0.8, 1.0, 1e12, freedom=6).draw(4000, np.random.default_rng(1))
    for a in range(2):
        t = stats.t(8, own[0, a], np.sqrt(0.8 / visits[0, a]))
        assert stats.kstest(drawn[:, 0, a], t.cdf).pvalue > 1e-3


def simulated(seed, S, A, n, omega, tau, noise):
    rng = np.random.default_rng(seed)
    mean = 3 + omega * rng.normal(size=(S, 1)) + tau * rng.normal(size=(S, A))
    state, action = rng.integers(S, size=n), rng.integers(A, size=n)
    reward = mean[state, action] + noise * rng.normal(size=n)
    return mean, Batch(state, action, np.zeros(n, int), S, A, reward=reward)


@pytest.mark.parametrize(("omega", "tau"), [(2.0, 0.5), (0.3, 1.5)])
def test_the_spreads_are_found_when_there_are_many_states(omega, tau):
    _, batch = simulated(0, 150, 4, 3000, omega, tau, 1.0)
    law = reward_posterior(estimate(batch), batch)
    found = np.sqrt(law.spreads.T @ law.chance)
    np.testing.assert_allclose(found, [omega, tau], rtol=0.25)


def test_intervals_hold_the_true_means_as_often_as_they_say():
    """Coverage over pairs with and without rows, and of the pair that looks best, which is where luck gathers."""
    inside, lucky, raw = [], [], []
    for seed in range(150):
        mean, batch = simulated(seed, 6, 3, 40, 0.5, 0.7, 1.0)
        rewards = estimate(batch)
        drawn = reward_posterior(rewards, batch).draw(300, np.random.default_rng(seed))
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        held = (low <= mean) & (mean <= high)
        best = np.unravel_index(np.nanargmax(rewards.raw), mean.shape)
        inside.append(held.mean())
        lucky.append(held[best])
        raw.append(rewards.raw[best] - mean[best])
    assert np.mean(raw) > 0.5  # its own mean flatters it
    assert np.mean(inside) == pytest.approx(0.9, abs=0.02)
    assert np.mean(lucky) > 0.8


def test_rewards_without_noise_are_not_in_doubt_where_they_were_seen():
    batch = Batch([0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], 2, 2, reward=np.array([1.0, 1.0, 2.0, 2.0]))
    drawn = reward_posterior(estimate(batch), batch).draw(50, np.random.default_rng(0))
    np.testing.assert_allclose(drawn[:, :, 0], np.broadcast_to([1.0, 2.0], (50, 2)))
    assert (drawn[:, :, 1].std(axis=0) > 0.1).all()


def test_where_all_rewards_are_one_so_is_every_draw():
    for value in (0.0, -5.0):
        batch = Batch([0, 0, 1], [0, 0, 0], [1, 1, 0], 2, 2, reward=np.full(3, value))
        drawn = reward_posterior(estimate(batch), batch).draw(50, np.random.default_rng(0))
        np.testing.assert_allclose(drawn, value, atol=1e-6)


def test_where_no_pair_has_two_rows_all_variance_counts_as_noise():
    batch = Batch([0, 1, 2], [0, 1, 0], [0, 0, 0], 3, 2, reward=np.array([1.0, 2.0, 6.0]))
    law = reward_posterior(estimate(batch), batch)
    assert law.within == pytest.approx(np.var([1.0, 2.0, 6.0]))
    assert law.freedom == 0
    assert (law.variance > 0.5).all()


def test_one_row_alone_says_what_it_earned_and_no_more():
    batch = Batch([0], [0], [0], 2, 2, reward=np.array([3.0]))
    np.testing.assert_allclose(
        reward_posterior(estimate(batch), batch).draw(5, np.random.default_rng(0)), 3.0, atol=1e-6
    )


def test_the_unit_of_the_rewards_does_not_matter():
    _, batch = simulated(3, 4, 2, 30, 1.0, 1.0, 1.0)
    plain = reward_posterior(estimate(batch), batch).draw(20, np.random.default_rng(0))
    scaled = replace(batch, reward=1e6 * batch.reward + 7)
    large = reward_posterior(estimate(scaled), scaled).draw(20, np.random.default_rng(0))
    np.testing.assert_allclose(large, 1e6 * plain + 7, rtol=1e-6)
