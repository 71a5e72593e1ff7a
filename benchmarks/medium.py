"""Many MDPs with 256 states and 2 actions: our kernel against QuantEcon and NumPy, in one process.

    uv run --group bench python -m benchmarks.medium

Two worlds: random dense rows, which mix fast, and slow drift on a 4 x 4 x 4 x 4 grid where one step reaches only
neighboring cells. All solve to 1e-9 of the largest value. Rounds are interleaved, since the machine may be shared, and
a ratio is taken within a round. BLAS keeps to one thread, and every contender may use a pool of two: the better of its
two timings counts. Peers solve a subsample; what they need to set a problem up is not counted.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a pool of threads over MDPs beats threads within one

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import quantecon

from certeq.base.arrays import Floats
from certeq.planners.compiled.medium import plan_medium

MDPS, SUBSAMPLE, ROUNDS, TOLERANCE = 200, 12, 7, 1e-9
POOL = ThreadPoolExecutor(2)

FIRST_CALL = """
import numpy as np, time
from benchmarks.medium import ours, random_rows
rows, reward = random_rows(np.random.default_rng(0), 1, 40)
start = time.perf_counter()
ours(rows, reward, 0.9, 1)
print(f"{time.perf_counter() - start:.2f}")
"""


def random_rows(rng: np.random.Generator, K: int, S: int = 256) -> tuple[Floats, Floats]:
    rows = rng.random((K, S, 2, S))
    rows /= rows.sum(-1, keepdims=True)
    return rows, rng.random((K, S, 2))


def slow_drift(rng: np.random.Generator, K: int) -> tuple[Floats, Floats]:
    """Each of four levels moves up or down on its own, rarely; an action sets the odds; high levels cost."""
    grid = np.indices((4,) * 4).reshape(4, -1).T  # (256, 4)
    step = np.arange(4)[None, None, None, :] - grid[:, None, :, None]  # (256, 1, 4, 4): from level to level
    odds = rng.random((K, 2, 256, 2, 4, 1)) * 0.2  # down or up
    level = np.where(step == 1, odds[:, 1], 0.0) + np.where(step == -1, odds[:, 0], 0.0)  # (K, 256, 2, 4, 4)
    level += np.where(step == 0, 1 - level.sum(-1, keepdims=True), 0.0)
    a, b, c, d = np.moveaxis(level, -2, 0)
    rows = np.einsum("...i,...j,...k,...l->...ijkl", a, b, c, d).reshape(K, 256, 2, 256)
    return rows, -grid.sum(1)[:, None] / 12 + 0.1 * rng.random((K, 256, 2))


def ours(rows: Floats, reward: Floats, discount: float, threads: int) -> tuple[Any, Floats]:
    K, S, A = reward.shape
    each, same = np.arange(K), np.zeros(K, np.int64)
    policy, values = np.empty((K, 1, S), np.int32), np.empty((K, 1, S))
    unmixed = np.zeros((1, S, A)), same[:, None].copy(), np.zeros((1, 1, 1, S)), same
    given = reward, each[:, None].copy(), np.array([discount]), same[:, None].copy(), np.ones((1, S, A), bool), same
    out = policy, values, np.empty((K, 1), np.int64), np.empty((K, 1))
    cuts = [K * i // threads for i in range(threads + 1)]
    problem = rows, each, *unmixed, *given, TOLERANCE, 1000, *out
    calls = [POOL.submit(plan_medium, i, j, *problem) for i, j in pairwise(cuts)]
    for call in calls:
        call.result()
    return policy[:, 0], values[:, 0]


def numpy_policy_iteration(rows: Floats, reward: Floats, discount: float) -> tuple[Any, Floats]:
    s, policy = np.arange(len(reward)), reward.argmax(axis=1)
    while True:
        v = np.linalg.solve(np.eye(len(s)) - discount * rows[s, policy], reward[s, policy])
        q = reward + discount * (rows @ v)
        better = q.max(axis=1) > q[s, policy] + 1e-12 * np.abs(q).max()
        if not better.any():
            return policy, v
        policy = np.where(better, q.argmax(axis=1), policy)


def quantecon_solver(method: str, scale: float) -> Callable[[Any], tuple[Any, Floats]]:
    def solve(problem: Any) -> tuple[Any, Floats]:
        result = problem.solve(method=method, epsilon=2 * TOLERANCE * scale, max_iter=100_000)
        return result.sigma, result.v

    return solve


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = run()
    return perf_counter() - start, result


def compare(name: str, rows: Floats, reward: Floats, discount: float) -> None:
    truth = [numpy_policy_iteration(rows[k], reward[k], discount) for k in range(SUBSAMPLE)]
    scale = max(float(np.abs(v).max()) for _, v in truth)
    problems = [quantecon.markov.DiscreteDP(reward[k], rows[k], discount) for k in range(SUBSAMPLE)]
    peers: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
        "QuantEcon MPI": (quantecon_solver("modified_policy_iteration", scale), problems),
        "QuantEcon PI": (quantecon_solver("policy_iteration", scale), problems),
        "NumPy PI": (lambda k: numpy_policy_iteration(rows[k], reward[k], discount), list(range(SUBSAMPLE))),
    }
    times: dict[str, list[float]] = {"ours, 1 thread": [], "ours, 2 threads": []} | {peer: [] for peer in peers}
    results: dict[str, list[Any]] = {}
    for _ in range(ROUNDS + 1):  # the first round warms up
        for threads, who in ((1, "ours, 1 thread"), (2, "ours, 2 threads")):
            seconds, (policy, values) = timed(lambda threads=threads: ours(rows, reward, discount, threads))
            times[who].append(seconds / MDPS)
            results[who] = list(zip(policy[:SUBSAMPLE], values[:SUBSAMPLE], strict=True))
        for who, (solve, cases) in peers.items():
            alone, results[who] = timed(lambda solve=solve, cases=cases: [solve(case) for case in cases])
            pooled, _ = timed(lambda solve=solve, cases=cases: list(POOL.map(solve, cases)))
            times[who].append(min(alone, pooled) / SUBSAMPLE)
    print(f"\n{name}, discount {discount}: {MDPS} MDPs, median of {ROUNDS} rounds [least, greatest]")
    best = np.array(times["ours, 2 threads"][1:])
    for who, seconds in times.items():
        mine = np.array(seconds[1:])
        ratio = mine / best
        moved = sum(int((policy != p).sum()) for (policy, _), (p, _) in zip(results[who], truth, strict=True))
        error = max(np.abs(v - w).max() / np.abs(w).max() for (_, v), (_, w) in zip(results[who], truth, strict=True))
        spread = f"{np.median(ratio):6.2f} [{ratio.min():.2f}, {ratio.max():.2f}]"
        print(
            f"  {who:16s} {1e6 * np.median(mine):8.0f} us per MDP   ratio {spread:22s}"
            f"   policy differs at {moved} states, error {error:.0e}"
        )


def first_calls() -> None:
    with tempfile.TemporaryDirectory() as cache:
        for what in ("compiled", "from the cache"):
            run = subprocess.run(
                [sys.executable, "-c", FIRST_CALL],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"first call, {what}: {run.stdout.strip()} s")


def main() -> None:
    rng = np.random.default_rng(0)
    first_calls()
    for name, world in (("random dense rows", random_rows), ("slow drift on a grid", slow_drift)):
        rows, reward = world(rng, MDPS)
        for discount in (0.9, 0.99, 0.999):
            compare(name, rows, reward, discount)


if __name__ == "__main__":
    main()
