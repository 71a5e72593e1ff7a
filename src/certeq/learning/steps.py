"""Steps: how many decisions were made before each row, for policies that plan for so many."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import first
from certeq.base.errors import InputError


def read_steps(step: Any, n: int) -> Any:
    """Decisions made before each of n rows: whole numbers, one for each row or one for all."""
    try:
        steps = np.asarray(step)
    except ValueError:
        steps = np.zeros((0, 0))  # lists of several lengths
    if steps.shape not in ((), (n,)):
        raise InputError(
            f"step must be one whole number, or one for each of the {n} rows; got an array of shape {steps.shape}."
        )
    if steps.dtype.kind not in "iuf":
        raise InputError(f"step must be a number of decisions, 0 or more; got {_first_word(steps)}.")
    bad = ~np.isfinite(steps) | (steps != np.round(steps))
    if bad.any():
        place = first(bad)
        at = f"step[{place[0]}]" if place else "step"
        raise InputError(f"step counts decisions, so it must be a whole number; {at} is {steps[place]}.")
    return np.broadcast_to(steps, (n,))


def _first_word(values: Any) -> str:
    """The first value that is no number, as a message shows it."""
    plain = values.ravel().tolist()
    odd = [x for x in plain if isinstance(x, bool) or not isinstance(x, int | float)]
    return repr((odd or plain or [None])[0])[:80]
