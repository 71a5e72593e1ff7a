"""The small kernels against their plain twins: eight MDPs side by side are eight MDPs."""

import numpy as np
import pytest

from certeq import solve
from certeq.base.threads import run
from certeq.model.kernel import Mixture, Rows
from certeq.planners.compiled.operands import operands
from certeq.planners.compiled.small import evaluate_small, plan_small
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import How, Problem
from certeq.planners.progress import Watch
from strategies import random_model, random_rows

pytestmark = pytest.mark.slow  # kernels are compiled

ODD_SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 23, 130]


def problem(K, S=5, A=3, *, L=1, seed=0, ends=True):
    """K chains of L steps: rows and target stay along a chain, weights, rewards and discounts change."""
    rng = np.random.default_rng(seed)
    return (
        random_rows(rng, (K, 1, S, A, S), ends=ends),
        rng.random((K, L, S, A)),
        random_rows(rng, (K, 1, S, 1, S)),
        rng.uniform(-1, 1, (K, L, S, A)),
        rng.choice([0.0, 0.5, 0.95], size=(K, L)),
        np.ones((1, 1, S, A), dtype=bool),
    )


def planned(parts, *, limit=1000, threads=1):
    work = operands(*parts)
    shape, S = (work.chains, work.steps), parts[0].shape[-1]
    policy, values = np.full((*shape, S), -9, dtype=np.int64), np.full((*shape, S), np.nan)
    iterations, residual = np.full(shape, -9), np.full(shape, np.nan)
    out = (policy, values, iterations, residual)
    faults = run(plan_small, work.chains, *work.arrays, 0.0, limit, *out, grain=8, threads=threads)
    return (*out, faults)


def twin(parts):
    rows, weight, target, reward, discount, allowed = parts
    model = Mixture(Rows(rows), weight, Rows(target))
    return policy_iteration(Problem(model, reward, discount, allowed), How(0.0, 1000, Watch(), None))


@pytest.mark.parametrize("K", ODD_SIZES)
@pytest.mark.parametrize("L", [1, 4])
def test_any_number_of_chains_is_planned_as_by_policy_iteration(K, L):
    parts = problem(K, L=L)
    policy, values, iterations, residual, faults = planned(parts)
    expected = twin(parts)
    np.testing.assert_array_equal(policy, expected.policy)
    np.testing.assert_allclose(values, expected.values, atol=1e-12)
    assert (iterations >= 1).all()
    assert residual.max() < 1e-12
    assert faults == [-1]


@pytest.mark.parametrize("S", [1, 2, 3, 7, 8, 9, 20, 32])
@pytest.mark.parametrize("A", [1, 2, 5])
def test_any_size_is_planned_as_by_policy_iteration(S, A):
    parts = problem(5, S, A, L=2, seed=S)
    policy, values, *_ = planned(parts)
    expected = twin(parts)
    np.testing.assert_array_equal(policy, expected.policy)
    np.testing.assert_allclose(values, expected.values, atol=1e-11)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_beside_values_that_are_not_finite_the_residual_is_nan(wrong):
    parts = problem(20)
    parts[3][4, 0, 2], parts[3][9, 0, 0] = wrong, wrong
    _, values, _, residual, _ = planned(parts)
    np.testing.assert_array_equal(np.isnan(residual), ~np.isfinite(values).all(axis=-1))
    assert np.isnan(residual[[4, 9], 0]).all()


@pytest.mark.parametrize("K", [17, 130])
def test_one_thread_and_two_give_the_same_bits(K):
    parts = problem(K, L=3)
    for one, two in zip(planned(parts, threads=1)[:4], planned(parts, threads=2)[:4], strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_lane_does_not_depend_on_its_neighbors():
    parts = problem(20, L=2)
    together = planned(parts)
    alone = planned(tuple(part[13:14] if part.shape[0] > 1 else part for part in parts))
    for many, one in zip(together[:4], alone[:4], strict=True):
        np.testing.assert_array_equal(many[13], one[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.1])
@pytest.mark.parametrize("chain", [0, 7, 8, 16])
def test_a_bad_row_is_detected_in_any_lane(bad, chain):
    parts = problem(17)
    parts[0][chain, 0, 2, 1] = [bad, 0, 0, 0, 0]
    *_, faults = planned(parts)
    assert faults == [chain // 8 * 8]


def test_what_is_not_allowed_is_not_chosen():
    parts = problem(9, L=2)
    allowed = np.random.default_rng(1).random((9, 1, 5, 3)) < 0.5
    allowed[..., 2] |= ~allowed.any(axis=-1)
    masked = (*parts[:5], allowed)
    policy, values, *_ = planned(masked)
    expected = twin(masked)
    np.testing.assert_array_equal(policy, expected.policy)
    np.testing.assert_allclose(values, expected.values, atol=1e-12)


def evaluated(rows, reward, discount, policy, *, threads=1):
    """Values of policies (K, L, S), as the kernel finds them."""
    K, L, S = policy.shape
    blank = np.zeros((K, L, 1, 1)), np.zeros((1, 1, S))
    work = operands(rows, *blank, reward, discount, np.ones((1, 1), dtype=bool))
    values = np.full((K, L, S), np.nan)
    arrays = (work.rows, work.rows_of, work.reward, work.reward_of, work.discount, work.discount_of)
    return values, run(evaluate_small, K, *arrays, policy, 0.0, values, grain=8, threads=threads)


def random_evaluation(K, L, S=5, A=3):
    rows, _, _, reward, discount, _ = problem(K, S, A, L=L)
    return rows, reward, discount, np.random.default_rng(K).integers(A, size=(K, L, S))


def solved(rows, reward, discount, policy):
    """The same by LAPACK, one system at a time."""
    K, L, S = policy.shape
    values, states = np.empty((K, L, S)), np.arange(S)
    for at in np.ndindex(K, L):
        chosen = rows[at[0], 0][states, policy[at]]
        values[at] = np.linalg.solve(np.eye(S) - discount[at] * chosen, reward[at][states, policy[at]])
    return values


@pytest.mark.parametrize("K", ODD_SIZES)
@pytest.mark.parametrize("L", [1, 3])
def test_policies_are_evaluated_as_by_lapack(K, L):
    parts = random_evaluation(K, L)
    values, faults = evaluated(*parts)
    np.testing.assert_allclose(values, solved(*parts), atol=1e-12)
    assert faults == [-1]


@pytest.mark.parametrize("changes", ["policy", "reward", "discount", "nothing"])
def test_along_a_chain_whatever_changes_is_seen(changes):
    """A policy that stays is not solved again, but only while reward and discount stay as well."""
    rows, reward, discount, policy = random_evaluation(9, 4)
    if changes != "policy":
        policy[:] = policy[:, :1]
    reward = reward if changes == "reward" else reward[:, :1]
    discount = discount if changes == "discount" else discount[:, :1]
    values, _ = evaluated(rows, reward, discount, policy)
    full = np.broadcast_to(reward, (9, 4, 5, 3)), np.broadcast_to(discount, (9, 4))
    np.testing.assert_allclose(values, solved(rows, *full, policy), atol=1e-12)


def test_evaluation_has_the_same_bits_on_one_thread_and_two_and_detects_bad_rows():
    rows, reward, discount, policy = random_evaluation(130, 2)
    one, two = (evaluated(rows, reward, discount, policy, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    rows[12, 0, 0, 0] = 0.5
    assert evaluated(rows, reward, discount, policy)[1] == [8]


def test_stopping_early_leaves_an_honest_residual():
    T, R, _ = random_model(3, 12, 4)
    parts = (
        T[None],
        np.zeros((1, 12, 4)),
        np.zeros((1, 1, 12)),
        R[None],
        np.array([0.99]),
        np.ones((12, 4), dtype=bool),
    )
    _, values, _, residual, _ = planned(parts, limit=1)
    backed_up = (R + 0.99 * T @ values.ravel()).max(axis=1)
    assert residual.item() == pytest.approx(np.abs(backed_up - values.ravel()).max(), abs=1e-12)


def test_a_target_without_anything_ends_the_episode():
    rng = np.random.default_rng(5)
    rows, reward = rng.dirichlet(np.ones(4), size=(9, 4, 2)), rng.normal(size=(9, 4, 2))
    model = Mixture(Rows(rows), np.full((9, 4, 2), 0.3), Rows(np.zeros((1, 1, 4))))
    fast, plain = (solve(model, reward, 0.95, engine=engine) for engine in ("numba", "numpy"))
    np.testing.assert_array_equal(fast.policy, plain.policy)
    np.testing.assert_allclose(fast.values, plain.values, atol=1e-12)
    assert (fast.residual < 1e-12).all()
