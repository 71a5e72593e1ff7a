"""Fitted Q evaluation, tabular and exact: the value of a policy in the MDP that the rows themselves make up.

Repeating Q(s, a) <- mean of r + γ V(s') over the rows of the pair ends where this MDP's values are, so they are solved
for at once. A pair without rows is taken as the average of its state's rows. A state without rows, such as one that was
only reached when watching stopped, is taken as the average of all rows: its value is the mean of V over their states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Floats, Integers
from certeq.model.kernel import MASS_TOLERANCE, SparseRows
from certeq.planners import compiled
from certeq.planners.backup import value_policy
from certeq.questions.chains import LASTING, value_chains
from certeq.questions.log import Log

DENSE = 500  # states up to which chains are written out
PRECISE = 1e-10  # of the largest gain, left of a large chain: far below what drawing episodes again moves
CELLS = 16  # for each row: rows of all pairs with no more cells are written out, where they are needed many times


class Critic(NamedTuple):
    """Values of a policy, as far as the rows need them, in each of B fits; or in all, where the first axis is 1."""

    first: Floats  # (B, S): V at the first decision
    pair: Floats  # (B, n): Q of each row's pair
    after: Floats  # (B, n): V of its next state; 0 where nothing follows


class Fitted(NamedTuple):
    """The MDPs that rows make up under a policy, when they count so often."""

    own: Floats  # (B, n): each row's part in its pair
    weight: Floats  # (B, 1 or H, S, A): each pair's part in what follows its state under the policy
    node: Integers  # (B, S): where a state stands; those without rows share the last node, S
    reach: Integers  # (B, n): node of the next state
    mean: Floats  # (B, S): share of the rows in each state


def fit(log: Log, often: Integers) -> Critic:
    """Fit to the rows, several times: ``often``, ``(B, n)``, says how often each row counts."""
    made = _make(log, often)
    return _critic(log, made, _solve(log, made)) if log.horizon is None else _backward(log, made, log.horizon)


def given(log: Log, action_values: Floats) -> Critic:
    """Take values ``(1 or H, S, A)`` as they are given."""
    v = (log.policy * action_values).sum(axis=-1)  # (1 or H, S)
    after = v[np.minimum(log.step + 1, len(v) - 1), log.next_state]
    over = log.ended if log.horizon is None else log.ended | (log.step == log.horizon - 1)
    pair = action_values[np.minimum(log.step, len(action_values) - 1), log.state, log.action]
    return Critic(v[:1], pair[None], np.where(over, 0.0, after)[None])


def occupied(log: Log) -> tuple[Floats, float]:
    """How much of the time that counts the policy spends in each pair, ``(S, A)``, and in states without rows."""
    made = _make(log, np.ones((1, len(log.state)), dtype=np.int64))
    node, mean, reach = made.node[0], made.mean[0], made.reach[0]
    S = len(mean)
    here = np.bincount(node[log.state[log.first]], minlength=S + 1) / len(log.first)
    time = np.zeros((len(log.policy), S + 1))
    if log.horizon is None:
        from scipy.sparse.linalg import spsolve

        fading = sp.eye_array(S + 1) - min(log.discount, 1 - 1 / LASTING) * _chain(log, made, 0).T
        time[0] = spsolve(fading.tocsc(), here)
    else:
        parts = made.weight[0][:, log.state, log.action] * made.own[0] * ~log.ended  # (1 or H, n)
        for t in range(log.horizon):
            time[t % len(time)] += log.discount**t * here
            moved = here[log.state] + here[S] * mean[log.state]
            here = sums(reach, (parts[t % len(parts)] * moved)[None], S + 1)[0]
    pairs = (time[:, :S, None] * log.policy).sum(axis=0)
    return pairs / time.sum(), float(time[:, S].sum() / time.sum())


def _make(log: Log, often: Integers) -> Fitted:
    _, S, A = log.policy.shape
    visits = sums(log.pair, often, S * A)
    own, visits = often / np.maximum(visits, 1)[:, log.pair], visits.reshape(-1, S, A)
    tried = visits.sum(axis=-1)
    node = np.where(tried > 0, np.arange(S), S)
    untried = (log.policy * (visits == 0)[:, None]).sum(axis=-1)  # (B, 1 or H, S): taken as the average of all rows
    weight = log.policy + untried[..., None] * (visits / np.maximum(tried, 1)[..., None])[:, None]
    return Fitted(own, weight, node, node[:, log.next_state], tried / tried.sum(axis=-1, keepdims=True))


def _critic(log: Log, made: Fitted, v: Floats) -> Critic:
    """Q of the rows' pairs, from the values of all nodes."""
    after = np.where(log.ended, 0.0, np.take_along_axis(v, made.reach, axis=1))
    pair = sums(log.pair, made.own * (log.reward + log.discount * after), log.policy[0].size)
    return Critic(np.take_along_axis(v, made.node, axis=1), pair[:, log.pair], after)


def _backward(log: Log, made: Fitted, horizon: int) -> Critic:
    """Values of so many decisions, from the last one back."""
    (B, S), A, rows = made.mean.shape, log.policy.shape[2], log.by_step
    expect, paid = _expect(log, made), sums(log.pair, made.own * log.reward, S * A)
    v, pair, after = np.zeros((B, S + 1)), np.empty(made.own.shape), np.zeros(made.own.shape)
    for t in reversed(range(horizon)):
        q = paid + log.discount * expect(v)
        if t < len(rows):
            pair[:, rows[t]] = q[:, log.pair[rows[t]]]
            after[:, rows[t]] = np.take_along_axis(v, made.reach[:, rows[t]], axis=1)
        v[:, :S] = (made.weight[:, t % made.weight.shape[1]] * q.reshape(B, S, A)).sum(axis=-1)
        v[:, S] = (made.mean * v[:, :S]).sum(axis=-1)
    return Critic(np.take_along_axis(v, made.node, axis=1), pair, np.where(log.ended, 0.0, after))


def _expect(log: Log, made: Fitted) -> Callable[[Floats], Floats]:
    """What values of the nodes, ``(B, S + 1)``, are expected to be after each pair, ``(B, S * A)``."""
    (B, S), size = made.mean.shape, log.policy[0].size
    part = made.own * ~log.ended
    if size * (S + 1) > CELLS * len(log.state):
        return lambda v: sums(log.pair, part * np.take_along_axis(v, made.reach, axis=1), size)
    table = sums(log.pair * (S + 1) + made.reach, part, size * (S + 1)).reshape(B, size, S + 1)
    return lambda v: np.asarray(table @ v[..., None])[..., 0]


def sums(place: Integers, parts: Any, size: int) -> Floats:
    """Sums of each line of parts, ``(B, n)``, by their places, which all lines may share: ``(B, size)``."""
    places = np.arange(len(parts))[:, None] * size + place
    found = np.bincount(places.ravel(), parts.ravel(), minlength=len(parts) * size)
    return np.asarray(found.reshape(-1, size), dtype=np.float64)


def _solve(log: Log, made: Fitted) -> Floats:
    """Solve V = R + γTV over all nodes, ``(B, S + 1)``; NaN where, without discounting, some state leads to no end."""
    B, S = made.mean.shape
    paid = sums(log.pair, made.own * log.reward, log.policy[0].size).reshape(B, S, -1)
    gains = (made.weight[:, 0] * paid).sum(axis=-1)
    gains = np.append(gains, (made.mean * gains).sum(axis=-1, keepdims=True), axis=-1)
    if S > DENSE:
        return np.stack([_solve_sparse(log, _chain(log, made, i), gain) for i, gain in enumerate(gains)])
    chains = np.stack([_chain(log, made, i).toarray() for i in range(B)])
    sound = np.ones(B, dtype=bool)
    if log.discount == 1:
        sound = np.array([_ends(chain) for chain in chains])
    values = np.full(gains.shape, np.nan)
    compiles = compiled.worth((B,), S)
    values[sound] = value_chains(chains[sound], gains[sound], np.asarray(log.discount), compiles=compiles, threads=None)
    return values


def _solve_sparse(log: Log, chain: Any, gain: Floats) -> Floats:
    """Solve one large chain by a Krylov method."""
    size = len(gain)
    if log.discount == 1 and not _ends(chain):
        return np.full(size, np.nan)
    only = np.zeros(size, dtype=np.int64)
    return value_policy(SparseRows(chain, size, 1), gain[:, None], np.asarray(log.discount), only, tolerance=PRECISE)


def _chain(log: Log, made: Fitted, i: int) -> Any:
    """What follows each node in a fit, a CSR matrix ``(S + 1, S + 1)``; the last is the mean of all rows."""
    S, goes_on = made.mean.shape[1], ~log.ended
    part = (made.weight[i, 0, log.state, log.action] * made.own[i])[goes_on]
    states = sp.csr_array(sp.coo_array((part, (log.state[goes_on], made.reach[i, goes_on])), shape=(S, S + 1)))
    return sp.vstack([states, sp.csr_array(made.mean[i : i + 1]) @ states], format="csr")


def _ends(chain: Any) -> bool:
    """Whether every node can lead to an end: its row lacks mass, or reaches a node that can."""
    ends = np.asarray(chain.sum(axis=1) < 1 - MASS_TOLERANCE)
    while True:
        more = ends | (chain @ ends.astype(np.float64) > 0)
        if (more == ends).all():
            return bool(ends.all())
        ends = more
