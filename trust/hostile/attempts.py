"""Try cases one after the other in a single process with little memory: the quick version of a campaign.

The files are made by another process, which may use all the memory it likes. ``python -m trust.hostile.attempts`` is
the process that tries: it reads what to do from its input, and writes what happened to its output, as lines of JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trust.hostile import CANARY, MEMORY, made
from trust.launch import limit

ROOT = Path(__file__).parents[2]
PATIENCE = 600  # seconds for one case, on a machine that may be busy


@dataclass(frozen=True)
class Attempt:
    """What came of a case."""

    name: str
    code: int
    said: str  # to the people
    crash: str  # a traceback that came through
    left: list[str]  # files that were not there before
    seconds: float

    @property
    def refused(self) -> bool:
        """Whether it ended as it must: one paragraph, exit code 2, and nothing written."""
        paragraph = self.said.startswith("Error: ") and "\n\n" not in self.said and "Traceback" not in self.said
        return self.code == 2 and paragraph and not self.crash and not self.left


def attempts(names: Iterable[str]) -> Iterator[Attempt]:
    """Make the files of each case and have it tried; where that ends the process, another goes on."""
    left = list(names)
    while left:
        for found in _tried(left):
            yield found
            left.pop(0)


def _tried(names: list[str]) -> Iterator[Attempt]:
    """What comes of each case, until one of them ends the process."""
    command = [sys.executable, "-m", "trust.hostile.attempts"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        for name in list(names):
            with tempfile.TemporaryDirectory() as place:
                words = list(map(str, made(name, Path(place))))
                before = {path.name for path in Path(place).iterdir()}
                print(json.dumps([place, words]), file=child.stdin, flush=True)
                patience = threading.Timer(PATIENCE, child.kill)  # what hangs is a failure, not the end of the campaign
                patience.start()
                answer = child.stdout.readline()  # type: ignore[union-attr]
                patience.cancel()
                if not answer:
                    yield Attempt(name, child.wait(), "", f"the process died, or took over {PATIENCE} s", [], 0.0)
                    return
                left = sorted(path.name for path in Path(place).iterdir() if path.name not in before - {CANARY})
                yield Attempt(name, left=left, **json.loads(answer))
        child.stdin.close()  # type: ignore[union-attr]


def attempt(words: list[str]) -> dict[str, Any]:
    """Run one command in this process."""
    from certeq.cli import main

    sys.argv = ["certeq", *words]
    said, code, crash = io.StringIO(), 0, ""
    begun = time.perf_counter()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        except BaseException:
            crash = traceback.format_exc()
    return {"code": code, "said": said.getvalue(), "crash": crash, "seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    limit(memory=MEMORY)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        place, words = json.loads(line)
        os.chdir(place)
        result = attempt(words)
        os.chdir("/")
        print(json.dumps(result), file=answers, flush=True)
