"""Do we call advice better that is worse, where competent people acted on numbers that the states cut into cells?

``uv run python -m benchmarks.guided SEED DATA_SETS [WORLD ...]`` logs the worlds of numbers by people who take the best
action of a fine table but in a share of their decisions, and learns with default settings. It prints, for each world,
share and number of episodes: how often the check says that people acted on more than the states hold; what the advice
and the people are worth in the simulator, over the decisions that the report speaks of; how often advice is worth less;
in how many data sets the report gives a chance of 90% or more that it is better, and in how many of them it is worse;
and the same without the check. ``python -m benchmarks.guided values SEED DATA_SETS [WORLD ...]`` only values the advice
and the people, over 60 decisions, with the cells that the rows choose and with eight for each column.

``python -m benchmarks.guided remembered SEED DATA_SETS`` asks the same of the school of `certeq.worlds.messy`, whose
teachers know their pupils better than the log does, and of one whose teachers toss coins.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import certeq
from benchmarks.outside.deep import fine
from certeq.data.batch import Batch
from certeq.data.guided import guided, strongest
from certeq.questions import sure
from certeq.questions.asking import ADVICE, RECORDED
from certeq.worlds.messy import SCHOOL
from certeq.worlds.numeric import SIMULATORS, Act, Simulator, erring, log_points, value_points

SHARES = (0.1, 0.3, 1.0)
EPISODES = (20, 60, 200)
POINTS = 1000
SURE = 0.9


def value(world: Simulator, act: Act, steps: int) -> float:
    """Mean return over so many decisions, from where episodes of the log begin."""
    rng = np.random.default_rng(0)
    return value_points(world, act, rng.random((POINTS, 2)), steps, rng)


def logged(name: str, share: float, episodes: int, seed: int, d: int) -> tuple[Act, dict[str, np.ndarray], Any]:
    """People who err in a share of their decisions, what they logged, and whose luck it was."""
    world, rng = SIMULATORS[name], np.random.default_rng([seed, episodes, d])
    people = erring(fine(name), share, len(world.actions), rng)
    return people, log_points(world, people, episodes, rng), rng


def read(world: Simulator, table: dict[str, np.ndarray], bins: int | None = None) -> Batch:
    columns = {"state": list(world.columns), "action": "action", "reward": "reward"}
    return certeq.read(table, **columns, episode="episode", time="time", ends="never", bins=bins)


def following(world: Simulator, policy: certeq.Policy, rng: np.random.Generator) -> Act:
    """The advice; where there is none, anything."""
    names = np.array([*map(int, policy.action_names), 0])

    def act(points: np.ndarray) -> np.ndarray:
        at = policy.apply(dict(zip(world.columns, points.T, strict=True))).action
        return np.where(at < 0, rng.integers(len(world.actions), size=len(points)), names[at])

    return act


def values(seed: int, data_sets: int, names: list[str]) -> None:
    """Print what the advice is worth, and in how many data sets that is less than what people get."""
    print("world, share of errors, episodes | cells as chosen: states, value, worse | eight each | people")
    for name, share, episodes in product(names or SIMULATORS, SHARES, (*EPISODES, 1000)):
        world, found = SIMULATORS[name], []
        for d in range(data_sets):
            people, table, rng = logged(name, share, episodes, seed, d)
            done = value(world, people, 60)
            for bins in (None, 8):
                batch = read(world, table, bins)
                policy = certeq.learn(batch, draws=0, discount=world.discount).policy
                advice = value(world, following(world, policy, rng), 60)
                found.append((batch.n_states, advice, advice < done, done))
        (states, chosen, worse, people_get), (_, eight, worse_too, _) = np.reshape(found, (-1, 2, 4)).mean(axis=0)
        print(
            f"{name}, {share:g}, {episodes} | {states:.0f}, {chosen:.2f}, {worse:.2f} | {eight:.2f}, {worse_too:.2f} | "
            f"{people_get:.2f}",
            flush=True,
        )


def remembered(seed: int, data_sets: int) -> None:
    """Print how often it is seen that people knew more, now or one row before, and what would be said without that."""
    coin = replace(SCHOOL, behavior=lambda now, random: random.integers(3, size=len(now["skill"])))
    told = "seen, only one row before | advice, people | worse | said to be better, and worse | unchecked"
    print(f"teachers, pupils | {told}")
    for (who, world), cases in product({"who know": SCHOOL, "who toss coins": coin}.items(), (60, 300)):
        found, people = [], world.value(None)
        for d in range(data_sets):
            batch = certeq.read(world.table(seed + d, cases), **world.said)
            seen = strongest(guided(batch))
            findings = certeq.examine(certeq.learn(batch, discount=world.discount))
            advice, chance = world.value(findings.learned.policy), sure.chance(findings)
            unchecked = findings.posterior.difference(ADVICE, RECORDED).better >= SURE
            only = seen is not None and seen.before
            found.append((seen is not None, only, advice, chance is not None and chance >= SURE, unchecked))
        some, only, advice, said, unchecked = np.array(found, dtype=float).T
        print(
            f"{who}, {cases} | {some.mean():.2f}, {only.mean():.2f} | {advice.mean():.1f}, {people:.1f} | "
            f"{_claims(advice < people, said, unchecked)}",
            flush=True,
        )


def _claims(worse: np.ndarray, said: np.ndarray, unchecked: np.ndarray) -> str:
    """How often advice is worse, and how often it was said to be better, and worse, with the check and without."""
    told = (f"{claimed.sum():.0f}, {(claimed * worse).sum():.0f}" for claimed in (said, unchecked))
    return f"{worse.mean():.2f} | {' | '.join(told)}"


def main(seed: int, data_sets: int, names: list[str]) -> None:
    """Print the table."""
    print(
        "world, share of errors, episodes | guided | advice, people | worse | said to be better, and worse | unchecked"
    )
    for name, share, episodes in product(names or SIMULATORS, SHARES, EPISODES):
        world, found = SIMULATORS[name], []
        for d in range(data_sets):
            people, table, rng = logged(name, share, episodes, seed, d)
            findings = certeq.examine(certeq.learn(read(world, table), discount=world.discount))
            told, advised = findings.posterior, following(world, findings.learned.policy, rng)
            values = [value(world, act, told.watched or 200) for act in (advised, people)]
            noticed = bool(findings.learned.summary.people)
            chance = sure.chance(findings)
            thin = told.thin > sure.THIN or (findings.returns is not None and findings.returns.agrees is False)
            unchecked = not thin and told.difference(ADVICE, RECORDED).better >= SURE
            found.append((noticed, *values, chance is not None and chance >= SURE, unchecked))
        noticed, advice, people_get, said, unchecked = np.array(found, dtype=float).T
        print(
            f"{name}, {share:g}, {episodes} | {noticed.mean():.2f} | {advice.mean():.2f}, "
            f"{people_get.mean():.2f} | {_claims(advice < people_get, said, unchecked)}",
            flush=True,
        )


def ask(words: list[str]) -> None:
    """Do what the words on the command line say."""
    asked = {"values": values, "remembered": remembered}
    job, rest = (asked[words[0]], words[1:]) if words[0] in asked else (main, words)
    seed, data_sets, *names = rest
    job(int(seed), int(data_sets), *([] if job is remembered else [names]))


if __name__ == "__main__":
    ask(sys.argv[1:])
