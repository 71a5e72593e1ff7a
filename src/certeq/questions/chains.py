"""Markov chains with rewards: what is left of a model once a policy is followed, and what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.errors import InputError
from certeq.model.kernel import Rows
from certeq.planners import compiled
from certeq.planners.backup import check_policy, value_policy
from certeq.planners.problem import Problem
from certeq.questions.exact import check_stochastic

LASTING = 1000  # decisions for which a policy is followed, where there is neither discount nor horizon


def read_policy(name: str, policy: Any, S: int, A: int, horizon: int | None = None) -> Floats:
    """Read a policy as probabilities ``(1 or H, S, A)``; -1 is any action at random."""
    array = np.asarray(policy)
    if array.dtype.kind in "iu":
        actions = check_policy(array, S, A)
        chosen = np.where(np.arange(A) == actions[..., None], 1.0, 0.0)
        array = np.where(actions[..., None] < 0, 1 / A, chosen)
    probabilities = check_stochastic(array, S, A)
    if probabilities.ndim == 2:
        return probabilities[None]
    if probabilities.ndim > 3 or horizon is None or len(probabilities) != horizon:
        wanted = "give it as horizon=" if horizon is None else f"the horizon is {horizon}"
        raise InputError(
            f"Policy {name!r} has the leading axes {probabilities.shape[:-2]}: {wanted}, one for each decision."
        )
    return probabilities


def follow(rows: Floats, reward: Floats, policy: Floats) -> tuple[Floats, Floats]:
    """Rows ``(k, S, S)`` and rewards ``(k, S)`` of a policy ``(S, A)`` in models ``(k, S, A, S)``."""
    if (policy.max(axis=-1) == 1).all():
        state, action = np.arange(len(policy)), policy.argmax(axis=-1)
        return rows[:, state, action], reward[:, state, action]
    return np.einsum("sa,ksan->ksn", policy, rows), np.asarray((policy * reward).sum(axis=-1))


def follow_each(rows: Floats, reward: Floats, policy: Integers) -> tuple[Floats, Floats]:
    """The same of one policy in each model, ``(k, S)``, -1 for any action at random; of one model, of all in it."""
    state, random = np.arange(policy.shape[-1]), policy < 0
    model = np.arange(len(rows))[:, None]
    chain, gain = rows[model, state, np.maximum(policy, 0)], reward[model, state, np.maximum(policy, 0)]
    if random.any():
        chain[random] = np.broadcast_to(rows.mean(axis=-2), chain.shape)[random]
        gain[random] = np.broadcast_to(reward.mean(axis=-1), gain.shape)[random]
    return chain, gain


def as_problem(chain: Floats, gain: Floats, discount: Floats) -> Problem:
    """Chains ``(k, S, S)`` with rewards ``(k, S)`` as decision problems with one action."""
    only = np.ones((chain.shape[-1], 1), dtype=bool)
    return Problem(Rows.trusted(chain[:, :, None]), gain[..., None], discount, only)


def value_decisions(chain: Floats, gain: Floats, discount: float, decisions: int) -> Floats:
    """Value of so many decisions of each chain in each state, ``(k, S)``."""
    value = gain
    for _ in range(decisions - 1):
        value = gain + discount * (chain @ value[..., None])[..., 0]
    return value


def value_chains(chain: Floats, gain: Floats, discount: Floats, *, compiles: bool, threads: int | None = 1) -> Floats:
    """Value of each chain in each state, ``(k, S)``; without discounting, all of them must end."""
    problem, only = as_problem(chain, gain, discount), np.zeros(gain.shape, dtype=np.int64)
    return compiled.evaluate(problem, only, threads) if compiles else value_policy(*problem[:3], only)
