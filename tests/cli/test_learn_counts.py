"""certeq learn from counts: a file that certeq count wrote, or a folder that is counted on the way."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from certeq import Policy, learn, read
from certeq.cli import show
from certeq.data.counting import Tallied, count
from certeq.learning import policy_file
from certeq.planners.progress import Progress
from certeq.questions import asking
from certeq.questions import draws as draws_room

RESULTS = ("policy.json", "policy.csv", "summary.json")


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "ward": rng.choice(["low", "high", "[bold]odd"], n),
            "action": rng.integers(0, 2, n),
            "reward": rng.random(n).round(3),
            "next_ward": rng.choice(["low", "high", "[bold]odd"], n),
            "done": rng.random(n) < 0.1,
        }
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    for i in range(3):
        rows(300, i).write_parquet(tmp_path / "rows" / f"part-{i}.parquet")
    return tmp_path / "rows"


@pytest.fixture
def counted(certeq, folder):
    assert certeq("count", "rows", "-o", "counts.npz").code == 0
    return Path("counts.npz")


def written(out):
    return [Path(out, name).read_bytes() for name in RESULTS]


# ---- a file of counts ----


def test_a_file_of_counts_is_learned_from(certeq, counted, table):
    done = certeq("learn", counted, "--discount", 0.9, "--min-visits", 3, "--reward-pool", "state", "--out", "found")
    assert done.code == 0, done
    assert done.err == ""
    assert "900 transitions, " in done.out
    assert "3 states x 2 actions: 6 of 6 pairs were tried (100%)" in done.out
    expected = learn(Tallied.load(counted), discount=0.9, min_visits=3, reward_pool="state")
    assert json.loads(Path("found/policy.json").read_text()) == expected.policy.to_json()
    assert Policy.load("found/policy.json").data["rows"] == 900
    summary = json.loads(Path("found/summary.json").read_text())
    assert (summary["rows"], summary["episodes"], summary["seed"]) == (900, None, 0)
    assert [line["ward"] for line in table("found/policy.csv")] == ["[bold]odd", "high", "low"]


def test_counts_teach_the_command_line_what_the_rows_teach_it(certeq, counted, folder):
    whole = pl.concat([pl.read_parquet(path) for path in sorted(folder.iterdir())])
    whole.write_csv("rows.csv")
    told = ("--layout", "explicit", "--bins", "ward=labels", "--bins", "action=labels")
    assert certeq("learn", "rows.csv", *told, "--out", "rows-out").code == 0
    assert certeq("learn", counted, "--out", "counts-out").code == 0
    one, other = (json.loads(Path(out, "policy.json").read_text()) for out in ("rows-out", "counts-out"))
    for part in ("states", "advice", "recipe", "settings"):
        assert one[part] == other[part]
    np.testing.assert_allclose(one["action_values"], other["action_values"], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--state", "ward"), ("--action", "action"), ("--reward", "reward"), ("--next-state", "next_ward"),
        ("--episode", "ward"), ("--time", "ward"), ("--done", "done"), ("--truncated", "done"), ("--bins", "3"),
        ("--gaps", "cut"), ("--layout", "long"), ("--max-states", "7"),
    ],
)  # fmt: skip
def test_an_option_about_columns_is_refused_by_name_where_there_are_only_counts(refused, counted, option, value):
    for verb in (("learn",), ("audit", "--planning-discount", "0.5")):
        said = refused(*verb, counted, option, value)
        assert said.startswith(f"Error: {option} cannot be used: counts.npz holds counts")


def test_what_is_no_file_of_counts_is_one_paragraph(refused, tmp_path, counted):
    assert "There is no file nowhere.npz" in refused("learn", "nowhere.npz")
    (tmp_path / "noise.npz").write_bytes(b"no archive at all")
    assert "damaged, or not a file of counts" in refused("learn", "noise.npz")
    np.savez(tmp_path / "other.npz", about=np.zeros(3), code=np.array([{}], dtype=object))
    assert "not a file of counts" in refused("learn", "other.npz")


def test_known_rewards_go_by_the_columns_of_the_counts(certeq, refused, counted, folder):
    table = "ward,action,reward\n" + "".join(
        f"{ward},{action},{i}\n" for i, (ward, action) in enumerate((w, a) for w in ("high", "low") for a in (0, 1))
    )
    Path("known.csv").write_text(table)
    assert "no line for state '[bold]odd', action '0'" in refused("learn", counted, "--reward-table", "known.csv")
    Path("known.csv").write_text(table + "[bold]odd,0,7\n[bold]odd,1,8\n")
    assert certeq("learn", counted, "--reward-table", "known.csv", "--out", "found").code == 0
    expected = learn(Tallied.load(counted), reward=[[7, 8], [0, 1], [2, 3]])
    assert Policy.load("found/policy.json").actions.tolist() == expected.policy.actions.tolist()
    assert (
        json.loads(Path("found/policy.json").read_text())["action_values"] == expected.policy.to_json()["action_values"]
    )


def test_counts_are_audited_as_the_rows_are(certeq, counted, folder):
    pl.concat([pl.read_parquet(path) for path in sorted(folder.iterdir())]).write_csv("rows.csv")
    told = ("--layout", "explicit", "--bins", "ward=labels", "--bins", "action=labels")
    assert certeq("audit", "rows.csv", *told, "--planning-discount", 0.5, "--out", "rows-out").code == 0
    assert certeq("audit", counted, "--planning-discount", 0.5, "--out", "counts-out").code == 0
    one, other = (json.loads(Path(out, "audit.json").read_text()) for out in ("rows-out", "counts-out"))
    one.pop("data"), other.pop("data")  # fingerprints of different files
    assert one == other


@pytest.mark.slow
def test_a_report_on_counts_says_what_they_can_tell_and_what_not(certeq, counted):
    done = certeq("learn", counted, "--report", "--draws", 30, "--out", "found")
    assert done.code == 0, done
    page = Path("found/report.html").read_text()
    assert "30 of them were drawn from the posterior" in page
    reason = "here there are only counts of rows. Learn from the rows to see it."
    assert page.count(reason) == 5  # three questions are open: said before all else, and where two answers would be
    assert Tallied.load(counted).fingerprint in page


@pytest.mark.slow
def test_a_model_that_is_never_written_out_is_drawn_and_the_report_says_how_often(certeq, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    state = np.repeat(np.arange(3000), 4)
    near = (state + rng.integers(4, size=12_000)) % 3000
    columns = {"state": state, "action": np.tile([0, 1], 6000), "next_state": near}
    pl.DataFrame(columns | {"reward": rng.random(12_000)}).write_parquet(tmp_path / "rows.parquet")
    assert certeq("count", "rows.parquet").code == 0
    done = certeq("learn", "counts.npz", "--report", "--draws", 30)
    assert done.code == 0, done
    page = Path("certeq-out/report.html").read_text()
    assert "30 of them were drawn from the posterior" in page
    assert "draws as many as you say" in page
    assert "Whatever the unseen rows are like, the advice is worth" in page
    assert page.count("For 3,000 states and 2 actions this takes too long for a report") >= 3
    assert "Advice in all 3,000 states" in page
    monkeypatch.setattr(asking, "MOST", 10_000)
    done = certeq("learn", "counts.npz", "--report", "--force")
    assert done.code == 0, done
    page = Path("certeq-out/report.html").read_text()
    told = "6,000 pairs of states and actions and 12,000 rows are more than the 10,000 in all for which models are"
    assert f"It was not computed. {told} drawn unasked" in page
    assert "--draws 40" in page


@pytest.mark.slow
def test_of_very_many_states_people_are_told_which_file_has_them_and_what_was_not_planned(
    certeq, tmp_path, monkeypatch
):
    monkeypatch.setattr(policy_file, "READABLE", 5000)
    monkeypatch.setattr(asking, "SPARSE", 5000)
    state = np.repeat(np.arange(3000), 4)
    columns = {"state": state, "action": np.tile([0, 1], 6000), "next_state": (state + 1) % 3000}
    pl.DataFrame(columns | {"reward": (state % 7) / 7}).write_parquet(tmp_path / "rows.parquet")
    assert certeq("count", "rows.parquet").code == 0
    done = certeq("learn", "counts.npz", "--report", "--draws", 0)
    assert done.code == 0, done
    assert "2,985 more states, in policy.npz" in done.out
    page = Path("certeq-out/report.html").read_text()
    assert "policy.npz has all of them" in page
    assert "policy.csv has all of them" not in page
    assert "advise()" in page  # how to ask what would be advised without regularization


def test_counts_cannot_be_compared_and_the_reason_is_told(refused, counted):
    assert "predicts some episodes, or rows, from the others" in refused("compare", counted)


# ---- a folder ----


@pytest.mark.parametrize(
    "more", [(), pytest.param(("--workers", "2"), marks=pytest.mark.slow)], ids=["threads", "processes"]
)
def test_a_folder_is_learned_from_as_its_counts_are(certeq, counted, more):
    assert certeq("learn", counted, "--out", "one").code == 0
    done = certeq("learn", "rows", *more, "--out", "two")
    assert done.code == 0, done
    assert written("one") == written("two")


def test_columns_of_a_folder_are_named_as_those_of_a_file(certeq, folder, tmp_path):
    for path in sorted(folder.iterdir()):
        frame = pl.read_parquet(path).rename({"ward": "x", "next_ward": "y", "action": "z", "reward": "r", "done": "d"})
        frame.write_parquet(path)
    told = (
        "--state",
        "x",
        "--next-state",
        "y",
        "--action",
        "z",
        "--reward",
        "r",
        "--done",
        "d",
        "--layout",
        "explicit",
    )
    assert certeq("learn", "rows", *told, "--out", "found").code == 0
    roles = {"state": ["x"], "next_state": ["y"], "action": ["z"], "reward": "r", "done": "d"}
    assert json.loads(Path("found/policy.json").read_text()) == learn(count(folder, **roles)).policy.to_json()


@pytest.mark.parametrize(
    ("option", "value"), [("--episode", "ward"), ("--time", "ward"), ("--gaps", "cut"), ("--layout", "long")]
)
def test_an_option_about_order_is_refused_by_name_where_rows_are_counted(refused, folder, option, value):
    assert refused("learn", folder, option, value).startswith(f"Error: {option} cannot be used: rows are counted")


@pytest.mark.slow
def test_a_report_is_the_same_whoever_draws_its_models(certeq, counted, monkeypatch):
    monkeypatch.setattr(draws_room, "BLOCK", 10 * 24)  # ten models of 3 states and 2 actions, which may end
    for out, workers in (("one", 1), ("two", 2)):
        assert certeq("learn", counted, "--report", "--draws", 30, "--workers", workers, "--out", out).code == 0
    assert Path("one/report.html").read_bytes() == Path("two/report.html").read_bytes()


def test_more_states_than_were_meant_are_refused_in_a_folder_too(refused, folder):
    assert "more than 2 states" in refused("learn", folder, "--max-states", "2")


@pytest.mark.slow
def test_workers_do_not_keep_a_single_file_from_being_read_as_rows(certeq, folder):
    done = certeq("learn", folder / "part-0.parquet", "--workers", "2", "--out", "found")
    assert done.code == 0
    expected = learn(read(folder / "part-0.parquet"))
    assert json.loads(Path("found/policy.json").read_text()) == expected.policy.to_json()


# ---- a plan that takes long ----


def ring(path, S=1500):
    """A walk around a ring, back and forth by chance whatever one does: it takes millions of steps to forget."""
    state = np.repeat(np.arange(S), 4)
    pl.DataFrame(
        {
            "state": state,
            "action": np.tile([0, 0, 1, 1], S),
            "next_state": (state + np.tile([1, -1, 1, -1], S)) % S,
            "reward": np.sin(2 * np.pi * state / S) + np.tile([0, 0, 1, 1], S) * (state % 2),
        }
    ).write_parquet(path)


def best_on_the_ring(discount, S=1500):
    """Optimal values: actions matter for the reward alone, so the better one is taken and a linear system solved."""
    state = np.arange(S)
    walk = np.zeros((S, S))
    walk[state, (state + 1) % S] = walk[state, (state - 1) % S] = 0.5
    return np.linalg.solve(np.eye(S) - discount * walk, np.sin(2 * np.pi * state / S) + state % 2)


LONG = ("--discount", "0.99998", "--regularizer", "none")


@pytest.mark.slow
def test_a_long_plan_that_is_interrupted_leaves_what_it_has_and_its_bound(tmp_path):
    (tmp_path / "rows").mkdir()
    ring(tmp_path / "rows" / "ring.parquet")
    command = [sys.executable, "-m", "certeq", "learn", "rows", *LONG]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as run:
        told = run.stderr.readline()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate()
    assert run.returncode == 130, (out, err)
    assert told.startswith("Planning: iteration ")
    assert "values within" in told
    assert "Ctrl-C keeps this" in told
    assert "Planning was stopped; this is what it had found by then. No report was made." in out
    assert {path.name for path in (tmp_path / "certeq-out").iterdir()} == set(RESULTS)
    (alert,) = json.loads((tmp_path / "certeq-out" / "summary.json").read_text())["alerts"][-1:]
    assert alert.startswith("Planning stopped early: interrupted after ")
    bound = float(alert.split("within ")[1].split(" of the best")[0].replace(",", "").replace("−", "-"))
    policy = Policy.load(tmp_path / "certeq-out" / "policy.json")
    best = best_on_the_ring(0.99998)
    assert 0 < np.abs(policy.action_values.max(axis=1) - best).max() <= bound < np.abs(best).max()


def test_a_plan_that_is_interrupted_before_a_word_was_said_leaves_nothing(certeq, tmp_path, monkeypatch):
    ring(tmp_path / "ring.parquet", 1100)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(show.Planning, "progress", stop)
    done = certeq("learn", "ring.parquet", *LONG, "--layout", "explicit", "--bins", "state=labels")
    assert done.code == 130
    assert "No partial results were written" in done.err
    assert not list(tmp_path.glob("certeq-out/*"))


def at(seconds, bound=1.0, left=75.0):
    return Progress(3, 0.5, bound, 1e-9, seconds, left)


def test_progress_is_told_after_two_seconds_and_in_a_log_only_now_and_then(capsys):
    now = [0.0]
    planning = show.Planning(Console(width=200), clock=lambda: now[0])
    with planning:
        for second in range(30):
            now[0] = float(second)
            planning.progress(at(float(second)))
        planning.progress(at(40.0, bound=1e-10))
    lines = capsys.readouterr().out.splitlines()
    expected = "Planning: iteration 3, residual 5.0e-01, values within 1.0e+00 of the best (until 1.0e-09), about "
    assert len(lines) == 3
    assert all(line.startswith(expected + "75 s left; Ctrl-C keeps this") for line in lines)
