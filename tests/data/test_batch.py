"""A batch is checked when it is born, and says which row is wrong."""

import numpy as np
import pytest

from certeq import Batch, InputError
from certeq.data.batch import ENDED

ROWS = {"state": [0, 1, 2], "action": [0, 1, 0], "next_state": [1, 2, ENDED], "n_states": 3, "n_actions": 2}


def test_rows_become_whole_numbers_and_names_become_numbers():
    batch = Batch(**ROWS | {"state": [0.0, 1.0, 2.0], "reward": [1, 2, 3]})
    assert len(batch) == 3
    assert batch.state.dtype == batch.action.dtype == batch.next_state.dtype == np.int64
    assert batch.reward.dtype == np.float64
    assert batch.state_names == ("0", "1", "2")
    assert batch.ended.tolist() == [False, False, True]


def test_no_rows_are_fine_when_the_sizes_are_said():
    assert len(Batch([], [], [], 3, 2)) == 0


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError):
        Batch(**ROWS).n_states = 4


BAD = {
    "unknown state": ({"state": [0, 3, 1]}, "Row 1: state is 3, but must be between 0 and 2"),
    "negative state": ({"state": [0, -1, 1]}, "Row 1: state is -1"),
    "half a state": ({"state": [0, 1, 1.5]}, r"Row 2: state is 1\.5, but must be a whole number"),
    "missing state": ({"state": [0, np.nan, 1]}, r"state\[1\] is nan"),
    "words": ({"state": ["a", "b", "c"]}, "state must be an array of numbers"),
    "unknown action": ({"action": [0, 2, 0]}, "Row 1: action is 2, but must be between 0 and 1"),
    "ended is not a state to be in": ({"state": [0, ENDED, 1]}, "Row 1: state is -1"),
    "below ended": ({"next_state": [0, -2, 1]}, "Row 1: next_state is -2, but must be between -1 and 2"),
    "shorter column": ({"action": [0, 1]}, r"action has shape \(2,\), but there are 3 rows"),
    "table for a column": ({"next_state": [[0, 1, 2]]}, r"next_state has shape \(1, 3\)"),
    "shorter rewards": ({"reward": [1, 2]}, r"reward has shape \(2,\), but there are 3 rows"),
    "NaN reward": ({"reward": [1, np.nan, 2]}, r"reward\[1\] is nan"),
    "data sets without their number": ({"data_set": [0, 0, 1]}, "data_set and n_data_sets go together"),
    "number without data sets": ({"n_data_sets": 2}, "data_set and n_data_sets go together"),
    "unknown data set": (
        {"data_set": [0, 2, 1], "n_data_sets": 2},
        "Row 1: data_set is 2, but must be between",
    ),
    "too few names": ({"state_names": ("a", "b")}, "state_names needs 3 different names"),
    "same names": ({"action_names": ("a", "a")}, "action_names needs 2 different names"),
    "half an episode": ({"episode": [0, 0.5, 1]}, r"Row 1: episode is 0\.5"),
}


@pytest.mark.parametrize(("wrong", "says"), BAD.values(), ids=BAD)
def test_bad_rows_are_named(wrong, says):
    with pytest.raises(InputError, match=says):
        Batch(**ROWS | wrong)
