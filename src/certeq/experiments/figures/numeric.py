"""Worlds of numbers: logs of continuous simulators, cut into cells, and policies that are valued in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng, generator
from certeq.data.batch import Batch
from certeq.data.counts import Counts, tally
from certeq.data.sums import Sums, add_up
from certeq.experiments.figures.study import losses_by_cell, ratios
from certeq.experiments.procedure import STRENGTHS, method, policies
from certeq.experiments.statistics import bands
from certeq.experiments.sweeps import judge_trend
from certeq.experiments.verdict import Verdict, exactly
from certeq.model.mdp import MDP
from certeq.model.rewards import means
from certeq.planners import solve
from certeq.questions.sweep import even
from certeq.worlds.numeric import SIMULATORS, numeric_log, numeric_table, numeric_value

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Worlds of numbers: states that are cells of columns"
CLAIM = (
    "Where states are cells of numeric columns, the learned target loses much less than the better of discount and "
    "uniform prior with their strength chosen in hindsight, and more data never make its advice clearly worse."
)
NOTES = (
    "Not a figure of the paper. Three simulators of points in a square (a harbor with a wall, a machine that wears, a "
    "drug with tolerance); logs are episodes of 20 random actions from anywhere, cut into cells; a policy is valued "
    "in the simulator, not in a table. A loss is what it earns less than the best policy on 24 × 24 cells, which was "
    "made from a large simulation. Rewards are those of the cell, known; or estimated as `learn` does, borrowing from "
    "states and neighbors; or raw means of the pair's own rows, a pair without rows having the mean of its state, or "
    "of all. Mean rewards that are known say a lot about pairs that were never tried, and a shortsighted plan makes "
    "the most of that. Cells hide things: what a plan with the true rows and rewards of the cells loses in the "
    "simulator stands beside, and hardly any table can lose less."
)
ALT = "Loss against rows in each world and number of cells, by method, with 95% bands."
LENGTH, STEPS = 20, 100
EPISODES = (5, 20, 80, 320)
CELLS = (6, 12)
FINE = 24  # cells to a side of the table by which the best policy is found
KNOWN, ESTIMATED, RAW = "known rewards", "estimated rewards", "raw mean rewards"
POOLS = {ESTIMATED: "auto", RAW: "none"}
REWARDS = (KNOWN, *POOLS)
OURS = "learned target"
METHODS = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    "none": method("none"),
    "evidence": method("evidence"),
    OURS: method("learned_target"),
}
FLOOR = "true rows"  # and true rewards of the cells: what hardly any table of these cells can be better than
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 4, "chunk": 4, "points": 20},
    "paper": {"data_sets": 100, "chunk": 10, "points": 200},
}
NEAR, MOST, SHARE = 1.05, 0.6, 0.95


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every world with each number of cells, episodes and kind of rewards, in chunks of data sets."""
    total, chunk = settings["data_sets"], settings["chunk"]
    return [
        {
            "panel": f"{world}, {side} × {side} cells, {rewards}, {episodes * LENGTH:,} rows",
            "world": world,
            "cells": side,
            "rewards": rewards,
            "episodes": episodes,
            "points": settings["points"],
            "data_sets": min(chunk, total - first),
            "first": first,
        }
        for world in SIMULATORS
        for side in CELLS
        for rewards in REWARDS
        for episodes in EPISODES
        for first in range(0, total, chunk)
    ]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Losses of all methods on one chunk of data sets."""
    random, world, D = generator(rng), cell["world"], cell["data_sets"]
    truth = numeric_table(world, cell["cells"])
    log = numeric_log(world, cell["episodes"], LENGTH, cells=cell["cells"], data_sets=D, rng=random)
    seed = int(random.integers(2**32))
    counts = tally(log)
    spread = Counts(counts.transitions[:, None], positions=counts.positions)
    reward = None if cell["rewards"] == KNOWN else estimated(log, D, POOLS[cell["rewards"]])
    how: dict[str, Any] = {"points": cell["points"], "steps": STEPS, "rng": seed}
    best = float(numeric_value(world, best_policy(world), **how))
    columns: dict[str, list[Any]] = {"data_set": [], "method": [], "strength": [], "loss": []}
    for name in (*METHODS, FLOOR):
        chosen = METHODS.get(name)
        grid = np.asarray(STRENGTHS) if chosen and chosen.has_strength else np.array([np.nan])
        advice = policies(truth, spread, chosen, grid, reward) if chosen else np.repeat(by_table(truth), D, axis=0)
        lost = best - numeric_value(world, advice, **how)
        columns["data_set"].append(np.repeat(np.arange(D), len(grid)))
        columns["method"].append(np.full(lost.size, name))
        columns["strength"].append(np.tile(grid, D))
        columns["loss"].append(lost.ravel())
    found = {key: np.concatenate(parts) for key, parts in columns.items()}
    told = {key: np.full(len(found["loss"]), cell[key]) for key in ("panel", "world", "cells", "rewards", "episodes")}
    return told | found


@lru_cache(maxsize=16)
def best_policy(world: str) -> Floats:
    """The best policy that a fine table finds, as chances of the actions in its cells."""
    return np.asarray(by_table(numeric_table(world, FINE))[0, 0])


def by_table(table: MDP) -> Floats:
    """The best policy of a table, ``(1, 1, S, A)``."""
    return even(solve(table.transition, table.reward, table.discount).tied)[None, None]


def estimated(log: Batch, data_sets: int, pool: str) -> Floats:
    """Rewards as the rows of each data set tell them, ``(data sets, S, A)``."""
    rows = replace(log, data_set=None, n_data_sets=None)
    which = np.asarray(log.data_set)
    apart = [add_up(rows, times=(which == d).astype(np.int64)) for d in range(data_sets)]
    return means(Sums.stack(apart), pool, log.positions)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge the claim for known and for estimated rewards, and the trend in the amount of data."""
    found, verdicts = ratios(table), []
    for rewards in REWARDS:
        mine = {panel: each for panel, each in found.items() if rewards in panel}
        middle = {name: _middle([each[name].mean for each in mine.values()]) for name in (OURS, "evidence")}
        verdicts.append(
            exactly(
                f"with {rewards} the learned target loses at most {MOST} times what the best global method loses, as a "
                "geometric mean over the cells",
                middle[OURS] <= MOST,
                f"{middle[OURS]:.2f}, `evidence` {middle['evidence']:.2f}, {len(mine)} cells",
            )
        )
        bars = {panel: NEAR * min(1.0, each["none"].mean) for panel, each in mine.items()}
        near = sum(mine[panel][OURS].low <= bar for panel, bar in bars.items())
        verdicts.append(
            exactly(
                f"with {rewards} it is within {NEAR - 1:.0%} of the better of none and the global methods, or its "
                f"interval covers that, in {SHARE:.0%} of the cells",
                near >= SHARE * len(mine),
                f"{near} of {len(mine)} cells",
            )
        )
    ours = {panel: each[OURS] for panel, each in losses_by_cell(table).items()}
    claim = "four times the data never make the advice of the learned target clearly worse"
    return [*verdicts, judge_trend(claim, ours)]


def _middle(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 0.01)))))


def draw(table: pl.DataFrame) -> Figure:
    """Loss against rows, one picture for each world, number of cells and kind of rewards."""
    from certeq.report import style

    losses = losses_by_cell(table)
    figure: Figure
    with style.style():
        figure, axes = style.canvas(6, 3, width=7.2, height=1.6)
        rows = np.array(EPISODES) * LENGTH
        pictures = [(world, side, rewards) for world in SIMULATORS for rewards in REWARDS for side in CELLS]
        for axis, (world, side, rewards) in zip(axes.ravel(), pictures, strict=True):
            for index, name in enumerate(METHODS):
                panels = [f"{world}, {side} × {side} cells, {rewards}, {e:,} rows" for e in rows]
                mean, half = np.array([bands(losses[panel][name]) for panel in panels]).T
                axis.errorbar(
                    rows, mean, half, color=style.COLORS[index], marker=style.MARKERS[index], label=name, capsize=1.5
                )
            axis.set_xscale("log")
            axis.set_xticks(rows, [f"{each:,}" for each in rows])
            axis.minorticks_off()
            axis.set_title(f"{world}, {side} × {side}, {rewards}", fontsize=6)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.supxlabel("rows", fontsize=7)
        figure.supylabel("loss, in the simulator", fontsize=7)
        figure.legend(handles, labels, loc="outside upper center", ncols=len(METHODS))
    return figure
