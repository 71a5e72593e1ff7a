"""Splitting a range over Python threads: compiled kernels that release the GIL need nothing heavier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

_sharers = 1  # processes that share the processors


def default_threads() -> int:
    """How many threads to use: the environment variable ``CERTEQ_THREADS``, or else the number of processors.

    Of these, a process takes its share where several work together.
    """
    said = os.environ.get("CERTEQ_THREADS", "")
    every = int(said) if said.isascii() and said.isdigit() and int(said[:9]) > 0 else os.cpu_count() or 1
    return max(1, every // _sharers)


@contextmanager
def shared(sharers: int) -> Iterator[None]:
    """Let so many processes share the processors meanwhile."""
    global _sharers
    before, _sharers = _sharers, sharers
    try:
        yield
    finally:
        _sharers = before


def run(kernel: Callable[..., Any], count: int, *args: Any, grain: int = 1, threads: int | None = None) -> list[Any]:
    """Call ``kernel(start, stop, *args)`` on contiguous blocks that cover ``range(count)``, one block per thread.

    ``grain`` is the smallest block worth a thread. The first block runs in the calling thread, so small work pays
    nothing. Returns what each block returned. The kernel must write only what belongs to its own block; results then
    cannot depend on the number of threads. (Numba's own threads would do the same at three times the compile time.)
    """
    blocks = max(1, min(threads or default_threads(), count // max(grain, 1)))
    if blocks == 1:
        return [kernel(0, count, *args)]
    edges = [count * block // blocks for block in range(blocks + 1)]
    with ThreadPoolExecutor(blocks - 1) as pool:
        jobs = [pool.submit(kernel, *edge, *args) for edge in pairwise(edges[1:])]
        return [kernel(*edges[:2], *args), *(job.result() for job in jobs)]


class Crew:
    """Threads that stay for many short passes over the same blocks; use as a context.

    Whoever asks for a pass works too. It is cut into a few pieces per thread, and each takes the next piece when it is
    done with one, so that a thread that is held up by other programs, or comes late, holds up the rest less.
    """

    PIECES = 4  # per thread

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or default_threads()

    def __enter__(self) -> Crew:
        self.pool = ThreadPoolExecutor(max(self.threads - 1, 1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)

    def run(self, kernel: Callable[..., Any], count: int, *args: Any, grain: int = 1) -> None:
        """Call ``kernel(start, stop, *args)`` on pieces that cover ``range(count)``, as `run` does.

        Whatever happens, nothing of the pass is still running when this returns or raises.
        """
        pieces = min(self.PIECES * self.threads, count // max(grain, 1))
        if self.threads == 1 or pieces <= 1:
            kernel(0, count, *args)
            return
        left = [(count * piece // pieces, count * (piece + 1) // pieces) for piece in reversed(range(pieces))]

        def work() -> None:
            while True:
                try:
                    edges = left.pop()
                except IndexError:  # nothing is left
                    return
                kernel(*edges, *args)

        helpers = [self.pool.submit(work) for _ in range(min(self.threads, pieces) - 1)]
        try:
            work()
            for helper in helpers:
                if not helper.cancel():  # who has not begun need not
                    helper.result()
        except BaseException:
            left.clear()
            wait([helper for helper in helpers if not helper.cancel()])
            raise


@contextmanager
def plain_algebra() -> Iterator[None]:
    """Let NumPy's linear algebra use one thread meanwhile, as the command line does.

    Systems here are small: several threads wait for one another, and on a busy machine that takes most of the time.
    Where NumPy was loaded first, the environment comes too late, and OpenBLAS is told itself; another library is not.
    """
    global _plain, _usual
    blas = _openblas()
    if blas is None:
        yield
        return
    ask, tell = blas
    with _asking:
        _plain += 1
        if _plain == 1:
            _usual = ask()
            tell(1)
    try:
        yield
    finally:
        with _asking:
            _plain -= 1
            if _plain == 0:
                tell(_usual)


_asking, _plain, _usual = Lock(), 0, 1


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How to ask NumPy's own OpenBLAS for the number of its threads, and to set it; None where it has none."""
    import ctypes

    import numpy as np

    home = Path(np.__file__).parent
    for path in (*home.parent.glob("numpy.libs/*openblas*"), *home.glob(".dylibs/*openblas*")):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(path))  # it is loaded already, so this is the same one
            for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
                if hasattr(library, name.format("set")):
                    return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
