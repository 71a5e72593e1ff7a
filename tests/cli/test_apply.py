"""certeq apply: a policy's advice for new rows, with the support behind it; nothing is guessed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from certeq import Policy, learn, read
from certeq.worlds import examples

HEADER = "episode,time,ward,pressure,action,reward\n"
ROWS = HEADER + "".join(
    f"{e},{t},{'AB'[(e + t) % 2]},{80 + 7 * t + e}.5,{'xy'[(e * t) % 2]},{t}\n" for e in range(6) for t in range(6)
)


@pytest.fixture
def policy(certeq, file):
    """A policy that was learned from ROWS."""
    assert certeq("learn", file(ROWS), "--out", "found").code == 0
    return "found/policy.json"


@pytest.mark.slow
def test_the_rows_that_were_learned_from_get_the_plans_own_actions_in_another_process(certeq, tmp_path, table):
    assert certeq("learn", "--out", "found").code == 0
    path = Path("found/policy.json")
    resaved = dict(reversed(json.loads(path.read_text(encoding="utf-8")).items()))
    path.write_text(json.dumps(resaved, indent=1), encoding="utf-8")
    words = [sys.executable, "-m", "certeq", "apply", "found/policy.json", str(examples.path()), "-o", "actions.csv"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = learn(read(examples.path()))
    rows = table("actions.csv")
    assert [line["row"] for line in rows] == [str(i + 1) for i in range(1500)]
    trial = table(examples.path())
    goes_on = [i for i in range(1500) if i + 1 < 1500 and trial[i]["patient"] == trial[i + 1]["patient"]]
    plan = [found.policy.action_names[a] if a >= 0 else "" for a in found.plan.policy[found.batch.state]]
    assert [rows[i]["action"] for i in goes_on] == plan
    visits = found.counts.visits[found.batch.state, found.plan.policy[found.batch.state]]
    assert [int(rows[i]["visits"]) for i in goes_on] == visits.tolist()


def test_each_row_has_its_state_its_action_and_the_support(certeq, policy, file, table):
    new = file("ward,pressure,note\nA,85,hello\nB,1e6,\nA,-40,\n", "new.csv")
    done = certeq("apply", policy, new, "-o", "actions.csv")
    assert done.code == 0
    assert done.out.startswith("3 rows, advice for 3.\n")
    advisor = Policy.load(policy)
    lines = table("actions.csv")
    assert [line["state"].split(",")[0] for line in lines] == ["ward=A", "ward=B", "ward=A"]
    assert [int(line["visits"]) > 0 for line in lines] == [True] * 3
    assert [line["reason"] for line in lines] == [""] * 3
    assert [line["action"] for line in lines] == advisor.act(new)


def test_of_too_many_states_to_read_there_are_arrays_and_they_advise_the_same(certeq, policy, file, monkeypatch):
    new = file("ward,pressure\nA,85\nZ,85\nB,100\n", "new.csv")
    assert certeq("apply", policy, new, "-o", "readable.csv").code == 0
    monkeypatch.setattr("certeq.learning.policy_file.READABLE", 3)
    assert certeq("learn", file(ROWS), "--out", "found").code == 2  # something is there already
    done = certeq("learn", file(ROWS), "--out", "found", "--force")
    assert done.code == 0
    assert "too many to read" in done.out
    assert "Removed, so that nobody mistakes them for these results: found/policy.json, found/policy.csv" in done.out
    assert {path.name for path in Path("found").iterdir()} == {"policy.npz", "summary.json"}
    assert certeq("apply", "found/policy.npz", new, "-o", "arrays.csv").code == 0
    assert Path("arrays.csv").read_bytes() == Path("readable.csv").read_bytes()


def test_what_has_no_advice_is_listed_with_the_reason(certeq, policy, file, table):
    new = file("ward,pressure\nZ,85\n,85\nA,\nZ,86\nA,85\n", "new.csv")
    done = certeq("apply", policy, new)
    assert done.code == 0
    assert "5 rows, advice for 1." in done.out
    assert "No advice for 2: 'ward' is 'Z', which never occurred in the data (known: A, B)" in done.out
    reasons = [line["reason"] for line in table("actions.csv")]
    assert reasons[1:3] == ["'ward' is missing", "'pressure' is missing"]
    assert [bool(line["action"]) for line in table("actions.csv")] == [False] * 4 + [True]


def test_existing_advice_is_kept_unless_force_is_said(certeq, refused, policy):
    assert certeq("apply", policy, "rows.csv").code == 0
    assert "actions.csv already exists" in refused("apply", policy, "rows.csv")
    assert certeq("apply", policy, "rows.csv", "--force").code == 0


def test_what_is_wrong_with_the_files_is_one_paragraph(refused, policy, file, tmp_path):
    for words, says in (
        (("nothing.json", "rows.csv"), "There is no policy file nothing.json"),
        (("rows.csv", "rows.csv"), "is not a policy file"),
        ((tmp_path, "rows.csv"), "is not a file"),
        ((file("{}", "empty.json"), "rows.csv"), "This is not a policy file"),
        ((policy, "nothing.csv"), "There is no file"),
        ((policy, file("", "blank.csv")), "is empty"),
        ((policy, file("ward\nA\n", "less.csv")), "no column 'pressure'"),
        ((policy, file("ward,presure\nA,1\n", "typo.csv")), "Did you mean 'presure'"),
    ):
        assert says in refused("apply", *words)


def test_a_folder_in_place_of_the_rows_is_said_to_be_one(refused, policy, tmp_path):
    assert "is a folder" in refused("apply", policy, tmp_path)


def test_actions_that_are_negative_numbers_are_advised_as_such(certeq, file, table):
    assert certeq("learn", file(ROWS.replace("x", "-1").replace("y", "1")), "--out", "found").code == 0
    assert certeq("apply", "found/policy.json", "rows.csv").code == 0
    assert {line["action"] for line in table("actions.csv")} <= {"-1", "1"}


@pytest.mark.parametrize("out", [".", "found", "found/policy.json/x.csv"])
def test_a_place_where_nothing_can_be_written_is_named(refused, policy, out):
    said = refused("apply", policy, "rows.csv", "-o", out, "--force")
    assert f"Could not write {out}" in said or f"write {Path(out).parent}" in said


# ---- horizons ----


@pytest.fixture
def timed(certeq, file):
    """A policy for three decisions."""
    assert certeq("learn", file(ROWS), "--horizon", 3, "--out", "timed").code == 0
    return "timed/policy.json"


def test_the_step_is_a_number_or_a_column(certeq, timed, table):
    assert certeq("apply", timed, "rows.csv", "--step", "time", "-o", "by_column.csv").code == 0
    found = table("by_column.csv")
    assert [bool(line["action"]) for line in found[:6]] == [True] * 3 + [False] * 3
    assert found[3]["reason"] == "the policy plans for 3 decisions"
    for step in (0, 2):
        assert certeq("apply", timed, "rows.csv", "--step", step, "-o", f"at_{step}.csv").code == 0
        assert [line["action"] for line in table(f"at_{step}.csv")] == Policy.load(timed).act("rows.csv", step=step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "says"), [("tim", "Did you mean 'time'"), ("-1", "step"), ("²", "step"), ("ward", "step"), ("1.5", "step")]
)
def test_a_step_that_is_none_is_one_paragraph(refused, timed, step, says):
    assert says in refused("apply", timed, "rows.csv", "--step", step)


def test_a_step_that_lacks_is_asked_for_in_the_words_of_the_command_line(refused, timed):
    assert "--step" in refused("apply", timed, "rows.csv")


def test_what_is_out_of_range_is_said_and_so_is_the_runner_up(certeq, policy, file, table):
    low, high = Policy.load(policy).ranges["pressure"]
    new = file(f"ward,pressure\nA,{low}\nA,{low - 5}\nB,{high + 1}\n", "new.csv")
    done = certeq("apply", policy, new)
    assert f"pressure is out of range in 2 rows: the data had {low:g} to {high:g}." in done.out
    lines = table("actions.csv")
    assert [line["out_of_range"] for line in lines] == ["", "pressure", "pressure"]
    advice = Policy.load(policy).apply(new)
    names = [*Policy.load(policy).action_names, ""]
    assert [line["runner_up"] for line in lines] == [names[b] for b in advice.rival]
    assert [float(line["gap"] or "nan") for line in lines] == pytest.approx(advice.gap, rel=1e-5, nan_ok=True)
