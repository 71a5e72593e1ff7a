"""The learned target against evidence toward the uniform row: 10,000 small data sets, and one huge sparse lattice.

Run with ``uv run --group bench python -m benchmarks.learned_target``. The lattice has a wall with a gap. Memory is the
most that was added to the counts while the weights and the target were made, over what the counts take.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from time import perf_counter, process_time

import numpy as np
import scipy.sparse as sp

from benchmarks.timing import Contender, race, table
from certeq import Counts, environment, sampling, shrink, tally
from certeq.data.positions import Positions

SETS, ROWS = 10_000, 100
SIDE = 1000  # of the lattice
STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0))


def data_sets(world: str) -> Counts:
    truth = environment(world, size=SETS, rng=0) if world == "random_chain" else environment(world)
    return tally(sampling.uniform_pairs(truth, ROWS, data_sets=SETS, rng=1))


def lattice(side: int = SIDE) -> Counts:
    """Four actions that mostly lead one step, sometimes two, sometimes nowhere: three non-zeros for each pair."""
    rng = np.random.default_rng(2)
    place = np.stack(np.divmod(np.arange(side**2), side), axis=1)
    columns = np.empty((side**2, 4, 3), dtype=np.int32)
    wall, gap = side // 2, side // 8
    for a, step in enumerate(STEPS):
        for k in range(3):
            there = np.clip(place + k * np.array(step), 0, side - 1)
            blocked = ((place[:, 0] < wall) != (there[:, 0] < wall)) & (place[:, 1] >= gap)
            columns[:, a, k] = np.where(blocked[:, None], place, there) @ (side, 1)
    count = rng.integers(1, (3, 9, 4), size=columns.shape)
    lines = np.arange(0, columns.size + 1, 3)
    matrix = sp.csr_array((count.ravel(), columns.ravel(), lines), shape=(4 * side**2, side**2))
    matrix.sum_duplicates()
    return Counts(matrix, n_actions=4, positions=Positions(place))


def large(regularizer: str) -> None:
    """One line of the table, by a process of its own."""
    shrink(lattice(20), regularizer)  # compile first
    counts = lattice()
    matrix = counts.transitions
    size = float(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)
    start, worked = perf_counter(), process_time()
    found = shrink(counts, regularizer)
    seconds, worked = perf_counter() - start, process_time() - worked
    counts = lattice()  # which keeps nothing of the first time
    tracemalloc.start()
    shrink(counts, regularizer)
    most = tracemalloc.get_traced_memory()[1] / size
    tracemalloc.stop()
    start = perf_counter()
    found.target.expect(np.arange(SIDE**2, dtype=np.float64))
    print(
        f"| {regularizer} | {matrix.nnz:,} | {seconds:.1f} | {worked:.1f} | {most:.2f} | {perf_counter() - start:.2f} |"
    )


def compare(world: str, counts: Counts) -> None:
    """Race on small data sets."""
    where = Counts(counts.transitions, positions=np.arange(counts.n_states))
    contenders = [
        Contender("evidence", lambda: shrink(counts, "evidence") and None),
        Contender("learned target, no positions", lambda: shrink(counts, "learned_target", positions=False) and None),
        Contender("learned target, on a line", lambda: shrink(where, "learned_target") and None),
    ]
    times, _ = race(contenders, 5)
    print(f"\n{world}: {SETS:,} data sets of {ROWS} rows; 5 rounds, processor time\n")
    print(table(times, SETS, "data set"))


def main() -> None:
    """Race on small data sets, then measure the lattice."""
    for world in ("random_chain", "river_swim"):
        compare(world, data_sets(world))
    print("\n| a lattice of a million states | non-zeros | seconds | of processors | memory added | apply once |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for name in ("evidence", "learned_target"):
        subprocess.run([sys.executable, "-m", "benchmarks.learned_target", name], check=True)


if __name__ == "__main__":
    large(sys.argv[1]) if len(sys.argv) > 1 else main()
