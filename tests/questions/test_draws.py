"""Draws from the posterior: rows and rewards follow the laws that the module says they do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from certeq import Batch, Counts, InputError, Rows, tally
from certeq.learning.equivalence import estimate
from certeq.model.believed import borrow
from certeq.model.evidence import draw_magnitudes
from certeq.model.rewards import estimate as rewards_of
from certeq.questions import draws
from certeq.questions.draws import draw_models, draw_rows
from strategies import all_outcomes, as_sparse, counts, full_rows, random_counts

CLOSE = 1e-4  # chance that a right sampler fails a test of its law; seeds are fixed


def model_of(seed=0, S=4, A=2, *, ended=True, **settings):
    return estimate(random_counts(seed, S, A, ended=ended), **settings)


def noisy_batch(seed=0, S=4, A=3, n=60, noise=1.0, spread=2.0):
    rng = np.random.default_rng(seed)
    state, action = rng.integers(S, size=n), rng.integers(A, size=n)
    means = spread * rng.standard_normal((S, A))
    reward = means[state, action] + noise * rng.standard_normal(n)
    return Batch(state, action, rng.integers(-1, S, size=n), S, A, reward=reward)


@pytest.mark.parametrize("alpha", [[0.3, 1.0, 4.5], [0.1, 0.3, 1.0], [20.0, 0.0, 3.0]])
def test_each_outcome_of_a_row_has_its_beta_law(alpha):
    rows = draw_rows(np.tile(alpha, (4000, 1)), np.random.default_rng(1))
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    for i, a in enumerate(alpha):
        if a == 0:
            assert (rows[:, i] == 0).all()
        else:
            law = stats.beta(a, sum(alpha) - a)
            assert stats.kstest(rows[:, i], law.cdf).pvalue > CLOSE


def test_rows_with_tiny_parameters_are_certain_and_in_proportion():
    alpha = np.array([1.0, 2.0, 0.0, 5.0]) * 1e-7  # every gamma variate rounds to zero
    rows = draw_rows(np.tile(alpha, (8000, 1)), np.random.default_rng(2))
    assert ((rows == 0) | (rows == 1)).all()
    often = rows.sum(axis=0)
    assert often[2] == 0
    assert stats.chisquare(often[[0, 1, 3]], 8000 * np.array([1, 2, 5]) / 8).pvalue > CLOSE


@given(counts())
def test_drawn_rows_are_probabilities_over_what_can_happen(table):
    drawn = draw_models(estimate(table), np.zeros((table.n_states, table.n_actions)), 7, rng=3)
    rows, reward = drawn.block(0)
    assert rows.shape == (7, table.n_states, table.n_actions, table.n_states)
    assert reward.shape == rows.shape[:-1]
    mass = rows.sum(axis=-1)
    assert (rows >= 0).all()
    assert (mass <= 1 + 1e-12).all()
    if table.ended is None:
        np.testing.assert_allclose(mass, 1)


def test_given_its_magnitude_the_mean_of_a_row_is_the_dirichlet_mean():
    """Rao-Blackwell: the mean of many draws against counts + M·q, averaged over the drawn M."""
    table = random_counts(5, 3, 2, ended=True)
    drawn = draw_models(estimate(table, regularizer="evidence"), np.zeros((3, 2)), 20_000, rng=4)
    rows = np.concatenate([drawn.block(b)[0] for b in drawn.blocks])
    M = drawn.magnitude[..., None]
    expected = ((all_outcomes(table) + M / 4) / (table.visits[..., None] + M))[..., :3]
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - expected.mean(axis=0)) < 5 * error + 1e-12).all()


def test_magnitudes_come_from_their_own_posterior():
    table = random_counts(6, 4, 2)
    drawn = draw_models(estimate(table, regularizer="evidence"), np.zeros((4, 2)), 3000, rng=5).magnitude
    again = draw_magnitudes(table, 3000, rng=99)
    for pair in np.ndindex(4, 2):
        assert stats.ks_2samp(drawn[:, *pair], again[:, *pair]).pvalue > CLOSE
    assert len(np.unique(drawn[:, 0, 0])) > 3


PRIORS = {
    "evidence": ({}, "uniform"),
    "uniform_prior": ({"strength": 0.3}, "uniform"),
    "discount": ({"strength": 0.3}, "uniform"),
    "epsilon_greedy": ({"strength": 0.3}, "uniform"),
    "expert_prior": ({"strength": 0.3}, "expert"),
}


@pytest.mark.parametrize("name", PRIORS)
def test_the_prior_mean_is_the_target_only_of_methods_that_have_a_prior(name):
    settings, kind = PRIORS[name]
    table = random_counts(7, 3, 2, ended=True)
    expert = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 2))[..., :3]
    settings = settings | ({"target": expert} if kind == "expert" else {})
    drawn = draw_models(estimate(table, regularizer=name, **settings), np.zeros((3, 2)), 5, rng=0)
    wanted = full_rows(expert, 4) if kind == "expert" else np.full((1, 1, 4), 0.25)
    (prior,) = drawn.priors
    np.testing.assert_allclose(np.broadcast_to(prior, wanted.shape), wanted)


def test_a_prior_that_can_end_makes_ending_an_outcome():
    table = random_counts(8, 3, 2)
    assert table.ended is None
    drawn = draw_models(estimate(table), np.zeros((3, 2)), 50, target=Rows(np.full((1, 1, 3), 0.3)))
    rows, _ = drawn.block(0)
    assert drawn.counts.shape == (3, 2, 4)
    assert (rows.sum(axis=-1) < 1).any()


def test_sparse_counts_give_the_same_draws_as_dense_ones():
    table = random_counts(9, 5, 2, ended=True)
    parts = [draw_models(estimate(each), np.ones((5, 2)), 6, rng=1).block(0) for each in (table, as_sparse(table))]
    np.testing.assert_allclose(parts[0][0], parts[1][0], rtol=1e-12)


EXPERT = np.random.default_rng(0).dirichlet(np.ones(5), size=(5, 2))
PLANNED = {  # what was planned with is the mean of what is drawn
    "uniform_prior": {"magnitude": 200.0},
    "expert_prior": {"magnitude": 3.0, "target": EXPERT},
    "evidence": {"structures": ["all", "state"], "groups": {"halves": np.arange(5)[:, None] // 3}, "odds": 2.0},
    "learned_target": {"plain_odds": 1.0, "odds": 3.0},
}


@pytest.mark.parametrize("name", PLANNED)
def test_the_mean_of_the_draws_is_the_model_that_gave_the_advice(name):
    table = random_counts(10, 5, 2)
    model = estimate(table, regularizer=name, **PLANNED[name])
    drawn = draw_models(model, np.zeros((5, 2)), 4000, rng=1)
    planned = model.transition.dense()
    rows = np.concatenate([drawn.block(b)[0] for b in drawn.blocks])
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - planned) < 5 * error + 1e-9).all()
    np.testing.assert_allclose(drawn.predicted, planned, atol=0.01)


def test_a_said_magnitude_is_never_another():
    table = random_counts(10, 5, 2)
    for said, drawn in ((200.0, 200.0), (0.0, 1e-9), (np.inf, 1e12)):
        model = estimate(table, regularizer="uniform_prior", magnitude=said)
        made = draw_models(model, np.zeros((5, 2)), 3, rng=1)
        assert (made.magnitude == drawn).all()
        assert np.isfinite(made.block(0)[0]).all()


def test_a_learned_target_is_drawn_as_often_as_it_is_believed():
    table = random_counts(10, 5, 2)
    shrinkage = estimate(table, regularizer="learned_target", plain_odds=1.0).shrinkage
    drawn = draw_models(estimate(table, regularizer="learned_target", plain_odds=1.0), np.zeros((5, 2)), 2000, rng=1)
    chance = float(shrinkage.details.probability)
    assert 0.05 < chance < 0.95
    assert stats.binomtest(int(drawn.belief.sum()), 2000, chance).pvalue > CLOSE
    found = borrow(table)
    np.testing.assert_allclose(drawn.priors[1], found.rows.dense())
    wanted = draw_magnitudes(table, 3000, rng=5, judged=found.judged, center=1.0, spread=1.5)
    for pair in np.ndindex(5, 2):
        assert stats.ks_2samp(drawn.magnitude[drawn.belief == 1][:, *pair], wanted[:, *pair]).pvalue > CLOSE


@pytest.mark.parametrize("convention", ["zero", "self_loop", "average", "uniform"])
def test_what_a_convention_stands_for_is_the_same_in_every_draw(convention):
    table = Counts(np.array([[[3, 1], [0, 0]], [[0, 2], [2, 0]]]), np.array([[1, 0], [0, 0]]))
    model = estimate(table, unvisited=convention)
    rows, _ = draw_models(model, np.zeros((2, 2)), 20, rng=1).block(0)
    np.testing.assert_allclose(rows[:, 0, 1], np.broadcast_to(model.data.dense()[0, 1], (20, 2)))
    assert len(np.unique(rows[:, 0, 0, 0])) == 20
    free, _ = draw_models(estimate(table, unvisited="exclude"), np.zeros((2, 2)), 20, rng=1).block(0)
    assert len(np.unique(free[:, 0, 1, 0])) > 1


def test_blocks_are_drawn_alike_in_any_order(monkeypatch):
    monkeypatch.setattr(draws, "BLOCK", 100)
    batch = noisy_batch()
    drawn = draw_models(estimate(tally(batch)), None, 9, rewards=rewards_of(batch), batch=batch, rng=1)
    assert len(drawn.blocks) == 9
    backward = {b: drawn.block(b) for b in reversed(drawn.blocks)}
    for b in drawn.blocks:
        for first, second in zip(drawn.block(b), backward[b], strict=True):
            np.testing.assert_array_equal(first, second)


def test_known_rewards_are_what_they_are():
    table = np.arange(8.0).reshape(4, 2)
    _, reward = draw_models(model_of(), table, 3, rng=0).block(0)
    np.testing.assert_array_equal(reward, np.broadcast_to(table, (3, 4, 2)))


def test_estimated_rewards_are_drawn_from_their_posterior():
    batch = replace(noisy_batch(n=40), next_state=np.zeros(40, int))
    drawn = draw_models(estimate(tally(batch)), None, 3000, rewards=rewards_of(batch), batch=batch, rng=2)
    reward = np.concatenate([drawn.block(b)[1] for b in drawn.blocks])
    mean, variance = drawn.reward.moments
    assert (np.abs(reward.mean(axis=0) - mean) < 5 * reward.std(axis=0) / np.sqrt(3000)).all()
    np.testing.assert_allclose(reward.var(axis=0), variance, rtol=0.25)


def test_rewards_of_going_on_and_of_ending_are_drawn_apart_and_paid_by_the_drawn_row():
    batch = noisy_batch(n=80)
    told = rewards_of(batch)
    drawn = draw_models(estimate(tally(batch)), None, 500, rewards=told, batch=batch, rng=2)
    going, ending = drawn.reward
    for law, kind in ((going, ~batch.ended), (ending, batch.ended)):
        assert law.visits.sum() == kind.sum()
        assert law.span == (batch.reward[kind].min(), batch.reward[kind].max())
    for b in drawn.blocks:
        rows, reward, paid = drawn.by_outcome(b)
        full = np.append(rows, 1 - rows.sum(axis=-1, keepdims=True), axis=-1)
        np.testing.assert_allclose(reward, (full * paid).sum(axis=-1))
        assert paid[..., :4].std(axis=-1).max() < 1e-12
        for law, part in ((going, paid[..., 0]), (ending, paid[..., 4])):
            assert part.min() >= law.span[0]
            assert part.max() <= law.span[1]


def test_rewards_by_next_state_are_earned_where_the_drawn_rows_lead():
    batch = noisy_batch(n=200, noise=0.5)
    rewards = rewards_of(batch, by_next_state=True)
    drawn = draw_models(estimate(tally(batch)), None, 4000, rewards=rewards, batch=batch, rng=2)
    law = drawn.reward
    arrived = np.where(batch.ended, 4, batch.next_state)
    for place in range(5):
        own = batch.reward[arrived == place]
        assert law.own[place, 0] == pytest.approx(own.mean())
        assert law.visits[place, 0] == len(own)
    residual = batch.reward - law.own[arrived, 0]
    assert law.within == pytest.approx((residual**2).sum() / (200 - 5))
    assert law.freedom == 195
    rows, reward = drawn.block(0)
    center = law.moments[0][:, 0]
    full = full_rows(rows, 5)
    assert np.abs(reward - full @ center).max() > 0.01  # the means themselves are drawn as well
    expected = (full @ center).mean(axis=0)
    np.testing.assert_allclose(reward.mean(axis=0), expected, atol=5 * reward.std() / np.sqrt(len(rows)))


def test_rewards_of_pairs_are_drawn_alike_without_the_rows():
    batch = noisy_batch()
    told = (estimate(tally(batch)), None, 5)
    with_rows, without = (
        draw_models(*told, rewards=rewards_of(batch), batch=given, rng=3).block(0) for given in (batch, None)
    )
    for one, other in zip(with_rows, without, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_cannot_be_drawn_is_refused_with_a_way_out(monkeypatch):
    with pytest.raises(InputError, match="one data set"):
        draw_models(estimate(random_counts(0, 3, 2, batch=(2,))), np.zeros((3, 2)), 5)
    with pytest.raises(InputError, match=r"Known rewards need the shape \(4, 2\)"):
        draw_models(model_of(), np.zeros((2, 2)), 5)
    with pytest.raises(InputError, match="draws must be"):
        draw_models(model_of(), np.zeros((4, 2)), 0)
    batch = noisy_batch()
    with pytest.raises(InputError, match="give their batch as well, or estimate rewards by pair"):
        draw_models(estimate(tally(batch)), None, 5, rewards=rewards_of(batch, by_next_state=True))
    monkeypatch.setattr(draws, "LARGEST", 10)
    with pytest.raises(InputError, match=r"32 numbers, and models of more than 10 .* fewer states"):
        draw_models(model_of(), np.zeros((4, 2)), 5)
