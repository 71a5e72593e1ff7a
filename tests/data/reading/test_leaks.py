"""What is known only afterwards is no state, unless somebody names it."""

import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.data.reading import read

E, LENGTH = 12, np.array([3, 4, 5] * 4)
GROUP = np.repeat(np.arange(E), LENGTH)
LAST = np.append(GROUP[1:] != GROUP[:-1], True)
RANDOM = np.random.default_rng(0)
REWARD = RANDOM.normal(size=len(GROUP)).round(3)
ROWS = {
    "patient": GROUP,
    "time": np.arange(len(GROUP)),
    "pressure": RANDOM.choice(["low", "high"], len(GROUP)).tolist(),
    "sex": np.array(["f", "m"])[GROUP % 2].tolist(),
    "action": RANDOM.choice(["x", "y"], len(GROUP)).tolist(),
    "reward": REWARD,
}
LEAKS = {
    "status": (
        [("gone" if g % 2 else "home") if end else None for g, end in zip(GROUP, LAST, strict=True)],
        "filled in only",
    ),
    "transferred": ((LAST & (GROUP % 3 == 0)).astype(int), "the same in all rows but last ones"),
    "duration": (LENGTH[GROUP], "the length of its episode"),
    "worth": (np.bincount(GROUP, REWARD)[GROUP], "the sum of the rewards of its episode"),
    "final_outcome": (np.array(["good", "bad", "fair"])[GROUP % 3].tolist(), "its name is that of an outcome"),
}


def test_a_column_that_all_but_tells_the_length_is_left_out_and_one_that_does_not_stays():
    length = np.tile(np.arange(2, 22), 5)
    group = np.repeat(np.arange(100), length)
    random = np.random.default_rng(0)
    rows = {
        "patient": group,
        "time": np.arange(len(group)),
        "pressure": random.choice(["low", "high"], len(group)).tolist(),
        "action": random.choice(["x", "y"], len(group)).tolist(),
        "reward": random.normal(size=len(group)),
    }
    nights, frail = length[group] // 3, (length + random.integers(-6, 7, 100))[group] // 3
    batch = read(rows | {"nights": nights, "frail": frail}, ends="never")
    assert batch.recipe.column_names == ("pressure", "frail")
    (said,) = batch.decisions
    assert "'nights', since it says the same throughout each episode and all but tells the length" in said


@pytest.mark.parametrize("name", LEAKS)
def test_a_column_that_tells_afterwards_is_named_and_left_out(name):
    values, why = LEAKS[name]
    batch = read(ROWS | {name: values}, ends="never")
    assert batch.recipe.column_names == ("pressure", "sex")
    (said,) = batch.decisions
    assert said.startswith("Left out of the state, as known only afterward")
    assert f"'{name}', since" in said
    assert why in said
    assert any(note.startswith("I read 'pressure', 'sex' as the state") for note in batch.notes)


@pytest.mark.parametrize("name", [name for name in LEAKS if name != "status"])
def test_it_is_used_if_somebody_asks_for_it(name):
    rows = ROWS | {name: LEAKS[name][0]}
    assert read(rows, ends="never", state=["pressure", name]).recipe.column_names == ("pressure", name)
    assert name in read(rows, ends="never", bins={name: "labels"}).recipe.column_names


def test_what_is_known_from_the_start_stays():
    batch = read(ROWS | {"age": 40 + GROUP}, ends="never")
    assert batch.decisions == ()
    assert batch.recipe.column_names == ("pressure", "sex", "age")


def test_if_nothing_is_left_it_is_asked_for():
    rows = {name: values for name, values in ROWS.items() if name not in ("pressure", "sex")}
    with pytest.raises(InputError, match=r"all are known only afterward.*--state"):
        read(rows | {"duration": LENGTH[GROUP]}, ends="never")


def survey(**more):
    """Rows of 40 people, whose mood a message lifts, and what was asked of them in the evening."""
    random = np.random.default_rng(1)
    mood, sent = random.normal(size=400).round(2), random.integers(2, size=400)
    lifted = mood + sent + random.normal(size=400)
    rows = {"person": np.arange(400) // 10, "day": np.arange(400) % 10, "mood": mood, "sent": sent, "lifted": lifted}
    return rows | {name: make(lifted) for name, make in more.items()}


NAMED = {"action": "sent", "reward": "lifted", "episode": "person", "time": "day", "ends": "never"}


@pytest.mark.parametrize("make", [lambda x: np.round(x, 1), lambda x: -(x**3), lambda x: 7 * x])
def test_somebody_is_asked_about_a_column_that_all_but_tells_the_reward_of_its_own_row(make):
    (said,) = read(survey(asked=make), **NAMED).decisions
    assert said.startswith("'asked' all but tells the reward of its own row (")
    assert "leave it out of the state (--state)" in said
    order = np.random.default_rng(0).permutation(400)
    turned = {name: column[order] for name, column in survey(asked=make).items()}
    assert read(turned, **NAMED).decisions == (said,)


@pytest.mark.parametrize("rows", [168, 169, 213, 399])
def test_somebody_is_asked_whatever_the_number_of_rows(rows):
    few = {name: column[:rows] for name, column in survey(asked=lambda x: 7 * x).items()}
    (said,) = read(few, **NAMED | {"layout": "long"}).decisions
    assert said.startswith("'asked' all but tells the reward of its own row (")


def test_nobody_is_asked_about_what_only_helps_to_predict():
    assert read(survey(), **NAMED).decisions == ()
    assert read(survey(asked=lambda x: x + np.sin(np.arange(400))), **NAMED).decisions == ()
    few = {name: column[:90] for name, column in survey(asked=lambda x: 7 * x).items()}
    assert read(few, **NAMED).decisions == ()
