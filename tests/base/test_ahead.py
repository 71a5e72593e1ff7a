"""Kernels that another process compiles: found when they are needed, and nothing is lost where it cannot."""

import contextlib
import os
import select
import subprocess
import sys
import textwrap

import pytest

COMPILED = """
from numba.core import event

class Heard(event.Listener):
    names, depth = [], 0
    def on_start(self, event):
        self.names += [event.data["dispatcher"].py_func.__name__] * (self.depth == 0)
        self.depth += 1
    def on_end(self, event):
        self.depth -= 1

event.register("numba:compile", Heard())
"""
REHEARSED = """
from certeq.base import ahead
from certeq.questions import rehearsal
parts = list(rehearsal.PARTS)
rehearsal.begin({states}, parts)
begun = bool(ahead._begun)
{meanwhile}
for part in parts:
    rehearsal.PARTS[part]({states})
print(begun, Heard.names)
rehearsal.begin({states}, parts)
print(all(ahead.kept(kernel) for part in parts for kernel in rehearsal.kernels({states}, part)))
"""


def told(folder, states, meanwhile="", **environment):
    """Rehearse beside another process that does the same: whether there was one, and what was compiled here."""
    script = COMPILED + textwrap.dedent(REHEARSED).format(states=states, meanwhile=meanwhile)
    variables = os.environ | {"NUMBA_CACHE_DIR": str(folder), "CERTEQ_THREADS": "2"} | environment
    run = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True)
    assert run.stderr == ""
    return run.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("states", [5, 50])
def test_what_another_process_compiles_is_not_compiled_here(tmp_path, states):
    assert told(tmp_path, states) == ["True []", "True"]
    assert told(tmp_path, states) == ["False []", "True"]  # and nothing is begun where all is there
    assert not list(tmp_path.rglob("*.tmp*"))


ALL = "['gather', 'spread', 'row_likelihoods', 'plan_small', 'draw']"


@pytest.mark.slow
def test_whatever_becomes_of_the_other_process_the_kernels_are_compiled(tmp_path):
    kill = "for other in ahead._begun.values(): other.kill()"
    assert told(tmp_path / "killed", 5, kill) == [f"True {ALL}", "True"]
    assert told(tmp_path / "alone", 5, CERTEQ_THREADS="1") == [f"False {ALL}", "True"]


ENDED = """
import os, time
from certeq.questions import rehearsal
from certeq.base import ahead
rehearsal.begin(50, ["plans"])
print(next(iter(ahead._begun.values())).pid, flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only here a process that is no child can be waited for")
def test_the_other_process_ends_with_the_one_that_began_it(tmp_path):
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "CERTEQ_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", ENDED], env=variables, capture_output=True, text=True, check=True)
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(int(run.stdout))], [], [])
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.slow
def test_a_first_report_compiles_here_only_what_nobody_rehearsed(tmp_path):
    """Else the toys of the rehearsal would no longer be of the types that the work is of."""
    script = COMPILED + "import sys\nfrom certeq.__main__ import main\nimport atexit\n"
    script += "atexit.register(lambda: print(Heard.names, file=sys.stderr))\nmain()\n"
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "CERTEQ_THREADS": "2"}
    command = [sys.executable, "-c", script, "learn", "--out", str(tmp_path / "out")]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert run.stderr.splitlines()[-1] == "['look_ahead', 'add_up', 'close', 'learn', 'write']"


@pytest.mark.slow
def test_a_process_that_never_ends_is_waited_for_only_so_long(tmp_path):
    """It is expected to compile the kernel, and sleeps."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "kernel.py").write_text(
        "from certeq.base.compiling import njit\n\n\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n"
    )
    script = """
        import subprocess, sys
        from certeq.base import ahead, compiling
        from kernel import double
        compiling.PATIENCE = 0.2
        idle = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        ahead._begun[double.py_func] = idle
        print(ahead.expected(double.py_func), double(21))
        idle.kill()
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.stdout.split() == ["True", "42"], run.stderr
