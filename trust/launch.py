"""Start certeq under conditions: little memory, small files, or with death waiting at the n-th change on disk.

``python trust/launch.py '{"memory": 4294967296}' learn rows.csv`` runs ``certeq learn rows.csv`` so.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate", "os.chmod"}


def limit(memory: int | None = None, file_size: int | None = None) -> None:
    """Let this process have so much address space, and write files no larger than that."""
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, file_size)):
        if most is not None:
            resource.setrlimit(what, (most, most))


def die_at(change: int, folder: str) -> None:
    """Kill this process, as a power cut would, just before it changes the folder for the n-th time (from 1)."""
    left = change

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in CHANGES) and any(_lies_in(folder, argument) for argument in arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def _lies_in(folder: str, argument: Any) -> bool:
    try:
        return os.path.realpath(os.fsdecode(argument)).startswith(folder)
    except (TypeError, ValueError):
        return False


if __name__ == "__main__":
    conditions = json.loads(sys.argv[1])
    limit(conditions.get("memory"), conditions.get("file_size"))
    sys.argv = ["certeq", *sys.argv[2:]]
    from certeq.cli import main

    if "die_at" in conditions:
        die_at(conditions["die_at"], conditions["folder"])
    main()
