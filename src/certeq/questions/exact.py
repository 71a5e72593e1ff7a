"""Exact evaluation in a known model: what a policy is worth, and what it loses against the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Integers, floats, within
from certeq.base.errors import InputError
from certeq.model.kernel import Kernel, Rows
from certeq.planners import compiled, solve, sparse
from certeq.planners.backup import check_policy, value_policy, value_stochastic
from certeq.planners.certify import UNIT, certified, slip
from certeq.planners.episodic import check_problem
from certeq.planners.problem import Problem, check_single, read_problem


def evaluate(
    transition: Kernel | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    policy: ArrayLike,
    *,
    threads: int | None = None,
) -> Floats:
    """Value of a policy in each state, ``(..., S)``.

    A policy is deterministic, ``(..., S)`` action numbers with -1 for "any action, at random", or stochastic,
    ``(..., S, A)`` probabilities, which are floats: whole numbers are read as actions. All arguments broadcast over
    leading axes. How far the values may be off is told by `value_bound`: in dense models it is rounding, in large
    sparse ones about 1e-12 of the largest value.
    """
    problem, trusted = read_problem(transition, reward, discount, None)
    return _evaluate(problem, trusted, policy, threads)


def value_bound(
    transition: Kernel | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    policy: ArrayLike,
    values: ArrayLike,
) -> Floats:
    """Certified distance, ``(...)``, of some values from those of a policy, wherever they came from.

    One more step under the policy changes no value by more than a residual, and steps ahead count as in `Plan.bound`.
    It holds in exact arithmetic, rounding included; probabilities of actions stand for themselves divided by their sum.

    >>> from certeq.questions.exact import value_bound
    >>> bound = value_bound([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]], 0.5, [1, 0], [1.0, 2.25])
    >>> float(bound).__round__(12)
    0.25
    """
    problem, trusted = read_problem(transition, reward, discount, None)
    check_problem(problem, trusted)
    guess = floats("values", values)
    probabilities = _probabilities(np.asarray(policy), problem.n_states, problem.n_actions)
    q = problem.reward + problem.discount[..., None, None] * problem.model.expect(guess)
    residual = np.abs((probabilities * q).sum(axis=-1) - guess).max(axis=-1)
    off = np.abs(probabilities.sum(axis=-1) - 1).max(axis=-1) + problem.n_actions * UNIT
    hidden = slip(problem, guess) + off * np.abs(q).max(axis=(-2, -1))
    return certified(problem, residual + hidden, np.abs(guess).max(axis=-1), 1)


def loss(
    transition: Kernel | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    policy: ArrayLike,
    *,
    start: ArrayLike | None = None,
    threads: int | None = None,
) -> Floats:
    """What a policy loses: the mean over states of V* - V^π, ``(...)``; with ``start``, the mean under it.

    >>> from certeq import loss
    >>> loss([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]], 0.5, [1, 1])
    array(1.5)
    """
    problem, trusted = read_problem(transition, reward, discount, None)
    S = problem.n_states
    weights = importance(start, S)
    values = _evaluate(problem, trusted, policy, threads)
    many = compiled.fits(problem) and compiled.worth(values.shape[:-1], S)
    engine = "numba" if many else "auto"  # many policies, perhaps of few MDPs
    lost = np.subtract(solve(transition, reward, discount, engine=engine, threads=threads).values, values, out=values)
    return np.asarray(lost @ weights if weights.ndim == 1 else (weights * lost).sum(axis=-1))


def importance(start: ArrayLike | None, S: int) -> Floats:
    """How much each state counts in a loss, ``(..., S)``: its chance to be the first, or all alike."""
    if start is None:
        return np.full(S, 1 / S)
    weights = within("start", start, 0, 1)
    if weights.shape[-1:] != (S,) or not np.allclose(weights.sum(axis=-1), 1, atol=1e-9):
        raise InputError(f"start needs {S} probabilities that sum to 1; got shape {weights.shape}.")
    return weights


def _evaluate(problem: Problem, trusted: bool, policy: ArrayLike, threads: int | None) -> Floats:
    S, A = problem.n_states, problem.n_actions
    array = np.asarray(policy)
    certain = array.dtype.kind in "iu" and bool(check_policy(array, S, A).min(initial=0) >= 0)
    if not problem.dense:
        check_single(problem)
        check_problem(problem, trusted)
        return _evaluate_sparse(problem, array, certain, threads)
    if certain:
        actions = array.astype(np.int64, copy=False)
        fast = compiled.worth(np.broadcast_shapes(problem.batch, actions.shape[:-1]), S)
        seen = fast and compiled.fits(problem)  # the small kernel checks rows as it reads them
        check_problem(problem, trusted or seen)
        return compiled.evaluate(problem, actions, threads, not trusted) if fast else _plain(problem, actions)
    probabilities = _probabilities(array, S, A)
    check_problem(problem, trusted)
    return _plain(_follow(problem, probabilities), np.zeros(S, dtype=np.int64))


def _evaluate_sparse(problem: Problem, policy: Any, certain: bool, threads: int | None) -> Floats:
    """Evaluate policies, one after the other, in one sparse model."""
    probabilities = _probabilities(policy, problem.n_states, problem.n_actions)
    values = np.empty(probabilities.shape[:-1])
    fast = sparse.able(problem) and sparse.pays(problem)
    for index in np.ndindex(values.shape[:-1]):
        if fast:
            values[index] = sparse.evaluate(problem, probabilities[index], threads)
        elif certain:
            values[index] = _plain(problem, policy[index])
        else:
            values[index] = value_stochastic(problem.model, problem.reward, problem.discount, probabilities[index])
    return values


def _probabilities(policy: Any, S: int, A: int) -> Floats:
    """A policy of either kind as probabilities ``(..., S, A)``; "no advice" is any action, at random."""
    if policy.dtype.kind not in "iu":
        return check_stochastic(policy, S, A)
    actions = check_policy(policy, S, A)[..., None]
    return np.where(actions < 0, 1 / A, np.arange(A) == actions)


def _plain(problem: Problem, actions: Integers) -> Floats:
    return value_policy(problem.model, problem.reward, problem.discount, actions)


def _follow(problem: Problem, probabilities: Floats) -> Problem:
    """The problem with one action: to follow a stochastic policy."""
    rows = np.einsum("...sa,...san->...sn", probabilities, problem.model.dense())[..., None, :]
    gain = (probabilities * problem.reward).sum(axis=-1, keepdims=True)
    return Problem(Rows.trusted(rows), gain, problem.discount, np.ones((problem.n_states, 1), dtype=bool))


def check_stochastic(policy: Any, S: int, A: int) -> Floats:
    """Read a stochastic policy ``(..., S, A)``; sums that are off by rounding are set right."""
    probabilities = within("policy", policy, 0, 1)
    if probabilities.shape[-2:] != (S, A):
        raise InputError(
            f"A policy is ({S},) whole action numbers or ({S}, {A}) probabilities; got shape {probabilities.shape}."
        )
    total = probabilities.sum(axis=-1)
    off = np.abs(total - 1) > 1e-9
    if off.any():
        place = np.argwhere(off)[0]
        raise InputError(f"State {place[-1]}: the policy's probabilities sum to {total[tuple(place)]:g}.")
    return np.asarray(probabilities / total[..., None])
