"""Policy iteration for many small MDPs on a graphics processor: how ``small.cu`` is compiled and called.

A kernel is compiled for one number of states and actions and one shape of target, on first use: some seconds, and from
CuPy's cache on disk afterwards.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from certeq.planners.gpu.arguments import DeviceOperands, Found
from certeq.planners.gpu.device import cupy

WARP = 32  # lanes; a state is a lane
USUAL = 48 * 1024  # bytes of shared memory that a block has without asking

SOURCE = Path(__file__).with_name("small.cu")


class Launcher(NamedTuple):
    """A compiled kernel and what a block of it, one warp, needs."""

    kernel: Any
    together: int  # MDPs
    bytes: int  # of shared memory

    def __call__(self, work: DeviceOperands, *arguments: Any) -> None:
        """Run the kernel on all MDPs."""
        operands = [part for operand in work for part in operand]
        blocks = -(-work.size // self.together)
        self.kernel((blocks,), (WARP,), (np.int64(work.size), *operands, *arguments), shared_mem=self.bytes)


def room(S: int, A: int) -> int:
    """Bytes of shared memory for one MDP: ``ROOM`` in small.cu."""
    return 8 * (A * S * (S | 1) + 4 * S + 2)


def shared_memory() -> int:
    """Bytes of shared memory that a block may ask for on this device."""
    return _shared_memory(_device())


def plan(work: DeviceOperands, max_iterations: int) -> Found | None:
    """Plan for all MDPs, or None if any is not as it should be."""
    cp = cupy()
    n, S = work.size, work.shape[0]
    policy, values = cp.empty((n, S), dtype=cp.int64), cp.empty((n, S))
    iterations, residual, faults = cp.empty(n, dtype=cp.int64), cp.empty(n), cp.zeros(1, dtype=cp.int64)
    launch = _compiled("plan", *work.shape, *work.pull, _device())
    launch(work, np.int64(max_iterations), policy, values, iterations, residual, faults)
    return None if faults[0] else Found(policy, values, iterations, residual)


def value(work: DeviceOperands, policy: Any) -> Any | None:
    """Values ``(size, S)`` of policies ``(size, S)``, or None if anything is not as it should be."""
    cp = cupy()
    values, faults = cp.empty(policy.shape), cp.zeros(1, dtype=cp.int64)
    _compiled("value", *work.shape, *work.pull, _device())(work, policy, values, faults)
    return None if faults[0] else values


def options(S: int, A: int, GS: int, GA: int) -> tuple[str, ...]:
    """What small.cu is told about the shape of the MDPs."""
    return (f"-DS={S}", f"-DA={A}", f"-DGS={GS}", f"-DGA={GA}")


@cache
def _compiled(name: str, S: int, A: int, GS: int, GA: int, device: int) -> Launcher:
    """Compile for one shape, with as many MDPs in a warp as there is room for."""
    groups = min(WARP // S, _shared_memory(device) // room(S, A))
    settings = ("--std=c++17", *options(S, A, GS, GA), f"-DGROUPS={groups}")
    kernel, size = cupy().RawKernel(SOURCE.read_text(), name, options=settings), groups * room(S, A)
    if size > USUAL:
        kernel.max_dynamic_shared_size_bytes = size
    return Launcher(kernel, groups, size)


def _device() -> int:
    return int(cupy().cuda.runtime.getDevice())


@cache
def _shared_memory(device: int) -> int:
    return int(cupy().cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"])
