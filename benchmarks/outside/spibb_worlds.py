"""The worlds on which safe policy improvement is usually tried, rebuilt from their descriptions.

- *Random MDPs* (Laroche, Trichelair and Tachet des Combes 2019): 50 states, 4 actions, each pair leads to 4 states with
  chances cut at random; the state that is hardest to reach from the first is the goal and pays 1. A new world for
  every data set.
- *Gridworld* (the same): 5×5 with two walls; a move goes where it should in 75%, to either side in 10% each, and back
  in 5 %. From one corner to the opposite one, which pays 1.
- *Wet chicken* (Hans and Udluft 2009, tabular): a river of 5×5 with a waterfall. The nearer, the better paid; who goes
  over starts again. It never ends: a log is one stretch of so many decisions.
- *Resource gathering* (Barrett and Narayanan 2008): 5×5; fetch gold or a gem, past two enemies who strike one time in
  ten, and bring them home. The original has three rewards; here each thing brought home pays 1, and a strike costs 1.

The first two end at the goal, the last when something is brought home or the enemy strikes. Baselines are made as
Laroche and others make them: a softmax of the true action values, ever warmer until it is halfway from the target to
the optimum, then disturbed in random states until it is worth the target, a share of the way from random to the
optimum. That of the wet chicken is the one of Scholl and others (2022): keep to the middle of the river, and err in one
decision of ten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import certeq

DISCOUNT = 0.95
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class Tables(NamedTuple):
    """A world as tables; what a row lacks to 1 is the chance that it all ends."""

    rows: np.ndarray  # (S, A, S)
    going: np.ndarray  # (S,): what arriving in a state pays
    ending: np.ndarray  # (S, A): what an ending pays
    first: int

    @property
    def reward(self) -> np.ndarray:
        """What each pair pays on average."""
        return np.asarray(self.rows @ self.going + (1 - self.rows.sum(axis=-1)) * self.ending)


def random_mdp(rng: np.random.Generator) -> Tables:
    """One of Laroche and others' random MDPs."""
    S, A, reached = 50, 4, 4
    rows = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            cuts = np.concatenate(([0.0], np.sort(rng.random(reached - 1)), [1.0]))
            rows[s, a, rng.choice(S, reached, replace=False)] = np.diff(cuts)
    worlds = (_with_goal(rows, goal) for goal in range(1, S))
    worth = [(certeq.solve(certeq.Rows(each.rows), each.reward, DISCOUNT).values[0], each) for each in worlds]
    return min((pair for pair in worth if pair[0] > DISCOUNT**50), key=lambda pair: pair[0])[1]


def _with_goal(rows: np.ndarray, goal: int) -> Tables:
    """Arriving there pays 1 and ends it; nobody decides there."""
    rest = rows.copy()
    rest[:, :, goal] = 0
    rest[goal] = np.eye(len(rows))[goal]  # nobody is ever there
    return Tables(rest, np.zeros(len(rows)), np.ones(rows.shape[:2]), 0)


def gridworld(rng: np.random.Generator) -> Tables:
    """The 5×5 gridworld; nothing about it is drawn."""
    blocked = {(2, y, 3, y) for y in (0, 1, 2)} | {(3, y, 4, y) for y in (2, 3)}
    blocked |= {(x2, y2, x1, y1) for x1, y1, x2, y2 in blocked}
    rows = np.zeros((25, 4, 25))
    for s in range(25):
        x, y = s % 5, s // 5
        for direction, (dx, dy) in enumerate(MOVES):
            there = (x + dx, y + dy)
            inside = 0 <= there[0] < 5 and 0 <= there[1] < 5 and (x, y, *there) not in blocked
            after = there[0] + 5 * there[1] if inside else s
            for a in range(4):
                rows[s, a, after] += (0.75, 0.1, 0.05, 0.1)[(direction - a) % 4]
    return _with_goal(rows, 24)


def wet_chicken(rng: np.random.Generator) -> Tables:
    """The river; x is how near the waterfall is, y how fast the water runs."""
    size, turbulence, speed = 5, 3.5, 3.0
    actions = ((0, 0), (-1, 0), (-2, 0), (0, -1), (0, 1))  # drift, hold, paddle back, left, right
    rows = np.zeros((size * size, len(actions), size * size))
    for x, y, (a, (dx, dy)) in ((x, y, act) for x in range(size) for y in range(size) for act in enumerate(actions)):
        flow = speed * y / size
        spread = turbulence - flow
        low, side = x + dx + flow - spread, min(max(y + dy, 0), size - 1)
        ends = [-np.inf, *(np.arange(1, size) - 0.5), size - 0.5]  # cells 0 .. 4, all below the first one on land
        upto = np.clip((np.array(ends) - low) / (2 * spread), 0, 1)
        for near in range(size):
            rows[x * size + y, a, near * size + side] += upto[near + 1] - upto[near]
        rows[x * size + y, a, 0] += 1 - upto[-1]  # over the waterfall
    return Tables(rows, np.arange(size * size) // size, np.zeros(rows.shape[:2]), 0)


def resource_gathering(rng: np.random.Generator) -> Tables:
    """The grid with gold, a gem and two enemies; a state is a place and what is carried."""
    home, gold, gem, enemies = (4, 2), (0, 2), (1, 4), ((0, 3), (1, 2))
    rows, ending = np.zeros((100, 4, 100)), np.full((100, 4), -1.0)
    for s in range(100):
        place, carried = divmod(s, 4)
        for a, (dx, dy) in enumerate(MOVES):
            x, y = (min(max(each, 0), 4) for each in (place // 5 + dx, place % 5 + dy))
            holds = carried | (1 if (x, y) == gold else 0) | (2 if (x, y) == gem else 0)
            struck = 0.1 if (x, y) in enemies else 0.0
            if (x, y) == home and holds:
                ending[s, a] = holds.bit_count()
            else:
                rows[s, a, 4 * (5 * x + y) + holds] = 1 - struck
    return Tables(rows, np.zeros(100), ending, 4 * (5 * home[0] + home[1]))


WORLDS: dict[str, Callable[[np.random.Generator], Tables]] = {
    "random MDPs": random_mdp,
    "gridworld": gridworld,
    "wet chicken": wet_chicken,
    "resource gathering": resource_gathering,
}


def baseline(tables: Tables, share: float, rng: np.random.Generator) -> np.ndarray:
    """A policy that is worth this share of the way from random to the optimum, or a little less."""
    rows, reward, first = tables.rows, tables.reward, tables.first
    S, A = reward.shape
    best = certeq.solve(certeq.Rows(rows), reward, DISCOUNT)
    q = reward + DISCOUNT * rows @ best.values

    def worth(policy: np.ndarray) -> float:
        chain = np.einsum("sa,san->sn", policy, rows)
        return float(np.linalg.solve(np.eye(S) - DISCOUNT * chain, (policy * reward).sum(axis=1))[first])

    policy = np.full((S, A), 1 / A)
    low, high = worth(policy), float(best.values[first])
    warmth, span = 1e6, max(float(np.ptp(q)), 1e-9)
    soft = np.eye(A)[q.argmax(axis=1)]
    while worth(soft) > low + (1 + share) / 2 * (high - low):
        warmth *= 0.9
        scaled = np.exp(warmth / span * (q - q.max(axis=1, keepdims=True)))
        soft = scaled / scaled.sum(axis=1, keepdims=True)
    while worth(soft) > low + share * (high - low):
        state = rng.integers(S)
        soft[state, q[state].argmax()] *= 0.9
        soft[state] /= soft[state].sum()
    return soft


def middle_of_the_river(err: float = 0.1) -> np.ndarray:
    """Scholl and others' baseline for the wet chicken."""
    policy = np.full((25, 5), err / 5)
    for s in range(25):
        x, y = divmod(s, 5)
        aside = 4 if y < 2 else 3
        policy[s, 2 if x > 2 else aside if y != 2 else x] += 1 - err  # drift at the top, hold next, then paddle back
    return policy
