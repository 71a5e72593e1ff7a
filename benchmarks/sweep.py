"""Data sets x 12 regularization strengths, as the paper runs them: count, regularize, plan, and the loss in the truth.

    uv run --group bench python -m benchmarks.sweep

Each data set comes from its own world with 10 states and 2 actions. A uniform prior of twelve strengths is mixed into
its frequencies, and everybody does policy iteration, each strength from the plan of the one before. Tools that take one
MDP at a time do a part of the work, with NumPy and LAPACK for the mixing and the losses; a second line shows what their
planning takes alone, while certeq still does everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import certeq
from benchmarks import peers
from benchmarks.timing import Contender, Result, agree, race, starts, table
from certeq.base.threads import default_threads
from certeq.worlds.random_chain import random_chain

DATA_SETS, LOOPED, DISCOUNT, ROUNDS = 1_000, 20, 0.99, 11
STRENGTHS = np.linspace(0, 0.95, 12)

FIRST_CALLS = """
import numpy, certeq
counts = numpy.ones((4000, 10, 2, 10), dtype=int)
plan = certeq.plan(counts[:, None], numpy.ones((10, 2)), 0.9, regularizer="uniform_prior", strength=[0.1, 0.2])
certeq.loss(counts[:, None] / 10, numpy.ones((10, 2)), 0.9, plan.policy)
"""


def ours(counts: np.ndarray, truth: np.ndarray, reward: np.ndarray, threads: int) -> Result:
    gain = reward[:, None]
    plan = certeq.plan(
        counts[:, None], gain, DISCOUNT, regularizer="uniform_prior", strength=STRENGTHS, threads=threads
    )
    return plan.policy, certeq.loss(truth[:, None], gain, DISCOUNT, plan.policy, threads=threads)


def mixtures(counts: np.ndarray) -> Iterator[np.ndarray]:
    """Regularized rows ``(..., S, A, S)``, one strength after the other."""
    visits = counts.sum(axis=-1, keepdims=True)
    frequency = counts / np.maximum(visits, 1)
    mean = visits.mean(axis=(-3, -2, -1), keepdims=True)
    for strength in STRENGTHS:
        magnitude = strength / (1 - strength) * mean
        weight = np.where(visits > 0, magnitude / np.maximum(visits + magnitude, 1e-300), 1.0)
        yield (1 - weight) * frequency + weight / counts.shape[-1]


def batched(method: Callable[..., np.ndarray], counts: np.ndarray, truth: np.ndarray, reward: np.ndarray) -> Result:
    policy = reward.argmax(axis=-1)
    best = peers.evaluate(truth, reward, DISCOUNT, method(truth, reward, DISCOUNT, policy))
    policies, losses = [], []
    for rows in mixtures(counts):
        policy = method(rows, reward, DISCOUNT, policy)
        policies.append(policy)
        losses.append((best - peers.evaluate(truth, reward, DISCOUNT, policy)).mean(axis=-1))
    return np.stack(policies, axis=1), np.stack(losses, axis=1)


def looped(solver: peers.Solver, counts: np.ndarray, truth: np.ndarray, reward: np.ndarray) -> Result:
    policies, losses = [], []
    for count, world, gain in zip(counts, truth, reward, strict=True):
        best = peers.evaluate(world, gain, DISCOUNT, solver(world, gain, DISCOUNT, None)[0])
        start = None
        for rows in mixtures(count):
            policy, start = solver(rows, gain, DISCOUNT, start)
            policies.append(policy)
            losses.append((best - peers.evaluate(world, gain, DISCOUNT, policy)).mean())
    shape = len(reward), len(STRENGTHS)
    return np.array(policies).reshape(*shape, -1), np.array(losses).reshape(shape)


def planned(solver: peers.Solver, mixed: list[list[np.ndarray]], reward: np.ndarray) -> None:
    for paths, gain in zip(mixed, reward, strict=True):
        start = None
        for rows in paths:
            _, start = solver(rows, gain, DISCOUNT, start)


def main() -> None:
    rng = np.random.default_rng(0)
    world = random_chain(size=DATA_SETS, rng=rng)
    truth, reward = world.transition.dense(), world.reward
    counts = rng.multinomial(rng.poisson(5, size=truth.shape[:-1]), truth)
    work, part = (counts, truth, reward), (counts[:LOOPED], truth[:LOOPED], reward[:LOOPED])
    mixed, share = [list(mixtures(count)) for count in counts[:LOOPED]], LOOPED / DATA_SETS

    contenders = [
        Contender("certeq", lambda: ours(*work, threads=1)),
        Contender("NumPy, batched, what is done dropped", lambda: batched(peers.dropping, *work)),
        Contender("NumPy, batched", lambda: batched(peers.plain, *work)),
    ]
    in_jaxdp = peers.jaxdp_batched()
    if in_jaxdp is not None:
        contenders.append(Contender("jaxdp, batched", lambda: batched(in_jaxdp, *work)))
    for name, solver in peers.installed().items():
        contenders.append(Contender(name, lambda solver=solver: looped(solver, *part), share))
        alone = Contender(f"{name}, planning alone", lambda solver=solver: planned(solver, mixed, part[2]), share)
        contenders.append(alone)

    plans = DATA_SETS * len(STRENGTHS)
    print(f"{DATA_SETS:,} data sets x {len(STRENGTHS)} strengths, one thread; {ROUNDS} rounds\n")
    times, results = race(contenders, ROUNDS)
    print(table(times, plans, "plan"))
    print(f"\n{agree(results)} {peers.missing()}")
    print(starts(FIRST_CALLS))

    every = default_threads()
    print(f"\nElapsed time with one thread and with {every}\n")
    threaded = [
        Contender(f"certeq, {n} thread{'s' * (n > 1)}", lambda n=n: ours(*work, threads=n), threads=every)
        for n in (every, 1)
    ]
    times, results = race(threaded, ROUNDS)
    print(table(times, plans, "plan"))
    print(f"\n{agree(results)}")


if __name__ == "__main__":
    main()
