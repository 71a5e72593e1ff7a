"""The same seed gives the same bytes, whatever the threads and the order of Python's sets."""

import numpy as np
import pytest

from certeq.data.counting import count
from trust import sameness

MIXED = {
    "many threads": sameness.CONDITIONS["seven threads"],
    "one thread, another order of sets": sameness.CONDITIONS["one thread"]
    | sameness.CONDITIONS["another order of sets"],
}


@pytest.mark.slow
def test_all_that_learn_writes_is_the_same_bytes_whatever_the_threads(tmp_path):
    assert sameness.differences("learn", tmp_path, MIXED) == []


@pytest.mark.slow
def test_simulated_rows_are_the_same_bytes_whatever_the_threads(tmp_path):
    assert sameness.differences("simulate", tmp_path, MIXED) == []


@pytest.mark.slow
def test_counts_and_sums_of_rewards_are_the_same_bytes_on_any_threads_and_processes(tmp_path):
    tried, wrong = sameness.unlike(sameness.ways_to_count(tmp_path))
    assert tried == 4
    assert wrong == []


@pytest.mark.slow
def test_counts_are_the_same_bytes_in_pieces_of_any_size_and_sums_of_rewards_but_for_rounding(tmp_path):
    tried, wrong = sameness.unlike(sameness.pieces_to_count(tmp_path))
    assert tried == 3
    assert wrong == []
    one, other = (count(tmp_path / "few", piece_rows=size) for size in (30_000, 333))
    for name in ("total", "scatter", "arrived"):
        a, b = getattr(one.rewards, name), getattr(other.rewards, name)
        assert np.abs(a - b).max() < 1e-12 * np.abs(a).max()


def test_other_bytes_would_be_noticed():
    assert sameness.unlike(iter([("a", b"x"), ("b", b"x"), ("c", b"y")])) == (2, ["c"])
