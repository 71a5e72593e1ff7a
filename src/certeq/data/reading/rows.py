"""From rows to transitions: which row's state follows which, in the two layouts that people keep their data in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, first
from certeq.base.display import several
from certeq.base.errors import InputError
from certeq.data.batch import ENDED
from certeq.data.reading.endings import Marks, flag, settle
from certeq.data.reading.roles import MARKS, Roles
from certeq.data.recipes.columns import Column, pool, text_dates
from certeq.data.recipes.fitting import place

LAST = "last row of an episode without a next state"
NO_ACTION = "row without an action"
BEFORE_GAP = "row before a gap in time"
DAY = 86_400_000_000  # microseconds
RARE = 0.2  # of the steps: as long as no more of them are gaps, little is lost by cutting there
LATEST = 2.0**62  # of times as numbers, so that they can be subtracted


@dataclass(frozen=True)
class Links:
    """Transitions between entries of a pool of states; an entry is a row's state or, further down, its next state."""

    states: Mapping[str, Column]  # m entries each
    entry_row: Integers  # (m,), row of the table that each entry stands in
    row: Integers  # (k,), row of each transition
    now: Integers  # (k,), entry of its state
    then: Integers  # (k,), entry of its next state, ENDED where the episode ended
    episode: Integers | None = None  # (k,)
    time: Integers | None = None  # (k,), how many rows of the episode came before
    elapsed: Floats | None = None  # (k,), from its time to the next one; NaN where there is none
    dropped: Mapping[str, int] = field(default_factory=dict)
    group: Integers | None = None  # episode of each row that is not blank, in the long layout
    last: Booleans | None = None  # whether each is the last one of its episode
    ends: str | None = None  # how last rows without marks were read
    decisions: tuple[str, ...] = ()  # what was decided unasked and changes the advice, in words
    notes: tuple[str, ...] = ()


def explicit(
    columns: Mapping[str, Column],
    roles: Roles,
    rows: Integers,
    ends: str | None = None,
    may_miss: Collection[str] = (),
) -> Links:
    """Each row holds its own next state; columns of the state that may miss values do not make it blank by that."""
    n = len(rows)
    done, cut, told = (flag(columns, roles, role, rows) for role in MARKS)
    acts = _acts(columns, roles)
    pairs = list(zip(roles.state, roles.next_state, strict=True))
    gone = {name: columns[after].missing for name, after in pairs}
    blank = np.logical_and.reduce([*gone.values()])
    blank = np.logical_or.reduce([blank, *(gone[name] for name in gone if name not in may_miss)])
    if ends is not None or roles.ends is not None:
        done = done | (blank & ~cut & (told | (ends == "always")))
        cut = cut | (blank & ~done)
    bad = acts & blank & ~done & ~cut
    if bad.any():
        raise no_next_state(columns, roles, rows, first(bad)[0])
    order, episode, position = np.arange(n), None, None
    if roles.episode is not None:
        episode = _episodes(columns[roles.episode], roles.episode, rows)
        order = _order(episode, _clock(columns[roles.time], roles.time, rows) if roles.time else None)
        position = np.empty(n, dtype=np.int64)
        position[order] = _positions(episode[order])
    kept = order[(acts & (done | ~blank))[order]]
    return Links(
        states={name: pool(columns[name], columns[after].without(done)) for name, after in pairs},
        entry_row=np.concatenate([rows, rows]),
        row=kept,
        now=kept,
        then=np.where(done[kept], ENDED, n + kept),
        episode=None if episode is None else episode[kept],
        time=None if position is None else position[kept],
        dropped=_counted({NO_ACTION: ~acts, LAST: acts & blank & ~done}),
    )


def no_next_state(columns: Mapping[str, Column], roles: Roles, rows: Integers, row: int) -> InputError:
    """Build the error for a row that has an action but no next state."""
    lacking = next(name for name in roles.next_state if columns[name].missing[row])
    remedy = f"It may be blank only where {roles.done!r} says that the episode ended"
    if roles.done is None:
        remedy = (
            "Mark the rows after which an episode ended with done=: a column (--done COLUMN), or what a column says "
            "(--done outcome=death,discharge)"
        )
        if roles.episode is not None:
            remedy += "; or say of all such rows ends='always', or 'never' if they were cut off (--ends)"
    return InputError(f"{place(row, rows)}: {lacking!r} is missing. {remedy}.")


def long(columns: Mapping[str, Column], roles: Roles, rows: Integers, gaps: str, ends: str | None = None) -> Links:
    """The next state of a row is the state of the next row of its episode, in order of time."""
    done, cut, told = (flag(columns, roles, role, rows) for role in MARKS)
    order, episode, clock, notes = sequence(columns, roles, rows)
    done, cut, acts = done[order], cut[order], _acts(columns, roles)[order]
    follows = np.append(episode[1:] == episode[:-1], False)  # whether the next row belongs to the same episode
    teller = _Whereabouts(columns, roles, rows, order)
    odd = np.zeros(len(rows), dtype=bool) if clock is None else _gaps(clock, follows, gaps, teller)
    elapsed = None if roles.time is None else np.append(np.diff(_moments(columns[roles.time])[order]), np.nan)
    far = odd & (gaps == "cut")
    if gaps == "allow" and odd.any():
        steps = f"{int(odd.sum()):,} of {several(int(follows.sum()), 'step')}"
        notes = (*notes, f"{steps} in time differ from the usual one; the next row was used all the same.")
    final = np.append(~acts[1:] & ~follows[1:], False) & follows  # the next row only tells where the episode ended up
    for mark, role in ((done, "done"), (cut, "truncated")):
        on = mark & follows & ~final
        if on.any():
            raise teller.goes_on(first(on)[0], role)
    reward = None if roles.reward is None else columns[roles.reward].numbers()[order]
    done, read, decisions = settle(Marks(done, cut, acts, follows, told[order], reward), roles, ends)
    ended = done | (np.append(done[1:] & ~acts[1:], False) & follows)  # or the next row says no more than the end
    linked = follows & ~far
    kept = np.flatnonzero(acts & (ended | linked))
    return Links(
        states={name: columns[name] for name in roles.state},
        entry_row=rows,
        row=order[kept],
        now=order[kept],
        then=np.where(ended[kept], ENDED, np.append(order[1:], 0)[kept]),
        episode=episode[kept],
        time=_positions(episode)[kept],
        elapsed=None if elapsed is None else np.where(follows, elapsed, np.nan)[kept],
        dropped=_counted({NO_ACTION: ~acts, LAST: acts & ~ended & ~follows, BEFORE_GAP: acts & ~ended & follows & far}),
        group=_back(order, episode),
        last=_back(order, ~follows),
        ends=read,
        decisions=decisions,
        notes=notes,
    )


class Sequence(NamedTuple):
    """The rows of a table by episode and time."""

    order: Integers  # (n,), rows as they follow one another
    episode: Integers  # (n,), of each, in that order: 0, 1, ...
    clock: Any | None  # (n,), its time, in that order, as numbers that can be subtracted
    notes: tuple[str, ...]


def sequence(columns: Mapping[str, Column], roles: Roles, rows: Integers) -> Sequence:
    """Put rows in the order of their episodes and times."""
    notes = []
    if roles.episode is not None:
        episode = _episodes(columns[roles.episode], roles.episode, rows)
    elif (ends := flag(columns, roles, "done", rows) | flag(columns, roles, "truncated", rows))[:-1].any():
        episode = _between(ends, _acts(columns, roles))
        notes.append("There is no episode column: a new episode begins after each row that is marked as an end.")
    else:
        episode = np.zeros(len(rows), dtype=np.int64)
        notes.append("There is no episode column: all rows are one episode.")
    clock = _clock(columns[roles.time], roles.time, rows) if roles.time else None
    if clock is None:
        notes.append("There is no time column: the rows of an episode are taken in the order in which they stand.")
    order = _order(episode, clock)
    return Sequence(order, episode[order], None if clock is None else clock[order], tuple(notes))


@dataclass(frozen=True)
class _Whereabouts:
    """Words for places in sorted rows."""

    columns: Mapping[str, Column]
    roles: Roles
    rows: Integers
    order: Integers

    def episode(self, i: int) -> str:
        name = self.roles.episode
        return "The table" if name is None else f"Episode {self.columns[name].show(int(self.order[i]))}"

    def time(self, i: int) -> str:
        name = self.roles.time
        return "" if name is None else self.columns[name].show(int(self.order[i]))

    def goes_on(self, i: int, role: str) -> InputError:
        at = f" at {self.roles.time} {self.time(i)}" if self.roles.time else ""
        name = self.roles.done if role == "done" else self.roles.truncated
        return InputError(
            f"{self.episode(i)} goes on after its end: {name!r} is true{at}, and more rows follow. If {name!r} does "
            f"not mark the row after which the episode stops, say {role}=False (--{role} none); if it says in every "
            f"row how the episode ends, say ends={name!r} (--ends {name}); if another column tells episodes apart, say "
            "episode= (--episode).",
            remedy={role: False, "ends": name},
        )


def _gaps(clock: Any, follows: Booleans, gaps: str, teller: _Whereabouts) -> Booleans:
    """Which rows are followed by a gap; a difference between times that is not the usual one."""
    far = np.zeros(len(clock), dtype=bool)
    at = np.flatnonzero(follows)
    step = clock[at + 1] - clock[at]
    if (step == 0).any():
        i, others = int(at[first(step == 0)[0]]), int((step == 0).sum()) - 1
        more = f" ({several(others, 'more such row follows', 'more such rows follow')})" if others else ""
        where = f"where {teller.roles.time!r} is {teller.time(i)}{more}"
        raise InputError(
            f"{teller.episode(i)} has two rows {where}. Keep one of them, name a finer time column with time=, or the "
            "right episode column with episode= (--time, --episode)."
        )
    if len(step) == 0 or (step == step[0]).all():
        return far
    steps = np.round(step / step.min(), 6) if step.dtype.kind == "f" else step
    sizes, often = np.unique(steps, return_counts=True)
    usual = sizes[np.argmax(often)]
    far[at] = steps != usual
    if gaps == "error" and far.any():
        i = first(far)[0]
        name, before, after = teller.roles.time, teller.time(i), teller.time(i + 1)
        raise InputError(
            f"{teller.episode(i)} has a gap: {name} goes from {before} to {after}, which is not the usual step. "
            "Say duration='times' (--duration times) to let the time itself count, gaps='allow' (--gaps allow) to take "
            "the next row whenever it comes, or gaps='cut' to leave such rows out; or fill the gap.",
            remedy={"gaps": "cut" if far.sum() < RARE * len(at) else "allow"},
        )
    return far


def _clock(column: Column, name: str, rows: Integers) -> Any:
    """Times as numbers that can be subtracted; dates on the same day of each month count in months."""
    _no_blanks(column, name, "time", rows)
    if column.kind == "date":
        return _calendar(column.values)
    numbers = column.numbers()
    if not np.isnan(numbers).any():
        _all_times(np.abs(numbers) < LATEST, column, name, rows)
        return column.values.astype(np.int64) if column.kind in ("integer", "boolean") else numbers
    dates = text_dates(column.labels)[column.values]
    _all_times(~np.isnat(dates), column, name, rows)
    return _calendar(dates)


def _all_times(sound: Booleans, column: Column, name: str, rows: Integers) -> None:
    if not sound.all():
        (row,) = first(~sound)
        raise InputError(
            f"{place(row, rows)}: {name!r} is {column.show(row)}, which is not a time. Write times as numbers or as "
            "dates with the year first, like 2024-03-31. Only if the rows of each episode stand in order, say "
            "time=False (--time none) instead."
        )


def _moments(column: Column) -> Floats:
    """Times as numbers: dates in days, all else as it stands."""
    if not dated(column):
        return np.asarray(column.numbers())
    dates = column.values if column.kind == "date" else text_dates(column.labels)[column.values]
    return np.asarray(dates.astype("datetime64[us]").astype(np.int64) / DAY)


def dated(column: Column) -> bool:
    """Whether a column of times holds dates rather than numbers."""
    return column.kind == "date" or bool(np.isnan(column.numbers()).any())


def _calendar(dates: Any) -> Integers:
    months = dates.astype("datetime64[M]")
    from_start = dates - months.astype(dates.dtype)
    to_end = (months + np.timedelta64(1, "M")).astype(dates.dtype) - dates
    monthly = (from_start == from_start[:1]).all() or (to_end == to_end[:1]).all()
    return np.asarray((months if monthly else dates).astype(np.int64))


def _acts(columns: Mapping[str, Column], roles: Roles) -> Booleans:
    return np.asarray(~np.logical_or.reduce([columns[name].missing for name in roles.action]))


def _episodes(column: Column, name: str, rows: Integers) -> Integers:
    """Number the episodes in the order in which they begin, so that rows that stand in order already are."""
    _no_blanks(column, name, "episode", rows)
    codes = column.distinct.codes
    begins = np.empty(len(column.distinct.labels), dtype=np.int64)
    begins[codes[::-1]] = np.arange(len(codes))[::-1]  # the last one written, the first of each, remains
    number = np.empty_like(begins)
    number[np.argsort(begins)] = np.arange(len(begins))
    return np.asarray(number[codes])


def _no_blanks(column: Column, name: str, role: str, rows: Integers) -> None:
    if column.missing.any():
        (row,) = first(column.missing)
        more = int(column.missing.sum()) - 1
        also = f", and in {more} further row{'s' * (more > 1)}" if more else ""
        raise InputError(
            f"{place(row, rows)}: {name!r} is missing{also}, so the row belongs nowhere. Fill it in, or "
            f"name another column with {role}= (--{role})."
        )


def _between(ends: Booleans, acts: Booleans) -> Integers:
    """Episodes that marks of their ends tell apart; a row without an action belongs to the row before it."""
    before = np.concatenate([[0], np.cumsum(ends[:-1])])
    return np.asarray(before[np.maximum.accumulate(np.where(acts, np.arange(len(acts)), 0))])


def _order(episode: Integers, clock: Any | None) -> Integers:
    """Rows by episode and time, in the order in which they stand where both are equal."""
    step = np.diff(episode)
    later = np.ones(len(step), dtype=bool) if clock is None else clock[1:] >= clock[:-1]
    if ((step > 0) | ((step == 0) & later)).all():
        return np.arange(len(episode))
    if clock is None:
        return _sorted(episode)
    if clock.dtype == np.int64:
        low, span = int(clock.min()), int(clock.max()) - int(clock.min()) + 1
        if (int(episode.max()) + 1) * span < 2**62:
            return _sorted(episode * span + (clock - low))
    return np.lexsort((clock, episode))


def _sorted(keys: Integers) -> Integers:
    """Order of whole numbers, by 16 bits at a time: NumPy sorts these by counting, and keeps ties in order."""
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, int(keys.max()).bit_length(), 16):
        order = order[np.argsort(((keys >> shift) & 0xFFFF).astype(np.uint16)[order], kind="stable")]
    return order


def _positions(episode: Integers) -> Integers:
    """Number of each row within its episode, from 0, for rows that stand together by episode."""
    begins = np.flatnonzero(np.append(True, episode[1:] != episode[:-1]))
    return np.arange(len(episode)) - np.repeat(begins, np.diff(np.append(begins, len(episode))))


def _back(order: Integers, values: Any) -> Any:
    """Values of sorted rows in the order in which the rows stand."""
    back = np.empty_like(values)
    back[order] = values
    return back


def _counted(reasons: Mapping[str, Booleans]) -> dict[str, int]:
    return {why: int(which.sum()) for why, which in reasons.items() if which.any()}
