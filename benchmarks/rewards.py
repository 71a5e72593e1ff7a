"""Rewards and endings, measured: what advice is worth where rewards come at the end, and where they are noisy.

``python benchmarks/rewards.py ends SEED`` follows a ward of 360 states (reward 1 for who is discharged, 0 for who dies,
both on the last row; a competent behavior) and Gymnasium's FrozenLake and CliffWalking, and prints the true value of
the advice beside those of the behavior, of no regularization and of the best of several discounts in hindsight, with
the largest value that is claimed. ``python benchmarks/rewards.py noise SEED`` adds noise to the rewards of worlds of
the catalogue and prints the loss of each way of pooling over that of none. States without advice keep the behavior.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import certeq
from certeq import Batch, environment, learn, sampling, solve
from certeq.data.positions import Positions
from certeq.model.rewards import POOLS

DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)


class World(NamedTuple):
    """A world whose outcomes pay: the states, and then kinds of endings."""

    rows: Any  # (S, A, S + kinds)
    paid: Any  # (S, A, S + kinds)
    start: Any  # (S,)
    positions: Any
    discount: float
    temper: float  # of the behavior: softer where larger

    @property
    def reward(self) -> Any:
        """What each pair pays on average."""
        return (self.rows * self.paid).sum(axis=-1)

    @property
    def going(self) -> Any:
        """Rows without the endings."""
        return self.rows[..., : len(self.rows)]

    def behavior(self) -> Any:
        """Competent, and sometimes anything."""
        q = solve(self.going, self.reward, self.discount).action_values
        share = np.exp((q - q.max(axis=1, keepdims=True)) / self.temper)
        return 0.95 * share / share.sum(axis=1, keepdims=True) + 0.05 / q.shape[1]

    def value(self, policy: Any) -> float:
        """True value, from the start, of probabilities ``(S, A)``."""
        rows = np.einsum("sa,san->sn", policy, self.going)
        chain = np.eye(len(rows)) - self.discount * rows
        return float(self.start @ np.linalg.solve(chain, (policy * self.reward).sum(axis=1)))

    def log(self, behavior: Any, episodes: int, rng: np.random.Generator, longest: int = 200) -> Batch:
        """Rows of so many episodes."""
        S, A, N = self.rows.shape
        act, go, state = behavior.cumsum(axis=1), self.rows.cumsum(axis=2), rng.choice(S, size=episodes, p=self.start)
        parts, episode = [], np.arange(episodes)
        for _ in range(longest):
            action = (rng.random((len(state), 1)) > act[state]).sum(axis=1).clip(0, A - 1)
            outcome = (rng.random((len(state), 1)) > go[state, action]).sum(axis=1).clip(0, N - 1)
            following = np.where(outcome < S, outcome, -1)
            parts.append((episode, state, action, following, self.paid[state, action, outcome]))
            state, episode = following[following >= 0], episode[following >= 0]
            if not len(state):
                break
        number, state, action, following, reward = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Batch(state, action, following, S, A, reward=reward, episode=number, positions=self.positions)


def ward() -> World:
    """Lactate, pressure, heart rate and age; nothing, fluids, a vasopressor or both; discharged or dead at the end."""
    sizes, A = (6, 6, 5, 2), 4
    cells = np.array(list(product(*map(range, sizes))))
    S = len(cells)
    number = {tuple(cell): s for s, cell in enumerate(cells.tolist())}
    rows, paid = np.zeros((S, A, S + 2)), np.zeros((S, A, S + 2))
    paid[..., S + 1] = 1.0
    for s, (lactate, pressure, rate, old) in enumerate(cells.tolist()):
        sick = lactate / 5 + abs(pressure - 3) / 3 * 0.8 + abs(rate - 2) / 2 * 0.5 + 0.3 * old
        low = pressure < 3
        for a in range(A):
            fluids, vaso = a & 1, a >> 1
            dead = (
                0.002
                + 0.04 * max(0, sick - 1.0) ** 1.6
                + 0.02 * (fluids and pressure >= 4)
                + 0.03 * (vaso and rate >= 4)
            )
            well = 0.22 * max(0, 1 - sick / 0.9) * (0.5 if vaso else 1.0) * (0.8 if fluids else 1.0)
            rises = 0.25 + 0.15 * low - 0.17 * (fluids and low) + 0.1 * (fluids and vaso)
            up = (rises, 0.12 + 0.25 * fluids + 0.35 * vaso, 0.15 + 0.2 * vaso + 0.08 * (lactate >= 3))
            down = (0.20 + 0.15 * (pressure == 3) + 0.12 * (fluids and low), 0.27 - 0.12 * vaso, 0.2 + 0.12 * fluids)
            for moves in product((-1, 0, 1), repeat=3):
                chance = np.prod([(down[k], 1 - up[k] - down[k], up[k])[move + 1] for k, move in enumerate(moves)])
                there = tuple(int(np.clip(c + m, 0, n - 1)) for c, m, n in zip(cells[s], moves, sizes, strict=False))
                rows[s, a, number[*there, old]] += (1 - dead - well) * chance
            rows[s, a, S:] = dead, well
    start = ((cells[:, 0] >= 1) & (cells[:, 0] < 5) & (cells[:, 1] >= 1) & (cells[:, 1] < 4) & (cells[:, 2] >= 1)) + 0.0
    return World(rows, paid, start / start.sum(), Positions(cells, ("line", "line", "line", "label")), 0.99, 0.01)


def table(name: str, columns: int, temper: float, **settings: Any) -> World:
    """A table of Gymnasium's, with one kind of ending for each payment."""
    import gymnasium

    env = gymnasium.make(name, **settings).unwrapped
    P: Any = env.P
    S, A = len(P), len(P[0])
    pays = sorted({r for s in P for a in P[s] for _, _, r, done in P[s][a] if done})
    rows, paid = np.zeros((S, A, S + len(pays))), np.zeros((S, A, S + len(pays)))
    paid[..., S:] = pays
    for s, a in product(range(S), range(A)):
        for p, n, r, done in P[s][a]:
            at = S + pays.index(r) if done else n
            rows[s, a, at] += p
            paid[s, a, at] = r
    start = np.asarray(env.initial_state_distrib, dtype=float)
    return World(rows, paid, start, np.stack(np.divmod(np.arange(S), columns), axis=1), 0.99, temper)


ENDS = {
    "ward": (ward, (100, 300, 1000, 3000, 10000), 3),
    "FrozenLake": (lambda: table("FrozenLake-v1", 4, 0.05), (30, 100, 300, 1000), 20),
    "FrozenLake 8x8": (lambda: table("FrozenLake-v1", 8, 0.05, map_name="8x8"), (100, 300, 1000), 10),
    "CliffWalking": (lambda: table("CliffWalking-v1", 12, 2.0, is_slippery=True), (10, 30, 100), 10),
}


def advice_value(world: World, behavior: Any, found: Any) -> float:
    policy = found.plan.policy
    return world.value(np.where((policy >= 0)[:, None], np.eye(behavior.shape[1])[policy], behavior))


def ends(seed: int, names: list[str]) -> None:
    for number, (name, (build, sizes, repeats)) in enumerate(ENDS.items()):
        if names and name not in names:
            continue
        world = build()
        behavior = world.behavior()
        best = float(world.start @ solve(world.going, world.reward, world.discount).values)
        print(f"{name}: optimum {best:.4f}, behavior {world.value(behavior):.4f}", flush=True)
        for size in sizes:
            found: dict[str, list[tuple[float, float]]] = {}
            for k in range(repeats):
                batch = world.log(behavior, size, np.random.default_rng([seed, number, size, k]))
                for regularizer in ("none", "evidence", "learned_target"):
                    for pool in ("none", "auto"):
                        one = learn(batch, discount=world.discount, regularizer=regularizer, reward_pool=pool)
                        told = advice_value(world, behavior, one), float(one.plan.values.max())
                        found.setdefault(f"{regularizer}, rewards {pool}", []).append(told)
                        assert one.plan.values.max() <= one.case.possible[1] + 1e-6
                for planning in DISCOUNTS:
                    one = learn(batch, discount=world.discount, regularizer="discount", planning_discount=planning,
                                reward_pool="none")  # fmt: skip
                    found.setdefault(f"discount {planning}", []).append((advice_value(world, behavior, one), 0.0))
            means = {way: np.mean(each, axis=0) for way, each in found.items()}
            tuned = max(means[f"discount {planning}"][0] for planning in DISCOUNTS)
            line = "; ".join(f"{w} {v:.4f} ({c:.2f})" for w, (v, c) in means.items() if not w.startswith("discount"))
            print(f"  {size} episodes: tuned discount {tuned:.4f}; {line}", flush=True)


def noise(seed: int, names: list[str]) -> None:
    worlds = {"random_chain": {}, "river_swim": {}, "loop": {}, "stay_or_leave": {}, "grid": {}}
    for number, (name, settings) in enumerate(worlds.items()):
        if names and name not in names:
            continue
        for n, share in product((60, 300, 1500), (0.0, 0.3, 1.0)):
            lost: dict[str, list[float]] = {pool: [] for pool in POOLS}
            for k in range(30):
                rng = np.random.default_rng([seed, number, n, int(10 * share), k])
                drawn = {"rng": rng} if name in ("random_chain", "grid") else {}
                truth = environment(name, **settings, **drawn)
                batch = sampling.uniform_pairs(truth, n, rng=rng)
                level = share * float(np.std(truth.reward))
                reward = batch.reward + level * rng.standard_normal(n)
                batch = certeq.Batch(batch.state, batch.action, batch.next_state, truth.n_states, truth.n_actions,
                                     reward=reward, positions=truth.positions)  # fmt: skip
                best = solve(truth.transition, truth.reward, truth.discount).values.mean()
                for pool in POOLS:
                    rules = {"discount": float(truth.discount), "reward_pool": pool, "unvisited": "target"}
                    policy = learn(batch, regularizer="learned_target", **rules).plan.policy
                    values = certeq.evaluate(truth.transition, truth.reward, truth.discount, policy)
                    lost[pool].append(float(best - values.mean()))
            base = np.mean(lost["none"])
            told = ", ".join(f"{pool} {np.mean(each) / base if base else 1:.2f}" for pool, each in lost.items())
            print(f"{name}, {n} rows, noise {share}: loss of none {base:.4g}; {told}", flush=True)


if __name__ == "__main__":
    {"ends": ends, "noise": noise}[sys.argv[1]](int(sys.argv[2]), sys.argv[3:])
