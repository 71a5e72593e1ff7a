"""Messy tables go from the file to sensible advice with the README's commands; every trap is an error or told."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import certeq
from certeq.base.texts import csv_text
from certeq.cli import app
from certeq.learning.policy import Policy
from certeq.worlds.messy import APP, CLINIC, MACHINE, MESSY, SCHOOL

each = pytest.mark.parametrize("name", MESSY)
COLUMNS = {"clinic": {"sbp", "lactate"}, "app": {"energy", "trust"}, "machine": {"vibration_mm_s", "temperature_c"}}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def flat(done):
    return " ".join(done.output.split())


@pytest.fixture
def logged(tmp_path):
    """Write a table to a file."""

    def write(world, seed=1, cases=None, **other):
        table = world.table(seed, cases) | other
        (tmp_path / "rows.csv").write_text(csv_text(tuple(table), list(zip(*table.values(), strict=True))))
        return tmp_path / "rows.csv"

    return write


def learned(path, options):
    done = run("learn", path, *options, "--no-report", "--draws", "0", "--out", path.parent / "out", "--force")
    assert done.exit_code == 0, done.output
    return done, Policy.load(path.parent / "out" / "policy.json")


@each
def test_a_table_is_the_same_for_the_same_seed_and_has_the_promised_size(name):
    world = MESSY[name]
    one, same, other = world.table(3), world.table(3), world.table(4)
    assert one == same
    assert one != other
    assert 5_000 <= len(one[next(iter(one))]) <= 200_000


def test_the_value_of_a_policy_is_that_of_a_slow_simulation():
    """One machine at a time, with the same luck drawn in the same order."""

    class Slow:
        action_names = MACHINE.actions

        def apply(self, rows):
            return type("Advice", (), {"action": np.zeros(len(rows["mode"]), dtype=int)})

    random, total = np.random.default_rng(5), np.zeros(3)
    now, there = MACHINE.start(3, random), np.ones(3, dtype=bool)
    for time in range(MACHINE.length):
        MACHINE.behavior(now, random)
        now, reward, broke = MACHINE.step(now, np.zeros(3, dtype=int), random)
        for i in range(3):
            total[i] += MACHINE.discount**time * reward[i] if there[i] else 0.0
            there[i] = there[i] and not broke[i]
    assert MACHINE.value(Slow(), cases=3, seed=5) == pytest.approx(total.mean())


@pytest.mark.slow
@each
def test_from_the_file_to_advice_that_is_worth_following(logged, name):
    """The default is worth more than what people did, and at most a tenth less than other settings in hindsight."""
    world = MESSY[name]
    path = logged(world)
    pairs = zip(world.options[::2], world.options[1::2], strict=True)
    checked = run("check", path, *(word for pair in pairs if pair[0] != "--discount" for word in pair))
    assert checked.exit_code == 0, checked.output
    _, policy = learned(path, world.options)
    assert COLUMNS[name] <= set(policy.recipe.column_names)
    worth = world.value(policy)
    assert worth > world.value(None)
    others = [("--bins", "3"), ("--regularizer", "none"), ("--regularizer", "evidence"), ("--min-share", "0")]
    others += [("--regularizer", "discount", "--setting", "planning_discount=0.9")]
    hindsight = {other: world.value(learned(path, (*world.options, *other))[1]) for other in others}
    assert worth >= 0.9 * max(hindsight.values()), (worth, hindsight)


@each
def test_a_small_table_goes_the_same_way_and_says_what_was_not_used(logged, name):
    world = MESSY[name]
    path = logged(world, cases={"clinic": 250, "app": 80, "machine": 60}[name])
    done, policy = learned(path, world.options)
    assert COLUMNS[name] <= set(policy.recipe.column_names)
    assert "Not used, since rewards and next values are not clearly better predicted with them" in flat(done)
    seen = json.loads((path.parent / "out" / "summary.json").read_text())
    assert seen["endings"] > 0
    assert seen["goal"].startswith("Smaller 'cost'" if name == "machine" else "Larger '")


def test_that_teachers_knew_more_than_the_score_is_noticed(logged):
    """What the log would have one do is worth less than what they did."""
    done, policy = learned(logged(SCHOOL, cases=100), SCHOOL.options)
    assert "! People acted on more than the states hold: what 'score' was one row before" in flat(done)
    assert SCHOOL.value(policy) < SCHOOL.value(None)


# ---- traps ----


SAID = ("--episode", "stay", "--time", "charted", "--action", "treatment", "--missing", "last")


def test_what_is_known_only_afterwards_leads_the_summary(logged):
    done, policy = learned(logged(CLINIC, cases=250), CLINIC.options)
    assert done.output.startswith("! Left out of the state, as known only afterward: 'nights_in_all'")
    assert not {"nights_in_all", "outcome"} & set(policy.recipe.column_names)


def test_outcomes_on_last_rows_count_also_when_nobody_says_how_stays_end(logged):
    done, _ = learned(logged(CLINIC, cases=250), (*SAID, "--reward", "survived"))
    assert done.output.startswith("! Each episode is taken to be over at its last row, where its reward counts")
    assert json.loads((logged(CLINIC, cases=250).parent / "out" / "summary.json").read_text())["endings"] == 250


def test_deaths_are_not_maximized(logged):
    died = [int(outcome == "death") for outcome in CLINIC.table(1, 250)["outcome"]]
    path = logged(CLINIC, cases=250, died=died)
    ended = ("--done", "outcome=death,discharge")
    asked = run("learn", path, *SAID, *ended, "--reward", "died", "--out", path.parent / "out")
    assert asked.exit_code == 2
    assert "'died' sounds like something to have less of" in flat(asked)
    done, _ = learned(path, (*SAID, *ended, "--cost", "died"))
    assert "Smaller 'died' is better" in done.output
    assert "'survived'" not in done.output.split("as the state")[0].split("I read")[1]  # it is known afterwards, too


def test_missing_vitals_are_an_error_with_the_ways_out_and_never_filled_in_silence(logged):
    path = logged(CLINIC, cases=250)
    refused = run("learn", path, *CLINIC.options[:-2], "--out", path.parent / "out")
    assert refused.exit_code == 2
    assert "--missing sbp=category" in flat(refused)
    done, _ = learned(path, CLINIC.options)
    assert "the last value of the episode was taken in" in flat(done)


def test_padding_after_the_end_is_said_first_and_left_out(logged):
    path = logged(APP, cases=80)
    done, policy = learned(path, APP.options)
    assert done.output.startswith("! The action -1 stands only on last rows")
    assert policy.action_names == ("0", "1", "2")
    padded = pl.read_csv(path).filter(pl.col("shown") == -1)
    assert f"Left out: {len(padded)} x row without an action." in done.output


def test_numbers_of_cases_are_no_state(logged):
    for world in (CLINIC, MACHINE):
        _, policy = learned(logged(world, cases=60), world.options)
        assert not {"bed", "run_id", "stay"} & set(policy.recipe.column_names)


def test_a_pressure_that_decides_few_deaths_is_used():
    """Of some 300 deaths in 1,200 stays, 47 are of those whose last pressure was low; all others die by chance."""
    random, rows = np.random.default_rng(0), []
    for stay in range(1200):
        pressure, lactate = 115 + 15 * random.standard_normal(), 2 + random.standard_normal()
        for time in range(random.integers(3, 9)):
            action, last = random.integers(2), pressure
            rows.append([stay, time, round(pressure), round(lactate, 1), action, 0, 0])
            lift = (8 if action else -2) * (pressure < 100)
            pressure = 0.85 * pressure + 0.15 * 112 + lift + 6 * random.standard_normal()
            lactate = 0.8 * lactate + 0.4 + 0.5 * random.standard_normal()
        rows[-1][-2:] = [-int(random.random() < 0.21 or last < 95), 1]
    names = ("stay", "time", "pressure", "lactate", "action", "reward", "over")
    batch = certeq.read(dict(zip(names, zip(*rows, strict=True), strict=True)), done="over")
    assert "pressure" in batch.recipe.column_names


def test_a_column_of_words_is_no_reward_whatever_it_is_called(logged, tmp_path):
    done = run("learn", logged(CLINIC, cases=30), "--no-report", "--out", tmp_path / "out")
    assert done.exit_code == 2
    said = flat(done)
    assert "The reward 'outcome' holds no number" in said
    assert "Name the right column with reward= (--reward)" in said
