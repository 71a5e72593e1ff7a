"""The steps that every planner is made of: back values up, choose greedily, value a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.errors import InputError
from certeq.model.kernel import Kernel, Mixture, Operator, SparseRows, is_sparse

# Actions are tied within TIE of the spread of all action values of the MDP: the spread, so that adding a constant to
# all values, which Theorem 1 turns on, changes no tie. ROUNDING of the largest is what arithmetic leaves of a true tie.
TIE, ROUNDING = 1e-10, 1e-13


def backup(model: Kernel, reward: Floats, discount: Floats, allowed: Booleans, values: Floats) -> Floats:
    """Q(s, a) = R(s, a) + γ Σ T(s, a, s') V(s'), ``(..., S, A)``; minus infinity where an action is not allowed."""
    q = reward + discount[..., None, None] * model.expect(values)
    return np.asarray(np.where(allowed, q, -np.inf))


def tied(q: Floats, error: Floats | float = 0.0) -> Booleans:
    """Which actions are as good as the best, up to the tolerance of a tie.

    Values that are off by up to ``error``, ``(...)``, cannot tell actions apart that are closer than twice that.
    """
    return _within(q, TIE, 2 * np.asarray(error)[..., None, None])


def greedy(q: Floats, error: Floats | float = 0.0) -> Integers:
    """Choose the lowest-numbered of the tied best actions, ``(..., S)``."""
    return np.asarray(tied(q, error).argmax(axis=-1))


def best_supported(tie: Booleans, visits: Integers) -> Integers:
    """Of the tied actions, ``(..., S, A)``, the one tried most often in its state, and then anywhere: ``(..., S)``.

    Only among those that were tried alike in both respects does the lowest number decide.
    """
    anywhere = visits.sum(axis=-2, keepdims=True)
    for tried in (visits, anywhere):
        often = np.where(tie, tried, -1)
        tie = often == often.max(axis=-1, keepdims=True)
    return np.asarray(tie.argmax(axis=-1))


def _within(q: Floats, share: float, extra: Floats | float = 0.0) -> Booleans:
    """Which actions come within a share of the spread, plus rounding and something extra, of their state's best."""
    high = q.max(axis=(-2, -1), keepdims=True)
    low = np.where(np.isneginf(q), np.inf, q).min(axis=(-2, -1), keepdims=True)
    near = share * (high - low) + ROUNDING * np.maximum(np.abs(high), np.abs(low)) + extra
    return np.asarray(q >= q.max(axis=-1, keepdims=True) - near)


def improve(q: Floats, policy: Integers) -> Integers:
    """Leave an action only for one that is better by more than rounding, so that policy iteration must end.

    A tie would be too much: half a tie a step adds up over a long way.
    """
    still_good = np.take_along_axis(_within(q, 0.0), policy[..., None], axis=-1)[..., 0]
    return np.asarray(np.where(still_good, policy, q.argmax(axis=-1)))


def chosen(table: Floats, policy: Integers) -> Floats:
    """``table[s, policy[s]]``, where the table is ``(..., S or 1, A or 1)``."""
    batch = np.broadcast_shapes(table.shape[:-2], policy.shape[:-1])
    actions = np.broadcast_to(policy, (*batch, policy.shape[-1]))
    full = np.broadcast_to(table, (*batch, policy.shape[-1], table.shape[-1]))
    if full.shape[-1] == 1:
        return np.asarray(full[..., 0])
    return np.asarray(np.take_along_axis(full, actions[..., None], axis=-1)[..., 0])


def value_policy(
    model: Kernel,
    reward: Floats,
    discount: Floats,
    policy: Integers,
    start: Floats | None = None,
    tolerance: float = 1e-14,
) -> Floats:
    """Solve V = R_π + γ T_π V: exactly for dense rows, by a Krylov method for sparse ones, to rounding unless said."""
    gain = chosen(reward, policy)
    if is_sparse(model):
        return _value_sparse(policy_operator(model, policy), gain, float(discount), start, tolerance)
    rows = policy_rows(model, policy)
    system = np.eye(rows.shape[-1]) - discount[..., None, None] * rows
    gain = np.broadcast_to(gain, system.shape[:-1])
    try:
        return np.asarray(np.linalg.solve(system, gain[..., None])[..., 0])
    except np.linalg.LinAlgError:
        raise InputError(
            "Episodes can last too long here for numbers of sixteen digits: use a lower discount."
        ) from None


def value_stochastic(model: Kernel, reward: Floats, discount: Floats, probabilities: Floats) -> Floats:
    """Value of a policy ``(S, A)`` in a sparse model, to rounding."""
    gain = (probabilities * reward).sum(axis=-1)
    return _value_sparse(lambda v: (probabilities * model.expect(v)).sum(axis=-1), gain, float(discount), None)


def policy_rows(model: Kernel, policy: Integers) -> Floats:
    """Rows of the chosen actions of a dense model, ``(..., S, S)``."""
    if isinstance(model, Mixture):
        weight = chosen(model.weight, policy)[..., None]
        return (1 - weight) * policy_rows(model.data, policy) + weight * policy_rows(model.target, policy)
    if isinstance(model, Operator):
        raise TypeError("an operator has no rows to write out")
    return np.asarray(model.under(policy))


def policy_operator(model: Kernel, policy: Integers) -> Callable[[Floats], Floats]:
    """What the rows of the chosen actions do to a vector of values, without writing the mixture out."""
    if isinstance(model, Mixture):
        weight = chosen(model.weight, policy)
        data, target = policy_operator(model.data, policy), policy_operator(model.target, policy)
        return lambda values: (1 - weight) * data(values) + weight * target(values)
    if isinstance(model, Operator):
        return lambda values: model.apply(values, policy)
    if isinstance(model, SparseRows):
        matrix = model.under(policy)
        return lambda values: np.asarray(matrix @ values)
    if model.shape[-3] == 1:
        rows, which = model.array[0], policy if model.shape[-2] > 1 else np.zeros(1, dtype=np.int64)
        return lambda values: np.asarray(np.einsum("as,s->a", rows, values)[which])  # no threads that wait in vain
    own = model.array[np.arange(len(policy)), policy % model.shape[-2]]
    return lambda values: np.asarray(own @ values)


def _value_sparse(
    apply: Callable[[Floats], Floats], gain: Floats, discount: float, start: Floats | None, tolerance: float = 1e-14
) -> Floats:
    from scipy.sparse.linalg import LinearOperator, bicgstab, gmres

    S = len(gain)
    values = np.zeros(S) if start is None else start.copy()
    system: Any = LinearOperator((S, S), matvec=lambda v: v - discount * apply(v), dtype=np.float64)
    scale = max(float(np.abs(gain).max()), 1e-300)
    for method in (bicgstab, gmres, gmres):
        residual = gain - system @ values
        if np.abs(residual).max() <= tolerance * scale:
            break
        settings = {"restart": min(S, 100), "maxiter": 50} if method is gmres else {"maxiter": 1000}
        with np.errstate(over="ignore", invalid="ignore"):  # where it loses its way, its step is not taken
            step, _ = method(system, residual, rtol=1e-13, atol=1e-15 * scale, **settings)
        if np.isfinite(step).all() and np.abs(residual - system @ step).max() < np.abs(residual).max():
            values = values + step
    return np.asarray(values)


def check_policy(policy: Any, S: int, A: int) -> Integers:
    """Read a deterministic policy ``(..., S)``; -1 stands for "no advice"."""
    array = np.asarray(policy)
    if array.dtype.kind not in "iu" or array.ndim < 1 or array.shape[-1] != S:
        raise InputError(f"A policy has one action number for each of {S} states; got {array.dtype} {array.shape}.")
    if array.min(initial=0) < -1 or array.max(initial=0) >= A:
        bad = (array < -1) | (array >= A)
        place = np.argwhere(bad)[0]
        value = array[tuple(place)]
        raise InputError(f"State {place[-1]}: the policy has action {value}; actions are 0 to {A - 1}, or -1 for none.")
    return array.astype(np.int64, copy=False)
