"""Dirichlet rows drawn where they are used: moving a batch to the device takes longer than planning in it."""

from __future__ import annotations

from typing import Any

from certeq.base.arrays import Rng, generator
from certeq.planners.gpu.device import cupy


def draw_rows(alpha: Any, rng: Rng = None) -> Any:
    """Draw Dirichlet rows with these parameters, ``(..., N)``, on the device; the twin of `questions.draws.draw_rows`.

    The seed of the device's own generator (Philox) is drawn from ``rng``: the same seed gives the same rows on the same
    device and version of CuPy, but not those that NumPy would draw. Outcomes with parameter 0 have no chance. Where the
    parameters are so small that all gamma variates of a row round to zero, one outcome has all the mass: which one is a
    draw by the parameters.
    """
    cp = cupy()
    shape = cp.asarray(alpha, dtype=cp.float64)
    random = cp.random.Generator(cp.random.Philox4x3210(int(generator(rng).integers(2**63))))
    rows = cp.where(shape > 0, random.standard_gamma(cp.where(shape > 0, shape, 1.0)), 0.0)
    total = rows.sum(axis=-1, keepdims=True)
    level = cp.cumsum(shape, axis=-1)
    at = (random.random(total.shape) * level[..., -1:] >= level).sum(axis=-1, keepdims=True)
    certain = (cp.arange(shape.shape[-1]) == at).astype(cp.float64)
    return cp.where(total > 0, rows / cp.where(total > 0, total, 1.0), certain)
