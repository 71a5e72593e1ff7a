"""Running what documentation pages show: files are written, snippets run, and outputs compared with the page."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import docs_pages
from typer.testing import CliRunner

from certeq import ENVIRONMENTS, REGULARIZERS
from certeq.cli import app
from certeq.experiments.figures import FIGURES
from certeq.questions import again, asking

DRAWS, EACH = 400, 4  # that a page is made with
HARMLESS = ("python", "head", "cat")  # what pages may call besides certeq


@contextlib.contextmanager
def workplace(folder, monkeypatch):
    """A folder to work in, from which nothing that a page adds to a catalogue or imports outlives the page."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    as_users_have_it = patch.object(asking, "DRAWS", DRAWS), patch.object(again, "EACH", EACH)
    with (
        patch.dict(REGULARIZERS),
        patch.dict(ENVIRONMENTS),
        patch.dict(FIGURES),
        as_users_have_it[0],
        as_users_have_it[1],
    ):
        yield
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def run_page(page, instead=None):
    """Run a page from top to bottom, here; ``instead`` of some commands, lighter ones."""
    namespace, said = {"__name__": "__main__"}, None
    for block in docs_pages.blocks(page):
        where = f"{docs_pages.name_of(page)}, line {block.line}"
        if block.kind == "text" and block.follows and said is not None:
            missing = docs_pages.missing_line(block.code, said)
            assert missing is None, f"{where}: the output has no line {missing!r}, or not there:\n{said}"
        elif block.file and not block.skip:
            Path(block.file).write_text(block.code, encoding="utf-8")
            said = None
        elif block.kind not in docs_pages.RUN or block.skip:
            said = None
        elif block.kind == "python":
            said = run_python(block, namespace, where)
        else:
            lines = [(instead or {}).get(line, line) for line in docs_pages.commands(block.code)]
            said = "".join(run_command(line, block.exits, where) for line in lines)


def run_python(block, namespace, where):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * (block.line - 1) + block.code, where, "exec"), namespace)
    return out.getvalue()


def run_command(line, exits, where):
    """Run a command, in this process if it is one of ours; what it said."""
    command = line.removeprefix("uv run ")
    words = shlex.split(command)
    if words[0] == "certeq":
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == exits, f"{where}: {command}\n{done.output}\n{done.exception!r}"
        return done.output
    assert words[0] in HARMLESS, f"{where}: {command}\nMay a test run this? Say so in HARMLESS, or mark it as not run."
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert done.returncode == exits, f"{where}: {command}\n{done.stdout}{done.stderr}"
    return done.stdout
