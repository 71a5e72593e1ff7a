"""Ctrl-C typed into a terminal, and standard output that takes no words: no traceback, and exit codes that mean it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from trust.running import certeq, visible

from certeq.cli import _polite
from trust import terminals

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="terminals")]
RUN = [sys.executable, "-m", "certeq"]


def test_ctrl_c_in_a_terminal_ends_all_processes_of_the_group_in_words(tmp_path):
    certeq("simulate", "river_swim", "--episodes", "20", "--out", "rows.csv", cwd=tmp_path)
    rng = np.random.default_rng(0)
    words = ("compare", "rows.csv", "--draws", "20", "--folds", "3", "--workers", "2", "--no-report")
    for i in range(3):
        first = float(rng.uniform(1, 15))
        shown = terminals.typed((*words, "--out", f"out{i}"), tmp_path, [first])
        assert not shown.wrong, (first, shown)


@pytest.mark.parametrize("times", [2, 3])
def test_pressed_again_ctrl_c_ends_it_at_once(tmp_path, times):
    shown = terminals.typed(
        ("reproduce", "equal_counts", "--out", "out"), tmp_path, [4 + 0.2 * i for i in range(times)]
    )
    assert not shown.wrong, shown


def run(folder, *words, out, **environment):
    with Path(out).open("w") as stream:
        variables = os.environ | environment
        return subprocess.run(
            [*RUN, *words], cwd=folder, stdout=stream, stderr=subprocess.PIPE, env=variables, text=True
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [("simulate", "loop", "--out", "rows.csv"), ("--version",), ("simulate", "--help")])
def test_a_full_standard_output_costs_the_words_and_nothing_else(tmp_path, words):
    ended = run(tmp_path, *words, out="/dev/full")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(visible(tmp_path)) == (["rows.csv"] if "--out" in words else [])


def test_an_output_without_letters_gets_them_written_out(tmp_path):
    (tmp_path / "größe").mkdir()
    ended = run(
        tmp_path, "simulate", "loop", "--out", "größe/rows.csv", out=tmp_path / "said", PYTHONIOENCODING="ascii"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert b"Written: gr" in (tmp_path / "said").read_bytes()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_mistaken_for_files(tmp_path, closed):
    command = f"'{sys.executable}' -m certeq simulate loop --out rows.csv {closed}"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path).returncode == 0
    assert (tmp_path / "rows.csv").read_text().startswith("episode,")


def test_a_limit_on_threads_is_not_blamed_on_the_input(capsys):
    @_polite
    def verb():
        raise RuntimeError("can't start new thread")

    with pytest.raises(typer.Exit) as leaving:
        verb()
    assert leaving.value.exit_code == 1
    assert "does not let the process start more threads" in capsys.readouterr().err
