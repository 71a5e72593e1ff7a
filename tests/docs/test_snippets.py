"""What the documentation shows is what runs, and what it says comes out is what comes out."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import docs_pages
import pytest
from typer.testing import CliRunner

from certeq import ENVIRONMENTS, REGULARIZERS
from certeq.cli import app
from certeq.experiments.figures import FIGURES

PAGES = [path for path in docs_pages.pages() if docs_pages.runnable(path)]


def name_of(path):
    return str(path.relative_to(docs_pages.DOCS))


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder to work in, from which nothing that a page adds to a catalogue or imports outlives the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    with patch.dict(REGULARIZERS), patch.dict(ENVIRONMENTS), patch.dict(FIGURES):
        yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_snippet_runs_and_says_what_the_page_says(page, workplace):
    namespace, said = {"__name__": "__main__"}, None
    for block in docs_pages.blocks(page):
        where = f"{name_of(page)}, line {block.line}"
        if block.kind == "text" and block.follows and said is not None:
            missing = docs_pages.missing_line(block.code, said)
            assert missing is None, f"{where}: the output has no line {missing!r}, or not there:\n{said}"
        elif block.file and not block.skip:
            (workplace / block.file).write_text(block.code, encoding="utf-8")
            said = None
        elif block.kind not in docs_pages.RUN or block.skip:
            said = None
        else:
            said = run_python(block, namespace, where) if block.kind == "python" else run_commands(block, where)
    close_pictures()


def run_python(block, namespace, where):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * (block.line - 1) + block.code, where, "exec"), namespace)
    return out.getvalue()


def run_commands(block, where):
    said = ""
    for line in docs_pages.commands(block.code):
        command = line.removeprefix("uv run ")
        words = shlex.split(command)
        if words[0] == "certeq":
            done = CliRunner().invoke(app, words[1:])
            assert done.exit_code == block.exits, f"{where}: {command}\n{done.output}\n{done.exception!r}"
            said += done.output
        else:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | {"PATH": path})
            assert done.returncode == block.exits, f"{where}: {command}\n{done.stdout}{done.stderr}"
            said += done.stdout
    return said


def close_pictures():
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_there_are_snippets_and_few_that_are_not_run():
    found = [(path, block) for path in docs_pages.pages() for block in docs_pages.blocks(path)]
    code = [(path, block) for path, block in found if block.kind in docs_pages.RUN]
    skipped = {block.skip for _, block in code if block.skip}
    assert len(code) > 30
    assert skipped <= REASONS, f"new reasons not to run a snippet: {skipped - REASONS}"


REASONS = {"needs a cluster", "installs", "a signature", "runs the whole suite", "takes hours", "writes to the package"}


def test_a_line_that_was_not_said_is_found():
    assert docs_pages.missing_line("a  b\n...\nd e ...", "a b\nc\nd e f") is None
    assert docs_pages.missing_line("a b\nd", "a b\nc") == "d"
    assert docs_pages.missing_line("c\na", "a\nc") == "a"
