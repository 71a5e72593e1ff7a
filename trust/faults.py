"""Faults of the machine: a full disk, a folder that takes no files, Ctrl-C, a worker that dies or has no memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from certeq.base.writing import READY
from trust.killing import FIGURE, JOBS, OTHER_FIGURE, Tally, tables
from trust.running import Ended, certeq, end, hidden, interrupted, start, visible

COMMANDS: dict[str, tuple[str, ...]] = {
    **{job.name: job.new for job in JOBS},
    "reproduce": FIGURE,
}
OLD = dict.fromkeys(("policy.json", "summary.json", "actions.csv", "rows.csv", "counts.npz", "report.html"), b"old")


def fill(out: Path) -> dict[str, bytes]:
    """Older results, which must survive."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for name, content in OLD.items():
        (out / name).write_bytes(content)
    return visible(out)


def judge(ended: Ended, out: Path, before: dict[str, bytes], *says: str) -> str:
    """What is wrong with how a command failed; empty where it said so in words and left everything as it was."""
    if ended.crashed or ended.code not in (1, 2):
        return f"did not fail in words: {ended}"
    if not any(words in ended.err for words in says):
        return f"did not say why: {ended}"
    if ended.words[0] != "reproduce" and visible(out) != before:
        return f"changed {sorted(set(visible(out).items()) ^ set(before.items()))}: {ended}"
    left = [name for name in hidden(out) if name == READY or name.startswith(".certeq-part-")]
    return f"left {left}: {ended}" if left else ""


def small_files(folder: Path, verb: str) -> str:
    """No file may be larger than 2,000 bytes: what a quota does."""
    before = fill(folder / "out")
    ended = certeq(*COMMANDS[verb], cwd=folder, file_size=2000)
    return judge(ended, folder / "out", before, "File too large")


def full_disk(folder: Path, verb: str) -> str | None:
    """The results lie on a disk of 32 KiB, which is full; None where no such disk can be mounted."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with mounted(out, "size=32k") as there:
        if not there:
            return None
        fill_within(out)
        with contextlib.suppress(OSError), (out / "filler").open("wb", buffering=0) as filler:
            while filler.write(b"x" * 1024):
                pass
        before = visible(out)
        return judge(certeq(*COMMANDS[verb], cwd=folder), out, before, "No space left on device")


def closed_folder(folder: Path, verb: str) -> str | None:
    """Nothing can be written into the folder; None where that cannot be arranged."""
    out = folder / "out"
    before = fill(out)
    if os.geteuid() != 0:
        out.chmod(0o555)
        try:
            return judge(certeq(*COMMANDS[verb], cwd=folder), out, before, "Permission denied")
        finally:
            out.chmod(0o755)
    with mounted(out, "size=4m") as there:  # for root no folder is closed, but a disk can be
        if not there or subprocess.run(["mount", "-o", "remount,ro", str(out)], capture_output=True).returncode:
            return None
        return judge(certeq(*COMMANDS[verb], cwd=folder), out, visible(out), "Read-only file system")


def fill_within(out: Path) -> dict[str, bytes]:
    """Older results in a folder that must stay itself."""
    for name, content in OLD.items():
        (out / name).write_bytes(content)
    return visible(out)


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[bool]:
    """A disk in memory, where this machine lets us have one."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        there = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        there = False
    try:
        yield there
    finally:
        if there:
            subprocess.run(["umount", str(place)], capture_output=True, check=True)


def stop(folder: Path, verb: str, rng: np.random.Generator, seconds: float, loaded: float = 0.15) -> tuple[str, str]:
    """Ctrl-C at a random moment, once Python itself has started: what was found, and what is wrong with it."""
    out = folder / "out"
    before = fill(out) if verb != "reproduce" else {}
    if verb == "reproduce":
        shutil.rmtree(out, ignore_errors=True)
    ended = interrupted(COMMANDS[verb], folder, after=float(rng.uniform(loaded, seconds)), sign=signal.SIGINT)
    if ended.code == 0:
        return "ended before", ""
    if ended.crashed or ended.code not in (130, -signal.SIGINT):  # which a shell both calls 130
        return "bad", f"did not stop as it should: {ended}"
    now = visible(out) if out.exists() else {}
    changed = {name for name in before if now.get(name) != before[name]}
    if verb != "reproduce" and changed and len(now) == len(before):
        return "stopped, whole", ""  # it was through with writing, and busy telling what it had found
    return "stopped" if "Stopped." in ended.err else "stopped before or after all work", ""


def kill_a_worker(folder: Path, rng: np.random.Generator, seconds: float) -> str:
    """A local process of a reproduction dies; it is told, and the same command goes on to the same tables."""
    out, reference = folder / "out", folder / "reference"
    shutil.rmtree(out, ignore_errors=True)
    if not (reference / "equal_counts").exists():
        whole = certeq(*OTHER_FIGURE[:-1], "reference", cwd=folder)
        if whole.code:
            return f"even an undisturbed run fails: {whole}"
    process = start((*OTHER_FIGURE, "--workers", "2"), folder)
    died = False
    deadline = time.monotonic() + 10 * seconds
    while time.monotonic() < deadline:
        workers = working(process.pid, b"spawn_main")
        if workers:
            time.sleep(float(rng.uniform(0, seconds)))
            with contextlib.suppress(ProcessLookupError):
                os.kill(workers[int(rng.integers(len(workers)))], signal.SIGKILL)
                died = True
            break
        time.sleep(0.02)
    ended = end(process)
    if ended.code == 1 and (ended.crashed or "The same command tries again what is missing" not in ended.err):
        return f"did not say what happened: {ended}"
    if ended.code not in (0, 1) or (died and ended.crashed):
        return f"did not take it well: {ended}"
    again = certeq(*OTHER_FIGURE, "--workers", "2", cwd=folder)
    right = {name: data for name, data in tables(reference).items() if name.startswith("equal_counts")}
    same = tables(out) == right
    return "" if again.code == 0 and same else f"the same command did not put it in order: {again}"


def little_memory(folder: Path, memory: int = 900 << 20) -> str:
    """Processes without the memory they need: whatever ends them, nothing is torn and the next run goes on."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    ended = certeq(*OTHER_FIGURE, "--workers", "2", cwd=folder, memory=memory)
    if ended.hung or "Traceback" in ended.err:  # libraries in Rust and C end a process that gets no memory at all
        return f"did not take it well: {ended}"
    again = certeq(*OTHER_FIGURE, cwd=folder)
    return "" if again.code == 0 else f"the same command did not put it in order: {again}"


def working(process: int, what: bytes) -> list[int]:
    """Processes that a process has started and whose command says this."""
    found = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            if what in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def tally_stops(folder: Path, verb: str, rng: np.random.Generator, times: int, seconds: float) -> Tally:
    """Ctrl-C many times."""
    tally = Tally()
    for _ in range(times):
        found, wrong = stop(folder, verb, rng, seconds)
        tally.found[found] += 1
        tally.failures += [wrong] if wrong else []
    return tally


def timed(folder: Path, verb: str) -> float:
    """How long a command takes when it is let be."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    ended: Any = certeq(*COMMANDS[verb], cwd=folder)
    if ended.code:
        raise RuntimeError(f"nothing can be tried, since even an undisturbed run fails: {ended}")
    return float(ended.seconds)
