"""The same sweep on a Dask cluster: a scheduler and two workers, each a process of its own, one of them killed."""

import signal
import socket
from pathlib import Path

import dask
import plain_cells
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from certeq import InputError
from certeq.base import places
from certeq.cli import app
from certeq.experiments import shards
from clusters import two_workers, wait_for

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler, and the processes of its two workers."""
    with two_workers(tmp_path_factory.mktemp("cluster"), HERE) as found:
        yield found


@pytest.mark.slow
def test_figures_on_a_cluster_have_the_tables_of_a_serial_run(cluster, tmp_path):
    """Figures that compile nothing, which would take each worker longer than all the rest."""
    address, _ = cluster
    for place, more in (("there", ("--scheduler", address)), ("here", ())):
        options = ("diagrams", "heat_map", *more, "--out", str(tmp_path / place))
        assert CliRunner().invoke(app, ["reproduce", *options]).exit_code == 0
    for name in ("diagrams", "heat_map"):
        there, here = (pl.read_parquet(tmp_path / place / name / "table.parquet") for place in ("there", "here"))
        assert_frame_equal(there, here)


@pytest.mark.slow
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
    monkeypatch.setattr("certeq.base.clusters.PATIENCE", 0.2)
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


def test_tls_without_certificates_is_refused_with_what_to_set(tmp_path):
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"tls://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(InputError, match=r"needs certificates.*TLS__CLIENT__CERT"), places.executor(1, address):
            pass
        nowhere = {key: str(tmp_path / "none.pem") for key in ("ca-file", "client.cert", "client.key")}
        with (
            dask.config.set({f"distributed.comm.tls.{key}": value for key, value in nowhere.items()}),
            pytest.raises(InputError, match="certificates for tls:// cannot be used"),
            places.executor(1, address),
        ):
            pass
