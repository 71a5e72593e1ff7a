"""Every goal that was set for speed, and how near we are: one table, in some five minutes on two idle processors.

    uv run --group bench python -m benchmarks.limits [yardstick | plans | strengths | counting]

The workloads are those of ``yardstick``, ``large``, ``strengths`` and ``counting``, which say more of each. Ratios are
medians over rounds, with the least and the greatest. With one thread they are of processor time, with two by the clock.
Counting and decoding take turns, each in a process of its own, and are compared by the processor time of all threads.
Kernels are compiled beforehand, in a process of its own: one that has just compiled a kernel runs it a tenth slower
than those who load it, as everybody else does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks import counting, large, strengths, yardstick
from certeq.worlds.tumor import tumor

ROWS, COUNTS = 100_000_000, 3
PLANS = {("garnet", 100_000): 1.2, ("local", 100_000): 1.3, ("garnet", 1_000_000): 0.8, ("local", 1_000_000): 1.0}
COUNTING = {"whole numbers": 1.5, "whole numbers, and rewards": 2.0, "text": 2.0}
A_SECOND, EACH = 10.0, 100.0  # millions of plans with losses, and µs per plan of 256 states


class Line(NamedTuple):
    """A line of the table."""

    what: str
    unit: str
    found: np.ndarray  # one for each round
    goal: float
    at_least: bool = False  # whether more is better


def of_small() -> Iterator[Line]:
    """Ten states, against C++."""
    for row in yardstick.rows():
        threads = f"{row.threads} thread{'s' * (row.threads > 1)}"
        yield Line(f"ten states: {row.name}, {threads}", "times C++", row.ours / row.theirs, yardstick.GOALS[row.name])
        if row.name == "sweep" and row.threads > 1:
            rate = row.plans / row.ours / 1e6
            yield Line(f"ten states: plans with losses, {threads}", "millions a second", rate, A_SECOND, True)


def of_large() -> Iterator[Line]:
    """Sparse states, against C++."""
    for kind, S, rounds in large.PLANS:
        times, _ = large.race_of_plans(kind, S, rounds)
        for threads, clock in ((1, 1), (2, 0)):
            ours, theirs = (times[f"{who}, {threads} threads"][:, clock] for who in ("certeq", "C++"))
            told = f"{S:,} sparse states, {kind}, {threads} thread{'s' * (threads > 1)}"
            yield Line(told, "times C++", ours / theirs, PLANS[kind, S])


def of_strengths() -> Iterator[Line]:
    """256 states along strengths, in one thread."""
    reward = tumor().reward
    for patients in strengths.PATIENTS:
        counts = strengths.data_sets(patients)
        for name, path in strengths.PATHS.items():
            seconds = []
            for _ in range(strengths.ROUNDS + 1):
                start = process_time()
                strengths.ours(counts, reward, path)
                seconds.append(process_time() - start)
            each = 1e6 * np.array(seconds[1:]) / len(counts) / len(path)
            yield Line(f"256 states, {patients:,} patients, {name}", "µs per plan", each, EACH)


def of_counting(rows: int = ROWS) -> Iterator[Line]:
    """Rows of a Parquet file, against decoding them into memory."""
    for job, goal in COUNTING.items():
        with tempfile.TemporaryDirectory() as folder:
            file = counting.written(job, rows, Path(folder) / "rows.parquet")
            turns = [
                [counting.alone(job, name, file)[0] for name in ("certeq", "decoding alone, by polars")]
                for _ in range(COUNTS)
            ]
        ours, theirs = np.array(turns).T
        yield Line(f"counting {rows:,} rows: {job}", "times decoding", ours / theirs, goal)


COMPILE = """
from benchmarks import large, strengths, yardstick
from certeq.worlds.tumor import tumor
for _, ours, _ in yardstick.contests(None, 2).values():
    ours()
for kind in large.WORLDS:
    large.certeq(*large.world(12_000, kind))()
for path in strengths.PATHS.values():
    strengths.ours(strengths.data_sets(strengths.PATIENTS[0]), tumor().reward, path)
"""


def main() -> None:
    subprocess.run([sys.executable, "-c", COMPILE], check=True)
    parts = {"yardstick": of_small, "plans": of_large, "strengths": of_strengths, "counting": of_counting}
    busy, processors = os.getloadavg()[0], os.cpu_count()
    print(f"{busy:.1f} programs wanted the {processors} processors when this began\n")
    print("| workload | | median | least to greatest | goal | |")
    print("|---|---|---:|---:|---:|---|")
    for part in sys.argv[1:] or parts:
        for what, unit, found, goal, at_least in parts[part]():
            middle, spread = float(np.median(found)), f"{found.min():.3g} to {found.max():.3g}"
            met = middle >= goal if at_least else middle <= goal
            told, verdict = (f"{middle:.3g}", "met") if met else (f"**{middle:.3g}**", "**missed**")
            limit = f"{'at least' if at_least else 'at most'} {goal:g}"
            print(f"| {what} | {unit} | {told} | {spread} | {limit} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
