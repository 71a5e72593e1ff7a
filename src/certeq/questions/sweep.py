"""Sweep: plan on many data sets at many strengths, and say what each plan loses in the truth.

Names decide nothing: where several actions are best, what is valued is the policy that takes each of them equally
often, exactly and without sampling (decision 0003). Small models go through one compiled kernel, from counts to losses
(`certeq.planners.compiled.swept`); all others are regularized, planned and valued one step after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, floats, together, within
from certeq.base.errors import InputError
from certeq.data.counts import Counts, as_counts
from certeq.learning.equivalence import able, plan, unwritten
from certeq.model.kernel import Rows, is_sparse
from certeq.model.mdp import MDP
from certeq.planners import compiled, solve
from certeq.planners.certify import NEAR
from certeq.planners.compiled import counted
from certeq.planners.problem import SMALLER, How, Problem
from certeq.planners.progress import Watch
from certeq.questions.exact import evaluate, importance
from certeq.regularizers import DEFAULT, shrink

LIMIT = 1_000  # rounds of policy iteration, as in `certeq.solve`
ROOM = 8_000_000  # numbers in the rows that are written out at once to value policies
SWEPT = ("strength", "magnitude", "planning_discount")  # settings whose last axis is swept


@dataclass(frozen=True)
class Sweep:
    """Plans on data sets ``(...)`` at E strengths, and what they lose. Where nothing is swept, E is 1."""

    loss: Floats  # (..., E): the mean over states of V* - V^π in the truth
    policy: Integers  # (..., E, S): the lowest of the tied actions
    optimal: Floats  # (..., S): V*, what can be had in the truth
    n_actions: int
    ties: Integers | Booleans  # (..., E, S): the tied actions as the bits of a number; or what `tied` is

    @cached_property
    def tied(self) -> Booleans:
        """Which actions are as good as the best, ``(..., E, S, A)``: the policy that is valued takes each alike."""
        if self.ties.dtype == np.bool_:
            return np.asarray(self.ties, dtype=np.bool_)
        return np.asarray((self.ties[..., None] >> np.arange(self.n_actions)) & 1 == 1)


def sweep(
    counts: Counts | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    *,
    truth: MDP,
    regularizer: str = DEFAULT,
    start: ArrayLike | None = None,
    engine: str = "auto",
    threads: int | None = None,
    **settings: Any,
) -> Sweep:
    """Plan on each data set at each strength, as `certeq.plan` does, and say what each plan loses in the truth.

    Parameters
    ----------
    counts
        Data sets: `Counts`, or an integer array ``(..., S, A, S)``, or one sparse matrix ``(S * A, S)``.
    reward
        ``(..., S, A)``, what is planned with: the same for all data sets, or one for each.
    discount
        Of the plans: a number, or one for each strength.
    truth
        The world that losses are told in, with its own reward and discount: one for all data sets, or one for each.
    regularizer, settings
        As for `certeq.plan`. The last axis of ``strength``, ``magnitude`` or ``planning_discount`` is swept; axes
        before it are those of the data sets.
    start
        How much each state counts in a loss, ``(S,)``; all alike by default.
    engine, threads
        As for `certeq.solve`.

    >>> from certeq import MDP, sweep
    >>> truth = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]], 0.9)
    >>> counts = [[[4, 0], [1, 3]], [[1, 3], [0, 0]]]
    >>> sweep(counts, truth.reward, 0.9, truth=truth, regularizer="uniform_prior", strength=[0, 0.5, 1]).loss.round(3)
    array([0.   , 0.   , 0.409])
    """
    table, gamma, rewards = as_counts(counts), within("discount", discount, 0, 1), floats("reward", reward)
    S, A = table.n_states, table.n_actions
    if rewards.shape[-2:] != (S, A) or (truth.n_states, truth.n_actions) != (S, A):
        told = f"rewards have the shape {rewards.shape}, and the truth has {truth.n_states} x {truth.n_actions}"
        raise InputError(f"The counts have {S} states x {A} actions; {told}.")
    sets = together(counts=table.batch, reward=rewards.shape[:-2])
    if together(counts=sets, truth=truth.batch) != sets or 0 in sets:
        raise InputError(f"A truth is one for all data sets, {sets}, or one for each; there are {truth.batch}.")
    states = importance(start, S)
    if states.ndim > 1:
        raise InputError(f"start needs {S} probabilities for all data sets alike; got shape {states.shape}.")
    found = _in_one(table, rewards, gamma, truth, states, regularizer, engine, threads, settings)
    if found is not None:
        return found
    how: dict[str, Any] = {"regularizer": regularizer, "engine": engine, "threads": threads}
    if table.sparse:
        plans = [plan(table, rewards, each, **how, **chosen) for each, chosen in _apart(gamma, settings)]
        tied, policy = np.stack([each.tied for each in plans]), np.stack([each.policy for each in plans])
    else:
        planned = plan(table.spread(), _along(rewards), gamma, **how, **settings)
        tied, policy = planned.tied, planned.policy
    optimal = solve(truth.transition, truth.reward, truth.discount, engine=engine, threads=threads).values
    lost = optimal[..., None, :] - values(truth, even(tied), engine, threads)
    loss = (lost * states).sum(axis=-1)  # in an order that does not depend on how many there are
    return Sweep(loss, policy, np.broadcast_to(optimal, (*lost.shape[:-2], S)), A, tied)


def _in_one(
    table: Counts, reward: Floats, discount: Floats, truth: MDP, states: Floats, regularizer: str, engine: str,
    threads: int | None, settings: Mapping[str, Any],
) -> Sweep | None:  # fmt: skip
    """The sweep by the one kernel, if that is able and asked for or worth it."""
    if not able(table, discount, engine) or is_sparse(truth.transition) or truth.discount >= 1 - NEAR:
        return None
    spread = table.spread()
    shrinkage = shrink(spread, regularizer, discount=discount, **settings)
    work = unwritten(spread, shrinkage, _along(reward), discount, engine)
    found = None if work is None else counted.sweep_counts(work, How(0.0, LIMIT, Watch(), threads), truth, states)
    if found is None:
        return None
    if not np.isfinite(found.loss).all():
        raise InputError(f"Rewards add up to more than numbers can hold here. {SMALLER}")
    return Sweep(found.loss, found.policy, found.optimal, table.n_actions, found.tied)


def _along(reward: Floats) -> Floats:
    """Rewards with an axis for the strengths, where each data set has its own."""
    return reward if reward.ndim == 2 else reward[..., None, :, :]


def _apart(discount: Floats, settings: Mapping[str, Any]) -> list[tuple[Floats, dict[str, Any]]]:
    """The discount and the settings at each strength."""
    swept = {name: floats(name, settings[name]) for name in SWEPT if settings.get(name) is not None}
    shape = together(discount=discount.shape, **{name: each.shape for name, each in swept.items()})
    if len(shape) > 1:
        raise InputError(f"One data set is swept along one axis; the settings have the axes {shape}.")
    count = shape[0] if shape else 1
    lines = {name: np.broadcast_to(each, count) for name, each in (("discount", discount), *swept.items())}
    return [(lines["discount"][i], {**settings, **{name: lines[name][i] for name in swept}}) for i in range(count)]


def even(best: Booleans) -> Floats:
    """The policy that takes each of the best actions ``(..., S, A)`` with the same chance."""
    return np.asarray(best / best.sum(axis=-1, keepdims=True))


def values(truth: MDP, policy: Floats, engine: str = "numba", threads: int | None = None) -> Floats:
    """Value of policies ``(..., E, S, A)`` in the truth, ``(..., E, S)``.

    A truth of several MDPs has the axes ``(...)``. Compiled, each policy is valued for itself, whatever else there is.
    """
    *sets, E, S, A = policy.shape
    fast = engine == "numba" or (engine == "auto" and compiled.worth((*sets, E), S))
    if is_sparse(truth.transition):
        return evaluate(truth.transition, truth.reward, truth.discount, policy, threads=threads)
    rows, reward = truth.transition.dense(), _along(truth.reward)
    if not fast:
        world = Rows.trusted(rows if rows.ndim == 3 else rows[..., None, :, :, :])
        return evaluate(world, reward, truth.discount, policy, threads=threads)
    if truth.batch:
        rows, reward = np.broadcast_to(rows, (*sets, S, A, S)), np.broadcast_to(truth.reward, (*sets, S, A))
    flat, rows, reward = policy.reshape(-1, E, S, A), rows.reshape(-1, 1, S, A, S), reward.reshape(-1, 1, S, A)
    discount, mask = np.asarray(truth.discount, dtype=np.float64), np.ones((S, 1), dtype=bool)
    worth, left, step = np.empty(flat.shape[:-1]), np.ones(flat.shape[:2], dtype=bool), max(1, ROOM // (E * S * S))
    if S > compiled.SMALL and truth.discount < 1 - NEAR:
        left = compiled.value_policies(rows[:, 0], reward[:, 0], float(truth.discount), flat, worth, threads)
    lines = np.flatnonzero(left.any(axis=1))
    for part in (lines[first : first + step] for first in range(0, len(lines), step)):
        some = flat[part]
        there, gain = (each if len(each) == 1 else each[part] for each in (rows, reward))
        followed, earned = _under(some[..., None, :], np.moveaxis(there, -2, -1)), _under(some, gain)
        problem = Problem(Rows.trusted(followed[..., None, :]), earned[..., None], discount, mask)
        valued = compiled.evaluate(problem, np.zeros((*some.shape[:2], S), dtype=np.int64), threads)
        worth[part] = np.where(left[part][..., None], valued, worth[part])
    return worth.reshape(*sets, E, S)


def _under(policy: Floats, table: Floats) -> Floats:
    """Mean of a table ``(..., A)`` over the actions that a policy takes, added up in one order whatever the size."""
    total = policy[..., 0] * table[..., 0]
    for a in range(1, policy.shape[-1]):
        total = total + policy[..., a] * table[..., a]
    return np.asarray(total)
