"""Fitted Q evaluation, tabular and exact: the value of a policy in the MDP that the rows themselves make up.

Repeating Q(s, a) <- mean of r + γ V(s') over the rows of the pair ends where this MDP's values are, so they are solved
for at once. A pair without rows is taken as the average of its state's rows. A state without rows, such as one that was
only reached when watching stopped, is taken as the average of all rows: its value is the mean of V over their states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from certeq.base.arrays import Floats, Integers
from certeq.model.kernel import MASS_TOLERANCE, SparseRows
from certeq.planners import compiled
from certeq.planners.backup import value_policy
from certeq.questions.chains import LASTING, value_chains
from certeq.questions.log import Log

DENSE = 500  # states up to which chains are written out
PRECISE = 1e-10  # of the largest gain, left of a large chain: far below what drawing episodes again moves


class Critic(NamedTuple):
    """Values of a policy, as far as the rows need them."""

    first: Floats  # (S,): V at the first decision
    pair: Floats  # (n,): Q of each row's pair
    after: Floats  # (n,): V of its next state; 0 where nothing follows


class Fitted(NamedTuple):
    """The MDP that rows make up under a policy."""

    own: Floats  # (n,): each row's part in its pair
    part: Floats  # (1 or H, n): each row's part in what follows its state under the policy
    node: Integers  # (S,): where a state stands; those without rows share the last node, S
    reach: Integers  # (n,): node of the next state
    mean: Floats  # (S,): share of the rows in each state


def fit(log: Log, often: Integers) -> list[Critic]:
    """Fit to the rows, several times: ``often``, ``(B, n)``, says how often each row counts."""
    made = [_make(log, each) for each in often]
    if log.horizon is not None:
        return [_backward(log, each, log.horizon) for each in made]
    return [_critic(log, each, v) for each, v in zip(made, _solve(log, made), strict=True)]


def given(log: Log, action_values: Floats) -> Critic:
    """Take values ``(1 or H, S, A)`` as they are given."""
    v = (log.policy * action_values).sum(axis=-1)  # (1 or H, S)
    after = v[np.minimum(log.step + 1, len(v) - 1), log.next_state]
    over = log.ended if log.horizon is None else log.ended | (log.step == log.horizon - 1)
    pair = action_values[np.minimum(log.step, len(action_values) - 1), log.state, log.action]
    return Critic(v[0], pair, np.where(over, 0.0, after))


def occupied(log: Log) -> tuple[Floats, float]:
    """How much of the time that counts the policy spends in each pair, ``(S, A)``, and in states without rows."""
    made = _make(log, np.ones(len(log.state), dtype=np.int64))
    S = len(made.mean)
    here = np.bincount(made.node[log.state[log.first]], minlength=S + 1) / len(log.first)
    time = np.zeros((len(log.policy), S + 1))
    if log.horizon is None:
        from scipy.sparse.linalg import spsolve

        fading = sp.eye_array(S + 1) - min(log.discount, 1 - 1 / LASTING) * _chain(log, made).T
        time[0] = spsolve(fading.tocsc(), here)
    else:
        chains = [_chain(log, made, t).T for t in range(len(log.policy))]
        for t in range(log.horizon):
            time[t % len(time)] += log.discount**t * here
            here = chains[t % len(time)] @ here
    pairs = (time[:, :S, None] * log.policy).sum(axis=0)
    return pairs / time.sum(), float(time[:, S].sum() / time.sum())


def _make(log: Log, often: Integers) -> Fitted:
    _, S, A = log.policy.shape
    visits, tried = np.bincount(log.pair, often, minlength=S * A), np.bincount(log.state, often, minlength=S)
    node = np.where(tried > 0, np.arange(S), S)
    own, average = often / np.maximum(visits, 1)[log.pair], often / np.maximum(tried, 1)[log.state]
    untried = (log.policy * (visits == 0).reshape(S, A)).sum(axis=-1)  # (1 or H, S)
    part = log.policy[:, log.state, log.action] * own + untried[:, log.state] * average
    return Fitted(own, part, node, node[log.next_state], tried / tried.sum())


def _critic(log: Log, made: Fitted, v: Floats) -> Critic:
    """Q of the rows' pairs, from the values of all nodes."""
    after = np.where(log.ended, 0.0, v[made.reach])
    return Critic(v[made.node], _sums(log.pair, made.own * (log.reward + log.discount * after)), after)


def _backward(log: Log, made: Fitted, horizon: int) -> Critic:
    """Values of so many decisions, from the last one back."""
    S, of, rows = len(made.mean), log.pair, log.by_step
    v, pair, after = np.zeros(S + 1), np.empty(len(log.state)), np.empty(len(log.state))
    for t in reversed(range(horizon)):
        follows = np.where(log.ended, 0.0, v[made.reach])
        target = log.reward + log.discount * follows
        if t < len(rows):
            pair[rows[t]] = np.bincount(of, made.own * target)[of[rows[t]]]
            after[rows[t]] = follows[rows[t]]
        v[:S] = np.bincount(log.state, made.part[t % len(made.part)] * target, minlength=S)
        v[S] = made.mean @ v[:S]
    return Critic(v[made.node], pair, after)


def _sums(pair: Integers, parts: Floats) -> Floats:
    """Sum of the parts of each row's pair, ``(n,)``."""
    return np.asarray(np.bincount(pair, parts)[pair], dtype=np.float64)


def _solve(log: Log, made: list[Fitted]) -> Floats:
    """Solve V = R + γTV over all nodes, ``(k, S + 1)``; NaN where, without discounting, some state leads to no end."""
    S = len(made[0].mean)
    gains = np.empty((len(made), S + 1))
    for gain, each in zip(gains, made, strict=True):
        gain[:S] = np.bincount(log.state, each.part[0] * log.reward, minlength=S)
        gain[S] = each.mean @ gain[:S]
    if S > DENSE:
        return np.stack([_solve_sparse(log, each, g) for each, g in zip(made, gains, strict=True)])
    chains = np.stack([_chain(log, each).toarray() for each in made])
    sound = np.ones(len(made), dtype=bool)
    if log.discount == 1:
        sound = np.array([_ends(chain) for chain in chains])
    values = np.full(gains.shape, np.nan)
    compiles = compiled.worth((len(made),), S)
    values[sound] = value_chains(chains[sound], gains[sound], np.asarray(log.discount), compiles=compiles, threads=None)
    return values


def _solve_sparse(log: Log, made: Fitted, gain: Floats) -> Floats:
    """Solve one large chain by a Krylov method."""
    chain, size = _chain(log, made), len(gain)
    if log.discount == 1 and not _ends(chain):
        return np.full(size, np.nan)
    only = np.zeros(size, dtype=np.int64)
    return value_policy(SparseRows(chain, size, 1), gain[:, None], np.asarray(log.discount), only, tolerance=PRECISE)


def _chain(log: Log, made: Fitted, step: int = 0) -> Any:
    """What follows each node under a step's policy, a CSR matrix ``(S + 1, S + 1)``; the last is all rows' mean."""
    S, goes_on = len(made.mean), ~log.ended
    part, places = made.part[step][goes_on], (log.state[goes_on], made.reach[goes_on])
    states = sp.csr_array(sp.coo_array((part, places), shape=(S, S + 1)))
    return sp.vstack([states, sp.csr_array(made.mean[None]) @ states], format="csr")


def _ends(chain: Any) -> bool:
    """Whether every node can lead to an end: its row lacks mass, or reaches a node that can."""
    ends = np.asarray(chain.sum(axis=1) < 1 - MASS_TOLERANCE)
    while True:
        more = ends | (chain @ ends.astype(np.float64) > 0)
        if (more == ends).all():
            return bool(ends.all())
        ends = more
