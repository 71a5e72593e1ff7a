"""How processor time grows with states, actions, strengths, data sets and rows: slopes of its logarithm.

    uv run --group bench python -m benchmarks.scaling

Three kinds of planning, in one thread: sweeps of small models, with the loss in the truth (from 10 states, 2 actions,
12 strengths and 500 data sets); plans of medium ones along strengths (from 256 states, 2 actions, 24 strengths and 4
data sets, 5 visits to a pair on average); and one sparse model (from 20,000 states, 4 actions, 10 successors,
anywhere). Counting is from Parquet, as in ``counting``, by all threads. Each size takes its turn in every round; what
is told is the least, as others on the machine only ever add. It takes about a minute, and writes ``scaling.csv``
beside this file.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import certeq
from benchmarks import counting, large
from certeq.data.counting import count
from certeq.worlds.random_chain import random_chain

DISCOUNT, ROUNDS = 0.99, 5
Run = Callable[[], Any]


def drawn(states: int, actions: int, data_sets: int) -> tuple[certeq.MDP, np.ndarray]:
    """Random worlds and counts of 5 visits to a pair."""
    rng = np.random.default_rng(1)
    world = random_chain(n_states=states, n_actions=actions, size=data_sets, rng=rng)
    return world, rng.multinomial(rng.poisson(5, size=(data_sets, states, actions)), world.transition.dense())


def swept(states: int = 10, actions: int = 2, strengths: int = 12, data_sets: int = 500) -> Run:
    world, counts = drawn(states, actions, data_sets)
    how = {"regularizer": "uniform_prior", "strength": np.linspace(0, 0.95, strengths), "engine": "numba", "threads": 1}
    return lambda: certeq.sweep(counts, world.reward, DISCOUNT, truth=world, **how)


def planned(states: int = 256, actions: int = 2, strengths: int = 24, data_sets: int = 4) -> Run:
    world, counts = drawn(states, actions, data_sets)
    how = {"regularizer": "uniform_prior", "strength": np.linspace(0, 0.95, strengths), "engine": "numba", "threads": 1}
    return lambda: certeq.plan(counts[:, None], world.reward[:, None], DISCOUNT, **how)


def sparse(states: int = 20_000, actions: int = 4) -> Run:
    rows, reward = large.world(states, "garnet", A=actions)
    return lambda: certeq.solve(rows, reward, DISCOUNT, method="inexact_policy_iteration", threads=1)


def counted(rows: int, folder: Path, reward: bool) -> Run:
    path = folder / f"{rows}-{reward}.parquet"
    counting.write(path, rows, reward=reward, text=False)
    return lambda: count(path, fingerprint=False)


def least(runs: list[Run]) -> np.ndarray:
    """Processor seconds of each, the least of some rounds after one that warms up."""
    times = np.empty((ROUNDS + 1, len(runs)))
    for line in times:
        for i, run in enumerate(runs):
            start = process_time()
            run()
            line[i] = process_time() - start
    return times[1:].min(axis=0)


def curves(folder: Path) -> dict[str, tuple[tuple[int, ...], Callable[[int], Run]]]:
    """What grows, its sizes, and what is run at each."""
    of = {"small sweeps": swept, "medium plans": planned, "a sparse plan": sparse}
    sizes = {
        "small sweeps": {
            "states": (5, 10, 20, 32),
            "actions": (2, 4, 8, 16, 32),
            "strengths": (3, 6, 12, 24, 48),
            "data_sets": (125, 250, 500, 1_000, 2_000),
        },
        "medium plans": {
            "states": (64, 128, 256, 512),
            "actions": (2, 4, 8, 16),
            "strengths": (4, 8, 16, 32, 64, 128),
            "data_sets": (1, 2, 4, 8),
        },
        "a sparse plan": {"states": (5_000, 20_000, 80_000), "actions": (2, 4, 8, 16, 32)},
    }
    found: dict[str, tuple[tuple[int, ...], Callable[[int], Run]]] = {
        f"{kind}: {name.replace('_', ' ')}": (each, lambda n, kind=kind, name=name: of[kind](**{name: n}))
        for kind, lines in sizes.items()
        for name, each in lines.items()
    }
    for reward in (False, True):
        told = f"counting{' with rewards' * reward}: rows"
        found[told] = (300_000, 1_000_000, 3_000_000, 10_000_000), lambda n, r=reward: counted(n, folder, r)
    return found


def main() -> None:
    print(
        f"{os.getloadavg()[0]:.1f} programs wanted the {os.cpu_count()} processors when this began; {ROUNDS} rounds\n"
    )
    print("| what grows | sizes | processor ms | slope of log time | of the last two |\n|---|---|---|---:|---:|")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (sizes, run_of) in curves(Path(folder)).items():
            seconds = least([run_of(size) for size in sizes])
            x, y = np.log(sizes), np.log(seconds)
            slope, last = np.polyfit(x, y, 1)[0], (y[-1] - y[-2]) / (x[-1] - x[-2])
            each = ", ".join(f"{1e3 * t:.3g}" for t in seconds)
            print(f"| {name} | {', '.join(f'{n:,}' for n in sizes)} | {each} | {slope:.2f} | {last:.2f} |", flush=True)
            lines += [(name, size, f"{t:.6f}") for size, t in zip(sizes, seconds, strict=True)]
    with Path(__file__).with_name("scaling.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["what_grows", "size", "processor_seconds"])
        writer.writerows(lines)


if __name__ == "__main__":
    main()
