"""The same seed gives the same bytes, whatever the threads and the order of Python's sets."""

from trust import sameness

MIXED = {
    "many threads": sameness.CONDITIONS["seven threads"],
    "one thread, another order of sets": sameness.CONDITIONS["one thread"]
    | sameness.CONDITIONS["another order of sets"],
}


def test_all_that_learn_writes_is_the_same_bytes_whatever_the_threads(tmp_path):
    assert sameness.differences("learn", tmp_path, MIXED) == []


def test_simulated_rows_are_the_same_bytes_whatever_the_threads(tmp_path):
    assert sameness.differences("simulate", tmp_path, MIXED) == []
