"""The same sweep on a Dask cluster: a scheduler and two workers, each a process of its own, one of them killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import plain_cells
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from certeq import InputError
from certeq.cli import app
from certeq.experiments import places, shards

HERE = Path(__file__).parent
PATIENCE = 120  # seconds; a machine that is busy with other tests is slow to start processes


def start(tmp_path, name, *command):
    """Start a process of the cluster, with a log to look at if it fails."""
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    with (tmp_path / f"{name}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            env=os.environ | {"PYTHONPATH": paths},
            cwd=tmp_path,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def wait_for(condition, what):
    give_up = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < give_up, f"waited {PATIENCE} s for {what}"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler, and the processes of its two workers."""
    tmp_path = tmp_path_factory.mktemp("cluster")
    contact = tmp_path / "scheduler.json"
    where = ("--host", "127.0.0.1", "--no-dashboard")
    started = [
        start(
            tmp_path,
            "scheduler",
            *("distributed.cli.dask_scheduler", *where, "--port", "0", "--scheduler-file", str(contact)),
        )
    ]
    try:
        wait_for(lambda: contact.exists() and contact.read_text().rstrip().endswith("}"), "the scheduler")
        address = json.loads(contact.read_text())["address"]
        worker = ("distributed.cli.dask_worker", address, *where, "--no-nanny", "--nthreads", "1")
        started += [
            start(tmp_path, name, *worker, "--name", name, "--local-directory", str(tmp_path / name))
            for name in ("first", "second")
        ]
        yield address, started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def test_figures_on_a_cluster_have_the_tables_of_a_serial_run(cluster, tmp_path):
    """Figures that compile nothing, which would take each worker longer than all the rest."""
    address, _ = cluster
    for place, more in (("there", ("--scheduler", address)), ("here", ())):
        options = ("diagrams", "heat_map", *more, "--out", str(tmp_path / place))
        assert CliRunner().invoke(app, ["reproduce", *options]).exit_code == 0
    for name in ("diagrams", "heat_map"):
        there, here = (pl.read_parquet(tmp_path / place / name / "table.parquet") for place in ("there", "here"))
        assert_frame_equal(there, here)


def test_a_worker_is_killed_in_mid_run_and_the_table_is_that_of_a_serial_run(cluster, tmp_path):
    address, (first, second) = cluster
    cells = plain_cells.cells(20, seconds=0.1)
    by, told = tmp_path / "by", []

    def kill_one(done, total):
        told.append(done)
        if len(told) == 6:
            first.send_signal(signal.SIGKILL)
            first.wait()

    with places.executor(scheduler=address) as executor:
        wait_for(lambda: len(executor._client.scheduler_info(n_workers=-1)["workers"]) == 2, "both workers")
        table = shards.run(plain_cells.work, cells, by, seed=3, executor=executor, progress=kill_one)
        wait_for(lambda: len(executor._client.scheduler_info(n_workers=-1)["workers"]) == 1, "the death to be noticed")
    assert first.returncode == -signal.SIGKILL
    assert second.poll() is None
    assert (
        told[5] < told[-1] == sum(map(shards.size_of, cells))
    )  # it was killed before the end, and the end was reached
    serial = shards.run(plain_cells.work, plain_cells.cells(20, seconds=0.1), tmp_path / "serial", seed=3)
    assert_frame_equal(table, serial)
    for shard in (tmp_path / "serial").glob("*.parquet"):
        assert (by / shard.name).read_bytes() == shard.read_bytes()


def test_where_nobody_listens_the_error_comes_at_once_and_says_where():
    with socket.socket() as free:  # bound, so that nobody else takes it, but not listening
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(InputError, match=f"No Dask scheduler answers at {address}"), places.executor(1, address):
            pass


def test_somebody_else_who_listens_is_not_taken_for_a_scheduler(monkeypatch):
    monkeypatch.setattr(places, "PATIENCE", 0.2)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(InputError, match="No Dask scheduler answers"), places.executor(1, address):
            pass


@pytest.mark.parametrize("address", ["somewhere", "tcp://host", "http://host:80", "tcp://host:port", "tcp://:8786"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(InputError, match="takes an address such as tcp://host:8786"), places.executor(1, address):
        pass
