"""The kernels of small.cu compiled for the host, where a loop over the states stands for the lanes of a warp."""

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from certeq.planners.gpu.arguments import Found
from certeq.planners.gpu.launching import SOURCE, options

COMPILER = shutil.which("g++") or shutil.which("clang++")


@cache
def compiled(*shape):
    """The library for one ``(S, A, GS, GA)``."""
    with TemporaryDirectory() as folder:
        place = str(Path(folder) / "small.so")
        said = ("-std=c++17", "-O1", "-shared", "-fPIC", "-x", "c++", *options(*shape), str(SOURCE), "-o", place)
        subprocess.run([COMPILER, *said], check=True, capture_output=True)
        return ctypes.CDLL(place)


def call(name, work, *rest):
    numbers = (work.size, *(part for operand in work for part in operand), *rest)
    arguments = [ctypes.c_longlong(x) if isinstance(x, int) else ctypes.c_void_p(x.ctypes.data) for x in numbers]
    getattr(compiled(*work.shape, *work.pull), name)(*arguments)


def plan(work, max_iterations):
    """`certeq.planners.gpu.launching.plan` on the host."""
    n, S = work.size, work.shape[0]
    found = Found(np.full((n, S), -7), np.full((n, S), np.nan), np.full(n, -7), np.full(n, np.nan))
    faults = np.zeros(1, dtype=np.int64)
    call("plan", work, max_iterations, *found, faults)
    return None if faults[0] else found


def value(work, policy):
    """`certeq.planners.gpu.launching.value` on the host."""
    values, faults = np.full(policy.shape, np.nan), np.zeros(1, dtype=np.int64)
    call("value", work, policy, values, faults)
    return None if faults[0] else values
