"""A process that compiles the kernels and one that finds them compiled give the same numbers, to the last bit."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
import numpy as np
import scipy.sparse as sp
from certeq import Counts, Mixture, Rows, SparseRows, evaluate, shrink, solve

rng = np.random.default_rng(0)


def tell(name, numbers):
    print(name, hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest())


for S, n in ((10, 2000), (60, 40)):
    counts = rng.multinomial(5, np.full(S, 1 / S), size=(n, S, 2))
    rows, reward = counts / 5, rng.normal(size=(n, S, 2))
    mixed = Mixture(Rows(rows), rng.random((n, S, 2)), Rows(np.full((1, 1, S), 1 / S)))
    plan = solve(mixed, reward, 0.97, engine="numba")
    tell(f"plans of {S} states", plan.values)
    tell(f"values of {S} states", evaluate(rows, reward, 0.97, plan.policy))
    tell(f"weights of {S} states", shrink(Counts(counts), "evidence").weight)
S = 12_000
near = (np.arange(3 * S)[:, None] // 3 + np.arange(-2, 3)) % S
chances = rng.random(near.shape)
chances /= chances.sum(axis=1, keepdims=True)
matrix = sp.csr_array((chances.ravel(), near.ravel(), np.arange(0, near.size + 1, 5)), shape=(3 * S, S))
mixed = Mixture(SparseRows(matrix, S, 3), rng.random((S, 3)), Rows(np.full((1, 1, S), 1 / S)))
tell("a sparse plan", solve(mixed, rng.random((S, 3)), 0.99).values)
"""


@pytest.mark.slow
def test_who_compiles_and_who_loads_find_the_same_numbers(tmp_path):
    """They did not while the compiler was free to reorder sums, which it did differently for what it had inlined."""
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT]
    told = [subprocess.run(command, env=place, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert told[0].count("\n") == 7
    assert told[0] == told[1]
