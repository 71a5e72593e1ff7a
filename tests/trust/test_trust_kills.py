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
from certeq.base.promises import promise
from certeq.base.writing import PART, READY, STALE, Stage, check_free, settle, sweep, write_files
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


def decide_and_die(folder, files):
    """Leave what a run leaves that was killed after it had decided, and before it moved the first file."""
    stage = Stage(folder)
    for name, content in files.items():
        stage.write(name, content)
    stage.decide()
    shutil.rmtree(stage.aside)


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
    decide_and_die(tmp_path, {"a.json": b"newer a", "c.html": b"newer c"})
    write_files({tmp_path / "b.csv": "newest b"}, force=True)
    assert visible(tmp_path) == {"a.json": b"newer a", "b.csv": b"newest b", "c.html": b"newer c"}
    assert hidden(tmp_path) == []


def test_an_earlier_run_is_finished_even_where_the_next_one_is_refused(tmp_path):
    fill(tmp_path, OLD)
    decide_and_die(tmp_path, {"a.json": b"newer a", "c.html": b"newer c"})
    with pytest.raises(InputError, match="already exists"):
        check_free([tmp_path / "a.json"], force=False)
    assert visible(tmp_path) == OLD | {"a.json": b"newer a", "c.html": b"newer c"}


def test_a_folder_that_no_run_of_this_user_promised_is_left_alone_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("certeq.base.writing.PATIENCE", 0.1)
    fill(tmp_path, OLD | {"Makefile": b"mine"})
    fill(tmp_path / READY, {"Makefile": b"evil", "a.json": b"evil"})
    write_files({tmp_path / "b.csv": b"new b"}, force=True)
    with pytest.raises(InputError, match="certeq-ready already exists, and no run of yours"):
        check_free([tmp_path / "a.json", tmp_path / "c.html"], force=True)
    with pytest.raises(InputError, match="Look at it, and remove it"):
        write_files({tmp_path / name: content for name, content in NEW.items()}, force=True)
    assert visible(tmp_path) == OLD | {"Makefile": b"mine", "b.csv": b"new b"}
    assert visible(tmp_path / READY) == {"Makefile": b"evil", "a.json": b"evil"}


def test_of_what_waits_only_what_was_promised_is_moved(tmp_path):
    """A run was killed, and an archive was unpacked over what it left: only the run's own files, as it wrote them."""
    fill(tmp_path, OLD)
    decide_and_die(tmp_path, {"a.json": b"newer a", "c.html": b"newer c"})
    (tmp_path / READY / "Makefile").write_bytes(b"evil")
    (tmp_path / READY / "c.html").write_bytes(b"evil")
    settle(tmp_path)
    assert visible(tmp_path) == OLD | {"a.json": b"newer a"}


def test_a_promise_does_not_hold_for_another_folder_with_the_same_files(tmp_path):
    """The bytes of an older run, planted after it was killed before it had decided, would roll results back."""
    fill(tmp_path, OLD)
    stage = Stage(tmp_path)
    for name in ("a.json", "c.html"):
        stage.write(name, b"older")
    assert promise(tmp_path, stage.new) is not None
    shutil.copytree(stage.new, tmp_path / READY)
    settle(tmp_path)
    assert visible(tmp_path) == OLD


def test_without_a_place_of_ones_own_files_are_written_and_nothing_is_believed(tmp_path, monkeypatch):
    monkeypatch.setattr("certeq.base.promises.private", lambda kind: None)
    fill(tmp_path, OLD)
    write_files({tmp_path / name: content for name, content in NEW.items()}, force=True)
    assert visible(tmp_path) == OLD | NEW
    decide_and_die(tmp_path, {"a.json": b"newer a", "c.html": b"newer c"})
    settle(tmp_path)
    assert visible(tmp_path) == OLD | NEW


def test_a_link_that_leads_nowhere_is_in_the_way_like_a_file(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="already exists"):
        write_files({tmp_path / "a.json": "new"})
    assert (tmp_path / "a.json").is_symlink()


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
    monkeypatch.setattr("certeq.base.writing.PATIENCE", 0.1)
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
