"""What goes in and what comes out, on the device.

Broadcasting is as in `certeq.planners.compiled.operands`: every operand stays as it is, and an index says which of its
entries belongs to which MDP.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from certeq.planners.compiled.operands import TRAILING


class Operand(NamedTuple):
    """One operand of a batch of MDPs."""

    entries: Any  # (n, ...)
    of: Any  # (size,): which entry belongs to each MDP


class DeviceOperands(NamedTuple):
    """All that a batch of MDPs is made of."""

    rows: Operand  # (n, S, A, S)
    weight: Operand  # (n, S, A), or (n, 0, 0) where nothing is mixed in
    target: Operand  # (n, 1 or S, 1 or A, S), or (n, 0, 0, S)
    reward: Operand  # (n, S, A)
    discount: Operand  # (n,)
    allowed: Operand  # (n, S, A)

    @property
    def size(self) -> int:
        """How many MDPs there are."""
        return len(self.rows.of)

    @property
    def shape(self) -> tuple[int, int]:
        """S and A."""
        S, A = self.reward.entries.shape[1:]
        return S, A

    @property
    def pull(self) -> tuple[int, int]:
        """Rows of the target by state and action; zeros where nothing is mixed in."""
        GS, GA = self.target.entries.shape[1:3]
        return GS, GA


class Found(NamedTuple):
    """What planning found for each MDP."""

    policy: Any  # (..., S)
    values: Any  # (..., S)
    iterations: Any  # (...): one more than the limit where that was reached
    residual: Any  # (...)


def line_up(xp: Any, *given: Any) -> tuple[tuple[int, ...], DeviceOperands]:
    """The batch axes, and the operands; their trailing axes are in full, their leading ones broadcast.

    ``xp`` is CuPy; or NumPy, for a kernel that was compiled for the host.
    """
    lead = [array.shape[: array.ndim - axes] for array, axes in zip(given, TRAILING, strict=True)]
    batch = np.broadcast_shapes(*lead)
    lined_up = []
    for array, own in zip(given, lead, strict=True):
        index = xp.broadcast_to(xp.arange(prod(own), dtype=xp.int64).reshape(own), batch)
        entries = xp.ascontiguousarray(array).reshape(prod(own), *array.shape[len(own) :])
        lined_up.append(Operand(entries, xp.ascontiguousarray(index).reshape(prod(batch))))
    return batch, DeviceOperands(*lined_up)
