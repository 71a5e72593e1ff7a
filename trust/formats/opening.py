"""``python -m trust.formats.opening KIND FIRST LAST``: open files one after another, and write what came of each."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from trust.formats import extremes
from trust.formats.making import made
from trust.launch import limit

MEMORY = 8 << 30
ROWS = "state,action,reward,next_state,ward,flag,age\nA,x,1,B,A,true,45\nB,y,0,A,B,false,60\nC,y,0,A,C,,\n"
OPTIONS = ("--no-report", "--draws", "2", "--force", "--out", "out")


def verb(kind: str, path: Path) -> tuple[Any, ...]:
    """What somebody would do with such a file."""
    name = str(path)
    if kind == "extremes":
        return tuple(json.loads(path.read_text()))
    if kind == "counting":
        return "count", name, "--out", "counts.npz", "--force"
    if kind in ("policy", "arrays"):
        return "apply", name, "rows.csv", "--step", "0", "--out", "advice.csv", "--force"
    if kind == "array":
        return "learn", "rows.csv", "--regularizer", "uniform_prior", "--setting", f"magnitude={name}", *OPTIONS
    return "learn", name, *OPTIONS


def attempt(words: tuple[Any, ...], heard: io.StringIO | None = None) -> tuple[str, str]:
    """Run a command in this process: accepted, refused in words, or failed and how; ``heard`` is all that it says.

    What libraries say behind our backs, straight to the error stream, is part of what a person would see.
    """
    from certeq.base.manners import streams
    from certeq.cli import main

    sys.argv = ["certeq", *map(str, words)]
    code, out = 0, heard or io.StringIO()
    with _error_stream() as said:
        try:
            with contextlib.redirect_stdout(out), warnings.catch_warnings(), streams():
                warnings.simplefilter("error")
                main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        except BaseException:
            return "failed", traceback.format_exc()[-3000:]
        said.seek(0)
        text = said.read().decode()
    if "Traceback" in text or "panicked" in text:
        return "failed", text[-3000:]
    if code == 0:
        return "accepted", ""
    if code == 2 and text.startswith("Error: ") and "\n\n" not in text.strip():
        return "refused", text[:300]
    return "failed", f"{code}: {text[-1500:]}"


@contextlib.contextmanager
def _error_stream() -> Iterator[IO[bytes]]:
    """Let a file take all that is said to the error stream, by whomever."""
    before = os.dup(2)
    try:
        with tempfile.TemporaryFile() as said:
            os.dup2(said.fileno(), 2)
            with open(2, "w", encoding="utf-8", closefd=False) as stream, contextlib.redirect_stderr(stream):
                yield said
    finally:
        os.dup2(before, 2)
        os.close(before)


def main(kind: str, first: int, last: int) -> None:
    """Open so many."""
    limit(memory=MEMORY)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for number in range(first, last):
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            Path("rows.csv").write_text(ROWS)
            path = made(kind, number, Path(place))
            heard = io.StringIO()
            what, told = attempt(verb(kind, path), heard)
            if what == "accepted" and kind == "extremes" and (wrong := extremes.unsound(Path(place), heard.getvalue())):
                what, told = "failed", wrong
            os.chdir("/")
        print(json.dumps([number, what, told]), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
