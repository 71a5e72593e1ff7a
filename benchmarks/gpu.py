"""A million MDPs with 10 states and 2 actions: a graphics processor against the compiled engine on two threads.

    uv run --extra gpu python -m benchmarks.gpu

Arrays that are on the device stay there; arrays of the host are copied there, and plans back, which is counted. At the
end a million models are drawn from a posterior and planned in. All times are elapsed ones. Without a graphics processor
the compiled engine runs alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import certeq
from benchmarks.timing import Contender, Result, agree, race, table
from certeq.base.errors import InputError
from certeq.planners import gpu
from certeq.planners.gpu import device
from certeq.worlds.random_chain import random_chain

THREADS, ROUNDS, DISCOUNT = 2, 5, 0.99
MDPS, DISTINCT = 1_000_000, 200_000  # so many different ones, repeated
DRAWN = 50_000  # models that the CPU draws; a part is enough
CPU = f"CPU, {THREADS} threads"


def found_device() -> Any:
    try:
        return device.cupy()
    except InputError as error:
        print(error)
        return None


def small_worlds(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of random chains with 10 states and 2 actions from ten visits of each pair."""
    world = random_chain(size=DISTINCT, rng=rng)
    return rng.multinomial(10, world.transition.dense()) / 10, world.reward


def repeated(xp: Any, array: np.ndarray) -> Any:
    return xp.tile(xp.asarray(array), (MDPS // DISTINCT, *(1,) * (array.ndim - 1)))


def on_host(rows: np.ndarray, reward: np.ndarray, **settings: Any) -> Callable[[], Result]:
    model = certeq.Rows(rows)  # checked here, and so not in the time of those who would check it first

    def run() -> Result:
        plan = certeq.solve(model, reward, DISCOUNT, **settings)
        return plan.policy, plan.values

    return run


def on_device(cp: Any, rows: Any, reward: Any) -> Callable[[], None]:
    def run() -> None:
        certeq.solve(rows, reward, DISCOUNT, device="gpu")
        cp.cuda.Device().synchronize()

    return run


def plan_in_given(cp: Any, rng: np.random.Generator) -> None:
    worlds = small_worlds(rng)
    here = [repeated(np, array) for array in worlds]
    contenders = [Contender(CPU, on_host(*here, engine="numba", threads=THREADS), threads=THREADS)]
    if cp is not None:
        there = [repeated(cp, array) for array in worlds]
        contenders.insert(0, Contender("GPU, arrays on the device", on_device(cp, *there), threads=THREADS))
        contenders.insert(1, Contender("GPU, arrays of the host", on_host(*here, device="gpu"), threads=THREADS))
    print(f"\n{MDPS:,} MDPs, 10 states, 2 actions; {ROUNDS} rounds\n")
    times, results = race(contenders, ROUNDS)
    print(table(times, MDPS, "MDP"))
    if cp is not None:
        plan = certeq.solve(*there, DISCOUNT, device="gpu")
        stayed = {"GPU, arrays on the device": (plan.policy.get(), plan.values.get())}
        print(f"\n{agree({CPU: results[CPU]} | results | stayed)}")


def draw_and_plan(cp: Any, rng: np.random.Generator) -> None:
    world = random_chain(rng=rng)
    alpha, reward = rng.multinomial(10, world.transition.dense()) + 0.1, world.reward

    def there() -> None:
        rows = gpu.draw_rows(cp.broadcast_to(cp.asarray(alpha), (MDPS, *alpha.shape)), rng=1)
        certeq.solve(rows, reward, DISCOUNT, device="gpu")
        cp.cuda.Device().synchronize()

    def here() -> None:
        rows = np.random.default_rng(1).standard_gamma(alpha, size=(DRAWN, *alpha.shape))
        rows /= rows.sum(axis=-1, keepdims=True)
        certeq.solve(rows, reward, DISCOUNT, engine="numba", threads=THREADS)

    print(f"\n{MDPS:,} models of 10 states, 2 actions drawn from a posterior and planned in; {ROUNDS} rounds\n")
    contenders = [Contender("GPU", there, 1.0, THREADS)] if cp is not None else []
    drawing = Contender(f"CPU, one thread draws, {THREADS} plan", here, DRAWN / MDPS, THREADS)
    times, _ = race([*contenders, drawing], ROUNDS)
    print(table(times, MDPS, "model"))


def main() -> None:
    cp, rng = found_device(), np.random.default_rng(0)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    name = "none" if cp is None else cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"Graphics processor: {name}. Processors: {os.cpu_count()}, load {load:.1f} before we began.")
    plan_in_given(cp, rng)
    draw_and_plan(cp, rng)


if __name__ == "__main__":
    main()
