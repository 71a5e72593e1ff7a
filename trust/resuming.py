"""Kill what counts, again and again: it goes on from what was kept, and ends with the same bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from trust.faults import working
from trust.killing import Tally
from trust.running import Ended, certeq, end, interrupted, start

CHANGES = 80  # on disk, up to which one run may get; a share that is kept takes about ten


def rows(folder: Path, files: int, n: int) -> None:
    """Parquet files to count; each is a share of its own."""
    import polars as pl

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part in range(files):
        columns = {
            "state": rng.integers(40, size=n),
            "action": rng.choice(["a", "b", "c"], size=n),
            "reward": rng.normal(size=n),
            "next_state": rng.integers(40, size=n),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{part:02}.parquet")


def prepare(folder: Path, files: int = 30, n: int = 60_000) -> float:
    """Rows, and what is counted when nobody disturbs; gives the seconds that this takes."""
    rows(folder / "rows", files, n)
    whole = certeq("count", "rows", "--out", "reference.npz", "--force", cwd=folder)
    if whole.code:
        raise RuntimeError(f"nothing can be tried, since even an undisturbed run fails: {whole}")
    return whole.seconds


def words(*more: Any) -> tuple[Any, ...]:
    """The command that is killed."""
    return ("count", "rows", "--out", "out.npz", "--resume", "kept", *more)


def kill_counting(
    folder: Path, rng: np.random.Generator, kills: int, *more: Any, seconds: float | None = None
) -> Tally:
    """Kill a count again and again as it goes on: before a change on disk or, with ``seconds``, at any moment."""
    out, kept, tally = folder / "out.npz", folder / "kept", Tally()
    right = (folder / "reference.npz").read_bytes()
    out.unlink(missing_ok=True)
    shutil.rmtree(kept, ignore_errors=True)
    while tally.found["went on"] < kills:
        if seconds is None:
            at = {"die_at": int(rng.integers(1, CHANGES)), "folder": str(kept.resolve())}
            ended = certeq(*words(*more), cwd=folder, **at)
        else:
            ended = interrupted(words(*more), folder, after=float(rng.uniform(0.3, 1.1) * seconds))
        if not _sound(tally, ended, out, right):
            continue
        if ended.code == 0:
            tally.found["ended before"] += 1
            out.unlink()
            shutil.rmtree(kept)
        else:
            tally.found["went on"] += 1
            tally.found["shares at hand after a kill"] += len(list(kept.glob("kept-*.npz")))
            out.unlink(missing_ok=True)  # it may have been killed when all was written
    last = certeq(*words(*more), "--force", cwd=folder)
    if last.code or out.read_bytes() != right:
        tally.failures.append(f"the last run did not end as it should: {last}")
    return tally


def _sound(tally: Tally, ended: Ended, out: Path, right: bytes) -> bool:
    """Whether a run was killed or ended well, and its counts are not there or whole."""
    wrong = ""
    if ended.code not in (0, -signal.SIGKILL):
        wrong = f"did not take it well: {ended}"
    elif out.exists() and out.read_bytes() != right:
        wrong = f"other counts than those of the whole run: {ended}"
    elif ended.code == 0 and not out.exists():
        wrong = f"no counts: {ended}"
    if wrong:
        tally.failures.append(wrong)
        out.unlink(missing_ok=True)
        tally.found["went on"] += 1  # so that it comes to an end
    return not wrong


def lose_a_helper(folder: Path, address: str = "") -> str:
    """Kill a process that works for a count, or its cluster's scheduler; gives what is wrong with how that is told.

    The same command must then go on, without a cluster, to the same bytes.
    """
    out, kept = folder / "out.npz", folder / "kept"
    out.unlink(missing_ok=True)
    shutil.rmtree(kept, ignore_errors=True)
    process = start(words("--scheduler", address) if address else words("--workers", "2"), folder)
    give_up = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < give_up and not list(kept.glob("kept-*.npz")):
        time.sleep(0.005)  # until counting has begun
    for victim in working(os.getpid(), b"dask_scheduler") if address else working(process.pid, b"spawn_main")[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    ended = end(process)
    right = (folder / "reference.npz").read_bytes()
    if ended.code == 0 and out.read_bytes() == right:
        return ""  # it was through before
    if ended.code != 1 or ended.crashed or "is gone" not in ended.err or out.exists():
        return f"it was not told who is gone: {ended}"
    again = certeq(*words(), cwd=folder)
    same = again.code == 0 and out.read_bytes() == right
    return "" if same else f"the same command did not go on: {again}"
