"""Policy: what is kept and shipped. It survives the trip through JSON, and a damaged file is an error in words."""

import contextlib
import copy
import json
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import InputError, Policy, learn, read
from certeq.base.limits import most
from certeq.learning import policy_file
from certeq.regularizers import DEFAULT
from certeq.report.exports import written

LOG = {
    "episode": [1, 1, 1, 1, 1, 2, 2, 2, 2, 2],
    "time": [0, 1, 2, 3, 4] * 2,
    "ward": ["A", "B", "A", "B", "A", "B", "B", "A", "A", "C"],
    "pressure": [80.5, 90.25, 101, 120, 95.5, 88, 93, 99, 121.5, 130],
    "action": ["up", "down", "up", "down", "up", "up", "up", "down", "down", "up"],
    "reward": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10],
}
BINS = {"pressure": "edges:90,100"}


def learned(**told):
    return learn(read(LOG, bins=BINS), **told)


STEADY = learned().policy
TIMED = learned(horizon=3).policy


def one(ward="A", pressure=95.0):
    """A new patient."""
    return {"ward": [ward], "pressure": [pressure]}


def same(one, other):
    assert one.recipe == other.recipe
    assert one.action_names == other.action_names
    assert one.horizon == other.horizon
    for name in ("actions", "visits", "action_values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert dict(one.settings) == dict(other.settings)
    assert dict(one.data) == dict(other.data)


def shuffled(value):
    """The same JSON with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = random.Random(3).sample(list(value), len(value))
        return {key: shuffled(value[key]) for key in keys}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


# ---- shipping ----


@pytest.mark.parametrize("policy", [STEADY, TIMED, learned(unvisited="uniform").policy])
def test_a_policy_comes_back_as_it_was_saved(policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    same(Policy.load(tmp_path / "policy.json"), policy)


@pytest.mark.parametrize("policy", [STEADY, TIMED])
def test_opening_and_saving_the_file_with_another_json_program_changes_nothing(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy.save(path)
    path.write_text(json.dumps(shuffled(json.loads(path.read_text())), indent=7, ensure_ascii=True))
    same(Policy.load(path), policy)
    assert Policy.load(path).act(LOG, step=1) == policy.act(LOG, step=1)


def test_what_may_not_be_chosen_stays_so_in_the_file():
    assert np.isneginf(STEADY.action_values).any()
    again = Policy.from_json(json.loads(json.dumps(STEADY.to_json(), allow_nan=False)))
    np.testing.assert_array_equal(np.isneginf(again.action_values), np.isneginf(STEADY.action_values))


def test_the_file_is_for_people_too(tmp_path):
    STEADY.save(tmp_path / "policy.json")
    text = (tmp_path / "policy.json").read_text()
    assert '"format": "certeq-policy"' in text
    assert "ward=A, pressure below 90" in text
    assert f'"regularizer": "{DEFAULT}"' in text
    with pytest.raises(InputError, match="already exists"):
        STEADY.save(tmp_path / "policy.json")
    STEADY.save(tmp_path / "policy.json", force=True)


# ---- advising ----


def test_rows_that_were_learned_from_get_the_plans_own_actions():
    found = learned()
    advice = found.policy.apply(LOG)
    kept = advice.state[:4].tolist() + advice.state[5:9].tolist()  # the last row of an episode is no transition
    assert kept == found.batch.state.tolist()
    np.testing.assert_array_equal(advice.action, found.plan.policy[advice.state])
    advised = advice.action >= 0
    np.testing.assert_array_equal(
        advice.visits[advised], found.counts.visits[advice.state[advised], advice.action[advised]]
    )
    assert (advice.visits[~advised] == 0).all()
    assert all(bool(reason) != ok for reason, ok in zip(advice.reason, advised, strict=True))


def test_unknown_labels_are_named_with_the_known_ones():
    advice = STEADY.apply(one(ward="Z"))
    assert (advice.state[0], advice.action[0], advice.visits[0]) == (-1, -1, 0)
    assert advice.reason[0] == "'ward' is 'Z', which never occurred in the data (known: A, B, C)"
    assert STEADY.act(one(ward="Z")) == [None]


def test_values_beyond_the_bins_belong_to_the_end_bins():
    low, high = (STEADY.apply(one(pressure=x)).state[0] for x in (-1e9, 1e9))
    assert STEADY.state_names[low] == "ward=A, pressure below 90"
    assert STEADY.state_names[high] == "ward=A, pressure 100 or more"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (one(pressure=np.nan), "'pressure' is missing"),
        (one(ward=None), "'ward' is missing"),
        (one("C", 85.0), "the combination ward=C, pressure below 90 never occurred in the data"),
        (one("C", 130.0), "no action was tried often enough in this state"),
    ],
)
def test_rows_without_advice_say_why(row, reason):
    assert STEADY.apply(row).reason == (reason,)


LAB = {"state": "lab", "action": "dose", "reward": "gain", "episode": "stay", "time": "hour", "ends": "never"}


def carried_rows():
    """Episodes in which a lab value is measured at first, and later only now and then."""
    random = np.random.default_rng(4)
    stay, hour = np.repeat(np.arange(40), 6), np.tile(np.arange(6), 40)
    lab = random.integers(0, 3, 240).astype(float)
    lab[(hour > 0) & (random.random(240) < 0.5)] = np.nan
    return {
        "stay": stay, "hour": hour, "lab": lab, "dose": random.integers(0, 2, 240), "gain": random.normal(size=240),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["policy.json", "policy.npz"])
def test_last_values_are_taken_for_missing_ones_as_they_were_when_the_policy_was_learned(name, tmp_path):
    table = carried_rows()
    learn(read(table, missing="last", **LAB), discount=0.9).policy.save(tmp_path / name)
    policy = Policy.load(tmp_path / name)
    last, known = table["lab"].copy(), -1
    for i in range(240):  # the plain twin: rows stand in order
        known = i if np.isfinite(table["lab"][i]) or table["hour"][i] == 0 else known
        last[i] = table["lab"][known]
    turned = np.random.default_rng(1).permutation(240)
    found = policy.apply({name: column[turned] for name, column in table.items()})
    wanted = policy.apply(table | {"lab": last})
    np.testing.assert_array_equal(found.state, wanted.state[turned])
    np.testing.assert_array_equal(found.action, wanted.action[turned])


def test_rows_that_lack_a_value_and_do_not_say_when_they_were_get_no_advice():
    table = carried_rows()
    policy = learn(read(table, missing="last", **LAB), discount=0.9).policy
    advice = policy.apply({"lab": table["lab"]})
    gone = np.isnan(table["lab"])
    assert (advice.action[gone] == -1).all()
    assert (advice.action[~gone] >= 0).all()
    assert advice.reason[np.flatnonzero(gone)[0]].endswith("fill it in, or give the rows 'stay' and 'hour' too")
    assert policy.apply({"lab": [1.0, 2.0]}).reason == ("", "")


def later_rows():
    """The same, where every other episode begins without a value: that is a cell of its own."""
    table = carried_rows()
    return table | {"lab": np.where(np.arange(240) % 12 == 0, np.nan, table["lab"])}


def test_where_episode_and_time_do_not_tell_which_value_came_last_nothing_is_guessed():
    table = later_rows()
    policy = learn(read(table, missing="last", **LAB), discount=0.9).policy
    rows = {"stay": [1, 1, 1, 2, 2, None, 3, 3], "hour": [0, 1, 1, 0, 1, 0, 0, 1]}
    lab = [1.0, 2.0, None, 2.0, None, None, None, None]
    found = policy.apply(rows | {"lab": lab})
    lost = found.reason[2]
    assert lost.endswith("last value of the episode, and 'stay' and 'hour' do not tell which: fill it in")
    assert [found.reason[i] for i in (2, 5)] == [lost, lost]
    np.testing.assert_array_equal(found.action[[2, 5]], -1)
    assert found.state[4] == found.state[3]
    assert found.state[6] == found.state[7] >= 0  # nothing was measured yet, which is a cell of its own
    turned = np.array([2, 0, 1, 4, 3, 5, 7, 6])
    again = policy.apply({name: [column[i] for i in turned] for name, column in (rows | {"lab": lab}).items()})
    np.testing.assert_array_equal(again.action, found.action[turned])
    with pytest.raises(InputError, match="Columns must have one length"):
        policy.apply({"lab": [None], "stay": [1, 2], "hour": [0, 1]})


def test_times_that_are_blank_or_cannot_be_read_leave_rows_that_lack_nothing_alone():
    day = np.datetime64("2024-05-01") + carried_rows()["hour"].astype("timedelta64[D]")
    table = carried_rows() | {"hour": day}
    policy = learn(read(table, missing="last", **LAB), discount=0.9).policy
    for hour in ([None, None], ["2024-05-01", "soon"], np.array(["NaT", "NaT"], dtype="datetime64[D]")):
        found = policy.apply({"stay": [1, 2], "hour": hour, "lab": [1.0, None]})
        assert found.action[0] >= 0
        assert found.action[1] == -1
        assert found.reason[1].endswith("and 'stay' and 'hour' do not tell which: fill it in")
    nobody = policy.apply({"stay": [None], "hour": np.array(["2024-05-01"], dtype="datetime64[D]"), "lab": [None]})
    assert nobody.action[0] == -1


def test_no_value_is_carried_over_where_only_marks_told_episodes_apart():
    table = carried_rows()
    done = table["hour"] == 5
    named = {name: column for name, column in table.items() if name in ("lab", "dose", "gain")} | {"over": done}
    words = {name: LAB[name] for name in ("state", "action", "reward")}
    policy = learn(read(named, missing="last", done="over", layout="long", **words), discount=0.9).policy
    found = policy.apply({"lab": [0.0, None], "over": [True, False]})
    assert found.action[1] == -1
    assert found.reason[1].endswith("with the last value of the episode: fill it in")
    assert policy.apply({"lab": [0.0, None]}).reason[1] == found.reason[1]  # a time would not help


def test_exports_give_no_advice_where_a_last_value_would_be_taken():
    policy = learn(read(later_rows(), missing="last", **LAB), discount=0.9).policy
    assert any("missing" in name for name in policy.state_names)
    assert [code.missing for code in written.of(policy).codes] == [None]
    kept = learn(read(later_rows(), missing="category", **LAB), discount=0.9).policy
    assert [code.missing for code in written.of(kept).codes] != [None]


@pytest.mark.parametrize("told", [[], {"columns": []}, {"columns": ["lab"], "episode": 3}, {"columns": "lab"}])
def test_what_is_wrong_with_carried_columns_is_said(told):
    policy = learn(read(carried_rows(), missing="last", **LAB), discount=0.9).policy
    damaged = replace(policy, data={**policy.data, "carried": told})
    with pytest.raises(InputError, match=r"data\.carried must name columns"):
        damaged.apply({"lab": [1.0]})


def test_a_missing_column_is_named_with_the_nearest():
    with pytest.raises(InputError, match=r"no column 'pressure', which .*Did you mean 'presure'\? They have: ward"):
        STEADY.act({"ward": ["A"], "presure": [90.0]})


def test_no_rows_get_no_advice():
    assert STEADY.act({"ward": [], "pressure": []}) == []


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"one length.*ward: 2, pressure: 1"):
        STEADY.act({"ward": ["A", "B"], "pressure": [95.0]})


def test_other_columns_do_not_matter_and_numbers_may_be_text():
    assert STEADY.act(one() | {"noise": [object()]}) == STEADY.act(one())
    assert STEADY.act(one(pressure="95")) == STEADY.act(one())


# ---- horizons ----


def test_a_policy_with_a_horizon_follows_the_steps():
    rows = {name: LOG[name] for name in ("ward", "pressure")}
    states = TIMED.apply(rows, step=0).state
    for step in (0, 1, 2):
        np.testing.assert_array_equal(TIMED.apply(rows, step=step).action, TIMED.actions[step, states])
    each = np.arange(10) % 3
    np.testing.assert_array_equal(TIMED.apply(rows, step=each).action, TIMED.actions[each, states])


@pytest.mark.parametrize("step", [-1, 3, 10**6])
def test_beyond_the_horizon_there_is_no_advice(step):
    assert TIMED.act(one(), step=step) == [None]
    assert TIMED.apply(one(), step=step).reason == ("the policy plans for 3 decisions",)


@pytest.mark.parametrize("step", [None, [0, 1], 1.5, [np.nan], "time", "1", [[0]]])
def test_a_step_that_is_no_number_of_decisions_is_refused(step):
    with pytest.raises(InputError, match=r"step|decisions"):
        TIMED.act(one(), step=step)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (None, r"with step= \(--step\)"),
        ([0, 1], r"each of the 1 rows; got an array of shape \(2,\)"),
        (1.5, r"whole number; step is 1\.5"),
        ([np.nan], r"whole number; step\[0\] is nan"),
        ([np.inf], r"whole number; step\[0\] is inf"),
        ("time", "got 'time'"),
        (True, "got True"),
        ([None], "got None"),
        ([[0], [0, 1]], "one for each"),
    ],
)
def test_what_is_wrong_with_a_step_is_said(step, says):
    with pytest.raises(InputError, match=says):
        TIMED.apply(one(), step=step)


def test_whole_floats_and_small_integers_are_steps_too():
    for step in (1.0, [1.0], np.array([1], dtype=np.uint8), np.float32(1)):
        assert TIMED.act(one(), step=step) == TIMED.act(one(), step=1)


# ---- runner-up ----


def test_the_runner_up_is_the_second_best_and_the_gap_what_it_costs():
    second, gap = TIMED.runner_up()
    assert second.shape == gap.shape == TIMED.actions.shape
    for (t, s), action in np.ndenumerate(TIMED.actions):
        rest = [a for a in range(2) if a != action and np.isfinite(TIMED.action_values[t, s, a])]
        if action < 0 or not rest:
            assert second[t, s] == -1
            assert np.isnan(gap[t, s])
        else:
            best = max(rest, key=lambda a, t=t, s=s: TIMED.action_values[t, s, a])
            assert second[t, s] == best
            assert gap[t, s] == TIMED.action_values[t, s, action] - TIMED.action_values[t, s, best]
            assert gap[t, s] >= 0


def test_the_first_decision_of_a_policy_is_a_policy():
    first = TIMED.first
    assert first.horizon is None
    np.testing.assert_array_equal(first.actions, TIMED.actions[0])
    np.testing.assert_array_equal(first.action_values, TIMED.action_values[0])
    assert first.act(LOG) == TIMED.act(LOG, step=0)
    same(STEADY.first, STEADY)


@pytest.mark.parametrize("policy", [STEADY, TIMED, learned(min_visits=10).policy])
def test_support_counts_how_often_the_advised_action_was_tried(policy):
    for place, action in np.ndenumerate(policy.actions):
        assert policy.support[place] == (policy.visits[place[-1], action] if action >= 0 else 0)


# ---- pieces ----


@pytest.mark.parametrize("policy", [STEADY, TIMED, learned(min_visits=10).policy])
@pytest.mark.parametrize("states", [None, [], [6, 0, 3]])
def test_pieces_say_of_each_decision_and_state_what_the_arrays_say(policy, states):
    rng = np.random.default_rng(0)
    weight, values = rng.random((7, 2)), rng.random(policy.actions.shape)
    runner, gap = policy.runner_up()
    pieces = list(policy.pieces(states, weight=weight, values=values))
    plain = list(policy.pieces(states))
    places = [(t, s) for t in range(policy.horizon or 1) for s in (range(7) if states is None else states)]
    assert [(piece.decision, piece.state) for piece in pieces] == places
    for piece, bare, (t, s) in zip(pieces, plain, places, strict=True):
        at = s if policy.horizon is None else (t, s)
        a, b = policy.actions[at], runner[at]
        assert ", ".join(piece.words) == policy.state_names[s].replace("ward=", "").replace("pressure ", "")
        assert (piece.action, piece.rival) == (a, b)
        assert piece.advised == (None if a < 0 else policy.action_names[a])
        assert piece.visits == (None if a < 0 else policy.visits[s, a])
        assert piece.weight == (None if a < 0 else weight[s, a])
        assert piece.value == (None if a < 0 else values[at])
        assert piece.runner_up == (None if b < 0 else policy.action_names[b])
        assert piece.gap == (None if b < 0 else gap[at])
        assert bare == piece._replace(weight=None, value=None if a < 0 else policy.action_values[at][a])


def test_a_weight_for_all_pairs_is_that_of_each():
    assert {piece.weight for piece in STEADY.pieces(weight=np.array(0.25)) if piece.advised} == {0.25}


def test_names_of_states_are_made_when_they_are_shown(tmp_path):
    STEADY.save(tmp_path / "policy.json")
    policy = Policy.load(tmp_path / "policy.json")
    assert policy.act(LOG) == STEADY.act(LOG)
    assert len(list(policy.pieces([1, 2]))) == 2
    assert "names" not in vars(policy.recipe)
    assert policy.state_names == STEADY.state_names


# ---- writing ----


def test_what_is_too_long_to_read_has_no_line_breaks(monkeypatch):
    readable = STEADY.to_bytes()
    monkeypatch.setattr(policy_file, "READABLE", 1)
    assert STEADY.to_bytes().count(b"\n") == 1 < readable.count(b"\n")
    same(Policy.from_json(STEADY.to_bytes()), STEADY)


def test_the_readable_file_is_what_pythons_json_would_write():
    assert STEADY.to_bytes().decode() == json.dumps(STEADY.to_json(), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("settings", [{"x": "\ud800"}, {"x": 10**5000}])
def test_what_no_file_can_hold_is_an_error_in_words(settings, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        replace(STEADY, settings=settings).save(tmp_path / "policy.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused_before_anything_is_written(odd):
    values = STEADY.action_values.copy()
    values[2, 1] = odd
    with pytest.raises(InputError, match="action values are numbers"):
        replace(STEADY, action_values=values)


# ---- damaged files ----


def edited(**changes):
    return copy.deepcopy(STEADY.to_json()) | changes


def without(field):
    return {name: value for name, value in edited().items() if name != field}


def texted(old, new):
    """The file with one of its texts replaced."""
    text = json.dumps(edited())
    assert old in text
    return text.replace(old, new, 1)


STATES = STEADY.to_json()["states"]
DAMAGED = {
    "empty": ("", "is not JSON"),
    "words": ("not json", "is not JSON"),
    "cut off": (json.dumps(edited())[:-100], "is not JSON"),
    "bytes": (b"\xff\xfe\x00", "is not JSON"),
    "not UTF-8": (json.dumps(edited()).replace("ward=A", "@", 1).encode().replace(b"@", b"\xff"), "is not UTF-8"),
    "not UTF-8, unread": (json.dumps(edited(more="@")).encode().replace(b"@", b"\xff"), "is not UTF-8"),
    "deep": ('{"more": ' + "[" * 100_000, "is not JSON"),
    "deeper": ('{"more": ' + "[" * 10_000_000, "is not JSON"),
    "deep and closed": (texted('"data": {', '"data": {"x": ' + "[" * 5_000 + "]" * 5_000 + ","), "is not JSON"),
    "a little deep": (texted('"data": {', '"data": {"x": ' + "[" * 200 + "]" * 200 + ","), "nested more than 100 deep"),
    "a deep list": ("[" * 100_000, "not a policy file"),
    "a long number": ("1" * 5000, "damaged: number out of range"),
    "a list": ("[]", "not a policy file: expected `object`, got `array`"),
    "another format": ('{"format": "other"}', "not a policy file"),
    "a later version": (edited(version=2), r"version 2; this certeq reads up to 1\. Upgrade"),
    "a version in words": (edited(version="1"), "at version: expected"),
    "a version that is true": (edited(version=True), "at version: expected"),
    "half a version": (edited(version=1.5), "at version: it must be a whole number"),
    "version zero": (edited(version=0), "at version: it must be a whole number, at least 1"),
    "a field twice": (texted('"version": 1', '"version": 1, "version": 1'), '"version" twice in one object'),
    "a field twice, spaced": (texted('"version": 1', '"version": 1, "version" \n : 1'), '"version" twice'),
    "a field twice, spelled differently": (
        texted('"version": 1', '"version": 1, "\\u0076ersion": 1'),
        '"version" twice',
    ),
    "an inner field twice": (texted('"visits": [', '"visits": [], "visits": ['), '"visits" twice'),
    "a field of what is unread twice": (texted('"format"', '"more": {"a": [{"b": 1, "b": 2}]}, "format"'), '"b" twice'),
    "unknown action advised": (
        edited(advice=["sideways"] * 7),
        "at advice: 'sideways' is none of the actions, down, up",
    ),
    "too little advice": (edited(advice=["up"]), "at advice: it must be a list of 7"),
    "no advice": (edited(advice=[]), "at advice: it must be a list of 7"),
    "uneven advice": (edited(advice=[["up"] * 7, ["up"]], horizon=2), "at advice: it must be a table of 2 x 7"),
    "advice of both kinds": (edited(advice=["up", ["up"] * 6], horizon=2), "at advice: it must be a table of 2 x 7"),
    "advice within advice": (edited(advice=[[[["up"]]]]), r"at advice\[0\]\[0\]: expected `str | null`, got `array`"),
    "advice nested 40 deep": (edited(advice=eval("[" * 40 + "]" * 40)), r"at advice\[0\]\[0\]"),
    "too few actions": (edited(actions=["up"]), "at advice: 'down' is none of the actions"),
    "two actions of one name": (edited(actions=["up", "up"], advice=["up"] * 7), "'up' is there more than once"),
    "no states": (edited(states=[]), "at states: it has 0 states, but the recipe has 7"),
    "too few values": (edited(action_values=[[1, 2]]), "at action_values: it must be a table of 7 x 2"),
    "uneven values": (edited(action_values=[[1, 2]] * 6 + [[1]]), "at action_values: it must be a table of 7 x 2"),
    "values that are lists": (edited(action_values=[[[1], [2]]] * 7), "at action_values: it must be a table of 7 x 2"),
    "values of both kinds": (edited(action_values=[[1, [2]]] * 7), "at action_values: it must be a table of 7 x 2"),
    "values in words": (edited(action_values=[["a", "b"]] * 7), r"at action_values\[0\]\[0\]: expected"),
    "values nested 40 deep": (edited(action_values=eval("[" * 40 + "]" * 40)), r"at action_values\[0\]\[0\]\[0\]"),
    "negative visits": (texted('"visits": [', '"visits": [-7'), r"at states\[0\]\.visits\[0\]: expected `int` >= 0"),
    "not a number": (json.dumps(edited(action_values=[[float("nan")] * 2] * 7)), r"is not JSON.*\[\[NaN, NaN\]"),
    "infinity": (json.dumps(edited(action_values=[[float("inf")] * 2] * 7)), r"is not JSON.*Infinity"),
    "infinite value": (
        json.dumps(edited(action_values=[[1e300, 0]] * 7)).replace("1e+300", "1e999"),
        r"at action_values\[0\]\[0\]: number out of range",
    ),
    "half a visit": (
        texted('"visits": [', '"visits": [0.5'),
        r"at states\[\]\.visits: it must be whole numbers; got 0\.5",
    ),
    "no recipe": (edited(recipe={}), "at recipe: object missing required field `version`"),
    "a later recipe": (edited(recipe=STEADY.recipe.to_json() | {"version": 2}), "recipe has version 2"),
    "no settings": (edited(settings=None), "at settings: expected `object`, got `null`"),
    "states in another order": (edited(states=STATES[::-1]), r"at states\[0\]\.cell: it is \[2, 2\].*\[0, 0\]"),
    "another horizon": (edited(horizon=5), "at horizon: it is 5, but the advice is for any decision"),
    "no data": (edited(data=[[]]), "at data: expected `object`, got `array`"),
    "no actions": (edited(actions=[]), "at actions: expected `array` of length >= 1"),
    "actions that are numbers": (edited(actions=[0, 1]), r"at actions\[0\]: expected `str`, got `int`"),
    "actions in a text": (edited(actions="ud"), "at actions: expected `array`, got `str`"),
    "a long number inside": (texted('"visits": [', '"visits": [' + "1" * 5000), r"at states\[0\]\.visits\[0\]: "),
    "too many visits": (
        texted('"visits": [', '"visits": [1' + "0" * 30),
        r"at states\[0\]\.visits\[0\]: expected `int` <=",
    ),
    "visits in a text": (texted('"visits": [', '"visits": ["x", '), r"at states\[0\]\.visits\[0\]: .*got `str`"),
    "visits of too many": (
        texted('"visits": [', '"visits": [1, '),
        r"at states\[\]\.visits: it must be a table of 7 x 2",
    ),
    "a state that is a number": (edited(states=[7] * 7), r"at states\[0\]: expected `object`, got `int`"),
    "a state without visits": (edited(states=[{"cell": s["cell"]} for s in STATES]), r"at states\[0\].*`visits`"),
    "half a surrogate": (texted('"up"', '"\\ud800"'), "is not JSON"),
} | {
    f"without {field}": (without(field), field)
    for field in ("format", "version", "actions", "states", "advice", "action_values", "recipe")
}


@pytest.mark.parametrize(("content", "says"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_an_error_in_words(content, says, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(edited()))
    same(Policy.load(path), STEADY)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=says) as caught:
        Policy.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_stands_in_several_objects_or_in_texts_is_not_there_twice():
    names = ['"a": {"a": 1', "}, {", '\\"', "\\", "a:", '"a":']
    value = edited(more=[{"a": {"a": names}, "b": {"a": 1}}, {"a": 1}, {name: name for name in names}])
    same(Policy.from_json(json.dumps(value).encode()), STEADY)


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("field", ["version", "horizon", "advice", "action_values", "actions", "states", "settings"])
def test_numbers_too_long_to_print_are_errors_in_words(field, digits):
    number = 10**digits
    for value in (number, [number], [[number] * 2] * 7):
        with pytest.raises(InputError):
            Policy.from_json(edited(**{field: value}))


def with_floats(value):
    """The same JSON with 3.0 for 3."""
    if isinstance(value, dict):
        return {key: with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize("policy", [STEADY, TIMED, learn(read(LOG, state="time", bins={"time": "labels"})).policy])
def test_whole_numbers_that_another_program_wrote_as_floats_are_read(policy):
    value = with_floats(policy.to_json())
    again = Policy.from_json(value)
    same(again, policy)
    assert again.state_names == policy.state_names
    same(Policy.from_json(json.dumps(value).encode()), policy)


def test_what_is_no_file_is_said_to_be_none(tmp_path):
    with pytest.raises(InputError, match="There is no policy file"):
        Policy.load(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="is not a file"):
        Policy.load(tmp_path)
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(most("policy_bytes") + 1)
    with pytest.raises(InputError, match="larger than a policy file can be"):
        Policy.load(tmp_path / "huge.json")


def places(value, path=()):
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


JUNK = [None, True, -1, 0, 7, 1.5, -1e308, float("inf"), 10**30, "", "x", "\ud800", [], {}, [[]], [None], {"a": 1}]


@pytest.mark.parametrize("policy", [STEADY, TIMED])
def test_whatever_happens_to_one_place_of_a_file_it_is_a_policy_or_an_error_in_words(policy):
    found = Counter()

    @given(st.data())
    def law(data):
        value = copy.deepcopy(policy.to_json())
        *way, last = data.draw(st.sampled_from(list(places(value))))
        at = value
        for key in way:
            at = at[key]
        becomes = data.draw(st.sampled_from(("nothing", "junk", "what it was")))
        if becomes == "nothing":
            del at[last]
        elif becomes == "junk":
            at[last] = data.draw(st.sampled_from(JUNK))
        try:
            damaged = Policy.from_json(value)
            damaged.act(LOG, step=0)
            damaged.to_json()
            damaged.runner_up()
            found["a policy"] += 1
        except InputError:
            found["an error"] += 1

    law()
    assert found["a policy"]
    assert found["an error"]


FILE = json.dumps(STEADY.to_json()).encode()


@given(st.integers(0, len(FILE) - 1), st.binary(max_size=2), st.integers(0, 3))
def test_whatever_happens_to_a_few_bytes_of_a_file_it_is_a_policy_or_an_error_in_words(at, put, gone):
    with contextlib.suppress(InputError):
        Policy.from_json(FILE[:at] + put + FILE[at + gone :]).to_bytes()
