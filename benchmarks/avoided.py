"""What a least share of tries does to advice from logs of competent and of random behavior; see decision 15.

``uv run --extra gym --group bench python -m benchmarks.avoided SEED DATA_SETS`` prints the table of the decision: for
each world, the value from the start of what is advised under several rules, and the share of data sets in which it is
worth less than the behavior.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

import certeq
from benchmarks.opponents import follow
from benchmarks.outside import spibb_suite
from certeq.learning import proven
from certeq.learning.case import Case, Data
from certeq.learning.rules import Rules
from certeq.worlds import from_table

ALONE = 1e9  # standard errors that nothing reaches: the share has the only say
RULES = {"any": (0.0, ALONE), "fifth": (0.2, ALONE), "half": (0.5, ALONE), "proven": (0.2, 2.0)}
PITS, GOAL = {5, 7, 11}, 15


class Setting(NamedTuple):
    """A world and how it is logged."""

    name: str
    world: certeq.MDP
    behavior: np.ndarray  # (S, A)
    log: Callable[[np.random.Generator], certeq.Batch]


def settings() -> Iterator[Setting]:
    """Worlds of Gymnasium and of ours, logged by people who know the best action and deviate; and two of SPIBB's."""
    import gymnasium

    cliff = from_table(gymnasium.make("CliffWalking-v1", is_slippery=True), discount=0.99)
    small = from_table(gymnasium.make("FrozenLake-v1", is_slippery=True), discount=0.99)
    large = from_table(gymnasium.make("FrozenLake8x8-v1", is_slippery=True), discount=0.99)
    river, floor = certeq.environment("river_swim"), pits()
    for name, world, length, cells in (
        ("cliff", cliff, 200, ((0.1, 30), (0.3, 30), (1.0, 100))),
        ("pits", floor, 60, ((0.2, 60), (0.2, 20), (0.5, 60), (1.0, 60), (1.0, 200))),
        ("lake", small, 100, ((0.2, 100), (0.7, 100), (1.0, 100), (1.0, 1000))),
        ("lake8", large, 200, ((0.2, 100), (0.2, 300), (1.0, 500))),
        ("river", river, 20, ((0.1, 10), (1.0, 10), (1.0, 50))),
    ):
        A = world.n_actions
        best = np.eye(A)[certeq.solve(world.transition, world.reward, world.discount).policy]
        for deviations, episodes in cells:
            behavior = deviations / A + (1 - deviations) * best
            log = partial(certeq.sampling.trajectories, world, episodes, length, behavior=behavior)
            yield Setting(f"{name}, {deviations:.0%}, {episodes}", world, behavior, lambda rng, log=log: log(rng=rng))
    for name in ("wet chicken", "resource gathering"):
        known = spibb_suite.world(name, np.random.default_rng(0))
        for size in known.sizes:
            yield Setting(f"{name}, {size}", known.truth, known.behavior, partial(known.log, size))


def pits() -> certeq.MDP:
    """A slippery floor of 4 x 4 tiles with three pits that cost 1, a goal that pays 1, and steps that cost a little."""
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
    for s in range(16):
        table[s] = {}
        for a in range(4):
            if s in PITS or s == GOAL:
                table[s][a] = [(1.0, s, 0.0, True)]
                continue
            table[s][a] = []
            for b, chance in ((a, 0.8), ((a + 1) % 4, 0.1), ((a + 3) % 4, 0.1)):
                row, column = (min(max(x + d, 0), 3) for x, d in zip(divmod(s, 4), moves[b], strict=True))
                after = 4 * row + column
                pay = -1.0 if after in PITS else 1.0 if after == GOAL else -0.02
                table[s][a].append((chance, after, pay, after in PITS or after == GOAL))
    return from_table(table, discount=0.97, start=np.eye(16)[0])


def main(seed: int, data_sets: int) -> None:
    print("world behavior optimum", *RULES)
    for number, (name, world, behavior, log) in enumerate(settings()):
        truth, S = (world.transition, world.reward, world.discount), world.n_states
        start = np.full(S, 1 / S) if world.start is None else world.start
        worth, best = float(start @ certeq.evaluate(*truth, behavior)), float(start @ certeq.solve(*truth).values)
        found: dict[str, list[float]] = {rule: [] for rule in RULES}
        for d in range(data_sets):
            data = Data.of(log(np.random.default_rng([seed, number, d])))
            for rule, (share, proven.SURE) in RULES.items():
                advice = Case(data, Rules(discount=world.discount, min_share=share)).advise().policy
                found[rule].append(float(start @ certeq.evaluate(*truth, follow(advice, data.counts.visits))))
        told = (f"{np.mean(v):.3f} ({np.mean(np.array(v) < worth - 1e-9):.2f})" for v in found.values())
        print(f"{name}: {worth:.3f} {best:.3f}", *told, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
