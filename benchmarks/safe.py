"""Advice that is never confidently worse, beside the methods of others for it; see decision 15.

``uv run --extra gym --group bench python -m benchmarks.safe SEED DATA_SETS`` prints, for each world and behavior of
`benchmarks.avoided`, how much of the way from the behavior to the optimum each method goes: its mean over data sets,
the mean of the worst twentieth of them, and the share in which it is worth less than the behavior. All methods get the
same rows, estimate rewards and behavior from them, and act at random in states that were never seen.

Opponents and their constants are those of `benchmarks.opponents`.
"""

from __future__ import annotations

import sys

import numpy as np

import certeq
from benchmarks.avoided import settings
from benchmarks.opponents import OPPONENTS, able, check, follow, known
from certeq.learning.case import Case, Data
from certeq.learning.rules import Rules

WORST = 0.05


def plans(data: Data, discount: float) -> dict[str, np.ndarray]:
    """What each method does, as probabilities ``(S, A)``."""
    rules = Rules(discount=discount)
    cases = {"default": Case(data, rules), "no regularizer": Case(data, rules).under("none")}
    cases["plain"] = Case(data, Rules(discount=discount, regularizer="none", min_share=0))
    found = {name: follow(case.advise().policy, data.counts.visits) for name, case in cases.items()}
    given = known(data.rows("Opponents read rows"), discount)
    for name in able(*given.visits.shape):
        method, constants = OPPONENTS[name]
        found |= {f"{name} {constant:g}": method(given, constant) for constant in constants}
    return found


def main(seed: int, data_sets: int) -> None:
    """Print the table."""
    print("world: method, mean, worst 5 %, share worse than the behavior")
    for number, (where, world, behavior, log) in enumerate(settings()):
        truth, S = (world.transition, world.reward, world.discount), world.n_states
        start = np.full(S, 1 / S) if world.start is None else world.start
        low, high = (float(start @ each) for each in (certeq.evaluate(*truth, behavior), certeq.solve(*truth).values))
        found: dict[str, list[float]] = {}
        for d in range(data_sets):
            rows = log(np.random.default_rng([seed, number, d]))
            data = Data.of(rows)
            if d == 0:
                check(known(rows, float(world.discount)))
            for name, policy in plans(data, float(world.discount)).items():
                worth = float(start @ certeq.evaluate(*truth, policy))
                found.setdefault(name, []).append((worth - low) / (high - low))
        print(f"\n{where}")
        for name, gains in found.items():
            way = np.sort(gains)
            worst = way[: max(1, int(WORST * len(way)))].mean()
            print(f"  {name:16s} {way.mean():7.3f} {worst:8.3f} {np.mean(way < -1e-9):6.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
