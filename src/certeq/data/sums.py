"""Sums: what was earned, added up. The counterpart of `Counts` for rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certeq.base.arrays import Floats, Integers, within
from certeq.base.errors import InputError
from certeq.data.batch import Batch

LARGEST = 1e300  # rewards beyond this would overflow when they add up


@dataclass(frozen=True)
class Sums:
    """All that the estimates need to know of the rows, so that rows can be added or drawn again without reading them.

    Rewards are in units of ``size``, the largest of them, because its square may overflow. Leading axes are data sets.
    """

    size: float
    visits: Integers  # (..., S, A)
    total: Floats  # (..., S, A)
    scatter: Floats  # (...): squared distances of the rows from the means of their pairs, added up
    arrivals: Integers  # (..., S + 1): how often each next state was reached; the last entry is an ending
    arrived: Floats  # (..., S + 1): what was earned on the way there

    def __getitem__(self, data_set: int) -> Sums:
        """One data set of several."""
        parts = (self.visits, self.total, self.scatter, self.arrivals, self.arrived)
        visits, total, scatter, arrivals, arrived = (part[data_set] for part in parts)
        return Sums(self.size, visits, total, scatter, arrivals, arrived)

    def add(self, state: Integers, action: Integers, arrival: Integers, reward: Floats, times: Integers) -> Sums:
        """Add to one data set, in each of B variants ``(B,)``, some rows that are all alike; arrival S is an ending."""
        variant, units = np.arange(len(state)), reward / self.size
        visits, arrivals = (np.repeat(table[None], len(state), axis=0) for table in (self.visits, self.arrivals))
        total, arrived = (np.repeat(table[None], len(state), axis=0) for table in (self.total, self.arrived))
        before = self.visits[state, action]
        mean = self.total[state, action] / np.maximum(before, 1)
        apart = before * times / np.maximum(before + times, 1) * (units - mean) ** 2
        visits[variant, state, action] += times
        total[variant, state, action] += times * units
        arrivals[variant, arrival] += times
        arrived[variant, arrival] += times * units
        return Sums(self.size, visits, total, self.scatter + apart, arrivals, arrived)


def add_up(batch: Batch, times: Integers | None = None) -> Sums:
    """Add up the rewards of a batch (one data set), each row once, or as often as ``times`` ``(n,)`` says."""
    if batch.reward is None:
        raise InputError("The rows have no rewards. Name the reward column, or give a known reward table.")
    if batch.data_set is not None:
        raise InputError("Rewards are estimated for one data set at a time; this batch holds several.")
    S, A = batch.n_states, batch.n_actions
    pair = batch.state * A + batch.action
    reward = within("reward", batch.reward, -LARGEST, LARGEST)
    size = float(np.abs(reward).max(initial=0)) or 1.0
    units = reward / size
    often = np.ones(len(batch), dtype=np.int64) if times is None else times
    visits, total = _sums(pair, units, often, S * A)
    distance = (units - (total / np.maximum(visits, 1))[pair]) ** 2
    arrivals, arrived = _sums(np.where(batch.ended, S, batch.next_state), units, often, S + 1)
    scatter = np.asarray((often * distance).sum())
    return Sums(size, visits.reshape(S, A), total.reshape(S, A), scatter, arrivals, arrived)


def _sums(group: Integers, values: Floats, times: Integers, size: int) -> tuple[Integers, Floats]:
    """Count and sum of each group."""
    count = np.bincount(group, times, minlength=size).astype(np.int64)
    return count, np.bincount(group, times * values, minlength=size).astype(np.float64)
