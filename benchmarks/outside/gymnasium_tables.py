"""Gymnasium's tables: FrozenLake, Taxi and CliffWalking, logged at random and by somebody who errs now and then.

Rows are what the environment pays and where it leads; an episode that is cut off at its longest length has not ended.
Competent behavior takes the best action and, in one decision of five, any action at random. Values are exact, from the
environment's own distribution of first states, at discount .99.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import certeq
from benchmarks.opponents import able
from benchmarks.outside.contest import World, entries, hold
from certeq.data.batch import Batch
from certeq.worlds.table import from_table, log_table

DISCOUNT = 0.99
DEVIATIONS = {"random": 1.0, "competent": 0.2}
SLIPPERY, FIRM = {"is_slippery": True}, {"is_slippery": False}
TABLES: dict[str, tuple[str, dict[str, Any], int, dict[str, tuple[int, ...]]]] = {
    "FrozenLake 4×4": ("FrozenLake-v1", SLIPPERY, 100, {"random": (100, 1_000), "competent": (30, 300)}),
    "FrozenLake 4×4, not slippery": ("FrozenLake-v1", FIRM, 100, {"random": (30, 300), "competent": (10, 100)}),
    "FrozenLake 8×8": ("FrozenLake8x8-v1", SLIPPERY, 200, {"random": (500, 5_000), "competent": (30, 300)}),
    "FrozenLake 8×8, not slippery": ("FrozenLake8x8-v1", FIRM, 200, {"random": (300, 3_000), "competent": (10, 100)}),
    "Taxi": ("Taxi-v4", {}, 200, {"random": (100, 1_000), "competent": (100, 1_000)}),
    "CliffWalking": ("CliffWalking-v1", FIRM, 200, {"random": (10, 100), "competent": (10, 100)}),
    "CliffWalking, slippery": ("CliffWalking-v1", SLIPPERY, 200, {"random": (10, 100), "competent": (10, 100)}),
}
PROFILES = {"smoke": (("FrozenLake 4×4",), (1, 2)), "paper": (tuple(TABLES), (8, 20))}
FEWER = {"Taxi": (2, 6)}  # data sets where each takes long


def worlds(names: tuple[str, ...]) -> Iterator[World]:
    """Each table under both behaviors."""
    import gymnasium

    for name in names:
        known_as, settings, length, sizes = TABLES[name]
        table = gymnasium.make(known_as, **settings)
        truth = from_table(table, discount=DISCOUNT)
        best = certeq.solve(truth.transition, truth.reward, DISCOUNT).policy
        for kind, deviations in DEVIATIONS.items():
            behavior = np.full((truth.n_states, truth.n_actions), deviations / truth.n_actions)
            behavior[np.arange(truth.n_states), best] += 1 - deviations
            log = _logbook(table, length, behavior)
            yield World(f"{name}, {kind}", truth, behavior, log, sizes[kind], (DISCOUNT,))


def _logbook(table: Any, length: int, behavior: np.ndarray) -> Callable[[int, np.random.Generator], Batch]:
    return lambda episodes, rng: log_table(table, episodes, length, behavior=behavior, rng=rng)


def run(profile: str, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Hold the contest on every table."""
    names, sets = PROFILES[profile]
    held = [
        hold(
            world,
            size,
            seed,
            FEWER.get(world.name.split(",")[0], sets),
            list(entries(able(*world.behavior.shape))),
            tell,
        )
        for world in worlds(names)
        for size in world.sizes
    ]
    return {"sets": sets, "fewer": FEWER, "held": held}
