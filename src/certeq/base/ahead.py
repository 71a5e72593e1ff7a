"""Kernels compiled side by side: Numba compiles one at a time in a process, so another process takes some of them.

The other process rehearses what will need them, keeps what was compiled where all are kept, and ends; who needs one of
these kernels earlier waits for it. Nothing depends on that process: what it has not kept when it ends, for whatever
reason, is compiled where it is needed. It ends with the process that began it, however that one ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from certeq.base.threads import default_threads

_begun: dict[Any, subprocess.Popen[bytes]] = {}  # who compiles it, by the function that a kernel is made of


def kept(kernel: Any) -> bool:
    """Whether a kernel was compiled before, or is about to be, or has no place where it could be kept."""
    file = getattr(kernel._cache, "_cache_file", None)
    try:
        return file is None or expected(kernel.py_func) or bool(file._load_index())
    except (OSError, ValueError):  # damaged
        return False


def begin(module: str, words: Iterable[str], kernels: Iterable[Any]) -> None:
    """Let another process run a module of ours, with these words, that calls these kernels; if that can help."""
    if default_threads() == 1 or not sys.executable or getattr(sys, "frozen", False):
        return
    silent = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", module, *words]  # -P: nothing is loaded from the folder it is started in
    try:
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent)
    except OSError:
        return
    _begun.update(dict.fromkeys((kernel.py_func for kernel in kernels), other))


def expected(function: Any) -> bool:
    """Whether another process is about to compile this function."""
    return function in _begun and _begun[function].poll() is None


def busy() -> bool:
    """Whether another process is still compiling."""
    return any(other.poll() is None for other in _begun.values())


def end_with_the_other() -> None:
    """End this process as soon as the one that began it has ended: then nobody holds the other end of our input."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(0)  # kernels are written under another name and then renamed, so none can be left half-written

    threading.Thread(target=watch, daemon=True).start()
