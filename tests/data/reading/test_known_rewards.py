"""A table that says what each pair earns."""

import numpy as np
import polars as pl
import pytest

from certeq import InputError, environment, learn, read, sampling
from certeq.data.reading import known_rewards

ROWS = {
    "episode": [1] * 6,
    "time": range(6),
    "state": ["A", "B", "A", "B", "A", "C"],
    "action": ["x", "y", "x", "x", "y", "x"],
    "value seen": [0.0] * 6,
}
BATCH = read(ROWS, reward=False)  # C is only arrived in; the pair (B, x) and (B, y), (A, x), (A, y) were tried
TABLE = {"state": ["A", "A", "B", "B"], "action": ["x", "y", "x", "y"], "reward": [1.0, 2, 3, 4]}


def refused(table, says, **told):
    with pytest.raises(InputError, match=says) as caught:
        known_rewards(BATCH, table, **told)
    assert "\n" not in str(caught.value)


def test_each_line_is_the_reward_of_its_pair():
    found = known_rewards(BATCH, TABLE)
    np.testing.assert_allclose(found[:2], [[1, 2], [3, 4]])
    shuffled = {name: [column[i] for i in (3, 0, 2, 1)] for name, column in TABLE.items()}
    np.testing.assert_array_equal(known_rewards(BATCH, shuffled), found)


def test_a_pair_that_was_not_tried_needs_no_line():
    rows = {"state": ["A", "B", "A"], "action": ["x", "x", "y"], "next_state": ["B", "A", "B"]}
    batch = read(rows, reward=False)
    lines = {"state": ["A", "A", "B"], "action": ["x", "y", "x"], "reward": [1.0, 3.0, 8.0]}
    np.testing.assert_allclose(known_rewards(batch, lines), [[1, 3], [8, 8]])  # (B, y): as the other line of B


def test_a_state_without_any_line_earns_the_mean_of_all():
    np.testing.assert_allclose(known_rewards(BATCH, TABLE)[2], 2.5)


def test_lines_about_what_never_occurred_are_left_out():
    more = {"state": ["Z", "A"], "action": ["x", "zz"], "reward": [np.nan, 1e9]}
    table = {name: [*TABLE[name], *more[name]] for name in TABLE}
    np.testing.assert_array_equal(known_rewards(BATCH, table), known_rewards(BATCH, TABLE))


def test_a_file_does_as_well_and_the_column_may_have_another_name(tmp_path):
    pl.DataFrame(TABLE).rename({"reward": "utility"}).write_csv(tmp_path / "rewards.csv")
    found = known_rewards(BATCH, tmp_path / "rewards.csv", reward="utility")
    np.testing.assert_array_equal(found, known_rewards(BATCH, TABLE))


def test_continuous_states_go_by_their_bins():
    source = {"episode": [1] * 8, "time": range(8), "x": np.arange(8) + 0.5, "action": ["a"] * 8}
    batch = read(source, reward=False, bins={"x": "edges:4"})
    found = known_rewards(batch, {"x": [-100.0, 100.0], "action": ["a", "a"], "reward": [1.0, 2.0]})
    np.testing.assert_array_equal(found, [[1], [2]])


def test_what_is_wrong_with_the_table_is_said():
    refused({**TABLE, "reward": [1.0, np.inf, 3, 4]}, "Row 2 of the reward table has no finite 'reward'")
    refused({**TABLE, "reward": ["1", "two", "3", "4"]}, "Row 2 of the reward table has no finite 'reward'")
    refused({n: [*c, c[0]] for n, c in TABLE.items()}, "more than one line for state 'A', action 'x'")
    refused({n: c[1:] for n, c in TABLE.items()}, r"no line for state 'A', action 'x', which was tried\.")
    refused({n: c[2:] for n, c in TABLE.items()}, r"which was tried \(2 pairs in all\)")
    refused({"state": ["A"], "action": ["x"], "rewards": [1.0]}, r"no column 'reward'\. Did you mean 'rewards'")
    refused({"stat": ["A"], "action": ["x"], "reward": [1.0]}, r"no column 'state'.*Did you mean 'stat'")
    refused({"state": ["A"], "reward": [1.0]}, "no column 'action'")
    refused({"state": [], "action": [], "reward": []}, "no rows")
    simulated = sampling.trajectories(environment("loop"), 2, 2, rng=0)
    with pytest.raises(InputError, match="read from a table"):
        known_rewards(simulated, TABLE)


def test_known_rewards_are_planned_with():
    found = learn(BATCH, reward=known_rewards(BATCH, TABLE), discount=0.0)
    assert found.policy.act({"state": ["A", "B"]}) == ["y", "y"]
