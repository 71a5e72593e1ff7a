"""``python -m benchmarks.startup [ROUNDS]``: what people wait for, beside the time that loading the libraries takes.

Commands take turns, round by round, so that a busy machine slows all of them alike; the first round, in which kernels
and Python's own bytecode may still be compiled, is not counted. (Bytecode is kept, as it is wherever people install
certeq, even if the environment forbids it: without it, loading the libraries takes three times as long.) Then the first
command after an install: kernels are kept in an empty folder, so that all are compiled. Told are the medians of
processor time and of waiting, and their ratio to ``import numpy, scipy.sparse, numba, polars`` in the same round. The
goals are ratios of waiting.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import polars as pl

from certeq.worlds import examples

GOALS = {"learn, with its report": 3.0, "apply, 1,000 rows": 1.5}


def commands(folder: Path) -> dict[str, list[str]]:
    """What is timed, each as the words of a process."""
    certeq = [sys.executable, "-m", "certeq"]
    out, rows = str(folder / "out"), str(folder / "rows.csv")
    pl.read_csv(examples.path()).head(1_000).write_csv(rows)
    return {
        "libraries": [sys.executable, "-c", "import numpy, scipy.sparse, numba, polars"],
        "--help": [*certeq, "--help"],
        "learn --help": [*certeq, "learn", "--help"],
        "learn --draws 0 --no-report": [*certeq, "learn", "--draws", "0", "--no-report", "--force", "--out", out],
        "learn --no-report": [*certeq, "learn", "--no-report", "--force", "--out", out],
        "learn, with its report": [*certeq, "learn", "--force", "--out", out],
        "apply, 1,000 rows": [*certeq, "apply", f"{out}/policy.json", rows, "--force", "--out", str(folder / "a.csv")],
    }


def spent(words: list[str], folder: Path, **variables: str) -> tuple[float, float]:
    """Seconds of waiting and of processors that a process took, which keeps its bytecode in a folder."""
    variables |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    begun = time.perf_counter()
    _, status, used = os.wait4(os.posix_spawn(words[0], words, os.environ | variables, file_actions=nowhere), 0)
    if status:
        raise RuntimeError(f"{' '.join(words)} failed.")
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime


def first(words: list[str], folder: Path) -> tuple[float, float]:
    """The same where no kernel has been compiled."""
    with tempfile.TemporaryDirectory() as kernels:
        return spent(words, folder, NUMBA_CACHE_DIR=kernels)


def main(rounds: int = 5) -> None:
    """Time all of it, and show a table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        timed = commands(folder)
        found = [{name: spent(words, folder) for name, words in timed.items()} for _ in range(rounds + 1)][1:]
        for each in found:
            each["learn, with its report, the first time"] = first(timed["learn, with its report"], folder)
    print(
        f"{rounds} rounds, medians\n\n| | wait, s | processors, s | times the libraries | goal |\n|---|---|---|---|---|"
    )
    for name in found[0]:
        wait, work = (median(each[name][i] for each in found) for i in (0, 1))
        ratio = median(each[name][0] / each["libraries"][0] for each in found)
        print(f"| {name} | {wait:.2f} | {work:.2f} | {ratio:.1f} | {GOALS.get(name, '')} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
