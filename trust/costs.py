"""Small files with large contents: what certeq spends is linear in what it read, whatever the labels are like.

A table is drawn whose labels are long, many, or both, and repeated as files can repeat them for next to nothing. What a
command then takes of time, memory and disk must stay within so much for each cell and each letter of a different label.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

VERBS = ("learn", "learn", "check", "apply", "apply", "count")
BASE = {"seconds": 30.0, "memory": 800e6, "written": 3e6}  # of any command: libraries, and a page without rows
CELL = {"seconds": 5e-4, "memory": 6e3, "written": 2e3}  # more for each cell of the tables that were read
LETTER = {"seconds": 2e-7, "memory": 40.0, "written": 4.0}  # and for each letter of a different label
# A process begins with the largest memory that whoever started it ever had, so something small must start it.
WATCH = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
_, status, used = os.wait4(child, 0)
print([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss])
"""


@dataclass(frozen=True)
class Shape:
    """How large a table is."""

    rows: int
    columns: int  # that states are made of
    labels: int  # different ones in each
    letters: int  # of a label

    @property
    def cells(self) -> int:
        """How many there are: of states and next states, an action and a reward."""
        return self.rows * (2 * self.columns + 2)

    @property
    def read(self) -> int:
        """Letters of different labels."""
        return self.columns * self.labels * (self.letters + 6)


def drawn(rng: np.random.Generator) -> Shape:
    """Long labels or many, in few columns or many."""
    columns, letters = int(rng.choice([1, 1, 2, 5, 12])), int(rng.choice([3, 100, 3_000, 9_990]))
    labels = int(rng.choice([2, 30, 1_000 if letters > 1_000 else 20_000]))
    return Shape(
        int(rng.choice([200, 3_000, 20_000])), columns, min(labels, 12_000_000 // (columns * letters)), letters
    )


def table(shape: Shape, rng: np.random.Generator, new: float = 0.0) -> pl.DataFrame:
    """Rows of such a shape; a share ``new`` of the labels is of a kind that no other table has."""
    frame = {}
    for k in range(shape.columns):
        names = [f"{'z' if i < new * shape.labels else 'a'}{i:05d}{'x' * shape.letters}" for i in range(shape.labels)]
        for when in "cn":
            frame[f"{when}{k}"] = pl.Series(names)[pl.Series(rng.integers(shape.labels, size=shape.rows))]
    acts = pl.Series(["stay", "go"])[pl.Series(rng.integers(2, size=shape.rows))]
    return pl.DataFrame(frame | {"action": acts, "reward": rng.random(shape.rows).round(2)})


def spent(words: list[str], folder: Path) -> tuple[int, dict[str, float], str]:
    """How a command ended, what it took, and what it said."""
    before = _size(folder)
    with (folder / "said.txt").open("wb") as said:
        command = [sys.executable, "-I", "-S", "-c", WATCH, sys.executable, "-m", "certeq", *words]
        environment = os.environ | {"PYTHONSAFEPATH": "1"}
        watched = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=said, check=True)
    code, seconds, kilobytes = json.loads(watched.stdout)
    took = {"seconds": seconds, "memory": kilobytes * 1024.0, "written": _size(folder) - before}
    return code, took, (folder / "said.txt").read_text(errors="replace")


def _size(folder: Path) -> float:
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name != "said.txt"))


def attempt(folder: Path, rng: np.random.Generator) -> tuple[str, str]:
    """Draw a table and use it: what came of it, and what is wrong ('' if nothing)."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shape, verb = drawn(rng), str(rng.choice(VERBS))
    now, then = (",".join(f"{when}{k}" for k in range(shape.columns)) for when in "cn")
    told = ["--state", now, "--next-state", then]
    table(shape, rng).write_parquet(folder / "rows.parquet", compression="zstd")
    rows, out = str(folder / "rows.parquet"), str(folder / "out")
    learn = ["learn", rows, *told, "--draws", "2", "--out", out]
    cells, letters = shape.cells, shape.read
    words = {"learn": learn, "check": ["check", rows, *told]}
    words["count"] = ["count", rows, *told, "--out", str(folder / "counts.npz")]
    if verb == "apply":
        code, _, said = spent([*learn, "--no-report"], folder)
        if code:
            return "nothing to apply", "" if code == 2 else said[-500:]
        fresh = Shape(int(rng.choice([200, 20_000])), shape.columns, shape.labels, shape.letters)
        table(fresh, rng, float(rng.choice([0, 0.5, 1]))).write_parquet(folder / "new.parquet", compression="zstd")
        cells, letters = cells + fresh.cells, letters + fresh.read
        keep = ["--keep", "c0"] if rng.random() < 0.2 else []
        words["apply"] = ["apply", f"{out}/policy.json", str(folder / "new.parquet"), "--out", f"{out}/a.csv", *keep]
        letters += fresh.rows * (fresh.letters + 6) if keep else 0  # which are asked for
    code, took, said = spent(words[verb], folder)
    if code not in (0, 2) or "Traceback" in said:
        return "failed", f"{verb} {shape}: {code}: {said[-500:]}"
    over = {what: took[what] / (BASE[what] + CELL[what] * cells + LETTER[what] * letters) for what in BASE}
    wrong = {what: took[what] for what, share in over.items() if share > 1}
    return "refused" if code else "within its cost", f"{verb} {shape}: {wrong}" if wrong else ""


def campaign(folder: Path, rng: np.random.Generator, times: int) -> tuple[Counter[str], list[str]]:
    """Try it so often."""
    found: Counter[str] = Counter()
    failures = []
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for _ in range(times):
        what, wrong = attempt(folder / "case", rng)
        found[what] += 1
        failures += [wrong] if wrong else []
    return found, failures
