"""Evidence weights: 10,000 small data sets against planning for them in NumPy and against SciPy; one huge sparse table.

Run with ``uv run --group bench python -m benchmarks.evidence``. SciPy's marginal likelihoods (the structure "all"
alone, on some of the data sets, scaled) are what one would write without a kernel; the weights must agree.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from benchmarks.timing import Contender, race, table
from certeq import MDP, Counts, environment, sampling, solve, tally
from certeq.model.evidence import POINTS, SPREAD, learn_magnitudes
from certeq.model.frequencies import mle
from certeq.model.kernel import Mixture, Rows

SETS, S, A, ROWS = 10_000, 10, 2, 80
SOME = 500  # data sets that SciPy does
LARGE = ((10_000, 3), (100_000, 3), (1_000_000, 3))  # states and successors of a sparse table with 4 actions


def data_sets() -> tuple[MDP, Counts]:
    worlds = environment("random_chain", size=SETS, rng=0)
    return worlds, tally(sampling.uniform_pairs(worlds, ROWS, data_sets=SETS, rng=1))


def with_scipy(counts: np.ndarray) -> np.ndarray:
    steps = np.linspace(-8, 8, POINTS)
    grid = S / 2 * np.exp(steps)
    prior = -0.5 * (steps / SPREAD) ** 2
    weights = np.empty(counts.shape[:-1])
    for d, c in enumerate(counts):
        n = c.sum(axis=-1)
        M = grid[:, None, None]
        cells = gammaln(M[..., None] / S + c) - gammaln(M[..., None] / S)
        total = (gammaln(M) - gammaln(M + n) + cells.sum(axis=-1)).sum(axis=(1, 2)) + prior
        chance = np.exp(total - total.max())
        weights[d] = np.tensordot(chance / chance.sum(), M / (M + n), axes=1)
    return np.where(counts.sum(axis=-1) > 0, weights, 1.0)


def large(states: int, successors: int) -> Counts:
    rng = np.random.default_rng(1)
    lines = states * 4
    indices = rng.integers(states, size=lines * successors, dtype=np.int32)
    pointer = np.arange(0, lines * successors + 1, successors, dtype=np.int32)
    matrix = sp.csr_array((rng.integers(1, 9, size=len(indices)), indices, pointer), shape=(lines, states))
    return Counts(matrix, n_actions=4)


def main() -> None:
    worlds, counts = data_sets()
    few = Counts(counts.transitions[:SOME])
    model = Mixture(mle(counts), learn_magnitudes(counts).weight, Rows(np.full((1, 1, S), 1 / S)))
    contenders = [
        Contender("certeq, evidence, 4 structures", lambda: learn_magnitudes(counts, threads=1) and None),
        Contender(
            "NumPy, planning for the same data sets", lambda: solve(model, worlds.reward, 0.99, engine="numpy") and None
        ),
        Contender("SciPy, 1 structure", lambda: with_scipy(few.transitions).any() and None, SOME / SETS),
    ]
    times, _ = race(contenders, 5)
    print(f"{SETS:,} data sets of {ROWS} rows, {S} states, {A} actions, one thread; 5 rounds\n")
    print(table(times, SETS, "data set"))
    ours = learn_magnitudes(few, structures=["all"], odds=1.0).weight
    apart = np.abs(ours - with_scipy(few.transitions)).max()
    print(f"\nWeights of the structure 'all' differ from SciPy's by at most {apart:.0e}.")
    sizes, seconds = [], []
    print("\nOne sparse table, 4 actions, all processors\n\n| states | non-zeros | seconds |\n|---:|---:|---:|")
    for states, successors in LARGE:
        one = large(states, successors)
        times, _ = race([Contender("", lambda one=one: learn_magnitudes(one) and None, threads=2)], 3)
        [each] = times.values()
        sizes.append(one.transitions.nnz)
        seconds.append(float(np.median(each)))
        print(f"| {states:,} | {sizes[-1]:,} | {seconds[-1]:.3f} |")
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"\nTime grows with the non-zeros to the power {slope:.2f}.")


if __name__ == "__main__":
    main()
