"""Safe policy improvement on its own ground: the worlds of `spibb_worlds`, the methods of `benchmarks.opponents`.

As in the papers, the methods of others are told the baseline that logged the data; certeq is not, and sees rows alone.
Rewards are estimated from the rows by everybody. Random MDPs are told as the share of the way from the baseline (0) to
the optimum (1), since every data set has a world of its own. The worst 1 % is the mean of the worst hundredth of the
data sets: with 100 of them, the worst one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import certeq
from benchmarks.outside.contest import World, entries, hold
from benchmarks.outside.spibb_worlds import DISCOUNT, WORLDS, Tables, baseline, middle_of_the_river
from certeq.data.batch import Batch

SHARE = 0.6  # of the way from random to the optimum: what baselines are worth
SIZES = {
    "random MDPs": (10, 100, 1_000),
    "gridworld": (10, 100, 1_000),
    "wet chicken": (200, 1_000, 5_000),
    "resource gathering": (30, 300, 3_000),
}
LONGEST = 200  # decisions in an episode; the wet chicken's are as many as the log has
PROFILES = {"smoke": (("wet chicken",), (1, 2)), "paper": (tuple(WORLDS), (20, 100))}
FEWER = {"resource gathering": (8, 40)}  # data sets where each takes long, for WSU and CADP plan in many models
PUBLISHED = {"optimum": 43.1, "behavior": 29.8}  # the wet chicken's, by Scholl and others (2022), as we recall them


def world(name: str, rng: np.random.Generator) -> World:
    """One of the worlds with its baseline."""
    tables = WORLDS[name](rng)
    behavior = middle_of_the_river() if name == "wet chicken" else baseline(tables, SHARE, rng)
    start = np.eye(len(tables.going))[tables.first]
    truth = certeq.MDP(certeq.Rows(tables.rows), tables.reward, DISCOUNT, start=start)
    found = World(name, truth, behavior, _logbook(name, tables, truth, behavior), SIZES[name], (DISCOUNT,), told=True)
    if name != "random MDPs":
        return found
    marks = found.landmarks()
    return replace(found, span=(marks["behavior"][0], marks["optimum"][0]))


def _logbook(
    name: str, tables: Tables, truth: certeq.MDP, behavior: np.ndarray
) -> Callable[[int, np.random.Generator], Batch]:
    def log(size: int, rng: np.random.Generator) -> Batch:
        episodes, length = (1, size) if name == "wet chicken" else (size, LONGEST)
        return log_episodes(tables, truth, behavior, episodes, length, rng)

    return log


def log_episodes(
    tables: Tables, truth: certeq.MDP, behavior: np.ndarray, episodes: int, length: int, rng: np.random.Generator
) -> Batch:
    """Rows with what each outcome paid."""
    rows = certeq.sampling.trajectories(truth, episodes, length, behavior=behavior, rng=rng)
    paid = np.where(rows.ended, tables.ending[rows.state, rows.action], tables.going[rows.next_state])
    return replace(rows, reward=paid)


def run(profile: str, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Hold the contest in every world."""
    names, sets = PROFILES[profile]
    who, held, checked = list(entries(discount=DISCOUNT)), [], []
    for name in names:
        here = world(name, np.random.default_rng([seed, 0]))
        if name == "wet chicken":
            checked = published(here)
        if name == "random MDPs":
            here = replace(here, again=lambda rng: world("random MDPs", rng))
        held += [hold(here, size, seed, FEWER.get(name, sets), who, tell) for size in here.sizes]
    return {"sets": sets, "fewer": FEWER, "checked": checked, "held": held}


def published(river: World) -> list[str]:
    """The wet chicken's landmarks beside the published ones; raises where the digits differ."""
    marks = river.landmarks()
    for name, value in PUBLISHED.items():
        assert round(marks[name][0], 1) == value, (name, marks[name])
    return [f"wet chicken, {name} {marks[name][0]:.2f} (published {value})" for name, value in PUBLISHED.items()]
