"""``uv run --group test python -m trust`` runs all campaigns and writes docs/trust.md; with names, only those.

What each campaign found is kept in certeq-out/trust.json, so that they can be run one by one; the page is made of all
that is there. ``TRUST_SCALE=0.05`` in the environment runs a twentieth of each campaign that can be scaled, and shows
the page instead of writing it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import certeq as package
from certeq.base.display import several
from trust import exact, faults, fuzzing, hostile, killing, load, resuming, sameness
from trust.attacks import ATTACKS
from trust.hostile.attempts import attempts
from trust.launch import limit
from trust.rows import SCALE, Row, scaled, words
from trust.running import certeq

ROOT = Path(__file__).parents[1]
SAME = "in the end the same bytes; "
KEPT = ROOT / "certeq-out" / f"trust{os.environ.get(SCALE, '')}.json"
PAGE = ROOT / "docs" / "trust.md"


def kills(folder: Path) -> Iterator[Row]:
    """SIGKILL at random moments, and before every change on disk."""
    rng = np.random.default_rng(0)
    killing.prepare(folder)
    for job in killing.JOBS:
        exhaust = job.name in ("learn", "apply")  # a set of files, and a single one: all verbs write through one door
        tally = killing.kill_while_writing(job, folder, rng, 9, exhaust=exhaust)
        yield Row(f"`{job.name}` killed over its old results", tally.kills, words(tally.found), tally.failures)


def resumed(folder: Path) -> Iterator[Row]:
    """SIGKILL again and again, and going on from what was kept."""
    rng = np.random.default_rng(3)
    seconds = resuming.prepare(folder)
    tally = resuming.kill_counting(folder, rng, 6)
    yield Row("`count --resume` killed before a change on disk", tally.kills, SAME + words(tally.found), tally.failures)
    tally = resuming.kill_counting(folder, rng, 3, "--workers", "2", seconds=2 * seconds)
    yield Row("the same at any moment, 2 processes", tally.kills, SAME + words(tally.found), tally.failures)
    with load.cluster(folder) as (address, _):
        tally = resuming.kill_counting(folder, rng, 3, "--scheduler", address, seconds=2 * seconds)
    yield Row("the same on a cluster", tally.kills, SAME + words(tally.found), tally.failures)
    for name, command, workers, times in (
        ("`reproduce` killed while drawing", killing.FIGURE, 1, 3),
        ("`reproduce` killed while computing", killing.OTHER_FIGURE, 1, 3),
        ("`reproduce` killed while computing, 2 processes", killing.OTHER_FIGURE, 2, 2),
        ("`reproduce study` killed", killing.STUDY, 1, 2),
    ):
        tally = killing.kill_and_resume(folder, rng, times, command, workers)
        yield Row(name, tally.kills, SAME + words(tally.found), tally.failures)


def machine_faults(folder: Path) -> Iterator[Row]:
    """Full disks, quotas, closed folders, Ctrl-C, workers that die."""
    rng = np.random.default_rng(1)
    killing.prepare(folder)
    for name, fault in (
        ("no file above 2,000 bytes (a quota)", faults.small_files),
        ("a full disk (tmpfs)", faults.full_disk),
        ("a folder that takes no files", faults.closed_folder),
    ):
        found = {verb: fault(folder, verb) for verb in faults.COMMANDS}
        tried = {verb: wrong for verb, wrong in found.items() if wrong is not None}
        yield Row(name, len(tried), "told in words, old files as they were", _some(list(tried.values())))
    for verb in faults.COMMANDS:
        tally = faults.tally_stops(folder, verb, rng, 4, faults.timed(folder, verb))
        yield Row(f"Ctrl-C during `{verb}`", sum(tally.found.values()), words(tally.found), tally.failures)
    wrong = [faults.kill_a_worker(folder, rng, 3.0) for _ in range(3)]
    yield Row("a worker process killed in `reproduce --workers 2`", 3, "the next run ends it", _some(wrong))
    resuming.prepare(folder)
    wrong = [resuming.lose_a_helper(folder) for _ in range(3)]
    yield Row("a worker process killed in `count --workers 2`", 3, "told, and the next run ends it", _some(wrong))
    wrong = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as place, load.cluster(Path(place)) as (address, _workers):
            wrong.append(resuming.lose_a_helper(folder, address))
    yield Row("the scheduler killed in `count --scheduler`", 2, "told, and the next run ends it", _some(wrong))
    wrong = [faults.little_memory(folder, megabytes << 20) for megabytes in (600, 900, 1200)]
    yield Row("`reproduce` with 600, 900, 1,200 MB of memory", 3, "the next run ends it", _some(wrong))


def _some(problems: list[str]) -> list[str]:
    return [problem for problem in problems if problem]


def hostile_files(folder: Path) -> Iterator[Row]:
    """The corpus, in one process after another and, for tables, each in a process of its own."""
    kinds: dict[str, list[str]] = {}
    for name in hostile.CASES:
        kinds.setdefault(name.partition(":")[0], []).append(name)
    for kind, names in kinds.items():
        found = list(attempts(names))
        slowest = max(attempt.seconds for attempt in found)
        wrong = [
            f"{attempt.name}: {attempt.said[-300:]} {attempt.crash[-300:]}" for attempt in found if not attempt.refused
        ]
        missing = [] if len(found) == len(names) else [f"only {len(found)} of {len(names)} could be tried"]
        yield Row(f"hostile: {kind}", len(found), f"all refused; the slowest took {slowest:.1f} s", wrong + missing)
    wrong, tried = [], [name for name in hostile.CASES if name.startswith(("table:", "counting:", "Minari:"))]
    for name in tried:
        with tempfile.TemporaryDirectory() as place:
            ended = certeq(*hostile.made(name, Path(place)), cwd=Path(place), memory=hostile.MEMORY)
            wrong += [] if ended.code == 2 and ended.told else [f"{name}: {ended}"]
    told = "all refused, within 4 GiB of address space"
    yield Row("hostile tables, each in a process of its own", len(tried), told, wrong)


def fuzz(folder: Path) -> Iterator[Row]:
    """Random values, most of them nearly sound."""
    limit(memory=16 << 30)
    for name in fuzzing.TARGETS:
        found = fuzzing.fuzz(name, 1_500)
        told = f"{found.tried - found.refused:,} accepted, {found.refused:,} refused in words"
        yield Row(f"fuzzing: {name}", found.tried, told, [found.failure] if found.failure else [])


def numbers(folder: Path) -> Iterator[Row]:
    """Plans against exact fractions: rows that sum to up to 1 + 1e-9, discounts up to the last float below 1."""
    names = [*("-".join(way) for way in exact.WAYS), "value_bound"]
    tried, early = Counter[str](), Counter[str]()
    wrong: dict[str, list[str]] = {name: [] for name in names}
    parts = np.random.SeedSequence(2).spawn(-(-scaled(45_000) // exact.WORLDS))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for some, stopped, failures in pool.map(exact.examine_some, parts):
            tried, early = tried + some, early + stopped
            for name, told in failures:
                wrong[name].append(told)
    for name, failed in wrong.items():
        said = f"; {early[name]:,} plans say that they stopped early or are not precise" if early[name] else ""
        yield Row(f"bounds of `{name}`", tried[name], f"all hold{said}" if not failed else "", failed)


def same(folder: Path) -> Iterator[Row]:
    """Same bytes under other conditions."""
    for name in sameness.COMMANDS:
        wrong = sameness.differences(name, folder)
        yield Row(
            f"`{name}` with other threads, processes, orders of sets", len(sameness.CONDITIONS), "same bytes", wrong
        )
    for what, ways in (
        ("`count` on threads and processes", sameness.ways_to_count(folder)),
        ("`count` in pieces of other sizes, without rewards", sameness.pieces_to_count(folder)),
    ):
        number, wrong = sameness.unlike(ways)
        yield Row(what, number, "same bytes", wrong)
    found = sameness.differences("learn", folder, sameness.BLAS)
    told = f"not promised: {len(found)} of 8 files differ in last digits" if found else "same bytes here, not promised"
    yield Row("`learn` with other threads for linear algebra", len(sameness.BLAS), told)


def heavy_load(folder: Path) -> Iterator[Row]:
    """Many calls, many processes, a cluster in use."""
    used = load.learn_often(1_000)
    growth = used.growth()
    told = f"{growth:+,.0f} bytes a call; {used.later() / 2**20:+.1f} MiB from call 250 to call 1,000"
    yield Row("`learn` in one process, 1,000 times", 1_000, told, [told] if growth > 5_000 else [])
    killing.prepare(folder)
    (folder / "out").mkdir()
    wrong = load.apply_at_once(folder, 64)
    yield Row("`apply` processes at once, on one policy, twice", 64, "the same bytes from each", wrong)
    wrong, slopes = load.soak(folder, 12)
    told = (
        f"same bytes each time; workers {', '.join(f'{slope / 2**20:+.2f}' for slope in slopes.values())} MiB a round"
    )
    grown = [f"a worker grew by {slope:,.0f} bytes a round" for slope in slopes.values() if slope > 5 << 20]
    yield Row("rounds of `count` and `reproduce` on one cluster", 12, told, wrong + grown)


CAMPAIGNS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "kills": kills,
    "resume": resumed,
    "faults": machine_faults,
    "hostile": hostile_files,
    "fuzz": fuzz,
    "numbers": numbers,
    "same": same,
    "load": heavy_load,
    **ATTACKS,
}


def run(name: str) -> None:
    """Run a campaign, tell each line as it comes, and keep what was found so far."""
    begun, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as place:
        for row in CAMPAIGNS[name](Path(place)):
            rows.append(row)
            print(f"{name}: {row.what}: {row.tried:,} tried, {row.found}; {len(row.failures)} failures", flush=True)
            for failure in row.failures[:3]:
                print(f"    {failure[:1000]}", flush=True)
            kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            kept[name] = {"seconds": round(time.monotonic() - begun), "rows": [asdict(row) for row in rows], "on": on()}
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps(kept, indent=1))
        shutil.rmtree(place, ignore_errors=True)
        Path(place).mkdir()


def on() -> dict[str, str]:
    """What it was run with."""
    return {
        "certeq": package.__version__,
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip(),
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
        "scale": os.environ.get(SCALE, "1"),
    }


def page() -> str:
    """The table as a page."""
    kept = json.loads(KEPT.read_text())
    lines = [HEAD.strip(), ""]
    tried = failed = 0
    for name in CAMPAIGNS:
        if name not in kept:
            continue
        about = (CAMPAIGNS[name].__doc__ or "").strip()
        lines += [f"## {about}", "", "| what | tried | found | failures |", "|---|---:|---|---:|"]
        for row in kept[name]["rows"]:
            tried, failed = tried + row["tried"], failed + len(row["failures"])
            lines.append(f"| {row['what']} | {row['tried']:,} | {row['found']} | {len(row['failures'])} |")
        used = kept[name]["on"]
        commit = f" ({used['commit']})" if used.get("commit") else ""
        where = f"certeq {used['certeq']}{commit}, Python {used['python']}, {used['system']} on {used['cores']} cores"
        where += f", at a scale of {used['scale']}" if used.get("scale", "1") != "1" else ""
        took = kept[name]["seconds"]
        lines += ["", f"`python -m trust {name}`, {f'{took:,} s, ' if took else ''}{where}.", ""]
        failures = Counter(failure[:300] for row in kept[name]["rows"] for failure in row["failures"])
        lines += [f"- failed, {several(often, 'time')}: {told}" for told, often in failures.most_common(10)]
        lines += [""] if failures else []
    lines.insert(2, f"**{tried:,} attempts, {failed} failures.**\n")
    return "\n".join(lines).rstrip() + "\n"


HEAD = """
# What was tried to break it

Each line says what was done to certeq, how often, and what was found. A failure would be a traceback that people see, a
process that hangs, a file that is lost or torn, a bound that does not hold, or bytes that differ. The promises are in
[security.md](security.md); the tests in `tests/trust` try the same things at a smaller scale each time. All of it is
made by `uv run --group test python -m trust`.

A table that names a commit is of that version; the others are older. These are the last runs. Earlier ones met
failures, which were mended before them: of 50,000 files five (names with blank lines, an infinite time, a policy that
advises what has no value), and in each of three runs of 374 stops one (Ctrl-C again while leaving; a library that turns
Ctrl-C into an error of its own; one that crashes where it is stopped while it is loaded). The last stops and files were
tried side by side, so not on an idle machine.
"""

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell takes from what it runs in the background
    chosen = sys.argv[1:] or list(CAMPAIGNS)
    for campaign in chosen:
        if len(chosen) == 1:
            run(campaign)
        else:  # each in a process of its own, so that none inherits another's limits
            subprocess.run([sys.executable, "-m", "trust", campaign], cwd=ROOT, check=True)
    if os.environ.get(SCALE, "1") != "1":  # a look at how it goes; the page tells of whole campaigns
        print(page())
        sys.exit()
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Written: {PAGE.relative_to(ROOT)}")
