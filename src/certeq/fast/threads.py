"""Splitting a range over Python threads: compiled kernels that release the GIL need nothing heavier."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any


def default_threads() -> int:
    """How many threads to use: the environment variable ``CERTEQ_THREADS``, or else the number of processors."""
    said = os.environ.get("CERTEQ_THREADS", "")
    return int(said) if said.isdigit() and int(said) > 0 else os.cpu_count() or 1


def run(kernel: Callable[..., Any], count: int, *args: Any, grain: int = 1, threads: int | None = None) -> list[Any]:
    """Call ``kernel(start, stop, *args)`` on contiguous blocks that cover ``range(count)``, one block per thread.

    ``grain`` is the smallest block worth a thread. A single block runs in the calling thread, so small work pays
    nothing. Returns what each block returned. The kernel must write only what belongs to its own block; results then
    cannot depend on the number of threads. (Numba's own threads would do the same at three times the compile time.)
    """
    blocks = max(1, min(threads or default_threads(), count // max(grain, 1)))
    if blocks == 1:
        return [kernel(0, count, *args)]
    edges = [count * block // blocks for block in range(blocks + 1)]
    with ThreadPoolExecutor(blocks) as pool:
        jobs = [pool.submit(kernel, *edge, *args) for edge in pairwise(edges)]
        return [job.result() for job in jobs]
