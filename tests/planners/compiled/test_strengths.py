"""Eight strengths side by side, against the plain twin of the medium kernel: LAPACK on the written-out mixture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_medium import TOLERANCE, Case, arguments, case, dense, hard, local, threaded, twin

from certeq import solve
from certeq.base.arrays import Floats
from certeq.model.kernel import Mixture, Rows
from certeq.planners import compiled
from certeq.planners.compiled.strengths import plan_strengths, value_policies

pytestmark = pytest.mark.slow  # kernels are compiled


@pytest.fixture(autouse=True)
def _however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH_MORE", 0)


def plan(c: Case, threads: int = 1, max_iterations: int = 500) -> tuple[Any, ...]:
    (K, L), S = c.shape, c.rows.shape[1]
    out = np.full((K, L, S), -1), np.full((K, L, S), np.nan), np.full((K, L), -1), np.full((K, L), np.nan)
    given = c.allowed, np.zeros(K, np.int64), TOLERANCE, max_iterations, *out
    threaded(plan_strengths, K, threads, *arguments(c), *given)
    return out


def agree(c: Case, left: int = 0) -> None:
    """Same policy and values as the twin, and an honest residual; so many chains are left to the other kernel."""
    policy, values, iterations, residual = plan(c)
    done = iterations.all(axis=1)
    assert (~done).sum() == left
    assert not iterations[~done].any()
    for k, step in np.ndindex(c.shape):
        if done[k]:
            T, R, g = c.mixture(k, step)
            best, v = twin(T, R, g)
            scale = np.abs(v).max()
            np.testing.assert_allclose(values[k, step], v, rtol=0, atol=TOLERANCE * scale)
            np.testing.assert_array_equal(policy[k, step], best)
            bellman = np.abs((R + g * (T @ values[k, step])).max(axis=1) - values[k, step]).max()
            assert residual[k, step] == pytest.approx(bellman, rel=1e-6, abs=4e-15 * scale + 1e-300)


def thin(rng: np.random.Generator, K: int = 3, S: int = 45, A: int = 3) -> tuple[Floats, Floats]:
    """Frequencies of few visits; a pair in three has none, and a uniform row."""
    counts = rng.multinomial(rng.integers(1, 5, (K, S, A)), rng.dirichlet(np.full(S, 0.1), (K, S, A)))
    visited = rng.random((K, S, A, 1)) < 0.67
    return np.where(visited, counts / counts.sum(-1, keepdims=True), 1 / S), rng.random((K, S, A))


def weights(rng: np.random.Generator, L: int, S: int, A: int) -> Floats:
    """From nothing to nearly everything, some pairs all along at 0 and some at 1."""
    weight = np.linspace(0, 0.95, L)[:, None, None] ** rng.uniform(0.5, 2, (S, A))
    weight[:, :3], weight[:, 3:6] = 0, 1
    return weight


WORLDS = pytest.mark.parametrize("world", [thin, local])
TARGETS = {
    "uniform": lambda rng, S: np.full((1, 1, S), 1 / S),
    "any": lambda rng, S: rng.dirichlet(np.ones(S), (1, 1)),
    "none": lambda rng, S: np.zeros((1, 1, S)),
    "short": lambda rng, S: rng.dirichlet(np.ones(S), (1, 1)) / 2,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("L", "discount"), [(1, 0.5), (4, 0.99), (8, 0.0), (13, 0.95), (17, 0.999)])
@WORLDS
def test_strengths_are_planned_as_by_lapack(world: Any, L: int, discount: float, target: str) -> None:
    rng = np.random.default_rng(L)
    rows, reward = world(rng)
    S, A = reward.shape[1:]
    agree(case(rows, reward, discount, weights(rng, L, S, A), TARGETS[target](rng, S)))


@pytest.mark.parametrize("S", [33, 40, 47, 130])
def test_every_number_of_states_is_planned(S: int) -> None:
    rng = np.random.default_rng(S)
    agree(case(*thin(rng, S=S, A=2), 0.97, weights(rng, 9, S, 2)))


@WORLDS
def test_rewards_and_discounts_may_change_along_a_chain(world: Any) -> None:
    rng = np.random.default_rng(1)
    rows, reward = world(rng)
    (K, S, A), L = reward.shape, 11
    rewards = reward[:, None] + rng.normal(size=(K, L, S, A))
    agree(case(rows, rewards, np.linspace(0.99, 0, L), weights(rng, L, S, A)))


@WORLDS
def test_masked_actions_are_never_taken(world: Any) -> None:
    rng = np.random.default_rng(2)
    rows, reward = world(rng)
    S, A = reward.shape[1:]
    allowed = rng.random((S, A)) < 0.5
    allowed[np.arange(S), rng.integers(A, size=S)] = True
    c = case(rows, reward, 0.95, weights(rng, 8, S, A), allowed=allowed)
    agree(c)
    assert allowed[np.arange(S), plan(c)[0]].all()


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
@WORLDS
def test_exact_ties_go_to_the_first_action(world: Any, discount: float) -> None:
    rng = np.random.default_rng(3)
    rows, reward = (np.repeat(each, 2, axis=2) for each in world(rng))
    weight = np.repeat(weights(rng, 8, reward.shape[1], reward.shape[2] // 2), 2, axis=2)
    c = case(rows, reward, discount, weight)
    agree(c)
    assert (plan(c)[0] % 2 == 0).all()


def test_no_reward_means_no_value_and_the_first_action() -> None:
    rows, reward = thin(np.random.default_rng(4))
    policy, values, _, residual = plan(case(rows, 0 * reward, np.full(8, 0.99)))
    assert not policy.any()
    assert not values.any()
    assert not residual.any()


def test_rows_that_are_not_sparse_are_left_alone() -> None:
    agree(case(*dense(np.random.default_rng(5)), np.full(8, 0.9)), left=3)


def test_policies_that_need_not_end_are_left_alone() -> None:
    agree(case(*thin(np.random.default_rng(6)), np.full(8, 1.0)), left=3)


def test_what_takes_too_many_rounds_is_left_alone() -> None:
    c = case(*local(np.random.default_rng(7)), np.full(8, 0.999))
    assert not plan(c, max_iterations=2)[2].any()


@pytest.mark.parametrize("S", [60, 200])
def test_a_nearly_periodic_chain_is_planned_or_left_and_then_planned_by_the_other_kernel(S: int) -> None:
    rows, reward = hard(S)
    rows = np.where(rows > 0.5, rows, 0)
    rows[:, 0] *= 0.999
    mixed = Mixture(Rows(rows[:, None]), np.linspace(0, 1e-3, 9)[:, None, None], Rows(np.full((1, 1, S), 1 / S)))
    fast, plain = (solve(mixed, reward[:, None], 0.9999, engine=engine) for engine in ("numba", "numpy"))
    np.testing.assert_array_equal(fast.tied, plain.tied)
    np.testing.assert_allclose(fast.values, plain.values, rtol=0, atol=TOLERANCE * np.abs(plain.values).max())


def test_chains_that_are_left_are_planned_among_those_that_are_not() -> None:
    rng = np.random.default_rng(8)
    (rows, reward), (full, other) = thin(rng, K=4), dense(rng, K=4)
    order = [0, 4, 1, 5, 6, 2, 3, 7]  # sparse ones are 0 to 3
    rows, reward = np.concatenate([rows, full])[order], np.concatenate([reward, other])[order]
    S, A = reward.shape[1:]
    mixed = Mixture(Rows(rows[:, None]), weights(rng, 6, S, A), Rows(np.full((1, 1, S), 1 / S)))
    plans = [solve(mixed, reward[:, None], 0.98, engine="numba", threads=threads) for threads in (1, 2, 3)]
    plain = solve(mixed, reward[:, None], 0.98, engine="numpy")
    np.testing.assert_array_equal(plans[0].policy, plain.policy)
    np.testing.assert_allclose(plans[0].values, plain.values, rtol=0, atol=TOLERANCE * np.abs(plain.values).max())
    assert plans[0].outcome == "optimal"
    for other_threads in plans[1:]:
        np.testing.assert_array_equal(other_threads.values, plans[0].values)
        np.testing.assert_array_equal(other_threads.iterations, plans[0].iterations)


@WORLDS
def test_threads_change_nothing(world: Any) -> None:
    rng = np.random.default_rng(9)
    rows, reward = world(rng)
    c = case(rows, reward, 0.999, weights(rng, 12, *reward.shape[1:]))
    for one, two in zip(plan(c), plan(c, threads=2), strict=True):
        np.testing.assert_array_equal(one, two)


def value(rows: Floats, reward: Floats, discount: float, of: Any, chance: Floats, threads: int = 1) -> tuple[Any, Any]:
    values, done = np.full(chance.shape[:2], np.nan), np.ones(len(chance), dtype=bool)
    threaded(value_policies, len(chance), threads, rows, reward, discount, of, chance, 1e-12, values, done)
    return values, done


def drawn(world: Any, of: list[int]) -> tuple[Floats, Floats, Any, Floats]:
    """Some MDPs, and policies that leave some actions out and draw among the others."""
    rng = np.random.default_rng(10)
    rows, reward = world(rng)
    chance = rng.dirichlet(np.ones(reward.shape[2]), (len(of), reward.shape[1]))
    chance[chance < 0.2] = 0
    return rows, reward, np.array(of), chance / chance.sum(-1, keepdims=True)


OF = [0] * 9 + [1, 2, 2] + [1] * 20


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99, 0.999])
@WORLDS
def test_policies_that_draw_are_valued_as_by_lapack(world: Any, discount: float) -> None:
    rows, reward, of, chance = drawn(world, OF)
    rows[:, :4] *= 0.8  # episodes may end
    values, done = value(rows, reward, discount, of, chance)
    assert done.all()
    for i, k in enumerate(of):
        P, R = np.einsum("sa,saj->sj", chance[i], rows[k]), (chance[i] * reward[k]).sum(axis=-1)
        exact = np.linalg.solve(np.eye(len(R)) - discount * P, R)
        np.testing.assert_allclose(values[i], exact, rtol=0, atol=1e-11 * np.abs(exact).max())


@WORLDS
def test_a_policy_is_worth_the_same_whatever_is_valued_beside_it(world: Any) -> None:
    rows, reward, of, chance = drawn(world, OF)
    together, _ = value(rows, reward, 0.99, of, chance)
    np.testing.assert_array_equal(value(rows, reward, 0.99, of, chance, threads=3)[0], together)
    for i in range(len(of)):
        alone, _ = value(rows, reward, 0.99, of[i : i + 1], chance[i : i + 1])
        np.testing.assert_array_equal(alone[0], together[i])


def test_policies_in_rows_that_are_not_sparse_are_left() -> None:
    rows, reward, of, chance = drawn(dense, OF)
    rows[1] = thin(np.random.default_rng(11))[0][1]
    np.testing.assert_array_equal(value(rows, reward, 0.9, of, chance)[1], of == 1)
