"""certeq simulate: rows from every environment, the same for the same seed, to learn from and to follow a policy in."""

import itertools
from pathlib import Path

import pytest

from certeq import ENVIRONMENTS, environment, read

each_world = pytest.mark.parametrize("world", ENVIRONMENTS)


@pytest.mark.slow
@each_world
def test_every_environment_gives_rows_that_can_be_learned_from(certeq, world, table):
    done = certeq("simulate", world, "--episodes", 3, "--length", 4, "-o", "rows.csv")
    assert done.code == 0
    assert done.out == f"12 rows of {world}, 3 episodes. Written: rows.csv\n"
    lines = table("rows.csv")
    assert list(lines[0]) == ["episode", "time", "state", "action", "reward", "next_state", "terminated"]
    assert {line["action"] for line in lines} <= set(environment(world, **RANDOM.get(world, {})).action_names)
    batch = read("rows.csv")
    assert (len(batch), len(set(batch.episode))) == (12, 3)
    assert certeq("learn", "rows.csv").code == 0


RANDOM = {"random_chain": {"rng": 0}, "grid": {"rng": 0}}  # worlds that are drawn themselves


@pytest.mark.slow
@each_world
def test_the_same_seed_gives_the_same_rows(certeq, world):
    for out in ("one.csv", "two.csv"):
        assert certeq("simulate", world, "--episodes", 3, "--seed", 5, "-o", out).code == 0
    assert certeq("simulate", world, "--episodes", 3, "--seed", 6, "-o", "three.csv").code == 0
    one, two, three = (Path(f"{name}.csv").read_bytes() for name in ("one", "two", "three"))
    assert one == two
    assert one != three


@pytest.mark.parametrize("world", ["river_swim", "grid", "tumor"])
def test_a_policy_that_was_learned_is_followed_and_applied(certeq, world, table):
    assert certeq("simulate", world, "--episodes", 40, "-o", "rows.csv").code == 0
    assert certeq("learn", "rows.csv", "--out", "found").code == 0
    assert certeq("simulate", world, "--episodes", 10, "--policy", "found/policy.json", "-o", "after.csv").code == 0
    assert certeq("apply", "found/policy.json", "after.csv", "-o", "actions.csv").code == 0
    for row, advice in zip(table("after.csv"), table("actions.csv"), strict=True):
        assert advice["action"] in ("", row["action"])


def test_a_behavior_takes_one_action_always(certeq, table):
    assert certeq("simulate", "river_swim", "--behavior", "left", "-o", "rows.csv").code == 0
    assert {line["action"] for line in table("rows.csv")} == {"left"}


@pytest.mark.parametrize(
    ("world", "setting", "states"),
    [("river_swim", "n_states=4", "0 1 2 3"), ("grid", "width=1", "r0c0 r1c0 r2c0 r3c0")],
)
def test_settings_reach_the_environment(certeq, world, setting, states, table):
    done = certeq("simulate", world, "--setting", setting, "--episodes", 200, "-o", "rows.csv")
    assert done.code == 0
    assert {line["state"] for line in table("rows.csv")} == set(states.split())


def test_a_number_reaches_the_environment(certeq, table):
    """Without slipping the next state follows from state and action; with it, it does not."""
    fans = []
    for out, setting in (("sure.csv", "slip=0"), ("slips.csv", "slip=0.5")):
        assert certeq("simulate", "loop", "--setting", setting, "--episodes", 200, "-o", out).code == 0
        after = {}
        for now, then in itertools.pairwise(table(out)):
            if now["episode"] == then["episode"]:
                after.setdefault((now["state"], now["action"]), set()).add(then["state"])
        fans.append(max(map(len, after.values())))
    assert fans[0] == 1 < fans[1]


def test_a_policy_for_several_decisions_is_refused(certeq, refused):
    assert certeq("simulate", "river_swim", "--episodes", 100, "-o", "rows.csv").code == 0
    assert certeq("learn", "rows.csv", "--horizon", 2, "--out", "found").code == 0
    said = refused("simulate", "river_swim", "--policy", "found/policy.json", "--length", 2, "-o", "after.csv")
    assert "The policy has a horizon of 2 decisions; only one without can be followed" in said


def test_existing_rows_are_kept_unless_force_is_said(certeq, refused):
    assert certeq("simulate", "loop").code == 0
    assert "rows.csv already exists" in refused("simulate", "loop")
    assert certeq("simulate", "loop", "--force").code == 0


BAD = {
    "no such world": (("river_swm",), "Did you mean 'river_swim'"),
    "no such action": (("river_swim", "--behavior", "up"), "left, right"),
    "no such setting": (("river_swim", "--setting", "states=4"), "Did you mean 'n_states'"),
    "half a setting": (("river_swim", "--setting", "n_states"), "--setting takes NAME=VALUE"),
    "half a state": (("river_swim", "--setting", "n_states=4.5"), "n_states must be a whole number"),
    "several worlds": (("grid", "--setting", "size=3"), "one world at a time; leave the setting size out"),
    "fewer than no episodes": (("loop", "--episodes", -1), "episodes must be at least"),
    "no steps": (("loop", "--length", -1), "length must be at least"),
    "a seed below zero": (("loop", "--seed", -1), "seed"),
    "no such policy": (("loop", "--policy", "nothing.json"), "There is no policy file"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_simulated_is_one_paragraph_and_leaves_nothing(refused, words, says):
    assert says in refused("simulate", *words)


def test_a_policy_for_other_columns_or_actions_is_one_paragraph(certeq, refused):
    certeq("learn", "--out", "trial")
    assert "quiescent_mm" in refused("simulate", "tumor", "--policy", "trial/policy.json")
    assert "which is not an action here" in refused("simulate", "loop", "--policy", "trial/policy.json")
