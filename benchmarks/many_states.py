"""``python -m benchmarks.many_states [STATES ...]``: what ``certeq learn`` takes for logs with very many states.

Logs of each size, six rows per state, three actions, episodes of ten rows that begin anywhere: *lattice*, two numeric
columns with moves to nearby cells; *cube*, three of them; *labels*, one column of texts without order, each of which
leads to a few others; *endless*, the lattice with episodes that were cut off, so that values reach a hundred decisions
ahead. Told are seconds of waiting and of all processors, the peak of the memory, and what is on the disk, with report
and policy files; then what ``apply`` takes for 1,000 of the rows.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROWS, ACTIONS, LENGTH = 6, 3, 10
WORLDS = {"lattice": 2, "cube": 3, "labels": 0, "endless": 2}  # numeric columns
ENDS = ("always", "never")
SIZES = (10_000, 100_000, 1_000_000)


def log(kind: str, states: int, seed: int = 0) -> tuple[pl.DataFrame, int]:
    """A log of about so many states, and how many cells a column has."""
    rng, columns = np.random.default_rng(seed), WORLDS[kind] or 1
    side = round(states ** (1 / columns))
    episodes = ROWS * side**columns // LENGTH
    place = rng.integers(0, side, (episodes, columns))
    at, did, paid = [], [], []
    for _ in range(LENGTH):
        action = rng.integers(0, ACTIONS, episodes)
        at.append(place)
        did.append(action)
        paid.append(-np.abs(place / side - 0.7).sum(axis=1) - 0.1 * action + 0.1 * rng.normal(size=episodes))
        along = np.arange(columns) == (action % columns)[:, None]
        step = np.where(rng.random(episodes) < 0.8, np.where(action < 2, 1, -1), rng.integers(-1, 2, episodes))
        place = (
            (place + along * step[:, None]) % side
            if kind == "labels"
            else np.clip(place + along * step[:, None], 0, side - 1)
        )
    where = np.stack(at, axis=1).reshape(-1, columns)
    named = {f"x{i}": where[:, i].astype(float) for i in range(columns)}
    if kind == "labels":
        words = pl.Series([f"case {i}" for i in rng.permutation(side)])
        named = {"group": words.gather(where[:, 0])}
    rest = {
        "patient": np.repeat(np.arange(episodes), LENGTH),
        "time": np.tile(np.arange(LENGTH), episodes),
        "action": np.stack(did, axis=1).ravel(),
        "reward": np.stack(paid, axis=1).ravel().round(3),
    }
    return pl.DataFrame(rest | named), side


def command(kind: str, side: int, rows: Path, out: Path) -> list[str]:
    """The words of ``certeq learn`` for such a log."""
    state = ["group"] if kind == "labels" else [f"x{i}" for i in range(WORLDS[kind])]
    cut = [word for name in state if kind != "labels" for word in ("--bins", f"{name}=quantile:{side}")]
    said = [
        "--state",
        ",".join(state),
        "--episode",
        "patient",
        "--time",
        "time",
        "--ends",
        ENDS[kind == "endless"],
        *cut,
    ]
    return ["learn", str(rows), *said, "--max-states", "2000000", "--force", "--out", str(out)]


def spent(words: list[str]) -> tuple[float, float, float]:
    """Seconds of waiting, seconds of processors, and megabytes at most, of a process."""
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1,)]
    begun = time.perf_counter()
    _, status, used = os.wait4(os.posix_spawn(words[0], words, os.environ, file_actions=nowhere), 0)
    if status:
        raise RuntimeError(f"{' '.join(words)} failed.")
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(kinds: list[str], sizes: list[int]) -> None:
    """Measure each log, and show a table."""
    print(
        "| log | states | rows | learn: wait, s | processors, s | peak, MB | policy, MB | report, MB | csv, MB "
        "| apply: s |"
    )
    print("|---|" + "---:|" * 9)
    certeq = [sys.executable, "-m", "certeq"]
    for kind in kinds:
        for states in sizes:
            with tempfile.TemporaryDirectory() as folder:
                rows, few, out = Path(folder) / "rows.parquet", Path(folder) / "few.parquet", Path(folder) / "out"
                table, side = log(kind, states)
                table.write_parquet(rows)
                table.head(1_000).write_parquet(few)
                wait, work, peak = spent([*certeq, *command(kind, side, rows, out)])
                policy = next(out.glob("policy.npz"), out / "policy.json")
                sizes_of = (policy, out / "report.html", out / "policy.csv")
                mb = " | ".join(f"{file.stat().st_size / 1e6:.1f}" if file.exists() else "–" for file in sizes_of)
                applied, _, _ = spent([*certeq, "apply", str(policy), str(few), "--out", str(out / "advice.csv")])
                took = f"{wait:.1f} | {work:.1f} | {peak:,.0f} | {mb} | {applied:.1f}"
                print(f"| {kind} | {states:,} | {len(table):,} | {took} |", flush=True)


if __name__ == "__main__":
    said = sys.argv[1:]
    main(
        [each for each in said if each in WORLDS] or list(WORLDS),
        [int(each) for each in said if each.isdecimal()] or list(SIZES),
    )
