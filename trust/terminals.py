"""Ctrl-C as people press it: typed into a terminal, which sends it to every process of the group.

A command runs as the leader of a session on a pseudo-terminal. At some moment the interrupt character is typed, once or
several times. It must end soon with 130 (or be through before), say so in words, leave no process behind, and leave old
or new files, whole.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trust.killing import JOBS, OTHER_FIGURE, Tally
from trust.running import visible

PATIENCE = 60.0  # seconds from the last Ctrl-C to the end
NOISE = ("Traceback (most recent call last)", "Exception ignored", "Fatal Python error", "KeyboardInterrupt")
COMMANDS: dict[str, tuple[str, ...]] = {
    **{job.name: job.new for job in JOBS},
    "count --workers 2": ("count", "rows.parquet", "--workers", "2", "--out", "out/counts.npz", "--force"),
    "compare --workers 2": (*next(job.new for job in JOBS if job.name == "compare"), "--workers", "2"),
    "reproduce --workers 2": (*OTHER_FIGURE, "--workers", "2"),
}


@dataclass(frozen=True)
class Shown:
    """How a command ended that ran in a terminal, and all that stood there."""

    code: int
    text: str
    seconds: float  # from the first Ctrl-C to the end
    hung: bool
    left: tuple[int, ...]  # processes of its session that were still there a moment later

    @property
    def wrong(self) -> str:
        """What nobody should see; empty where nothing is wrong."""
        if self.hung:
            return f"did not end within {PATIENCE:.0f} s"
        if any(noise in self.text for noise in NOISE):
            return "said what nobody should see"
        if self.left:
            return f"left {len(self.left)} processes behind"
        return "" if self.code in (0, 130, -signal.SIGINT) else f"ended with {self.code}"


def typed(
    words: tuple[str, ...], folder: Path, moments: list[float], environment: Mapping[str, str] | None = None
) -> Shown:
    """Run a command in a terminal and press Ctrl-C after so many seconds, once for each moment."""
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.environ.update({"PYTHONSAFEPATH": "1", "TERM": "xterm", **(environment or {})})
        os.execv(sys.executable, [sys.executable, "-m", "certeq", *words])
    _ready(process)
    begun, said, waiting, pressed = time.monotonic(), b"", sorted(moments), 0.0
    status, hung = None, False
    while status is None:
        ready, _, _ = select.select([terminal], [], [], 0.02)
        if ready:
            with contextlib.suppress(OSError):
                said += os.read(terminal, 65536)
        now = time.monotonic() - begun
        if waiting and now >= waiting[0]:
            with contextlib.suppress(OSError):
                os.write(terminal, b"\x03")
            pressed = pressed or now
            waiting.pop(0)
        if pressed and not waiting and now - pressed > PATIENCE:
            hung = True
            os.kill(process, signal.SIGKILL)
        ended, found = os.waitpid(process, os.WNOHANG)
        status = found if ended else None
    seconds = time.monotonic() - begun - pressed if pressed else 0.0
    with contextlib.suppress(OSError):
        while select.select([terminal], [], [], 0.2)[0] and (more := os.read(terminal, 65536)):
            said += more
    left = _session(process)
    os.close(terminal)
    for one in left:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    return Shown(code, said.decode(errors="replace"), seconds, hung, tuple(left))


def _ready(process: int, patience: float = 60.0) -> None:
    """Wait until certeq itself hears Ctrl-C, which a socket tells; what comes before is Python's own beginning."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if any(str(file.readlink()).startswith("socket:") for file in Path(f"/proc/{process}/fd").iterdir()):
                return
        time.sleep(0.005)


def _session(leader: int, patience: float = 5.0) -> list[int]:
    """Processes of a session that outlive its leader, after a moment in which they may end."""
    until = time.monotonic() + patience
    while True:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError):
                state, *rest = stat.read_text().rpartition(")")[2].split()
                if int(rest[2]) == leader and state != "Z":
                    found.append(int(stat.parent.name))
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def press(folder: Path, name: str, rng: np.random.Generator, seconds: float) -> tuple[str, str]:
    """Ctrl-C, once or up to three times, at random moments; what came of it, and what is wrong."""
    out = folder / "out"
    kept = folder / f"old-{name.split()[0]}"
    shutil.rmtree(out, ignore_errors=True)
    if kept.exists():
        shutil.copytree(kept, out)
    before = visible(out) if out.exists() else {}
    first = float(rng.uniform(0, 1.05 * seconds))
    moments = [first + i * float(rng.uniform(0.0, 0.5)) for i in range(int(rng.choice([1, 1, 2, 3])))]
    shown = typed(COMMANDS[name], folder, moments)
    wrong = shown.wrong
    if not wrong and shown.code != 0 and kept.exists():
        now = visible(out)
        if any(now.get(file) != content for file, content in before.items()) and set(now) < set(before):
            wrong = f"lost {sorted(set(before) - set(now))}"
    what = "ended before" if shown.code == 0 else "stopped"
    return what, f"{name}, {moments}: {wrong}: {shown.text[-1500:]}" if wrong else ""


def prepare(folder: Path) -> dict[str, float]:
    """Older results to lose, and how long each command takes when it is let be."""
    from trust import killing
    from trust.running import certeq

    killing.prepare(folder)
    took = {}
    for job in JOBS:
        shutil.rmtree(folder / "out", ignore_errors=True)
        certeq(*job.old, cwd=folder)
        shutil.copytree(folder / "out", folder / f"old-{job.name}")
    for name, words in COMMANDS.items():
        ended = certeq(*words, cwd=folder)
        if ended.code:
            raise RuntimeError(f"nothing can be tried, since even an undisturbed run fails: {ended}")
        took[name] = ended.seconds
    return took


def campaign(folder: Path, rng: np.random.Generator, times: int) -> dict[str, Tally]:
    """Ctrl-C so many times in each command."""
    took, tallies = prepare(folder), {}
    for name in COMMANDS:
        tally = tallies[name] = Tally()
        for _ in range(times):
            what, wrong = press(folder, name, rng, took[name])
            tally.found[what] += 1
            tally.failures += [wrong] if wrong else []
    return tallies
