"""Look before planning: what would be refused comes with a way out that works, and what is odd is pointed out."""

import numpy as np
import pytest

import certeq
from certeq.base.errors import InputError
from certeq.data.look import look
from certeq.data.request import Request

RANDOM = np.random.default_rng(0)
N = 600
ROWS = {
    "patient": np.repeat(np.arange(60), 10),
    "day": np.tile(np.arange(10), 60),
    "sbp": RANDOM.normal(120, 15, N),
    "drug": RANDOM.choice(["a", "b"], N).tolist(),
    "benefit": RANDOM.normal(size=N).round(2),
}
TRAPS = {
    "a gap": ({"day": np.tile([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], 60)}, "has a gap", {"gaps": "cut"}),
    "irregular": ({"day": np.cumsum(RANDOM.integers(1, 9, N))}, "has a gap", {"gaps": "allow"}),
    "missing": ({"sbp": np.where(np.arange(N) % 7, ROWS["sbp"], np.nan)}, "missing", {"missing": {"sbp": "category"}}),
    "a harm": ({"died": np.arange(N) % 10 == 9, "benefit": None}, "--cost died", {"cost": "died"}),
    "amounts": ({"drug": RANDOM.random(N)}, "is an amount", {"bins": {"drug": "quantile:4"}}),
    "an end that goes on": ({"done": np.repeat(np.arange(60) % 2, 10)}, "goes on", {"done": False, "ends": "done"}),
    "many columns": ({f"x{i}": RANDOM.random(N) for i in range(9)}, "name fewer columns", {"bins": {"*": 2}}),
}


@pytest.mark.parametrize("name", TRAPS)
def test_what_would_be_refused_comes_with_a_way_out_that_works(name):
    change, why, way = TRAPS[name]
    rows = {column: values for column, values in (ROWS | change).items() if values is not None}
    said = {"max_states": 500, "bins": 4} if name == "many columns" else {}
    with pytest.raises(InputError, match=why):
        certeq.read(rows, **said)
    found = certeq.check(rows, **said)
    assert not found.ready
    assert why in found.refused[0]
    assert found.request == Request(**said | way)
    assert len(certeq.read(rows, found.request)) == len(found.batch)


def test_a_table_that_can_be_read_is_ready():
    found = certeq.check(ROWS, ends="always", bins=4)
    assert found.ready
    assert found.command("rows.csv") == "certeq learn rows.csv --ends always --bins 4"
    told = "\n".join(found.lines())
    assert "Larger 'benefit' is better." in told
    assert "60 episodes of 10 rows; seen to end: 60." in told
    assert "Actions, by share of the rows: " in told
    assert "More than one action was tried in 4 of 4 states." in told
    assert {each.name: each.role for each in found.columns} == {
        "patient": "episode",
        "day": "time",
        "sbp": "state",
        "drug": "action",
        "benefit": "reward",
    }


def test_labels_that_are_not_listed_are_counted_or_dots_stand_for_them():
    def span(labels):
        rows = ROWS | {"ward": np.resize(labels, N).tolist()}
        return next(each.span for each in certeq.check(rows, ends="always").columns if each.name == "ward")

    assert span(list("fedcba")) == "a, b, c, d, e, f"
    assert span(list("gfedcba")) == "a, b, c, d, e, f and 1 more"
    assert span([f"{i}" * 20 for i in "abcdefg"]).endswith("ccc… and 1 more")


def test_where_no_way_out_is_known_the_columns_are_told():
    found = certeq.check({"a": [1, 2], "b": [1.5, None]})
    assert (found.request, found.batch, found.command()) == (None, None, None)
    assert "which column is the action" not in found.refused[0] or found.columns[1].missing == 1
    assert [(each.name, each.missing) for each in found.columns] == [("a", 0), ("b", 1)]
    assert found.lines() == ["2 rows in 2 columns."]


def test_options_are_written_as_one_types_them():
    request = Request(
        state=["a b", "c"],
        done={"outcome": ["death", "gone home"]},
        bins={"*": 3, "c": [1, 2.5], "d": 4},
        missing={"c": "last"},
        minimize=True,
        time=False,
    )
    assert " ".join(request.options()) == (
        "--state 'a b,c' --minimize --time none --done 'outcome=death,gone home' --bins 3 --bins c=edges:1,2.5 "
        "--bins d=quantile:4 --missing c=last"
    )


# ---- what rows show by themselves ----


def rows(state, action, reward=None, **more):
    n = len(state)
    reward = np.zeros(n) if reward is None else reward
    ended = np.full(n, -1)
    return certeq.Batch(state, action, ended, max(state) + 1, max(action) + 1, reward=reward, **more)


def test_actions_that_are_rare_and_states_without_a_choice_are_pointed_out():
    action = np.zeros(1000, dtype=int)
    action[0] = 1
    one_sided, rare = look(rows((np.arange(1000) > 300).astype(int), action)).alerts()
    assert one_sided == "70% of the rows are in states where only one action was ever tried: nothing to compare."
    assert rare == "Action '1' was taken in only 1 row, under 1%."


def test_a_single_action_and_names_that_differ_in_capitals_alone_are_pointed_out():
    (alone,) = look(rows(np.arange(40) % 2, np.zeros(40, dtype=int))).alerts()
    assert alone == "Only one action was ever taken, so nobody can tell what another would do."
    names = ("sent", "no message", "Sent ")
    alike, *_ = look(rows(np.arange(60) % 2, np.arange(60) // 2 % 3, action_names=names)).alerts()
    assert alike == "Actions 'sent' and 'Sent ' differ in capitals or spaces alone. If they are one, write them alike."


def test_where_rewards_fall_is_told():
    table = dict(ROWS, benefit=(np.arange(N) % 10 == 9) * RANDOM.choice([0, 1], N))
    told = "\n".join(certeq.check(table).lines())
    assert "Rewards have 2 different values from 0 to 1" in told
    assert "100% of their variation is on rows that end an episode." in told


def test_states_that_are_many_for_the_rows_are_pointed_out():
    table = ROWS | {f"x{i}": RANDOM.random(N) for i in range(4)}
    assert any("There are many states for so few rows" in alert for alert in certeq.check(table, bins=4).alerts())
    learned = certeq.learn(certeq.read(table, bins=4))
    assert any("There are many states for so few rows" in alert for alert in learned.summary.alerts)
