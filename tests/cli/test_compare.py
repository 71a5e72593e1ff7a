"""``certeq compare``: what it writes and says, and how it refuses."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from certeq.cli import app
from certeq.regularizers import REGULARIZERS

WHICH = ["evidence", "none", "discount"]
FEW = [*(word for name in WHICH for word in ("--regularizer", name)), "--draws", "30", "--folds", "2"]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    lines = ["patient,month,state,action,reward"]
    for patient in range(12):
        for month in range(6):
            state = "well" if (patient * month) % 3 else "[/bold]"
            lines.append(f"{patient},{month},{state},{(patient + month) % 2},{month % 2}")
    path.write_text("\n".join(lines))
    return path


def run(*words):
    return CliRunner().invoke(app, ["compare", *map(str, words)])


@pytest.mark.slow
def test_it_recommends_in_words_and_writes_numbers_and_a_picture(rows, tmp_path):
    told = run(rows, *FEW, "--out", tmp_path / "out")
    assert told.exit_code == 0, told.output
    assert told.output.startswith("Use ")
    written = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert written["format"] == "certeq-comparison"
    assert written["seed"] == 0
    assert [each["name"] for each in written["regularizers"]] == WHICH
    assert written["recommended"] in REGULARIZERS
    table = pl.read_csv(tmp_path / "out" / "compare.csv")
    assert table["regularizer"].to_list() == WHICH
    assert (tmp_path / "out" / "compare.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.slow
def test_the_same_seed_writes_the_same_files(rows, tmp_path):
    for name in ("one", "two"):
        run(rows, *FEW, "--out", tmp_path / name)
    for name in ("compare.json", "compare.csv", "compare.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.slow
def test_other_processes_write_the_same_files(rows, tmp_path):
    for name, workers in (("one", 1), ("two", 2)):
        assert run(rows, *FEW, "--no-report", "--workers", workers, "--out", tmp_path / name).exit_code == 0
    for name in ("compare.json", "compare.csv", "compare.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_processes_and_a_cluster_at_once_are_refused(rows, tmp_path):
    told = run(rows, *FEW, "--workers", 2, "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "out")
    assert told.exit_code == 2
    assert "--workers" in told.output
    assert not (tmp_path / "out").exists()


def test_results_that_are_there_are_kept(rows, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "compare.csv").write_text("mine")
    told = run(rows, *FEW, "--out", tmp_path / "out")
    assert told.exit_code == 2
    assert "--force" in told.output
    assert (tmp_path / "out" / "compare.csv").read_text() == "mine"
    assert not (tmp_path / "out" / "compare.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--regularizer", "evidnce"], "Did you mean 'evidence'"),
        (["--folds", "50"], "50 folds need at least as many episodes; there are only 12"),
        (["--discount", "1.5"], "discount"),
        (["--draws", "0"], "draws"),
    ],
)
def test_bad_options_are_named_and_nothing_is_written(rows, tmp_path, words, said):
    told = run(rows, *words, "--out", tmp_path / "out")
    assert told.exit_code == 2
    assert said in told.output.replace("\n", " ")
    assert "Traceback" not in told.output
    assert not (tmp_path / "out").exists()
