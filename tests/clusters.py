"""A real Dask cluster on this machine: a scheduler and two workers, each a process of its own."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120  # seconds; a machine that is busy with other tests is slow to start processes


def wait_for(condition, what):
    """Wait until a condition holds; give up after a while and say what was waited for."""
    give_up = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < give_up, f"waited {PATIENCE} s for {what}"
        time.sleep(0.05)
    return found


def two_workers(folder: Path, *import_from: Path):
    """A cluster of two workers."""
    return cluster(folder, *import_from)


@contextmanager
def cluster(folder: Path, *import_from: Path, workers: int = 2):
    """Address of a scheduler, and the processes of its workers; they can import modules of the given folders."""
    contact = folder / "scheduler.json"
    contact.unlink(missing_ok=True)
    where = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
    more = ("--port", "0", "--scheduler-file", str(contact))
    started = [_start(folder, "scheduler", import_from, "distributed.cli.dask_scheduler", *where, *more)]
    try:
        wait_for(lambda: contact.exists() and contact.read_text().rstrip().endswith("}"), "the scheduler")
        address = json.loads(contact.read_text())["address"]
        worker = ("distributed.cli.dask_worker", address, *where, "--no-nanny", "--nthreads", "1")
        started += [
            _start(folder, name, import_from, *worker, "--name", name, "--local-directory", str(folder / name))
            for name in ("first", "second")[:workers]
        ]
        yield address, started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _start(folder, name, import_from, *command):
    """Start a process of the cluster, with a log to look at if it fails."""
    paths = os.pathsep.join([*map(str, import_from), os.environ.get("PYTHONPATH", "")])
    with (folder / f"{name}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            env=os.environ | {"PYTHONPATH": paths},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
