"""Counts: tallied as the literal twin does, the same sparse and dense, and checked when they are born."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import Batch, Counts, InputError, tally
from certeq.data.batch import ENDED
from certeq.data.counts import as_counts
from certeq.model.frequencies import mle
from strategies import SEEDS, all_outcomes, as_sparse, counts, element, random_counts


def random_rows_of_data(seed, n, S, A, *, ends):
    rng = np.random.default_rng(seed)
    return rng.integers(S, size=n), rng.integers(A, size=n), rng.integers(ENDED if ends else 0, S, size=n)


@given(SEEDS, st.integers(0, 60), st.booleans(), st.booleans())
def test_counting_is_counting(seed, n, ends, sparse):
    columns = random_rows_of_data(seed, n, 4, 3, ends=ends)
    found = tally(*columns, n_states=4, n_actions=3, sparse=sparse)
    transitions, ended = naive.tally(*columns, 4, 3)
    seen = found.transitions.toarray().reshape(4, 3, 4) if sparse else found.transitions
    np.testing.assert_array_equal(seen, transitions)
    assert found.sparse == sparse
    assert (found.ended is None) == (not ended.any())
    if ended.any():
        np.testing.assert_array_equal(found.ended, ended)
    np.testing.assert_array_equal(found.visits, transitions.sum(axis=-1) + ended)


@given(SEEDS, st.booleans())
def test_several_data_sets_are_counted_apart(seed, ends):
    rng = np.random.default_rng(seed)
    state, action, after = random_rows_of_data(seed, 50, 3, 2, ends=ends)
    data_set = rng.integers(4, size=50)
    found = tally(Batch(state, action, after, 3, 2, data_set=data_set, n_data_sets=4))
    assert found.batch == (4,)
    for d in range(4):
        rows = data_set == d
        transitions, ended = naive.tally(state[rows], action[rows], after[rows], 3, 2)
        np.testing.assert_array_equal(found.transitions[d], transitions)
        np.testing.assert_array_equal(0 if found.ended is None else found.ended[d], ended if ended.any() else 0)


def test_ending_is_one_more_outcome_when_the_data_have_it():
    assert tally([0, 1], [0, 0], [1, 0]).n_outcomes == 2
    assert tally([0, 1], [0, 0], [1, ENDED]).n_outcomes == 3


def test_repeated_rows_count_as_often_as_they_stand_there():
    assert tally([0, 0, 0], [0, 0, 0], [1, 1, 0], n_states=2).transitions[0, 0].tolist() == [1, 2]


def test_sizes_are_the_largest_numbers_seen_unless_said():
    seen = tally([0, 2], [1, 0], [4, 0])
    assert (seen.n_states, seen.n_actions) == (5, 2)
    said = tally([0, 2], [1, 0], [4, 0], n_states=7, n_actions=3)
    assert (said.n_states, said.n_actions) == (7, 3)
    assert said.unvisited[5:].all()


def test_a_batch_is_not_contradicted():
    batch = Batch([0, 1], [0, 0], [1, 0], 2, 1)
    assert tally(batch, n_states=2, n_actions=1).visits.tolist() == [[1], [1]]
    with pytest.raises(InputError, match="n_states is 5, but the batch has 2"):
        tally(batch, n_states=5)
    with pytest.raises(InputError, match="n_actions is 2, but the batch has 1"):
        tally(batch, n_actions=2)
    with pytest.raises(InputError, match="give either a batch or three columns"):
        tally(batch, [0, 0], [1, 0])


def test_no_rows_are_fine_when_the_sizes_are_said_and_an_error_otherwise():
    empty = tally([], [], [], n_states=2, n_actions=2)
    assert empty.unvisited.all()
    assert empty.mean_visits == 0
    with pytest.raises(InputError, match=r"no rows to count\. Say n_states and n_actions"):
        tally([], [], [])


def test_many_cells_are_kept_sparse_unless_said_otherwise():
    assert tally([0], [0], [1], n_states=1500, n_actions=1).sparse
    assert not tally([0], [0], [1], n_states=1000, n_actions=1).sparse
    assert not tally([0], [0], [1], n_states=1500, n_actions=1, sparse=False).sparse
    with pytest.raises(InputError, match="several data sets are dense"):
        tally(Batch([0], [0], [0], 1, 1, data_set=[0], n_data_sets=1), sparse=True)


@given(counts(ended=st.booleans()))
def test_everything_that_is_known_of_counts_is_the_same_sparse_and_dense(table):
    sparse = as_sparse(table)
    for name in ("n_states", "n_actions", "n_outcomes", "batch"):
        assert getattr(sparse, name) == getattr(table, name)
    for name in ("visits", "unvisited", "mean_visits", "square_sum"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(table, name))
    np.testing.assert_array_equal(mle(sparse).dense(), mle(table).dense())
    np.testing.assert_array_equal(table.square_sum, (all_outcomes(table) ** 2).sum(axis=-1))


def test_a_sparse_matrix_that_lists_a_cell_twice_means_the_sum():
    twice = sp.csr_array((np.array([1, 1, 2]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    found = Counts(twice)
    assert found.square_sum.tolist() == [[4], [4]]
    assert mle(found).dense().tolist() == [[[1, 0]], [[0, 1]]]


@given(counts())
def test_frequencies_are_those_of_the_twin_with_nothing_where_nothing_was_seen(table):
    np.testing.assert_allclose(
        mle(table).dense(), naive.mle(table.transitions, table.ended, unvisited="zero"), atol=1e-15
    )


def test_a_batch_knows_of_each_of_its_data_sets_what_it_knows_of_itself():
    table = random_counts(0, 3, 2, batch=(2, 2), ended=True)
    for index in np.ndindex(2, 2):
        alone = element(table, index)
        np.testing.assert_array_equal(table.visits[index], alone.visits)
        np.testing.assert_array_equal(table.square_sum[index], alone.square_sum)
        assert table.mean_visits[index] == alone.mean_visits


def test_squares_of_many_visits_do_not_overflow():
    assert Counts([[[3_000_000_000]]]).square_sum[0, 0] == 9e18 > 2**62
    assert Counts([[[2**40]]]).square_sum[0, 0] == 2.0**80


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.float64, bool])
def test_whole_numbers_of_any_kind_are_counts(kind):
    found = as_counts(np.ones((2, 1, 2), dtype=kind))
    assert found.transitions.dtype == np.int64
    assert found.visits.tolist() == [[2], [2]]
    assert as_counts(found) is found


BAD = {
    "negative": (np.array([[[1, 2]], [[3, -4]]]), "must not be negative; state 1, action 0, next state 1 has -4"),
    "fractional": ([[[1, 2]], [[0.5, 4]]], r"must be whole numbers; state 1, action 0, next state 0 has 0\.5"),
    "NaN": ([[[1, np.nan]], [[1, 4]]], "state 0, action 0, next state 1 has nan"),
    "infinite": ([[[1, np.inf]], [[1, 4]]], "state 0, action 0, next state 1 has inf"),
    "of a batch": (np.array([[[[1]]], [[[-1]]]]), r"state 0, action 0, next state 0 of data set \[1\] has -1"),
    "words": ([[["a"]]], "must be whole numbers; got an array of type"),
    "two axes": ([[1, 2], [3, 4]], r"axes \(..., S, A, S\), all at least 1; got shape \(2, 2\)"),
    "not square": (np.ones((2, 1, 3), dtype=int), r"got shape \(2, 1, 3\)"),
    "no states": (np.ones((0, 1, 0), dtype=int), r"got shape \(0, 1, 0\)"),
    "no actions": (np.ones((2, 0, 2), dtype=int), r"got shape \(2, 0, 2\)"),
    "sparse, negative": (sp.csr_array([[0, 1], [-2, 0]]), "state 1, action 0, next state 0 has -2"),
    "sparse, fractional": (sp.csr_array([[0, 1], [0, 0], [1.5, 0], [0, 0]]), r"state 1, action 0, .* has 1\.5"),
    "sparse, wrong shape": (sp.csr_array(np.ones((3, 2), dtype=int)), r"S \* A lines and S columns; got \(3, 2\)"),
}


@pytest.mark.parametrize(("wrong", "says"), BAD.values(), ids=BAD)
def test_bad_counts_are_refused_by_place(wrong, says):
    with pytest.raises(InputError, match=says):
        Counts(wrong)


def test_bad_endings_and_sizes_are_refused():
    ones = np.ones((2, 1, 2), dtype=int)
    with pytest.raises(InputError, match=r"ended needs one count for each pair, shape \(2, 1\); got \(2,\)"):
        Counts(ones, np.array([1, 1]))
    with pytest.raises(InputError, match=r"ended must not be negative; index \[1, 0\] has -1"):
        Counts(ones, np.array([[1], [-1]]))
    with pytest.raises(InputError, match="have 1 actions, not 3"):
        Counts(ones, n_actions=3)
    with pytest.raises(InputError, match="for 3 actions"):
        Counts(sp.csr_array(np.ones((4, 2), dtype=int)), n_actions=3)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (([0, 1],), "three columns state, action and next_state"),
        (([0, -1], [0, 0], [0, 0]), "Row 1: state is -1"),
        (([0, 1], [0, 0.5], [0, 0]), r"Row 1: action is 0\.5"),
        (([0, 1], [0, 0], [0, -2]), "Row 1: next_state is -2"),
        (([0, 1], [0], [0, 1]), r"action has shape \(1,\), but there are 2 rows"),
    ],
)
def test_bad_columns_are_refused_by_row(columns, says):
    with pytest.raises(InputError, match=says):
        tally(*columns)


def test_a_number_beyond_the_sizes_that_were_said_is_refused_by_row():
    with pytest.raises(InputError, match="Row 1: state is 2, but must be between 0 and 1"):
        tally([0, 2], [0, 0], [0, 1], n_states=2)
    with pytest.raises(InputError, match="Row 0: next_state is 5"):
        tally([0, 1], [0, 0], [5, 1], n_states=2)
    with pytest.raises(InputError, match="Row 1: action is 3"):
        tally([0, 1], [0, 3], [0, 1], n_actions=2)
