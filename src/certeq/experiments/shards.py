"""Running many cells of work: anywhere, in any order, interrupted or not, with the same table at the end.

A cell is a plain description of work (JSON). Its random stream is a function of the root seed and of the cell itself,
so neither the order nor the number of workers matters. A folder holds, for each cell that is done, its table as a
Parquet shard and beside it a small JSON file that says which cell it is and what the shard's bytes must hash to. Both
are written under temporary names and renamed, the JSON last: what is whole is not done again, and anything else is. The
manifest tells what the whole is: seed, version, settings, cells, machines.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import certeq
from certeq.base.errors import InputError
from certeq.base.places import Advance
from certeq.base.texts import json_text
from certeq.base.writing import settle, sweep, write_files

if TYPE_CHECKING:
    import polars as pl

WorkCell = Mapping[str, Any]
CellWork = Callable[[WorkCell, np.random.SeedSequence], dict[str, Any]]

MANIFEST = "manifest.json"
OURS = re.compile(r"[0-9a-f]{20}\.(parquet|json)|manifest\.json")


@dataclass(frozen=True)
class Failure:
    """A cell that raised, and what it raised."""

    cell: WorkCell
    error: BaseException

    def __str__(self) -> str:
        where = traceback.extract_tb(self.error.__traceback__)[-1:]
        at = f" ({Path(where[0].filename).name}, line {where[0].lineno})" if where else ""
        return f"{type(self.error).__name__}: {self.error}{at}, in the cell {json.dumps(self.cell)}"


class Unfinished(RuntimeError):  # noqa: N818 - it says what the table is
    """Some cells failed. The others are on disk, so that a second run only does these again."""

    def __init__(self, failures: Sequence[Failure], total: int) -> None:
        self.failures = list(failures)
        super().__init__(f"{len(self.failures)} of {total} cells failed. The first: {self.failures[0]}")


class Shard(NamedTuple):
    """A cell's table and how long it took."""

    table: pl.DataFrame
    seconds: float


def key_of(cell: WorkCell) -> str:
    """Name of a cell: a hash of what it says."""
    return hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:20]


def seed_of(cell: WorkCell, root: int) -> np.random.SeedSequence:
    """Random stream of a cell."""
    words = [int(key_of(cell)[i : i + 8], 16) for i in (0, 8)]
    return np.random.SeedSequence(root, spawn_key=tuple(words))


def size_of(cell: WorkCell) -> int:
    """How much a cell weighs on the progress bar: its data sets."""
    return int(cell.get("data_sets", 1))


def run(
    work: CellWork,
    cells: Sequence[WorkCell],
    folder: Path,
    *,
    seed: int = 0,
    about: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    progress: Advance | None = None,
) -> pl.DataFrame:
    """Do all cells that have no whole shard yet, and return the whole table in the order of the cells.

    ``about`` is whatever else the results depend on: a folder with results of another seed, version or ``about`` is
    refused. A cell that raises does not keep the others from being done; `Unfinished` is raised once they are.
    """
    import polars as pl

    keys = _keys(cells)
    check(folder, seed=seed, about=about)
    _sweep(folder)
    _write_manifest(folder, cells, seed, about)
    found = {i: shard for i, key in enumerate(keys) if (shard := read_shard(folder, key, cells[i], seed)) is not None}
    total, done = sum(map(size_of, cells)), sum(size_of(cells[i]) for i in found)
    tell = progress or (lambda done, total: None)
    tell(done, total)
    failures = []
    missing = [i for i in range(len(cells)) if i not in found]
    for i, result in _results(work, cells, missing, seed, executor):
        if isinstance(result, Failure):
            failures.append(result)
            continue
        found[i] = _write_shard(folder, keys[i], cells[i], seed, *result)
        done += size_of(cells[i])
        tell(done, total)
    if failures:
        raise Unfinished(failures, len(cells))
    _write_manifest(folder, cells, seed, about, seconds=sum(shard.seconds for shard in found.values()))
    tables = [found[i].table.with_columns(pl.lit(i, dtype=pl.Int32).alias("cell")) for i in range(len(cells))]
    return pl.concat(tables, rechunk=True)


def check(folder: Path, *, seed: int, about: Mapping[str, Any] | None = None) -> None:
    """Refuse a folder that holds results of something else."""
    before, now = manifest(folder), _identity(seed, about)
    if before is None:
        return
    different = [name for name in now if before.get(name) != now[name]]
    if different:
        was = ", ".join(f"{name} {_said(before.get(name))}" for name in different)
        wanted = ", ".join(f"{name} {_said(now[name])}" for name in different)
        raise InputError(
            f"{folder} holds results of {was}; asked for was {wanted}. "
            "Choose another place with --out, or start again with --force."
        )


def clear(folder: Path) -> None:
    """Remove the results in a folder, and nothing else that may be there."""
    _sweep(folder)
    for path in folder.glob("*") if folder.is_dir() else ():
        if OURS.fullmatch(path.name):
            path.unlink(missing_ok=True)


def read_shard(folder: Path, key: str, cell: WorkCell, seed: int) -> Shard | None:
    """Read a cell's shard, or None where it is missing, torn or not what it says it is."""
    import polars as pl

    try:
        data = (folder / f"{key}.parquet").read_bytes()
        label = json.loads((folder / f"{key}.json").read_text(encoding="utf-8"))
        if label != _label(cell, seed, data, label["seconds"]):
            return None
        return Shard(pl.read_parquet(io.BytesIO(data)), float(label["seconds"]))
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        return None


def _write_shard(folder: Path, key: str, cell: WorkCell, seed: int, columns: dict[str, Any], seconds: float) -> Shard:
    import polars as pl

    table, file = pl.DataFrame(columns), io.BytesIO()
    table.write_parquet(file)
    data = file.getvalue()
    label = json_text(_label(cell, seed, data, round(seconds, 3)))
    write_files({folder / f"{key}.parquet": data, folder / f"{key}.json": label}, force=True)
    return Shard(table, seconds)


def _label(cell: WorkCell, seed: int, data: bytes, seconds: float) -> dict[str, Any]:
    plain = json.loads(json.dumps(cell))  # what JSON makes of it, a tuple being a list
    digest = hashlib.sha256(data).hexdigest()
    return {"certeq": certeq.__version__, "seed": seed, "cell": plain, "sha256": digest, "seconds": seconds}


def _keys(cells: Sequence[WorkCell]) -> list[str]:
    keys = [key_of(cell) for cell in cells]
    if len(set(keys)) < len(keys):
        twice = next(cell for i, cell in enumerate(cells) if keys[i] in keys[:i])
        raise InputError(f"A cell is there twice, and would be drawn from the same random stream: {json.dumps(twice)}.")
    return keys


def _results(
    work: CellWork, cells: Sequence[WorkCell], missing: list[int], seed: int, executor: Executor | None
) -> Iterator[tuple[int, tuple[dict[str, Any], float] | Failure]]:
    """What each cell gives, as soon as it is there: its columns and seconds, or how it failed."""
    if executor is None:
        for i in missing:
            try:
                yield i, perform(work, cells[i], seed, certeq.__version__)
            except Exception as error:
                yield i, Failure(cells[i], error)
        return
    waiting: dict[Future[tuple[dict[str, Any], float]], int] = {}
    try:
        for i in missing:
            try:
                waiting[executor.submit(perform, work, cells[i], seed, certeq.__version__)] = i
            except BrokenExecutor as error:
                yield i, Failure(cells[i], error)
        for future in as_completed(waiting):
            i = waiting[future]
            try:
                yield i, future.result()
            except (Exception, CancelledError) as error:  # a cluster that goes away cancels what it had
                yield i, Failure(cells[i], error)
    finally:  # whoever stops listening must not wait for the rest
        for future in waiting:
            future.cancel()


def perform(work: CellWork, cell: WorkCell, seed: int, version: str) -> tuple[dict[str, Any], float]:
    """Do one cell, wherever this runs; a worker with another certeq would give another table."""
    if certeq.__version__ != version:
        raise InputError(f"This worker has certeq {certeq.__version__}, but {version} was asked for.")
    start = time.perf_counter()
    columns = work(cell, seed_of(cell, seed))
    return columns, time.perf_counter() - start


def _identity(seed: int, about: Mapping[str, Any] | None) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(about or {})))
    return {"certeq": certeq.__version__, "seed": seed} | plain


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def manifest(folder: Path) -> dict[str, Any] | None:
    """What a folder says it holds; None where nothing was begun."""
    try:
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def _write_manifest(
    folder: Path, cells: Sequence[WorkCell], seed: int, about: Mapping[str, Any] | None, seconds: float | None = None
) -> None:
    """Tell what the folder is about; machines that took part earlier stay named."""
    machines = (manifest(folder) or {}).get("machines", [])
    here = machine()
    said = _identity(seed, about) | {
        "complete": seconds is not None,
        "seconds": seconds,  # of all cells together
        "machines": machines if here in machines else [*machines, here],
        "cells": [
            {"key": key_of(cell), "spawn_key": list(seed_of(cell, seed).spawn_key), "cell": dict(cell)}
            for cell in cells
        ],
    }
    write_files({folder / MANIFEST: json_text(said)}, force=True)


def _sweep(folder: Path) -> None:
    """Put in order what a run left that was killed while it was writing; a folder has one run at a time."""
    settle(folder)
    sweep(folder, patience=0)


def machine() -> dict[str, Any]:
    """Versions and kind of machine: what may matter to the last digit, and nothing that says whose it is."""
    import numba
    import polars
    import scipy

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "polars": polars.__version__,
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
    }
