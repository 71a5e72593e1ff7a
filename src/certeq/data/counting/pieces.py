"""Counting one piece of the rows: read it, code it, see which rows count, count them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, first
from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.limits import check_pairs
from certeq.data.counting import parquet as files
from certeq.data.counting.coding import LABELS, Coded, Source, encode
from certeq.data.counting.parts import Part
from certeq.data.counting.spaces import Space, combine, used
from certeq.data.counting.tallying import Cells, Codes, count, earn
from certeq.data.reading.batches import BLANK, finite_amounts
from certeq.data.reading.endings import flag
from certeq.data.reading.roles import Roles
from certeq.data.reading.rows import LAST, NO_ACTION, no_next_state
from certeq.data.recipes import column
from certeq.data.recipes.columns import compact
from certeq.data.recipes.fitting import Binning, place
from certeq.data.sums import LARGEST, Sums

MAX_STATES = 1_000_000
SPACIOUS = 1 << 24  # pairs of codes; with more of them, those that do not occur are dropped before counting
SMALLEST = -1000  # exponent of the smallest unit of rewards


@dataclass(frozen=True)
class Layout:
    """Which column is what, and how columns become states and actions."""

    roles: Roles
    how: Mapping[str, Binning] = field(default_factory=dict)  # what was said: labels or edges
    max_states: int = MAX_STATES


class CodedRows(NamedTuple):
    """Rows that count, as codes, and what the codes stand for."""

    state: Codes
    action: Codes
    outcome: Codes  # the number of states for an ending
    reward: Floats | None
    states: Integers  # (S,), codes on the grid of the state columns
    actions: Integers  # (A,)


def count_piece(piece: files.Piece, layout: Layout) -> Part:
    """Count a piece of a file."""
    roles = layout.roles
    frame = files.read(piece, roles.columns, (*roles.state, *roles.next_state, *roles.action))
    try:
        with door("A column"):
            return count_rows(frame, layout, range(piece.start, piece.start + piece.rows))
    except InputError as error:
        raise InputError(f"{piece.file.name}: {error}") from None


def count_rows(frame: Any, layout: Layout, rows: range) -> Part:
    """Count rows, given by their columns, which have these numbers in their file."""
    roles, how = layout.roles, layout.how
    states = [
        encode(Source((name, after), (frame[name], frame[after]), rows), how.get(name))
        for name, after in zip(roles.state, roles.next_state, strict=True)
    ]
    actions = [encode(Source((name,), (frame[name],), rows), how.get(name)) for name in roles.action]
    kept, ended, dropped = _link(frame, roles, states, actions, rows)
    reward = None if roles.reward is None else _rewards(frame[roles.reward], roles.reward, kept, rows)
    reward = 0.0 - reward if reward is not None and roles.minimize else reward
    _check_states(frame, layout, states, kept, rows)
    everything = np.ones(len(rows), dtype=bool)
    for one in (*actions, *states):
        one.check_sizes(everything if kept is None else kept, everything if ended is None else ~ended, rows)
    state_grid, now, then = combine(states)
    action_grid, act, _ = combine(actions)
    if ended is not None:
        then = np.where(ended, np.uint32(state_grid.size), then)
    if kept is not None:
        now, act, then = now[kept], act[kept], then[kept]
    chosen = _compact(now, act, then, reward, state_grid.size, action_grid.size)
    S, A = len(chosen.states), len(chosen.actions)
    cells = count(chosen.state, chosen.action, chosen.outcome, S, A, S + 1)
    there, tried, earned = _use(chosen, cells)
    check_pairs(len(there), len(tried))
    space = used([one.axis for one in states], state_grid.cells(chosen.states[there]))
    check_states(space, layout.max_states)
    return Part(
        space,
        used([one.axis for one in actions], action_grid.cells(chosen.actions[tried])),
        *_split(cells, S, A, there, tried),
        earned,
        len(rows),
        dropped,
    )


def check_states(states: Space, limit: int) -> None:
    """Refuse more states than were meant, and say which column makes them so many."""
    if len(states) > limit:
        axis = max(states.axes, key=lambda one: one.size)
        name = axis.columns[0]
        raise InputError(
            f"These columns make more than {limit:,} states (at least {len(states):,}). Column {name!r} has the most "
            f"different values, {axis.size:,}. Cut it, if it is a number: bins={{{name!r}: 'edges:1,2.5'}} (--bins "
            f"{name}=edges:1,2.5); group its labels into fewer; or raise max_states= (--max-states)."
        )


# ---- which rows count ----


def _link(
    frame: Any, roles: Roles, states: Sequence[Coded], actions: Sequence[Coded], rows: range
) -> tuple[Booleans | None, Booleans | None, dict[str, int]]:
    """Which rows count (None: all), which of them ended their episode (None: none), and why others do not count.

    The rules are those of `certeq.data.reading.rows.explicit`.
    """
    done, cut = _flags(frame, roles, "done", rows), _flags(frame, roles, "truncated", rows)
    idle, lost = _either(one.absent_now for one in actions), _either(one.absent_now for one in states)
    blank = _either(one.absent_then for one in states)
    if idle is None and lost is None and blank is None:
        return None, done, {}
    none = np.zeros(len(rows), dtype=bool)
    idle, lost, blank, over, stop = (none if some is None else some for some in (idle, lost, blank, done, cut))
    empty = idle & lost & blank
    if empty.any():
        empty = np.logical_and.reduce([column(frame[name][:], name).missing for name in roles.columns])
    bad = ~idle & blank & ~over & ~stop
    if bad.any():
        (row,) = first(bad)
        one = {name: column(frame[name][row : row + 1], name) for name in roles.next_state}
        raise no_next_state(one, roles, np.array([rows[row]]), 0)
    kept = ~idle & (over | ~blank)
    reasons = {BLANK: empty, NO_ACTION: idle & ~empty, LAST: ~idle & blank & ~over}
    return kept, done, {why: int(which.sum()) for why, which in reasons.items() if which.any()}


def _check_states(frame: Any, layout: Layout, states: Sequence[Coded], kept: Booleans | None, rows: range) -> None:
    """Refuse a row that counts but whose state is not known."""
    for name, coded in zip(layout.roles.state, states, strict=True):
        if coded.absent_now is not None:
            lost = coded.absent_now if kept is None else coded.absent_now & kept
            if lost.any():
                Source((name,), (frame[name],), rows).refuse(0, first(lost)[0], layout.how.get(name, LABELS))


def _either(some: Iterable[Booleans | None]) -> Booleans | None:
    """Rows where any of the columns lacks a value."""
    there = [one for one in some if one is not None]
    return np.logical_or.reduce(there) if there else None


def _flags(frame: Any, roles: Roles, role: str, rows: Any) -> Booleans | None:
    name = getattr(roles, role)
    return None if name is None else flag({name: column(frame[name][:], name)}, roles, role, rows)


def _rewards(series: Any, name: str, kept: Booleans | None, rows: Any) -> Floats:
    """Rewards of the rows that count: finite numbers."""
    plain = series.dtype.is_float() and not series.null_count()
    reward = series.to_numpy().astype(np.float64, copy=False) if plain else column(series, name).numbers()
    reward = reward if kept is None else reward[kept]
    if len(reward) and not max(-reward.min(), reward.max()) <= LARGEST:  # which is so too where one is not a number
        (at,) = first(~(np.abs(reward) <= LARGEST))
        row = int(at if kept is None else np.flatnonzero(kept)[at])
        finite_amounts(column(series, name), "reward", name, np.array([row]), rows)
        raise InputError(f"{place(row, rows)}: the reward {name!r} is {reward[at]:g}, beyond {LARGEST:g}.")
    return np.asarray(reward)


# ---- codes that occur ----


def _compact(now: Codes, act: Codes, then: Codes, reward: Floats | None, S: int, A: int) -> CodedRows:
    """Rows as they are or, where there are far more codes than rows, with codes that occur only."""
    states, actions = np.arange(S), np.arange(A)
    if S * A > SPACIOUS:
        seen = np.zeros(S + 1, dtype=bool)
        seen[now] = True
        seen[then] = True
        states = np.flatnonzero(seen[:S])
        place_of = np.append(np.cumsum(seen[:S], dtype=np.uint32) - np.uint32(1), np.uint32(len(states)))
        now, then = place_of[now], place_of[then]
        actions, codes = compact(act.astype(np.int64), A) if len(act) else (actions[:0], act)
        act = codes.astype(np.uint32)
        check_pairs(len(states), len(actions))
    return CodedRows(now, act, then, reward, states, actions)


def _use(rows: CodedRows, cells: Cells) -> tuple[Integers, Integers, Sums | None]:
    """Which states and actions occur, and what the pairs among them earned."""
    S, A = len(rows.states), len(rows.actions)
    added = np.append(0, np.cumsum(cells.number))
    visits = np.diff(added[cells.pointer])
    arrivals = np.bincount(cells.outcome, cells.number, minlength=S + 1).astype(np.int64)
    table = visits.reshape(S, A)
    there = np.flatnonzero(table.any(axis=1) | (arrivals[:S] > 0))
    tried = np.flatnonzero(table.any(axis=0))
    if rows.reward is None:
        return there, tried, None
    ended = _ended(cells, S)
    number = np.stack([visits - ended, ended])
    size = _unit(rows.reward)
    earned = earn(rows.state, rows.action, rows.outcome, rows.reward, number.ravel(), A, S + 1, size)
    kinds, reached = np.ix_(np.arange(2), there, tried), np.append(there, S)
    sums = Sums(
        size,
        number.reshape(2, S, A)[kinds],
        earned.pairs.reshape(2, S, A)[kinds],
        earned.spread,
        arrivals[reached],
        earned.arrived[reached],
        earned.span,
    )
    return there, tried, sums


def _unit(reward: Floats) -> float:
    """A power of two that no reward exceeds: a change of units then rounds nothing."""
    largest = max(-float(reward.min(initial=0)), float(reward.max(initial=0)))
    return 2.0 ** max(int(np.frexp(largest)[1]), SMALLEST) if largest else 1.0


def _split(cells: Cells, S: int, A: int, there: Integers, tried: Integers) -> tuple[Cells, Integers]:
    """Cells by the states and actions that occur, and the endings of each pair."""
    sizes, ended = np.diff(cells.pointer), _ended(cells, S)
    ends = ended > 0
    outcome, number = cells.outcome, cells.number
    if ends.any():
        goes_on = outcome != S
        outcome, number = outcome[goes_on], number[goes_on]
    line = (there[:, None] * A + tried).ravel()
    pointer = np.append(0, np.cumsum((sizes - ends)[line]))
    place_of = np.zeros(S, dtype=np.int32)
    place_of[there] = np.arange(len(there))
    return Cells(pointer, place_of[outcome], number), ended[line]


def _ended(cells: Cells, S: int) -> Integers:
    """How often each pair was followed by an ending, which is the last of its cells, ``(S * A,)``."""
    if not len(cells.outcome):
        return np.zeros(len(cells.pointer) - 1, dtype=np.int64)
    last = np.maximum(cells.pointer[1:] - 1, 0)
    ends = (np.diff(cells.pointer) > 0) & (cells.outcome[last] == S)
    return np.where(ends, cells.number[last], 0)
