"""The counting kernels against dictionaries and plain loops."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certeq.data.counting import tallying
from certeq.data.counting.tallying import Store, count, earn, number, replace


def codes(values):
    return np.array(values, dtype=np.uint32)


def listed(cells, A):
    """Cells as a dictionary, and whether they stand in order."""
    lines = np.repeat(np.arange(len(cells.pointer) - 1), np.diff(cells.pointer))
    keys = list(zip((lines // A).tolist(), (lines % A).tolist(), cells.outcome.tolist(), strict=True))
    assert keys == sorted(set(keys))
    return dict(zip(keys, cells.number.tolist(), strict=True))


@st.composite
def rows(draw):
    S, A, N = draw(st.integers(1, 2**12)), draw(st.integers(1, 50)), draw(st.integers(1, 2**30))
    few = draw(st.booleans())  # then rows repeat
    n = draw(st.integers(0, 200))
    columns = [
        draw(st.lists(st.integers(0, min(size - 1, 3 if few else size)), min_size=n, max_size=n)) for size in (S, A, N)
    ]
    return [codes(column) for column in columns], (S, A, N)


@settings(max_examples=100, deadline=None)
@given(rows())
def test_counts_are_those_of_a_dictionary_and_stand_in_order(drawn):
    (state, action, outcome), (S, A, N) = drawn
    wanted = Counter(zip(state.tolist(), action.tolist(), outcome.tolist(), strict=True))
    assert listed(count(state, action, outcome, S, A, N), A) == dict(wanted)


@pytest.mark.parametrize(
    ("S", "A", "N"), [(1, 1, 1), (2, 1, 1), (3, 2, 4), (10_000, 5, 10_000), (1 << 20, 16, 1 << 20)]
)
def test_many_rows_are_counted_whatever_the_number_of_digits(S, A, N):
    rng = np.random.default_rng(0)
    few = rng.integers(0, S, 300)  # so that cells repeat
    state, action, outcome = few[rng.integers(0, 300, 50_000)], rng.integers(0, A, 50_000), rng.integers(0, N, 50_000)
    outcome = np.where(rng.random(50_000) < 0.5, state % N, outcome)
    cells = count(codes(state), codes(action), codes(outcome), S, A, N)
    key, often = np.unique((state * A + action) * N + outcome, return_counts=True)
    lines = np.repeat(np.arange(S * A), np.diff(cells.pointer))
    assert np.array_equal(lines * N + cells.outcome, key)
    assert np.array_equal(cells.number, often)


@pytest.mark.parametrize("laid_out", [tallying.LAID_OUT, -1])
@pytest.mark.parametrize("different", [40, 10**6])
def test_blocks_are_counted_together_by_counters_or_by_sorting_alike(laid_out, different, monkeypatch):
    monkeypatch.setattr(tallying, "LAID_OUT", laid_out)
    rng = np.random.default_rng(0)
    S, A, N, store = 300, 7, 301, Store(6500, 300, 7, 301)
    wanted = Counter()
    for n in (4000, 0, 2500):
        key = rng.integers(0, S * A * N, different)[rng.integers(0, different, n)]
        state, action, outcome = key // (A * N), key // N % A, key % N
        store.add(codes(state), codes(action), codes(outcome))
        wanted.update(zip(state.tolist(), action.tolist(), outcome.tolist(), strict=True))
    assert store.rows == 6500
    for _ in range(2):  # what was counted is still held
        found = store.count()
        assert listed(found.cells, A) == dict(wanted)
        assert found.visits.sum() == 6500
        assert set(np.flatnonzero(found.visits).tolist()) == {s * A + a for s, a, _ in wanted}
        assert set(np.flatnonzero(found.reached).tolist()) == {n for *_, n in wanted}


def test_more_cells_than_a_key_can_tell_apart_are_refused():
    with pytest.raises(ValueError, match=r"more than 2\^56 cells"):
        count(codes([0]), codes([0]), codes([0]), 1 << 25, 1 << 10, 1 << 25)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20)))
def test_words_are_numbered_in_the_order_in_which_they_occur(words):
    found = number(np.array(words, dtype=np.uint64))
    different = list(dict.fromkeys(words))
    assert found.words.tolist() == different
    assert found.codes.tolist() == [different.index(word) for word in words]
    assert found.first.tolist() == [words.index(word) for word in different]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3) | st.integers(0, 2**64 - 1))))
def test_words_of_two_parts_are_told_apart_by_both(words):
    found = number(np.array(words, dtype=np.uint64).reshape(-1, 2))
    different = list(dict.fromkeys(words))
    assert [tuple(word) for word in found.words.tolist()] == different
    assert found.codes.tolist() == [different.index(word) for word in words]


def test_a_table_that_fills_up_grows_and_forgets_nothing():
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**63, 60_000).astype(np.uint64)[rng.integers(0, 60_000, 200_000)]
    found = number(words)
    assert np.array_equal(found.words[found.codes], words)
    assert np.array_equal(words[found.first], found.words)
    assert len(np.unique(found.words)) == len(found.words) == len(np.unique(words))


def test_words_that_fall_into_one_slot_are_told_apart():
    back = pow(int(tallying.MIX), -1, 2**64)
    words = np.array([(back * k) % 2**64 for k in range(1, 500)], dtype=np.uint64)  # times MIX they are 1, 2, 3, ...
    assert (((words * tallying.MIX) >> np.uint64(50)) == 0).all()
    assert number(words).codes.tolist() == list(range(499))


def test_codes_are_replaced_by_their_places():
    given = codes([2, 0, 0, 1])
    assert replace(given, codes([7, 8, 9])).tolist() == [9, 7, 7, 8]
    assert given.tolist() == [2, 0, 0, 1]


@settings(max_examples=50, deadline=None)
@given(rows(), st.integers(0, 2**32))
def test_rewards_add_up_as_in_a_loop(drawn, seed):
    (state, action, outcome), _ = drawn
    S, A, N = 5, 3, 4
    state, action, outcome = state % codes(S), action % codes(A), outcome % codes(N)
    reward = np.random.default_rng(seed).normal(10, 2, len(state))
    visits, total, arrived = np.zeros((2, S * A), dtype=np.int64), np.zeros((2, S * A)), np.zeros(N)
    for s, a, n, r in zip(state.tolist(), action.tolist(), outcome.tolist(), reward.tolist(), strict=True):
        visits[int(n == N - 1), s * A + a] += 1
        total[int(n == N - 1), s * A + a] += r / 16
        arrived[n] += r / 16
    mean = total / np.maximum(visits, 1)
    spread, rows = np.zeros(2), ([], [])
    for s, a, n, r in zip(state.tolist(), action.tolist(), outcome.tolist(), reward.tolist(), strict=True):
        spread[int(n == N - 1)] += (r / 16 - mean[int(n == N - 1), s * A + a]) ** 2
        rows[n == N - 1].append(r)
    columns = state, action, outcome, reward
    found = earn([tuple(column[rows] for column in columns) for rows in (slice(7), slice(7, None))], S, A, N, 16.0)
    assert np.array_equal(found.number, visits.ravel())
    assert np.array_equal(found.arrivals, np.bincount(outcome, minlength=N))
    assert np.array_equal(found.pairs, total.ravel())
    assert found.span.tolist() == [[min(kind, default=np.inf), max(kind, default=-np.inf)] for kind in rows]
    assert np.array_equal(found.arrived, arrived)
    np.testing.assert_allclose(found.spread, spread, rtol=1e-12, atol=1e-30)
