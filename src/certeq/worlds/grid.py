"""Grid: a floor of unreliable tiles, from the paper's journal follow-up (after Amit et al. 2020).

Each tile s has a reliability p(s), drawn from U(0, 1). A move to the north, south, east or west succeeds with
probability p(s), and a wall keeps the walker where it is. A move that fails ends on the pair's own stray tile, drawn
uniformly from all tiles once, when the world is made. One tile, drawn at random, pays 1; every other tile pays an
amount drawn from U(-0.5, 0.5); the action does not matter for the reward.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, generator, whole
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.settings import Size, leading_axes

MOVES = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}  # (row, column)


def grid(*, width: int = 4, height: int = 4, size: Size = None, discount: float = 0.99, rng: Rng = None) -> MDP:
    """Draw one floor, or with ``size`` a batch of them; state r * width + c is tile (r, c), and starts are uniform."""
    columns, rows = whole("width", width, 1), whole("height", height, 1)
    batch, random = leading_axes(size), generator(rng)
    S, A = rows * columns, len(MOVES)
    reliable = random.random((*batch, S, 1, 1))
    astray = random.integers(S, size=(*batch, S, A))
    tile = np.eye(S)
    transition = reliable * tile[_targets(rows, columns)] + (1 - reliable) * tile[astray]
    return MDP(
        Rows(transition),
        _rewards((*batch, S, A), random),
        discount,
        state_names=tuple(f"r{r}c{c}" for r in range(rows) for c in range(columns)),
        action_names=tuple(MOVES),
        positions=np.stack(np.divmod(np.arange(S), columns), axis=1),
    )


def _targets(rows: int, columns: int) -> Integers:
    """Tile that each move aims at, walls in mind, (S, A)."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    aims = [
        np.clip(row + down, 0, rows - 1) * columns + np.clip(column + right, 0, columns - 1)
        for down, right in MOVES.values()
    ]
    return np.stack(aims, axis=1)


def _rewards(shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """One paying tile among small gains and losses, (..., S, A)."""
    *batch, S, _ = shape
    pay = random.uniform(-0.5, 0.5, size=(*batch, S))
    goal = random.integers(S, size=(*batch, 1))
    np.put_along_axis(pay, goal, 1, axis=-1)
    return np.array(np.broadcast_to(pay[..., None], shape))
