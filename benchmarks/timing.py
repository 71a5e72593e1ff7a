"""Fair timing on a machine that others use too.

Contenders take turns, round after round, and are compared within a round. At each turn one runs twice and the second
run counts, so that nobody pays for the memory and the caches that another left behind. What runs in one thread is timed
by the processor time it takes, which does not grow while other programs have the processor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np

Result = tuple[np.ndarray, np.ndarray]  # policies and values, first axis: the cases


@dataclass(frozen=True)
class Contender:
    """Somebody who does the work, or the first part of it."""

    name: str
    run: Callable[[], Result | None]
    part: float = 1.0  # share of the work that a run does
    threads: int = 1


def race(contenders: list[Contender], rounds: int) -> tuple[dict[str, np.ndarray], dict[str, Result]]:
    """Seconds for the whole work, one number per round, and what each contender found."""
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    results: dict[str, Result] = {}
    for _ in range(rounds):
        for contender in contenders:
            clock = process_time if contender.threads == 1 else perf_counter
            contender.run()
            start = clock()
            result = contender.run()
            times[contender.name].append((clock() - start) / contender.part)
            if result is not None:
                results[contender.name] = result
    return {name: np.array(seconds) for name, seconds in times.items()}, results


def table(times: dict[str, np.ndarray], count: int, case: str) -> str:
    """For each contender the time per case, and how many times that of the first: median, least and greatest."""
    reference = next(iter(times.values()))
    lines = [f"| | µs per {case} | times the first | least to greatest |", "|---|---:|---:|---:|"]
    for name, seconds in times.items():
        ratio = seconds / reference
        each, spread = 1e6 * np.median(seconds) / count, f"{ratio.min():.3g} to {ratio.max():.3g}"
        lines.append(f"| {name} | {each:.3g} | {np.median(ratio):.3g} | {spread} |")
    return "\n".join(lines)


def agree(results: dict[str, Result]) -> str:
    """Compare what the contenders found with what the first one did, as far as each one went."""
    (first, (policy, values)), *others = results.items()
    moved = error = 0.0
    for _, (other, worth) in others:
        n = len(other)
        moved = max(moved, float((other != policy[:n]).sum()))
        error = max(error, float(np.abs(worth - values[:n]).max()))
    return f"Against {first}, at most {moved:.0f} actions differ, and values by at most {error:.0e}."


def keep_memory() -> None:
    """Have the C library keep what is freed, for whoever asks next, C++ and NumPy alike.

    On a virtual machine whose free memory goes back to its host, fresh pages for a plan of a million states take from
    .03 to .13 s by luck.
    """
    with contextlib.suppress(AttributeError, OSError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(-4, 0)  # M_MMAP_MAX: nothing comes straight from the system, to which it would go back
        library.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def starts(code: str) -> str:
    """Processor time of a new process that makes the first calls: with nothing compiled yet, and from the caches."""
    seconds = []
    with tempfile.TemporaryDirectory() as cache:
        caches = {"NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(2):
            before = os.times()
            subprocess.run([sys.executable, "-c", code], env=os.environ | caches, check=True)
            after = os.times()
            seconds.append(sum(after[2:4]) - sum(before[2:4]))  # user and system time of children
    return f"A new process with its first calls takes {seconds[0]:.1f} s if it compiles, {seconds[1]:.1f} s afterwards."
