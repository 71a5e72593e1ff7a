"""The tumor's 256 states along strengths: data sets of 50, 400 and 4,000 patients, regularized and planned.

    uv run --group bench python -m benchmarks.strengths

The world is ``certeq.environment("tumor")``; data sets are drawn from its simulator and counted, and rewards are the
world's. A uniform prior of 12 strengths (the paper's) or 100 is mixed in. Everybody starts each strength from the plan
of the one before and solves to 1e-9 of the largest value, in one thread; processor time is compared, and everything
counts from counts to policies. NumPy and QuantEcon do the first data set only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import certeq
from benchmarks import peers
from benchmarks.timing import Contender, Result, agree, race, table
from certeq.experiments.procedure import STRENGTHS
from certeq.planners import compiled
from certeq.worlds.tumor import tumor, tumor_trials

DATA_SETS, ROUNDS, DISCOUNT = 16, 5, 0.99
PATIENTS = (50, 400, 4_000)
PATHS = {"the paper's 12 strengths": np.array(STRENGTHS), "100 strengths": np.linspace(0, 0.99, 100)}


def ours(counts: np.ndarray, reward: np.ndarray, strength: np.ndarray, side_by_side: bool = True) -> Result:
    usual = compiled.MANY
    compiled.MANY = usual if side_by_side else 1_000_000
    try:
        plan = certeq.plan(
            counts[:, None], reward, DISCOUNT, regularizer="uniform_prior", strength=strength, engine="numba", threads=1
        )
    finally:
        compiled.MANY = usual
    return plan.policy, plan.values


def mixtures(counts: np.ndarray, strengths: np.ndarray) -> Iterator[np.ndarray]:
    """Regularized rows, one strength after the other."""
    visits = counts.sum(axis=-1, keepdims=True)
    frequency = counts / np.maximum(visits, 1)
    for strength in strengths:
        magnitude = strength / (1 - strength) * visits.mean()
        weight = np.where(visits > 0, magnitude / np.maximum(visits + magnitude, 1e-300), 1.0)
        yield (1 - weight) * frequency + weight / len(counts)


def looped(solver: peers.Solver, counts: np.ndarray, reward: np.ndarray, strengths: np.ndarray) -> Result:
    policies, values, start = [], [], None
    for rows in mixtures(counts, strengths):
        policy, start = solver(rows, reward, DISCOUNT, start)
        policies.append(policy)
        values.append(peers.evaluate(rows, reward, DISCOUNT, policy))
    return np.array(policies)[None], np.array(values)[None]


def swept(counts: np.ndarray, truth: certeq.MDP, strength: np.ndarray) -> Callable[[], None]:
    def run() -> None:
        certeq.sweep(
            counts, truth.reward, DISCOUNT, truth=truth, regularizer="uniform_prior", strength=strength, engine="numba",
            threads=1,
        )  # fmt: skip

    return run


def data_sets(patients: int) -> np.ndarray:
    """Counts of trials, ``(DATA_SETS, S, A, S)``."""
    counts = certeq.tally(tumor_trials(DATA_SETS, patients=patients, rng=0)).transitions
    return np.asarray(counts)


def main() -> None:
    truth = tumor()
    for patients in PATIENTS:
        counts = data_sets(patients)
        pairs, seen = (counts.sum(axis=-1) > 0).sum() / DATA_SETS, (counts > 0).sum() / DATA_SETS
        for name, strengths in PATHS.items():
            given = truth.reward, strengths
            contenders = [
                Contender("certeq", lambda c=counts, g=given: ours(c, *g)),
                Contender("certeq, with the loss", swept(counts, truth, strengths)),
                Contender("certeq, strength by strength", lambda c=counts, g=given: ours(c, *g, side_by_side=False)),
            ]
            if len(strengths) == len(STRENGTHS):
                for who, solver in peers.installed().items():
                    if who in ("SciPy", "QuantEcon"):
                        contenders.append(Contender(who, partial(looped, solver, counts[0], *given), 1 / DATA_SETS))
            print(f"\n{DATA_SETS} data sets of {patients:,} patients, {name}; {ROUNDS} rounds")
            print(f"A data set has {pairs:.0f} of 512 pairs and {seen:,.0f} different transitions.\n")
            times, results = race(contenders, ROUNDS)
            print(table(times, DATA_SETS * len(strengths), "plan"))
            print(f"\n{agree(results)}", flush=True)


if __name__ == "__main__":
    main()
