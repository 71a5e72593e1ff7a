"""Policies and counts that were kept load, say what they said, and pass through the newest form unchanged."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from keep_policies import COUNTS, numbers

from certeq import InputError, Policy
from certeq.data.counting import Tallied, tallied
from certeq.learning.policy_file import VERSION

FOLDER = Path(__file__).parents[1] / "data" / "policies"
KEPT = sorted(path for path in FOLDER.glob("v*.json") if not path.name.endswith(".advice.json"))
each = pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)


def told(path):
    return json.loads(path.with_name(f"{path.stem}.advice.json").read_text(encoding="utf-8"))


def test_files_of_every_version_are_kept():
    found = {path.stem.partition("-")[0] for path in KEPT}
    assert found == {f"v{version}" for version in range(1, VERSION + 1)}
    kinds = {path.stem.partition("-")[2] for path in KEPT if path.stem.startswith("v1-")}
    assert {"labels", "quantiles", "edges", "clusters", "horizon", "evidence", "rarely-tried"} <= kinds


@each
def test_a_kept_policy_gives_the_advice_that_it_gave(path):
    policy, then = Policy.load(path), told(path)
    advice = policy.apply(then["rows"], step=then["step"])
    assert policy.act(then["rows"], step=then["step"]) == then["action"]
    assert advice.visits.tolist() == then["visits"]
    assert [policy.state_names[s] if s >= 0 else None for s in advice.state] == then["state"]
    assert all(bool(reason) == (action is None) for reason, action in zip(advice.reason, then["action"], strict=True))


@each
def test_a_kept_policy_gives_the_same_advice_on_rows_that_were_written_to_a_file(path, tmp_path):
    """Numbers, flags and dates of a CSV file mean what they meant in memory."""
    policy, then = Policy.load(path), told(path)
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([then["rows"], *zip(*then["rows"].values(), strict=True)])
    assert policy.act(tmp_path / "rows.csv", step=then["step"]) == then["action"]


@each
def test_a_kept_policy_is_the_same_after_it_was_saved_by_this_version(path, tmp_path):
    policy = Policy.load(path)
    policy.save(tmp_path / "again.json")
    again = Policy.load(tmp_path / "again.json")
    assert again.recipe == policy.recipe
    assert again.action_names == policy.action_names
    np.testing.assert_array_equal(again.actions, policy.actions)
    np.testing.assert_array_equal(again.action_values, policy.action_values)
    np.testing.assert_array_equal(again.visits, policy.visits)
    assert again.settings == policy.settings
    assert again.data == policy.data


@each
def test_what_a_later_program_adds_to_a_file_is_passed_over(path, tmp_path):
    """Fields may be added without a new version; a reader takes what it knows."""
    value = json.loads(path.read_text(encoding="utf-8"))
    (tmp_path / "more.json").write_text(json.dumps(value | {"signature": {"by": "somebody"}}))
    assert Policy.load(tmp_path / "more.json").actions.tolist() == Policy.load(path).actions.tolist()


def test_a_version_to_come_is_refused_with_the_word_upgrade(tmp_path):
    value = json.loads(KEPT[0].read_text(encoding="utf-8"))
    (tmp_path / "later.json").write_text(json.dumps(value | {"version": VERSION + 1}))
    with pytest.raises(InputError, match="Upgrade certeq"):
        Policy.load(tmp_path / "later.json")


@pytest.mark.parametrize("path", sorted(COUNTS.glob("*.npz")), ids=lambda path: path.stem)
def test_kept_counts_say_what_they_said_and_are_the_same_after_they_were_saved_by_this_version(path, tmp_path):
    found = Tallied.load(path)
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    said = {name: value for name, value in numbers(found).items() if name in told}
    if told["total"] is not None:  # a pair's rows are now added up by kind, which rounds otherwise
        np.testing.assert_allclose(said.pop("total"), told.pop("total"), rtol=1e-15)
    assert said == told
    found.save(tmp_path / "again.npz")
    assert numbers(Tallied.load(tmp_path / "again.npz")) == numbers(found)


def test_counts_of_every_version_are_kept():
    found = {path.stem.partition("-")[0] for path in COUNTS.glob("*.npz")}
    assert found == {f"v{version}" for version in range(1, tallied.VERSION + 1)}
