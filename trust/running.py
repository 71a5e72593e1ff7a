"""Run certeq in a process of its own, and tell how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAUNCH = Path(__file__).with_name("launch.py")
PATIENCE = 300.0  # seconds after which a process counts as hung


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    words: tuple[str, ...]
    code: int  # negative: the signal that ended it
    out: str
    err: str
    seconds: float
    hung: bool

    @property
    def crashed(self) -> bool:
        """Whether it ended in a way that nobody should see."""
        return self.hung or "Traceback (most recent call last)" in self.err or self.code in (-6, -7, -11)

    @property
    def told(self) -> bool:
        """Whether it failed with an error in one paragraph."""
        last = self.err.strip().rpartition("Error: ")[2]
        return not self.crashed and bool(last) and "\n\n" not in last

    def __str__(self) -> str:
        how = "hung" if self.hung else f"ended with {self.code}"
        return f"certeq {' '.join(self.words)[:200]} {how} after {self.seconds:.1f} s: {self.err[-500:].strip()}"


def start(
    words: Any, cwd: Path, environment: Mapping[str, str] | None = None, **conditions: Any
) -> subprocess.Popen[str]:
    """Start a command; what it says goes to files, which cannot fill up as pipes do."""
    how = [str(LAUNCH), json.dumps(conditions)] if conditions else ["-m", "certeq"]
    command = [sys.executable, *how, *map(str, words)]
    variables = os.environ | {"PYTHONSAFEPATH": "1"} | dict(environment or {})
    streams = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(2)]  # noqa: SIM115 - `end` closes them
    process = subprocess.Popen(command, cwd=cwd, stdout=streams[0], stderr=streams[1], env=variables, text=True)
    process.streams, process.words, process.begun = streams, words, time.monotonic()  # type: ignore[attr-defined]
    return process


def end(process: Any, patience: float = PATIENCE) -> Ended:
    """Wait for a command's end, and make one where it does not come."""
    hung = threading.Event()

    def stop() -> None:
        hung.set()
        os.kill(process.pid, signal.SIGKILL)

    timer = threading.Timer(patience, stop)
    timer.start()
    _, status = os.waitpid(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    said = []
    for stream in process.streams:
        stream.seek(0)
        said.append(stream.read(1_000_000))
        stream.close()
    seconds = time.monotonic() - process.begun
    words = tuple(map(str, process.words))
    return Ended(words, process.returncode, said[0], said[1], seconds, hung.is_set())


def certeq(*words: Any, cwd: Path, patience: float = PATIENCE, **conditions: Any) -> Ended:
    """Run a command to its end."""
    return end(start(words, cwd, **conditions), patience)


def interrupted(words: Any, cwd: Path, after: float, sign: int = signal.SIGKILL, **conditions: Any) -> Ended:
    """Run a command and send it a signal after so many seconds."""
    process = start(words, cwd, **conditions)
    time.sleep(after)
    os.kill(process.pid, sign)  # nobody has waited for it yet, so the number is still its own
    return end(process)


def visible(folder: Path, but: Callable[[str], bool] = lambda name: False) -> dict[str, bytes]:
    """All files of a folder that are not hidden, with what is in them."""
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    shown = {name: path for name, path in found.items() if not name.startswith(".") and "/." not in name}
    return {name: path.read_bytes() for name, path in shown.items() if not but(name)}


def hidden(folder: Path) -> list[str]:
    """Names of hidden things in a folder."""
    return sorted(path.name for path in folder.rglob(".*"))
