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
from pathlib import Path
from typing import Any

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
    if kind == "policy":
        return "apply", name, "rows.csv", "--step", "0", "--out", "advice.csv", "--force"
    if kind == "array":
        return "learn", "rows.csv", "--regularizer", "uniform_prior", "--setting", f"magnitude={name}", *OPTIONS
    return "learn", name, *OPTIONS


def attempt(words: tuple[Any, ...], heard: io.StringIO | None = None) -> tuple[str, str]:
    """Run a command in this process: accepted, refused in words, or failed and how; ``heard`` is all that it says."""
    from certeq.cli import main

    sys.argv = ["certeq", *map(str, words)]
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    code, out = 0, heard or io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("error")
            main()
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:
        return "failed", traceback.format_exc()[-3000:]
    said.flush()
    text = said.buffer.getvalue().decode()  # type: ignore[attr-defined]
    if code == 0 and "Traceback" not in text:
        return "accepted", ""
    if code == 2 and text.startswith("Error: ") and "Traceback" not in text and "\n\n" not in text.strip():
        return "refused", text[:300]
    return "failed", f"{code}: {text[-1500:]}"


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
