"""Pairs without data: each convention is what it says, sparse and dense, with a threshold and without."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import Counts, InputError
from certeq.model.frequencies import mle
from certeq.model.unvisited import CONVENTIONS, fill
from strategies import as_sparse, counts, element, random_counts

AS_NAIVE = {"target": "uniform", "uniform": "uniform", "exclude": "uniform", "zero": "zero", "self_loop": "self_loop"}
each_convention = pytest.mark.parametrize("convention", CONVENTIONS)


def rows_of(filled, table):
    return np.broadcast_to(filled.rows.dense(), table.transitions.shape)


def forgetting(table, min_visits):
    """The counts without the pairs that have fewer visits, as if they had never been tried."""
    thin = table.visits < min_visits
    ended = None if table.ended is None else np.where(thin, 0, table.ended)
    return np.where(thin[..., None], 0, table.transitions), ended


@each_convention
@given(table=counts(), min_visits=st.integers(1, 4))
def test_a_thin_pair_stands_in_as_the_twin_says(convention, table, min_visits):
    filled = fill(table, convention, min_visits)
    kept, ended = forgetting(table, min_visits)
    expected = naive.mle(kept, ended, unvisited=AS_NAIVE.get(convention, "average"))
    np.testing.assert_allclose(rows_of(filled, table), expected, atol=1e-14)
    np.testing.assert_array_equal(filled.thin, table.visits < min_visits)


@each_convention
@given(table=counts(), min_visits=st.integers(1, 4))
def test_sparse_counts_are_filled_as_dense_ones(convention, table, min_visits):
    dense, sparse = fill(table, convention, min_visits), fill(as_sparse(table), convention, min_visits)
    np.testing.assert_allclose(rows_of(sparse, table), rows_of(dense, table), atol=1e-14)
    for name in ("thin", "allowed", "stranded"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))


@each_convention
@pytest.mark.parametrize("min_visits", [1, 3])
def test_a_batch_is_a_loop(convention, min_visits):
    table = random_counts(0, 4, 3, batch=(2, 3), ended=True)
    together = rows_of(fill(table, convention, min_visits), table)
    for index in np.ndindex(2, 3):
        alone = element(table, index)
        np.testing.assert_allclose(together[index], rows_of(fill(alone, convention, min_visits), alone), atol=1e-15)


@given(counts(), st.integers(1, 4))
def test_only_exclude_takes_actions_away_and_never_the_last(table, min_visits):
    for convention in CONVENTIONS:
        filled = fill(table, convention, min_visits)
        assert filled.allowed.any(axis=-1).all()
        if convention == "exclude":
            np.testing.assert_array_equal(filled.stranded, (table.visits < min_visits).all(axis=-1))
            np.testing.assert_array_equal(filled.allowed, ~filled.thin | filled.stranded[..., None])
        else:
            assert filled.allowed.all()
            assert not filled.stranded.any()


@each_convention
def test_where_every_pair_has_data_the_frequencies_stand(convention):
    table = Counts(np.arange(1, 13).reshape(2, 3, 2))
    np.testing.assert_array_equal(rows_of(fill(table, convention), table), mle(table).dense())


def test_thin_pairs_of_the_same_state_have_no_say_in_an_average():
    table = Counts(np.array([[[4, 0], [0, 1], [0, 0]], [[1, 1], [1, 1], [1, 1]]]))
    assert rows_of(fill(table, "average", 1), table)[0, 2].tolist() == [0.5, 0.5]
    assert rows_of(fill(table, "average", 2), table)[0].tolist() == [[1, 0], [1, 0], [1, 0]]


@each_convention
def test_the_counts_are_left_as_they_were(convention):
    table = random_counts(1, 4, 2, ended=True)
    sparse = as_sparse(table)
    before = table.transitions.copy(), table.ended.copy()
    fill(table, convention, 3)
    fill(sparse, convention, 3)
    np.testing.assert_array_equal(table.transitions, before[0])
    np.testing.assert_array_equal(table.ended, before[1])
    np.testing.assert_array_equal(sparse.transitions.toarray().reshape(4, 2, 4), before[0])


def test_bad_choices_are_named():
    table = random_counts(0, 3, 2)
    with pytest.raises(InputError, match=r"no convention for unvisited pairs named 'self-loop'.* mean 'self_loop'"):
        fill(table, "self-loop")
    for wrong in (0, -1, 1.5, "two", None, np.nan):
        with pytest.raises(InputError, match="min_visits must be"):
            fill(table, "uniform", wrong)
