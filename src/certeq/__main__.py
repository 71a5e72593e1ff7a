"""``python -m certeq``, or ``certeq``, runs the command line."""

import atexit
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
from typing import Any

from certeq.base.manners import interrupts, open_streams, ours, own, streams

STOPPED = 130  # what a shell says of a command ended by Ctrl-C


def main() -> None:
    """Run the command line; whoever stops it while it is still loading, or leaving, meets no traceback either."""
    open_streams()
    code = STOPPED  # until there is another: whoever stops it before has stopped it

    def leave(*_: Any) -> None:
        os._exit(code)

    @atexit.register  # as the first, so it comes last: libraries that were stopped half-way may crash if taken apart
    def leave_early() -> None:
        if code == STOPPED:
            leave()

    if threading.current_thread() is threading.main_thread() and ours(signal.getsignal(signal.SIGINT)):
        leave.certeq = True  # type: ignore[attr-defined]
        signal.signal(signal.SIGINT, leave)  # what is in force before the work begins, and once it is done
    with interrupts(work=False), streams():
        from certeq.cli import main as run

        try:
            run()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except Exception:
            code = 1
            raise
    sys.exit(code)


def program() -> None:
    """Run the command line as a process of its own: done is done, and the libraries are not taken apart first.

    That would take a third of a second. Whatever was to be done at exit is done before, since this comes last.
    """
    code: Any = None
    own(said=True)
    _keep_memory()
    gc.set_threshold(250_000, 20, 50)  # most of what libraries make while they load is there to stay

    @atexit.register
    def leave() -> None:
        if isinstance(code, int):
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)

    try:
        main()
    except SystemExit as leaving:
        code = leaving.code
        raise


def _keep_memory() -> None:
    """Let the C library keep what is freed for the next array: to ask for it anew takes a tenth of a short command."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # another C library
            library = ctypes.CDLL(None)
            library.mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: larger arrays still go back at once
            library.mallopt(-1, 128 << 20)  # M_TRIM_THRESHOLD


if __name__ == "__main__":
    program()
