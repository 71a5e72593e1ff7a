"""certeq audit: words on the terminal, audit.json in the folder, and one paragraph for what cannot be audited."""

import json
from pathlib import Path

import pytest

from certeq import audit, learn, read
from certeq.worlds import examples

HEADER = "episode,time,state,action,reward\n"
ROWS = HEADER + "".join(f"{e},{t},{'ABC'[(e + t) % 3]},{'xy'[(e * t) % 2]},{t}\n" for e in range(6) for t in range(6))


def test_without_data_the_bundled_trial_is_audited(certeq):
    done = certeq("audit", "--planning-discount", 0.9)
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("The bundled example")
    told = " ".join(done.out.split())
    most = learn(read(examples.path())).policy.visits.max()
    assert f"{most} visits) as if {most / 10:g} uniform transitions had been added to it" in told
    assert f"1 visit) as if 0.1: {most} times as many" in told
    assert told.endswith("Written: certeq-out/audit.json")


def test_the_file_is_the_audit_of_the_library(certeq, file):
    rows = file(ROWS)
    done = certeq("audit", rows, "--discount", 0.95, "--planning-discount", 0.5, "--threshold", 4, "--out", "found")
    assert done.code == 0
    written = json.loads(Path("found/audit.json").read_text())
    expected = json.loads(json.dumps(audit(read(rows), 0.5, discount=0.95, threshold=4).to_json()))
    assert {name: written[name] for name in expected} == expected
    assert written["settings"]["planning_discount"] == 0.5
    assert written["data"]["rows"] == 30
    for line in expected["words"]:
        assert line in " ".join(done.out.split())


def test_options_reach_what_they_are_for(certeq, file):
    rows = file(ROWS.replace("state", "Pt. State").replace("action", "Rx"))
    told = ("--state", "Pt. State", "--action", "Rx", "--min-visits", 2, "--unvisited", "zero", "--horizon", 3)
    done = certeq("audit", rows, *told, "--planning-discount", 0.5, "--reward-pool", "state", "--out", "found")
    assert done.code == 0
    settings = json.loads(Path("found/audit.json").read_text())["settings"]
    assert settings == {
        "discount": 0.99,
        "regularizer": "discount",
        "planning_discount": 0.5,
        "unvisited": "zero",
        "min_visits": 2,
        "min_share": 0.0,
        "min_chance": 0.8,
        "risk": None,
        "reward": "by pair, pooled: state",
        "horizon": 3,
    }


def test_known_rewards_are_taken_from_a_table(certeq, file):
    rewards = file("state,action,reward\nA,x,0\nA,y,1\nB,x,0\nB,y,1\nC,x,0\nC,y,1\n", "rewards.csv")
    done = certeq("audit", file(ROWS), "--reward-table", rewards, "--planning-discount", 0, "--out", "found")
    assert done.code == 0
    found = json.loads(Path("found/audit.json").read_text())
    assert {advice for plan in found["plans"][:1] for advice in plan["advice"]} == {"y"}
    assert found["invented"][0][0] is None
    assert "infinitely many" in done.out


def test_an_audit_that_is_there_is_kept_unless_force_is_said(certeq, refused, file):
    rows = file(ROWS)
    certeq("audit", rows, "--planning-discount", 0.5)
    assert "certeq-out/audit.json already exists" in refused("audit", rows, "--planning-discount", 0.1)
    assert certeq("audit", rows, "--planning-discount", 0.1, "--force").code == 0
    assert json.loads(Path("certeq-out/audit.json").read_text())["planning_discount"] == 0.1


@pytest.mark.parametrize("label", ["[bold]", "\x1b[31mred", "‮", "<script>", "=1+1", "z" * 3000])
def test_labels_that_could_do_harm_are_told_as_text(certeq, file, label):
    done = certeq("audit", file(ROWS.replace(",A,", f',"{label}",')), "--planning-discount", 0.5)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "‮" not in done.out
    assert label in json.loads(Path("certeq-out/audit.json").read_text())["states"]


BAD = {
    "no planning discount": ((), "--planning-discount 0.9"),
    "a higher one": (("--planning-discount", 0.999), "may not exceed"),
    "a negative one": (("--planning-discount", -1), "between 0 and 1"),
    "no threshold": (("--planning-discount", 0.5, "--threshold", 0), "threshold must be at least 1"),
    "no such convention": (("--planning-discount", 0.5, "--unvisited", "exlude"), "Did you mean 'exclude'"),
    "no such column": (("--planning-discount", 0.5, "--reward", "rewrd"), "Did you mean 'reward'"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_audited_is_one_paragraph_and_leaves_nothing(refused, file, words, says):
    assert says in refused("audit", file(ROWS), *words)
