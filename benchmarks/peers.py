"""How others solve many small MDPs: NumPy in batches, and loops over tools that take one MDP at a time."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve as scipy_solve

Solver = Callable[[np.ndarray, np.ndarray, float, Any], tuple[Any, Any]]
"""``(rows (S, A, S), reward (S, A), discount, where to start) -> (policy, where to start next time)``."""


def evaluate(rows: np.ndarray, reward: np.ndarray, discount: float, policy: np.ndarray) -> np.ndarray:
    """Values ``(..., S)`` of policies, by LAPACK."""
    chosen = np.take_along_axis(rows, policy[..., None, None], axis=-2)[..., 0, :]
    gain = np.take_along_axis(reward, policy[..., None], axis=-1)
    return np.linalg.solve(np.eye(rows.shape[-1]) - discount * chosen, gain)[..., 0]


def improve(rows: np.ndarray, reward: np.ndarray, discount: float, policy: np.ndarray) -> np.ndarray:
    """One round of policy iteration for a batch."""
    values = evaluate(rows, reward, discount, policy)
    q = reward + discount * (rows @ values[..., None, :, None])[..., 0]
    return np.where(q.max(axis=-1) > values + 1e-9, q.argmax(axis=-1), policy)


def plain(rows: np.ndarray, reward: np.ndarray, discount: float, policy: np.ndarray) -> np.ndarray:
    """Policy iteration for a batch, all of it until the last is done."""
    while True:
        better = improve(rows, reward, discount, policy)
        if (better == policy).all():
            return policy
        policy = better


def dropping(rows: np.ndarray, reward: np.ndarray, discount: float, policy: np.ndarray) -> np.ndarray:
    """Policy iteration for a batch from which is dropped what is done."""
    policy, going = policy.copy(), np.arange(len(rows))
    while len(going):
        better = improve(rows, reward, discount, policy[going])
        moved = (better != policy[going]).any(axis=-1)
        policy[going] = better
        going, rows, reward = going[moved], rows[moved], reward[moved]
    return policy


def jax_batched() -> Callable[..., np.ndarray] | None:
    """Policy iteration for a batch in JAX, compiled, in double precision; None where JAX is not installed."""
    if importlib.util.find_spec("jax") is None:
        return None
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def one(rows: Any, reward: Any, discount: float, policy: Any) -> Any:
        S = reward.shape[0]
        s = jnp.arange(S)

        def step(state: Any) -> Any:
            policy, _ = state
            values = jnp.linalg.solve(jnp.eye(S) - discount * rows[s, policy], reward[s, policy])
            q = reward + discount * (rows @ values)
            better = jnp.where(q.max(axis=1) > values + 1e-9, q.argmax(axis=1), policy)
            return better, (better != policy).any()

        return jax.lax.while_loop(lambda state: state[1], step, (policy, True))[0]

    batch = jax.jit(jax.vmap(one, in_axes=(0, 0, None, 0)))
    return lambda *given: np.asarray(batch(*given))


def scipy(rows: np.ndarray, reward: np.ndarray, discount: float, policy: Any) -> tuple[Any, Any]:
    s = np.arange(len(reward))
    policy = reward.argmax(axis=1) if policy is None else policy
    while True:
        v = scipy_solve(np.eye(len(s)) - discount * rows[s, policy], reward[s, policy], check_finite=False)
        q = reward + discount * (rows @ v)
        better = np.where(q.max(axis=1) > v + 1e-9, q.argmax(axis=1), policy)
        if (better == policy).all():
            return policy, policy
        policy = better


def quantecon(rows: np.ndarray, reward: np.ndarray, discount: float, values: Any) -> tuple[Any, Any]:
    from quantecon.markov import DiscreteDP

    found = DiscreteDP(reward, rows, discount).solve(method="policy_iteration", v_init=values)
    return found.sigma, found.v


def pymdptoolbox(rows: np.ndarray, reward: np.ndarray, discount: float, policy: Any) -> tuple[Any, Any]:
    from mdptoolbox.mdp import PolicyIteration

    problem = PolicyIteration(rows.transpose(1, 0, 2), reward, discount, policy0=policy)
    problem.run()
    found = np.array(problem.policy)
    return found, found


def mdpsolver(rows: np.ndarray, reward: np.ndarray, discount: float, policy: Any) -> tuple[Any, Any]:
    from mdpsolver import model

    problem = model()
    problem.mdp(discount=discount, rewards=reward.tolist(), tranMatWithZeros=rows.tolist())
    start = [] if policy is None else policy.tolist()
    problem.solve(algorithm="pi", tolerance=1e-9, initPolicy=start, parallel=False)
    found = np.array(problem.getPolicy())
    return found, found


def installed() -> dict[str, Solver]:
    """The tools that take one MDP at a time, as far as they are here."""
    peers: dict[str, tuple[str, Solver]] = {
        "SciPy": ("scipy", scipy),
        "mdpsolver": ("mdpsolver", mdpsolver),
        "QuantEcon": ("quantecon", quantecon),
        "pymdptoolbox": ("mdptoolbox", pymdptoolbox),
    }
    return {name: solver for name, (package, solver) in peers.items() if importlib.util.find_spec(package)}
