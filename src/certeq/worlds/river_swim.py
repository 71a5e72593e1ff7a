"""River Swim: a small reward close by, a large one far up the river.

The states lie in a row along a river. Swimming left, with the current, always moves one state to the left; the
leftmost state is the bank, where it pays a little. Swimming right, against the current, may carry the swimmer forward,
keep it in place, or wash it back; only in the rightmost state does it pay, and there it pays well. Whoever looks a
short way ahead stays at the bank.

There are two rivers in the literature, and they are easily confused:

| variant | right, inside: back, stay, on | leftmost: stay, on | rightmost: back, stay | rewards | start |
|---|---|---|---|---|---|
| ``osband``, the paper's (Osband, Russo & Van Roy 2013) | .05, .6, .35 | .4, .6 | .4, .6 | 5/1000 and 1 | leftmost |
| ``strehl``, the older one (Strehl & Littman) | .1, .6, .3 | .7, .3 | .7, .3 | 5 and 10000 | state 1 or 2 |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Floats, whole
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.settings import one_of

LEFT, RIGHT = 0, 1


class River(NamedTuple):
    """What swimming right does, what the two ends pay, and where the swimmer may start."""

    inside: tuple[float, float, float]  # back, stay, on
    leftmost: tuple[float, float]  # stay, on
    rightmost: tuple[float, float]  # back, stay
    small: float
    large: float
    starts: tuple[int, ...]


RIVERS = {
    "osband": River((0.05, 0.6, 0.35), (0.4, 0.6), (0.4, 0.6), small=5 / 1000, large=1, starts=(0,)),
    "strehl": River((0.1, 0.6, 0.3), (0.7, 0.3), (0.7, 0.3), small=5, large=10_000, starts=(1, 2)),
}


def river_swim(*, variant: str = "osband", n_states: int = 6, discount: float = 0.99) -> MDP:
    """Build the river; actions are left and right, and a reward is for the pair, wherever the swim then leads."""
    river = RIVERS[one_of("variant", variant, RIVERS)]
    S = whole("n_states", n_states, max(2, 1 + max(river.starts)))
    reward = np.zeros((S, 2))
    reward[0, LEFT], reward[-1, RIGHT] = river.small, river.large
    start = np.zeros(S)
    start[list(river.starts)] = 1 / len(river.starts)
    transition = np.stack([_left(S), _right(S, river)], axis=1)  # (S, A, S)
    rows = Rows(transition)
    return MDP(rows, reward, discount, start=start, action_names=("left", "right"), positions=np.arange(S))


def _left(S: int) -> Floats:
    """With the current: one state to the left, for certain, (S, S)."""
    return np.eye(S)[np.maximum(np.arange(S) - 1, 0)]


def _right(S: int, river: River) -> Floats:
    """Against the current, (S, S)."""
    back, stay, on = river.inside
    rows = back * np.eye(S, k=-1) + stay * np.eye(S) + on * np.eye(S, k=1)
    rows[0, :2] = river.leftmost
    rows[-1, -2:] = river.rightmost
    return rows
