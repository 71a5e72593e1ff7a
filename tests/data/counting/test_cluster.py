"""The same counts, and the same plan, on a real cluster: two workers on loopback, one of them killed half-way."""

import signal
import socket

import numpy as np
import pytest
from counted import ROLES, rows

from certeq import InputError, learn
from certeq.base import places
from certeq.data.counting import Tallied, count
from clusters import two_workers, wait_for


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Address of a scheduler, and the processes of its two workers."""
    with two_workers(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def workers_of(address):
    """How many workers a scheduler knows."""
    with places.executor(scheduler=address) as executor:
        return len(executor._client.scheduler_info(n_workers=-1)["workers"])


@pytest.mark.slow
def test_a_cluster_counts_bit_for_bit_what_threads_count(cluster, parquet, certeq_main, tmp_path):
    address, _ = cluster
    wait_for(lambda: workers_of(address) == 2, "both workers")
    folder = parquet(rows(6000), "folder", files=7, group=100)
    here = count(folder, **ROLES, piece_rows=200)
    there = count(folder, **ROLES, piece_rows=200, scheduler=address)
    assert there.to_bytes() == here.to_bytes()
    columns = "--state ward,stage --next-state next_ward,next_stage --action drug --reward reward --done done"
    more = ("--truncated", "cut", "--scheduler", address, "-o", tmp_path / "counts.npz")
    certeq_main("count", folder, *columns.split(), *more)
    assert Tallied.load(tmp_path / "counts.npz").to_bytes() == count(folder, **ROLES).to_bytes()


@pytest.mark.slow
def test_a_bad_row_is_named_as_it_is_here(cluster, parquet):
    address, _ = cluster
    frame = rows(500).with_columns(reward=np.where(np.arange(500) == 321, np.nan, 1.0))
    folder = parquet(frame, "folder", files=2)
    with pytest.raises(InputError, match=r"part-001\.parquet: Row 72 .*the reward 'reward' is missing"):
        count(folder, **ROLES, piece_rows=10, scheduler=address)


@pytest.mark.slow
def test_a_worker_is_killed_half_way_and_the_counts_and_the_plan_are_the_same(cluster, parquet, tmp_path):
    address, (first, second) = cluster
    wait_for(lambda: workers_of(address) == 2, "both workers")
    folder = parquet(rows(20_000), "folder", files=5, group=500)
    told = []

    def kill_one(done, total):
        told.append((done, total))
        if len(told) == 6:
            first.send_signal(signal.SIGKILL)
            first.wait()

    there = count(folder, **ROLES, piece_rows=50, scheduler=address, progress=kill_one)
    wait_for(lambda: workers_of(address) == 1, "the death to be noticed")
    assert first.returncode == -signal.SIGKILL
    assert second.poll() is None
    assert len(told) > 7, "it was killed before the end"
    assert told[-1] == (20_000, 20_000)
    here = count(folder, **ROLES, piece_rows=50)
    assert there.to_bytes() == here.to_bytes()
    plans = [learn(tallied, discount=0.9).plan for tallied in (here, there)]
    assert np.array_equal(plans[0].policy, plans[1].policy)
    assert np.array_equal(plans[0].values, plans[1].values)


def test_where_nobody_listens_counting_says_so_before_it_begins(parquet):
    path = parquet(rows(100))
    with socket.socket() as free:  # bound, so that nobody else takes it, but not listening
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(InputError, match=f"No Dask scheduler answers at {address}"):
            count(path, **ROLES, scheduler=address)
