"""Sets of actions: where the data do not single one out, the advice is all of those that may well be the best.

A coin flip is no advice. The chance that an action is best is the share of the models that the data allow in which it
is. An action whose chance reaches the limit (`Rules.min_chance`) is advised alone. Otherwise the advice is the smallest
set of actions, the likeliest first, whose chances together reach it; the one that the plan takes is always among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers

ROUNDING = 1e-9  # that sums of chances may lack


def likely(chances: Floats, actions: Integers, min_chance: float) -> Booleans:
    """Which actions belong to the advice, like ``chances`` ``(..., S, A)``; none where nothing is advised (-1).

    Actions that are equally likely are in or out together, so that no name decides.
    """
    enough = min_chance - ROUNDING
    own = np.maximum(actions, 0)[..., None]
    clear = np.take_along_axis(chances, own, axis=-1) >= enough
    falling = -np.sort(-chances, axis=-1)
    together = np.cumsum(falling, axis=-1)
    together[..., -1] = np.inf  # all of them are enough, whatever they sum to
    least = np.take_along_axis(falling, (together >= enough).argmax(axis=-1)[..., None], axis=-1)
    among = (chances >= least) & (chances > 0) & ~clear
    np.put_along_axis(among, own, True, axis=-1)
    return np.asarray(among & (actions >= 0)[..., None])


def in_words(names: Sequence[str], *, tied: bool = False) -> str:
    """The advice where it is several actions: equally good by the plan, or not told apart by the data."""
    if tied:
        return f"either of {', '.join(names)}"
    return f"no clear difference: {' or '.join((', '.join(names[:-1]), names[-1]))}"
