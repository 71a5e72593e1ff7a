"""Algorithm 3 on River Swim against the same algorithm in plain Python and in NumPy, all in one process.

Run with ``uv run python -m benchmarks.q_learning``. Each round times every contender once, one after another, so that a
busy machine slows them alike; a ratio is taken within a round, and the median over the rounds is reported. NumPy runs
all replications in lock-step, which is how one would write it without a compiler. Plain Python is timed on a few
replications and scaled. The mean reward is printed with two standard errors: the streams differ, the laws must not.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from certeq.model.mdp import MDP
from certeq.worlds.model_free import q_learning

REPLICATIONS, STEPS, ROUNDS = 1000, 5000, 5
PYTHON_REPLICATIONS = 4
DISCOUNT, STEP, EXPLORE = 0.99, 0.1, 0.1

FIRST_CALL = """
import time
begin = time.perf_counter()
from benchmarks.q_learning import river_swim, q_learning
imported = time.perf_counter()
q_learning(river_swim(), steps=1, rng=0)
print(imported - begin, time.perf_counter() - imported)
"""


def river_swim() -> MDP:
    T, R = np.zeros((6, 2, 6)), np.zeros((6, 2))
    T[np.arange(6), 0, np.maximum(np.arange(6) - 1, 0)] = 1
    T[0, 1, :2] = 0.4, 0.6
    T[5, 1, 4:] = 0.4, 0.6
    for s in range(1, 5):
        T[s, 1, s - 1 : s + 2] = 0.05, 0.6, 0.35
    R[0, 0], R[5, 1] = 0.005, 1
    return MDP(T, R, DISCOUNT)


def compiled(mdp: MDP, seed: int) -> tuple[np.ndarray, np.ndarray]:
    ours = q_learning(
        mdp, steps=STEPS, replications=REPLICATIONS, step_size=STEP, exploration=EXPLORE, rng=seed
    )  # fmt: skip
    return ours.reward, ours.simulated


def plain(mdp: MDP, seed: int) -> tuple[np.ndarray, np.ndarray]:
    lives = [one_life(mdp, random.Random(seed * 1000 + r).random) for r in range(PYTHON_REPLICATIONS)]
    return np.array([life[0] for life in lives]), np.array([life[1] for life in lives])


def one_life(mdp: MDP, uniform: Callable[[], float]) -> tuple[float, int]:
    S, A = mdp.n_states, mdp.n_actions
    cumulative, reward = np.cumsum(mdp.transition.dense(), axis=-1).tolist(), mdp.reward.tolist()
    Q = [[0.0] * A for _ in range(S)]
    counts = [[[0] * S for _ in range(A)] for _ in range(S)]
    visits, squares = [[0] * A for _ in range(S)], [[0] * A for _ in range(S)]
    s, real, earned, simulated = int(uniform() * S), 0, 0.0, 0
    while real < STEPS:
        a = int(uniform() * A) if uniform() < EXPLORE else Q[s].index(max(Q[s]))
        n, q = visits[s][a], squares[s][a]
        variance, bias = n * n - q, n * (q - n * n / S)
        simulate = uniform() * (variance + bias) < variance and n > 0
        u, after = uniform(), 0
        if simulate:
            after = int(u * S)
        else:
            row = cumulative[s][a]
            while row[after] <= u:
                after += 1
        Q[s][a] += STEP * (reward[s][a] + DISCOUNT * max(Q[after]) - Q[s][a])
        if simulate:
            simulated += 1
        else:
            seen = counts[s][a][after]
            counts[s][a][after] = seen + 1
            visits[s][a] += 1
            squares[s][a] += 2 * seen + 1
            earned += reward[s][a]
            real += 1
            s = after
    return earned, simulated


def lock_step(mdp: MDP, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    S, A, R = mdp.n_states, mdp.n_actions, REPLICATIONS
    cumulative = np.cumsum(mdp.transition.dense(), axis=-1)
    cumulative[..., -1] = 1
    Q = np.zeros((R, S, A))
    counts = np.zeros((R, S, A, S))
    visits, squares = np.zeros((R, S, A)), np.zeros((R, S, A))
    earned, simulated, real = np.zeros(R), np.zeros(R, dtype=int), np.zeros(R, dtype=int)
    at = rng.integers(S, size=R)
    i = np.arange(R)  # the replications that still live
    while len(i):
        u = rng.random((4, len(i)))
        s = at[i]
        a = np.where(u[0] < EXPLORE, (u[1] * A).astype(int), Q[i, s].argmax(axis=-1))
        n, q = visits[i, s, a], squares[i, s, a]
        variance, bias = n * n - q, n * (q - n * n / S)
        simulate = (u[2] * (variance + bias) < variance) & (n > 0)
        after = np.where(simulate, (u[3] * S).astype(int), (cumulative[s, a] <= u[3][:, None]).sum(axis=-1))
        reward = mdp.reward[s, a]
        Q[i, s, a] += STEP * (reward + DISCOUNT * Q[i, after].max(axis=-1) - Q[i, s, a])
        simulated[i] += simulate
        r, s, a, after = (x[~simulate] for x in (i, s, a, after))
        squares[r, s, a] += 2 * counts[r, s, a, after] + 1
        counts[r, s, a, after] += 1
        visits[r, s, a] += 1
        earned[r] += reward[~simulate]
        real[r] += 1
        at[r] = after
        i = i[real[i] < STEPS]
    return earned, simulated


def first_calls() -> tuple[list[float], list[float]]:
    """Seconds to import and to answer the first call, in a new process without and then with Numba's cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        runs = [
            subprocess.run(
                [sys.executable, "-c", FIRST_CALL], env=environment, capture_output=True, text=True, check=True
            )
            for _ in range(2)
        ]
    cold, cached = ([float(x) for x in run.stdout.split()] for run in runs)
    return cold, cached


def main() -> None:
    mdp = river_swim()
    cores = os.cpu_count() or 1
    contenders = {
        f"certeq, {cores} threads": (compiled, 1.0, str(cores)),
        "certeq, 1 thread": (compiled, 1.0, "1"),
        "NumPy lock-step": (lock_step, 1.0, "1"),
        "plain Python": (plain, REPLICATIONS / PYTHON_REPLICATIONS, "1"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    rewards: dict[str, list[np.ndarray]] = {name: [] for name in contenders}
    updates: dict[str, float] = {}
    q_learning(mdp, steps=1)
    for seed in range(ROUNDS):
        for name, (contender, scale, threads) in contenders.items():
            os.environ["CERTEQ_THREADS"] = threads
            begin = time.perf_counter()
            reward, simulated = contender(mdp, seed)
            seconds[name].append((time.perf_counter() - begin) * scale)
            rewards[name].append(reward)
            updates[name] = REPLICATIONS * (STEPS + simulated.mean())
    reference = next(iter(seconds.values()))
    print(f"Algorithm 3, River Swim: {REPLICATIONS} replications x {STEPS} real steps, {ROUNDS} rounds")
    print(f"{'':20} {'median':>10} {'best':>10} {'ns/update':>10} {'ratio':>8}   mean reward")
    for name, times in seconds.items():
        ratio = statistics.median(t / r for t, r in zip(times, reference, strict=True))
        lives = np.concatenate(rewards[name])
        error = 2 * lives.std() / np.sqrt(len(lives))
        print(
            f"{name:20} {statistics.median(times) * 1e3:7.1f} ms {min(times) * 1e3:7.1f} ms "
            f"{min(times) / updates[name] * 1e9:10.1f} {ratio:8.1f}   {lives.mean():.2f} +- {error:.2f}"
        )
    cold, cached = first_calls()
    print(f"first call in a new process: {cold[1]:.1f} s compiling, {cached[1]:.2f} s from the cache")
    print(f"import: {cached[0]:.2f} s")


if __name__ == "__main__":
    main()
