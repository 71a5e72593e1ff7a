"""Exact evaluation in a known model: what a policy is worth, and what it loses against the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.arrays import ArrayLike, Floats, Integers, within
from certeq.errors import InputError
from certeq.kernel import Kernel, Rows, check_rows, is_sparse
from certeq.planners import compiled, solve
from certeq.planners.backup import check_policy, value_policy
from certeq.planners.episodic import check_ends
from certeq.planners.problem import Problem, read_problem


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
    ``(..., S, A)`` probabilities. All arguments broadcast over leading axes.
    """
    problem, trusted = read_problem(transition, reward, discount, None)
    return _evaluate(problem, trusted, policy, threads)


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
    array(1.16666667)
    """
    problem, trusted = read_problem(transition, reward, discount, None)
    S = problem.n_states
    weights = np.full(S, 1 / S) if start is None else within("start", start, 0, 1)
    if weights.shape[-1:] != (S,) or not np.allclose(weights.sum(axis=-1), 1, atol=1e-9):
        raise InputError(f"start needs {S} probabilities that sum to 1; got shape {weights.shape}.")
    values = _evaluate(problem, trusted, policy, threads)
    many = S <= compiled.SMALL and not is_sparse(problem.model) and compiled.worth(values.shape[:-1], S)
    engine = "numba" if many else "auto"  # many policies, perhaps of few MDPs
    lost = np.subtract(solve(transition, reward, discount, engine=engine, threads=threads).values, values, out=values)
    return np.asarray(lost @ weights if weights.ndim == 1 else (weights * lost).sum(axis=-1))


def _evaluate(problem: Problem, trusted: bool, policy: ArrayLike, threads: int | None) -> Floats:
    S, A = problem.n_states, problem.n_actions
    array = np.asarray(policy)
    deterministic = array.dtype.kind in "iu"
    if deterministic:
        actions = check_policy(array, S, A)
        if (actions < 0).any():
            chosen = np.where(np.arange(A) == actions[..., None], 1.0, 0.0)
            return _evaluate(problem, trusted, np.where(actions[..., None] < 0, 1 / A, chosen), threads)
        batch = np.broadcast_shapes(problem.batch, actions.shape[:-1])
        fast = _compiles(problem, np.broadcast_to(actions, (*batch, S)))
        if not trusted and not (fast and S <= compiled.SMALL):  # the small kernel checks rows as it reads them
            check_rows(problem.model.dense())
        check_ends(problem)
        return compiled.evaluate(problem, actions, threads) if fast else _plain(problem, actions)
    probabilities = check_stochastic(array, S, A)
    if not trusted:
        check_rows(problem.model.dense())
    check_ends(problem)
    return _plain(_follow(problem, probabilities), np.zeros(S, dtype=np.int64))


def _compiles(problem: Problem, policies: Integers | Floats) -> bool:
    """Whether so many policies ``(..., S)`` are worth a compiled kernel."""
    return not is_sparse(problem.model) and compiled.worth(policies.shape[:-1], problem.n_states)


def _plain(problem: Problem, actions: Integers) -> Floats:
    return value_policy(problem.model, problem.reward, problem.discount, actions)


def _follow(problem: Problem, probabilities: Floats) -> Problem:
    """The problem with one action: to follow a stochastic policy."""
    if is_sparse(problem.model):
        raise InputError("In a sparse model a policy must be deterministic.")
    rows = np.einsum("...sa,...san->...sn", probabilities, problem.model.dense())[..., None, :]
    gain = (probabilities * problem.reward).sum(axis=-1, keepdims=True)
    return Problem(Rows.trusted(rows), gain, problem.discount, np.ones((problem.n_states, 1), dtype=bool))


def check_stochastic(policy: Any, S: int, A: int) -> Floats:
    """Read a stochastic policy ``(..., S, A)``."""
    probabilities = within("policy", policy, 0, 1)
    if probabilities.shape[-2:] != (S, A):
        raise InputError(
            f"A policy is ({S},) whole action numbers or ({S}, {A}) probabilities; got shape {probabilities.shape}."
        )
    off = np.abs(probabilities.sum(axis=-1) - 1) > 1e-9
    if off.any():
        place = np.argwhere(off)[0]
        raise InputError(f"State {place[-1]}: the policy's probabilities sum to {probabilities[tuple(place)].sum():g}.")
    return probabilities
