"""Do we call advice better that is worse, where competent people acted on numbers that the states cut into cells?

``uv run python -m benchmarks.guided SEED DATA_SETS [WORLD ...]`` logs the worlds of numbers by people who take the best
action of a fine table but in a share of their decisions, and learns with default settings. It prints, for each world,
share and number of episodes: how often the check says that people acted on more than the states hold; what the advice
and the people are worth in the simulator, over the decisions that the report speaks of; how often advice is worth less;
in how many data sets the report gives a chance of 90 % or more that it is better, and in how many of them it is worse;
and the same without the check.
"""

from __future__ import annotations

import sys

import numpy as np

import certeq
from benchmarks.outside.deep import Act, Simulator, erring, fine, log
from certeq.questions import sure
from certeq.questions.asking import ADVICE, RECORDED
from certeq.worlds.numeric import SIMULATORS, luck

SHARES = (0.1, 0.3, 1.0)
EPISODES = (20, 60, 200)
POINTS = 1000
SURE = 0.9


def value(world: Simulator, act: Act, steps: int) -> float:
    """Mean return over so many decisions, from where episodes of the log begin."""
    rng = np.random.default_rng(0)
    at, worth = rng.random((POINTS, 2)), 0.0
    for t in range(steps):
        at, paid = world.step(at, act(at), luck(POINTS, rng))
        worth += world.discount**t * float(paid.mean())
    return worth


def main(seed: int, data_sets: int, names: list[str]) -> None:
    """Print the table."""
    print(
        "world, share of errors, episodes | guided | advice, people | worse | said to be better, and worse | unchecked"
    )
    for name in names or SIMULATORS:
        world, best = SIMULATORS[name], fine(name)
        actions = len(world.actions)
        for share in SHARES:
            for episodes in EPISODES:
                found = []
                for d in range(data_sets):
                    rng = np.random.default_rng([seed, episodes, d])
                    people = erring(best, share, actions, rng)
                    table = log(world, people, episodes, rng)
                    columns = {"state": list(world.columns), "action": "action", "reward": "reward"}
                    batch = certeq.read(table, **columns, episode="episode", time="time", ends="never")
                    findings = certeq.examine(certeq.learn(batch, discount=world.discount))
                    policy, told = findings.learned.policy, findings.posterior
                    names = np.array([*map(int, policy.action_names), 0])

                    def advised(points: np.ndarray) -> np.ndarray:
                        at = policy.apply(dict(zip(world.columns, points.T, strict=True))).action  # noqa: B023
                        anything = rng.integers(actions, size=len(points))  # noqa: B023
                        return np.where(at < 0, anything, names[at])  # noqa: B023

                    values = [value(world, act, told.watched or 200) for act in (advised, people)]
                    guided = bool(findings.learned.summary.people)
                    chance = sure.chance(findings)
                    thin = told.thin > sure.THIN or (findings.returns is not None and findings.returns.agrees is False)
                    unchecked = not thin and told.difference(ADVICE, RECORDED).better >= SURE
                    found.append((guided, *values, chance is not None and chance >= SURE, unchecked))
                guided, advice, people_get, said, unchecked = np.array(found, dtype=float).T
                worse = advice < people_get
                print(
                    f"{name}, {share:g}, {episodes} | {guided.mean():.2f} | {advice.mean():.2f}, "
                    f"{people_get.mean():.2f} | {worse.mean():.2f} | {said.sum():.0f}, {(said * worse).sum():.0f} | "
                    f"{unchecked.sum():.0f}, {(unchecked * worse).sum():.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
