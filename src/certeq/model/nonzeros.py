"""Counts as lists: what was seen after each pair, one pair after the other, for compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Integers
from certeq.data.counts import Counts


class NonZeros(NamedTuple):
    """Counts of D data sets as lists; line (d·S + s)·A + a is that of the pair (s, a) of data set d."""

    pointer: Any  # (D·S·A + 1,) int64: where the list of each pair begins
    outcome: Any  # (nonzeros,) int32: 0 .. N - 1 in order, where S is ending
    count: Any  # (nonzeros,) int64
    states: int
    actions: int
    outcomes: int


def table_of(counts: Counts) -> NonZeros:
    """List the non-zero counts."""
    S, A = counts.n_states, counts.n_actions
    pairs = int(np.prod(counts.batch)) * S * A
    if counts.sparse:
        pointer, outcome, count = (getattr(counts.transitions, name) for name in ("indptr", "indices", "data"))
    else:
        flat = np.ascontiguousarray(counts.transitions).reshape(-1)
        place = np.flatnonzero(flat)
        count, outcome = flat[place], place % S
        pointer = np.searchsorted(place, np.arange(0, S * pairs + 1, S))
    if counts.ended is not None:
        over = np.flatnonzero(counts.ended.ravel())
        last = pointer[over + 1]  # an ending is the last outcome of its row
        outcome, count = np.insert(outcome, last, S), np.insert(count, last, counts.ended.ravel()[over])
        pointer = pointer + np.searchsorted(over, np.arange(pairs + 1))
    # one type each, whoever counted, so that kernels are compiled once; large counts are not copied
    pointer, count = (each.astype(np.int64, copy=False) for each in (pointer, count))
    return NonZeros(pointer, outcome.astype(np.int32, copy=False), count, S, A, counts.n_outcomes)


def one_table(table: NonZeros, data_set: int) -> tuple[NonZeros, slice]:
    """The lists of one data set of several, and which of all non-zeros they are."""
    pairs = table.states * table.actions
    pointer = table.pointer[data_set * pairs : (data_set + 1) * pairs + 1]
    own = slice(pointer[0], pointer[-1])
    return table._replace(pointer=pointer - pointer[0], outcome=table.outcome[own], count=table.count[own]), own


def places(table: NonZeros) -> tuple[Integers, Integers, Integers]:
    """Data set, state and action of each non-zero."""
    line = np.repeat(np.arange(len(table.pointer) - 1), np.diff(table.pointer))
    data_set, pair = np.divmod(line, table.states * table.actions)
    return data_set, pair // table.actions, pair % table.actions
