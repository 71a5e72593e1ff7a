"""Sums: what was earned, added up. The counterpart of `Counts` for rewards.

A reward belongs to its outcome, so rows that went on and rows that ended their episode are added up apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers, floats
from certeq.base.errors import InputError
from certeq.data.batch import Batch

LEAST, LARGEST = 1e-50, 1e50  # of the largest reward: squares of what is beyond, and squares of these, are no numbers
PARTS = ("number", "earned", "spread", "arrivals", "arrived")  # that have leading axes
WENT_ON, ENDED = 0, 1  # places on the axis of kinds


@dataclass(frozen=True)
class Sums:
    """All that the estimates need to know of the rows, so that rows can be added or drawn again without reading them.

    Rewards are in units of ``size``, the largest of them, because its square may overflow. Leading axes are data sets.
    Of two kinds of rows, the first went on and the second ended.
    """

    size: float
    number: Integers  # (..., 2, S, A): rows of each kind
    earned: Floats  # (..., 2, S, A)
    spread: Floats  # (..., 2): squared distances of the rows from the means of their pair and kind, added up
    arrivals: Integers  # (..., S + 1): how often each next state was reached; the last entry is an ending
    arrived: Floats  # (..., S + 1): what was earned on the way there
    span: Floats  # (2, 2): least and greatest reward of each kind; infinite, the wrong way round, where there is none

    @property
    def visits(self) -> Integers:
        """Rows of each pair, of either kind, ``(..., S, A)``."""
        return np.asarray(self.number.sum(axis=-3))

    @property
    def total(self) -> Floats:
        """What each pair earned, ``(..., S, A)``."""
        return np.asarray(self.earned.sum(axis=-3))

    @property
    def scatter(self) -> Floats:
        """Squared distances of the rows from the means of their pairs, whatever their kind, added up, ``(...)``."""
        mean = self.earned / np.maximum(self.number, 1)
        apart = (mean[..., ENDED, :, :] - mean[..., WENT_ON, :, :]) ** 2
        each = self.number.prod(axis=-3, dtype=np.float64) / np.maximum(self.visits, 1)
        return np.asarray(self.spread.sum(axis=-1) + (each * apart).sum(axis=(-2, -1)))

    @property
    def ends(self) -> bool:
        """Whether any row ended its episode."""
        return bool(self.number[..., ENDED, :, :].any())

    def __getitem__(self, data_set: int) -> Sums:
        """One data set of several."""
        some: dict[str, Any] = {name: getattr(self, name)[data_set] for name in PARTS}
        return replace(self, **some)

    def in_units(self, size: float) -> Sums:
        """In units of another size; where one is a power of two of the other, nothing is rounded."""
        scale = self.size / size
        if scale == 1.0:
            return self
        spread = self.spread * scale * scale
        return replace(self, size=size, earned=self.earned * scale, spread=spread, arrived=self.arrived * scale)

    @classmethod
    def stack(cls, several: Sequence[Sums]) -> Sums:
        """Sums of several data sets, all in the same units, with a leading axis."""
        parts: dict[str, Any] = {name: np.stack([getattr(one, name) for one in several]) for name in PARTS}
        return replace(several[0], **parts)

    def add(self, state: Integers, action: Integers, arrival: Integers, reward: Floats, times: Integers) -> Sums:
        """Add to one data set, in each of B variants ``(B,)``, some rows that are all alike; arrival S is an ending."""
        B, units = len(state), reward / self.size
        kind = (arrival == len(self.arrivals) - 1).astype(np.int64)
        number, earned, spread, arrivals, arrived = (_copies(getattr(self, name), B) for name in PARTS)
        place = np.arange(B), kind, state, action
        before, there = number[place], np.arange(B)
        mean = earned[place] / np.maximum(before, 1)
        spread[there, kind] += before * times / np.maximum(before + times, 1) * (units - mean) ** 2
        number[place] += times
        earned[place] += times * units
        arrivals[there, arrival] += times
        arrived[there, arrival] += times * units
        return Sums(self.size, number, earned, spread, arrivals, arrived, self.span)


def add_up(batch: Batch, times: Integers | None = None) -> Sums:
    """Add up the rewards of a batch (one data set), each row once, or as often as ``times`` ``(n,)`` says."""
    if batch.reward is None:
        raise InputError("The rows have no rewards. Name the reward column, or give a known reward table.")
    if batch.data_set is not None:
        raise InputError("Rewards are estimated for one data set at a time; this batch holds several.")
    S, A = batch.n_states, batch.n_actions
    kind = batch.ended.astype(np.int64)
    place = (kind * S + batch.state) * A + batch.action
    reward = floats("reward", batch.reward)
    largest = float(np.abs(reward).max(initial=0))
    check_size(largest)
    size = largest or 1.0
    units = reward / size
    often = np.ones(len(batch), dtype=np.int64) if times is None else times
    number, earned = _sums(place, units, often, 2 * S * A)
    distance = (units - (earned / np.maximum(number, 1))[place]) ** 2
    arrivals, arrived = _sums(np.where(batch.ended, S, batch.next_state), units, often, S + 1)
    spread = np.bincount(kind, often * distance, minlength=2).astype(np.float64)
    pairs = (2, S, A)
    return Sums(size, number.reshape(pairs), earned.reshape(pairs), spread, arrivals, arrived, span_of(reward, kind))


def check_size(largest: float) -> None:
    """Raise if the largest reward, up to its sign, is too large or too small to compute with."""
    if largest and not LEAST <= largest <= LARGEST:
        remedy = "Divide" if largest > LARGEST else "Multiply"
        raise InputError(
            f"Rewards of up to {largest:.3g} are too {'large' if largest > LARGEST else 'small'} to compute with. "
            f"{remedy} all of them by a constant, so that the largest is between {LEAST:g} and {LARGEST:g}: that "
            "changes no advice."
        )


def span_of(reward: Floats, kind: Integers) -> Floats:
    """Least and greatest reward of each kind of rows, ``(2, 2)``."""
    each = [reward[kind == k] for k in (WENT_ON, ENDED)]
    return np.array([[one.min(initial=np.inf), one.max(initial=-np.inf)] for one in each])


def _copies(table: Any, times: int) -> Any:
    return np.repeat(table[None], times, axis=0)


def _sums(group: Integers, values: Floats, times: Integers, size: int) -> tuple[Integers, Floats]:
    """Count and sum of each group."""
    count = np.bincount(group, times, minlength=size).astype(np.int64)
    return count, np.bincount(group, times * values, minlength=size).astype(np.float64)
