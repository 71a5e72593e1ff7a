"""What a batch remembers of the table that it was made of."""

import dataclasses
import pickle

import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.binning import binning_report
from certeq.data.reading import columns, read
from certeq.data.recipes import fit

ROWS = {
    "patient": [1, 1, 1, 2, 2, 2],
    "day": [0, 1, 2, 0, 1, 2],
    "size": [5.5, 4.5, 3.5, 6.5, 7.5, 8.5],
    "drug": ["a", "a", "b", "b", "a", "b"],
    "reward": [1, 1, 1, 0, 0, 0],
}


def test_the_recipe_of_a_batch_gives_its_own_states_back():
    batch = read(ROWS, bins=2)
    table = columns(ROWS)
    kept = np.array([0, 1, 3, 4])
    np.testing.assert_array_equal(batch.recipe.encode(table)[kept], batch.state)
    np.testing.assert_array_equal(batch.action_recipe.encode(table)[kept], batch.action)
    assert batch.recipe.names == batch.state_names
    assert batch.recipe.encode({"size": [-1e9, 1e9]}).tolist() == [0, 1]


def test_whole_numbers_that_were_cut_unasked_are_mentioned():
    n = 40
    aged = {"patient": [1] * n, "day": range(n), "age": range(30, 30 + n), "size": np.arange(n) + 0.5}
    aged |= {"drug": ["a", "b"] * (n // 2), "reward": [0] * n}
    note = (
        "I cut 'age' at its quantiles into 4 bins; say bins={'age': 'labels'} (--bins age=labels) to keep every value."
    )
    assert [text for text in read(aged).notes if "cut" in text] == [note]
    for told in ("labels", "quantile:4"):
        assert not [text for text in read(aged, bins={"age": told}).notes if "cut" in text]


def test_a_batch_can_be_sent_to_another_process():
    batch = read(ROWS)
    again = pickle.loads(pickle.dumps(batch))
    assert again.recipe == batch.recipe
    assert again.dropped == batch.dropped
    assert again.notes == batch.notes
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.notes = ()


def test_a_batch_of_plain_numbers_has_a_recipe_too():
    numbers = Batch([0, 1], [0, 0], [1, 0], n_states=3, n_actions=1)
    assert numbers.recipe is None
    assert numbers.recipe_or_numbers.encode({"state": [2, 0, 5]}).tolist() == [2, 0, -1]
    assert numbers.recipe_or_numbers.names == numbers.state_names
    named = Batch([0, 1], [0, 0], [1, 0], n_states=2, n_actions=1, state_names=("sick", "healthy"))
    assert named.recipe_or_numbers.encode({"state": ["healthy", "sick", "dead"]}).tolist() == [1, 0, -1]
    assert read(ROWS).recipe_or_numbers == read(ROWS).recipe


def test_what_does_not_fit_is_refused():
    recipe = fit({"x": ["a", "b"]})
    with pytest.raises(InputError, match="recipe makes 2 of them, but the batch has 3"):
        Batch([0], [0], [1], n_states=3, n_actions=1, recipe=recipe)
    with pytest.raises(InputError, match="action_recipe makes 2"):
        Batch([0], [0], [1], n_states=3, n_actions=1, action_recipe=recipe)
    with pytest.raises(InputError, match="must be at least 0"):
        Batch([0], [0], [1], n_states=3, n_actions=1, dropped={"row without an action": -1})


def test_the_binning_report_reads_a_batch():
    report = binning_report(read(ROWS, bins=2), permutations=10)
    assert (report.used, report.possible, report.rows) == (2, 2, 4)
    assert report.markov.rows == 2
