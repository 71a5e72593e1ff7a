"""Killed before any change on disk, a run leaves the old files, the new ones, or new ones with the sign beside them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from trust.running import hidden, visible

from certeq import InputError
from certeq.base.writing import PART, READY, STALE, check_free, settle, sweep, write_files
from trust import killing, resuming

ROOT = Path(__file__).parents[2]
OLD = {"a.json": b"old a", "b.csv": b"old b", "c.html": b"old c"}
NEW = {"a.json": b"new a", "b.csv": b"new b", "d.html": b"new d"}  # c.html is not written any more, and stays
WRITE = """
import sys
from pathlib import Path
from certeq.base.writing import write_files
from trust.launch import die_at

folder = Path(sys.argv[2])
die_at(int(sys.argv[1]), sys.argv[2])
write_files({folder / name: b"new " + name[:1].encode() for name in sys.argv[3:]}, force=True)
"""


def fill(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def write_and_die(folder, change, names):
    command = [sys.executable, "-c", WRITE, str(change), str(folder), *names]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, cwd=folder).returncode


def kills(folder, names):
    """Kill a writer before its first, second, ... change of the folder, until it is through."""
    for change in range(1, 100):
        fill(folder, OLD)
        code = write_and_die(folder, change, names)
        if code == 0:
            return
        assert code == -signal.SIGKILL
        yield visible(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_before_any_change_on_disk_a_set_of_files_is_old_or_new_or_signed_and_then_finished(tmp_path):
    folder = tmp_path / "out"
    after, found = OLD | NEW, []
    for now in kills(folder, NEW):
        if READY in hidden(folder):
            assert all(content in (OLD.get(name), NEW.get(name)) for name, content in now.items())
            found.append("signed")
            settle(folder)
            now = visible(folder)
            assert now == after
        else:
            assert now in (OLD, after)
            found.append("old" if now == OLD else "new")
        sweep(folder, patience=0)
        assert hidden(folder) == []
    assert {"old", "signed", "new"} == set(found)
    assert found == sorted(found, key=["old", "signed", "new"].index)  # each once decided stays so
    assert len(found) >= 10


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_single_file_is_old_or_new_and_needs_no_sign(tmp_path):
    folder = tmp_path / "out"
    found = []
    for now in kills(folder, ["a.json"]):
        assert READY not in hidden(folder)
        assert now in (OLD, OLD | {"a.json": b"new a"})
        found.append(now == OLD)
    assert set(found) == {True, False}


def test_what_was_decided_comes_first_when_the_next_run_writes(tmp_path):
    fill(tmp_path, OLD)
    fill(tmp_path / READY, {"a.json": b"newer a"})
    write_files({tmp_path / "b.csv": "newest b"}, force=True)
    assert visible(tmp_path) == OLD | {"a.json": b"newer a", "b.csv": b"newest b"}
    assert hidden(tmp_path) == []


def test_an_earlier_run_is_finished_even_where_the_next_one_is_refused(tmp_path):
    fill(tmp_path, OLD)
    fill(tmp_path / READY, {"a.json": b"newer a"})
    with pytest.raises(InputError, match="there already"):
        check_free([tmp_path / "a.json"], force=False)
    assert visible(tmp_path) == OLD | {"a.json": b"newer a"}


def test_what_was_left_half_written_is_removed_once_it_is_old(tmp_path):
    young, old = tmp_path / f"{PART}1", tmp_path / f"{PART}2"
    for left in (young, old):
        (left / "new").mkdir(parents=True)
        (left / "new" / "a.json").write_text("hal")
    os.utime(old, (time.time() - 2 * STALE,) * 2)
    check_free([tmp_path / "a.json"], force=False)
    assert hidden(tmp_path) == [young.name]


def test_a_trap_that_somebody_else_laid_in_a_shared_folder_is_left_alone(tmp_path, monkeypatch):
    fill(tmp_path / "out", OLD)
    fill(tmp_path / "private", {"letter": b"dear"})
    (tmp_path / "out" / READY).symlink_to(tmp_path / "private")
    settle(tmp_path / "out")
    assert visible(tmp_path / "private") == {"letter": b"dear"}
    (tmp_path / "out" / READY).unlink()
    fill(tmp_path / "out" / READY, {"a.json": b"forged"})
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    settle(tmp_path / "out")
    assert visible(tmp_path / "out") == OLD
    with pytest.raises(InputError, match="Could not write"):
        write_files({tmp_path / "out" / name: content for name, content in NEW.items()}, force=True)
    assert visible(tmp_path / "out") == OLD


@pytest.mark.slow
def test_two_runs_that_write_the_same_set_at_once_leave_one_of_the_two(tmp_path):
    """Each of four processes writes three files that say which process it was; the three must agree in the end."""
    code = """
import sys
from pathlib import Path
from certeq.base.writing import write_files
for turn in range(20):
    write_files({Path(sys.argv[1]) / name: f"{sys.argv[2]} {turn}" for name in "abc"}, force=True)
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(i)]) for i in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    found = visible(tmp_path)
    assert set(found) == {"a", "b", "c"}
    assert len(set(found.values())) == 1
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("at", range(3))
def test_stopped_between_two_moves_everything_is_as_it_was(tmp_path, monkeypatch, trouble, at):
    folder = tmp_path / "out"
    fill(folder, OLD)
    replace, moved = Path.replace, []

    def stop(self, target):
        if Path(target).parent == folder and self.parent.name == READY:
            moved.append(target)
            if len(moved) == at + 1:
                raise trouble
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises((KeyboardInterrupt, InputError)):
        write_files({folder / name: content for name, content in NEW.items()}, force=True)
    assert visible(folder) == OLD
    assert hidden(folder) == []


def test_a_folder_that_could_not_be_filled_is_not_left_behind(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_files({tmp_path / "new" / "deep" / "a.txt": "x"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_verb_killed_at_random_leaves_nothing_torn(tmp_path):
    """Two kills here; `python -m trust` does many, of every verb, and before every change on disk."""
    (simulate,) = (job for job in killing.JOBS if job.name == "simulate")
    tally = killing.kill_while_writing(simulate, tmp_path, np.random.default_rng(0), 2, exhaust=False)
    assert tally.failures == []
    assert sum(tally.found.values()) == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_counting_that_is_killed_goes_on_from_what_was_kept_to_the_same_bytes(tmp_path):
    resuming.prepare(tmp_path, files=8, n=2_000)
    tally = resuming.kill_counting(tmp_path, np.random.default_rng(0), 1)  # before change 68 on disk
    assert tally.failures == []
    assert tally.kills == 1
    assert tally.found["shares at hand after a kill"] > 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_bootstrap_that_is_killed_goes_on_from_what_was_kept_to_the_same_numbers(tmp_path):
    tally = resuming.kill_drawing(tmp_path, np.random.default_rng(0), 1)  # before change 68 on disk
    assert tally.failures == []
    assert tally.kills == 1
    assert tally.found["blocks at hand after a kill"] > 0
