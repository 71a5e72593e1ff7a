"""certeq learn: from a file to a folder with a policy; what cannot be learned from is one paragraph and exit code 2."""

import hashlib
import html
import io
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from certeq import Policy, read
from certeq.cli import app, show
from certeq.learning.policy_file import FORMAT
from certeq.worlds import examples

HEADER = "episode,time,state,action,reward\n"
ROWS = HEADER + "".join(f"{e},{t},{'ABC'[(e + t) % 3]},{'xy'[(e * t) % 2]},{t}\n" for e in range(6) for t in range(6))
RESULTS = ("policy.json", "policy.csv", "summary.json")


# ---- what it gives ----


def test_without_data_the_bundled_trial_is_learned(certeq):
    done = certeq("learn")
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("The bundled example")
    states = f"{read(examples.path()).n_states} states x 2 actions"
    for words in ("1,450 transitions in 50 episodes", states, "'treatment' as the action"):
        assert words in done.out
    assert "Left out: 50 x last row of an episode" in done.out
    assert done.out.splitlines()[-1].startswith("Written: certeq-out")
    assert {path.name for path in Path("certeq-out").iterdir()} >= set(RESULTS)
    policy = Policy.load("certeq-out/policy.json")
    assert None not in policy.act(examples.path())[:29]


def test_the_same_seed_gives_the_same_files(certeq, file):
    rows = file("episode,time,u,v,action,reward\n" + "".join(f"1,{t},{t * t % 7},{t % 5}.5,a,{t}\n" for t in range(40)))
    for out in ("one", "two"):
        assert (
            certeq("learn", rows, "--bins", "u=kmeans:3", "--bins", "v=kmeans:3", "--seed", 4, "--out", out).code == 0
        )
    for name in RESULTS:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_the_files_say_what_was_advised_on_what_data(certeq, file, table):
    assert certeq("learn", file(ROWS), "--out", "found").code == 0
    policy = json.loads(Path("found/policy.json").read_text())
    summary = json.loads(Path("found/summary.json").read_text())
    lines = table("found/policy.csv")
    assert policy["format"] == FORMAT
    assert (summary["rows"], summary["episodes"], summary["states"], summary["seed"]) == (30, 6, 3, 0)
    assert [line["state"] for line in lines] == ["A", "B", "C"]
    for line, advised, state in zip(lines, policy["advice"], policy["states"], strict=True):
        assert line["action"] == advised
        assert int(line["visits"]) == state["visits"][policy["actions"].index(advised)]


def test_a_horizon_lists_every_decision(certeq, file, table):
    assert certeq("learn", file(ROWS), "--horizon", 3, "--out", "found").code == 0
    assert [line["decision"] for line in table("found/policy.csv")] == list("000111222")


def test_options_reach_what_they_are_for(certeq, file):
    rows = file(ROWS.replace("state", "Pt. State").replace("action", "Rx"))
    told = ("--state", "Pt. State", "--action", "Rx", "--discount", 0.5, "--min-visits", 2, "--unvisited", "zero")
    more = ("--regularizer", "uniform_prior", "--setting", "magnitude=3", "--reward-pool", "state")
    done = certeq("learn", rows, *told, *more, "--out", "found")
    assert done.code == 0
    settings = json.loads(Path("found/policy.json").read_text())["settings"]
    assert settings == {
        "discount": 0.5,
        "regularizer": "uniform_prior",
        "magnitude": 3.0,
        "unvisited": "zero",
        "min_visits": 2,
        "min_share": 0.2,
        "min_chance": 0.8,
        "risk": None,
        "reward": "by pair, pooled: state",
        "horizon": None,
    }


def test_known_rewards_are_taken_from_a_table(certeq, file, table):
    rewards = file("state,action,reward\nA,x,0\nA,y,1\nB,x,0\nB,y,1\nC,x,0\nC,y,1\n", "rewards.csv")
    assert certeq("learn", file(ROWS), "--reward-table", rewards, "--discount", 0, "--out", "found").code == 0
    found = table("found/policy.csv")
    assert [line["action"] for line in found if line["runner_up"]] == ["y"] * sum(bool(x["runner_up"]) for x in found)


def test_an_action_seen_in_one_state_only_is_learned_and_pointed_out(certeq, file):
    done = certeq("learn", file(ROWS.replace("0,0,A,x", "0,0,A,rare")))
    assert done.code == 0
    assert "Action 'rare' was tried in one state only" in done.out


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "rows.jsonl"])
def test_other_formats_give_the_same_policy(certeq, file, name, tmp_path):
    frame = pl.read_csv(file(ROWS))
    write = {"rows.parquet": frame.write_parquet, "rows.feather": frame.write_ipc, "rows.jsonl": frame.write_ndjson}
    write[name](tmp_path / name)
    assert certeq("learn", "rows.csv", "--out", "one").code == 0
    assert certeq("learn", name, "--out", "other").code == 0
    assert Path("one/policy.csv").read_bytes() == Path("other/policy.csv").read_bytes()


# ---- the report ----


@pytest.mark.slow
def test_a_report_is_written_that_tells_how_it_was_made(certeq, file):
    rows = file(ROWS)
    done = certeq("learn", rows, "--report", "--draws", 60, "--seed", 7)
    assert done.code == 0
    assert "certeq-out/report.html" in done.out.splitlines()[-1]
    page = Path("certeq-out/report.html").read_text(encoding="utf-8")
    assert "30 logged decisions in 6 episodes" in page
    assert "60 of them were drawn from the posterior" in page
    assert "<dt>seed</dt><dd><bdi>7</bdi></dd>" in page
    assert hashlib.sha256(rows.read_bytes()).hexdigest() in page


@pytest.mark.slow
def test_the_report_is_there_unless_it_is_declined(monkeypatch, tmp_path, file):
    file(ROWS)
    monkeypatch.chdir(tmp_path)
    for words, out, report in (("", "certeq-out", {"report.html"}), ("--no-report --out other", "other", set())):
        done = CliRunner().invoke(app, ["learn", "rows.csv", *words.split(), "--draws", "40"])
        assert done.exit_code == 0, done.output
        assert {path.name for path in Path(out).iterdir()} == {*RESULTS, *report}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(certeq, file):
    rows = file(ROWS)
    for out in ("one", "two"):
        assert certeq("learn", rows, "--report", "--draws", 40, "--seed", 3, "--out", out).code == 0
    assert Path("one/report.html").read_bytes() == Path("two/report.html").read_bytes()


@pytest.mark.parametrize("draws", [1, 19])
def test_too_few_draws_for_an_interval_are_refused(refused, file, draws):
    said = refused("learn", file(ROWS), "--draws", draws)
    assert f"--draws must be at least 20, or 0 for none; got {draws}." in said


def test_without_draws_the_report_says_so(certeq, file):
    assert certeq("learn", file(ROWS), "--report", "--draws", 0).code == 0
    assert "No draws from the posterior were asked for." in Path("certeq-out/report.html").read_text()


def test_small_counts_are_kept_out_of_the_report_alone(certeq, file, table):
    assert certeq("learn", file(ROWS), "--report", "--draws", 0, "--suppress-below", 1000).code == 0
    page = Path("certeq-out/report.html").read_text()
    assert "&lt;1000" in page
    assert 'id="model"' not in page
    assert all(line["visits"].isdecimal() for line in table("certeq-out/policy.csv"))


@pytest.mark.slow
def test_an_audit_and_a_comparison_have_reports_too(certeq, file):
    rows = file(ROWS)
    assert certeq("audit", rows, "--planning-discount", 0.7, "--report", "--draws", 40, "--out", "one").code == 0
    page = Path("one/report.html").read_text(encoding="utf-8")
    assert "Discounting at 0.7 treats your best-observed pair" in page
    assert certeq("compare", rows, "--report", "--draws", 40, "--folds", 2, "--out", "two").code == 0
    page = Path("two/report.html").read_text(encoding="utf-8")
    assert page.index("<h1>Use ") < page.index("How well they predict") < page.index('id="comparison-table"')
    assert "What is advised" not in page
    words = [json.loads(Path("two/compare.json").read_text())["words"], Path("two/compare.csv").read_text()]
    assert html.unescape(page).count(words[0][0]) == 1
    assert (words[1].count(",a tie,") > 0) == ("a tie, " in page)


def test_units_stand_wherever_numbers_of_the_column_do(certeq, refused, file, table):
    rows = "".join(
        f"{e},{t},{60 + 7 * ((e * 5 + t * 3) % 9)}.5,{(e * t) % 2},{t}\n" for e in range(9) for t in range(9)
    )
    path = file("episode,time,sbp,action,reward\n" + rows)
    assert certeq("learn", path, "--bins", "sbp=edges:90", "--unit", "sbp=mmHg", "--draws", 0, "--report").code == 0
    assert [line["sbp"] for line in table("certeq-out/policy.csv")] == ["below 90 mmHg", "90 mmHg or more"]
    assert "below 90 mmHg" in Path("certeq-out/report.html").read_text(encoding="utf-8")
    wrong = refused("learn", path, "--unit", "sbq=mmHg", "--out", "other")
    assert "There is no column 'sbq'" in wrong
    assert "Did you mean 'sbp'" in wrong
    assert "--unit takes COLUMN=UNIT" in refused("learn", path, "--unit", "mmHg", "--out", "other")


def test_a_report_in_the_way_is_kept(refused, file):
    Path("certeq-out").mkdir()
    Path("certeq-out/report.html").write_text("precious")
    assert "certeq-out/report.html already exists" in refused("learn", file(ROWS), "--report")


def test_what_takes_long_is_told_line_by_line_where_there_is_no_terminal():
    told, now = io.StringIO(), iter([0.0, 1.0, 5.0, 9.0])
    with show.Steps(Console(file=told), clock=lambda: next(now)) as steps:
        for step in ("Drawing models", "Auditing a planning discount", "[red]own"):
            steps.begin(step)
    assert told.getvalue() == "Auditing a planning discount ...\n[red]own ...\n"


def test_on_a_terminal_one_line_changes():
    told = io.StringIO()
    with show.Steps(Console(file=told, force_terminal=True, width=60)) as steps:
        steps.begin("Drawing models from the posterior")
        assert "Drawing models from the posterior" in str(steps.status.status)


# ---- existing results ----


def test_results_that_are_there_are_kept_unless_force_is_said(certeq, refused, file):
    rows = file(ROWS)
    certeq("learn", rows)
    assert "certeq-out/policy.json already exists" in refused("learn", rows, "--discount", 0.1)
    assert certeq("learn", rows, "--discount", 0.1, "--force").code == 0
    assert json.loads(Path("certeq-out/policy.json").read_text())["settings"]["discount"] == 0.1


def test_when_one_result_cannot_be_written_none_is(refused, file):
    Path("certeq-out/policy.csv").mkdir(parents=True)
    Path("certeq-out/policy.json").write_text("precious")
    refused("learn", file(ROWS), "--force")


def test_a_file_in_place_of_the_folder_is_an_error_in_words(refused, file):
    assert "Could not write" in refused("learn", file(ROWS), "--out", file("", "taken"))


@pytest.mark.parametrize("name", ["[red]", "[bold", "a]b", ":pill:", "a b", "x" * 130])
def test_results_can_be_kept_under_any_name_and_the_name_is_told(certeq, file, name):
    done = certeq("learn", file(ROWS), "--out", name)
    assert done.code == 0
    assert f"{name}/policy.json" in done.out


def test_a_name_that_is_too_long_is_an_error_in_words(refused, file):
    refused("learn", file(ROWS), "--out", "x" * 300)


# ---- bad files ----


BAD = {
    "no action": (ROWS.replace("action", "xyz"), (), "which column is the action"),
    "empty": ("", (), "is empty"),
    "only a header": (HEADER, (), "has a header but no rows"),
    "one row": (HEADER + "1,0,A,x,1\n", (), "No transition is left of 1 row"),
    "mixed types": (HEADER + "".join(f"1,{t},{t % 7},x,1\n" for t in range(30)) + "1,30,oops,x,1\n", (), "'oops'"),
    "missing state": (ROWS.replace("0,1,B", "0,1,NaN"), (), "'state' is missing"),
    "infinite reward": (ROWS.replace("0,1,B,x,1", "0,1,B,x,inf"), (), "must be a finite number"),
    "too many states": (ROWS, ("--max-states", 2), "more than 2 states"),
    "too many numbers": (
        "x,action,reward,next_x\n" + "".join(f"{t},a,0,{t + 1}\n" for t in range(60)),
        ("--max-states", 20, "--bins", "x=labels"),
        "--bins x=quantile:8",
    ),
    "a column that is not there": (ROWS, ("--reward", "rewrd"), "Did you mean 'reward'"),
    "bins of nothing": (ROWS, ("--bins", "stat=labels"), "Did you mean 'state'"),
    "strange bins": (ROWS, ("--bins", "state=cut:3"), "I do not know how to bin"),
    "half a pair": (ROWS, ("--bins", "state"), "--bins takes"),
    "no such layout": (ROWS, ("--layout", "wide"), "no layout named 'wide'"),
    "no end with discount 1": (ROWS, ("--discount", 1), "discount below 1"),
    "discount 2": (ROWS, ("--discount", 2), "between 0 and 1"),
    "horizon 0": (ROWS, ("--horizon", 0), "horizon must be at least 1"),
    "no such regularizer": (ROWS, ("--regularizer", "uniform_piror"), "Did you mean 'uniform_prior'"),
    "no such setting": (ROWS, ("--setting", "strenght=1"), "no setting 'strenght'"),
    "no value": (ROWS, ("--setting", "strength"), "--setting takes NAME=VALUE"),
    "a word for a number": (ROWS, ("--regularizer", "uniform_prior", "--setting", "magnitude=x"), "magnitude"),
    "a magnitude is lacking": (ROWS, ("--regularizer", "uniform_prior"), "magnitude"),
    "an option as a setting": (ROWS, ("--setting", "discount=0.9"), "discount"),
    "a word of ours as a setting": (ROWS, ("--setting", "batch=1"), "no setting 'batch'"),
    "no expert": (ROWS, ("--regularizer", "expert_prior", "--setting", "magnitude=1"), "target"),
    "an expert in words": (ROWS, ("--regularizer", "expert_prior", "--setting", "target=x"), "target"),
    "no such convention": (ROWS, ("--unvisited", "exlude"), "Did you mean 'exclude'"),
    "no such pool": (ROWS, ("--reward-pool", "stat"), "Did you mean 'state'"),
    "no such way": (ROWS, ("--reward-by", "rows"), "no way to estimate rewards named 'rows'"),
    "no such table": (ROWS, ("--reward-table", "nowhere.csv"), "There is no file"),
    "no rewards": (ROWS, ("--reward", "none"), "no rewards"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("content", "words", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_learned_from_is_one_paragraph_and_leaves_nothing(refused, file, content, words, says):
    assert any(part in refused("learn", file(content), *words) for part in says.split("|"))


def test_what_is_no_table_is_one_paragraph(refused, file, tmp_path):
    pl.read_csv(file(ROWS)).write_parquet(tmp_path / "whole.parquet")
    cut = file((tmp_path / "whole.parquet").read_bytes()[:-50], "cut.parquet")
    empty = tmp_path / "empty"
    empty.mkdir()
    for source, says in (
        ("nowhere.csv", "There is no file"),
        (empty, "There is no Parquet file (.parquet) in"),
        (tmp_path, "cut.parquet cannot be read"),
        (cut, "cut.parquet"),
        (file(b"\x89PNG\r\n", "x.png"), "is not a kind of file that certeq reads"),
    ):
        assert says in refused("learn", source)


def test_a_file_one_may_not_read_is_one_paragraph(refused, file, monkeypatch):
    rows = file(ROWS)
    rows.chmod(0)
    if os.geteuid() == 0:  # for root no file is closed

        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(rows), "open", denied)
    assert "you are not allowed to read it" in refused("learn", rows)


def test_a_decision_about_last_rows_is_told_before_all_else(certeq):
    done = certeq("learn", "--out", "out")
    example, decision, *_ = done.out.splitlines()
    assert example.startswith("The bundled example")
    assert decision.startswith("! All 50 episodes are taken to be cut off at their last rows, since all have 30 rows")
    said = certeq("learn", "--ends", "never", "--out", "said")
    assert "cut off" not in said.out
    assert Path("out/policy.json").read_bytes() == Path("said/policy.json").read_bytes()
    over = certeq("learn", "--ends", "always", "--out", "over")
    assert "1,500 transitions in 50 episodes, 50 of them ending an episode." in over.out


def test_which_way_is_better_is_said_in_the_terminal_and_in_the_report(certeq, refused):
    text = examples.path().read_text(encoding="utf-8").replace("reward", "deaths", 1)
    Path("rows.csv").write_text(text, encoding="utf-8")
    assert "--cost deaths) if less of it is better, minimize=False (--maximize)" in refused(
        "learn", "rows.csv", "--reward", "deaths", "--out", "a"
    )
    done = certeq("learn", "rows.csv", "--cost", "deaths", "--bins", "2", "--draws", "0", "--report", "--out", "b")
    assert "Smaller 'deaths' is better: rewards are minus it." in done.out
    assert "Smaller “deaths” is better" in Path("b/report.html").read_text(encoding="utf-8")
    larger = certeq("learn", "rows.csv", "--reward", "deaths", "--maximize", "--no-report", "--out", "c")
    assert "Larger 'deaths' is better." in larger.out


def test_a_checklist_is_written_beside_the_report_where_it_is_asked_for(certeq, refused, file):
    assert "leave --no-report out" in refused("learn", file(ROWS), "--checklist")
    done = certeq("learn", file(ROWS), "--report", "--checklist", "--draws", "0", "--out", "found")
    assert done.code == 0
    assert "found/checklist.md" in done.out
    assert "30 decisions in 6 episodes" in Path("found/checklist.md").read_text(encoding="utf-8")


def test_a_limit_reads_its_column_and_is_kept(certeq, tmp_path):
    random = np.random.default_rng(0)
    state, dose = random.integers(2, size=400), random.integers(2, size=400)
    following = (random.random(400) < np.where(dose == 1, 0.8, 0.3)).astype(int)
    rows = zip(state, dose, state, following, dose, strict=True)
    lines = ["state,action,reward,next_state,dose", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    done = certeq("learn", "rows.csv", "--limit", "dose<=3", "--draws", "20", "--report", "--out", "x")
    assert done.code == 0
    told = json.loads((tmp_path / "x" / "summary.json").read_text())
    assert told["settings"]["limit"] == "dose<=3"
    assert told["limits"]["frontiers"][0]["advice"][0] <= 3
    assert "To keep dose<=3, rewards are charged" in done.out.replace("\n", " ")
    refused = certeq("learn", "rows.csv", "--limit", "doses<=3", "--out", "y")
    assert refused.code == 2
    assert "no column 'doses'" in refused.err
