"""Kill certeq at random moments, and at every single change it makes on disk; nothing may be lost, nothing torn."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from certeq.base.writing import READY, settle
from trust.running import Ended, certeq, hidden, interrupted, visible


@dataclass
class Tally:
    """What was found after each kill."""

    found: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """How many runs were killed."""
        return sum(self.found[what] for what in ("old", "new", "signed", "went on"))


@dataclass(frozen=True)
class Job:
    """A command that writes into a folder ``out``, in an older and in a newer version."""

    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]


JOBS = (
    Job(
        "learn",
        ("learn", "rows.csv", "--draws", "20", "--out", "out"),
        ("learn", "rows.csv", "--discount", "0.9", "--draws", "20", "--out", "out", "--force"),
    ),
    Job(
        "apply",
        ("apply", "policy.json", "rows.csv", "--out", "out/actions.csv"),
        ("apply", "policy.json", "other.csv", "--out", "out/actions.csv", "--force"),
    ),
    Job(
        "simulate",
        ("simulate", "loop", "--out", "out/rows.csv"),
        ("simulate", "loop", "--seed", "1", "--out", "out/rows.csv", "--force"),
    ),
    Job(
        "count",
        ("count", "rows.parquet", "--out", "out/counts.npz"),
        ("count", "other.parquet", "--out", "out/counts.npz", "--force"),
    ),
    Job(
        "check",
        ("check", "rows.csv", "--page", "out/page.html"),
        ("check", "other.csv", "--page", "out/page.html", "--force"),
    ),
    Job(
        "audit",
        ("audit", "rows.csv", "--planning-discount", "0.9", "--draws", "20", "--out", "out"),
        ("audit", "rows.csv", "--planning-discount", "0.5", "--draws", "20", "--out", "out", "--force"),
    ),
    Job(
        "export",
        ("export", "policy.json", "--to", "sql", "--out", "out/policy.sql"),
        ("export", "policy.json", "--to", "sql", "--table", "visits", "--out", "out/policy.sql", "--force"),
    ),
    Job(
        "compare",
        ("compare", "rows.csv", "--draws", "20", "--folds", "3", "--out", "out"),
        ("compare", "rows.csv", "--draws", "20", "--folds", "2", "--out", "out", "--force"),
    ),
)
FIGURE = ("reproduce", "implied_prior", "--out", "out")
OTHER_FIGURE = ("reproduce", "equal_counts", "--data-sets", "2", "--out", "out")
STUDY = ("reproduce", "study", "--data-sets", "2", "--out", "out")


def prepare(folder: Path) -> None:
    """Rows and a policy to work with."""
    for words in (
        ("simulate", "river_swim", "--episodes", "20", "--out", "rows.csv"),
        ("simulate", "river_swim", "--episodes", "9", "--seed", "1", "--out", "other.csv"),
        ("learn", "rows.csv", "--no-report", "--out", "first"),
    ):
        _succeed(certeq(*words, cwd=folder))
    shutil.copy(folder / "first" / "policy.json", folder / "policy.json")
    for name in ("rows", "other"):
        pl.read_csv(folder / f"{name}.csv").write_parquet(folder / f"{name}.parquet")


def kill_while_writing(job: Job, folder: Path, rng: np.random.Generator, at_random: int, *, exhaust: bool) -> Tally:
    """Kill a job that overwrites its old results: at random moments, and (``exhaust``) before each change on disk."""
    out = folder / "out"
    words = job.new
    shutil.rmtree(out, ignore_errors=True)
    _succeed(certeq(*job.old, cwd=folder))
    old, kept = visible(out), folder / "old"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(out, kept)
    whole = certeq(*words, cwd=folder)
    _succeed(whole)
    new, tally = visible(out), Tally()
    for ended in _killed(words, folder, kept, rng, at_random, whole.seconds, exhaust=exhaust):
        _judge(tally, ended, out, old, new)
    again = certeq(*words, cwd=folder)  # over whatever the last kill left
    if again.code != 0 or visible(out) != new or READY in hidden(out):
        tally.failures.append(f"the next run did not put {job.name} in order: {again}")
    return tally


def _killed(
    words: tuple[str, ...],
    folder: Path,
    kept: Path,
    rng: np.random.Generator,
    at_random: int,
    seconds: float,
    *,
    exhaust: bool,
) -> Iterator[Ended]:
    out = folder / "out"

    def restore() -> None:
        shutil.rmtree(out)
        shutil.copytree(kept, out)

    for _ in range(at_random):
        restore()
        yield interrupted(words, folder, after=float(rng.uniform(0, 1.05 * seconds)))
    for change in range(1, 1000) if exhaust else ():
        restore()
        ended = certeq(*words, cwd=folder, die_at=change, folder=str(out.resolve()))
        yield ended
        if ended.code == 0:
            return


def _judge(tally: Tally, ended: Ended, out: Path, old: dict[str, bytes], new: dict[str, bytes]) -> None:
    """Old results, new ones, or new ones on the way with the sign beside them; anything else is a failure."""
    now, sign = visible(out), READY in hidden(out)
    if ended.code not in (0, -signal.SIGKILL):
        tally.failures.append(str(ended))
    elif ended.code == 0:
        tally.found["ended before"] += 1
        if now != new:
            tally.failures.append(f"not what was asked for: {ended}")
    elif now == old and not sign:
        tally.found["old"] += 1
    elif now == new and not sign:
        tally.found["new"] += 1
    elif sign and all(content in (old.get(name), new.get(name)) for name, content in now.items()):
        settle(out)
        tally.found["signed"] += 1
        finished = visible(out)
        if finished != new:
            other = sorted(name for name in new.keys() | finished.keys() if new.get(name) != finished.get(name))
            tally.failures.append(f"could not be finished, {other}: {ended}")
    else:
        tally.failures.append(f"torn, {sorted(now)}: {ended}")


def kill_and_resume(
    folder: Path, rng: np.random.Generator, kills: int, words: tuple[str, ...] = FIGURE, workers: int = 1
) -> Tally:
    """Kill a reproduction again and again as it goes on; in the end its tables are those of a run that was let be."""
    reference, out, tally = folder / "reference", folder / "out", Tally()
    for place in (reference, out):
        shutil.rmtree(place, ignore_errors=True)
    whole = certeq(*words[:-1], "reference", cwd=folder)
    _succeed(whole)
    right = tables(reference)
    done = 0
    while done < kills:
        ended = interrupted((*words, "--workers", workers), folder, after=float(rng.uniform(0.3, 1.1) * whole.seconds))
        if ended.code not in (0, 1, -signal.SIGKILL):
            tally.failures.append(str(ended))
        for name, content in tables(out).items():
            if content != right.get(name):
                tally.failures.append(f"{name} is not that of the whole run: {ended}")
        if ended.code == -signal.SIGKILL:
            done += 1
            tally.found["went on"] += 1
        else:
            tally.found["ended before"] += 1
            shutil.rmtree(out)
    last = certeq(*words, "--workers", workers, cwd=folder)
    if last.code != 0 or tables(out) != right or hidden(out):
        tally.failures.append(f"the last run did not end as it should: {last}")
    return tally


def tables(out: Path) -> dict[str, bytes]:
    """Tables, pictures and shards: what must be the same bytes in every run. Labels and pages tell seconds, too."""
    kinds = (".parquet", ".csv", ".svg")
    return {name: content for name, content in visible(out).items() if name.endswith(kinds)} if out.exists() else {}


def _succeed(ended: Ended) -> None:
    if ended.code != 0:
        raise RuntimeError(f"nothing can be tried, since even an undisturbed run fails: {ended}")
