"""What it does to advice that people's habits have a say; see decision 15.

``uv run --extra gym --group bench python -m benchmarks.avoided SEED DATA_SETS`` prints tables of the decision: for each
world, the value from the start of what is advised under several rules, and the share of data sets in which it is worth
less than the behavior. ``python -m benchmarks.avoided numbers SEED DATA_SETS`` does the same in the worlds of numbers,
with the cells that the rows choose, over 60 decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

import certeq
from benchmarks import guided
from benchmarks.opponents import follow
from benchmarks.outside import spibb_suite
from certeq.learning import case, proven
from certeq.learning.case import Case, Data
from certeq.learning.rules import Rules
from certeq.model import habits, unvisited
from certeq.worlds import from_table
from certeq.worlds.numeric import SIMULATORS

NEVER = 1e9  # standard errors that nothing reaches


class Rule(NamedTuple):
    """Who may be advised what."""

    share: float = 0.2
    likely: Callable[[np.ndarray], np.ndarray] = habits.shares  # how likely people were to take each action
    careful: float = proven.CAREFUL
    together: float = proven.SURE  # standard errors of all states together that let in what people seldom did

    def put_in_force(self) -> None:
        """Let all advice from now on go by this rule."""
        unvisited.shares = proven.shares = self.likely
        proven.CAREFUL = self.careful
        case.SURE = self.together


def tries(visits: np.ndarray) -> np.ndarray:
    """How often each action was taken: every state by itself."""
    return visits / np.maximum(visits.sum(axis=-1, keepdims=True), 1)


RULES = {
    "any": Rule(0.0),
    "a fifth of the tries": Rule(0.2, tries, 0.0, NEVER),
    "a fifth, by habits": Rule(0.2, careful=0.0, together=NEVER),
    "a half, by habits": Rule(0.5, careful=0.0, together=NEVER),
    "each state alone": Rule(together=NEVER),
    "default": Rule(),
}
PITS, GOAL = {5, 7, 11}, 15


class Setting(NamedTuple):
    """A world and how it is logged."""

    name: str
    world: certeq.MDP
    behavior: np.ndarray  # (S, A)
    log: Callable[[np.random.Generator], certeq.Batch]


def settings() -> Iterator[Setting]:
    """Worlds of Gymnasium and of ours, logged by people who know the best action and deviate, or who do not.

    Those who do not have habits that differ from state to state, or one for all states, and none has to do with what
    is good. Then worlds of SPIBB's.
    """
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
            yield Setting(
                f"{name}, {deviations:.0%}, {episodes}",
                world,
                behavior,
                partial(_log, world, episodes, length, behavior),
            )
    for name, world, length, sizes in (("pits", floor, 60, (60, 200)), ("lake", small, 100, (100, 1000))):
        S, A, rng = world.n_states, world.n_actions, np.random.default_rng(7)
        apart, alike = (
            rng.dirichlet(np.ones(A), size=S),
            np.tile(0.5 / (A - 1) + (0.5 - 0.5 / (A - 1)) * np.eye(A)[0], (S, 1)),
        )
        for words, behavior in (("habits apart", apart), ("one habit", alike)):
            for episodes in sizes:
                yield Setting(
                    f"{name}, {words}, {episodes}", world, behavior, partial(_log, world, episodes, length, behavior)
                )
    for name in ("random MDPs", "gridworld", "wet chicken", "resource gathering"):
        known = spibb_suite.world(name, np.random.default_rng(0))
        for size in known.sizes:
            yield Setting(f"{name}, {size}", known.truth, known.behavior, partial(known.log, size))


def _log(world: certeq.MDP, episodes: int, length: int, behavior: np.ndarray, rng: np.random.Generator) -> certeq.Batch:
    return certeq.sampling.trajectories(world, episodes, length, behavior=behavior, rng=rng)


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
    print(" | ".join(["world", "behavior", "optimum", *RULES]))
    for number, (name, world, behavior, log) in enumerate(settings()):
        truth, S = (world.transition, world.reward, world.discount), world.n_states
        start = np.full(S, 1 / S) if world.start is None else world.start
        worth, best = float(start @ certeq.evaluate(*truth, behavior)), float(start @ certeq.solve(*truth).values)
        found: dict[str, list[float]] = {rule: [] for rule in RULES}
        for d in range(data_sets):
            data = Data.of(log(np.random.default_rng([seed, number, d])))
            for words, rule in RULES.items():
                rule.put_in_force()
                advice = Case(data, Rules(discount=world.discount, min_share=rule.share)).advise().policy
                found[words].append(float(start @ certeq.evaluate(*truth, follow(advice, data.counts.visits))))
        told = (f"{np.mean(v):.3f} ({np.mean(np.array(v) < worth - 1e-9):.2f})" for v in found.values())
        print(" | ".join([name, f"{worth:.3f}", f"{best:.3f}", *told]), flush=True)


def numbers(seed: int, data_sets: int) -> None:
    """People who err in a share of their decisions, in worlds where two numbers are the state."""
    print(" | ".join(["world, errors, episodes", "people", *RULES]))
    for name, share, episodes in product(SIMULATORS, (0.1, 0.3, 0.6, 1.0), (20, 60, 200)):
        world, found = SIMULATORS[name], []
        for d in range(data_sets):
            people, table, rng = guided.logged(name, share, episodes, seed, d)
            batch, worth = guided.read(world, table), [guided.value(world, people, 60)]
            for rule in RULES.values():
                rule.put_in_force()
                policy = certeq.learn(batch, draws=0, discount=world.discount, min_share=rule.share).policy
                worth.append(guided.value(world, guided.following(world, policy, rng), 60))
            found.append(worth)
        worth, worse = np.mean(found, axis=0), np.mean(np.array(found) < np.array(found)[:, :1], axis=0)
        told = (f"{each:.2f} ({less:.2f})" for each, less in zip(worth[1:], worse[1:], strict=True))
        print(" | ".join([f"{name}, {share:g}, {episodes}", f"{worth[0]:.2f}", *told]), flush=True)


if __name__ == "__main__":
    number = sys.argv[1] == "numbers"
    (numbers if number else main)(*map(int, sys.argv[1 + number :]))
