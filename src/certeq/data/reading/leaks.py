"""Columns that tell afterwards what nobody knew before: an outcome, a total, a length of stay. They are no state.

Only columns that nobody named are judged: the state is then made of what is left, and among that is often how it ended.
A column of the state that all but tells the reward of its own row is kept, since rewards may be made of what is
measured; but somebody is asked whether it was known before the action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.data.reading.roles import words_in
from certeq.data.recipes.columns import Column

FEW = 5  # episodes: fewer do not tell a habit from chance
MANY, FINE = 100, 200  # rows, below which nobody asks what a column tells of their rewards; and its cells, then
ROWS_PER_VALUE = 5  # episodes that a value has on average, before what it tells about them is believed
TELLS = (0.9, 0.98)  # shares of the variance of lengths, and of sums of rewards, that no one could know beforehand
FATES = """outcome outcomes died death dead deceased expired mort mortality survived survival alive discharge discharged
    disposition fate result label target los readmission readmitted relapse relapsed churn churned converted success
    failure failed final end total"""


def leaking(
    columns: Mapping[str, Column], names: Sequence[str], group: Integers, last: Booleans, reward: Floats | None
) -> dict[str, str]:
    """Which of some columns are known only afterwards, and why one thinks so, by name.

    ``group`` is the episode of each row, 0, 1, ..., and ``last`` says which row is the last one of its episode.
    """
    if last.sum() < FEW or last.all():
        return {}
    totals: dict[str, Floats] = {"the length": np.bincount(group).astype(np.float64)}
    if reward is not None and np.isfinite(reward).all():
        totals["the sum of the rewards"] = np.bincount(group, reward).astype(np.float64)
    found = {name: _why(name, columns[name], group, last, totals) for name in names}
    return {name: why for name, why in found.items() if why}


def _why(name: str, column: Column, group: Integers, last: Booleans, totals: Mapping[str, Floats]) -> str:
    there, codes = ~column.missing, column.distinct.codes
    if not there.any():
        return ""
    if not there[~last].any():
        return "it is filled in only on last rows"
    before, at_end = codes[there & ~last], codes[there & last]
    if (before == before[0]).all() and (at_end != before[0]).sum() > 1:
        return "it says the same in all rows but last ones"
    if not _constant(codes, group):
        return ""
    numbers = column.numbers()
    for (what, total), share in zip(totals.items(), TELLS, strict=False):
        if np.ptp(total) > 0 and np.allclose(numbers, total[group], rtol=1e-6, atol=0):
            return f"it is {what} of its episode"
        if _told(codes[last], total[group[last]]) >= share:
            return f"it says the same throughout each episode and all but tells {what}"
    if {*words_in(name)} & {*FATES.split()}:
        return "its name is that of an outcome, and it says the same throughout each episode"
    return ""


def result(columns: Mapping[str, Column], names: Sequence[str], now: Integers, reward: Floats) -> tuple[str, ...]:
    """The question whether a column was known before the action, where it all but tells the reward of its own row."""
    for name in names:
        codes = columns[name].distinct.codes[now]
        if columns[name].kind in ("integer", "float", "date") and len(now) >= MANY:
            ranks, often = np.unique(columns[name].numbers()[now], return_inverse=True, return_counts=True)[1:]
            cells = min(FINE, len(now) // ROWS_PER_VALUE)
            codes = ((np.cumsum(often) - often) * cells // len(now))[ranks]
        share = _told(codes, reward) if len(now) >= MANY else 0.0
        if share >= TELLS[1]:
            return (
                f"{name!r} all but tells the reward of its own row ({share:.0%} of it). If it is known only after the "
                "action, the advice is worthless: leave it out of the state (--state).",
            )
    return ()


def _told(codes: Integers, total: Floats) -> float:
    """Share of the variance of something about episodes that a column explains, for each value beyond the first."""
    own = np.unique(codes, return_inverse=True)[1]
    often = np.bincount(own)
    if len(often) > len(own) / ROWS_PER_VALUE or np.ptp(total) == 0:
        return 0.0
    total = total / np.abs(total).max()  # squares of the largest numbers are none
    rest = total - (np.bincount(own, total) / often)[own]
    left = float(rest @ rest) / max(len(own) - len(often), 1)
    return 1 - left / float(total.var(ddof=1))


def _constant(codes: Integers, group: Integers) -> bool:
    """Whether a column says one thing in each episode, and not the same in all."""
    one = np.empty(int(group.max()) + 1, dtype=np.int64)
    one[group] = codes
    return bool((one[group] == codes).all() and (one != one[0]).any())


def words(leaks: Mapping[str, str]) -> tuple[str, ...]:
    """What was left out and why, and what to say if it should not be."""
    if not leaks:
        return ()
    listed = "; ".join(f"{name!r}, since {why}" for name, why in leaks.items())
    name = next(iter(leaks))
    return (
        f"Left out of the state, as known only afterward: {listed}. To use it, name all columns of the state "
        f"(--state); if it tells which episodes were over, say so (--done {name}=VALUE or --ends {name}).",
    )
