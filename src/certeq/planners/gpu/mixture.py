"""A mixture whose parts are on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.errors import InputError
from certeq.planners.gpu.device import cupy

MASS_TOLERANCE = 1e-9  # as in certeq.model.kernel


@dataclass(frozen=True)
class DeviceMixture:
    """``(1 - weight) * data + weight * target`` of CuPy arrays, to be planned in by ``solve(..., device="gpu")``.

    The twin of `certeq.Mixture`: shapes broadcast in the same way, and the mixture is written out nowhere.
    """

    data: Any  # (..., S or 1, A or 1, S)
    weight: Any  # (..., S or 1, A or 1), in [0, 1]
    target: Any  # (..., S or 1, A or 1, S)

    def __post_init__(self) -> None:
        cp = cupy()
        for name in ("data", "weight", "target"):
            object.__setattr__(self, name, cp.asarray(getattr(self, name), dtype=cp.float64))
        if self.weight.ndim == 0:
            object.__setattr__(self, "weight", self.weight[None, None])
        shapes = self.data.shape, (*self.weight.shape, 1), self.target.shape
        try:
            S = np.broadcast_shapes(*shapes)[-1]
            fit = min(map(len, shapes)) >= 3 and S == self.data.shape[-1] == self.target.shape[-1]
        except ValueError:
            fit = False
        if not fit:
            told = f"data {shapes[0]}, weight {self.weight.shape}, target {shapes[2]}"
            raise InputError(f"A mixture needs rows of one length and weights (..., S, A); got {told}.")
        for name in ("data", "target"):
            rows = getattr(self, name)
            if not (rows.min() >= 0 and rows.sum(axis=-1).max() <= 1 + MASS_TOLERANCE):
                raise InputError(
                    f"The rows of {name} are not all probabilities that sum to at most 1 (what is missing is the "
                    "chance of ending)."
                )
        if not ((self.weight >= 0) & (self.weight <= 1)).all():
            raise InputError("Weights lie between 0 and 1; some of these do not.")
