"""Same seed, same bytes: whatever the threads, the processes, the pieces, and the order of Python's sets.

How many threads the library for linear algebra uses (OpenBLAS) is another matter: it adds in another order with another
number, which can change the last digits of the values in larger dense models. ``BLAS`` is there to see by how much.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trust.running import certeq, visible

CONDITIONS: dict[str, dict[str, str]] = {
    "one thread": {"CERTEQ_THREADS": "1", "POLARS_MAX_THREADS": "1"},
    "seven threads": {"CERTEQ_THREADS": "7", "POLARS_MAX_THREADS": "7"},
    "another order of sets": {"PYTHONHASHSEED": "12345"},
}
BLAS = {
    "one thread for linear algebra": {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    "four threads for linear algebra": {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"},
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "learn": ("learn", "--draws", "60", "--seed", "3", "--out", "out"),
    "audit": ("audit", "--planning-discount", "0.9", "--draws", "30", "--out", "out"),
    "compare": ("compare", "--draws", "30", "--out", "out"),
    "simulate": ("simulate", "tumor", "--episodes", "30", "--seed", "3", "--out", "out/rows.csv"),
    "count": ("count", "rows", "--out", "out/counts.npz"),
    "reproduce": ("reproduce", "loss_by_strength", "--data-sets", "2", "--seed", "3", "--out", "out"),
}


def outputs(words: tuple[str, ...], folder: Path, environment: dict[str, str] | None = None) -> dict[str, bytes]:
    """Run a command and take all that it wrote, but for what tells the time it took."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    ended = certeq(*words, cwd=folder, environment=environment)
    if ended.code:
        raise RuntimeError(str(ended))
    timed = (lambda name: name.endswith((".json", ".html"))) if words[0] == "reproduce" else (lambda name: False)
    return visible(folder / "out", timed)


def differences(name: str, folder: Path, conditions: dict[str, dict[str, str]] = CONDITIONS) -> list[str]:
    """Files of a command that are not the same bytes under some condition."""
    words = COMMANDS[name]
    if name == "count":
        from trust.resuming import rows

        rows(folder / "rows", files=5, n=20_000)
    usual, found = outputs(words, folder), []
    for condition, environment in conditions.items():
        now = outputs(words, folder, environment)
        found += [f"{name}, {condition}: {file}" for file in sorted(usual | now) if usual.get(file) != now.get(file)]
    if name in ("count", "reproduce"):
        now = outputs((*words, "--workers", "3"), folder)
        found += [
            f"{name}, three processes: {file}" for file in sorted(usual | now) if usual.get(file) != now.get(file)
        ]
    return found


def ways_to_count(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Counts of the same rows and sums of their rewards, in pieces of one size, on any threads and processes."""
    for told in ({}, {"threads": 1}, {"threads": 5}, {"workers": 2}, {"workers": 3}):
        yield str(told), _counted(folder, piece_rows=4_000, **told)


def pieces_to_count(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Counts of the same rows in pieces of any size; without rewards, whose sums another size rounds otherwise."""
    for size in (30_000, 7_001, 1_000, 333):
        yield f"{size} rows at a time", _counted(folder, piece_rows=size, reward=False)


def _counted(folder: Path, **told: Any) -> bytes:
    from certeq.data.counting import count
    from trust.resuming import rows

    if not (folder / "few").exists():
        rows(folder / "few", files=2, n=15_000)
    return count(folder / "few", **told).to_bytes()


def unlike(ways: Iterator[tuple[str, bytes]]) -> tuple[int, list[str]]:
    """How many ways there are beside the first, and those that give other bytes."""
    (_, usual), *others = ways
    return len(others), [name for name, found in others if found != usual]
