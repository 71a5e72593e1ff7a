"""Splitting a range over Python threads: compiled kernels that release the GIL need nothing heavier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

SMALLEST = 32  # so many of the smallest pieces would be a thread's share
MORE = 16  # who asks has one part in so many more than a share
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


class Helpers:
    """Threads that stay and help whoever has something to share; to start one for each call would take longer."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.threads: list[Thread] = []
        self.starting = Lock()

    def call(self, help: Callable[[], None], needed: int) -> None:
        """Have somebody help, of as many as are needed; where none can be started, those who ask work alone."""
        if len(self.threads) < needed:
            with self.starting, suppress(RuntimeError):
                while len(self.threads) < needed:
                    thread = Thread(target=self._listen, name=f"certeq_{len(self.threads)}", daemon=True)
                    thread.start()
                    self.threads.append(thread)
        self.calls.put(help)

    def _listen(self) -> None:
        while True:
            self.calls.get()()


helpers = cache(Helpers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # threads do not come along


def run(kernel: Callable[..., Any], count: int, *args: Any, grain: int = 1, threads: int | None = None) -> list[Any]:
    """Call ``kernel(start, stop, *args)`` on contiguous pieces that cover ``range(count)``; return what each returned.

    Whoever asks works too. Each thread has a share of the range, which so stays in its cache from call to call, in
    pieces that become smaller. Who is done with it goes on with what others have left of theirs, so that all are done
    at about the same time, though one comes late or is held up by other programs. ``grain`` is the smallest piece that
    is worth a call; small work is one piece for the calling thread, and pays nothing. The kernel must write only what
    belongs to its own piece; results then cannot depend on the number of threads. Whatever happens, nothing is still
    running when this returns or raises. (Numba's own threads would take three times as long to compile.)
    """
    several = min(threads or default_threads(), count // grain)
    if several <= 1:
        return [kernel(0, count, *args)]
    left = [list(reversed(share)) for share in _shares(count, grain, several)]
    found: dict[int, Any] = {}
    wrong: list[BaseException] = []
    begun, done = list[int](), list[int]()
    ended: SimpleQueue[None] = SimpleQueue()

    def work(number: int) -> None:
        try:
            for share in (*left[number:], *left[:number]):
                while (piece := _next(share)) is not None:
                    found[piece[0]] = kernel(*piece, *args)
        except BaseException as error:
            wrong.append(error)
            for share in left:
                share.clear()

    def help_out(number: int) -> None:  # interrupts are for the main thread, never here
        begun.append(number)
        work(number)
        done.append(number)
        ended.put(None)

    try:
        for number in range(1, several):
            helpers().call(partial(help_out, number), several - 1)
        work(0)
    except BaseException as error:  # an interrupt between pieces, to be heard when nobody works any more
        wrong.append(error)
        for share in left:
            share.clear()
    while len(done) < len(begun):  # who begins only now finds nothing left, and nobody waits for it
        try:
            ended.get()  # an interrupt may lose what it got, so that it is not counted
        except BaseException as error:
            wrong.append(error)
    if wrong:
        raise wrong[-1]
    return [found[start] for start in sorted(found)]


def _next(share: list[tuple[int, int]]) -> tuple[int, int] | None:
    try:
        return share.pop()
    except IndexError:
        return None


@lru_cache
def _shares(count: int, grain: int, several: int) -> list[list[tuple[int, int]]]:
    """The share of each thread: three quarters of it, of the rest, and so on, as long as that is not too little.

    Whoever asks has a little more, so that the others, who begin later, are done first: nobody is woken at the end.
    """
    grains, shares = -(-count // grain), list[list[tuple[int, int]]]()
    more = grains // (MORE * several)
    edges = [0, *(-(-grains * number // several) + more for number in range(1, several)), grains]
    for first, last in pairwise(edges):
        start, end, share = grain * first, min(grain * last, count), list[tuple[int, int]]()
        least = (end - start) // SMALLEST
        while start < end:
            piece = max(3 * (end - start) // 4, least, 1)
            stop = min(start + -(-piece // grain) * grain, end)
            share.append((start, stop))
            start = stop
        shares.append(share)
    return shares


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
