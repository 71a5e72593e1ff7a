"""Ten thousand MDPs with 10 states and 2 actions: plan in an estimate of each, and value the plan in the truth.

    uv run --group bench python -m benchmarks.small

Everybody does policy iteration, in one thread. Tools that take one MDP at a time do a part of the work. What they need
to set an MDP up is counted, as it is needed for each; the value in the truth they find by LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import certeq
from benchmarks import peers
from benchmarks.timing import Contender, agree, race, starts, table
from certeq.worlds.random_chain import random_chain

MDPS, LOOPED, VISITS, DISCOUNT, ROUNDS = 10_000, 200, 10, 0.99, 11

FIRST_CALLS = """
import numpy, certeq
rows, reward = numpy.full((4000, 10, 2, 10), 0.1), numpy.ones((10, 2))
certeq.evaluate(rows, reward, 0.9, certeq.solve(rows, reward, 0.9).policy)
"""

Result = tuple[np.ndarray, np.ndarray]  # policies and their values, both (n, S)


def ours(estimate: np.ndarray, truth: np.ndarray, reward: np.ndarray) -> Result:
    policy = certeq.solve(estimate, reward, DISCOUNT, threads=1).policy
    return policy, certeq.evaluate(truth, reward, DISCOUNT, policy, threads=1)


def batched(method: Callable[..., np.ndarray], estimate: np.ndarray, truth: np.ndarray, reward: np.ndarray) -> Result:
    policy = method(estimate, reward, DISCOUNT, reward.argmax(axis=-1))
    return policy, peers.evaluate(truth, reward, DISCOUNT, policy)


def looped(solver: peers.Solver, estimate: np.ndarray, truth: np.ndarray, reward: np.ndarray) -> Result:
    policies, values = [], []
    for k in range(len(reward)):
        policies.append(solver(estimate[k], reward[k], DISCOUNT, None)[0])
        values.append(peers.evaluate(truth[k], reward[k], DISCOUNT, policies[k]))
    return np.array(policies), np.array(values)


def main() -> None:
    rng = np.random.default_rng(0)
    world = random_chain(size=MDPS, rng=rng)
    truth, reward = world.transition.dense(), world.reward
    estimate = rng.multinomial(VISITS, truth) / VISITS
    work, part = (estimate, truth, reward), (estimate[:LOOPED], truth[:LOOPED], reward[:LOOPED])

    contenders = [
        Contender("certeq", lambda: ours(*work)),
        Contender("NumPy, batched, what is done dropped", lambda: batched(peers.dropping, *work)),
        Contender("NumPy, batched", lambda: batched(peers.plain, *work)),
    ]
    in_jax = peers.jax_batched()
    if in_jax is not None:
        contenders.append(Contender("JAX, batched", lambda: batched(in_jax, *work)))
    in_jaxdp = peers.jaxdp_batched()
    if in_jaxdp is not None:
        contenders.append(Contender("jaxdp, batched", lambda: batched(in_jaxdp, *work)))
    if peers.mdpax_solver() is not None:  # compiles for every MDP, so does two of them
        few = estimate[:2], truth[:2], reward[:2]
        contenders.append(Contender("mdpax", lambda: looped(peers.mdpax, *few), 2 / MDPS))
    for name, solver in peers.installed().items():
        contenders.append(Contender(name, lambda solver=solver: looped(solver, *part), LOOPED / MDPS))

    print(f"{MDPS:,} MDPs, 10 states, 2 actions, one thread; {ROUNDS} rounds\n")
    times, results = race(contenders, ROUNDS)
    print(table(times, MDPS, "MDP"))
    print(f"\n{agree(results)} {peers.missing()}")
    print(starts(FIRST_CALLS))


if __name__ == "__main__":
    main()
