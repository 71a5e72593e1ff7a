"""How the command line behaves towards whoever runs it: what Ctrl-C does, and what becomes of words nobody can take.

Only the standard library is used here, and little of it: this must be in place before anything else is loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

STOPPED = "Stopped. No partial results were written."
COMPILERS = ("numba", "llvmlite")
_leaving = threading.Lock()
_hushing = threading.Lock()
_voice = 2  # where the command line says what it has to say; 2 is the error stream, which libraries write to as well
_hushes = 0
_complete: list[str] = []  # where this work's results are, once they are all there


def say(text: str) -> None:
    """A line to whoever runs this, on the error stream."""
    print(text, file=sys.stderr, flush=True)


def complete(*places: object) -> None:
    """Keep in mind that all that this work had to write is written, in these places; whoever stops it now is told."""
    _complete[:] = [str(place) for place in places]


def farewell() -> str:
    """What is said of a Ctrl-C: what has become of the results."""
    return f"Stopped. The results in {' and '.join(_complete)} are complete." if _complete else STOPPED


def leave(code: int = 130) -> NoReturn:
    """End at once, as a kill would; everything on the disk is such that this does no harm."""
    if _leaving.acquire(timeout=1.0):  # two threads hear the same Ctrl-C, and one of them tells it
        with contextlib.suppress(OSError):
            show_cursor = "\x1b[?25h" if os.isatty(_voice) else ""  # a bar hides it
            os.write(_voice, f"{show_cursor}{farewell()}\n".encode())
    os._exit(code)


@contextlib.contextmanager
def interrupts(*, work: bool) -> Iterator[Callable[[], bool]]:
    """What Ctrl-C does here: the first one stops the work, which puts itself in order; the next one ends the process.

    Without ``work`` to put in order (while libraries load or compile, and while the process takes its leave) the first
    ends it: a library that is stopped half-way through that may crash.
    Also where the main thread is deep in compiled code, or waits for a cluster that does not answer, a second thread
    hears the next one. Somebody who has decided otherwise about Ctrl-C is left in peace. Gives a function that tells
    whether one came: libraries may turn what it raises into something else.
    """
    if threading.current_thread() is not threading.main_thread() or not ours(signal.getsignal(signal.SIGINT)):
        yield lambda: False
        return
    begun = came = 0 if work else 1
    if work:
        complete()

    def stop(_: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1 or _setting_up(frame):
            leave()
        if _voice != 2:  # in a process of ours, what is closed half-way or twice on the way out is nobody's concern
            sys.unraisablehook = threading.excepthook = _say_nothing
        raise KeyboardInterrupt

    stop.certeq = True  # type: ignore[attr-defined]
    before = signal.signal(signal.SIGINT, stop)
    with _overheard(came):
        try:
            yield lambda: came > begun
        finally:
            signal.signal(signal.SIGINT, before)


def _setting_up(frame: FrameType | None) -> bool:
    """Whether a library is being loaded or compiled there."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("importlib", "_frozen_importlib", *COMPILERS):
            return True
        frame = frame.f_back
    return False


def _say_nothing(*_: Any) -> None:
    pass


def ours(handler: Any) -> bool:
    """Whether what Ctrl-C does is up to us: nobody has decided otherwise."""
    return handler is signal.default_int_handler or hasattr(handler, "certeq")


@contextlib.contextmanager
def _overheard(came: int) -> Iterator[None]:
    """Let a thread count what comes, since Python tells its main thread only when that is done with what it does."""
    if sys.platform == "win32":
        yield
        return
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    before = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)

    def listen() -> None:
        heard = came
        with ear:
            while number := ear.recv(1):
                heard += number[0] == signal.SIGINT
                if heard > 1:
                    leave()

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        mouth.close()


class Tolerant:
    """A stream that goes on where its words have no place to go: a full disk, a closed pipe, letters it lacks."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        with contextlib.suppress(AttributeError, ValueError):
            inner.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, text: str) -> int:
        """Write, or lose the words."""
        with self._bearing():
            self.inner.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or lose the words."""
        with self._bearing():
            self.inner.flush()

    def writelines(self, lines: Any) -> None:
        """Write lines, or lose them."""
        for line in lines:
            self.write(line)

    @contextlib.contextmanager
    def _bearing(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # what is still in the buffer must not fail again at the end
            os.dup2(nowhere, self.inner.fileno())
            os.close(nowhere)


@contextlib.contextmanager
def streams() -> Iterator[None]:
    """Let no trouble with standard output end a run whose files are written, nor change what its exit code means."""
    global _voice
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):  # a real one, not what a test or a notebook puts in its place
            setattr(sys, name, Tolerant(stream if name == "stdout" else _apart(stream)))
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, Tolerant):
                stream.flush()
        (sys.stdout, sys.stderr), voice, _voice = before, _voice, 2
        if voice != 2:
            os.close(voice)


def _apart(stream: Any) -> Any:
    """The error stream once more, so that it can be taken from libraries without being taken from us."""
    global _voice
    with contextlib.suppress(OSError):  # a stream that is no file
        if stream.fileno() == 2:
            _voice = os.dup(2)
    if _voice == 2:
        return stream
    return os.fdopen(_voice, "w", buffering=1, encoding=stream.encoding, errors=stream.errors, closefd=False)


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Keep what a library says to the error stream to ourselves, as parsers in Rust do before they raise a panic.

    This holds for the command line alone: in somebody else's process, the streams are not ours to take.
    """
    if _voice == 2:
        yield
        return
    _hush(1)
    try:
        yield
    finally:
        _hush(-1)


def _hush(more: int) -> None:
    global _hushes
    with _hushing:  # several threads may read at once: the first takes the stream, the last gives it back
        _hushes += more
        if _hushes == (more > 0):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere if more > 0 else _voice, 2)
            os.close(nowhere)


def open_streams() -> None:
    """See that the three standard streams are open, or the next file that is opened would get what is said to them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free


_own: list[bool] = []


def own(said: bool = False) -> bool:
    """Whether this process is the command line's own, once that was said: nobody else's threads are in it."""
    if said:
        _own.append(True)
    return bool(_own)
