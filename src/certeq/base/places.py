"""Where work runs: here, on local processes, or on an existing Dask cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import certeq
from certeq.base.errors import InputError

THREADS = "CERTEQ_THREADS"
Advance = Callable[[int, int], None]  # who is told how much is done, and of how much
PATIENCE = 10.0  # seconds for a scheduler to answer


@contextmanager
def executor(workers: int = 1, scheduler: str | None = None) -> Iterator[Executor | None]:
    """Open an executor: None (here) for one worker, local processes for several, Dask for a scheduler's address."""
    check_one(workers, scheduler)
    if scheduler is not None:
        with _cluster(scheduler) as client:
            yield client.get_executor(pure=False)
    elif workers <= 1:
        yield None
    else:
        context = get_context("spawn")
        with _one_thread_each(), ProcessPoolExecutor(workers, mp_context=context, initializer=_follow) as pool:
            yield pool


@contextmanager
def pool(given: Executor | None, workers: int = 1, scheduler: str | None = None) -> Iterator[Executor | None]:
    """An executor that somebody has opened already, and who will close it; or one of one's own."""
    if given is not None:
        yield given
        return
    with executor(workers, scheduler) as own:
        yield own


@dataclass(frozen=True)
class Workforce:
    """Somebody who works for us, and can go on working with what came out before without bringing it here."""

    submit: Callable[..., Any]  # (function, *arguments) -> future; an argument may be one of our futures
    size: int  # how many work at the same time


@contextmanager
def workforce(threads: int, workers: int = 1, scheduler: str | None = None) -> Iterator[Workforce]:
    """Open a workforce: threads of this process, local processes if there are several workers, or a Dask cluster.

    Work is begun in the order in which it is submitted. Whoever leaves with an exception leaves what was not begun.
    """
    check_one(workers, scheduler)
    if scheduler is not None:
        with _cluster(scheduler) as client:
            yield Workforce(partial(client.submit, pure=False), max(1, sum(client.nthreads().values())))
        return
    with ThreadPoolExecutor(1 if workers > 1 else threads) as here, executor(workers) as there:

        def submit(function: Callable[..., Any], *given: Any) -> Future[Any]:
            if there is not None and not any(isinstance(one, Future) for one in given):
                return there.submit(function, *given)
            return here.submit(_resolved, function, given)  # what came back from another process stays here

        try:
            yield Workforce(submit, workers if workers > 1 else threads)
        except BaseException:
            for pool in filter(None, (there, here)):
                pool.shutdown(wait=False, cancel_futures=True)
            raise


def check_one(workers: int, scheduler: str | None) -> None:
    """Refuse to work in two places."""
    if scheduler is not None and workers > 1:
        raise InputError("workers= (--workers) is for local processes and scheduler= (--scheduler) for a cluster.")


def _resolved(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Call a function with the results of futures; these were submitted before, so somebody is at them already."""
    return function(*(one.result() if isinstance(one, Future) else one for one in given))


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


def _check_certificates(dask: Any) -> None:
    """Complain about certificates that are not there; Dask itself would fail with a riddle."""
    try:
        there = dask.Security().get_connection_args("client").get("ssl_context") is not None
    except (OSError, ValueError) as error:
        raise InputError(f"The certificates for tls:// cannot be used: {error}.") from None
    if not there:
        raise InputError(
            "tls:// needs certificates. Name their files in the environment: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY."
        )


@contextmanager
def _cluster(scheduler: str) -> Iterator[Any]:
    """Connect to an existing scheduler: a Dask client. Nothing is started, and no port is opened for others."""
    try:
        import distributed
    except ImportError:
        raise InputError("--scheduler needs Dask: install certeq[dask].") from None
    dask: Any = distributed  # its functions are not typed
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we tell ourselves who is gone, in words
    _knock(scheduler)
    if scheduler.startswith("tls:"):
        _check_certificates(dask)
    try:
        client = dask.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise InputError(f"What listens at {scheduler} does not answer as a Dask scheduler: {error}.") from None
    with client:
        try:
            client.run(_use_one_thread)
        except ImportError as error:
            raise InputError(f"The workers of {scheduler} need certeq {certeq.__version__} as well: {error}.") from None
        try:
            yield client
        except dask.KilledWorker:
            raise InputError(
                f"Several workers of {scheduler} died over the same task, probably because they had too little memory. "
                "Their logs tell more."
            ) from None
