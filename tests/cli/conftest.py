"""Run the command line as a person would, in a folder of its own."""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from certeq.cli import main


class Done(NamedTuple):
    """What a command left: its exit code and what it wrote to the two streams."""

    code: int
    out: str
    err: str


@pytest.fixture
def certeq(monkeypatch, capsys, tmp_path):
    """``certeq("learn", "rows.csv")``, in an empty folder; an exception that is no exit fails the test.

    A report takes seconds, so here one is only written when it is asked for.
    """
    monkeypatch.chdir(tmp_path)

    def run(*words):
        if words[0] in ("learn", "audit", "compare") and not {"--report", "--help", "-h"} & set(words):
            words = (*words, "--no-report")
        monkeypatch.setattr(sys, "argv", ["certeq", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def refused(certeq, tmp_path):
    """The command ends with exit code 2 and one paragraph, and leaves nothing behind."""

    def run(*words):
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        done = certeq(*words)
        assert done.code == 2, done
        assert done.out == ""
        assert done.err.startswith("Error: ")
        assert done.err.endswith(("\n", "?"))
        assert "\n" not in done.err.strip()
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        return done.err

    return run


@pytest.fixture
def file(tmp_path):
    """Write a file into the folder."""

    def write(content, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def table():
    """Read a CSV file: a dict for each line."""

    def read(path):
        with Path(path).open(newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    return read
