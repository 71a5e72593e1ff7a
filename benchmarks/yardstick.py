"""Small MDPs and sweeps against C++: the same algorithm, written by hand for sizes that its compiler knows.

    uv run --group bench python -m benchmarks.yardstick

`small.cpp` is built by g++ and called in this process, in turns with certeq. It takes everything for granted, where
certeq also checks what it is given and tells bounds and ties. Times are compared within a round: processor time with
one thread, which others on the machine change least, and elapsed time with all of them.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import certeq
from benchmarks.timing import Contender, Result, agree, race
from certeq.base.threads import default_threads
from certeq.worlds.random_chain import random_chain

STATES, ACTIONS, DISCOUNT, ROUNDS = 10, 2, 0.99, 21
MDPS, DATA_SETS, STRENGTHS = 10_000, 1_000, np.linspace(0, 0.95, 12)
GOALS = {"solve": 1.2, "solve, evaluate": 1.3, "plan": 1.3, "sweep": 1.5}


def built() -> Any:
    """The yardstick, compiled for this machine."""
    source = Path(__file__).with_name("small.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "small.so"
        sizes = [f"-DSTATES={STATES}", f"-DACTIONS={ACTIONS}"]
        command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", "-pthread", *sizes]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def call(function: Any, *arguments: Any) -> None:
    """Call C++ with arrays as pointers."""
    kinds = {float: ctypes.c_double, int: ctypes.c_int64}
    function(*(kinds[type(a)](a) if type(a) in kinds else None if a is None else a.ctypes.data_as(ctypes.c_void_p)
               for a in arguments))  # fmt: skip


def contests(library: Any, threads: int) -> dict[str, tuple[int, Callable[[], Result], Callable[[], Result]]]:
    """For each workload how many plans it makes, how certeq does it, and how C++ does."""
    rng = np.random.default_rng(0)
    world = random_chain(size=MDPS, rng=rng)
    truth, reward = world.transition.dense(), world.reward
    estimate = rng.multinomial(10, truth) / 10
    some = random_chain(size=DATA_SETS, rng=rng)
    there, gain = some.transition.dense(), some.reward
    counts = rng.multinomial(rng.poisson(5, size=there.shape[:-1]), there)
    sweep_shape, S = (DATA_SETS, len(STRENGTHS)), STATES

    def solve() -> Result:
        plan = certeq.solve(estimate, reward, DISCOUNT, threads=threads)
        return plan.policy, plan.values

    def solve_there() -> Result:
        policy, values = np.empty((MDPS, S), dtype=np.int64), np.empty((MDPS, S))
        call(library.solve, MDPS, estimate, reward, DISCOUNT, policy, values, threads)
        return policy, values

    def evaluate() -> Result:
        policy = solve()[0]
        return policy, certeq.evaluate(truth, reward, DISCOUNT, policy, threads=threads)

    def evaluate_there() -> Result:
        policy, values = solve_there()
        call(library.evaluate, MDPS, truth, reward, DISCOUNT, policy, values, threads)
        return policy, values

    settings: dict[str, Any] = {"regularizer": "uniform_prior", "strength": STRENGTHS, "threads": threads}

    def plan() -> Result:
        found = certeq.plan(counts[:, None], gain[:, None], DISCOUNT, **settings)
        return found.policy, found.values

    def plan_there() -> Result:
        policy, values = np.empty((*sweep_shape, S), dtype=np.int64), np.empty((*sweep_shape, S))
        call(library.sweep, *sweep_shape, counts, STRENGTHS, gain, DISCOUNT, None, policy, values, None, threads)
        return policy, values

    def sweep() -> Result:
        found = certeq.sweep(counts, gain, DISCOUNT, truth=some, **settings)
        return found.policy, found.loss

    def sweep_there() -> Result:
        policy, losses = np.empty((*sweep_shape, S), dtype=np.int64), np.empty(sweep_shape)
        call(library.sweep, *sweep_shape, counts, STRENGTHS, gain, DISCOUNT, there, policy, None, losses, threads)
        return policy, losses

    plans = DATA_SETS * len(STRENGTHS)
    return {
        "solve": (MDPS, solve, solve_there),
        "solve, evaluate": (MDPS, evaluate, evaluate_there),
        "plan": (plans, plan, plan_there),
        "sweep": (plans, sweep, sweep_there),
    }


class Row(NamedTuple):
    """How long a workload took, here and in C++."""

    name: str
    threads: int
    plans: int
    ours: np.ndarray  # (rounds,): seconds
    theirs: np.ndarray
    agreed: str


def rows(rounds: int = ROUNDS) -> Iterator[Row]:
    """Every workload, with one thread, by processor time, and with all, by the clock."""
    library = built()
    for threads in dict.fromkeys((1, default_threads())):
        for name, (plans, ours, theirs) in contests(library, threads).items():
            contenders = [Contender("C++", theirs, threads=threads), Contender("certeq", ours, threads=threads)]
            times, results = race(contenders, rounds)
            yield Row(name, threads, plans, times["certeq"], times["C++"], agree(results))


def main() -> None:
    busy = os.getloadavg()[0]
    print(f"{ROUNDS} rounds; {busy:.1f} programs wanted the {os.cpu_count()} processors when this began\n")
    print("| workload | threads | ns per plan | in C++ | times C++ | least to greatest | goal |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    said = []
    for row in rows():
        ratio = row.ours / row.theirs
        each = [f"{1e9 * np.median(seconds) / row.plans:.0f}" for seconds in (row.ours, row.theirs)]
        spread = f"{np.median(ratio):.2f}", f"{ratio.min():.2f} to {ratio.max():.2f}"
        print("|", " | ".join((row.name, str(row.threads), *each, *spread, str(GOALS[row.name]))), "|", flush=True)
        said.append(f"{row.name}: {row.agreed}")
    print("\n" + "\n".join(dict.fromkeys(said)))


if __name__ == "__main__":
    main()
