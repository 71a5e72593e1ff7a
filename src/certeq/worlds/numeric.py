"""Worlds of numbers: continuous simulators whose logs are cut into cells, as a user's numeric columns are.

A state is a point of the unit square, and the square is cut into equal cells, so many to a side. What is logged are
cells; what happens, happens to points, and a policy is valued there. So a row of the table is an average over where in
its cell one is, no table is quite Markov, and the rows of neighboring cells are alike as far as the world is smooth.

- ``harbor``: a boat steers north, south, east or west; a wall with a gap at its north end parts the harbor. The berth
  in the south-east pays 1, and from there the boat is sent back to the west. Steering costs a little.
- ``machine``: wear and heat. Running fast pays more than running slowly but wears more, the more so the hotter it is; a
  worn machine pays less, and one that breaks costs dearly. A repair costs, and leads to little wear whatever it was.
- ``dose``: severity and tolerance. A drug lowers severity, less so the higher the tolerance, which doses raise and
  pauses lower; severity drifts upward by itself. Severity and doses cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, generator, whole
from certeq.base.errors import InputError, unknown
from certeq.data.batch import Batch
from certeq.data.positions import Positions
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP

SPEED, DRIFT = 0.12, 0.03  # of the boat: a step, and how far it is off
WALL, GAP = 0.5, 0.75  # where the wall stands, and how far north it reaches
BERTH = 0.25  # side of the square that pays
MOST_CELLS = 64  # to a side
SPREAD = 200  # points in each cell from which a table is made

Motion = Callable[[Floats, Integers, Floats], tuple[Floats, Floats]]
Act = Callable[[Floats], Integers]  # points (n, 2) -> actions (n,)


@dataclass(frozen=True)
class Simulator:
    """How points ``(..., 2)`` move under actions ``(...)``, what that earns, and where they start.

    A step is a function of point, action and luck, ``(..., 4)``: two standard normal numbers, two between 0 and 1.
    """

    columns: tuple[str, str]
    actions: tuple[str, ...]
    step: Motion
    corner: tuple[float, float]  # starts are uniform between the origin and this corner
    discount: float = 0.95

    def start(self, n: int, random: np.random.Generator) -> Floats:
        """Draw where n of them start."""
        return random.random((n, 2)) * self.corner


def luck(n: int, random: np.random.Generator) -> Floats:
    """Draw what a step leaves to chance, ``(n, 4)``."""
    return np.concatenate([random.standard_normal((n, 2)), random.random((n, 2))], axis=1)


def _sail(point: Floats, action: Integers, chance: Floats) -> tuple[Floats, Floats]:
    way = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])[action]
    there = np.clip(point + SPEED * way + DRIFT * chance[..., :2], 0, 1)
    across = (point[..., 0] < WALL) != (there[..., 0] < WALL)
    blocked = across & (np.minimum(point[..., 1], there[..., 1]) < GAP)
    there = np.where(blocked[..., None], point, there)
    moored = (point[..., 0] > 1 - BERTH) & (point[..., 1] < BERTH)
    return np.where(moored[..., None], chance[..., 2:] * (0.3, 1.0), there), np.where(moored, 1.0, -0.01)


def _run(point: Floats, action: Integers, chance: Floats) -> tuple[Floats, Floats]:
    wear, heat = point[..., 0], point[..., 1]
    noise, other = chance[..., 0], chance[..., 1]
    worn = wear + np.array([0.03, 0.07, 0.0])[action] * (1 + heat) * np.exp(0.3 * noise)
    broken = (action != 2) & (chance[..., 2] < worn**4)
    again = (action == 2) | broken
    hot = np.where(again, 0.0, heat + np.array([-0.05, 0.12, 0.0])[action] + 0.05 * other)
    after = np.where(again, 0.05 + 0.05 * np.abs(noise), worn)
    pay = np.array([0.5, 1.0, 0.0])[action] * (1 - wear) - np.array([0.0, 0.0, 1.0])[action] - 4.0 * broken
    return np.clip(np.stack([after, hot], axis=-1), 0, 1), pay


def _treat(point: Floats, action: Integers, chance: Floats) -> tuple[Floats, Floats]:
    severity, tolerance = point[..., 0], point[..., 1]
    effect = np.array([0.0, 0.12, 0.2])[action] * (1 - tolerance)
    worse = severity + 0.05 * (0.5 + severity) - effect + 0.04 * chance[..., 0]
    used = tolerance + np.array([-0.08, 0.04, 0.12])[action] + 0.02 * chance[..., 1]
    after = np.clip(np.stack([worse, used], axis=-1), 0, 1)
    return after, -after[..., 0] - np.array([0.0, 0.08, 0.2])[action]


SIMULATORS: dict[str, Simulator] = {
    "harbor": Simulator(("east", "north"), ("north", "south", "east", "west"), _sail, (0.4, 1.0), 0.98),
    "machine": Simulator(("wear", "heat"), ("slow", "fast", "repair"), _run, (0.5, 0.5)),
    "dose": Simulator(("severity", "tolerance"), ("none", "low", "high"), _treat, (1.0, 0.3)),
}


def simulator(name: str) -> Simulator:
    """One of the worlds, by name."""
    if name not in SIMULATORS:
        raise unknown("world of numbers", name, SIMULATORS)
    return SIMULATORS[name]


def erring(act: Act, share: float, actions: int, random: np.random.Generator) -> Act:
    """Somebody who acts like this, but takes any action in a share of the decisions."""
    return lambda points: np.where(
        random.random(len(points)) < share, random.integers(actions, size=len(points)), act(points)
    )


def log_points(
    world: Simulator, act: Act, episodes: int, random: np.random.Generator, length: int = 20
) -> dict[str, Any]:
    """Log what happens to points that start anywhere, as a table: episode, time, two columns, action, reward."""
    at, rows = random.random((episodes, 2)), []
    for t in range(length):
        action = act(at)
        after, paid = world.step(at, action, luck(episodes, random))
        rows.append((np.arange(episodes), np.full(episodes, t), at[:, 0], at[:, 1], action, paid))
        at = after
    parts = [np.stack(column, axis=1).ravel() for column in zip(*rows, strict=True)]
    return dict(zip(("episode", "time", *world.columns, "action", "reward"), parts, strict=True))


def value_points(world: Simulator, act: Act, start: Floats, steps: int, random: np.random.Generator) -> float:
    """Mean discounted return of acting like this for so many decisions, from these points ``(n, 2)``."""
    at, worth = start, 0.0
    for t in range(steps):
        at, paid = world.step(at, act(at), luck(len(at), random))
        worth += world.discount**t * float(paid.mean())
    return worth


def cell_of(point: Floats, cells: int) -> Integers:
    """Number of the cell in which each point ``(..., 2)`` lies, the first column slowest."""
    place = np.minimum((point * cells).astype(np.int64), cells - 1)
    return np.asarray(place[..., 0] * cells + place[..., 1])


def _places(cells: int) -> Integers:
    return np.stack(np.divmod(np.arange(cells**2), cells), axis=1)


def numeric_log(
    name: str, episodes: int, length: int = 20, *, cells: int = 8, data_sets: int | None = None, rng: Rng = None
) -> Batch:
    """Log what happens to points that start anywhere and are acted on at random, as cells."""
    world, side = simulator(name), whole("cells", cells, 1, at_most=MOST_CELLS)
    trials = 1 if data_sets is None else whole("data_sets", data_sets, 1)
    each, steps, random = whole("episodes", episodes, 1), whole("length", length, 1), generator(rng)
    n = trials * each
    points, rows = random.random((n, 2)), []
    for t in range(steps):
        action = random.integers(len(world.actions), size=n)
        after, reward = world.step(points, action, luck(n, random))
        rows.append((np.arange(n), np.full(n, t), cell_of(points, side), action, reward, cell_of(after, side)))
        points = after
    who, when, state, action, reward, then = (np.stack(column, axis=1).ravel() for column in zip(*rows, strict=True))
    return Batch(
        state,
        action,
        then,
        n_states=side**2,
        n_actions=len(world.actions),
        reward=reward,
        episode=who,
        time=when,
        data_set=None if data_sets is None else who // each,
        n_data_sets=None if data_sets is None else trials,
        action_names=world.actions,
        positions=Positions(_places(side)),
    )


@lru_cache(maxsize=32)
def numeric_table(name: str, cells: int = 8, seed: int = 0) -> MDP:
    """Rows and mean rewards of the cells, points being anywhere in their cell alike: what a table can know at most."""
    world, side = simulator(name), whole("cells", cells, 1, at_most=MOST_CELLS)
    random, S, A = generator(seed), side**2, len(world.actions)
    transition, reward = np.empty((S, A, S)), np.empty((S, A))
    corner = np.repeat(_places(side), SPREAD, axis=0)
    state = np.repeat(np.arange(S), SPREAD)
    for a in range(A):
        inside = (corner + random.random(corner.shape)) / side
        after, paid = world.step(inside, np.full(len(corner), a), luck(len(corner), random))
        transition[:, a] = np.bincount(state * S + cell_of(after, side), minlength=S * S).reshape(S, S) / SPREAD
        reward[:, a] = np.bincount(state, paid, minlength=S) / SPREAD
    return MDP(Rows(transition), reward, world.discount, action_names=world.actions, positions=_places(side))


def numeric_value(name: str, policy: Any, *, points: int = 200, steps: int = 80, rng: Rng = None) -> Floats:
    """Mean discounted return of policies ``(..., S, A)``, chances of each action in each cell, in the simulator.

    All policies meet the same starts and the same chances, so that they can be compared.
    """
    world, chance = simulator(name), np.asarray(policy, dtype=np.float64)
    *batch, S, A = chance.shape
    side = round(S**0.5)
    if side**2 != S or len(world.actions) != A:
        raise InputError(f"A policy for {name} has the shape (..., cells², {len(world.actions)}); got {chance.shape}.")
    level = np.cumsum(chance.reshape(-1, S, A), axis=-1)[..., :-1]
    P, n, random = len(level), whole("points", points, 1), generator(rng)
    at, worth, which = np.repeat(world.start(n, random)[None], P, axis=0), np.zeros((P, n)), np.arange(P)[:, None]
    for t in range(whole("steps", steps, 1)):
        action = (random.random((n, 1)) >= level[which, cell_of(at, side)]).sum(axis=-1)
        at, paid = world.step(at, action, luck(n, random))
        worth += world.discount**t * paid
    return np.asarray(worth.mean(axis=1).reshape(batch))
