"""Compiled policy iteration for batches of dense MDPs: when it pays, and how its kernels are called.

- ``small``: eight MDPs side by side, up to 32 states. ``medium``: one by one, of any size.
- ``strengths``: one MDP of any size with sparse data rows and a shared target row, at eight strengths side by side; or
  eight policies in it.
- ``swept``: eight data sets side by side, from counts to plans and what they lose in a truth; called by ``counted``.
- ``operands``: how a batch is laid out for them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.model.kernel import UNCLEAR, Mixture, check_plain, check_rows
from certeq.planners.backup import value_policy
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import How, Problem, Solution

if TYPE_CHECKING:
    from certeq.planners.compiled.operands import Operands

SMALL = 32  # states; up to here eight MDPs fit side by side in the cache
MANY = 4  # strengths along a chain that are worth planning side by side
WORTH = 3e5  # MDPs times states squared, about 50 ms of NumPy: below it nobody should wait for a compiler
WORTH_MORE = 5e6  # the same for a second kernel, which takes another ten seconds to compile


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

    work = _operands(problem)
    return told_finite(_plan(plan_small, problem, how, work, UNCLEAR if how.plain else 0.0, work.grain))


def plan_one_by_one(problem: Problem, how: How) -> Solution:
    """Plan for MDPs of any size, certified to the tolerance."""
    from certeq.planners.compiled.medium import plan_medium

    kernel = _plan_chains if prod(problem.batch) * problem.n_states**2 > WORTH_MORE else plan_medium
    return _plan(kernel, problem, how, _operands(problem).spread(), how.tolerance, 1)


def _plan_chains(start: int, stop: int, *given: Any) -> int:
    """Plan chains with the kernel for many strengths, as far as that is able, and the others strength by strength."""
    from certeq.planners.compiled.medium import plan_medium

    target, iterations = given[4], given[-2]
    left = [(start, stop)]
    if iterations.shape[1] >= MANY and target.shape[1:3] == (1, 1):
        from certeq.planners.compiled.strengths import plan_strengths

        plan_strengths(start, stop, *given)
        undone = np.flatnonzero(np.diff(iterations[start:stop, 0] == 0, prepend=False, append=False)) + start
        left = list(zip(undone[::2].tolist(), undone[1::2].tolist(), strict=True))
    for first, end in left:
        plan_medium(first, end, *given)
    return -1


def _operands(problem: Problem) -> Operands:
    from certeq.planners.compiled.operands import operands

    return operands(*mixture(problem), problem.reward, problem.discount, problem.allowed)


def _plan(kernel: Any, problem: Problem, how: How, work: Operands, number: float, grain: int) -> Solution:
    """Call a planning kernel; ``number`` is the one that tells it how careful to be."""
    from certeq.base import threads as pool

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
        check(mixture(problem)[0])  # this raises, unless the row is only a rounding error away from being right
        return policy_iteration(problem, how)
    return told(work.batch, how.limit, policy, values, iterations, residual)


def told(
    batch: tuple[int, ...], limit: int, policy: Integers, values: Floats, iterations: Integers, residual: Floats,
    fine: bool = False,
) -> Solution:  # fmt: skip
    """What a kernel found, with the axes of the batch; ``fine`` if it knows that all converged and are finite."""
    shape = (*batch, policy.shape[-1])
    converged = np.ones(batch, dtype=bool) if fine else (iterations <= limit).reshape(batch)
    rounds = iterations if fine or converged.all() else np.minimum(iterations, limit)
    return Solution(
        policy.reshape(shape), values.reshape(shape), rounds.reshape(batch), residual.reshape(batch), converged,
        finite=fine,
    )  # fmt: skip


def told_finite(found: Solution) -> Solution:
    """The same, where residuals tell: kernels for small MDPs make them NaN if a value is not finite."""
    return found._replace(finite=bool(np.isfinite(found.residual).all()))


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
    each = np.require(np.broadcast_to(policy, (*batch, S)), np.int64, ("C", "W"))
    chosen = each.reshape(work.chains, work.steps, S)
    values = np.empty((work.chains, work.steps, S))
    if S > SMALL:
        _evaluate_medium(work.spread(), chosen, values, threads)
        return values.reshape(*batch, S)
    arrays = (work.rows, work.rows_of, work.reward, work.reward_of, work.discount, work.discount_of)
    faults = pool.run(
        evaluate_small, work.chains, *arrays, chosen, UNCLEAR if plain else 0.0, values,
        grain=work.grain, threads=threads,
    )  # fmt: skip
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


def value_policies(
    rows: Floats, reward: Floats, discount: float, chance: Floats, values: Floats, threads: int | None
) -> Booleans:
    """Fill in the values of policies ``(n, E, S, A)``, one line in each MDP or all in one; return which are left."""
    from certeq.base import threads as pool
    from certeq.planners.compiled.strengths import value_policies as kernel

    n, E, S, A = chance.shape
    of = np.repeat(np.arange(n) if len(rows) > 1 else np.zeros(n, dtype=np.int64), E)
    given = [np.require(array, np.float64, ("C", "W")) for array in (rows, reward, chance.reshape(-1, S, A))]
    done = np.zeros(n * E, dtype=bool)
    out = 1e-12, values.reshape(-1, S), done
    pool.run(kernel, n * E, *given[:2], discount, of, given[2], *out, grain=8, threads=threads)
    return ~done.reshape(n, E)


def once(model: Mixture) -> bool:
    """Whether every data row is mixed with a target row of its own, once: then it pays to write the mixture out."""
    data, target = model.data.shape, model.target.shape
    return data == target and data[:-3] == model.weight.shape[:-2] and model.shape[-3] > SMALL


def mixture(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Data rows, weights and target rows of the model, in the shapes that the kernels take."""
    S, A = problem.n_states, problem.n_actions
    model = problem.model
    if isinstance(model, Mixture) and not once(model):
        weight = np.broadcast_to(model.weight, (*model.weight.shape[:-2], S, A))
        return _full(model.data.dense(), S, A), weight, model.target.dense()
    return _full(model.dense(), S, A), np.zeros((S, A)), np.zeros((1, 1, S))


def _full(rows: Floats, S: int, A: int) -> Floats:
    return rows if rows.shape[-3:-1] == (S, A) else np.broadcast_to(rows, (*rows.shape[:-3], S, A, S))
