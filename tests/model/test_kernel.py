"""Kernels: three ways to keep rows, one algebra, and rows checked when they are born."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import InputError, Mixture, Rows, SparseRows, solve
from certeq.model.kernel import entries, is_sparse, kernel
from strategies import SEEDS, SHAPES, random_rows

AXES = st.sampled_from([(1, 1), (4, 1), (1, 3), (4, 3)])


def sparse_rows(array):
    return SparseRows(sp.csr_array(array.reshape(-1, array.shape[-1])), *array.shape[:2])


@given(SEEDS, AXES, SHAPES, SHAPES)
def test_dense_rows_expect_what_a_sum_over_next_states_says(seed, axes, batch, of_values):
    rng, lead = np.random.default_rng(seed), np.broadcast_shapes(batch, of_values)
    array, values = random_rows(rng, (*batch, *axes, 4), ends=True), rng.normal(size=(*of_values, 4))
    found = Rows(array).expect(values)
    expected = (array * values[..., None, None, :]).sum(axis=-1)
    assert found.shape == (*lead, *axes)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(Rows(array).mass(), array.sum(axis=-1), atol=1e-15)


@given(SEEDS, AXES)
def test_sparse_rows_do_what_dense_ones_do(seed, axes):
    rng = np.random.default_rng(seed)
    array, values = random_rows(rng, (*axes, 4), ends=True), rng.normal(size=4)
    dense, sparse = Rows(array), sparse_rows(array)
    assert sparse.shape == dense.shape
    assert sparse.batch == dense.batch == ()
    np.testing.assert_allclose(sparse.expect(values), dense.expect(values), atol=1e-14)
    np.testing.assert_allclose(sparse.mass(), dense.mass(), atol=1e-15)
    np.testing.assert_array_equal(sparse.dense(), dense.dense())
    assert is_sparse(sparse)
    assert not is_sparse(dense)


@given(SEEDS, AXES)
def test_the_rows_under_a_policy_are_those_of_its_actions(seed, axes):
    rng = np.random.default_rng(seed)
    array = random_rows(rng, (*axes, 4))
    policy = rng.integers(axes[1], size=4)
    expected = np.stack([array[min(s, axes[0] - 1), policy[s]] for s in range(4)])
    np.testing.assert_array_equal(Rows(array).under(policy), expected)
    found = sparse_rows(array).under(policy).toarray()
    np.testing.assert_array_equal(np.broadcast_to(found, (4, 4)), expected)


@given(SEEDS, AXES, AXES, st.booleans(), st.booleans())
def test_a_mixture_is_what_it_says_without_being_built(seed, of_data, of_target, sparse_data, sparse_target):
    rng = np.random.default_rng(seed)
    data, target = random_rows(rng, (*of_data, 4), ends=True), random_rows(rng, (*of_target, 4))
    weight, values = rng.random((4, 3)), rng.normal(size=4)
    written = naive.mix(np.broadcast_to(data, (4, 3, 4)), weight, target)
    mixed = Mixture(
        sparse_rows(data) if sparse_data else Rows(data),
        weight,
        sparse_rows(target) if sparse_target else Rows(target),
    )
    assert mixed.shape == (4, 3, 4)
    assert is_sparse(mixed) == (sparse_data or sparse_target)
    np.testing.assert_allclose(mixed.dense(), written, atol=1e-15)
    np.testing.assert_allclose(mixed.expect(values), written @ values, atol=1e-14)
    np.testing.assert_allclose(mixed.mass(), written.sum(axis=-1), atol=1e-15)


def looked_up(kernel, shape=(4, 3, 4)):
    """Every entry, one by one."""
    s, a, n = (part.ravel() for part in np.indices(shape))
    found = entries(kernel, s, a, n)
    return found.reshape(*found.shape[:-1], *shape)


@given(SEEDS, AXES, AXES, AXES, st.booleans(), st.booleans())
def test_entries_are_those_of_the_kernel_written_out(seed, of_data, of_target, of_weight, sparse_data, sparse_target):
    rng = np.random.default_rng(seed)
    data, target = random_rows(rng, (*of_data, 4), ends=True), random_rows(rng, (*of_target, 4))
    one, other = (sparse_rows if s else Rows for s in (sparse_data, sparse_target))
    for found in (one(data), other(target), Mixture(one(data), rng.random(of_weight), other(target))):
        np.testing.assert_allclose(looked_up(found), np.broadcast_to(found.dense(), (4, 3, 4)), atol=1e-15)
    nested = Mixture(Mixture(one(data), rng.random(of_weight), other(target)), rng.random((4, 3)), one(data))
    np.testing.assert_allclose(looked_up(nested), nested.dense(), atol=1e-15)


def test_entries_broadcast_and_keep_the_leading_axes():
    rng = np.random.default_rng(5)
    data = random_rows(rng, (5, 1, 4, 3, 4))
    mixed = Mixture(Rows(data), rng.random((2, 4, 3)), Rows(np.full((1, 1, 4), 0.25)))
    np.testing.assert_allclose(looked_up(mixed), mixed.dense(), atol=1e-15)
    row = entries(sparse_rows(data[0, 0]), np.array(2), np.array(1), np.arange(4))
    np.testing.assert_array_equal(row, data[0, 0, 2, 1])
    assert entries(mixed, np.array([], dtype=int), np.array([], dtype=int), np.array([], dtype=int)).shape == (5, 2, 0)


@pytest.mark.parametrize("kind", [Rows, sparse_rows])
def test_entries_outside_the_kernel_are_an_error(kind):
    rows = kind(random_rows(np.random.default_rng(6), (4, 3, 4)))
    for place in ((4, 0, 0), (0, 3, 0), (0, 0, 4)):
        with pytest.raises((IndexError, ValueError)):
            entries(rows, *map(np.atleast_1d, place))


def test_a_mixture_of_mixtures_is_a_mixture():
    rng = np.random.default_rng(1)
    a, b, c = (random_rows(rng, (4, 3, 4)) for _ in range(3))
    v, w, values = rng.random((4, 3)), rng.random((4, 3)), rng.normal(size=4)
    nested = Mixture(Mixture(Rows(a), v, sparse_rows(b)), w, Rows(c))
    written = naive.mix(naive.mix(a, v, b), w, c)
    assert is_sparse(nested)
    np.testing.assert_allclose(nested.dense(), written, atol=1e-15)
    np.testing.assert_allclose(nested.expect(values), written @ values, atol=1e-14)


def test_a_mixture_broadcasts_over_leading_axes():
    rng = np.random.default_rng(2)
    data, weight = random_rows(rng, (5, 1, 4, 3, 4)), rng.random((2, 4, 3))
    mixed = Mixture(Rows(data), weight, Rows(np.full((1, 1, 4), 0.25)))
    assert mixed.batch == (5, 2)
    assert mixed.dense().shape == (5, 2, 4, 3, 4)
    assert mixed.expect(rng.normal(size=(5, 2, 4))).shape == (5, 2, 4, 3)
    np.testing.assert_allclose(mixed.dense()[3, 1], naive.mix(data[3, 0], weight[1], np.full(4, 0.25)), atol=1e-15)


def test_one_number_for_a_weight_is_good_for_everything():
    data, target = Rows(np.eye(2)[:, None, :]), Rows(np.full((1, 1, 2), 0.5))
    mixed = Mixture(data, np.array(0.5), target)
    written = solve([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.0], [1.0]], 0.5)
    np.testing.assert_allclose(solve(mixed, [[0.0], [1.0]], 0.5).values, written.values)


@pytest.mark.parametrize("weight", [-0.1, 1.1, np.nan])
def test_weights_outside_the_unit_interval_are_named(weight):
    rows, weights = Rows(np.eye(2)[:, None, :]), np.array([[0.5], [weight]])
    with pytest.raises(InputError, match=r"weight\[1, 0\] is"):
        Mixture(rows, weights, rows)


def test_parts_that_do_not_fit_together_are_refused_at_birth():
    two, three = Rows(np.eye(2)[:, None, :]), Rows(np.eye(3)[:, None, :])
    with pytest.raises(InputError, match=r"\(2, 1, 2\).*\(3, 1, 3\)"):
        Mixture(two, np.zeros((1, 1)), three)


def test_transitions_are_read_from_arrays_matrices_and_kernels():
    array = random_rows(np.random.default_rng(3), (4, 3, 4))
    assert isinstance(kernel(array), Rows)
    assert isinstance(kernel(array.tolist()), Rows)
    for form in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        read = kernel(form(array.reshape(12, 4)))
        assert isinstance(read, SparseRows)
        assert read.shape == (4, 3, 4)
        np.testing.assert_array_equal(read.dense(), array)
    assert kernel(read) is read


BAD = {
    "a negative entry": ([[[1.5, -0.5]], [[0, 1]]], r"state 0, action 0 has the entry -0\.5"),
    "a row past one": ([[[1, 0]], [[0.7, 0.5]]], r"state 1, action 0 sums to 1\.2"),
    "NaN": ([[[1, 0]], [[np.nan, 0.5]]], "state 1, action 0 has the entry nan"),
    "infinity": ([[[1, 0]], [[np.inf, 0.5]]], "state 1, action 0 has the entry inf"),
    "minus infinity": ([[[1, 0]], [[-np.inf, 0.5]]], "state 1, action 0 has the entry -inf"),
}


@pytest.mark.parametrize(("rows", "says"), BAD.values(), ids=BAD)
def test_bad_rows_are_named_dense_and_sparse(rows, says):
    with pytest.raises(InputError, match=says):
        Rows(np.array(rows))
    with pytest.raises(InputError, match=says):
        sparse_rows(np.array(rows))


@pytest.mark.parametrize("shape", [(2,), (2, 2), (2, 1, 3), (0, 1, 0), (2, 0, 2)])
def test_shapes_that_are_no_transitions_are_refused(shape):
    with pytest.raises(InputError, match=r"expected|need the axes"):
        Rows(np.zeros(shape))


def test_a_sparse_kernel_of_the_wrong_size_is_refused():
    with pytest.raises(InputError, match="3 states x 2 actions"):
        SparseRows(sp.csr_array(np.zeros((5, 3))), 3, 2)
    with pytest.raises(InputError, match="one vector of values at a time"):
        sparse_rows(np.eye(2)[:, None, :]).expect(np.zeros((3, 2)))


def test_rounding_in_the_mass_of_a_row_is_forgiven():
    Rows(np.array([[[1 + 0.9e-9]]]))
    sparse_rows(np.array([[[1 + 0.9e-9]]]))
    with pytest.raises(InputError, match="sums to"):
        Rows(np.array([[[1 + 2e-9]]]))
    with pytest.raises(InputError, match="sums to"):
        sparse_rows(np.array([[[1 + 2e-9]]]))
