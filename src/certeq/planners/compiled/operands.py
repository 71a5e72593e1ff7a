"""Broadcasting for the planning kernels: every operand stays as it is, and an index says which part belongs where.

A batch is seen as K chains of L steps. Along a chain the transitions and the target stay the same and only weights,
rewards or discounts change, as they do along a path of regularization strengths: so a kernel loads the transitions once
per chain and starts each step from the plan of the step before.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers

TRAILING = (3, 2, 3, 2, 0, 2)  # how many axes of rows, weight, target, reward, discount and allowed are no batch
FIXED = (True, False, True, False, False, True)  # which of them may not change along a chain


class Operands(NamedTuple):
    """Flat operands and, for each, which entry belongs to chain k (and step l).

    What is the same for all chains has an index with one line, and what is the same for all steps one with one column.
    """

    batch: tuple[int, ...]  # the broadcast batch axes; their product is K * L
    steps: int  # L
    rows: Floats | Integers  # (n, S, A, S); or counts, of which the kernel makes rows
    rows_of: Integers  # (K,)
    weight: Floats  # (n, S, A)
    weight_of: Integers  # (K or 1, L or 1)
    target: Floats  # (n, 1 or S, 1 or A, S)
    target_of: Integers  # (K,)
    reward: Floats  # (n, S, A)
    reward_of: Integers  # (K or 1, L or 1)
    discount: Floats  # (n,)
    discount_of: Integers  # (K or 1, L or 1)
    allowed: Booleans  # (n, S, A)
    allowed_of: Integers  # (K,)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All operands with their indices, in the order in which planning kernels take them."""
        return self[2:]

    @property
    def chains(self) -> int:
        """K."""
        return len(self.rows_of)

    @property
    def grain(self) -> int:
        """How many chains are worth a call of a kernel that takes eight side by side: those with 64 plans."""
        return 8 * max(1, 8 // self.steps)

    def spread(self) -> Operands:
        """The same, with an index for every chain and step."""
        shape = (self.chains, self.steps)
        weight, reward, discount = (
            np.array(np.broadcast_to(of, shape)) for of in (self.weight_of, self.reward_of, self.discount_of)
        )
        return self._replace(weight_of=weight, reward_of=reward, discount_of=discount)


def operands(
    rows: Floats | Integers, weight: Floats, target: Floats, reward: Floats, discount: Floats, allowed: Booleans
) -> Operands:
    """Line up operands whose trailing axes are fixed and whose leading axes broadcast."""
    given = (rows, weight, target, reward, discount, allowed)
    lead = [array.shape[: array.ndim - axes] for array, axes in zip(given, TRAILING, strict=True)]
    batch = np.broadcast_shapes(*lead)
    along = bool(batch) and all(not own or own[-1] == 1 for own, fixed in zip(lead, FIXED, strict=True) if fixed)
    sets, steps = (batch[:-1], batch[-1]) if along else (batch, 1)
    chains = prod(sets)
    parts: list[Any] = []
    for array, axes, fixed in zip(given, lead, FIXED, strict=True):
        own = prod(axes)
        whole = array if array.flags.carray else np.require(array, requirements=("C", "W"))  # what kernels take
        parts.append(whole.reshape(own, *array.shape[len(axes) :]))
        if not (along and axes):
            axes = (*axes, 1)
        width = axes[-1]
        lines = chains if fixed or own != width else 1
        shape = lines if fixed else (lines, width)
        index: Integers = np.zeros(shape, dtype=np.int64) if own == 1 else np.arange(own)
        if own not in (1, lines * width):
            index = np.array(np.broadcast_to(index.reshape(axes), (*sets, width)))
        parts.append(index.reshape(shape))
    return Operands(batch, steps, *parts)
