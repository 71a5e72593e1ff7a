"""Parquet to sparse counts: ours against polars, duckdb, NumPy and SciPy, on the same file and in the same process.

    uv run --group bench python -m benchmarks.counting [ROWS [JOB]]

10,000 states, 5 actions, about a million different transitions; row groups of a million rows. Three jobs: whole
numbers, whole numbers with rewards to be added up, and labels that are text. Each contender uses both cores if it can.
They take turns and are compared within a round, by the clock and by the processor time of all their threads, which
other programs on the machine disturb less. Then each works once alone in a new process, which tells its peak memory,
and once more with a quarter of the rows.

    uv run --group bench python -m benchmarks.counting scaling

counts from one million to a hundred million rows, each in a new process, and writes time and peak memory to
``counting-scaling.csv`` beside this file.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import duckdb
import numpy as np
import polars as pl
import scipy.sparse as sp

from certeq.data.counting import Tallied, count
from certeq.data.counting.parquet import PIECE

S, A, SUCCESSORS, GROUP, ROUNDS = 10_000, 5, 20, 1 << 20, 5
SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
NAMES = ("state", "action", "next_state")
Cells = tuple[np.ndarray, np.ndarray]  # sorted keys, counts


def write(path: Path, rows: int, *, reward: bool, text: bool) -> None:
    """Write rows, a group at a time; nothing holds them all."""

    def groups() -> Iterator[pl.DataFrame]:
        rng = np.random.default_rng(0)
        successors = rng.integers(0, S, (S, A, SUCCESSORS), dtype=np.int32)
        for start in range(0, rows, GROUP):
            n = min(GROUP, rows - start)
            state, action = rng.integers(0, S, n, dtype=np.int32), rng.integers(0, A, n, dtype=np.int32)
            after = successors[state, action, np.minimum(rng.geometric(0.15, n) - 1, SUCCESSORS - 1)]
            frame = pl.DataFrame(dict(zip(NAMES, (state, action, after), strict=True)))
            if text:
                words = {"state": "s{:05}", "action": "drug {}", "next_state": "s{:05}"}
                labels = {name: pl.Series([words[name].format(i) for i in range(S)]) for name in NAMES}
                frame = frame.select(labels[name].gather(frame[name]).alias(name) for name in NAMES)
            yield frame.with_columns(reward=rng.normal(size=n).round(2)) if reward else frame

    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, next(groups()).to_arrow().schema) as file:
        for frame in groups():
            file.write_table(frame.to_arrow().cast(file.schema), row_group_size=GROUP)


# ---- the contenders: a file in, something that holds the counts out ----


def certeq_counts(path: Path) -> Any:
    return count(path, fingerprint=False)


def certeq_with_fingerprint(path: Path) -> Any:
    return count(path)


def decode(path: Path) -> None:
    """What anybody must do: make columns of the bytes."""
    pl.scan_parquet(path).collect()


def decode_in_pieces(path: Path) -> None:
    """The same without holding all of them, in the pieces in which they are counted."""
    rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    for start in range(0, rows, PIECE):
        pl.scan_parquet(path).slice(start, PIECE).collect()


def packed() -> pl.Expr:
    state, action, after = (pl.col(name).cast(pl.UInt32) for name in NAMES)
    return ((state * A + action) * S + after).alias("key")


def polars_packed(path: Path) -> Any:
    return pl.scan_parquet(path).select(packed()).group_by("key").len().collect(engine="streaming")


def polars_packed_rewards(path: Path) -> Any:
    r = pl.col("reward")
    lazy = pl.scan_parquet(path).select(packed(), "reward").group_by("key")
    return lazy.agg(pl.len(), r.sum().alias("sum"), (r * r).sum().alias("squares")).collect(engine="streaming")


def polars_three(path: Path) -> Any:
    return pl.scan_parquet(path).group_by(NAMES).len().collect(engine="streaming")


def duckdb_of(what: str, by: str) -> Callable[[Path], Any]:
    def run(path: Path) -> Any:
        query = f"select {what}, count(*) as len from read_parquet(?) group by {by}"
        return duckdb.sql(query, params=[str(path)]).fetchnumpy()

    return run


KEY = f"(state::uinteger * {A} + action::uinteger) * {S} + next_state::uinteger as key"


def numpy_unique(path: Path) -> Any:
    return np.unique(pl.read_parquet(path).select(packed()).to_series().to_numpy(), return_counts=True)


def scipy_coo(path: Path) -> Any:
    state, action, after = (pl.read_parquet(path, columns=[name]).to_series().to_numpy() for name in NAMES)
    ones = np.ones(len(state), dtype=np.int32)
    return sp.coo_array((ones, (state * A + action, after)), shape=(S * A, S)).tocsr()


DECODING: dict[str, Callable[[Path], Any]] = {
    "decoding alone, by polars": decode,
    "decoding alone, in pieces": decode_in_pieces,
}
JOBS: dict[str, dict[str, Callable[[Path], Any]]] = {
    "whole numbers": {
        "certeq": certeq_counts,
        **DECODING,
        "certeq, with a fingerprint": certeq_with_fingerprint,
        "polars, one packed key": polars_packed,
        "polars, three columns": polars_three,
        "duckdb, one packed key": duckdb_of(KEY, "key"),
        "duckdb, three columns": duckdb_of(", ".join(NAMES), "all"),
        "NumPy, unique": numpy_unique,
        "SciPy, coo to csr": scipy_coo,
    },
    "whole numbers, and rewards": {
        "certeq": certeq_counts,
        **DECODING,
        "polars, one packed key": polars_packed_rewards,
        "duckdb, one packed key": duckdb_of(f"{KEY}, sum(reward) as sum, sum(reward * reward) as squares", "key"),
    },
    "text": {
        "certeq": certeq_counts,
        **DECODING,
        "polars, three columns": polars_three,
        "duckdb, three columns": duckdb_of(", ".join(NAMES), "all"),
    },
}


def cells(found: Any) -> Cells:
    """The same shape for everybody's counts, to compare them."""
    if isinstance(found, tuple):
        return found
    if isinstance(found, Tallied) or sp.issparse(found):
        table = found.counts.transitions if isinstance(found, Tallied) else found
        table.sum_duplicates()
        return np.repeat(np.arange(S * A), np.diff(table.indptr)) * S + table.indices, table.data
    table = pl.DataFrame(found)
    if "key" not in table.columns:
        numbers = pl.col(NAMES).cast(pl.String).str.extract(r"(\d+)").cast(pl.Int64)  # s00012, drug 3
        state, action, after = (pl.col(name) for name in NAMES)
        table = table.with_columns(numbers).with_columns(key=(state * A + action) * S + after)
    table = table.sort("key")
    return table["key"].to_numpy(), table["len"].to_numpy()


def race(path: Path, contenders: dict[str, Callable[[Path], Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Seconds by the clock and by the processor, ``(contenders, rounds)``; the second of two runs counts."""
    clock, processor = np.zeros((2, len(contenders), ROUNDS))
    expected: Cells | None = None
    for turn in range(ROUNDS):
        for i, (name, run) in enumerate(contenders.items()):
            run(path)
            start, begun = process_time(), perf_counter()
            found = run(path)
            clock[i, turn], processor[i, turn] = perf_counter() - begun, process_time() - start
            if turn == 0 and name not in DECODING:
                mine = cells(found)
                expected = expected or mine
                assert all(np.array_equal(x, y) for x, y in zip(mine, expected, strict=True)), name
            del found
    return clock, processor


def alone(job: str, name: str, path: Path) -> tuple[float, int]:
    """Processor seconds and peak memory in MB of a contender that works once, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.counting", "--alone", job, name, str(path)]
    seconds, megabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(megabytes)


def work_once(job: str, run: Callable[[Path], Any], path: Path) -> None:
    """Work, and print the processor seconds that took and the peak memory; a few rows before that load everything."""
    with tempfile.TemporaryDirectory() as folder:
        few = written(job, 1_000, Path(folder) / "few.parquet")
        run(few)
    start = process_time()
    run(path)
    print(f"{process_time() - start:.3f} {peak()}")


def written(job: str, rows: int, path: Path) -> Path:
    """The rows of a job."""
    write(path, rows, reward="rewards" in job, text=job == "text")
    return path


def compare(job: str, rows: int, folder: Path) -> None:
    contenders = JOBS[job]
    whole, quarter = written(job, rows, folder / "rows.parquet"), written(job, rows // 4, folder / "quarter.parquet")
    clock, processor = race(whole, contenders)
    print(f"\n{job}: {rows:,} rows, {whole.stat().st_size / 1e6:,.0f} MB; median of {ROUNDS} rounds\n")
    print("| | s | times the first | least to greatest | by processor time | peak MB | with a quarter of the rows |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for i, name in enumerate(contenders):
        ratio, work = clock[i] / clock[0], processor[i] / processor[0]
        spread = f"{ratio.min():.3g} to {ratio.max():.3g}"
        peaks = " | ".join(f"{alone(job, name, path)[1]:,}" for path in (whole, quarter))
        seconds, times, by_work = (f"{np.median(values):.3g}" for values in (clock[i], ratio, work))
        print(f"| {name} | {seconds} | {times} | {spread} | {by_work} | {peaks} |", flush=True)


def scaling() -> None:
    """Count ever more rows, each in a process of its own, and write the table."""
    found = []
    for rows in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            write(file, rows, reward=True, text=False)
            command = [sys.executable, "-m", "benchmarks.counting", "--measure", str(file)]
            measured = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            found.append((rows, round(file.stat().st_size / 1e6, 1), *map(float, measured)))
            print(found[-1], flush=True)
    with Path(__file__).with_name("counting-scaling.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rows", "file_megabytes", "seconds", "processor_seconds", "peak_megabytes"])
        writer.writerows(found)
    x, y = np.log([row[0] for row in found]), np.log([[row[3], row[4]] for row in found])
    time, memory = np.polyfit(x, y, 1)[0]
    print(f"Log-log slopes in rows: processor time {time:.2f}, peak memory {memory:.2f}.")


def measure(path: Path) -> None:
    """Count a file three times in this process; the time is the least, the memory the peak."""
    times = []
    for _ in range(3):
        begun, start = perf_counter(), process_time()
        count(path, fingerprint=False)
        times.append((perf_counter() - begun, process_time() - start))
    clock, processor = np.min(times, axis=0)
    print(f"{clock:.3f} {processor:.3f} {peak()}")


def peak() -> int:
    """Peak memory of this process in MB."""
    about = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in about if line.startswith("VmHWM"))


def main() -> None:
    if sys.argv[1:2] == ["scaling"]:
        return scaling()
    if sys.argv[1:2] == ["--measure"]:
        return measure(Path(sys.argv[2]))
    if sys.argv[1:2] == ["--alone"]:
        job, name, path = sys.argv[2:]
        return work_once(job, JOBS[job][name], Path(path))
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
    for job in sys.argv[2:] or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            compare(job, rows, Path(folder))
    return None


if __name__ == "__main__":
    main()
