"""Targets: what a row is pulled toward, never larger than it needs to be."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import InputError, Mixture, Rows
from certeq.model import targets
from strategies import as_sparse, counts, random_counts, random_rows


def written(target, table):
    return np.broadcast_to(target.dense(), table.transitions.shape)


@given(counts(), st.booleans())
def test_zeros_and_uniform_are_one_row_for_all(table, sparse):
    table = as_sparse(table) if sparse else table
    assert targets.zeros(table).shape == targets.uniform(table).shape == (1, 1, table.n_states)
    assert (targets.zeros(table).array == 0).all()
    assert (targets.uniform(table).array == 1 / table.n_outcomes).all()


def test_the_uniform_row_leaves_a_share_for_ending_when_the_data_end():
    assert targets.uniform(random_counts(0, 3, 2, ended=False)).mass() == pytest.approx(1)
    assert targets.uniform(random_counts(0, 3, 2, ended=True)).mass() == pytest.approx(3 / 4)


@given(counts())
def test_a_self_loop_stays_where_it_is(table):
    expected = np.broadcast_to(np.eye(table.n_states)[:, None, :], table.transitions.shape)
    np.testing.assert_array_equal(written(targets.self_loop(table), table), expected)
    np.testing.assert_array_equal(written(targets.self_loop(as_sparse(table)), table), expected)


@given(counts())
def test_the_action_average_is_the_twins(table):
    """An unvisited action stands in as uniform, for itself as for the others."""
    stand_in = naive.mle(table.transitions, table.ended)
    expected = np.broadcast_to(stand_in.mean(axis=1, keepdims=True), table.transitions.shape)
    np.testing.assert_allclose(written(targets.action_average(table), table), expected, atol=1e-14)
    np.testing.assert_allclose(written(targets.action_average(as_sparse(table)), table), expected, atol=1e-14)


@given(counts())
def test_the_average_of_what_was_tried_is_the_twins(table):
    unseen = table.unvisited
    expected = naive.mle(table.transitions, table.ended, unvisited="average")[unseen]
    np.testing.assert_allclose(written(targets.tried_average(table), table)[unseen], expected, atol=1e-14)
    np.testing.assert_allclose(written(targets.tried_average(as_sparse(table)), table)[unseen], expected, atol=1e-14)


def test_the_action_average_of_a_batch_is_that_of_each():
    table = random_counts(0, 4, 3, batch=(2,), ended=True)
    found = written(targets.action_average(table), table)
    for d in range(2):
        stand_in = naive.mle(table.transitions[d], table.ended[d]).mean(axis=1, keepdims=True)
        visited = ~table.unvisited[d]
        np.testing.assert_allclose(found[d][visited], np.broadcast_to(stand_in, (4, 3, 4))[visited], atol=1e-14)


def test_a_row_is_shared_by_all_pairs():
    table = random_counts(0, 3, 2)
    assert targets.shared_row([0.2, 0.3, 0.5], table).array.tolist() == [[[0.2, 0.3, 0.5]]]
    for row, says in (
        ([0.5, 0.5], "3 probabilities"),
        ([0.5, 0.6, 0], "sums to"),
        ([np.nan, 0, 0], r"row\[0\] is nan"),
    ):
        with pytest.raises(InputError, match=says):
            targets.shared_row(row, table)


@pytest.mark.parametrize("shape", [(3, 2, 3), (3, 1, 3), (1, 2, 3), (1, 1, 3)])
def test_an_expert_may_leave_out_axes_that_do_not_matter(shape):
    rows = random_rows(np.random.default_rng(0), shape)
    found = targets.expert(rows, random_counts(0, 3, 2))
    assert found.shape == shape
    np.testing.assert_array_equal(found.dense(), rows)


BAD = {
    "nothing": (None, r"as target=, an array of shape \(3, 2, 3\)"),
    "other states": (np.full((4, 2, 4), 0.25), r"shape \(3, 2, 3\) .*; got \(4, 2, 4\)"),
    "other actions": (np.full((3, 3, 3), 1 / 3), r"got \(3, 3, 3\)"),
    "sparse of other actions": (sp.csr_array(np.full((9, 3), 1 / 3)), r"got \(3, 3, 3\)"),
    "a row past one": (np.full((3, 2, 3), 0.5), r"state 0, action 0 sums to 1\.5"),
    "too few axes": (np.eye(3), "need the axes"),
    "a mixture": (
        Mixture(Rows(np.eye(3)[:, None]), np.zeros((3, 1)), Rows(np.eye(3)[:, None])),
        "not a mixture",
    ),
}


@pytest.mark.parametrize(("rows", "says"), BAD.values(), ids=BAD)
def test_an_experts_mistakes_are_named(rows, says):
    with pytest.raises(InputError, match=says):
        targets.expert(rows, random_counts(0, 3, 2))
