"""Merging parts: what comes out does not depend on how the rows were dealt, and is small however many they were."""

import functools
import itertools
import pickle

import numpy as np
import polars as pl
import pytest
from counted import rows
from hypothesis import given, settings
from hypothesis import strategies as st

from certeq.data.counting import shares
from certeq.data.counting.parts import merge
from certeq.data.counting.pieces import Layout, code_rows
from certeq.data.counting.running import _shares
from certeq.data.counting.shares import count_pieces, tree
from certeq.data.reading.roles import Roles

LAYOUT = Layout(
    Roles(("ward", "stage"), ("next_ward", "next_stage"), ("drug",), reward="reward", done="done", truncated="cut")
)


def part(frame):
    return together([frame])


def together(frames):
    def code(frame):
        return [code_rows(frame, LAYOUT, range(frame.height))]

    return count_pieces(frames, code, LAYOUT, max(frame.height for frame in frames))


def same(one, other, *, exactly=True):
    for mine, yours in ((one.states, other.states), (one.actions, other.actions)):
        assert np.array_equal(mine.cells, yours.cells)
        assert [a.values.to_list() for a in mine.axes] == [a.values.to_list() for a in yours.axes]
    for mine, yours in zip((*one.cells, one.ended), (*other.cells, other.ended), strict=True):
        assert np.array_equal(mine, yours)
    close = functools.partial(np.testing.assert_allclose, rtol=0 if exactly else 1e-10, atol=0 if exactly else 1e-12)
    assert one.rewards.size == other.rewards.size
    assert np.array_equal(one.rewards.number, other.rewards.number)
    assert np.array_equal(one.rewards.span, other.rewards.span)
    close(one.rewards.earned, other.rewards.earned)
    close(one.rewards.arrived, other.rewards.arrived)
    close(one.rewards.spread, other.rewards.spread)
    assert (one.rows, one.dropped) == (other.rows, other.dropped)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 200), max_size=4))
def test_parts_of_any_rows_merge_to_the_part_of_all(seed, cuts):
    frame = rows(200, seed)
    edges = [0, *sorted(cuts), 200]
    parts = [part(frame[a:b]) for a, b in itertools.pairwise(edges)]
    same(functools.reduce(merge, parts), part(frame), exactly=False)


@pytest.mark.parametrize("S", [4, 400])  # pieces have all labels, or each its own
def test_pieces_that_are_counted_together_give_the_part_of_pieces_counted_one_by_one(S, monkeypatch):
    monkeypatch.setattr(shares, "TOGETHER", 3)
    pieces = [rows(n, n, S) for n in (90, 0, 60, 61, 62, 63, 64, 1, 90)]
    same(together(pieces), tree(pieces, part, merge))


def test_merging_is_symmetric_and_knows_nothing_to_add():
    one, other = part(rows(100, 1)), part(rows(100, 2))
    same(merge(one, other), merge(other, one))
    empty = part(rows(0))
    same(merge(one, empty), one)
    same(merge(empty, one), one)


def test_the_order_of_the_files_changes_rewards_by_rounding_only():
    parts = [part(rows(200, seed)) for seed in range(6)]
    expected = functools.reduce(merge, parts)
    rng = np.random.default_rng(0)
    for _ in range(5):
        same(functools.reduce(merge, [parts[i] for i in rng.permutation(6)]), expected, exactly=False)


def test_the_scatter_is_that_of_two_passes_over_all_rows_though_the_means_are_far_from_zero():
    frame = rows(2000).with_columns(reward=1e6 + pl.col("reward") / 100)
    pieces = [part(frame[i : i + 50]) for i in range(0, 2000, 50)]
    found, plain = tree(pieces, lambda piece: piece, merge).rewards, part(frame).rewards
    np.testing.assert_allclose(found.scatter, plain.scatter, rtol=1e-6)


def test_what_travels_does_not_grow_with_the_rows():
    frame = rows(2000)
    often = pl.concat([frame] * 20)
    assert len(pickle.dumps(part(often))) < 1.01 * len(pickle.dumps(part(frame)))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 11, 47, 100])
def test_the_tree_over_shares_is_the_tree_over_their_pieces(n):
    """So that sums are rounded alike on one machine and on many."""

    def join(one, other):
        return f"({one}{other})"

    leaves = [f"{i}," for i in range(n)]
    expected = tree(leaves, str, join)
    for number in (1, 2, 3, 8, 1000):
        height, shares = _shares(leaves, number)
        assert [leaf for share in shares for leaf in share] == leaves
        assert len(shares) >= min(number, n)
        assert tree(shares, lambda share: tree(share, str, join), join, height) == expected


def test_few_branches_wait_however_many_leaves_there_are():
    waiting, most = set(), []

    def begin(leaf):
        waiting.add((leaf,))
        most.append(len(waiting))
        return (leaf,)

    def join(one, other):
        assert one[-1] + 1 == other[0]
        waiting.difference_update({one, other})
        waiting.add(one + other)
        return one + other

    assert tree(range(1000), begin, join) == tuple(range(1000))
    assert max(most) == 6
