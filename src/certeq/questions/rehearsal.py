"""``python -m certeq.questions.rehearsal STATES PART ...``: the kernels of a report, compiled by another process.

Each part calls, on a toy, the very functions that will call its kernels later, so that they are compiled for the same
types. Meanwhile, whoever began this compiles what learning itself needs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from certeq.base import ahead
from certeq.data.counts import Counts
from certeq.planners.compiled import SMALL


def magnitudes(states: int) -> None:
    """How much rows are to be trusted, and draws of it."""
    from certeq.model.evidence import draw_magnitudes
    from certeq.regularizers import shrink

    counts = Counts(np.ones((2, 1, 2), dtype=np.int64))
    shrink(counts, "evidence")
    draw_magnitudes(counts, 1, rng=0)


def plans(states: int) -> None:
    """Plans of several models."""
    from certeq.planners import solve

    S = min(states, SMALL + 1)
    solve(np.full((2, S, 1, S), 1 / S), np.zeros((2, S, 1)), 0.5, engine="numba")


def draws(states: int) -> None:
    """Rows that are drawn."""
    from certeq.questions.draws import FEW, draw_rows

    draw_rows(np.ones((FEW // 8 + 1, 8)), np.random.default_rng(0))


PARTS = {"magnitudes": magnitudes, "plans": plans, "draws": draws}


def kernels(states: int, part: str) -> list[Any]:
    """Which kernels a part is there for."""
    from certeq.model import dirichlet, gammas
    from certeq.planners.compiled import medium, small

    return {
        "magnitudes": [dirichlet.gather, dirichlet.spread, dirichlet.row_likelihoods],
        "plans": [small.plan_small if states <= SMALL else medium.plan_medium],
        "draws": [gammas.draw],
    }[part]


def begin(states: int, parts: Iterable[str]) -> None:
    """Begin to rehearse, elsewhere, those of these parts whose kernels have never been compiled here."""
    missing = {part: kernels(states, part) for part in parts}
    missing = {part: needed for part, needed in missing.items() if not all(map(ahead.kept, needed))}
    if missing:
        ahead.begin(__name__, [str(states), *missing], [kernel for needed in missing.values() for kernel in needed])


if __name__ == "__main__":
    ahead.end_with_the_other()
    gc.disable()  # which looks, again and again, through millions of objects that compilers make and keep
    for part in sys.argv[2:]:
        PARTS[part](int(sys.argv[1]))
