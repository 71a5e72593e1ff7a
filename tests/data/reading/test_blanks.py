"""What is not there: padding after the end is left out, missing values are cells or the last value, never a guess."""

import json

import numpy as np
import pytest

import certeq
from certeq.base.errors import InputError
from certeq.data.reading import read
from certeq.data.recipes import Bins, OrMissing, Recipe


def padded(lengths, total, *, done=False, state=9.5):
    """Episodes of some lengths, filled up with the action -1 to a common one."""
    step = np.tile(np.arange(total), len(lengths))
    real = step < np.repeat(lengths, total)
    rows = {
        "episode": np.repeat(np.arange(len(lengths)), total),
        "time": step,
        "x": np.where(real, (step * 7) % 5 + 0.5, state),
        "action": np.where(real, step % 2, -1),
        "reward": np.where(real, step % 3, 0),
    }
    return rows | ({"done": step >= np.repeat(lengths, total) - 1} if done == "on" else {})


def test_padding_is_left_out_and_said():
    lengths = [4, 6, 3, 6]
    batch = read(padded(lengths, 8), ends="always")
    assert len(batch) == sum(lengths)
    assert batch.n_actions == 2
    assert batch.dropped == {"padding after the end of an episode": 32 - sum(lengths)}
    (said,) = batch.decisions
    assert said.startswith("13 rows after the end, with the action -1: left out as padding.")
    assert "--bins action=labels" in said
    assert int(batch.ended.sum()) == 4


def test_padding_that_repeats_the_mark_of_the_end_keeps_it_once():
    rows = padded([4, 6, 3, 6], 8, done="on")
    batch = read(rows)
    assert int(batch.ended.sum()) == 4
    assert len(batch) == 19
    late = dict(rows, done=rows["action"] == -1)  # the mark stands where no action is taken any more
    assert int(read(late).ended.sum()) == 4
    assert len(read(late)) == 19


def test_one_such_row_only_tells_where_the_episode_ended_up():
    batch = read(padded([4, 4, 4], 5))
    assert batch.n_actions == 2
    assert len(batch) == 12
    assert (batch.next_state[[3, 7, 11]] == batch.n_states - 1).all()  # 9.5 lies in the highest cell
    assert batch.dropped == {"row without an action": 3}
    assert "stands only on last rows, 3 of them: taken for no action" in batch.decisions[0]


@pytest.mark.parametrize(
    "change",
    [
        {"action": np.where(np.arange(32) % 8 == 2, -1, np.arange(32) % 2)},  # in the middle: an action
        {"reward": np.arange(32)},  # something is earned there
    ],
)
def test_minus_one_elsewhere_is_an_action(change):
    assert read(padded([4, 6, 3, 6], 8) | change, ends="always").n_actions == 3


def test_minus_one_is_an_action_if_one_says_so():
    assert read(padded([4, 6, 3, 6], 8), ends="always", bins={"action": "labels"}).n_actions == 3


# ---- missing values ----

SBP = [None, 120.5, None, 90.5, 130.5, None, None, 95.5]
GAPS = {
    "episode": [0, 0, 0, 0, 1, 1, 1, 1],
    "time": [0, 1, 2, 3] * 2,
    "sbp": SBP,
    "ward": ["a", "b", None, "a", "b", "b", "a", None],
    "action": [0, 1] * 4,
    "reward": [1.0, 2.0, 3.0, 4.0] * 2,
}
CUT = {"bins": {"sbp": "edges:100"}, "ends": "always"}


def words(batch):
    return [batch.state_names[s] for s in batch.state]


def test_missing_values_are_refused_with_the_ways_out():
    with pytest.raises(InputError, match=r"'sbp' is missing, and 3 further.*--missing sbp=category.*'last'"):
        read(GAPS, **CUT)


def test_missing_is_a_cell_of_its_own_where_asked():
    batch = read(GAPS, missing={"sbp": "category", "ward": "category"}, **CUT)
    assert words(batch)[:4] == [
        "sbp missing, ward=a",
        "sbp 100 or more, ward=b",
        "sbp missing, ward missing",
        "sbp below 100, ward=a",
    ]
    assert "'sbp' is missing in 4 rows: “missing” is a cell of its own in 4." in batch.notes
    assert read(GAPS, missing="category", **CUT).state_names == batch.state_names


def test_the_last_value_of_the_episode_is_carried_on_and_nothing_before_the_first():
    batch = read(GAPS, missing={"*": "category", "sbp": "last"}, **CUT)
    assert [name.split(",")[0] for name in words(batch)] == [
        "sbp missing",
        "sbp 100 or more",
        "sbp 100 or more",
        "sbp below 100",
        "sbp 100 or more",
        "sbp 100 or more",
        "sbp 100 or more",
        "sbp below 100",
    ]
    assert (
        "'sbp' is missing in 4 rows: the last value of the episode was taken in 3 and “missing” is a cell of its own "
        "in 1." in batch.notes
    )


def test_a_column_that_is_left_out_may_have_been_said_to_be_carried_on():
    """Its name is that of an outcome, and it is known only when the episode is over."""
    e = np.arange(240) // 6
    rows = {
        "episode": e, "time": np.arange(240) % 6, "sbp": [None if i % 5 == 1 else float(i % 3) for i in range(240)],
        "outcome": np.array(["good", "bad", "fair"])[e % 3].tolist(), "action": np.arange(240) * 7 % 11 % 2,
        "reward": np.sin(np.arange(240)),
    }  # fmt: skip
    batch = read(rows, missing={"sbp": "last", "outcome": "last"}, ends="never")
    assert batch.carried.columns == ("sbp",)


def test_rows_are_carried_on_in_order_of_time_however_they_stand():
    order = np.random.default_rng(0).permutation(8)
    shuffled = {name: [values[i] for i in order] for name, values in GAPS.items()}
    one, other = (read(rows, missing={"*": "category", "sbp": "last"}, **CUT) for rows in (GAPS, shuffled))
    for e in (0, 1):  # episodes are numbered as they begin
        same = GAPS["episode"][order[0]] if e == 0 else 1 - GAPS["episode"][order[0]]
        assert [words(other)[i] for i in np.flatnonzero(other.episode == e)] == [
            words(one)[i] for i in np.flatnonzero(one.episode == same)
        ]


def test_a_policy_advises_on_rows_that_lack_a_value_if_it_knew_such_rows():
    policy = certeq.learn(read(GAPS, missing="category", **CUT)).policy
    kept = type(policy).from_json(json.loads(json.dumps(policy.to_json())))
    assert isinstance(kept.recipe.axes[0], OrMissing)
    assert kept.recipe == policy.recipe == Recipe.from_json(policy.recipe.to_json())
    advice = kept.apply({"sbp": [None, 95.5, 120.5], "ward": ["a", "a", None]})
    assert (advice.state[:2] >= 0).all()
    assert advice.reason[2] == "the combination sbp 100 or more, ward missing never occurred in the data"


def test_a_state_with_a_missing_value_lies_nowhere():
    recipe = read(GAPS, missing="category", **CUT).recipe
    lost = np.array(["sbp missing" in name for name in recipe.names])
    np.testing.assert_array_equal(recipe.positions.placed, ~lost)
    assert recipe.axes[0].present == Bins("sbp", (100.0,))


def test_in_the_explicit_layout_a_missing_part_of_the_next_state_is_a_cell_and_none_of_it_is_no_next_state():
    rows = {"x": ["a", None, "b"], "y": ["u", "u", "v"], "action": [0, 1, 0], "reward": [1, 2, 3]}
    rows |= {"next_x": [None, "b", None], "next_y": ["u", "v", None], "done": [0, 0, 1]}
    batch = read(rows, missing="category")
    assert [*batch.next_state] == [batch.state_names.index("x missing, y=u"), batch.state_names.index("x=b, y=v"), -1]
    with pytest.raises(InputError, match="carried forward only where the next state is in the next row"):
        read(rows, missing="last")


@pytest.mark.parametrize("missing", ["guess", {"sbp": "mean"}])
def test_other_ways_are_refused(missing):
    with pytest.raises(InputError, match="way to treat missing values"):
        read(GAPS, missing=missing)


def test_a_column_that_is_not_there_cannot_miss_values():
    with pytest.raises(InputError, match=r"no state column 'spb'.*Did you mean 'sbp'"):
        read(GAPS, missing={"spb": "last"})
