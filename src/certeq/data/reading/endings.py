"""Last rows: what the end of an episode's rows means. The episode is over there, or only the watching stopped.

The last row of an episode has an action and a reward, but no row after it. If the episode is over, that reward is the
outcome, and it counts; if it was cut off, nobody knows what came of the action. Marks say which (``done``,
``truncated``, ``ends``). Without any, the rows are looked at, and what was decided is told before all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, first
from certeq.base.display import several
from certeq.base.errors import InputError, nearest
from certeq.data.reading.roles import Roles
from certeq.data.recipes.columns import Column, label_text, text_flags
from certeq.data.recipes.fitting import place

MOST = 0.5  # of the rewards' variance: if more than this would be lost with the rows left out, they are not left out
FEW = 5  # rows that are left out, from which on their rewards are compared with the others
WAYS = (
    "by a column (--done COLUMN), by what a column says (--done outcome=death,discharge), or for all of them "
    "(--ends always)"
)


class Marks(NamedTuple):
    """What is known about the rows of episodes, in order of episode and time."""

    done: Booleans  # (n,): the episode is over after this row
    cut: Booleans  # (n,): watching stopped after it
    acts: Booleans  # (n,): it has an action
    follows: Booleans  # (n,): the next row belongs to the same episode
    told: Booleans  # (n,): the column of ``ends`` says yes
    reward: Floats | None  # (n,), NaN where there is none

    @property
    def last(self) -> Booleans:
        """Last rows of episodes about which no mark says anything."""
        return np.asarray(~self.follows & ~self.done & ~self.cut)


def settle(marks: Marks, roles: Roles, ends: str | None) -> tuple[Booleans, str | None, tuple[str, ...]]:
    """Which rows end their episode; how the last rows were read; and what was decided unasked, in words."""
    last, over = marks.last, marks.done
    if roles.ends is not None:
        return over | (last & marks.told), ends, ()
    if ends is not None:
        return (over | last if ends == "always" else over), ends, ()
    unknown = last & marks.acts
    if not unknown.any() or not marks.follows.any():  # nothing to decide, or nothing that would be left to learn from
        return over, None, ()
    marked = roles.done is not None or roles.truncated is not None
    share = 0.0 if marks.reward is None else lost(marks.reward, ~unknown)
    number = int(unknown.sum())
    if share > MOST and not marked:
        return over | last, "always", (_over(marks, unknown, share, str(roles.reward)),)
    return over, "never", () if marked or number == 1 else (_cut(marks, number),)


def lost(reward: Floats, kept: Booleans) -> float:
    """How much smaller the variance of the rewards is when only some rows are kept, as a share of all of it.

    A few rows that are left out prove nothing, unless all that remain are the same.
    """
    there = np.isfinite(reward)
    reward = reward / (np.abs(reward[there]).max(initial=0.0) or 1.0)  # else the squares of large ones overflow
    spread, remains = (float(np.var(part)) if len(part) else 0.0 for part in (reward[there], reward[there & kept]))
    return share_lost(spread, remains, int((there & ~kept).sum()))


def share_lost(spread: float, remains: float, out: int) -> float:
    """The same from the variance of all rewards, of those that remain, and how many are left out."""
    return 1 - remains / spread if spread > 0 and (out >= FEW or (out > 1 and remains == 0)) else 0.0


def _over(marks: Marks, unknown: Booleans, share: float, name: str) -> str:
    assert marks.reward is not None
    rest = marks.reward[~unknown & np.isfinite(marks.reward)]
    words = (
        f"Each episode is taken to be over at its last row, where its reward counts: {share:.0%} of the variation of "
        f"{name!r} stands there."
    )
    like = int((marks.reward[unknown] == rest[0]).sum()) if len(rest) and np.ptp(rest) == 0 else 0
    if like:
        words += (
            f" In {like:,} of {several(int(unknown.sum()), 'episode')} it is {rest[0]:g} there, as everywhere else."
        )
    return f"{words} If some were only cut off, mark those that were over (--done); if all were, say --ends never."


def _cut(marks: Marks, number: int) -> str:
    lengths = np.diff(np.flatnonzero(np.append(True, ~marks.follows)))
    alike = len(lengths) > 1 and (lengths == lengths[0]).all()
    why = f"all have {several(int(lengths[0]), 'row')}" if alike else "nothing says that they ended"
    if number == 1:
        taken = "The only episode is taken to be cut off at its last row, since nothing says that it ended; that row is"
        return f"{taken} left out. If it was over there, say so, {WAYS}."
    return (
        f"All {number:,} episodes are taken to be cut off at their last rows, since {why}; those rows are left out. If "
        f"episodes were over there, say so, {WAYS}."
    )


def check_kept(reward: Floats, kept: Integers, dropped: Mapping[str, int], name: str) -> float:
    """Refuse to leave out the rows that hold most of what the rewards tell."""
    there = np.zeros(len(reward), dtype=bool)
    there[kept] = True
    share = lost(reward, there)
    if share > MOST:
        raise InputError(
            f"{most_lost(share, dropped, name)} Say which episodes were over at their last row, {WAYS}. If they were "
            "only cut off there, and advice without those rewards is wanted, say ends='never' (--ends never).",
            remedy={"ends": "always"},
        )
    return share


def most_lost(share: float, dropped: Mapping[str, int], name: str) -> str:
    """That most of what the rewards tell would be left out, in words."""
    why = "; ".join(f"{reason}: {number:,}" for reason, number in dropped.items())
    return (
        f"{share:.0%} of the variation of the reward {name!r} stands in rows that make no transition ({why}), and "
        "would be lost."
    )


def flag(columns: Mapping[str, Column], roles: Roles, role: str, rows: Integers) -> Booleans:
    """Rows that a column marks: with yes, or with one of the values that were said; blank is no."""
    name = getattr(roles, role)
    if name is None:
        return np.zeros(len(rows), dtype=bool)
    column = columns[name]
    if roles.values.get(role):
        return _valued(column, name, role, roles.values[role])
    if column.kind == "boolean":
        return np.asarray(column.values & ~column.missing)
    said = text_flags(column.labels) if column.kind == "text" else ()
    numbers = column.numbers()
    if column.kind == "text":
        numbers = np.array([np.nan if flag is None else float(flag) for flag in said] + [np.nan])[column.values]
    bad = ~np.isin(numbers, (0, 1)) & ~column.missing
    if bad.any():
        (row,) = first(bad)
        word = column.show(row).strip("'\"")
        raise InputError(
            f"{place(row, rows)}: {name!r} is {column.show(row)}, but the column that marks an end must say yes or no "
            f"(true or false, 1 or 0). Say which values mark it, {role}={{{name!r}: [{word!r}]}} (--{role} "
            f"{name}={word}); name another column with {role}=; or say {role}=False (--{role} none)."
        )
    return np.asarray(numbers == 1)


def _valued(column: Column, name: str, role: str, values: tuple[str, ...]) -> Booleans:
    """Rows in which a column says one of some words, in upper or lower case."""
    found = column.distinct
    words = [label_text(label).strip().casefold() for label in found.labels]
    for value in values:
        if value.casefold() not in words:
            there = [label_text(label) for label in found.labels]
            listed = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
            raise InputError(f"{name!r} never says {value!r} (--{role}).{nearest(value, there)} It says: {listed}.")
    wanted = {value.casefold() for value in values}
    return np.append(np.array([word in wanted for word in words], dtype=bool), False)[found.codes]
