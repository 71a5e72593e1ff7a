"""How others solve many small MDPs: NumPy in batches, and loops over tools that take one MDP at a time."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
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


def jaxdp_batched() -> Callable[..., np.ndarray] | None:
    """Policy iteration of jaxdp for a batch, in double precision; None where it is not installed.

    It steps, and whoever calls it sees when all are done. Rewards it takes by next state, and rows by column.
    """
    if importlib.util.find_spec("jaxdp") is None:
        return None
    import chex
    import jax
    import jax.numpy as jnp
    import jaxdp

    jax.config.update("jax_enable_x64", True)
    chex.disable_asserts()  # it looks at policies as numbers, which `jit` and `vmap` do not have

    @partial(jax.jit, static_argnums=2)
    def begin(rows: Any, reward: Any, discount: float, policy: Any) -> Any:
        n, S, A = reward.shape
        wide = jnp.broadcast_to(jnp.swapaxes(reward, 1, 2)[..., None], (n, A, S, S))
        ends = {"initial": jnp.full((n, S), 1 / S), "terminal": jnp.zeros((n, S))}
        mdp = jaxdp.MDP(transition=rows.transpose(0, 2, 3, 1), reward=wide, **ends)
        first = jnp.swapaxes(jax.nn.one_hot(policy, A), 1, 2)
        return mdp, jax.vmap(jaxdp.PolicyIteration(gamma=discount).init)(mdp, first)

    @partial(jax.jit, static_argnums=2)
    def step(mdp: Any, state: Any, discount: float) -> Any:
        after = jax.vmap(jaxdp.PolicyIteration(gamma=discount).update)(mdp, state)
        return after, (after.policy != state.policy).any()

    def run(rows: np.ndarray, reward: np.ndarray, discount: float, policy: np.ndarray) -> np.ndarray:
        mdp, state = begin(rows, reward, discount, policy)
        moved = True
        while moved:
            state, moved = step(mdp, state, discount)
        return np.asarray(state.policy.argmax(axis=1))

    return run


def mdpax_solver() -> Callable[..., tuple[np.ndarray, np.ndarray]] | None:
    """Value iteration of mdpax with its own stop, the span, in double precision; None where it is not installed.

    ``(successors (S, A, K), chances (S, A, K), reward (S, A), discount, epsilon)`` give a policy, and values up to a
    constant. It wants a class for each kind of MDP, and compiles for every object of it.
    """
    if importlib.util.find_spec("mdpax") is None:
        return None
    import jax
    import jax.numpy as jnp
    from mdpax.core.problem import Problem
    from mdpax.solvers.value_iteration import ValueIteration

    jax.config.update("jax_enable_x64", True)

    class Table(Problem):
        """An MDP that is given as a table: event k leads to the k-th successor."""

        def __init__(self, successors: np.ndarray, chances: np.ndarray, reward: np.ndarray) -> None:
            self.successors, self.chances, self.reward = map(jnp.asarray, (successors, chances, reward))
            super().__init__()

        @property
        def name(self) -> str:
            return "table"

        def _construct_state_space(self) -> Any:
            return jnp.arange(self.chances.shape[0])[:, None]

        def _construct_action_space(self) -> Any:
            return jnp.arange(self.chances.shape[1])[:, None]

        def _construct_random_event_space(self) -> Any:
            return jnp.arange(self.chances.shape[2])[:, None]

        def state_to_index(self, state: Any) -> Any:
            return state[0]

        def random_event_probability(self, state: Any, action: Any, event: Any) -> Any:
            return self.chances[state[0], action[0], event[0]]

        def transition(self, state: Any, action: Any, event: Any) -> Any:
            return self.successors[state[0], action[0], event[0]][None], self.reward[state[0], action[0]]

    def run(*given: Any) -> tuple[np.ndarray, np.ndarray]:
        *table, discount, epsilon = given
        solver = ValueIteration(Table(*table), gamma=discount, epsilon=epsilon, verbose=0)
        found = solver.solve(max_iterations=100_000)
        return np.asarray(found.policy)[:, 0], np.asarray(found.values)

    return run


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


def mdpax(rows: np.ndarray, reward: np.ndarray, discount: float, policy: Any) -> tuple[Any, Any]:
    solver = mdpax_solver()
    assert solver is not None
    successors = np.broadcast_to(np.arange(rows.shape[-1]), rows.shape)
    return solver(successors, rows, reward, discount, 1e-9)[0], None


def missing() -> str:
    """Who could take part and is not here."""
    names = {"jax": "JAX", "jaxdp": "jaxdp", "mdpax": "mdpax", "quantecon": "QuantEcon", "mdpsolver": "mdpsolver"}
    away = [name for package, name in names.items() if importlib.util.find_spec(package) is None]
    return f"Not installed, and so not measured: {', '.join(away)}." if away else ""


def installed() -> dict[str, Solver]:
    """The tools that take one MDP at a time, as far as they are here."""
    peers: dict[str, tuple[str, Solver]] = {
        "SciPy": ("scipy", scipy),
        "mdpsolver": ("mdpsolver", mdpsolver),
        "QuantEcon": ("quantecon", quantecon),
        "pymdptoolbox": ("mdptoolbox", pymdptoolbox),
    }
    return {name: solver for name, (package, solver) in peers.items() if importlib.util.find_spec(package)}
