"""One piece of the rows: read it, code it, and see which rows count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, first
from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.limits import check_pairs
from certeq.data.counting import parquet as files
from certeq.data.counting.coding import LABELS, Coded, LabelSeries, Source, encode
from certeq.data.counting.parts import NOTHING, LeftOut
from certeq.data.counting.spaces import Grid, Space, combine, same_axis, used
from certeq.data.counting.tallying import Codes
from certeq.data.reading.batches import BLANK, finite_amounts
from certeq.data.reading.endings import flag
from certeq.data.reading.roles import Roles
from certeq.data.reading.rows import LAST, NO_ACTION, no_next_state
from certeq.data.recipes import Bins, column
from certeq.data.recipes.columns import compact
from certeq.data.recipes.fitting import Binning, place
from certeq.data.sums import LARGEST

MAX_STATES = 1_000_000
BLOCK = 1 << 18  # rows, at least, for which coding them by themselves pays
SPACIOUS = 1 << 24  # pairs of codes; with more of them, those that do not occur are dropped before counting


@dataclass(frozen=True)
class Layout:
    """Which column is what, and how columns become states and actions."""

    roles: Roles
    how: Mapping[str, Binning] = field(default_factory=dict)  # what was said: labels or edges
    max_states: int = MAX_STATES


@dataclass(frozen=True)
class PieceCodes:
    """What codes of states and actions stand for."""

    axes: tuple[LabelSeries | Bins, ...]  # of the state columns
    action_axes: tuple[LabelSeries | Bins, ...]
    grid: Grid
    action_grid: Grid
    states: Integers  # (S,), codes on the grid
    actions: Integers  # (A,)

    def alike(self, other: PieceCodes) -> bool:
        """Whether the same codes stand for the same things in another piece."""
        axes = zip((*self.axes, *self.action_axes), (*other.axes, *other.action_axes), strict=True)
        return (
            np.array_equal(self.states, other.states)
            and np.array_equal(self.actions, other.actions)
            and self.grid.alike(other.grid)
            and self.action_grid.alike(other.action_grid)
            and all(same_axis(mine, yours) for mine, yours in axes)
        )

    def spaces(self, there: Integers, tried: Integers, layout: Layout) -> tuple[Space, Space]:
        """The states and actions that occur, of which there may not be too many."""
        check_pairs(len(there), len(tried))
        states = used(self.axes, self.grid.cells(self.states[there]))
        check_states(states, layout.max_states)
        return states, used(self.action_axes, self.action_grid.cells(self.actions[tried]))


class CodedRows(NamedTuple):
    """Rows that count, as codes, and what the codes stand for."""

    state: Codes
    action: Codes
    outcome: Codes  # the number of states for an ending
    reward: Floats | None
    coding: PieceCodes
    rows: int  # that were read
    dropped: dict[str, int]
    left: LeftOut


def code_piece(piece: files.Piece, layout: Layout) -> list[CodedRows]:
    """Read and code a piece of a file: in blocks as they were read, or in one if rewards need the same codes in all."""
    roles = layout.roles
    frame = files.read(piece, roles.columns)
    try:
        with door("A column"):
            blocks = [code_rows(block, layout, rows) for block, rows in _blocks(frame, piece)]
            if roles.reward is None or all(block.coding.alike(blocks[0].coding) for block in blocks[1:]):
                return blocks
            return [code_rows(frame, layout, range(piece.start, piece.start + piece.rows))]
    except InputError as error:
        raise InputError(f"{piece.file.name}: {error}") from None


def _blocks(frame: Mapping[str, Any], piece: files.Piece) -> Iterator[tuple[Mapping[str, Any], range]]:
    """Columns in the blocks in which they were read, where these are long: putting them together would copy all."""
    lengths = {tuple(column.chunk_lengths()) for column in frame.values()}
    sizes = lengths.pop()
    if lengths or piece.rows < BLOCK * len(sizes):
        yield frame, range(piece.start, piece.start + piece.rows)
        return
    chunks = {name: column.get_chunks() if len(sizes) > 1 else [column] for name, column in frame.items()}
    begin = piece.start
    for i, size in enumerate(sizes):
        yield {name: blocks[i] for name, blocks in chunks.items()}, range(begin, begin + size)
        begin += size


def code_rows(frame: Any, layout: Layout, rows: range) -> CodedRows:
    """Code rows, given by their columns, which have these numbers in their file."""
    roles, how = layout.roles, layout.how
    states = [
        encode(Source((name, after), (frame[name], frame[after]), rows), how.get(name))
        for name, after in zip(roles.state, roles.next_state, strict=True)
    ]
    actions = [encode(Source((name,), (frame[name],), rows), how.get(name)) for name in roles.action]
    kept, ended, dropped = _link(frame, roles, states, actions, rows)
    reward = None if roles.reward is None else _rewards(frame[roles.reward], roles.reward, kept, rows)
    reward = 0.0 - reward if reward is not None and roles.minimize else reward
    left = NOTHING
    if roles.reward is not None and kept is not None and not kept.all():
        left = LeftOut.of(column(frame[roles.reward][:], roles.reward).numbers()[~kept] * (-1 if roles.minimize else 1))
    _check_states(frame, layout, states, kept, rows)
    for one in (*actions, *states):
        one.check_sizes(kept, ended, rows)
    state_grid, now, then = combine(states)
    action_grid, act, _ = combine(actions)
    if ended is not None:
        then = np.where(ended, np.uint32(state_grid.size), then)
    if kept is not None:
        now, act, then = now[kept], act[kept], then[kept]
    now, act, then, there, tried = _compact(now, act, then, state_grid.size, action_grid.size)
    axes = tuple(one.axis for one in states), tuple(one.axis for one in actions)
    return CodedRows(
        now, act, then, reward, PieceCodes(*axes, state_grid, action_grid, there, tried), len(rows), dropped, left
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


def _compact(now: Codes, act: Codes, then: Codes, S: int, A: int) -> tuple[Codes, Codes, Codes, Integers, Integers]:
    """Codes as they are or, where there are far more codes than rows, numbers of those that occur; and all of those."""
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
    return now, act, then, states, actions
