"""Where work runs: here, on local processes, or on an existing Dask cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Thread
from typing import Any

from certeq.base.clusters import cluster
from certeq.base.errors import InputError

THREADS = "CERTEQ_THREADS"
Advance = Callable[[int, int], None]  # who is told how much is done, and of how much


@contextmanager
def executor(workers: int = 1, scheduler: str | None = None) -> Iterator[Executor | None]:
    """Open an executor: None (here) for one worker, local processes for several, Dask for a scheduler's address."""
    check_one(workers, scheduler)
    if scheduler is not None:
        with cluster(scheduler) as client:
            yield client.get_executor(pure=False)
    elif workers <= 1:
        yield None
    else:
        with _one_thread_each(), ProcessPoolExecutor(workers, mp_context=Deaf(), initializer=_follow) as pool:
            try:
                yield pool
            except BaseException:
                _end(pool)
                raise


class _DeafProcess(SpawnProcess):
    """A process that does not hear Ctrl-C, from its first moment: who started it hears it, and ends it."""

    def start(self) -> None:
        """Start while the signal is blocked, which a new process inherits."""
        if not hasattr(signal, "pthread_sigmask"):
            super().start()
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Deaf(SpawnContext):
    """How local processes are started: anew, and deaf to Ctrl-C, which a terminal sends to a whole group."""

    Process = _DeafProcess


def _end(pool: ProcessPoolExecutor) -> None:
    """Let nobody go on with work that nobody waits for; whatever they write, they write whole or not at all."""
    pool.shutdown(wait=False, cancel_futures=True)
    for process in list((pool._processes or {}).values()):
        process.terminate()


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
        with cluster(scheduler) as client:
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
            here.shutdown(wait=False, cancel_futures=True)
            if there is not None:
                there.shutdown(wait=False, cancel_futures=True)
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
