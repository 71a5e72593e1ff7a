"""Broadcasting for the planning kernels: every operand stays as it is, and an index says which part belongs where.

A batch is seen as K chains of L steps. Along a chain the transitions and the target stay the same and only weights,
rewards or discounts change, as they do along a path of regularization strengths: so a kernel loads the transitions once
per chain and starts each step from the plan of the step before.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers

TRAILING = {"rows": 3, "weight": 2, "target": 3, "reward": 2, "discount": 0, "allowed": 2}  # axes that are no batch


@dataclass(frozen=True)
class Operands:
    """Flat operands and, for each, which entry belongs to chain k (and step l)."""

    batch: tuple[int, ...]  # the broadcast batch axes; their product is K * L
    rows: Floats | Integers  # (n, S, A, S); or counts, of which the kernel makes rows
    rows_of: Integers  # (K,)
    weight: Floats  # (n, S, A)
    weight_of: Integers  # (K, L)
    target: Floats  # (n, 1 or S, 1 or A, S)
    target_of: Integers  # (K,)
    reward: Floats  # (n, S, A)
    reward_of: Integers  # (K, L)
    discount: Floats  # (n,)
    discount_of: Integers  # (K, L)
    allowed: Booleans  # (n, S, A)
    allowed_of: Integers  # (K,)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All operands with their indices, in the order in which planning kernels take them."""
        return tuple(getattr(self, field.name) for field in fields(self)[1:])

    @property
    def chains(self) -> int:
        """K."""
        return len(self.rows_of)

    @property
    def steps(self) -> int:
        """L."""
        return int(self.weight_of.shape[1])


def operands(
    rows: Floats | Integers, weight: Floats, target: Floats, reward: Floats, discount: Floats, allowed: Booleans
) -> Operands:
    """Line up operands whose trailing axes are fixed and whose leading axes broadcast."""
    given = dict(zip(TRAILING, (rows, weight, target, reward, discount, allowed), strict=True))
    lead = {name: array.shape[: array.ndim - TRAILING[name]] for name, array in given.items()}
    batch = np.broadcast_shapes(*lead.values())
    fixed = ("rows", "target", "allowed")  # what may not change along a chain
    steps = batch[-1] if batch and all(not lead[name] or lead[name][-1] == 1 for name in fixed) else 1
    chains = prod(batch) // steps if steps else 0
    parts: dict[str, np.ndarray] = {}
    for name, array in given.items():
        own = prod(lead[name])
        whole = array if array.flags.carray else np.require(array, requirements=("C", "W"))  # what kernels take
        parts[name] = whole.reshape(own, *array.shape[array.ndim - TRAILING[name] :])
        if own == 1:
            index = np.zeros((chains, steps), dtype=np.int64)
        else:
            index = np.broadcast_to(np.arange(own).reshape(lead[name]), batch).reshape(chains, steps)
        parts[f"{name}_of"] = np.array(index[:, 0]) if name in fixed else np.require(index, requirements=("C", "W"))
    return Operands(batch=batch, **parts)
