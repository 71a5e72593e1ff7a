"""How columns become cells: a default and exceptions, numbers that name states, and what was said about it."""

import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.cli.options import bins
from certeq.data.reading import read

N = 40
ROWS = {
    "episode": np.repeat(np.arange(4), 10),
    "time": np.tile(np.arange(10), 4),
    "age": np.linspace(18, 80, N).round(1),
    "sbp": np.linspace(90.5, 180, N),
    "action": np.tile([0, 1], 20),
    "reward": np.arange(N) % 3,
}


def test_a_number_is_for_all_columns_but_those_that_are_named():
    batch = read(ROWS, bins={"*": 3, "age": "edges:40,65"}, ends="always")
    age, sbp = batch.recipe.axes
    assert age.edges == (40.0, 65.0)
    assert sbp.size == 3
    assert read(ROWS, bins={"*": 3}, ends="always").recipe == read(ROWS, bins=3, ends="always").recipe


def test_the_command_line_says_both():
    assert bins(["3", "age=edges:18,40,65"]) == bins(["age=edges:18,40,65", "3"]) == {"*": 3, "age": "edges:18,40,65"}
    assert (bins(["3"]), bins(["age=labels"]), bins([])) == (3, {"age": "labels"}, None)
    with pytest.raises(InputError, match="one number, for all columns; got 3 and 4"):
        bins(["3", "4"])


def test_many_numbers_that_name_states_are_kept_and_that_is_said():
    state = np.arange(200) % 100
    rows = {"state": state, "next_state": np.roll(state, 1), "action": np.arange(200) // 100, "reward": state}
    batch = read(rows)
    assert batch.n_states == 100
    assert any("each of the 100 whole numbers in 'state'" in note and "quantile:4" in note for note in batch.notes)
    assert read(rows, bins=4).n_states == 4
