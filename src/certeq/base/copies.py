"""A copy of this process that works beside it: two threads that run Python wait for one another, two processes do not.

A copy knows all that this process knows and has loaded, so nothing is sent to it; what it found comes back through a
pipe. Only the command line makes copies, and only of a process that is its own: threads do not come along,
and what somebody else's threads hold at that moment would be held for ever. Those of the libraries here do no harm,
since a copy only computes: it reads no tables with Polars if that was loaded before, and writes on no terminal.

Nothing depends on a copy: where none can be made, or it is lost, its work is done here. It ends with this process,
however that one ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certeq.base import ahead, manners
from certeq.base.threads import default_threads, shared


class LostError(Exception):
    """A copy has ended without an answer."""


class Copy:
    """A copy at work; whoever waits for it may be another thread than the one that made it."""

    def __init__(self, process: int, said: int) -> None:
        self._process, self._said = process, said

    def result(self, told: Callable[[Any], None]) -> Any:
        """What came of its work; what it says meanwhile is told. Raises `LostError`."""
        try:
            with open(self._said, "rb", closefd=False) as said:
                while True:
                    done, what = pickle.load(said)
                    if done:
                        return what
                    told(what)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise LostError from None

    def end(self) -> None:
        """Let it work no longer."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._process, 0)


class Queue:
    """Names in a queue: this process, its threads and its copies each take the next one."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._next, end = os.pipe()
        os.write(end, bytes(range(len(names))))
        os.close(end)

    def __iter__(self) -> Iterator[str]:
        while number := os.read(self._next, 1):
            yield self._names[number[0]]

    def close(self) -> None:
        """Nobody takes any of them from now on."""
        os.close(self._next)


@contextmanager
def copy(work: Callable[[Callable[[Any], None]], Any]) -> Iterator[Copy | None]:
    """Let a copy of this process do some work, with half of the threads; None where there can be none.

    The work is given a function by which it says what it is doing.
    """
    if not manners.own() or sys.platform != "linux" or default_threads() == 1 or ahead.busy():
        yield None
        return
    said, alive = os.pipe(), os.pipe()  # the copy writes to one; by the other it knows that this process is there
    process = _fork()
    if process == 0:
        os.close(alive[1])
        _work(work, said[1], alive[0])
    os.close(said[1])
    os.close(alive[0])
    made = None if process is None else Copy(process, said[0])
    try:
        with shared(1 if made is None else 2):
            yield made
    finally:
        if made is not None:
            made.end()
        os.close(said[0])
        os.close(alive[1])


def _fork() -> int | None:
    """0 in the copy, and here its number; None where there can be no more processes."""
    with contextlib.suppress(OSError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; see above
        return os.fork()
    return None


def _work(work: Callable[[Callable[[Any], None]], Any], end: int, alive: int) -> None:
    """In the copy: work, say what came of it, and end, whatever happens."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who stops the other stops this one
        threading.Thread(target=_follow, args=(alive,), daemon=True).start()
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end
        logging.disable()
        with open(end, "wb") as out, shared(2):

            def say(what: Any, done: bool = False) -> None:
                pickle.dump((done, what), out)
                out.flush()

            say(work(say), True)
    finally:
        os._exit(0)


def _follow(alive: int) -> None:
    """End when the other process has: then nobody holds the other end any more."""
    os.read(alive, 1)
    os._exit(0)
