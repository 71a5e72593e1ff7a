"""Part: everything that is known of some of the rows, and how two of them become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.limits import check_pairs
from certeq.data.counting.spaces import Space, union
from certeq.data.counting.tallying import Cells
from certeq.data.sums import LARGEST, Sums


class LeftOut(NamedTuple):
    """Rewards of rows that do not count: how many, their mean, and their squared distances from it, added up."""

    number: int = 0
    mean: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, rewards: Floats) -> LeftOut:
        """Of those that are numbers; the largest are taken for less, since their squares are no numbers."""
        there = np.clip(rewards[np.isfinite(rewards)], -LARGEST, LARGEST)
        return cls(len(there), float(there.mean()), float(there.var() * len(there))) if len(there) else cls()

    def __or__(self, other: LeftOut) -> LeftOut:
        """Both together."""
        number = self.number + other.number
        if not number:
            return self
        share, apart = other.number / number, other.mean - self.mean
        spread = self.spread + other.spread + self.number * share * apart**2
        return LeftOut(number, self.mean + share * apart, spread)


NOTHING = LeftOut()


@dataclass(frozen=True)
class Part:
    """Counts of some of the rows, by their own states and actions."""

    states: Space
    actions: Space
    cells: Cells  # one line for each pair, one column for each state
    ended: Integers  # (S * A,)
    rewards: Sums | None
    rows: int  # that were read
    dropped: Mapping[str, int]
    left: LeftOut = NOTHING


def merge(one: Part, other: Part) -> Part:
    """Put two parts together: the labels of both, sorted, and the sums of what was counted."""
    rows, dropped = one.rows + other.rows, dict(Counter(one.dropped) + Counter(other.dropped))
    left = one.left | other.left
    if not (len(one.states) and len(other.states)):  # one of them had no rows that count
        return replace(one if len(one.states) else other, rows=rows, dropped=dropped, left=left)
    states, *moved_states = union(one.states, other.states)
    actions, *moved_actions = union(one.actions, other.actions)
    check_pairs(len(states), len(actions))
    one, other = (
        _moved(part, states, actions, state, action)
        for part, state, action in zip((one, other), moved_states, moved_actions, strict=True)
    )
    rewards = None if one.rewards is None or other.rewards is None else _add(one.rewards, other.rewards)
    return Part(
        states,
        actions,
        _sum(one.cells, other.cells, len(states)),
        one.ended + other.ended,
        rewards,
        rows,
        dropped,
        left,
    )


def _moved(part: Part, states: Space, actions: Space, state: Integers, action: Integers) -> Part:
    """A part by the states and actions of a larger one; what stood in order stays in order."""
    S, A = len(states), len(actions)
    if len(state) == S and len(action) == A:
        return part
    line = (state[:, None] * A + action).ravel()
    pointer = np.zeros(S * A + 1, dtype=part.cells.pointer.dtype)
    pointer[line + 1] = np.diff(part.cells.pointer)
    np.cumsum(pointer, out=pointer)
    outcome = state.astype(np.int32)[part.cells.outcome]
    ended = np.zeros(S * A, dtype=np.int64)
    ended[line] = part.ended
    rewards = part.rewards and _spread(part.rewards, state, action, S, A)
    return replace(part, cells=Cells(pointer, outcome, part.cells.number), ended=ended, rewards=rewards)


def matrix(cells: Cells, n_states: int) -> Any:
    """Cells as a CSR matrix, with the small index type where it suffices."""
    import scipy.sparse as sp

    small = len(cells.number) < 2**31
    pointer, outcome = (part.astype(np.int32 if small else np.int64, copy=False) for part in cells[:2])
    return sp.csr_array((cells.number, outcome, pointer), shape=(len(pointer) - 1, n_states))


def _sum(one: Cells, other: Cells, n_states: int) -> Cells:
    total = matrix(one, n_states) + matrix(other, n_states)
    return Cells(total.indptr.astype(np.int64), total.indices.astype(np.int32, copy=False), total.data)


# ---- rewards ----


def _spread(sums: Sums, state: Integers, action: Integers, S: int, A: int) -> Sums:
    """Sums by the states and actions of a larger part."""
    number, earned = np.zeros((2, S, A), dtype=np.int64), np.zeros((2, S, A))
    arrivals, arrived = np.zeros(S + 1, dtype=np.int64), np.zeros(S + 1)
    pairs, reached = np.ix_(np.arange(2), state, action), np.append(state, S)
    number[pairs], earned[pairs] = sums.number, sums.earned
    arrivals[reached], arrived[reached] = sums.arrivals, sums.arrived
    return replace(sums, number=number, earned=earned, arrivals=arrivals, arrived=arrived)


def _add(one: Sums, other: Sums) -> Sums:
    """Add sums up; the means of a pair in both are apart, and that adds to the spread around their common mean."""
    size = max(one.size, other.size)
    one, other = one.in_units(size), other.in_units(size)  # powers of two
    number = one.number + other.number
    apart = _means(one) - _means(other)
    between = one.number * (other.number / np.maximum(number, 1)) * apart**2
    return Sums(
        size,
        number,
        one.earned + other.earned,
        one.spread + other.spread + between.sum(axis=(-2, -1)),
        one.arrivals + other.arrivals,
        one.arrived + other.arrived,
        np.stack([np.minimum(one.span, other.span)[:, 0], np.maximum(one.span, other.span)[:, 1]], axis=1),
    )


def _means(sums: Sums) -> Floats:
    return np.asarray(sums.earned / np.maximum(sums.number, 1))
