"""Files of every format with flipped bits and flipped types: whatever is in a file, the answer is a result or words.

`made` makes a file from a number, the same file every time. `opening` is the process that opens such files one after
another; `campaign` starts it, and again where a file killed it, and tells what came of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHUNK = 500  # files that a process opens
KINDS = ("table", "counting", "policy", "arrays", "counts", "array", "Minari", "name", "extremes")


def campaign(kind: str, first: int, times: int) -> tuple[Counter[str], list[str]]:
    """Open so many files of a kind, on all processors; gives what came of them, and what was wrong."""
    parts = [(kind, begin, min(CHUNK, first + times - begin)) for begin in range(first, first + times, CHUNK)]
    found: Counter[str] = Counter()
    failures: list[str] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a process
        for some, wrong in pool.map(_one_after_another, *zip(*parts, strict=True)):
            found, failures = found + some, failures + wrong
    return found, failures


def _one_after_another(kind: str, first: int, times: int) -> tuple[Counter[str], list[str]]:
    found: Counter[str] = Counter()
    failures: list[str] = []
    start, stop = first, first + times
    while start < stop:
        command = [sys.executable, "-m", "trust.formats.opening", kind, str(start), str(stop)]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1", "RUST_BACKTRACE": "0"}
        with subprocess.Popen(
            command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            for line in child.stdout:  # type: ignore[union-attr]
                number, what, told = json.loads(line)
                start = number + 1
                found[what] += 1
                failures += [f"{kind} {number}: {told}"] if what == "failed" else []
        if start < stop:
            found["failed"] += 1
            failures.append(f"{kind} {start}: the process ended with {child.returncode}")
            start += 1
    return found, failures
