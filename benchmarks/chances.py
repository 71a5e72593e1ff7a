"""From which chance on one action should be advised alone? See decision 17.

``uv run python -m benchmarks.chances SEED DATA_SETS`` prints, for each world and each limit, over states where there is
a choice: the share in which one action is advised alone, how often that is the wrong one and what it loses there, what
taking the best guess would lose in the other states, and how often the set holds a best action.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

import certeq
from certeq.learning.sets import likely

LIMITS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
WORLDS = {  # name: environment, episodes
    "river swim": ("river_swim", (10, 50)),
    "random chain": ("random_chain", (10, 50)),
    "grid": ("grid", (10, 50)),
    "loop": ("loop", (10, 50)),
}
LENGTH, NOISE = 19, 0.5


def main(seed: int, data_sets: int) -> None:
    print("world episodes limit | alone wrong loss | open: best guess loses, worst of the set loses | set holds best")
    total: dict[float, list[list[float]]] = {limit: [] for limit in LIMITS}
    for name, (world, sizes) in WORLDS.items():
        for episodes in sizes:
            truth = certeq.environment(world)
            best = certeq.solve(truth.transition, truth.reward, truth.discount)
            lost = (best.values[:, None] - best.action_values) / np.ptp(best.action_values)  # (S, A)
            rng = np.random.default_rng([seed, len(name), episodes])
            kept: dict[float, list[list[float]]] = {limit: [] for limit in LIMITS}
            for number in range(data_sets):
                rows = certeq.sampling.trajectories(truth, episodes=episodes, length=LENGTH, rng=rng)
                rows = replace(rows, reward=rows.reward + NOISE * rng.standard_normal(len(rows)))
                learned = certeq.learn(rows, discount=truth.discount, draws=300, rng=number)
                policy = learned.policy
                if policy.chances is None:
                    continue
                for limit in LIMITS:
                    among = likely(policy.chances, policy.actions, limit)
                    for s in np.flatnonzero(policy.runner_up()[0] >= 0):
                        a, alone = policy.actions[s], among[s].sum() == 1
                        open_loss = (np.nan, np.nan) if alone else (lost[s, a], lost[s, among[s]].max())
                        right = bool(best.tied[s, a])
                        told = (float(alone), float(not right) if alone else np.nan, lost[s, a] if alone else np.nan)
                        kept[limit].append([*told, *open_loss, float(best.tied[s, among[s]].any())])
            for limit in LIMITS:
                print(f"{name:13} {episodes:3} {limit:4}", *_means(kept[limit]), flush=True)
                total[limit] += kept[limit]
    for limit in LIMITS:
        print(f"{'all':17} {limit:4}", *_means(total[limit]))


def _means(lines: list[list[float]]) -> list[str]:
    table = np.array(lines)
    with np.errstate(invalid="ignore"):
        known = ~np.isnan(table)
        means = np.where(known, table, 0).sum(axis=0) / known.sum(axis=0)
    return [f"{mean:7.3f}" for mean in means]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
