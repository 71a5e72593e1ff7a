"""Rows in order, and sections of long episodes where there are few."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import Batch
from certeq.data.order import FEW, LONG, SECTIONS, section_of, sections, unit_of


def sections_by_hand(lengths):
    """How many rows each section has, episode by episode."""
    found = []
    for length in lengths:
        pieces = 1
        if len(lengths) < FEW:
            pieces = min(round(SECTIONS * length / sum(lengths)), length // LONG)
        pieces = max(pieces, 1)
        begins = [-(-k * length // pieces) for k in range(pieces + 1)]  # row r is in section floor(r * pieces / length)
        found += [after - before for before, after in pairwise(begins)]
    return found


LENGTHS = st.lists(st.integers(1, 700), min_size=1, max_size=FEW + 2)


@given(LENGTHS)
def test_sections_are_those_cut_by_hand(lengths):
    number = section_of(np.repeat(np.arange(len(lengths)), lengths))
    assert np.bincount(number).tolist() == sections_by_hand(lengths)
    assert set(np.diff(number)) <= {0, 1}


@given(LENGTHS)
def test_no_section_is_short_that_was_cut_and_none_reaches_into_another_episode(lengths):
    episode = np.repeat(np.arange(len(lengths)), lengths)
    number = section_of(episode)
    size = np.bincount(number)
    whole = size[number] == np.array(lengths)[episode]
    assert (whole | (size[number] >= LONG)).all()
    assert all(len(set(episode[number == k])) == 1 for k in range(len(size)))


def test_episodes_are_whole_where_there_are_enough_or_all_are_short():
    many, short = np.repeat(np.arange(FEW), 500), np.repeat(np.arange(3), 2 * LONG - 1)
    np.testing.assert_array_equal(section_of(many), many)
    np.testing.assert_array_equal(section_of(short), short)


@pytest.mark.parametrize("seed", range(3))
def test_neither_the_order_of_the_table_nor_the_name_of_the_episode_changes_who_belongs_together(seed):
    random, n = np.random.default_rng(seed), 300
    state = random.integers(3, size=n + 1)
    rows = {"state": state[:-1], "action": random.integers(2, size=n), "next_state": state[1:], "time": np.arange(n)}
    batch = Batch(**rows, n_states=3, n_actions=2, episode=np.full(n, 4))
    turned = random.permutation(n)
    other = Batch(**{name: part[turned] for name, part in rows.items()}, n_states=3, n_actions=2, episode=np.full(n, 9))
    assert sections(batch).length.min() >= LONG
    np.testing.assert_array_equal(unit_of(batch)[turned], unit_of(other))


def test_rows_without_episodes_are_units_by_themselves():
    batch = Batch([0, 1, 0], [0, 0, 1], [1, 0, 1], 2, 2)
    np.testing.assert_array_equal(unit_of(batch), np.arange(3))
