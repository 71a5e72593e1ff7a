"""One large sparse MDP: ours against QuantEcon, MDPSolver, SciPy and C++, and how cost grows with size.

    uv run --group bench python -m benchmarks.large [sweeps | plans | solves | scaling]

4 actions, 10 different successors for each pair, discount .99, rewards from U(0, 1). Two worlds: successors anywhere
(garnet; mixes fast) and at most 50 states away (local; mixes slowly). Everybody finds values that are right to 1e-8.
Those who take turns are compared within a round, by the clock and by the processor time of all their threads, which
other programs on the machine disturb less. What a tool needs to set the problem up is not counted. ``plans`` compares
whole plans with the same algorithm in C++ (``plan.cpp``), ``sweeps`` one sweep (``sweep.cpp``).

``scaling`` writes ``large-scaling.csv`` beside this file: time and peak memory, each in a new process.
"""

from __future__ import annotations

import csv
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import peers
from benchmarks.timing import keep_memory
from certeq import Mixture, Rows, SparseRows, solve
from certeq.base.threads import default_threads
from certeq.planners.problem import read_problem
from certeq.planners.sparse.passes import Passes

A, SUCCESSORS, DISCOUNT, ERROR, NEAR = 4, 10, 0.99, 1e-8, 50
WORLDS = ("garnet", "local")
TUNED = {"garnet": 5, "local": 100}  # partial sweeps with which QuantEcon is about fastest in each world
HERE = Path(__file__).parent
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MIDDLE = 100_000
WIDTHS = (3, 10, 30)  # successors, at 100,000 states
CHOICES = (2, 4, 8)  # actions, at 100,000 states

PLANS = tuple((kind, S, rounds) for kind in WORLDS for S, rounds in ((100_000, 9), (1_000_000, 3)))

Run = Callable[[], Any]


def world(S: int, kind: str, K: int = SUCCESSORS, A: int = A) -> tuple[SparseRows, np.ndarray]:
    """Rows and rewards, filled in part by part; nothing is as large as the result but the result."""
    rng, n = np.random.default_rng(0), S * A
    columns, chances = np.empty((n, K), dtype=np.int32), np.empty((n, K))
    for start in range(0, n, 100_000):
        block = np.arange(start, min(n, start + 100_000))
        width = S if kind == "garnet" else 2 * NEAR + 1
        after = np.sort(rng.integers(width - K + 1, size=(len(block), K)), axis=1) + np.arange(K)  # all different
        if kind == "local":
            after = np.sort((after + (block // A)[:, None] - NEAR) % S, axis=1)
        draws = rng.random((len(block), K))
        columns[block], chances[block] = after, draws / draws.sum(axis=1, keepdims=True)
    starts = np.arange(0, n * K + 1, K, dtype=np.int32)
    matrix = sp.csr_array((chances.ravel(), columns.ravel(), starts), shape=(n, S))
    return SparseRows(matrix, S, A), rng.random((S, A))


def with_prior(rows: SparseRows) -> Mixture:
    """A uniform prior, with weights as if pairs had been visited from never to fifty times."""
    S = rows.s_axis
    visits = np.random.default_rng(1).integers(50, size=(S, rows.a_axis))
    return Mixture(rows, 2 / (2 + visits), Rows(np.full((1, 1, S), 1 / S)))


# ---- taking turns ----


def race(contenders: dict[str, Run], rounds: int) -> dict[str, np.ndarray]:
    """Seconds by the clock and of processor time, ``(rounds, 2)`` each; a first round warms up and does not count.

    A contender that gets ready first, which is not timed, has that as an attribute ``ready``.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, run in contenders.items():
            getattr(run, "ready", lambda: None)()
            clock, processor = perf_counter(), process_time()
            run()
            times[name].append((perf_counter() - clock, process_time() - processor))
    return {name: np.array(seconds[1:]) for name, seconds in times.items()}


def table(times: dict[str, np.ndarray], unit: str = "s", scale: float = 1.0) -> None:
    """Median time, and how many times that of the first: median, least and greatest, by the clock and processor."""
    reference = next(iter(times.values()))
    print(f"| | {unit} | times the first | least to greatest | processor time, times the first |")
    print("|---|---:|---:|---:|---:|")
    for name, seconds in times.items():
        clock, processor = (seconds / reference).T
        spread = f"{clock.min():.3g} to {clock.max():.3g}"
        each = f"{scale * np.median(seconds[:, 0]):.3g}"
        print(f"| {name} | {each} | {np.median(clock):.3g} | {spread} | {np.median(processor):.3g} |", flush=True)


# ---- one sweep ----


def compiled(source: str, function: str) -> Any:
    """A function in C++, or None if there is no compiler."""
    if not shutil.which("g++"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/{source}.so"
        flags = ["-O3", "-march=native", "-std=c++20", "-shared", "-fPIC", "-pthread"]
        subprocess.run(["g++", *flags, str(HERE / source), "-o", library], check=True)
        return getattr(ctypes.CDLL(library), function)


def at(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    """Where arrays begin, as C++ wants it."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def in_cpp(rows: SparseRows, reward: np.ndarray, values: np.ndarray) -> tuple[Run, np.ndarray] | None:
    """A sweep in C++, if there is a compiler, and where it puts the backed-up values."""
    sweep = compiled("sweep.cpp", "sweep")
    if sweep is None:
        return None
    S, matrix = rows.s_axis, rows.matrix
    best, policy, least_and_greatest = np.empty(S), np.empty(S, dtype=np.uint32), np.empty(2)

    def run() -> None:
        inputs = at(matrix.indptr, matrix.indices, matrix.data, reward)
        given = at(values, best, policy, least_and_greatest)
        sizes = ctypes.c_int64(S), ctypes.c_int64(A)
        sweep(*sizes, *inputs, ctypes.c_double(DISCOUNT), *given, ctypes.c_int64(default_threads()))

    return run, best


def sweeps(rounds: int = 15) -> None:
    for kind in WORLDS:
        for S in (100_000, 1_000_000):
            print(f"\n{kind}, {S:,} states: a sweep, {rounds} rounds\n")
            compare_sweeps(*world(S, kind), rounds)


def compare_sweeps(rows: SparseRows, reward: np.ndarray, rounds: int) -> None:
    values = np.random.default_rng(2).random(rows.s_axis)
    plain, prior = (Passes(read_problem(model, reward, DISCOUNT, None)[0]) for model in (rows, with_prior(rows)))
    contenders: dict[str, Run] = {
        "certeq": lambda: plain.back_up(values, 0.0, 0.0),
        "certeq, with a uniform prior": lambda: prior.back_up(values, 0.0, 0.0),
        "SciPy": lambda: (reward + DISCOUNT * rows.expect(values)).max(axis=1),
    }
    cpp = in_cpp(rows, reward, values)
    table(race(contenders | ({"C++": cpp[0]} if cpp else {}), rounds), "ms", 1e3)
    if cpp:
        print(f"\nAgainst C++, values differ by at most {np.abs(cpp[1] - plain.best).max():.0e}.")


# ---- the whole problem, against C++ ----


def plan_in_cpp(rows: SparseRows, reward: np.ndarray, tolerance: float, threads: int) -> Run:
    """A whole plan in C++ to a relative tolerance; there must be a compiler."""
    plan = compiled("plan.cpp", "plan")
    S, matrix = rows.s_axis, rows.matrix
    values, policy = np.empty(S), np.empty(S, dtype=np.uint32)

    def run() -> tuple[np.ndarray, np.ndarray]:
        inputs = at(matrix.indptr, matrix.indices, matrix.data, reward)
        wanted = ctypes.c_double(DISCOUNT), ctypes.c_double(tolerance)
        plan(ctypes.c_int64(S), ctypes.c_int64(A), *inputs, *wanted, *at(values, policy), ctypes.c_int64(threads))
        return policy, values

    return run


def race_of_plans(kind: str, S: int, rounds: int) -> tuple[dict[str, np.ndarray], str]:
    """Times of C++ and of certeq, with two threads and with one, and how far they agree."""
    keep_memory()
    rows, reward = world(S, kind)
    tolerance = ERROR / np.abs(solve(rows, reward, DISCOUNT).values).max()
    contenders: dict[str, Run] = {}
    for threads in (2, 1):
        contenders[f"C++, {threads} threads"] = plan_in_cpp(rows, reward, tolerance, threads)
        contenders[f"certeq, {threads} threads"] = certeq(rows, reward, tolerance=tolerance, threads=threads)
    times = race(contenders, rounds)
    (policy, values), (other, theirs) = (run() for run in list(contenders.values())[:2])
    moved, off = int((other != policy).sum()), np.abs(theirs - values).max()
    return times, f"C++ and certeq: {moved} actions differ, values by at most {off:.0e}."


def plans() -> None:
    for kind, S, rounds in PLANS:
        print(f"\n{kind}, {S:,} states: a plan, values to {ERROR:g}, {rounds} rounds\n")
        times, agreed = race_of_plans(kind, S, rounds)
        for threads in ("2", "1"):
            table({name: seconds for name, seconds in times.items() if threads in name})
            print()
        print(agreed, flush=True)


# ---- the whole problem, against others ----


def quantecon(rows: SparseRows, reward: np.ndarray, k: int) -> Run:
    from quantecon.markov import DiscreteDP

    states, actions = np.divmod(np.arange(rows.s_axis * A), A)
    problem = DiscreteDP(reward.ravel(), sp.csr_matrix(rows.matrix), DISCOUNT, states, actions)

    def run() -> tuple[np.ndarray, np.ndarray]:
        found = problem.solve(method="modified_policy_iteration", epsilon=2 * ERROR, k=k, max_iter=100_000)
        return found.sigma, found.v

    return run


class Mdpsolver:
    """A new problem for each run: a solved one would start from its own solution."""

    def __init__(self, rows: SparseRows, reward: np.ndarray) -> None:
        shape = rows.s_axis, A, SUCCESSORS
        self.chances, self.columns = (x.reshape(shape).tolist() for x in (rows.matrix.data, rows.matrix.indices))
        self.reward = reward.tolist()

    def ready(self) -> None:
        """Hand the lists over."""
        from mdpsolver import model

        self.problem = model()
        rows = {"tranMatProbs": self.chances, "tranMatColumns": self.columns}
        self.problem.mdp(discount=DISCOUNT, rewards=self.reward, **rows)

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        """Modified policy iteration on both cores, its best here; Gauss-Seidel updates took nine times longer."""
        self.problem.solve(algorithm="mpi", tolerance=ERROR, parallel=True)
        return np.array(self.problem.getPolicy()), np.array(self.problem.getValueVector())


def mdpax(rows: SparseRows, reward: np.ndarray) -> Run | None:
    """Value iteration to where its span is 1e-8: its values are right up to a constant, which is added here."""
    solver = peers.mdpax_solver()
    if solver is None:
        return None
    shape = rows.s_axis, A, SUCCESSORS
    given = rows.matrix.indices.reshape(shape), rows.matrix.data.reshape(shape), reward, DISCOUNT, ERROR

    def run() -> tuple[np.ndarray, np.ndarray]:
        policy, values = solver(*given)
        residual = (reward + DISCOUNT * rows.expect(values)).max(axis=1) - values
        return policy, values + (residual.max() + residual.min()) / 2 / (1 - DISCOUNT)

    return run


def certeq(model: Any, reward: np.ndarray, **how: Any) -> Run:
    def run() -> tuple[np.ndarray, np.ndarray]:
        found = solve(model, reward, DISCOUNT, **how)
        return found.policy, found.values

    return run


def solves() -> None:
    for kind in WORLDS:
        for S, rounds in ((100_000, 5), (1_000_000, 3)):
            rows, reward = world(S, kind)
            largest = np.abs(solve(rows, reward, DISCOUNT).values).max()
            how = {"tolerance": ERROR / largest}
            contenders = {
                "certeq": certeq(rows, reward, **how),
                "certeq, 1 thread": certeq(rows, reward, threads=1, **how),
                "certeq, with a uniform prior": certeq(with_prior(rows), reward, **how),
                "QuantEcon, 20 partial sweeps": quantecon(rows, reward, 20),  # what it does unless told otherwise
                f"QuantEcon, {TUNED[kind]} partial sweeps": quantecon(rows, reward, TUNED[kind]),
            }
            if S == 100_000:
                contenders["certeq, NumPy and SciPy"] = certeq(rows, reward, engine="numpy", **how)
                contenders["MDPSolver"] = Mdpsolver(rows, reward)
                in_mdpax = mdpax(rows, reward)
                if in_mdpax is not None and kind == "garnet":  # hundreds of passes, where it mixes slowly
                    contenders["mdpax"] = in_mdpax
                print(peers.missing())
            times = race(contenders, rounds)
            print(f"\n{kind}, {S:,} states, values to {ERROR:g}: {rounds} rounds\n")
            table(times)
            policy, values = contenders["certeq"]()
            for name, run in contenders.items():
                if "prior" not in name:
                    other, theirs = run()
                    moved, off = int((other != policy).sum()), np.abs(theirs - values).max()
                    print(f"{name}: {moved} actions differ, values by at most {off:.0e}.")


# ---- how cost grows ----


def measure(kind: str, S: int, K: int, actions: int, prior: bool) -> dict[str, Any]:
    """Plan three times in this process; the time is the least, the memory the peak of all that happened here."""
    solve(*world(12_000, kind, K, actions), DISCOUNT)  # compiles
    rows, reward = world(S, kind, K, actions)
    matrix = rows.matrix
    csr = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    base, model = _resident(), with_prior(rows) if prior else rows
    clock, processor, found = [], [], None
    for _ in range(3):
        start, cpu = perf_counter(), process_time()
        found = solve(model, reward, DISCOUNT, method="inexact_policy_iteration")
        clock.append(perf_counter() - start)
        processor.append(process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "world": kind,
        "prior": prior,
        "states": S,
        "actions": actions,
        "non_zeros": matrix.nnz,
        "seconds": round(min(clock), 4),
        "processor_seconds": round(min(processor), 4),
        "passes": int(found.iterations) if found else 0,
        "csr_megabytes": round(csr / 1e6, 1),
        "peak_megabytes": round(peak / 1e6, 1),
        "before_megabytes": round(base / 1e6, 1),
    }


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def scaling(path: Path = HERE / "large-scaling.csv") -> list[dict[str, Any]]:
    """Measure every size in a process of its own, and write the table."""
    cases = [(kind, S, SUCCESSORS, A, prior) for kind in WORLDS for prior in (False, True) for S in SIZES]
    cases += [(kind, MIDDLE, K, A, False) for kind in WORLDS for K in WIDTHS if K != SUCCESSORS]
    cases += [(kind, MIDDLE, SUCCESSORS, choices, False) for kind in WORLDS for choices in CHOICES if choices != A]
    rows = []
    for case in cases:
        command = [sys.executable, "-m", "benchmarks.large", "measure", json.dumps(case)]
        rows.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        print(rows[-1], flush=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(slopes(rows))
    return rows


def slopes(rows: list[dict[str, Any]]) -> str:
    """Log-log slopes: by how many powers of the size cost grows."""
    lines = ["| | processor time | memory |", "|---|---:|---:|"]
    usual = SUCCESSORS * A * MIDDLE
    for kind in WORLDS:
        for prior in (False, True):
            chosen = [row for row in rows if (row["world"], row["prior"]) == (kind, prior)]
            by_state = [
                row for row in chosen if row["actions"] == A and row["non_zeros"] == row["states"] * A * SUCCESSORS
            ]
            lines.append(_slope(f"{kind}{', with a uniform prior' if prior else ''}: states", by_state, "states"))
            if not prior:
                middle = [row for row in chosen if row["states"] == MIDDLE]
                by_width = [row for row in middle if row["actions"] == A]
                by_choice = [row for row in middle if row["actions"] != A or row["non_zeros"] == usual]
                lines.append(_slope(f"{kind}: successors of 100,000 states", by_width, "non_zeros"))
                lines.append(_slope(f"{kind}: actions of 100,000 states", by_choice, "actions"))
    return "\n".join(lines)


def _slope(name: str, rows: list[dict[str, Any]], size: str) -> str:
    x = np.log([row[size] for row in rows])
    time = np.polyfit(x, np.log([row["processor_seconds"] for row in rows]), 1)[0]
    grown = [row["peak_megabytes"] - row["before_megabytes"] + row["csr_megabytes"] for row in rows]
    return f"| {name} | {time:.2f} | {np.polyfit(x, np.log(grown), 1)[0]:.2f} |"


def main() -> None:
    parts = {"sweeps": sweeps, "plans": plans, "solves": solves, "scaling": scaling}
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
        return
    for name in sys.argv[1:] or parts:
        print(f"\nLoad of the machine before {name}: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        parts[name]()
        print(f"\nLoad of the machine after {name}: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
