"""Compiled policy iteration for batches of dense MDPs: when it pays, and how its kernels are called.

- ``small``: eight MDPs side by side, up to 32 states. ``medium``: one by one, of any size.
- ``sweep``: from counts to plans, and to what they lose in a truth, eight data sets side by side.
- ``operands``: how a batch is laid out for them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.model.kernel import UNCLEAR, Mixture, check_plain, check_rows
from certeq.model.mdp import MDP
from certeq.model.weights import CONSTANT, GIVEN, RELATIVE
from certeq.planners.backup import value_policy
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import How, Problem, Solution

if TYPE_CHECKING:
    from certeq.planners.compiled.operands import Operands

SMALL = 32  # states; up to here eight MDPs fit side by side in the cache
BITS = 52  # actions whose ties are exact as one float
FAR = 1e200  # a magnitude beyond all counts: the weight is 1
WORTH = 3e5  # MDPs times states squared, about 50 ms of NumPy: below it nobody should wait for a compiler


def fits(problem: Problem) -> bool:
    """Whether eight such MDPs may lie side by side."""
    return problem.n_states <= SMALL and problem.dense


def pays(problem: Problem) -> bool:
    """Whether there is enough work for a compiled kernel."""
    return worth(problem.batch, problem.n_states)


def worth(batch: tuple[int, ...], n_states: int) -> bool:
    """Whether that many MDPs of that size take NumPy long enough."""
    return prod(batch) * n_states**2 > WORTH


def plan_side_by_side(problem: Problem, how: How) -> Solution:
    """Plan for small MDPs, exactly. Rows are checked while they are read."""
    from certeq.planners.compiled.small import plan_small

    return _plan(plan_small, problem, how, UNCLEAR if how.plain else 0.0, grain=64)


def plan_one_by_one(problem: Problem, how: How) -> Solution:
    """Plan for MDPs of any size, certified to the tolerance."""
    from certeq.planners.compiled.medium import plan_medium

    return _plan(plan_medium, problem, how, how.tolerance, grain=1)


def _plan(kernel: Any, problem: Problem, how: How, number: float, grain: int) -> Solution:
    """Call a planning kernel; ``number`` is the one that tells it how careful to be."""
    from certeq.base import threads as pool
    from certeq.planners.compiled.operands import operands

    rows, weight, target = mixture(problem)
    work = operands(rows, weight, target, problem.reward, problem.discount, problem.allowed)
    K, L, S = work.chains, work.steps, problem.n_states
    policy = np.empty((K, L, S), dtype=np.int64)
    values, residual = np.empty((K, L, S)), np.empty((K, L))
    iterations = np.empty((K, L), dtype=np.int64)
    faults = pool.run(
        kernel, K, *work.arrays, number, how.limit, policy, values, iterations, residual,
        grain=grain, threads=how.threads,
    )  # fmt: skip
    if any(fault >= 0 for fault in faults):
        check = check_plain if how.plain else check_rows
        check(rows)  # this raises, unless the row is only a rounding error away from being right
        return policy_iteration(problem, how)
    batch = work.batch
    return Solution(
        policy.reshape(*batch, S),
        values.reshape(*batch, S),
        np.minimum(iterations, how.limit).reshape(batch),
        residual.reshape(batch),
        iterations.reshape(batch) <= how.limit,
    )


def evaluate(problem: Problem, policy: Integers, threads: int | None, plain: bool = False) -> Floats:
    """Value of deterministic policies ``(..., S)`` in dense MDPs, ``(..., S)``.

    Rows of small ones are checked while they are read, as ``plain`` numbers or as rows that mean what they say.
    """
    from certeq.base import threads as pool
    from certeq.planners.compiled.operands import operands
    from certeq.planners.compiled.small import evaluate_small

    batch = np.broadcast_shapes(problem.batch, policy.shape[:-1])
    S = problem.n_states
    rows = _full(problem.model.dense(), S, problem.n_actions)
    axes = np.zeros((*batch, 1, 1))  # in place of weights, which a written-out model has not: the axes of the policies
    work = operands(rows, axes, np.zeros((1, 1, S)), problem.reward, problem.discount, np.ones((1, 1), dtype=bool))
    chosen = np.array(np.broadcast_to(policy, (*batch, S)), dtype=np.int64).reshape(work.chains, work.steps, S)
    values = np.empty((work.chains, work.steps, S))
    if S > SMALL:
        _evaluate_medium(work, chosen, values, threads)
        return values.reshape(*batch, S)
    arrays = (work.rows, work.rows_of, work.reward, work.reward_of, work.discount, work.discount_of)
    faults = pool.run(evaluate_small, work.chains, *arrays, chosen, UNCLEAR if plain else 0.0, values, grain=64, threads=threads)
    if any(fault >= 0 for fault in faults):
        (check_plain if plain else check_rows)(rows)
        return value_policy(problem.model, problem.reward, problem.discount, policy)
    return values.reshape(*batch, S)


def _evaluate_medium(work: Operands, policy: Integers, values: Floats, threads: int | None) -> None:
    """Fill in the values of larger MDPs, each policy for itself, so that none depends on what else is in the batch."""
    from certeq.base import threads as pool
    from certeq.planners.compiled.medium import evaluate_medium

    K, L, S = values.shape
    zero = np.zeros((K * L, 1), dtype=np.int64)
    pool.run(
        evaluate_medium, K * L, work.rows, np.repeat(work.rows_of, L), np.zeros((1, *work.rows.shape[1:3])), zero,
        np.zeros((1, 1, 1, S)), zero[:, 0].copy(), work.reward, work.reward_of.reshape(-1, 1), work.discount,
        work.discount_of.reshape(-1, 1), policy.reshape(-1, 1, S), 1e-12,
        values.reshape(-1, 1, S), np.empty((K * L, 1)), threads=threads,
    )  # fmt: skip


class Swept(NamedTuple):
    """What a sweep over data sets and strengths ``(..., E)`` found."""

    policy: Integers  # (..., E, S): the lowest of the tied actions
    tied: Integers  # (..., E, S): the tied actions, as the bits of a number
    loss: Floats  # (..., E)
    optimal: Floats  # (..., S): optimal values in the truth


def plan_counts(
    counts: Integers, kind: int, amount: Floats, target: Floats, reward: Floats, discount: Floats, how: How
) -> Solution:
    """Plan for small data sets ``(..., S, A, S)``, whose rows and weights exist in the kernel only.

    ``kind`` tells what the weights are made of, and ``amount`` is that: ``(...)``, or the weights ``(..., S, A)``.
    """
    work = _work(counts, kind, amount, target, reward, discount)
    K, L, S = work.chains, work.steps, counts.shape[-1]
    found = np.empty((K, L, S), dtype=np.int64), np.empty((K, L, S)), np.empty((K, L), dtype=np.int64), np.empty((K, L))
    policy, values, rounds, residual = found
    nobody = np.zeros((0, *counts.shape[-3:])), np.zeros(0, np.int64), np.zeros((0, *counts.shape[-3:-1])), np.zeros(0, np.int64)
    unasked = np.empty((0, 0, S), dtype=np.int64), np.empty((0, 0)), np.empty((0, S))
    _run_sweep(work, kind, how, (*nobody, 0.0, np.zeros(S)), (*found, *unasked))
    batch = work.batch
    return Solution(
        policy.reshape(*batch, S),
        values.reshape(*batch, S),
        np.minimum(rounds, how.limit).reshape(batch),
        residual.reshape(batch),
        rounds.reshape(batch) <= how.limit,
    )


def sweep_counts(
    counts: Integers, kind: int, amount: Floats, target: Floats, reward: Floats, discount: Floats, how: How,
    truth: MDP, importance: Floats,
) -> Swept | None:  # fmt: skip
    """Plan for small data sets ``(..., 1, S, A, S)`` at strengths ``(..., E)``, and value the plans in a truth.

    A truth of several MDPs has the axes of the data sets. Returns None where a plan reached the limit of iterations.
    """
    rows, gain = truth.transition.dense(), truth.reward
    work = _work(counts, kind, amount, target, reward, discount)
    K, L, S = work.chains, work.steps, counts.shape[-1]
    policy, tied = np.empty((K, L, S), dtype=np.int64), np.empty((K, L, S), dtype=np.int64)
    loss, optimal = np.empty((K, L)), np.empty((K, S))
    parts: list[Any] = []
    for table, axes in ((rows, 3), (gain, 2)):
        lead = table.shape[: table.ndim - axes]
        of = np.broadcast_to(np.arange(prod(lead)).reshape(lead), work.batch[:-1])
        whole = np.require(table, requirements=("C", "W"))
        parts += [whole.reshape(-1, *table.shape[table.ndim - axes :]), np.require(of, requirements=("C", "W")).ravel()]
    unasked = np.empty((0, 0, S)), np.empty((0, 0), dtype=np.int64), np.empty((0, 0))
    faults = _run_sweep(
        work, kind, how, (*parts, truth.discount, importance), (policy, *unasked, tied, loss, optimal)
    )
    if any(fault >= 0 for fault in faults):
        return None
    batch = work.batch
    return Swept(
        policy.reshape(*batch, S), tied.reshape(*batch, S), loss.reshape(batch), optimal.reshape(*batch[:-1], S)
    )


def _work(
    counts: Integers, kind: int, amount: Floats, target: Floats, reward: Floats, discount: Floats
) -> Operands:
    from certeq.planners.compiled.operands import operands

    if kind == RELATIVE:
        amount = amount / np.maximum(1 - amount, 1 / FAR)
    if kind != CONSTANT:
        amount = np.minimum(amount, FAR)
    weight = amount if kind == GIVEN else amount[..., None, None]
    return operands(counts, weight, target, reward, discount, np.ones((1, 1), dtype=bool))


def _run_sweep(work: Operands, kind: int, how: How, truth: tuple[Any, ...], out: tuple[Any, ...]) -> list[int]:
    from certeq.base import threads as pool
    from certeq.planners.compiled.sweep import sweep_small

    return pool.run(
        sweep_small, work.chains, *work.arrays, kind, how.limit, *truth, *out, grain=64, threads=how.threads
    )


def mixture(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Data rows, weights and target rows of the model, in the shapes that the kernels take."""
    S, A = problem.n_states, problem.n_actions
    model = problem.model
    if isinstance(model, Mixture):
        weight = np.broadcast_to(model.weight, (*model.weight.shape[:-2], S, A))
        return _full(model.data.dense(), S, A), weight, model.target.dense()
    return _full(model.dense(), S, A), np.zeros((S, A)), np.zeros((1, 1, S))


def _full(rows: Floats, S: int, A: int) -> Floats:
    return rows if rows.shape[-3:-1] == (S, A) else np.broadcast_to(rows, (*rows.shape[:-3], S, A, S))
