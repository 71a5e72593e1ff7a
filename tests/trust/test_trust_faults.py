"""A full disk, a closed folder, Ctrl-C: an error in words, the right exit code, and everything as it was before."""

import os
import signal
import subprocess
import sys
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from trust.running import certeq, visible

from trust import faults, killing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits")


@pytest.mark.slow
def test_a_quota_on_files_is_told_and_the_old_rows_stay(tmp_path):
    assert faults.small_files(tmp_path, "simulate") == ""


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_old_rows_stay(tmp_path):
    found = faults.full_disk(tmp_path, "simulate")
    if found is None:
        pytest.skip("no disk can be mounted here")
    assert found == ""


@pytest.mark.slow
def test_a_folder_that_takes_no_files_is_told_before_any_work(tmp_path):
    found = faults.closed_folder(tmp_path, "simulate")
    if found is None:
        pytest.skip("no folder can be closed here")
    assert found == ""


@pytest.mark.slow
def test_ctrl_c_while_the_program_is_still_loading_shows_no_traceback(tmp_path):
    """The signal comes as soon as a first module of certeq is imported."""
    code = (
        "import sys, os, signal\n"
        "class Press:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'certeq.cli.apply':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press())\n"
        "from certeq.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "learn"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode in (130, -signal.SIGINT)
    assert done.stderr == "Stopped. No partial results were written.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["import fragile", "fragile()"])
def test_ctrl_c_is_not_raised_within_a_library_that_is_being_loaded_or_compiled(tmp_path, how):
    """There it would end in whatever the library makes of it; the process is left instead."""
    inner = (
        "import os, signal\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except BaseException: print('raised', flush=True)\n"
    )
    (tmp_path / "fragile.py").write_text(inner)
    program = (
        "import certeq.cli, certeq.__main__\nfrom certeq.base.manners import interrupts\n"
        f"def fragile(): exec({inner!r}, {{'__name__': 'numba.core.compiler'}})\n"
        f"def work():\n  with interrupts(work=True):\n    {how}\n"
        "certeq.cli.main = work\ncerteq.__main__.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped. No partial results were written.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "raised", "code"),
    [
        ("main", "SystemExit(130)", 130),
        ("main", "SystemExit(2)", -signal.SIGSEGV),
        ("program", "SystemExit(2)", 2),
        ("program", "SystemExit(0)", 0),
    ],
)
def test_libraries_are_not_taken_apart_after_a_stop_nor_where_the_process_is_ours(tmp_path, run, raised, code):
    """The second case shows that one would crash; exit functions run all the same, and what was said is told."""
    program = (
        "import atexit, ctypes, pathlib, certeq.cli, certeq.__main__\n"
        "class Fragile:\n"
        "    def __del__(self, crash=ctypes.string_at): crash(0)\n"
        "fragile = Fragile()\n"
        f"def work(): atexit.register(pathlib.Path('ended').touch); print('said'); raise {raised}\n"
        "certeq.cli.main = work\n"
        f"certeq.__main__.{run}()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, (tmp_path / "ended").exists()) == (code, "said\n", True)


@pytest.mark.slow
def test_an_error_of_ours_is_not_taken_for_a_stop(tmp_path):
    program = "import certeq.cli, certeq.__main__\ncerteq.cli.main = lambda: 1 / 0\ncerteq.__main__.main()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.slow
def test_ctrl_c_at_a_random_moment_stops_in_words(tmp_path):
    faults.fill(tmp_path / "out")
    rng = np.random.default_rng(0)
    found = [faults.stop(tmp_path, "simulate", rng, seconds=1.0) for _ in range(2)]
    assert [wrong for _, wrong in found] == ["", ""]


@pytest.mark.slow
def test_no_memory_at_all_is_told(tmp_path):
    done = certeq("simulate", "river_swim", "--setting", "n_states=20000", cwd=tmp_path, memory=2 << 30)
    assert done.code in (1, 2)
    assert done.told, done
    assert "memory" in done.err or "cannot be built" in done.err
    assert visible(tmp_path) == {}


@pytest.mark.parametrize("error", [BrokenProcessPool("gone"), CancelledError()])
def test_whoever_is_lost_is_told_in_words(monkeypatch, capsys, tmp_path, error):
    """A cluster that goes away cancels what it had; a local process that dies breaks the pool."""
    from certeq import cli
    from certeq.data import counting

    def lose(*_, **__):
        raise error

    monkeypatch.setattr(counting, "count", lose)
    monkeypatch.setattr(sys, "argv", ["certeq", "count", "rows", "--out", str(tmp_path / "counts.npz")])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    assert leaving.value.code == 1
    assert capsys.readouterr().err == f"Error: {cli.GONE}\n"


def test_what_the_campaign_tries_is_what_there_is():
    """A new verb that writes files must be killed, too."""
    from certeq.cli import app

    verbs = {command.callback.__name__ for command in app.registered_commands}
    assert verbs <= {*faults.COMMANDS, "report"} | {job.name for job in killing.JOBS}
