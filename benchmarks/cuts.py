"""Cells that the rows choose, against every cut in hindsight, valued in the simulator.

``uv run python -m benchmarks.cuts SEED DATA_SETS`` prints, for raw tumor trials of 50 patients and three worlds of
numbers, the mean value of the default and of 2 to 12 quantile cells for all columns; and how far the default is from
the best of these, as a share of what that gains over a coin, with its standard error. The best of six on the same logs
is flattered, so the last column has what the best cut of every other log is worth on those between.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import certeq
from certeq.worlds import examples
from certeq.worlds.numeric import SIMULATORS, luck
from certeq.worlds.tumor_model import COLUMNS, TumorModel

CELLS = (2, 3, 4, 6, 8, 12)
CASES = 1000
TUMORS = {"the bundled trial's tumor": TumorModel(**examples.MODEL), "the paper's tumor": TumorModel()}


class Raw(NamedTuple):
    """A simulator of points, as rows of numbers see it."""

    columns: tuple[str, ...]
    actions: int
    begin: Callable[[int, Any, bool], Any]  # how many, generator, whether for the log
    step: Callable[[Any, Any, Any], tuple[Any, Any]]
    discount: float
    episodes: int
    length: int  # of an episode that is logged
    ahead: int  # decisions that are valued


def raws() -> dict[str, Raw]:
    """All of them by name."""
    found = {
        name: Raw(COLUMNS, 2, lambda k, random, log, model=model: model.start(k, random), model.step, 0.99, 50, 30, 30)
        for name, model in TUMORS.items()
    }
    for name, world in SIMULATORS.items():

        def begin(n: int, random: Any, log: bool, world: Any = world) -> Any:
            return random.random((n, 2)) if log else world.start(n, random)

        def step(now: Any, action: Any, random: Any, world: Any = world) -> Any:
            return world.step(now, action, luck(len(now), random))

        for n in (30, 100):
            actions = len(world.actions)
            found[f"{name}, {n} episodes"] = Raw(world.columns, actions, begin, step, world.discount, n, 20, 80)
    return found


def log(raw: Raw, random: np.random.Generator) -> dict[str, Any]:
    """Cases that are acted on at random, as a table in the long layout."""
    now, rows = raw.begin(raw.episodes, random, True), []
    for time in range(raw.length):
        action = random.integers(raw.actions, size=raw.episodes)
        after, reward = raw.step(now, action, random)
        rows.append(np.column_stack([np.arange(len(now)), np.full(len(now), time), now, action, reward]))
        now = after
    names = ("episode", "time", *raw.columns, "action", "reward")
    table = dict(zip(names, np.concatenate(rows).T, strict=True))
    return table | {name: table[name].astype(int) for name in ("episode", "time", "action")}


def worth(raw: Raw, table: dict[str, Any], bins: int | None) -> float:
    """What following the advice is worth to new cases; where there is none, a coin decides."""
    policy = certeq.learn(certeq.read(table, ends="never", bins=bins), draws=0, discount=raw.discount).policy
    random, total = np.random.default_rng(123), 0.0
    now, names = raw.begin(CASES, random, False), np.array([*map(int, policy.action_names), 0])
    for time in range(raw.ahead):
        advised = policy.apply(dict(zip(raw.columns, np.asarray(now).T, strict=True))).action
        action = np.where(advised < 0, random.integers(raw.actions, size=CASES), names[advised])
        now, reward = raw.step(now, action, random)
        total += raw.discount**time * float(reward.mean())
    return total


def main(seed: int, data_sets: int) -> None:
    print("world | a coin | default |", " | ".join(map(str, CELLS)), "| short of the best | a cut that others chose")
    for name, raw in raws().items():
        tables = [log(raw, np.random.default_rng([seed + d, len(name)])) for d in range(data_sets)]
        own, *fixed = (np.array([worth(raw, table, cells) for table in tables]) for cells in (None, *CELLS))
        coin = float(np.mean([_coin(raw, seed) for seed in range(3)]))
        best = max(fixed, key=np.mean)
        short = (best - own) / (best.mean() - coin)
        halves = [np.arange(data_sets) % 2 == side for side in (0, 1)]
        chosen = [max(fixed, key=lambda each, half=half: each[~half].mean())[half].mean() for half in halves]
        told = " | ".join(f"{each.mean():.3f}" for each in (own, *fixed))
        error = short.std(ddof=1) / np.sqrt(data_sets)
        print(f"{name} | {coin:.3f} | {told} | {short.mean():.1%} ± {error:.1%} | {np.mean(chosen):.3f}", flush=True)


def _coin(raw: Raw, seed: int) -> float:
    random, total = np.random.default_rng(seed), 0.0
    now = raw.begin(CASES, random, False)
    for time in range(raw.ahead):
        now, reward = raw.step(now, random.integers(raw.actions, size=CASES), random)
        total += raw.discount**time * float(reward.mean())
    return total


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
