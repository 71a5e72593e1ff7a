"""Are the cells that ``certeq.read`` chooses good ones? ``python -m benchmarks.cells [SEED [DATA_SETS]]``.

Raw numbers come from continuous simulators: the bundled trial's and the paper's tumor, a machine and a drug
(``certeq.worlds.numeric``). The default choice of cells is set beside every column cut into so many quantiles, with all
else as ``certeq.learn`` has it, and each policy is valued in the simulator, for as long as was watched and for longer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import certeq
from certeq.worlds import examples, numeric
from certeq.worlds.tumor_model import COLUMNS, TumorModel, trial

CUTS = (None, 2, 3, 4, 6, 8, 12)
STEPS = 30  # that are watched
Follow = Callable[[Any, int], float]


def tumor(settings: dict[str, Any], chance: float, data_sets: int, seed: int) -> tuple[list[pl.DataFrame], Follow]:
    """Trials of 50 patients, and how to value a policy."""
    model = TumorModel(**settings)
    trials = [trial(treatment_probability=chance, rng=(seed, k), **settings) for k in range(data_sets)]
    names = ("patient", "month", *COLUMNS, "treat", "reward")

    def follow(policy: Any, steps: int) -> float:
        random = np.random.default_rng(seed)
        state, total = model.start(300, random), 0.0
        for t in range(steps):
            state, reward = model.step(state, _advised(policy, COLUMNS, state, 0), random)
            total += 0.99**t * reward.mean()
        return float(total)

    return [pl.DataFrame({name: rows[name] for name in names}) for rows in trials], follow


def square(name: str, rows: int, data_sets: int, seed: int) -> tuple[list[pl.DataFrame], Follow]:
    """Logs of points that move at random, and how to value a policy."""
    world = numeric.simulator(name)

    def log(random: np.random.Generator) -> pl.DataFrame:
        n, parts = rows // STEPS, []
        point = world.start(n, random)
        for t in range(STEPS + 1):
            action = random.integers(len(world.actions), size=n)
            after, reward = world.step(point, action, numeric.luck(n, random))
            parts.append(
                pl.DataFrame({"episode": np.arange(n), "time": t, "action": action, "reward": reward}).with_columns(
                    **{column: pl.Series(point[:, j]) for j, column in enumerate(world.columns)}
                )
            )
            point = after
        return pl.concat(parts)

    def follow(policy: Any, steps: int) -> float:
        random = np.random.default_rng(seed)
        point, total = world.start(1000, random), 0.0
        for t in range(steps):
            action = _advised(policy, world.columns, point, 0)
            point, reward = world.step(point, action, numeric.luck(len(point), random))
            total += world.discount**t * reward.mean()
        return float(total)

    return [log(np.random.default_rng((seed, k))) for k in range(data_sets)], follow


def _advised(policy: Any, columns: tuple[str, ...], state: Any, otherwise: int) -> Any:
    """The advice, and something else where there is none."""
    action = np.array([int(name) for name in policy.action_names])
    advised = policy.apply(dict(zip(columns, state.T, strict=True))).action
    return np.where(advised >= 0, action[advised], otherwise)


def main(seed: int = 1, data_sets: int = 10) -> None:
    """Print a table for each world."""
    worlds = {
        "the bundled trial's design": (tumor(examples.MODEL, 0.25, data_sets, seed), COLUMNS, 0.99),
        "the same, a coin": (tumor(examples.MODEL, 0.5, data_sets, seed), COLUMNS, 0.99),
        "the paper's tumor": (tumor({}, 0.5, data_sets, seed), COLUMNS, 0.99),
    } | {
        f"{name}, {rows:,} rows": (square(name, rows, data_sets, seed), world.columns, world.discount)
        for name in ("machine", "dose")
        for rows in (1_200, 6_000)
        for world in [numeric.simulator(name)]
    }
    for title, ((tables, follow), columns, discount) in worlds.items():
        print(f"\n{title}: worth over {STEPS} and over 200 steps, mean (least) of {data_sets} data sets; states")
        for cut in CUTS:
            found = []
            for table in tables:
                said: Any = {"episode": table.columns[0], "time": table.columns[1], "action": table.columns[-2]}
                if "action" in table.columns:
                    said["action"] = "action"
                batch = certeq.read(table, state=list(columns), reward="reward", ends="never", bins=cut, **said)
                policy = certeq.learn(batch, discount=discount).policy
                found.append((follow(policy, STEPS), follow(policy, 200), batch.n_states))
            near, far, states = np.array(found).T
            words = "chosen" if cut is None else f"{cut} each"
            print(
                f"  {words:8} {near.mean():8.2f} ({near.min():.2f}) {far.mean():8.2f} ({far.min():.2f}) "
                f"{np.median(states):6.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
