"""Gamma variates: Dirichlet rows, of which most outcomes have next to no chance, drawn in a compiled kernel.

A row is a set of gamma variates over their sum. Of a thousand outcomes, a handful was seen; the others have parameters
far below one, and variates that nearly always round to nothing beside those of the outcomes that were seen. So these
are drawn first, and a uniform number, the first that the others need anyway, tells which of those can be left at zero.

- Parameters from one on: Best's rejection from Student's t (Devroye 1986, IX.3.3), of uniform numbers alone.
- Below one: Ahrens and Dieter's GS (1974), whose first case is U^(1/α).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.compiling import njit
from certeq.base.random import seeded, uniform

NEGLIGIBLE = 1e-18  # of what the seen outcomes have: all that is left at zero is less than rounding
TINIEST = -700.0  # log of the least that is drawn where nothing was seen

_plain = njit(cache=True, nogil=True, error_model="numpy")


@_plain
def large(shape: float, state: Any) -> Any:
    """A gamma variate of a shape of at least 1, and the state of the stream after it."""
    if shape == 1.0:
        u, state = uniform(state)
        return -np.log(1.0 - u), state
    b, c = shape - 1.0, 3.0 * shape - 0.75
    while True:
        u, state = uniform(state)
        v, state = uniform(state)
        w = u * (1.0 - u)
        if w > 0.0:
            y = np.sqrt(c / w) * (u - 0.5)
            x = b + y
            if x > 0.0 and np.log(64.0 * w * w * w * v * v) <= 2.0 * (b * np.log(x / b) - y):
                return x, state


@_plain
def small(shape: float, least: float, state: Any) -> Any:
    """A gamma variate of a shape below 1, and the state after it; 0 where its log is below ``least``."""
    while True:
        u, state = uniform(state)
        if u <= 1.0 - shape:
            if u <= 1.0 + shape * least:  # which is less than exp(shape * least): no need for logs
                return 0.0, state
            x = np.log(u) / shape
            if x < least:
                return 0.0, state
            x, y = np.exp(x), 0.0
        else:
            y = -np.log((1.0 - u) / shape)
            x = np.exp(np.log(1.0 - shape + shape * y) / shape)
        v, state = uniform(state)
        if x <= y - np.log(1.0 - v):
            return x, state


@_plain
def draw(alpha: Floats, seed: Any, out: Floats) -> None:
    """Draw rows with these parameters, ``(rows, N)``; where all round to zero, one outcome by the parameters."""
    state = seeded(seed)
    for r in range(alpha.shape[0]):
        given, row = alpha[r], out[r]
        total = 0.0
        for i in range(given.size):
            row[i] = 0.0
            if given[i] >= 1.0:
                row[i], state = large(given[i], state)
                total += row[i]
        least = np.log(NEGLIGIBLE * total) if total > 0.0 else TINIEST
        for i in range(given.size):
            if 0.0 < given[i] < 1.0:
                row[i], state = small(given[i], least, state)
                total += row[i]
        if total == 0.0:
            u, state = uniform(state)
            level, whole, last = 0.0, given.sum(), 0
            for i in range(given.size):
                if given[i] > 0.0 and level <= u * whole:
                    last = i
                level += given[i]
            row[last], total = 1.0, 1.0
        for i in range(given.size):
            row[i] /= total
