"""``certeq count``."""

import numpy as np
import polars as pl
import pytest

from certeq import read, tally
from certeq.data.counting import Tallied


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "rows").mkdir()
    for i in range(3):
        pl.DataFrame(
            {
                "state": rng.choice(["low", "high", "[bold]odd"], 400),
                "action": rng.integers(0, 2, 400),
                "reward": rng.random(400),
                "next_state": rng.choice(["low", "high"], 400),
                "done": rng.random(400) < 0.1,
                "patient": np.arange(400) // 10,
            }
        ).write_parquet(tmp_path / "rows" / f"part-{i}.parquet")
    return tmp_path / "rows"


def test_a_folder_becomes_a_file_of_counts(certeq, folder, tmp_path):
    done = certeq("count", "rows", "-o", "counts.npz")
    assert done.code == 0, done
    assert "1,200 rows in 3 files: 1,200 transitions" in done.out
    assert "3 states x 2 actions: 6 of 6 pairs were tried (100%)" in done.out
    assert "Not used: patient" in done.out
    assert "Written: counts.npz" in done.out
    tallied = Tallied.load(tmp_path / "counts.npz")
    assert tallied.state_names == ("[bold]odd", "high", "low")
    whole = pl.concat([pl.read_parquet(path) for path in sorted(folder.iterdir())])
    batch = read(whole, bins={"state": "labels", "action": "labels"}, layout="explicit", episode=False)
    assert np.array_equal(tallied.counts.transitions, tally(batch).transitions)
    assert np.array_equal(tallied.counts.ended, tally(batch).ended)


@pytest.mark.slow
def test_local_processes_write_the_same_file(certeq, folder, tmp_path):
    assert certeq("count", "rows", "-o", "one.npz").code == 0
    assert certeq("count", "rows", "-o", "two.npz", "--workers", "2").code == 0
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_numbers_are_cut_where_it_is_said(certeq, tmp_path):
    frame = pl.DataFrame({"x": [0.1, 0.6, 0.9], "next_x": [0.2, 0.4, 0.8], "action": [1, 1, 2]})
    frame.write_parquet(tmp_path / "rows.parquet")
    assert certeq("count", "rows.parquet", "--bins", "x=edges:0.5", "--no-fingerprint").code == 0
    tallied = Tallied.load(tmp_path / "counts.npz")
    assert tallied.counts.transitions.tolist() == [[[1, 0], [0, 0]], [[1, 0], [0, 1]]]
    assert tallied.fingerprint is None
    assert tallied.rewards is None


def test_what_is_wrong_is_said_in_a_paragraph_and_nothing_is_written(refused, folder, tmp_path):
    assert "There is no file" in refused("count", "nowhere")
    assert "to be the state" in refused("count", "rows", "--state", "stage")
    assert "cannot cut all columns alike" in refused("count", "rows", "--bins", "4")
    assert "takes an address" in refused("count", "rows", "--scheduler", "somewhere")
    assert "--workers" in refused("count", "rows", "--scheduler", "tcp://localhost:1", "--workers", "2")
    assert "more than 2 states" in refused("count", "rows", "--max-states", "2")
    (tmp_path / "counts.npz").write_text("mine")
    assert "already exists" in refused("count", "rows")
