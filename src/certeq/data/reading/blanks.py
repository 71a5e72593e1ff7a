"""What is not there: rows that only fill an episode up, and values that are missing. Nothing is made up silently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Integers
from certeq.base.display import several
from certeq.base.errors import InputError, nearest
from certeq.data.batch import Carried
from certeq.data.reading.endings import flag
from certeq.data.reading.roles import MARKS, Roles
from certeq.data.reading.rows import Sequence, sequence
from certeq.data.recipes import column
from certeq.data.recipes.columns import Column, of_one_length
from certeq.data.recipes.fitting import say_bins
from certeq.data.request import Request

PADDING = "padding after the end of an episode"
NO_ACTION = -1  # what fills the column of the action up


def unpad(
    columns: Mapping[str, Column], roles: Roles, rows: Integers, how: Mapping[str, Any]
) -> tuple[dict[str, Column], Integers, tuple[str, ...]]:
    """Leave out rows that stand after the end of their episodes only to make all of one length.

    Their action is -1, which is no action elsewhere; nothing is earned there, or always the same. One such row to an
    episode only tells where the episode ended up, and becomes a row without an action. So does the first of several
    where it is marked as the end.
    """
    kept, names = dict(columns), [name for name in roles.action if name not in how]
    if roles.episode is None or not names:
        return kept, rows, ()
    idle = _idle([columns[name] for name in names])
    if idle is None or (roles.reward is not None and not _same(columns[roles.reward].take(idle))):
        return kept, rows, ()
    order, episode, _, _ = sequence(columns, roles, rows)
    follows = np.append(episode[1:] == episode[:-1], False)
    goes_on = idle[order] & follows & np.append(~idle[order][1:], False)
    if goes_on.any():
        return kept, rows, ()
    begins = idle[order] & ~np.append(False, idle[order][:-1] & follows[:-1])
    first = np.zeros(len(rows), dtype=bool)
    first[order] = begins
    ends = np.logical_or.reduce([flag(columns, roles, role, rows) for role in MARKS])
    stays = ~idle | (first if idle.sum() == first.sum() else first & ends)
    for name in names:
        kept[name] = columns[name].without(idle)
    said = f"If {NO_ACTION} is an action, say {say_bins(names[0], 'labels')}."
    gone, blank = int((~stays).sum()), int((idle & stays).sum())
    words = [
        f"{several(gone, 'row')} after the end, with the action {NO_ACTION}: left out as padding." * (gone > 0),
        f"The action {NO_ACTION} stands only on last rows, {blank:,} of them: taken for no action." * (blank > 0),
    ]
    told = (" ".join([*filter(None, words), said]),)
    return {name: column.take(stays) for name, column in kept.items()}, rows[stays], told


def _idle(actions: list[Column]) -> Booleans | None:
    """Rows whose actions are all -1, where all others are 0, 1, ...; None where there are no such rows."""
    numbers = np.stack([action.numbers() for action in actions])
    idle = np.asarray((numbers == NO_ACTION).all(axis=0))
    rest = numbers[:, ~idle]
    rest = rest[:, ~np.logical_and.reduce([action.missing for action in actions])[~idle]]
    return idle if idle.sum() > 1 and rest.size and (rest >= 0).all() else None


def _same(values: Column) -> bool:
    return bool(values.missing.all() or (not values.missing.any() and np.ptp(values.numbers()) == 0))


def ways(request: Request, roles: Roles) -> dict[str, str]:
    """What to do about values that are missing, for each column of the state."""
    default, single = request.by_column("missing")
    for name in single:
        if name not in roles.state:
            there = f"{nearest(name, roles.state)} There are: {', '.join(roles.state)}."
            raise InputError(f"There is no state column {name!r} whose values could be missing.{there}")
    found = {name: single.get(name, default or "error") for name in roles.state}
    carried = [name for name, way in found.items() if way == "last"]
    if carried and roles.next_state:
        raise InputError(
            f"The last value of {carried[0]!r} can be carried forward only where the next state is in the next row, "
            "and here each row has its own. Say missing='category' (--missing category), or layout='long' (--layout "
            "long)."
        )
    return found


def carry(
    columns: Mapping[str, Column], roles: Roles, rows: Integers, how: Mapping[str, str]
) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Take the last value of the episode where one is missing and that was asked for; say what was done about each."""
    filled, notes = dict(columns), []
    following = dict(zip(roles.state, roles.next_state, strict=False))
    found: Sequence | None = None
    for name, way in how.items():
        gone = int(columns[name].missing.sum())
        also = int(columns[following[name]].missing.sum()) if name in following else 0
        if way == "error" or not gone + also:
            continue
        if way == "last":
            found = found or sequence(columns, roles, rows)
            filled[name] = columns[name].take(_last_known(columns[name].missing, found))
        left = int(filled[name].missing.sum())
        done = [
            f"the last value of the episode was taken in {gone - left:,}" * (way == "last"),
            f"“missing” is a cell of its own in {left:,}" * (left > 0),
        ]
        where = several(gone, "row") + (f" (as the next state in {also:,})" if also else "")
        notes.append(f"{name!r} is missing in {where}: {' and '.join(filter(None, done))}.")
    return filled, tuple(notes)


def carry_forward(table: Mapping[str, Any], how: Carried) -> tuple[dict[str, Any], Booleans]:
    """New rows with the last value of the episode where one is missing, and rows that lack one nobody can tell.

    Nobody can where the episode or the time is blank, nor once two rows of an episode have the same time, nor at all
    where one of the times cannot be read.
    """
    by = [name for name in (how.episode, how.time) if name is not None]
    columns = of_one_length({name: column(table[name], name) for name in (*how.columns, *by)})
    n = len(columns[how.columns[0]])
    lacking = np.logical_or.reduce([columns[name].missing for name in how.columns])
    rows = np.flatnonzero(~np.logical_or.reduce([np.zeros(n, dtype=bool), *(columns[name].missing for name in by)]))
    placed = {name: values.take(rows) for name, values in columns.items()}
    try:
        found = sequence(placed, Roles(how.columns, (), (), episode=how.episode, time=how.time), rows)
    except InputError:
        return {**table}, lacking
    filled = {}
    for name in how.columns:
        source = np.arange(n)
        source[rows] = rows[_last_known(placed[name].missing, found)]
        filled[name] = columns[name].take(source)
    known = np.zeros(n, dtype=bool)
    known[rows[found.order]] = ~_after_tie(found)
    return {**table, **filled}, lacking & ~known


def _start(found: Sequence) -> Integers:
    """Where the episode of each row in order begins."""
    begins = np.append(True, found.episode[1:] != found.episode[:-1])[: len(found.episode)]
    return np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))


def _after_tie(found: Sequence) -> Booleans:
    """Rows in order from the first on that has the time of another one in its episode."""
    n = len(found.order)
    if found.clock is None or n < 2:
        return np.zeros(n, dtype=bool)
    same = (found.episode[1:] == found.episode[:-1]) & (found.clock[1:] == found.clock[:-1])
    tied = np.append(same, False) | np.append(False, same)
    return np.asarray(np.maximum.accumulate(np.where(tied, np.arange(n), -1)) >= _start(found))


def _last_known(missing: Booleans, found: Sequence) -> Integers:
    """For each row the row of its episode that has the last value; itself where there is none."""
    place = np.arange(len(missing))
    last = np.maximum.accumulate(np.where(missing[found.order], -1, place))
    source = np.empty_like(place)
    source[found.order] = found.order[np.where(last >= _start(found), last, place)]
    return source
