"""Draws that are not written out: rows have the moments of their Dirichlet laws, and endings the very law."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy import stats

import naive
from certeq.learning.equivalence import estimate
from certeq.model.kernel import Mixture, Operator, Rows, SparseRows
from certeq.questions import sparse_draws
from certeq.questions.draws import draw_rows
from certeq.questions.sparse_draws import Chooser, PriorMean, draw_sparsely, unwritten
from strategies import all_outcomes, as_sparse, counts, random_counts, random_rows

CLOSE = 1e-4  # chance that a right sampler fails a test of its law; seeds are fixed
S, A = 5, 2
COUNTS = random_counts(3, S, A, ended=True)
TABLE = all_outcomes(COUNTS)
EXPERT = np.random.default_rng(0).dirichlet(np.full(S + 1, 0.7), size=(S, A))
LAWS = {  # what is believed, with its magnitude and the mean over all outcomes
    "sticks": ("uniform_prior", {"magnitude": 0.4}, 0.4, np.full((S, A, S + 1), 1 / (S + 1))),
    "expert": ("expert_prior", {"magnitude": 3.0, "target": EXPERT[..., :S]}, 3.0, EXPERT),
    "many": ("uniform_prior", {"magnitude": 40.0}, 40.0, np.full((S, A, S + 1), 1 / (S + 1))),
}


def made(name, draws, **more):
    regularizer, settings, _, _ = LAWS[name]
    model = estimate(as_sparse(COUNTS), regularizer=regularizer, **settings)
    return draw_sparsely(model, np.zeros((S, A)), draws, rng=1, **more)


def outcomes(drawn, number):
    """One drawn model over all outcomes, ``(S, A, S + 1)``."""
    rows = drawn.draw(number)[0].dense()
    return np.concatenate([rows, 1 - rows.sum(axis=-1, keepdims=True)], axis=-1)


@pytest.mark.parametrize("name", LAWS)
def test_rows_have_the_means_and_covariances_of_their_dirichlet_laws(name):
    drawn, (_, _, M, q) = made(name, 4000), LAWS[name]
    rows = np.stack([outcomes(drawn, i) for i in range(4000)])
    alpha = TABLE + M * q
    mean = alpha / alpha.sum(axis=-1, keepdims=True)
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - mean) < 5 * error + 1e-12).all()
    apart = rows - mean
    product = apart[..., :, None] * apart[..., None, :]
    wanted = (np.eye(S + 1) * mean[..., None] - mean[..., :, None] * mean[..., None, :]) / (
        alpha.sum(axis=-1)[..., None, None] + 1
    )
    error = product.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(product.mean(axis=0) - wanted) < 6 * error + 1e-12).all()


@pytest.mark.parametrize("name", LAWS)
def test_ending_has_its_beta_law_and_values_hardly_differ_from_those_of_dirichlet_rows(name):
    drawn, (_, _, M, q) = made(name, 3000), LAWS[name]
    rows = np.stack([outcomes(drawn, i) for i in range(3000)])
    alpha, value = TABLE + M * q, np.array([0.0, 3.0, -1.0, 2.0, 7.0, 0.5])
    exact = draw_rows(np.broadcast_to(alpha, rows.shape), np.random.default_rng(2))
    for pair in np.ndindex(S, A):
        ends = (np.maximum(each[:, *pair, -1], 1e-12) for each in (rows, exact))  # below, there is only rounding
        assert stats.ks_2samp(*ends).pvalue > CLOSE
        assert stats.ks_2samp(rows[:, *pair] @ value, exact[:, *pair] @ value).statistic < 0.06


@pytest.mark.parametrize("name", LAWS)
def test_rows_are_those_of_the_literal_twin(name):
    drawn, (_, _, M, q) = made(name, 1500), LAWS[name]
    rows = np.stack([outcomes(drawn, i) for i in range(1500)])
    random, value = np.random.default_rng(5), np.arange(S + 1.0) ** 2
    how = sparse_draws.LEFT, sparse_draws.SMOOTH, sparse_draws.OUTCOMES
    for pair in [(0, 0), (2, 1), (4, 0)]:
        twin = [naive.stick_row(TABLE[pair], M, q[pair], random, *how) @ value for _ in range(1500)]
        assert stats.ks_2samp(rows[:, *pair] @ value, twin).pvalue > CLOSE


def test_in_states_without_advice_nothing_is_left_to_the_target():
    averaged = np.arange(S) == 1
    drawn = made("many", 200, averaged=averaged)
    models = [drawn.draw(i)[0] for i in range(200)]
    for rows in models:
        assert isinstance(rows, Mixture)
        assert (rows.weight[1] == 0).all()
        assert (rows.weight[~averaged] > 0).all()
    found = np.mean([rows.dense()[1] for rows in models], axis=0)
    alpha = (TABLE + 40 / (S + 1))[1]
    np.testing.assert_allclose(found, (alpha / alpha.sum(axis=-1, keepdims=True))[:, :S], atol=0.06)


def test_rows_that_nobody_asks_for_keep_their_mean():
    wanted = np.zeros((S, A), dtype=bool)
    drawn = made("expert", 3000, wanted=wanted)
    assert all(drawn.draw(0)[0].data.matrix.nnz <= drawn.model.counts.transitions.nnz for _ in range(3))
    rows = np.stack([outcomes(drawn, i) for i in range(3000)])
    alpha = TABLE + 3 * EXPERT
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - alpha / alpha.sum(axis=-1, keepdims=True)) < 5 * error + 1e-12).all()


@given(counts())
def test_drawn_rows_are_probabilities_and_the_same_in_any_order(table):
    model = estimate(as_sparse(table))
    drawn = draw_sparsely(model, np.zeros(table.visits.shape), 3, rng=3)
    first = [drawn.draw(i)[0].dense() for i in (0, 1, 2)]
    for i in (2, 0):
        np.testing.assert_array_equal(drawn.draw(i)[0].dense(), first[i])
    for rows in first:
        assert (rows >= 0).all()
        mass = rows.sum(axis=-1)
        assert (mass <= 1 + 1e-9).all()
        if table.ended is None:
            np.testing.assert_allclose(mass, 1)


def test_nothing_believed_and_nothing_seen_is_one_outcome():
    model = estimate(as_sparse(COUNTS), regularizer="uniform_prior", magnitude=0.0)
    drawn = draw_sparsely(model, np.zeros((S, A)), 600, rng=2)
    rows = np.stack([outcomes(drawn, i) for i in range(600)])[:, model.counts.unvisited]
    assert rows.size
    assert (rows.max(axis=-1) > 1 - 1e-6).all()
    assert (np.abs(rows.mean(axis=(0, 1)) - 1 / (S + 1)) < 0.05).all()


def test_what_a_convention_stands_for_it_stands_for_in_every_draw():
    table = as_sparse(random_counts(4, S, A))
    assert table.unvisited.any()
    model = estimate(table, regularizer="uniform_prior", magnitude=2.0, unvisited="self_loop")
    drawn = draw_sparsely(model, np.zeros((S, A)), 3, rng=1)
    for i in range(3):
        rows = drawn.draw(i)[0].dense()
        for s, a in np.argwhere(table.unvisited):
            np.testing.assert_allclose(rows[s, a], np.eye(S)[s])


def test_an_outcome_comes_from_a_mixture_as_often_as_it_says():
    rng = np.random.default_rng(0)
    sparse = SparseRows(as_sparse_rows(random_rows(rng, (S, A, S))), S, A)
    shared, by_action = Rows(rng.dirichlet(np.ones(S))[None, None]), Rows(rng.dirichlet(np.ones(S), size=(1, A)))
    kernel = Mixture(Mixture(sparse, rng.random((S, A)), shared), rng.random((S, 1)), by_action)
    often = np.bincount(Chooser(kernel, A).draw(np.full(20_000, 3 * A + 1), rng), minlength=S)
    expected = kernel.dense()[3, 1]
    assert (often[expected == 0] == 0).all()
    assert stats.chisquare(often[expected > 0], 20_000 * expected[expected > 0]).pvalue > CLOSE


def as_sparse_rows(rows):
    return sp.csr_array(rows.reshape(-1, rows.shape[-1]))


def test_ending_is_taken_out_of_a_target():
    rng = np.random.default_rng(1)
    ending = SparseRows(as_sparse_rows(random_rows(rng, (S, A, S), ends=True)), S, A)
    kernel = Mixture(ending, rng.random((S, A)), Rows(np.full((1, 1, S), 1 / (S + 1))))
    target = PriorMean.of(kernel, A)
    np.testing.assert_allclose(target.goes_on, kernel.mass())
    np.testing.assert_allclose(target.rows.dense() * target.goes_on[..., None], kernel.dense(), atol=1e-12)
    np.testing.assert_allclose(target.rows.mass(), 1)


def test_a_target_that_is_only_applied_stands_at_its_mean():
    row = np.full(S, 1 / S)
    known = Operator((S, A, S), lambda values, policy: np.full((S, A), row @ values), None, S, None)
    target = PriorMean.of(known, A)
    assert target.chooser is None
    assert target.rows is known


def test_models_are_written_out_unless_they_are_large_and_sparse(monkeypatch):
    table = random_counts(0, S, A)
    assert not unwritten(table)
    assert not unwritten(as_sparse(table))
    monkeypatch.setattr(sparse_draws, "WRITTEN", 1)
    assert not unwritten(table)
    assert unwritten(as_sparse(table))
