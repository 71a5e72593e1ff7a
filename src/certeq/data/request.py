"""Request: everything a user says about the rows to be read. Which column is what, and how columns become states.

What a reader needs is one field here: its option, its help and its line in the reference follow. Nothing heavy is
imported, so that ``--help`` is quick.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from certeq.base.errors import InputError, unknown
from certeq.base.fields import check_all, said, told

COLUMNS, STATES = "Your columns", "States"
ROLES = (
    *("state", "action", "reward", "next_state", "episode", "time", "done", "truncated", "ends"),
    *("by", "beside", "duration"),
)
LAYOUTS = ("auto", "explicit", "long")
GAPS = ("error", "allow", "cut")
ENDS = ("always", "never")
TIMES = "times"  # stands for the time between rows, where the duration of a step is said
MISSING = ("error", "category", "last")
OTHERS = "*"  # stands for all columns that are not named, where something is said column by column


def _listed(value: Any) -> str:
    """One word, or several with commas."""
    return str(value) if isinstance(value, str) or not isinstance(value, Iterable) else ",".join(map(str, value))


def _how(way: Any) -> str:
    """How a column is cut, as text."""
    if isinstance(way, int):
        return f"quantile:{way}"
    return way if isinstance(way, str) else f"edges:{_listed(way)}"


def _ways(given: Any) -> Any:
    """Check what is to be done about missing values."""
    for way in given.values() if isinstance(given, Mapping) else (given,):
        if way is not None and way not in MISSING:
            raise unknown("way to treat missing values", way, MISSING)
    return given


@dataclass(frozen=True)
class Request:
    """Which column is what, and how columns become states.

    A column that is not named is found by common spellings, which ``Batch.notes`` tells; False says that there is none.
    """

    state: Any = said(None, "State column(s), comma-separated.", panel=COLUMNS, kind="columns")
    action: Any = said(None, "Action column(s), comma-separated.", panel=COLUMNS, kind="columns")
    reward: Any = said(None, "Reward column.", panel=COLUMNS, kind="column")
    cost: Any = said(None, "Cost column, in place of a reward: less of it is better.", panel=COLUMNS, kind="column")
    minimize: bool | None = said(
        None,
        "Whether less of the reward is better; by default, more is. A reward called cost, death or the like needs one "
        "of them.",
        panel=COLUMNS,
        option="minimize/--maximize",
    )
    beside: Any = said(
        None,
        "Column(s) to add up beside the reward, such as a dose or a cost; comma-separated. A limit adds its own.",
        panel=COLUMNS,
        kind="columns",
    )
    next_state: Any = said(None, "Next-state column(s), comma-separated.", panel=COLUMNS, kind="columns")
    episode: Any = said(None, "Episode (patient, user) column.", panel=COLUMNS, kind="column")
    time: Any = said(None, "Time column; rows of an episode are sorted by it.", panel=COLUMNS, kind="column")
    duration: Any = said(
        None,
        "How long it took until the next decision: a column, or times for the time between rows, in days where it is "
        "a date. The discount is then for each unit of it, and gaps are no longer refused.",
        panel=COLUMNS,
        kind="column",
        metavar="[times|COLUMN]",
    )
    done: Any = said(
        None,
        "Column that marks rows after which the episode ended for good; or COLUMN=death,discharge, the values that "
        "mark them.",
        panel=COLUMNS,
        kind="column",
    )
    truncated: Any = said(
        None,
        "Column that marks rows after which watching stopped; or COLUMN=lost,moved, the values that mark them.",
        panel=COLUMNS,
        kind="column",
    )
    ends: Any = said(
        None,
        "Whether an episode without such marks is over at its last row: always, never (it was cut off), or a column "
        "that says so there. By default the data decide, and the report says first how they did.",
        panel=COLUMNS,
        kind="column",
        metavar="[always|never|COLUMN]",
    )
    by: Any = said(
        None,
        "Column of groups to tell apart in the report, such as sex or clinic: how well the advice is supported, how "
        "often it was followed and what it is worth in each. It is not part of the state unless --state names it.",
        panel=COLUMNS,
        kind="column",
    )
    layout: str = said(
        "auto",
        "The next state is in the row (explicit) or in the next row of the episode (long).",
        panel=COLUMNS,
        choices=lambda: LAYOUTS,
        what="layout",
    )
    gaps: str = said(
        "error",
        "What to do about a step in time that is not the usual one: refuse it, allow it, or cut the episode there.",
        panel=COLUMNS,
        choices=lambda: GAPS,
        what="way to treat gaps",
    )
    bins: Any = said(
        None,
        "How columns become states: a number of quantile bins for all, and for single columns COLUMN=quantile:4, "
        "=edges:1,5, =kmeans:9 or =labels.",
        panel=STATES,
        kind="bins",
    )
    missing: Any = said(
        None,
        "What to do where a value of the state is missing: refuse the rows (error), make missing a cell of its own "
        "(category), or take the last value of the episode; for all columns, or COLUMN=last.",
        panel=STATES,
        kind="missing",
        metavar="[error|category|last]",
        check=lambda name, given: _ways(given),
    )
    ordered: Any = said(
        None, "The labels of a state column in their order, such as stage=mild,severe.", panel=STATES, kind="orders"
    )
    unordered: Any = said(
        None,
        "State column(s) whose numbers have no order; comma-separated.",
        panel=STATES,
        kind="columns",
    )
    unit: Any = said(
        None,
        "Unit of a column of numbers, shown after them: sbp=mmHg. Several are allowed.",
        panel=STATES,
        kind="units",
    )
    max_states: int | None = said(
        None,
        "Refuse more states than this: by default 50,000, or 1,000,000 where rows are counted.",
        panel=STATES,
    )

    def __post_init__(self) -> None:
        check_all(self)
        if self.cost is not None and (self.reward is not None or self.minimize is not None):
            other = "reward" if self.reward is not None else "minimize"
            raise InputError(f"cost= says both what counts and which way; leave {other}= out (--cost, --{other}).")

    @classmethod
    def of(cls, given: Request | None = None, **said: Any) -> Request:
        """A request from keywords, or another one changed by them."""
        return cls(**said) if given is None else replace(given, **said)

    @property
    def roles(self) -> dict[str, Any]:
        """Which column is what, as far as it was said."""
        roles = {role: getattr(self, role) for role in ROLES} | ({"ends": None} if self.ends in ENDS else {})
        roles |= {"duration": None} if self.duration == TIMES else {}
        return roles if self.cost is None else roles | {"reward": self.cost}

    @property
    def smaller(self) -> bool | None:
        """Whether less of the reward is better; None where nothing was said."""
        return True if self.cost is not None else self.minimize

    def by_column(self, name: str) -> tuple[Any, dict[str, Any]]:
        """What a field says of all columns, None where nothing; and what it says of single ones."""
        given = getattr(self, name)
        single = dict(given) if isinstance(given, Mapping) else {OTHERS: given}
        return single.pop(OTHERS, None), single

    def options(self) -> list[str]:
        """What was said, as one writes it on a command line."""
        words = []
        for name, value in self.changes().items():
            option = f"--{name.replace('_', '-')}"
            if name == "minimize":
                words.append("--minimize" if value else "--maximize")
            elif name in ("bins", "missing"):
                default, single = self.by_column(name)
                ways = [*([] if default is None else [str(default)]), *(f"{k}={_how(v)}" for k, v in single.items())]
                words += [f"{option} {shlex.quote(way)}" for way in ways]
            elif isinstance(value, Mapping):
                words += [f"{option} {shlex.quote(f'{k}={_listed(v)}')}" for k, v in value.items()]
            else:
                words.append(f"{option} {'none' if value is False else shlex.quote(_listed(value))}")
        return words

    def changes(self) -> dict[str, Any]:
        """What was said, without what is as it would be unsaid."""
        plain = {name: each.default for name, (each, _) in told(type(self)).items()}
        return {name: getattr(self, name) for name in plain if getattr(self, name) != plain[name]}
