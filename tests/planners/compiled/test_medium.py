"""The medium kernel against its plain twin: policy iteration with LAPACK on the written-out mixture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

from certeq.base.arrays import Booleans, Floats
from certeq.planners.compiled.medium import evaluate_medium, plan_medium

pytestmark = pytest.mark.slow  # kernels are compiled

TOLERANCE = 1e-9


class Case(NamedTuple):
    """K chains of L steps. Leading axes of length 1 are shared."""

    rows: Floats  # (K or 1, S, A, S)
    reward: Floats  # (K or 1, L or 1, S, A)
    discount: Floats  # (L or 1,)
    weight: Floats  # (L or 1, S, A)
    target: Floats  # (1, 1 or S, 1 or A, S)
    allowed: Booleans  # (1, S, A)

    @property
    def shape(self) -> tuple[int, int]:
        K = max(len(self.rows), len(self.reward))
        return K, max(self.reward.shape[1], len(self.discount), len(self.weight))

    def mixture(self, k: int, step: int) -> tuple[Floats, Floats, float]:
        """Write the planned MDP out."""
        w = self.weight[step % len(self.weight)][:, :, None]
        R = self.reward[k % len(self.reward), step % self.reward.shape[1]]
        T = (1 - w) * self.rows[k % len(self.rows)] + w * self.target[0]
        return T, np.where(self.allowed[0], R, -np.inf), float(self.discount[step % len(self.discount)])


def case(rows: Floats, reward: Floats, discount: Any = 0.9, weight: Any = 0.0, target: Any = None, allowed: Any = True):
    S, A = rows.shape[1:3]
    weight = np.asarray(weight, dtype=float)
    weight = np.broadcast_to(weight, (*weight.shape[: max(weight.ndim - 2, 0)], S, A)).reshape(-1, S, A)
    return Case(
        rows,
        reward if reward.ndim == 4 else reward[:, None],
        np.atleast_1d(np.asarray(discount, dtype=float)),
        weight.copy(),  # Numba would compile a second kernel for arrays that are read-only
        np.full((1, 1, 1, S), 1 / S) if target is None else np.array(target)[None],
        np.broadcast_to(allowed, (1, S, A)).copy(),
    )


def arguments(c: Case) -> list[Any]:
    """Line the operands up as the kernels want them, except for the mask."""
    (K, L), k = c.shape, np.arange(c.shape[0])
    steps = lambda n: np.broadcast_to(np.arange(L) % n, (K, L)).copy()  # noqa: E731
    S, A = c.weight.shape[1:]
    reward_of = k[:, None] % len(c.reward) * c.reward.shape[1] + steps(c.reward.shape[1])
    zero = np.zeros(K, np.int64)
    lined = [c.rows, k % len(c.rows), c.weight, steps(len(c.weight)), c.target, zero]
    return [*lined, c.reward.reshape(-1, S, A), reward_of, c.discount, steps(len(c.discount))]


def threaded(kernel: Any, K: int, threads: int, *args: Any) -> None:
    cuts = [K * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda i: kernel(cuts[i], cuts[i + 1], *args), range(threads)))


def plan(c: Case, threads: int = 1, tolerance: float = TOLERANCE, max_iterations: int = 500) -> tuple[Any, ...]:
    (K, L), S = c.shape, c.rows.shape[1]
    out = np.empty((K, L, S), np.int64), np.empty((K, L, S)), np.empty((K, L), np.int64), np.empty((K, L))
    mask = c.allowed, np.zeros(K, np.int64)
    threaded(plan_medium, K, threads, *arguments(c), *mask, tolerance, max_iterations, *out)
    return out


def evaluate(c: Case, policy: Any, threads: int = 1) -> tuple[Floats, Floats]:
    out = np.empty(policy.shape), np.empty(policy.shape[:2])
    threaded(evaluate_medium, c.shape[0], threads, *arguments(c), policy, TOLERANCE, *out)
    return out


def twin_values(T: Floats, R: Floats, g: float, policy: Any) -> Floats:
    s = np.arange(len(R))
    return np.linalg.solve(np.eye(len(R)) - g * T[s, policy], R[s, policy])


def twin(T: Floats, R: Floats, g: float) -> tuple[Any, Floats]:
    """Policy iteration; -inf rewards mark actions that are not allowed."""
    s, policy = np.arange(len(R)), R.argmax(axis=1)
    while True:
        v = twin_values(T, R, g, policy)
        q = R + g * (T @ v)
        tie = 1e-10 * np.abs(q[np.isfinite(q)]).max()
        better = q.max(axis=1) > q[s, policy] + 0.01 * tie
        if not better.any():
            return (q >= q.max(axis=1, keepdims=True) - tie).argmax(axis=1), v
        policy = np.where(better, q.argmax(axis=1), policy)


def agree(c: Case) -> None:
    """Same policy and values as the twin, honest residual, and the values of that policy."""
    policy, values, iterations, residual = plan(c)
    for k, step in np.ndindex(c.shape):
        T, R, g = c.mixture(k, step)
        best, v = twin(T, R, g)
        scale = np.abs(v).max()
        np.testing.assert_allclose(values[k, step], v, rtol=0, atol=TOLERANCE * scale)
        np.testing.assert_array_equal(policy[k, step], best)
        bellman = np.abs((R + g * (T @ values[k, step])).max(axis=1) - values[k, step]).max()
        assert residual[k, step] == pytest.approx(bellman, rel=1e-6, abs=4e-15 * scale + 1e-300)
    assert iterations.min() >= 1
    assert iterations.max() < 100
    evaluated, _ = evaluate(c, policy)
    np.testing.assert_allclose(evaluated, values, rtol=0, atol=TOLERANCE * np.abs(values).max())


def dense(rng: np.random.Generator, K: int = 3, S: int = 45, A: int = 3) -> tuple[Floats, Floats]:
    rows = rng.random((K, S, A, S))
    return rows / rows.sum(-1, keepdims=True), rng.random((K, S, A))


def local(rng: np.random.Generator, K: int = 3, side: int = 3, A: int = 2) -> tuple[Floats, Floats]:
    """Slow drift on a four-dimensional grid."""
    grid = np.indices((side,) * 4).reshape(4, -1).T
    near = np.abs(grid[:, None] - grid[None]).sum(-1) <= 1
    rows = rng.random((K, len(grid), A, len(grid))) * near[:, None] + 5 * np.eye(len(grid))[:, None]
    reward = -grid.sum(1)[:, None] + rng.random((K, len(grid), A))
    return rows / rows.sum(-1, keepdims=True), reward


DISCOUNTS = [0.0, 0.5, 0.99, 0.999]


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("S", [33, 40, 100])
def test_random_rows_are_planned_as_by_lapack(S: int, discount: float) -> None:
    agree(case(*dense(np.random.default_rng(S), S=S), discount))


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("side", [3, 4])
def test_slow_drift_is_planned_as_by_lapack(side: int, discount: float) -> None:
    agree(case(*local(np.random.default_rng(1), side=side), discount))


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_rows_that_are_the_same_everywhere_are_planned_as_by_lapack(weight: float) -> None:
    rows, reward = local(np.random.default_rng(1))
    S = rows.shape[1]
    rows[:, ::3], rows[:, 1::5] = 1 / S, 0.5 / S
    agree(case(rows, reward, 0.99, weight))


@pytest.mark.parametrize("discount", [*DISCOUNTS, 1.0])
@pytest.mark.parametrize("world", [dense, local])
def test_episodes_may_end(world: Any, discount: float) -> None:
    rng = np.random.default_rng(2)
    rows, reward = world(rng)
    agree(case(rows * rng.uniform(0.9, 1, rows.shape[:3])[..., None], reward, discount))


@pytest.mark.parametrize("world", [dense, local])
def test_an_episode_that_ends_at_one_state_only_needs_no_contraction(world: Any) -> None:
    rng = np.random.default_rng(3)
    rows, reward = world(rng)
    rows[:, 0] *= 0.5
    agree(case(rows, reward, 1.0))


def test_without_discount_a_policy_that_never_ends_is_left() -> None:
    S = 40  # walk right at cost 1, or stay for ever at cost 1/2; the last state ends
    rows = np.zeros((1, S, 2, S))
    rows[0, np.arange(S - 1), 1, np.arange(1, S)] = 1
    rows[0, np.arange(S), 0, np.arange(S)] = 1
    reward = np.tile([-0.5, -1.0], (1, S, 1))
    policy, values, _, residual = plan(case(rows, reward, 1.0))
    assert (policy == 1).all()
    np.testing.assert_allclose(values[0, 0], -np.arange(S, 0, -1.0), rtol=1e-9)
    assert residual.max() <= 1e-9 * S


def test_an_even_loss_of_mass_is_a_discount() -> None:
    rows, reward = local(np.random.default_rng(4))
    ended = plan(case(rows * 0.9, reward, 0.99))
    discounted = plan(case(rows, reward, 0.9 * 0.99))
    np.testing.assert_array_equal(ended[0], discounted[0])
    np.testing.assert_allclose(ended[1], discounted[1], rtol=1e-9)


@pytest.mark.parametrize("world", [dense, local])
def test_masked_actions_are_never_taken(world: Any) -> None:
    rng = np.random.default_rng(5)
    rows, reward = world(rng)
    allowed = rng.random(reward.shape[1:]) < 0.5
    allowed[np.arange(len(allowed)), rng.integers(allowed.shape[1], size=len(allowed))] = True
    c = case(rows, reward, 0.95, allowed=allowed)
    agree(c)
    assert allowed[np.arange(len(allowed)), plan(c)[0]].all()


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("world", [dense, local])
def test_exact_ties_go_to_the_first_action(world: Any, discount: float) -> None:
    rows, reward = world(np.random.default_rng(6))
    rows, reward = np.repeat(rows, 2, axis=2), np.repeat(reward, 2, axis=2)
    c = case(np.ascontiguousarray(rows[:, :, ::-1]), np.ascontiguousarray(reward[:, :, ::-1]), discount)
    agree(c)
    assert (plan(c)[0] % 2 == 0).all()


def test_ties_between_different_rows_are_seen_as_ties() -> None:
    rng = np.random.default_rng(7)
    rows, _ = dense(rng, S=64, A=2)
    reward = rng.random((3, 64, 1)).repeat(2, axis=2)
    rows[:, :, 1] = rows[:, :, 0].reshape(3, 64, 32, 2)[..., ::-1].reshape(3, 64, 64)  # states 2i and 2i+1 are alike
    rows[:, 1::2] = rows[:, ::2]
    reward[:, 1::2] = reward[:, ::2]
    assert (plan(case(rows, reward, 0.97))[0] == 0).all()


def test_ties_between_worlds_apart_do_not_keep_policy_iteration_going_round() -> None:
    rng = np.random.default_rng(16)  # whole rewards and sure moves: many cycles are equally good, up to rounding
    K, S, A, discount = 60, 140, 7, 0.9999
    rows = np.zeros((K, S, A, S))
    np.put_along_axis(rows, rng.integers(S, size=(K, S, A, 1)), 1.0, axis=-1)
    _, values, iterations, residual = plan(case(rows, rng.integers(0, 3, (K, S, A)).astype(float), discount))
    assert iterations.max() < 50
    assert (residual / (1 - discount) <= TOLERANCE * np.abs(values).max(-1)).all()


def test_no_reward_means_no_value_and_the_first_action() -> None:
    rows, reward = dense(np.random.default_rng(8))
    policy, values, _, residual = plan(case(rows, 0 * reward, 0.99))
    assert not policy.any()
    assert not values.any()
    assert not residual.any()


@pytest.mark.parametrize("G", [False, True], ids=["any-state", "each-state"])
@pytest.mark.parametrize("H", [False, True], ids=["any-action", "each-action"])
@pytest.mark.parametrize("world", [dense, local])
def test_every_shape_of_target_is_mixed_in(world: Any, G: bool, H: bool) -> None:
    rng = np.random.default_rng(9)
    rows, reward = world(rng)
    S, A = reward.shape[1:]
    target = rng.random((S if G else 1, A if H else 1, S))
    target /= target.sum(-1, keepdims=True)
    weight = rng.random((S, A))
    weight[:5], weight[5:10] = 0, 1
    rows[:, 5:10] = 0  # never visited: the target takes their place
    agree(case(rows, reward, 0.98, weight, target))
    agree(case(rows, reward, 0.98, weight, 0.5 * target))


@pytest.mark.parametrize("world", [dense, local])
def test_steps_of_a_chain_are_planned_as_if_alone(world: Any) -> None:
    rng = np.random.default_rng(10)
    rows, reward = world(rng)
    L = 5
    chain = case(
        rows,
        np.stack([reward + 0.1 * i for i in range(L)], axis=1),
        np.linspace(0.9, 0.99, L),
        np.linspace(0, 0.9, L)[:, None, None] * rng.random(reward.shape[1:]),
    )
    agree(chain)
    together = plan(chain)
    for i in range(L):
        alone = plan(case(rows, reward + 0.1 * i, chain.discount[i], chain.weight[i]))
        np.testing.assert_array_equal(together[0][:, i], alone[0][:, 0])
        np.testing.assert_allclose(together[1][:, i], alone[1][:, 0], rtol=1e-9)


def hard(S: int = 60, K: int = 4) -> tuple[Floats, Floats]:
    """One long cycle, hardly ever left: all eigenvalues lie on the unit circle, and GMRES sees none of them coming."""
    rng = np.random.default_rng(11)
    rows = np.full((K, S, 2, S), 1e-6 / S)
    order = rng.permutation(S)
    rows[:, order, 0, np.roll(order, 1)] += 1 - 1e-6
    rows[:, order, 1, np.roll(order, -1)] += 1 - 1e-6
    return rows, rng.random((K, S, 2))


@pytest.mark.parametrize("S", [60, 200])
def test_a_nearly_periodic_chain_is_solved_by_elimination(S: int) -> None:
    agree(case(*hard(S), 0.9999))


def test_a_nearly_undiscounted_problem_still_meets_its_bound() -> None:
    agree(case(*local(np.random.default_rng(12), side=3), 0.9999))


@pytest.mark.parametrize("world", [dense, local, lambda rng: hard()])
def test_threads_change_nothing(world: Any) -> None:
    c = case(*world(np.random.default_rng(13)), 0.999)
    one, two = plan(c), plan(c, threads=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(evaluate(c, one[0]), evaluate(c, one[0], threads=2), strict=True):
        np.testing.assert_array_equal(a, b)


def test_running_out_of_iterations_is_told() -> None:
    c = case(*local(np.random.default_rng(14)), 0.999)
    _, values, iterations, residual = plan(c, max_iterations=2)
    assert (iterations == 3).all()  # one more than allowed says that they did not suffice
    for k in range(3):
        T, R, g = c.mixture(k, 0)
        bellman = np.abs((R + g * (T @ values[k, 0])).max(axis=1) - values[k, 0]).max()
        assert residual[k, 0] == pytest.approx(bellman)
        assert np.abs(values[k, 0] - twin(T, R, g)[1]).max() <= residual[k, 0] / (1 - g) * (1 + 1e-9)


@pytest.mark.parametrize("discount", [*DISCOUNTS, 0.9999, 1.0])
@pytest.mark.parametrize("world", [dense, local, lambda rng: hard()])
def test_any_policy_is_evaluated_as_by_lapack(world: Any, discount: float) -> None:
    rng = np.random.default_rng(15)
    rows, reward = world(rng)
    rows[:, :3] *= 0.7  # so that episodes end
    S, A = reward.shape[1:]
    c = case(rows, reward, [discount, 0.9 * discount], rng.random((S, A)), rng.dirichlet(np.ones(S), (S, 1)))
    policy = rng.integers(A, size=(*c.shape, S))
    values, residual = evaluate(c, policy)
    for k, step in np.ndindex(c.shape):
        T, R, g = c.mixture(k, step)
        v = twin_values(T, R, g, policy[k, step])
        np.testing.assert_allclose(values[k, step], v, rtol=0, atol=TOLERANCE * np.abs(v).max())
    assert residual.max() <= 1e-11 * np.abs(values).max()
