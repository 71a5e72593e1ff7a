"""Where cells run: here, on local processes, or on an existing Dask cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import certeq
from certeq.errors import InputError

THREADS = "CERTEQ_THREADS"
PATIENCE = 10.0  # seconds for a scheduler to answer


@contextmanager
def executor(workers: int = 1, scheduler: str | None = None) -> Iterator[Executor | None]:
    """Open an executor: None (here) for one worker, local processes for several, Dask for a scheduler's address."""
    if scheduler is not None:
        with _dask(scheduler) as cluster:
            yield cluster
    elif workers <= 1:
        yield None
    else:
        context = get_context("spawn")
        with _one_thread_each(), ProcessPoolExecutor(workers, mp_context=context, initializer=_follow) as pool:
            yield pool


def _follow() -> None:
    """In a local process: end when whoever started it is gone, even if that was killed and could not say so."""
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let the processes that are started meanwhile use one thread each: they share the cores already."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


def _use_one_thread() -> None:
    """On a worker of a cluster: the same, unless whoever started it said otherwise."""
    os.environ.setdefault(THREADS, "1")


def _knock(scheduler: str) -> None:
    """Complain at once about an address that is none, or where nobody listens; Dask itself would go on trying."""
    try:
        address = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
        host, port = address.hostname, address.port
    except ValueError:
        host = port = None
    if host is None or port is None or address.scheme not in ("tcp", "tls"):
        raise InputError(f"--scheduler takes an address such as tcp://host:8786 or tls://host:8786; got {scheduler!r}.")
    try:
        with socket.create_connection((host, port), timeout=PATIENCE) as line:
            if address.scheme == "tcp":
                line.recv(1)  # a scheduler speaks first; for others that listen, Dask would wait for ever
    except OSError as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler}: {error.strerror or error}. Start one with 'dask scheduler'."
        ) from None


@contextmanager
def _dask(scheduler: str) -> Iterator[Executor]:
    try:
        import distributed
    except ImportError:
        raise InputError("--scheduler needs Dask: install certeq[dask].") from None
    dask: Any = distributed  # its functions are not typed
    _knock(scheduler)
    try:
        client = dask.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise InputError(f"What listens at {scheduler} does not answer as a Dask scheduler: {error}.") from None
    with client:
        try:
            client.run(_use_one_thread)
        except ImportError as error:
            raise InputError(f"The workers of {scheduler} need certeq {certeq.__version__} as well: {error}.") from None
        yield client.get_executor(pure=False)
