"""Hardened containers: a read-only root, no home, no network, no rights, little memory, and still a result or words.

What a container takes away is taken away by the same means: namespaces for mounts, processes and the network, mounts
that are read-only, capabilities that are dropped, limits on memory and on open files. Only root may do that.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import certeq

HOMES = {"none": None, "nowhere": "/nonexistent", "read-only": "/", "a file": "/etc/passwd", "on tmpfs": "/tmp"}
STATES = {"none": None, "kept": "/mnt/state", "nowhere": "/nonexistent/state", "read-only": "/etc"}
TEMPORARY = ("tmpfs", "tmpfs of 1 MB", "read-only")
MEMORY = (None, None, 6 << 30, 3 << 30, 1 << 30, 400 << 20)  # bytes of address space
ENOUGH = 3 << 30  # of address space: what libraries reserve and never touch counts as well
FILES = ("policy.json", "policy.csv", "summary.json", "report.html")
ROWS = 240


@dataclass(frozen=True)
class Setting:
    """What is taken away."""

    home: str = "nowhere"
    state: str = "kept"
    temporary: str = "tmpfs"
    memory: int | None = None
    files: int = 256  # open ones

    def script(self, folder: Path, words: list[str]) -> str:
        """A shell script that takes everything away and then runs a command in /mnt, which is the folder."""
        size = ",size=1m" if self.temporary == "tmpfs of 1 MB" else ""
        variables = {"HOME": HOMES[self.home], "XDG_STATE_HOME": STATES[self.state], "PATH": os.environ["PATH"]}
        given = [f"{name}={value}" for name, value in variables.items() if value is not None]
        return "\n".join(
            (
                "set -e",
                f"mount --bind {shlex.quote(str(folder))} /mnt",
                "for place in $(cut -d' ' -f5 /proc/self/mountinfo); do case $place in /mnt|/proc*|/sys*|/dev*) ;; "
                "*) mount -o remount,bind,ro $place 2>/dev/null || true ;; esac; done",
                *_hidden(f"mount -t tmpfs -o nosuid{size} tmpfs /tmp"),
                "mount -o remount,ro /tmp" if self.temporary == "read-only" else ":",
                "cd /mnt",
                f"ulimit -n {self.files}",
                f"ulimit -v {self.memory >> 10}" if self.memory else ":",
                "exec setpriv --bounding-set=-all --no-new-privs env -i "
                + shlex.join([*given, sys.executable, "-P", "-m", "certeq", *words]),
            )
        )


def _hidden(mount: str) -> Iterator[str]:
    """Put something else in the place of /tmp, but leave there what the program itself is made of."""
    own = {Path(place).resolve() for place in (sys.prefix, sys.base_prefix, Path(certeq.__file__).parents[2])}
    kept = [shlex.quote(str(place)) for place in sorted(own) if Path("/tmp") in place.parents]
    yield "mount -t tmpfs tmpfs /srv"
    yield from (f"mkdir /srv/{i} && mount --bind {place} /srv/{i}" for i, place in enumerate(kept))
    yield mount
    for i, place in enumerate(kept):
        yield f"mkdir -p {place} && mount --bind /srv/{i} {place} && mount -o remount,bind,ro {place}"


def able() -> bool:
    """Whether such things can be arranged here."""
    if os.geteuid() or not shutil.which("unshare") or not shutil.which("setpriv"):
        return False
    tried = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True)
    return tried.returncode == 0


def prepare(folder: Path) -> None:
    """A table to learn from, in a folder that will be all there is to write to."""
    rng = np.random.default_rng(0)
    lines = [f"{i // 8},{'ABC'[s]},{'xy'[a]},{r:.2f}" for i, (s, a, r) in enumerate(_drawn(rng))]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.csv").write_text("episode,state,action,reward\n" + "\n".join(lines) + "\n")


def _drawn(rng: np.random.Generator) -> list[tuple[int, int, float]]:
    return [(int(rng.integers(3)), int(rng.integers(2)), float(rng.random())) for _ in range(ROWS)]


def attempt(folder: Path, setting: Setting, words: list[str] | None = None) -> tuple[str, str]:
    """Learn in such a container: what came of it, and what is wrong ('' if nothing)."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    said = words or ["learn", "rows.csv", "--ends", "never", "--draws", "20", "--out", "out"]
    alone = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--propagation", "private"]
    done = subprocess.run([*alone, "sh", "-c", setting.script(folder, said)], capture_output=True, text=True)
    left = {path.name for path in (folder / "out").glob("*")}
    text = done.stdout + done.stderr
    if "Traceback" in text or "Exception ignored" in text:
        return "failed", f"{setting}: {text[-600:]}"
    if done.returncode == 0:
        return "a result", "" if left == set(FILES) else f"{setting}: left {left}"
    told = done.returncode in (1, 2) and "Error: " in text and not left
    small = setting.memory is not None and setting.memory < ENOUGH
    if small and (told or (not 0 <= done.returncode <= 128 and not left)):
        return "too little memory, told" if told else "too little memory, ended by a library", ""
    return "refused", f"{setting}: {done.returncode}, left {left}: {text[-600:]}"


def drawn(rng: np.random.Generator) -> Setting:
    """Take something away at random; most have a place for kernels, as compiling takes a minute."""
    state = "kept" if rng.random() < 0.6 else str(rng.choice(list(STATES)))
    memory = MEMORY[int(rng.integers(len(MEMORY)))]
    return Setting(
        str(rng.choice(list(HOMES))), state, str(rng.choice(TEMPORARY)), memory, int(rng.choice([64, 256, 4096]))
    )
