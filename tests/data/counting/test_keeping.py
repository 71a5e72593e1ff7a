"""Counting that was stopped goes on from what was kept, to the same bytes; what does not fit is counted again."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import polars as pl
import pytest
from counted import ROLES, rows

from certeq import InputError
from certeq.data.counting import count, running, shares
from certeq.data.counting import kept as keeping
from certeq.data.counting import parquet as files
from certeq.data.counting.kept import from_arrays, identity, to_arrays
from certeq.data.request import Request

TOLD = ROLES | {"piece_rows": 50}


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody pulls the plug."""


@pytest.fixture
def counted(monkeypatch):
    """Names of the files of all shares that are really counted; with a number of them after which it is stopped."""
    seen = []

    def stop_after(number=None):
        def counting(share, layout):
            if number is not None and len(seen) >= number:
                raise Stopped
            seen.append([(piece.file.name, piece.start) for piece in share])
            return running.tree(share, lambda piece: shares.count_share([piece], layout), running.merge)

        seen.clear()
        monkeypatch.setattr(running, "count_share", counting)
        return seen

    return stop_after


def same(one, other):
    """Whether two parts are the same to the last bit."""
    assert one.cells._fields == other.cells._fields
    for a, b in zip(one.cells, other.cells, strict=True):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
    for mine, yours in ((one.states, other.states), (one.actions, other.actions)):
        assert mine.cells.tobytes() == yours.cells.tobytes()
        for a, b in zip(mine.axes, yours.axes, strict=True):
            assert type(a) is type(b)
            for field in fields(a):
                left, right = getattr(a, field.name), getattr(b, field.name)
                if isinstance(left, pl.Series):
                    assert (left.dtype, left.to_list()) == (right.dtype, right.to_list())
                else:
                    assert left == right
    assert (one.rewards is None) == (other.rewards is None)
    if one.rewards is not None:
        for field in fields(one.rewards):
            a, b = (np.asarray(getattr(part.rewards, field.name)) for part in (one, other))
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    assert one.ended.tobytes() == other.ended.tobytes()
    assert (one.rows, one.dropped) == (other.rows, other.dropped)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("stopped_after", [1, 7, 19])
def test_stopped_anywhere_it_goes_on_with_what_is_missing_and_ends_with_the_same_bytes(
    parquet, tmp_path, counted, stopped_after
):
    folder = parquet(rows(1000), "folder", files=3)
    whole = count(folder, **TOLD)
    counted(stopped_after)
    with pytest.raises(Stopped):
        count(folder, **TOLD, resume=tmp_path / "kept", threads=1)
    assert len(list((tmp_path / "kept").glob("kept-*.npz"))) == stopped_after
    seen = counted()
    again = count(folder, **TOLD, resume=tmp_path / "kept")
    assert again.to_bytes() == whole.to_bytes()
    assert len(seen) == len(files.pieces(files.find(folder), 50)) - stopped_after
    seen = counted()
    assert count(folder, **TOLD, resume=tmp_path / "kept").to_bytes() == whole.to_bytes()
    assert seen == []


@pytest.mark.slow
def test_other_workers_go_on_with_what_was_kept(parquet, tmp_path, counted, monkeypatch):
    folder = parquet(rows(600), "folder", files=2)
    counted(5)
    with pytest.raises(Stopped):
        count(folder, **TOLD, resume=tmp_path / "kept", threads=1)
    monkeypatch.undo()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()}
    again = count(folder, **TOLD, resume=tmp_path / "kept", workers=2)
    assert again.to_bytes() == count(folder, **TOLD).to_bytes()
    assert len(before) == 5
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("damage", ["cut off", "emptied", "a bit", "another task's", "no archive", "no about"])
def test_what_is_damaged_is_counted_again(parquet, tmp_path, counted, damage):
    folder, kept = parquet(rows(300), "folder", files=1), tmp_path / "kept"
    whole = count(folder, **TOLD, resume=kept)
    first, second, *_ = sorted(kept.iterdir())
    data = first.read_bytes()
    first.write_bytes(
        {
            "cut off": data[:-30],
            "emptied": b"",
            "a bit": data[:300] + bytes([data[300] ^ 1]) + data[301:],
            "another task's": second.read_bytes(),
            "no archive": b"hello",
            "no about": _without_about(tmp_path),
        }[damage]
    )
    seen = counted()
    assert count(folder, **TOLD, resume=kept).to_bytes() == whole.to_bytes()
    assert len(seen) == 1
    assert first.read_bytes() == data


def _without_about(folder):
    np.savez(folder / "x.npz", rows=np.arange(3))
    return (folder / "x.npz").read_bytes()


def test_changed_files_and_other_settings_are_counted_anew(parquet, tmp_path, counted):
    folder, kept = parquet(rows(300), "folder", files=1), tmp_path / "kept"
    count(folder, **TOLD, resume=kept)
    seen = counted()
    edges = {"bins": {"stage": "edges:1.5"}}
    assert count(folder, **TOLD, **edges, resume=kept).to_bytes() == count(folder, **TOLD, **edges).to_bytes()
    assert len(seen) >= 6
    (file,) = folder.iterdir()
    frame = pl.read_parquet(file)
    frame.with_columns(reward=frame["reward"].reverse()).write_parquet(file)
    os.utime(file, ns=(1, 1))  # an honest file has another time by itself, but not one of the same second everywhere
    seen = counted()
    assert count(folder, **TOLD, resume=kept).to_bytes() == count(folder, **TOLD).to_bytes()
    assert len(seen) >= 6


def test_a_folder_that_takes_nothing_is_told_before_any_work(parquet, tmp_path, counted):
    (tmp_path / "file").write_text("in the way")
    seen = counted()
    with pytest.raises(InputError, match="Could not write"):
        count(parquet(rows(100)), **TOLD, resume=tmp_path / "file")
    assert seen == []


KINDS = {
    "text": pl.Series(["b", "ä\x00", "c"] * 20),
    "integer": pl.Series([3, -(2**62), 5] * 20),
    "float": pl.Series([0.1, -2.5, 9e15] * 20),
    "small": pl.Series([1, 2, 3] * 20, dtype=pl.Int8),
    "boolean": pl.Series([True, False, True] * 20),
    "date": pl.Series(["2024-01-31", "1900-02-01", "2024-01-31"] * 20).str.to_date(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reward", [True, False])
def test_a_part_comes_back_as_it_was_whatever_its_labels(parquet, kind, reward):
    frame = pl.DataFrame(
        {"s": KINDS[kind], "t": np.arange(60) / 7, "a": ["x", "y"] * 30, "n": KINDS[kind], "u": np.arange(60) / 9}
    ).with_columns(r=np.linspace(-1e-9, 7e11, 60), done=pl.Series([False] * 59 + [True]))
    found = files.find(parquet(frame))
    told = {"state": ["s", "t"], "next_state": ["n", "u"], "action": "a", "reward": "r" if reward else False}
    layout = running.plan(found, Request(**told, done="done"), {"t": "edges:1,2.5", "s": "labels"}, 1000)
    part = running.count_share(files.pieces(found, 60), layout)
    assert same(part, from_arrays(to_arrays(part)))


def test_a_part_without_rows_that_count_comes_back(parquet):
    frame = pl.DataFrame({"s": ["x"], "a": pl.Series([None], dtype=pl.String), "n": ["y"], "r": [1.0]})
    found = files.find(parquet(frame))
    layout = running.plan(found, Request(state="s", action="a", next_state="n", reward="r"), {}, 10)
    part = running.count_share(files.pieces(found, 10), layout)
    assert len(part.states) == 0
    assert same(part, from_arrays(to_arrays(part)))


def test_what_is_kept_is_known_by_rows_files_and_settings(parquet):
    found = files.find(parquet(rows(100), "folder", files=2))
    layout = running.plan(found, Request(**ROLES), {}, 1000)
    cut = files.pieces(found, 25)
    other = running.plan(found, Request(**ROLES), {}, 1001)
    abouts = [
        identity(cut[:1], layout),
        identity(cut[1:2], layout),
        identity(cut[:2], layout),
        identity(cut[:1], other),
    ]
    assert len({json.dumps(about) for about in abouts}) == 4


def test_many_may_keep_in_one_folder_at_once(tmp_path):
    arrays = {"x": np.arange(1000.0)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: keeping.keep(tmp_path, {"task": i % 10}, arrays), range(80)))
    assert len(list(tmp_path.iterdir())) == 10
    assert all(keeping.recall(tmp_path, {"task": i})["x"].tolist() == arrays["x"].tolist() for i in range(10))
