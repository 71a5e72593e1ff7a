"""Log: episodes as off-policy estimators read them, with the policy that is to be valued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, first, floats, whole, within
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.order import episodes
from certeq.learning.elapsed import check_alike
from certeq.questions.chains import read_policy
from certeq.questions.episodes import check_whole
from certeq.questions.exact import check_stochastic


@dataclass(frozen=True)
class Log:
    """Rows in order of episode and step, cut at the horizon."""

    state: Integers  # (n,)
    action: Integers  # (n,)
    reward: Floats  # (n,)
    next_state: Integers  # (n,), any state where the episode ended
    ended: Booleans  # (n,)
    number: Integers  # (n,): which episode
    step: Integers  # (n,): decisions before it
    length: Integers  # (E,)
    policy: Floats  # (1 or H, S, A)
    behavior: Floats | None  # (n,): chance of each logged action; None where it has to be estimated
    smoothing: float  # rows added to each state, spread evenly, before chances are estimated
    discount: float
    horizon: int | None
    action_values: Floats | None  # (1 or H, S, A): what doubly robust estimates go by instead of fitted ones

    @cached_property
    def last(self) -> Integers:
        """Place of the last row of each episode, ``(E,)``."""
        return np.asarray(np.cumsum(self.length) - 1)

    @cached_property
    def first(self) -> Integers:
        """Place of the first row of each episode, ``(E,)``."""
        return np.asarray(np.cumsum(self.length) - self.length)

    @cached_property
    def pair(self) -> Integers:
        """Number of each row's pair, ``(n,)``."""
        return np.asarray(self.state * self.policy.shape[2] + self.action)

    @cached_property
    def at(self) -> Integers:
        """Where the policy of each row's step stands, ``(n,)``."""
        return np.minimum(self.step, len(self.policy) - 1)

    @cached_property
    def by_step(self) -> list[Integers]:
        """Places of the rows of each step."""
        ends = np.cumsum(np.bincount(self.step))[:-1]
        return np.split(np.argsort(self.step, kind="stable"), ends)

    @property
    def unwatched(self) -> float:
        """How much of the time that counts, discounted, lies after watching stopped: a mean over episodes."""
        cut = ~self.ended[self.last] & (self.length < (self.horizon or np.inf))
        seen = self.discount**self.length
        if self.horizon is None:
            return float(np.mean(cut * seen))
        if self.discount == 1:
            return float(np.mean(cut * (1 - self.length / self.horizon)))
        end = self.discount**self.horizon
        return float(np.mean(cut * (seen - end) / (1 - end)))


def read_log(
    batch: Batch,
    policy: Any,
    discount: float,
    *,
    behavior: ArrayLike | None = None,
    smoothing: float = 0.0,
    reward: ArrayLike | None = None,
    horizon: int | None = None,
    action_values: ArrayLike | None = None,
) -> Log:
    """Read episodes from a batch, and check them."""
    check_alike(batch)
    S, A = batch.n_states, batch.n_actions
    order = episodes(batch)
    check_whole(batch, order)
    gamma = within("discount", discount, 0, 1)
    if gamma.ndim:
        raise InputError(f"Off-policy evaluation is for one discount; got an array of shape {gamma.shape}.")
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"smoothing is a number of rows, 0 or more; got {smoothing}.")
    steps = None if horizon is None else whole("horizon", horizon, 1)
    kept = order.step < (steps or np.inf)
    row = order.row[kept]
    chances = None if behavior is None else _behavior(batch, behavior)[row]
    ended = batch.ended[row]
    return Log(
        state=batch.state[row],
        action=batch.action[row],
        reward=_rewards(batch, reward)[row],
        next_state=np.where(ended, 0, batch.next_state[row]),
        ended=ended,
        number=order.number[kept],
        step=order.step[kept],
        length=np.minimum(order.length, steps or np.iinfo(np.int64).max),
        policy=read_policy("policy", policy, S, A, steps),
        behavior=chances,
        smoothing=float(smoothing),
        discount=float(gamma),
        horizon=steps,
        action_values=None if action_values is None else _action_values(action_values, S, A, steps),
    )


def _rewards(batch: Batch, known: ArrayLike | None) -> Floats:
    """Reward of each row: what it earned, or what its pair is known to earn."""
    if known is None:
        if batch.reward is None:
            raise InputError("The rows have no rewards. Name the reward column, or give a known reward table.")
        return batch.reward
    table = floats("reward", known)
    if table.shape != (batch.n_states, batch.n_actions):
        raise InputError(f"Known rewards need the shape ({batch.n_states}, {batch.n_actions}); got {table.shape}.")
    return np.asarray(table[batch.state, batch.action])


def _behavior(batch: Batch, behavior: ArrayLike) -> Floats:
    """Chance of the logged action of each row, ``(n,)``."""
    given = floats("behavior", behavior)
    if given.shape == (len(batch),) and given.ndim == 1:
        chance = within("behavior", given, 0, 1)
    elif given.ndim == 2:
        chance = check_stochastic(given, batch.n_states, batch.n_actions)[batch.state, batch.action]
    else:
        raise InputError(
            f"behavior needs probabilities ({batch.n_states}, {batch.n_actions}) of each action in each state, or "
            f"({len(batch)},) of the logged action of each row; got the shape {given.shape}."
        )
    if (chance <= 0).any():
        (row,) = first(chance <= 0)
        state, action = batch.state_names[batch.state[row]], batch.action_names[batch.action[row]]
        raise InputError(
            f"Row {row}: action {action!r} was taken in state {state!r}, where the behavior gives it no chance. "
            "Correct the behavior, or leave it out to have it estimated from the rows."
        )
    return np.asarray(chance)


def _action_values(given: ArrayLike, S: int, A: int, horizon: int | None) -> Floats:
    """Action values of the policy, ``(1 or H, S, A)``."""
    values = floats("action_values", given)
    values = values[None] if values.ndim == 2 else values
    if values.shape != (horizon or 1, S, A):
        wanted = (S, A) if horizon is None else (horizon, S, A)
        raise InputError(f"action_values need the shape {wanted}; got {np.shape(given)}.")
    return values
