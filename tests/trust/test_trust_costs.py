"""Small files with large contents: what is spent is linear in what was read."""

import json
from itertools import product

import numpy as np
import pytest

from certeq import InputError, read
from certeq.data.recipes.axes import Labels
from certeq.data.recipes.recipe import Recipe
from certeq.learning.learned import learn
from certeq.learning.policy import Policy
from trust import costs


def long_labels(n_axes, letters=10_000):
    """A recipe whose labels differ in their last letter only, with all combinations of two labels for each column."""
    axes = [Labels(f"c{k}", "text", ("x" * (letters - 1) + "a", "x" * (letters - 1) + "b")) for k in range(n_axes)]
    return Recipe(tuple(axes), np.array(list(product([0, 1], repeat=n_axes))))


def test_names_of_states_take_so_much_for_each_cell_however_long_the_labels_are():
    recipe = long_labels(8)
    names = recipe.names
    assert len(set(names)) == 256
    assert max(map(len, names)) < 150 * 8
    assert len(set(recipe.parts(np.arange(256)))) == 256
    assert max(len(word) for part in recipe.parts(np.arange(256)) for word in part) < 150
    alone = long_labels(1)
    assert alone.names == alone.axes[0].labels  # each is written once, so nothing need be cut


def test_a_row_without_a_state_is_explained_without_a_look_at_every_label(monkeypatch):
    """Each of 500 unknown labels among 2,000 known ones: a look at all of them each time would be a million."""
    looked = []
    monkeypatch.setattr("certeq.data.recipes.axes.label_text", lambda label: looked.append(label) or str(label))
    recipe = Recipe((Labels("s", "text", tuple(f"s{i:05d}" for i in range(2_000))),), np.arange(2_000)[:, None])
    told = recipe.explain_many({"s": [f"new{i}" for i in range(500)]}, np.arange(500))
    assert told[7] == recipe.explain({"s": ["new7"]}, 0)
    assert "(known: s00000, s00001, " in told[7]
    assert "(2000 in all)" in told[7]
    assert len(looked) <= 10 * 501


def test_whole_numbers_are_placed_with_few_looks_at_each(monkeypatch):
    """Each of 500 numbers is placed by its distance from the lowest, which is looked for once and not for each."""
    looked = []
    find = min
    monkeypatch.setattr(
        "certeq.data.recipes.axes.min", lambda numbers: looked.extend(numbers) or find(numbers), raising=False
    )
    assert Labels("s", "integer", tuple(range(5, 505))).places.tolist() == list(range(500))
    assert 500 <= len(looked) <= 2 * 500


@pytest.mark.parametrize("where", ["actions", "labels"])
def test_a_policy_file_may_not_hold_longer_labels_than_a_table(where):
    rows = {"state": list("ABAB"), "action": list("xyxy"), "reward": [1.0, 0, 1, 0], "next_state": list("BABA")}
    said = json.loads(learn(read(rows)).policy.to_bytes())
    (said["actions"] if where == "actions" else said["recipe"]["axes"][0]["labels"])[0] = "A" * 10_001
    with pytest.raises(InputError, match=r"a text of 10,001 characters; a label may have 10,000.*CERTEQ_MAX_LABEL"):
        Policy.from_json(said)


@pytest.mark.slow
def test_time_memory_and_disk_stay_within_so_much_for_each_cell_and_letter(tmp_path):
    found, failures = costs.campaign(tmp_path, np.random.default_rng(1), 6)
    assert failures == []
    assert sum(found.values()) == 6
