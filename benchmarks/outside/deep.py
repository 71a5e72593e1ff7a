"""d3rlpy's discrete behavior cloning and CQL beside certeq on the worlds of numbers, from the same rows.

A point moves in the unit square (`certeq.worlds.numeric`: harbor, machine, dose). It is logged at random, or by
somebody who takes the best action of a fine table in seven decisions of ten and any action in the rest. certeq reads
the table and cuts the columns by itself; d3rlpy gets the numbers. Nothing is tuned. d3rlpy's defaults for CQL are made
for millions of frames, so learning rate, batches and target updates were set beforehand to suit thousands of rows.
Policies are valued in the simulator, all from the same starts with the same luck; CQL's also after a third of its
training, to see whether more of it would help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

import certeq
from certeq.experiments.figures.numeric import best_policy
from certeq.worlds.numeric import SIMULATORS, Act, Simulator, cell_of, erring, log_points, value_points

STEPS, POINTS = 100, 400  # of an episode that is valued, and how many of those
COMPETENT = 0.3  # share of decisions in which any action is taken
PROFILES = {"smoke": (("dose",), (20,), 2, 50), "paper": (tuple(SIMULATORS), (20, 200), 3, 3_000)}
CQL = {"learning_rate": 1e-3, "target_update_interval": 100, "batch_size": 256}


def fine(world: str) -> Act:
    """The best policy of a fine table."""
    chosen = best_policy(world).argmax(axis=-1)
    side = round(len(chosen) ** 0.5)
    return lambda points: chosen[cell_of(points, side)]


def value(world: Simulator, act: Act, seed: int) -> float:
    """Mean discounted return in the simulator."""
    rng = np.random.default_rng(seed)
    return value_points(world, act, world.start(POINTS, rng), STEPS, rng)


def ours(world: Simulator, table: dict[str, np.ndarray], rng: np.random.Generator) -> Act:
    """certeq as it comes; any action where it gives no advice."""
    batch = certeq.read(
        table, state=list(world.columns), action="action", reward="reward", episode="episode", time="time"
    )
    policy = certeq.learn(batch, draws=0, discount=world.discount).policy
    names = np.array([int(name) for name in policy.action_names])

    def act(points: np.ndarray) -> np.ndarray:
        found = policy.apply(dict(zip(world.columns, points.T, strict=True))).action
        return np.where(found >= 0, names[found], rng.integers(len(world.actions), size=len(points)))

    return act


def theirs(world: Simulator, table: dict[str, np.ndarray], steps: int) -> Iterator[tuple[str, Act]]:
    """d3rlpy's policies; each is to be used before the next is asked for."""
    import d3rlpy

    number = len(world.actions)
    last = table["time"] == table["time"].max()
    data = d3rlpy.dataset.MDPDataset(
        np.stack([table[name] for name in world.columns], axis=1).astype(np.float32),
        table["action"][:, None],
        table["reward"][:, None].astype(np.float32),
        terminals=np.zeros(len(last)),
        timeouts=last.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=number,
    )
    for name, config in (
        ("d3rlpy, behavior cloning", d3rlpy.algos.DiscreteBCConfig()),
        ("d3rlpy, CQL", d3rlpy.algos.DiscreteCQLConfig(gamma=world.discount, **CQL)),
    ):
        algorithm = config.create(device=False)

        def act(points: np.ndarray, algorithm: Any = algorithm) -> np.ndarray:
            return np.asarray(algorithm.predict(points.astype(np.float32))).astype(int)

        quiet = {"show_progress": False, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}
        for part, _ in algorithm.fitter(data, n_steps=steps, n_steps_per_epoch=steps // 3, **quiet):
            if part == 1 and name.endswith("CQL"):
                yield f"{name}, a third of it", act
        yield name, act


def run(profile: str, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Learn from each log and value what was learned."""
    import d3rlpy
    import torch

    torch.set_num_threads(1)  # networks are small
    names, sizes, sets, steps = PROFILES[profile]
    cells = []
    for name in names:
        world, best = SIMULATORS[name], fine(name)
        for kind, share in (("random", 1.0), ("competent", COMPETENT)):
            for size in sizes:
                found: dict[str, list[float]] = {}
                for d in range(sets):
                    rng = np.random.default_rng([seed, size, d])
                    d3rlpy.seed(seed + d)
                    table = log_points(world, erring(best, share, len(world.actions), rng), size, rng)
                    acts = [
                        ("certeq, default", ours(world, table, rng)),
                        ("what was done", erring(best, share, len(world.actions), rng)),
                        ("best of a fine table", best),
                    ]
                    for method, act in chain(acts, theirs(world, table, steps)):
                        found.setdefault(method, []).append(round(value(world, act, seed), 5))
                    tell(f"{name}, {kind}, {size} episodes: {d + 1} of {sets}")
                cells.append({"world": name, "behavior": kind, "size": size, "values": found})
    return {"sets": sets, "steps": steps, "settings": CQL, "cells": cells}
