"""Moments: what a weight rule needs to know of a row, under each plug-in, against sums written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certeq import Counts, InputError, Rows, SparseRows
from certeq.model.frequencies import mle
from certeq.model.moments import action_moments, moments, true_action_moments, true_moments
from strategies import SEEDS, all_outcomes, as_sparse, counts, element, full_rows, random_counts, random_rows

PLUG_INS = ("mle", "posterior", "unbiased")
each_plug_in = pytest.mark.parametrize("plug_in", PLUG_INS)


def random_target(seed, table, shape=None):
    S, A = table.n_states, table.n_actions
    return random_rows(np.random.default_rng(seed), shape or (S, A, S), ends=table.ended is not None)


@given(SEEDS, st.integers(1, 6), st.integers(0, 20))
def test_of_a_known_row_they_are_the_sums(seed, N, visits):
    T, q = random_rows(np.random.default_rng(seed), (2, N))
    known = true_moments(visits, T, q)
    assert known.spread == pytest.approx((T * (1 - T)).sum(), abs=1e-14)
    assert known.distance == pytest.approx(((q - T) ** 2).sum(), abs=1e-14)


@given(SEEDS, st.integers(1, 4), st.integers(1, 6))
def test_of_known_actions_they_are_the_sums(seed, A, N):
    T = random_rows(np.random.default_rng(seed), (A, N))
    visits = np.arange(A)
    known = true_action_moments(visits, T)
    np.testing.assert_allclose(known.distance, ((T.mean(axis=0) - T) ** 2).sum(axis=1), atol=1e-14)
    expected = np.where(visits > 0, (T * (1 - T)).sum(axis=1) / np.maximum(visits, 1), 0)
    np.testing.assert_allclose(known.variance, expected, atol=1e-14)


@given(counts(), SEEDS, st.floats(0.05, 5))
def test_the_posterior_ones_are_the_means_over_a_dirichlet(table, seed, pseudo_count):
    target = random_target(seed, table)
    found = moments(table, Rows(target), plug_in="posterior", pseudo_count=pseudo_count)
    a = all_outcomes(table) + pseudo_count
    total = a.sum(axis=-1)
    square = (a * (a + 1)).sum(axis=-1) / (total * (total + 1))
    q = full_rows(target, table.n_outcomes)
    np.testing.assert_allclose(found.square, square, atol=1e-13)
    np.testing.assert_allclose(found.overlap, (q * a).sum(axis=-1) / total, atol=1e-13)
    np.testing.assert_allclose(found.target_square, (q * q).sum(axis=-1), atol=1e-13)


@given(counts(), SEEDS)
def test_the_mle_ones_are_those_of_the_frequencies(table, seed):
    target = random_target(seed, table)
    found = moments(table, Rows(target), plug_in="mle")
    seen = table.visits > 0
    p = all_outcomes(table)[seen] / table.visits[seen][:, None]
    q = full_rows(target, table.n_outcomes)[seen]
    np.testing.assert_allclose(found.spread[seen], (p * (1 - p)).sum(axis=-1), atol=1e-13)
    np.testing.assert_allclose(found.distance[seen], ((q - p) ** 2).sum(axis=-1), atol=1e-13)


@pytest.mark.parametrize("visits", [2, 3])
def test_the_unbiased_ones_are_right_on_average(visits):
    """Exactly: the mean over all data sets of so many visits to a coin."""
    p, q = 0.3, np.array([0.8, 0.2])
    chances = [0.7**2, 2 * 0.3 * 0.7, 0.3**2] if visits == 2 else [0.343, 0.441, 0.189, 0.027]
    truth = true_moments(visits, [1 - p, p], q)
    mean_spread = mean_distance = 0.0
    for ones, chance in enumerate(chances):
        table = np.array([[[visits - ones, ones]], [[visits - ones, ones]]])
        found = moments(Counts(table), Rows(q[None, None]), plug_in="unbiased")
        mean_spread += chance * found.spread[0, 0]
        mean_distance += chance * found.distance[0, 0]
    assert mean_spread == pytest.approx(truth.spread, abs=1e-12)
    assert mean_distance == pytest.approx(truth.distance, abs=1e-12)


@each_plug_in
@given(table=counts(), seed=SEEDS, form=st.sampled_from(["shared", "shared sparse", "sparse"]))
def test_sparse_counts_have_the_moments_of_dense_ones(plug_in, table, seed, form):
    S, A = table.n_states, table.n_actions
    array = random_target(seed, table, (S, A, S) if form == "sparse" else (1, 1, S))
    target = SparseRows(sp.csr_array(array.reshape(-1, S)), *array.shape[:2]) if "sparse" in form else Rows(array)
    dense, sparse = moments(table, Rows(array), plug_in=plug_in), moments(as_sparse(table), target, plug_in=plug_in)
    for name in ("visits", "square", "overlap", "target_square", "spread", "distance"):
        np.testing.assert_allclose(getattr(sparse, name), getattr(dense, name), atol=1e-13)
    one, two = (action_moments(t, plug_in=plug_in) for t in (table, as_sparse(table)))
    np.testing.assert_allclose(two.gram, one.gram, atol=1e-13)


@each_plug_in
def test_a_batch_is_a_loop(plug_in):
    table = random_counts(0, 4, 3, batch=(2, 3), ended=True)
    target = Rows(random_target(1, table))
    together, actions = moments(table, target, plug_in=plug_in), action_moments(table, plug_in=plug_in)
    for index in np.ndindex(2, 3):
        alone = element(table, index)
        np.testing.assert_allclose(together.square[index], moments(alone, target, plug_in=plug_in).square, atol=1e-15)
        np.testing.assert_allclose(actions.gram[index], action_moments(alone, plug_in=plug_in).gram, atol=1e-15)


@each_plug_in
@given(table=counts())
def test_no_moment_is_off_the_scale(plug_in, table):
    found = moments(table, Rows(np.full((1, 1, table.n_states), 1 / table.n_outcomes)), plug_in=plug_in)
    assert np.isfinite(found.distance).all()
    assert (found.spread >= 0).all()
    assert (found.spread <= 1).all()
    assert np.isfinite(action_moments(table, plug_in=plug_in).gram).all()


def test_a_target_that_may_end_is_further_from_data_that_never_do():
    """The chance of ending is an outcome that was never seen."""
    table = random_counts(0, 3, 1, ended=False)
    whole, leaky = Rows(np.full((1, 1, 3), 1 / 3)), Rows(np.full((1, 1, 3), 1 / 6))
    p = mle(table).dense()
    found = moments(table, leaky, plug_in="mle")
    seen = table.visits > 0
    expected = ((p - 1 / 6) ** 2).sum(axis=-1) + 0.5**2
    np.testing.assert_allclose(found.distance[seen], expected[seen], atol=1e-14)
    assert (found.distance[seen] > moments(table, whole, plug_in="mle").distance[seen]).all()


def test_sparse_counts_need_a_target_that_is_not_written_out():
    table = as_sparse(random_counts(0, 3, 2))
    with pytest.raises(InputError, match="Sparse counts need a target that is one shared row or a sparse matrix"):
        moments(table, Rows(random_target(0, table)))
