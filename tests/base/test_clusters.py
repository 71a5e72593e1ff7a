"""Whoever listens at a scheduler's address: a Dask scheduler of this version, or an error in words, and soon."""

import os
import socket
import struct
import threading
import time

import pytest

from certeq import InputError
from certeq.base import clusters
from clusters import cluster

pytest.importorskip("distributed")


@pytest.fixture
def listening(monkeypatch):
    """Somebody who says something to whoever connects, and then no more."""
    monkeypatch.setattr(clusters, "PATIENCE", 1.0)
    sockets = []

    def listen(greeting, hang_up=False):
        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)

        def serve():
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                sockets.append(line)
                line.sendall(greeting)
                if hang_up:
                    line.close()

        threading.Thread(target=serve, daemon=True).start()
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"

    yield listen
    for one in sockets:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("greeting", "hang_up", "words"),
    [
        (b"", False, "timed out"),
        (b"", True, "not a Dask scheduler"),
        (b"x", False, "timed out"),
        (struct.pack("<Q", 6 << 30), False, "not a Dask scheduler"),
        (struct.pack("<Q", 0), False, "not a Dask scheduler"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "not a Dask scheduler"),
        (struct.pack("<Q", 300) + os.urandom(300), False, "does not answer as a Dask scheduler"),
    ],
)
def test_whoever_is_no_scheduler_is_told_in_words_and_soon(listening, greeting, hang_up, words):
    begun = time.monotonic()
    with pytest.raises(InputError, match=words), clusters.cluster(listening(greeting, hang_up)):
        pass
    assert time.monotonic() - begun < 60  # and not for ever


@pytest.mark.slow
def test_workers_are_seen_to_be_there_and_of_the_same_version_once_for_all(tmp_path, monkeypatch):
    with cluster(tmp_path, workers=0) as (address, _):
        monkeypatch.setattr(clusters, "WAIT", 2.0)
        refused(address, "has no workers. Start some with 'dask worker")
    monkeypatch.setattr(clusters, "WAIT", 120.0)
    with cluster(tmp_path) as (address, _):
        with clusters.cluster(address) as client:
            assert client.submit(abs, -3).result() == 3
        monkeypatch.setattr("certeq.__version__", "99")
        refused(address, "need certeq 99 .* as well; the one at .* has certeq")


@pytest.mark.slow
def test_workers_that_cannot_import_certeq_are_told_in_words(tmp_path):
    (tmp_path / "certeq").mkdir()
    (tmp_path / "certeq" / "__init__.py").write_text("raise SystemError('I am another one')")
    with cluster(tmp_path, tmp_path) as (address, _):
        refused(address, "need certeq .* as well: ")


def refused(address, words):
    """Whoever asks for this cluster is refused."""
    with pytest.raises(InputError, match=words), clusters.cluster(address):
        pass
