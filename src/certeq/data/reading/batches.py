"""Make a batch of a table whose columns have their roles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, Rng, first
from certeq.base.display import several
from certeq.base.errors import InputError, nearest
from certeq.data.batch import ENDED, Batch, Carried
from certeq.data.guided import above
from certeq.data.reading.blanks import PADDING, carry, unpad, ways
from certeq.data.reading.choosing import ENOUGH, Chosen, choose_cells
from certeq.data.reading.endings import check_kept
from certeq.data.reading.frames import Table
from certeq.data.reading.leaks import leaking, result, words
from certeq.data.reading.roles import Roles
from certeq.data.reading.rows import LAST, Links, dated, explicit, long
from certeq.data.recipes import MAX_STATES, Bins, Labels, OrMissing, Recipe, fit_encode
from certeq.data.recipes.columns import Column, is_whole
from certeq.data.recipes.fitting import LIKELY_LABELS, place, refuse_commas, refuse_mixed, say_bins, would_cut
from certeq.data.request import ENDS, TIMES, Request

MOST_GROUPS = 20  # that anybody compares
FLOAT_ACTIONS = 20  # more different fractions than this are amounts, not actions
BLANK = "blank row"
ASKED_ROWS = 1_000_000  # above, it is not asked whether people acted on more than the states hold
HUGE = 10**9  # states, where their number is only looked at
UNRELATED = -2  # what a recipe does not know, where rows are related to another batch


def make_batch(
    table: Table,
    roles: Roles,
    request: Request,
    *,
    rng: Rng = 0,
) -> Batch:
    """Link the rows of a table, turn its columns into states and actions, and put all in a batch."""
    max_states = MAX_STATES if request.max_states is None else request.max_states
    size, how = request.by_column("bins")
    _known(how, roles)
    columns, rows, links = _link(table, roles, request)
    absent = {name for name, way in ways(request, roles).items() if way != "error"}
    reward = None
    if roles.reward is not None:
        reward = finite_amounts(columns[roles.reward], "reward", roles.reward, links.row, rows)
        reward = 0.0 - reward if roles.minimize else reward
        if request.ends is None:
            check_kept(columns[roles.reward].numbers(), links.row, links.dropped, roles.reward)
    actions = {name: columns[name].take(links.row) for name in roles.action}
    for name, column in actions.items():
        if name not in how:
            refuse_mixed(name, column, rows[links.row])
            _countable(name, column)
    action_recipe, action = fit_encode(
        actions,
        {name: how.get(name, "labels") for name in actions},
        max_states=max_states,
        rng=rng,
        rows=rows[links.row],
    )
    group, group_names, moved = _groups(columns, roles, links, how, rows)
    leaks = _leaks(columns, roles, links, how)
    if leaks:
        roles = roles.without(leaks)
        links = replace(links, states={name: links.states[name] for name in roles.state})
    told = {name: way for name, way in how.items() if name in links.states}
    chosen = None if size is not None or reward is None else _chosen(links, told, action, reward, roles, absent)
    candidates = links.states
    if chosen is not None:
        links = replace(links, states={name: links.states[name] for name in links.states if name not in chosen.unused})
    _no_infinity(links, rows)
    ways_of = told if chosen is None else chosen.ways | told
    recipe, state, next_state = _states(links, ways_of, size, max_states, absent, rng)
    recipe, action_recipe = (each.measured(_units(request, columns)) for each in (recipe, action_recipe))
    asked = () if reward is None else result(links.states, recipe.column_names, links.now, reward)
    blank = table.n_rows - len(rows) - links.dropped.get(PADDING, 0)
    return Batch(
        state,
        action,
        next_state,
        n_states=recipe.n_states,
        n_actions=action_recipe.n_states,
        reward=reward,
        episode=links.episode,
        time=links.time,
        group=group,
        group_names=group_names,
        by=roles.by,
        state_names=recipe.names,
        action_names=action_recipe.names,
        recipe=recipe,
        action_recipe=action_recipe,
        dropped=({BLANK: blank} if blank else {}) | dict(links.dropped),
        goal=roles.goal,
        ends=links.ends,
        decisions=(*links.decisions, *words(leaks), *asked),
        notes=(
            *table.notes,
            *roles.notes,
            *links.notes,
            *moved,
            *(() if chosen is None else chosen.lines()),
            *_told(recipe, links.states, told),
        ),
        ranges=dict(_ranges(recipe, links)),
        carried=_carried(recipe, request, roles),
        n_rows_read=table.n_rows,
        fingerprint=table.fingerprint,
        chosen=chosen,
        **_durations(columns, roles, request, links, rows),
        beside={name: finite_amounts(columns[name], "beside", name, links.row, rows) for name in roles.beside},
        within=dict(_within(candidates, recipe, links.now, state)),
        history=dict(_history(candidates, links)),
    )


def _no_infinity(links: Links, rows: Integers) -> None:
    """Refuse states that are infinite: they would make all cells of their column anew."""
    for name, column in links.states.items():
        if column.kind == "float" and (infinite := np.isinf(column.numbers())).any():
            entry = int(first(infinite)[0])
            raise InputError(
                f"{place(int(links.entry_row[entry]), rows)}: {name!r} is {column.show(entry)}, but must be a finite "
                "number where it is part of the state. Correct it, or leave it blank and say how to read blanks with "
                "missing= (--missing)."
            )


def _groups(
    columns: Mapping[str, Column], roles: Roles, links: Links, how: Mapping[str, Any], rows: Integers
) -> tuple[Integers | None, tuple[str, ...], tuple[str, ...]]:
    """The group of each transition, what groups are called, and what to know: an episode has that of its first row."""
    if roles.by is None:
        return None, (), ()
    column, name = columns[roles.by].take(links.row), roles.by
    different = len(column.distinct.labels)
    if name not in how and different > MOST_GROUPS:
        raise InputError(
            f"Column {name!r} has {different:,} different values; that is more groups than the {MOST_GROUPS} that can "
            f"be compared. Cut it: {say_bins(name, 'quantile:3')}, or name another column with by= (--by).",
            remedy={"bins": {name: "quantile:3"}},
        )
    recipe, code = fit_encode({name: column}, {name: how.get(name, "labels")}, absent=(name,), rows=rows[links.row])
    if links.episode is None:
        return code, recipe.names, ()
    order = np.lexsort((np.zeros_like(code) if links.time is None else links.time, links.episode))
    _, start, member = np.unique(links.episode[order], return_index=True, return_inverse=True)
    group = np.empty_like(code)
    group[order] = code[order][start[member]]
    moved = len(np.unique(links.episode[group != code]))
    told = f"{name!r} changes within {several(moved, 'episode')}; an episode belongs to the group of its first row."
    return group, recipe.names, (told,) if moved else ()


def relate(
    table: Table, roles: Roles, recipe: Recipe, action_recipe: Recipe, request: Request
) -> tuple[Integers, Integers, Integers]:
    """Link the rows of a table and number them by recipes that were fitted before.

    Gives state, action and next state; a state, action or next state that the recipes do not know is UNRELATED.
    """
    columns, _, links = _link(table, roles, request)
    codes = recipe.encode(links.states)
    codes = np.where(codes < 0, UNRELATED, codes)
    action = action_recipe.encode({name: columns[name].take(links.row) for name in roles.action})
    following = np.where(links.then == ENDED, ENDED, codes[links.then])
    return codes[links.now], np.where(action < 0, UNRELATED, action), following


def _carried(recipe: Recipe, request: Request, roles: Roles) -> Carried | None:
    """Columns of the states in which last values were taken for missing ones; None where that was not asked for."""
    default, single = request.by_column("missing")
    names = tuple(name for name in recipe.column_names if single.get(name, default) == "last")
    marked = roles.episode is None and (roles.done or roles.truncated) is not None
    return Carried(names, roles.episode, roles.time, marked) if names else None


def _link(table: Table, roles: Roles, request: Request) -> tuple[dict[str, Column], Integers, Links]:
    """Columns of the rows that are not blank, the numbers of those rows, and what follows what."""
    with ThreadPoolExecutor() as pool:  # polars and NumPy work outside Python's lock
        read = dict(zip(roles.columns, pool.map(table.__getitem__, roles.columns), strict=True))
    columns, every = _filled(read, table.n_rows)
    columns, rows, decisions = unpad(columns, roles, every, request.by_column("bins")[1])
    how = ways(request, roles)
    columns, notes = carry(columns, roles, rows, how)
    ends = request.ends if request.ends in ENDS else None
    if roles.next_state:
        links = explicit(columns, roles, rows, ends, [name for name, way in how.items() if way != "error"])
    else:
        gaps = request.gaps if request.duration is None or request.gaps == "cut" else "counted"
        links = long(columns, roles, rows, gaps, ends)
    if not len(links.row):
        raise _nothing(links, roles, table)
    padding = {PADDING: len(every) - len(rows)} if len(rows) < len(every) else {}
    return (
        columns,
        rows,
        replace(
            links,
            dropped=padding | dict(links.dropped),
            decisions=(*decisions, *links.decisions),
            notes=(*links.notes, *notes),
        ),
    )


def _durations(
    columns: Mapping[str, Column], roles: Roles, request: Request, links: Links, rows: Integers
) -> dict[str, Any]:
    """How long each step took, and in which unit, where that was asked for."""
    if request.duration is None:
        return {}
    if request.duration == TIMES:
        name, lasted = _between_rows(roles, links)
        unit = "day" if dated(columns[name]) else f"unit of {name!r}"
    else:
        assert roles.duration is not None
        name, lasted = roles.duration, columns[roles.duration].numbers()[links.row]
        unit = f"unit of {name!r}"
    bad = (~np.isfinite(lasted) | (lasted <= 0)) & ~((links.then == ENDED) & np.isnan(lasted))
    if bad.any():
        (i,) = first(bad)
        row = int(links.row[i])
        told = f"{lasted[i]:g}" if request.duration == TIMES else columns[name].show(row)
        raise InputError(
            f"{place(row, rows)}: the duration {name!r} is {told}, but must be a number above 0: the time until the "
            "next decision. It may be missing only where the episode ended. Correct it, or leave duration= out "
            "(--duration)."
        )
    return {"duration": np.nan_to_num(lasted), "unit": unit}


def _between_rows(roles: Roles, links: Links) -> tuple[str, Floats]:
    """The time column, and the time from each row to the next one of its episode."""
    if roles.time is not None and links.elapsed is not None:
        return roles.time, links.elapsed
    lacks = "rows hold their own next state. Name the column of durations (--duration COLUMN)"
    if roles.time is None:
        lacks = "there is no time column. Name it with time= (--time)"
    raise InputError(f"duration='times' (--duration times) takes the time between rows, and here {lacks}.")


def _leaks(columns: Mapping[str, Column], roles: Roles, links: Links, how: Mapping[str, Any]) -> dict[str, str]:
    """Columns of the state that nobody named, and that are known only afterwards."""
    if not roles.rest or links.group is None or links.last is None:
        return {}
    reward = None if roles.reward is None else columns[roles.reward].numbers()
    return leaking(columns, [name for name in roles.state if name not in how], links.group, links.last, reward)


def _chosen(
    links: Links, told: Mapping[str, Any], action: Integers, reward: Floats, roles: Roles, absent: Collection[str]
) -> Chosen | None:
    """Choose how finely to cut the columns about which nothing was said; None where there are none, or too few rows."""
    alone = len(links.states) == 1
    cut = {name for name, c in links.states.items() if name not in told and would_cut(name, c, alone)}
    if not cut or len(links.now) < ENOUGH:
        return None
    if any(c.missing.any() and name not in absent for name, c in links.states.items()):
        return None  # which is refused soon
    labels = {name for name in links.states if roles.rest and name not in told and name not in cut}
    fixed = np.zeros(len(links.entry_row), dtype=np.int64)
    rest = {name: c for name, c in links.states.items() if name not in cut | labels}
    if rest:
        fixed = fit_encode(rest, {name: told[name] for name in rest if name in told}, max_states=HUGE, absent=absent)[1]
    return choose_cells(cut, labels, fixed, links, action, reward)


def _units(request: Request, columns: Mapping[str, Column]) -> Mapping[str, str]:
    units: Mapping[str, str] = request.unit or {}
    for name in units:
        if name not in columns:
            there = f"{nearest(name, columns)} There are: {', '.join(columns)}."
            raise InputError(f"There is no column {name!r} for a unit (unit=, --unit) to belong to.{there}")
    return units


def _states(
    links: Links, how: Mapping[str, Any], bins: int | None, max_states: int, absent: Collection[str], rng: Rng
) -> tuple[Recipe, Integers, Integers]:
    """Fit the recipe to the entries that are a state or a next state; number the states of both."""
    goes_on = links.then != ENDED
    used = np.zeros(len(links.entry_row), dtype=bool)
    used[links.now] = True
    used[links.then[goes_on]] = True
    everything = bool(used.all())
    states = links.states if everything else {name: column.take(used) for name, column in links.states.items()}
    rows = links.entry_row if everything else links.entry_row[used]
    recipe, codes = fit_encode(states, how, bins=bins, max_states=max_states, absent=absent, rng=rng, rows=rows)
    if not everything:
        number = np.cumsum(used) - 1
        return recipe, codes[number[links.now]], np.where(goes_on, codes[number[links.then]], ENDED)
    return (
        recipe,
        codes[links.now],
        np.where(goes_on, codes[links.then], ENDED) if not goes_on.all() else codes[links.then],
    )


def _told(recipe: Recipe, states: Mapping[str, Column], told: Mapping[str, Any]) -> Iterator[str]:
    """Say which whole numbers were cut unasked, since they might be labels, and which many were not."""
    for axis in recipe.axes:
        name = axis.columns[0]
        if name in told or not is_whole(states[name]):
            continue
        if isinstance(axis.present if isinstance(axis, OrMissing) else axis, Bins):
            size = several(axis.size, "bin")
            yield f"I cut {name!r} at its quantiles into {size}; say {say_bins(name, 'labels')} to keep every value."
        elif axis.size > LIKELY_LABELS:
            yield (
                f"I took each of the {axis.size:,} whole numbers in {name!r} for a state of its own; say "
                f"{say_bins(name, 'quantile:4')} if they are amounts."
            )


def _ranges(recipe: Recipe, links: Links) -> Iterator[tuple[str, tuple[float, float]]]:
    """The least and the largest number in each column of the state that is cut; a label is known or not."""
    axes = [axis.present if isinstance(axis, OrMissing) else axis for axis in recipe.axes]
    for name in (name for axis in axes if not isinstance(axis, Labels) for name in axis.columns):
        numbers = links.states[name].numbers()
        finite = numbers[np.isfinite(numbers)]
        if len(finite):
            yield name, (float(finite.min()), float(finite.max()))


def _within(
    candidates: Mapping[str, Column], recipe: Recipe, now: Integers, state: Integers
) -> Iterator[tuple[str, Integers]]:
    """Where rows lie within their state, by each column that might be part of it: its label, or above the mean rank.

    A column whose every value is a state of its own has nothing more to tell.
    """
    if len(now) > ASKED_ROWS:
        return
    axes = [axis.present if isinstance(axis, OrMissing) else axis for axis in recipe.axes]
    whole = {name for axis in axes if isinstance(axis, Labels) for name in axis.columns}
    for name in (name for name in candidates if name not in whole):
        column = candidates[name]
        if column.kind in ("integer", "float", "date"):
            known, place = ~column.missing[now], np.full(len(now), 2)
            ranks = np.unique(column.numbers()[now][known], return_inverse=True)[1]
            place[known] = above(ranks, state[known])
            yield name, place
        elif len(column.distinct.labels) <= MOST_GROUPS:
            yield name, np.where(column.missing[now], -1, column.distinct.codes[now])


def _history(candidates: Mapping[str, Column], links: Links) -> Iterator[tuple[str, Integers]]:
    """Ranks of the values that numbers have in the row before and in the row after, where there is one.

    A column that says the same in all rows of an episode has no history.
    """
    goes_on = links.then != ENDED
    if len(links.now) > ASKED_ROWS or not goes_on.any():
        return
    before = np.full(int(max(links.now.max(), links.then.max())) + 1, -1)
    before[links.then[goes_on]] = links.now[goes_on]
    sides = np.stack([before[links.now], np.where(goes_on, links.then, -1)], axis=1)
    for name, column in candidates.items():
        if column.kind in ("integer", "float", "date"):
            ranks = np.unique(column.numbers(), return_inverse=True)[1]
            found = np.where((sides >= 0) & ~column.missing[sides], ranks[sides], -1)
            if ((found[:, 0] >= 0) & (found[:, 0] != ranks[links.now])).any():
                yield name, found


def _filled(columns: Mapping[str, Column], n: int) -> tuple[dict[str, Column], Integers]:
    """Leave out rows in which nothing is written, such as empty lines at the end of a file."""
    blank: Booleans = np.logical_and.reduce([column.missing for column in columns.values()])
    rows = np.flatnonzero(~blank)
    if not len(rows):
        raise InputError("Every row of the table is blank. There is nothing to learn from.")
    if len(rows) == n:
        return dict(columns), rows
    return {name: column.take(rows) for name, column in columns.items()}, rows


def finite_amounts(column: Column, role: str, name: str, used: Integers, rows: Integers) -> Floats:
    """Rewards, or what is added up beside them, of the rows that are used: finite numbers."""
    numbers = column.numbers()
    reward = numbers[used]
    bad = ~np.isfinite(reward)
    if bad.any():
        refuse_commas(name, column, rows, labels=False)
    if bad.any() and not np.isfinite(numbers).any() and not column.missing.all():
        row = int(first(~column.missing)[0])
        raise InputError(
            f"{'The reward' if role == 'reward' else 'Column'} {name!r} holds no number: {place(row, rows)} says "
            f"{column.show(row)}. Name the right column with {role}= (--{role})"
            f"{', or that of a cost with cost= (--cost)' * (role == 'reward')}."
        )
    if bad.any():
        row = int(used[first(bad)[0]])
        told = column.show(row)
        others = int(bad.sum()) - 1
        more = f" (and in {several(others, 'further row')})" if others else ""
        remedy = "Fill it in" if told == "missing" else "Correct it"
        if role == "reward" and column.missing[used].mean() > 0.5:
            remedy = "Fill in 0 where nothing was earned"
        raise InputError(
            f"{place(row, rows)}: {'the reward ' * (role == 'reward')}{name!r} is {told}{more}, but must be a finite "
            f"number. {remedy}, or name another column with {role}= (--{role})."
        )
    return np.asarray(reward)


def _countable(name: str, column: Column) -> None:
    """Refuse amounts as actions: each different amount would be an action of its own."""
    if column.kind == "float" and not is_whole(column) and len(column.distinct.labels) > FLOAT_ACTIONS:
        raise InputError(
            f"The action {name!r} has {len(column.distinct.labels):,} different values, so it is an amount and not a "
            f"choice. Bin it: {say_bins(name, 'quantile:4')}.",
            remedy={"bins": {name: "quantile:4"}},
        )


def _known(how: Mapping[str, Any], roles: Roles) -> None:
    names: Sequence[str] = (*roles.state, *roles.action, *([] if roles.by is None else [roles.by]))
    for name in how:
        if name not in names:
            there = f"{nearest(name, names)} There are: {', '.join(names)}."
            raise InputError(f"There is no state or action column {name!r} to bin.{there}")


def _nothing(links: Links, roles: Roles, table: Table) -> InputError:
    why = "; ".join(f"{reason}: {number:,}" for reason, number in links.dropped.items())
    hint = "A transition needs an action and a next state."
    if roles.episode is not None and links.dropped.get(LAST, 0) == table.n_rows:
        hint = f"Each row is an episode of its own: is {roles.episode!r} the episode? Say episode= "
        hint += "(--episode); if all of them are whole episodes of one decision, say ends='always' (--ends always)."
    return InputError(f"No transition is left of {table.n_rows:,} row{'s' * (table.n_rows > 1)} ({why}). {hint}")
