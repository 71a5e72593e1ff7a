"""Costs beside the reward: corners and mixtures against a linear program over occupancy measures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from certeq import InputError
from certeq.model.kernel import Rows
from certeq.planners.constrained import Constrained, frontier, keep
from certeq.questions.exact import evaluate


def a_problem(seed: int, S: int = 6, A: int = 3, K: int = 1, gamma: float = 0.9, **more: object) -> Constrained:
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(S, 0.4), size=(S, A))
    reward, costs = random.normal(size=(S, A)), random.gamma(1.0, size=(K, S, A))
    return Constrained(Rows(rows), reward, costs, gamma, random.dirichlet(np.ones(S)), **more)


def best_by_program(problem: Constrained, limits) -> float:
    """The twin: max d·r over occupancies d ≥ 0 with Σ_a d(s', a) = start(s') + γ Σ d(s, a) T(s, a, s'), d·c ≤ limit."""
    S, A = problem.reward.shape
    flow = np.repeat(np.eye(S), A, axis=1) - problem.discount * problem.model.dense().reshape(S * A, S).T
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -problem.reward.ravel(), problem.costs.reshape(len(problem.costs), -1), limits, flow, problem.start,
        options=exact,
    )  # fmt: skip
    return -found.fun if found.status == 0 else -np.inf


@pytest.mark.parametrize("seed", range(8))
def test_the_frontier_is_that_of_a_linear_program(seed: int) -> None:
    problem = a_problem(seed, gamma=(0.5, 0.9, 0.97)[seed % 3])
    corners = frontier(problem)
    cost, value = np.array([c.costs[0] for c in corners]), np.array([c.value for c in corners])
    assert (np.diff(cost) > 0).all()
    assert (np.diff(value) > 0).all()
    slope = np.diff(value) / np.diff(cost)
    assert (np.diff(slope) < 1e-9).all(), "the frontier is concave"
    for limit in (*cost, *(cost[:-1] + cost[1:]) / 2, *(0.3 * cost[:-1] + 0.7 * cost[1:])):
        assert np.interp(limit, cost, value) == pytest.approx(best_by_program(problem, [limit]), abs=1e-8)
    for corner in corners:  # and each corner is what its policy earns and costs
        for table, told in ((problem.reward, corner.value), (problem.costs[0], corner.costs[0])):
            found = evaluate(problem.model, table, problem.discount, corner.policy) @ problem.start
            assert told == pytest.approx(found, abs=1e-10)


@pytest.mark.parametrize(("seed", "K"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3)])
def test_the_best_mixture_within_limits_is_that_of_a_linear_program(seed: int, K: int) -> None:
    problem = a_problem(seed, K=K)
    free = problem.corner(np.zeros(K)).costs
    least = np.array([problem.corner(np.eye(K)[k], weight=0.0).costs[k] for k in range(K)])
    limits = 0.4 * least + 0.6 * free
    found = keep(problem, limits)
    assert found.value == pytest.approx(best_by_program(problem, limits), abs=1e-8)
    assert sum(chance for chance, _ in found.mixture) == pytest.approx(1)
    mixed = sum(chance * corner.costs for chance, corner in found.mixture)
    assert (mixed <= limits + 1e-8).all()
    if found.corner is None:
        assert K > 1, "with one limit there always is a single policy"
        return
    assert (found.corner.costs <= limits + 1e-9).all()
    assert found.corner.value <= found.value + 1e-9
    if K == 1:  # no other corner within the limit is worth more
        kept = [one.value for one in frontier(problem) if one.costs[0] <= limits[0] + 1e-9]
        assert found.corner.value == pytest.approx(max(kept), abs=1e-9)


def test_a_limit_that_does_not_bind_changes_nothing_and_one_that_cannot_be_kept_is_refused() -> None:
    problem = a_problem(5)
    free = problem.corner([0.0])
    found = keep(problem, free.costs + 1)
    assert (found.corner.policy == free.policy).all()
    assert found.prices.tolist() == [0.0]
    least = problem.corner([1.0], weight=0.0).costs
    at_least = keep(problem, least)
    assert at_least.corner.costs == pytest.approx(least)
    with pytest.raises(InputError, match=r"No policy keeps the limit dose<=0: the least that the model allows is"):
        keep(problem, np.zeros(1), ("dose<=0",))


def test_limits_that_cannot_be_kept_together_are_refused() -> None:
    rows = np.ones((1, 2, 1))
    problem = Constrained(Rows(rows), np.zeros((1, 2)), np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), 0.5, np.ones(1))
    found = keep(problem, np.array([1.0, 2.0]))
    assert found.value == 0
    assert found.corner is not None
    assert found.corner.costs.tolist() == [0.0, 2.0]
    assert keep(problem, np.array([1.0, 1.5])).corner is None  # only by lot
    with pytest.raises(InputError, match="not all at once"):
        keep(problem, np.array([0.5, 0.5]), ("x<=0.5", "y<=0.5"))


def test_a_horizon_has_a_frontier_of_its_own() -> None:
    """Two decisions in one state, act or rest: acting earns 1 and then 1/2, and costs 1 each time."""
    rows = np.ones((1, 2, 1))
    problem = Constrained(Rows(rows), np.array([[0.0, 1.0]]), np.array([[[0.0, 1.0]]]), 0.5, np.ones(1), horizon=2)
    corners = frontier(problem)
    assert [(one.costs[0], one.value) for one in corners] == [(0.0, 0.0), (1.5, 1.5)]
    assert corners[-1].policy.tolist() == [[1], [1]]


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_from_a_policy_nearby_is_the_plan_from_nothing_and_each_policy_is_valued_once(seed: int) -> None:
    visits = np.random.default_rng(seed).integers(1, 9, size=(12, 3))
    allowed = np.random.default_rng(seed).random((12, 3)) < 0.8
    allowed[:, 0] = True
    problem = a_problem(seed, S=12, K=2, allowed=allowed, visits=visits)
    far = problem.corner([0.0, 5.0])
    for prices in ([0.0, 0.0], [0.3, 0.1], [2.0, 0.0]):
        cold, warm = problem.corner(prices), problem.corner(prices, near=far)
        assert np.array_equal(cold.policy, warm.policy)
        assert (cold.value, *cold.costs) == (warm.value, *warm.costs)
    one = a_problem(seed, S=12)
    corners = frontier(one)
    assert len(one._known) < 2 * len(corners), "edges are confirmed without valuing anything"
