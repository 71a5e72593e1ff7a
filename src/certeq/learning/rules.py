"""Rules: everything a user decides about estimating, regularizing and planning.

A rule is one field: with its default, its check and its help beside it. Its option on the command line, its place among
the settings that a report shows, and its line in the reference follow from that. Nothing heavy is imported until a rule
is checked, so that ``--help`` is quick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from certeq.base import defaults
from certeq.base.errors import InputError, nearest
from certeq.base.fields import check_all, said

PANEL = "Planning"
PAID = ("start", "end", "evenly")


def _regularizers() -> Iterable[str]:
    from certeq.regularizers import REGULARIZERS

    return REGULARIZERS


def _conventions() -> Iterable[str]:
    from certeq.model.unvisited import CONVENTIONS

    return CONVENTIONS


def _pools() -> Iterable[str]:
    from certeq.model.rewards import POOLS

    return POOLS


def _discount(name: str, value: Any) -> float:
    from certeq.base.arrays import within

    gamma = within(name, value, 0, 1)
    if gamma.ndim:
        raise InputError(f"learn takes one discount; got an array of shape {gamma.shape}.")
    return float(gamma)


def _share(name: str, value: Any) -> float:
    from certeq.base.arrays import within

    return float(within(name, value, 0, 1))


def _at_least_one(name: str, value: Any) -> int | None:
    from certeq.base.arrays import whole

    return None if value is None else whole(name, value, 1)


class Limit(NamedTuple):
    """The most that a column may add up to, expected from the first decision on and discounted as rewards are."""

    column: str
    most: float

    def __str__(self) -> str:
        return f"{self.column}<={self.most:.12g}"

    @classmethod
    def read(cls, text: Any) -> Limit:
        """Read COLUMN<=NUMBER."""
        column, _, most = str(text).replace("≤", "<=").rpartition("<=")
        try:
            amount = float(most)
        except ValueError:
            amount = math.nan
        if not column.strip() or not math.isfinite(amount):
            raise InputError(
                f"A limit is written COLUMN<=NUMBER, such as dose<=12; got {text!r}. For a least amount, limit a "
                "column of minus it."
            )
        return cls(column.strip(), amount)


def _limits(name: str, value: Any) -> tuple[str, ...]:
    texts = () if value is None else (value,) if isinstance(value, str) else tuple(value)
    limits = [Limit.read(each) for each in texts]
    columns = [each.column for each in limits]
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(f"There are two limits of {column!r}; give the smaller one.")
    return tuple(map(str, limits))


@dataclass(frozen=True)
class Rules:
    """Everything a user decides about estimating, regularizing and planning, checked at birth."""

    discount: float = said(
        defaults.DISCOUNT,
        "Worth of a reward one step later; 1 if episodes surely end.",
        panel=PANEL,
        check=_discount,
    )
    regularizer: str = said(
        defaults.REGULARIZER,
        "How the estimate is regularized.",
        panel=PANEL,
        choices=_regularizers,
        what="regularizer",
        metavar="NAME",
    )
    settings: Mapping[str, Any] = said(
        {},
        "A setting of the regularizer.",
        panel=PANEL,
        option="setting",
        kind="settings",
        metavar="NAME=VALUE",
    )
    unvisited: str = said(
        "exclude",
        "What stands in for pairs with too few visits. By default they are never advised.",
        panel=PANEL,
        choices=_conventions,
        what="convention for unvisited pairs",
    )
    min_visits: int = said(1, "Visits below which a pair counts as unvisited.", panel=PANEL, check=_at_least_one)
    min_share: float = said(
        defaults.MIN_SHARE,
        "Advise an action only if people were at least this fraction as likely to take it as the state's usual one "
        "(half as likely where habits differ from state to state), or if its own rows, or those of all states "
        "together, show that it is better; 0 for the plain plan.",
        panel=PANEL,
        check=_share,
    )
    min_chance: float = said(
        defaults.MIN_CHANCE,
        "Advise one action alone only if it is the best with at least this chance; otherwise all that may well be "
        "best. 0 to always advise one.",
        panel=PANEL,
        check=_share,
    )
    risk: float | None = said(
        None,
        "The chance you accept of doing worse than was done: --min-chance is raised until the advice stays within it.",
        panel=PANEL,
        check=lambda name, value: None if value is None else _share(name, value),
    )
    reward_by: str = said(
        "pair",
        "Estimate rewards by pair or by next state.",
        panel=PANEL,
        choices=lambda: ("pair", "next_state"),
        what="way to estimate rewards",
    )
    reward_pool: str = said(
        "auto",
        "Let noisy rewards of pairs borrow from their state, from everything, or from neighbors; auto: whatever "
        "predicts best.",
        panel=PANEL,
        choices=_pools,
        what="way of pooling rewards",
    )
    horizon: int | None = said(
        None, "Plan for this many decisions instead of forever.", panel=PANEL, check=_at_least_one
    )

    paid: str = said(
        "start",
        "When the reward of a step counts, where steps have a duration: at its start, at its end, or evenly over it.",
        panel=PANEL,
        choices=lambda: PAID,
        what="time at which rewards are paid",
    )
    average: bool = said(
        False,
        "Plan for the most reward per decision in the long run, without a discount. Where an episode ends, the next "
        "one begins.",
        panel=PANEL,
    )
    limit: tuple[str, ...] = said(
        (),
        "Keep the expected total of a column within this, discounted as rewards are: 'dose<=12'. Several are allowed.",
        panel=PANEL,
        check=_limits,
        kind="limits",
        metavar="COLUMN<=NUMBER",
    )

    def __post_init__(self) -> None:
        from certeq.regularizers import check_settings

        check_all(self)
        check_settings(self.regularizer, self.settings)
        if self.average and (self.horizon is not None or self.limit):
            other = "limit" if self.limit else "horizon"
            raise InputError(f"An average is of decisions without end: leave {other}= out (--{other}), or average=.")
        if self.limit and self.risk is not None:
            raise InputError(
                "With a limit one action is advised in every state, since another one might break it, and risk= lets "
                "people go on as they did in some: leave one of them out (--limit, --risk)."
            )
        if self.average and self.regularizer == "discount":
            raise InputError("An average has no discount to lower: choose another regularizer (--regularizer).")
        if self.reward_by == "next_state" and self.reward_pool not in ("none", "auto"):
            raise InputError("reward_pool pools rewards by pair; with reward_by='next_state' leave it at 'none'.")

    @classmethod
    def of(cls, given: Rules | None = None, **more: Any) -> Rules:
        """Rules from keywords; whatever is no rule is a setting of the regularizer."""
        named = {each.name for each in fields(cls)}
        start: dict[str, Any] = {} if given is None else {name: getattr(given, name) for name in named}
        loose = {name: value for name, value in more.items() if name not in named}
        _check_loose(loose, named, more.get("regularizer", start.get("regularizer", defaults.REGULARIZER)))
        chosen = start | {name: value for name, value in more.items() if name in named}
        return cls(**(chosen | {"settings": dict(chosen.get("settings") or {}) | loose}))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits, read."""
        return tuple(map(Limit.read, self.limit))

    @property
    def _quiet(self) -> Iterator[str]:
        """Rules that need not be told: rare ones that were not used, and the discount of an average."""
        yield from (name for name, usual in (("paid", "start"), ("average", False)) if getattr(self, name) == usual)
        yield from ("discount",) if self.average else ()

    def to_json(self, *, known_rewards: bool = False, pooled: str = "") -> dict[str, Any]:
        """Every rule as plain values, as policy files and reports hold them; ``pooled`` says what auto came to."""
        shown: dict[str, Any] = {}
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            if name == "settings":
                shown |= {setting: _plain(each) for setting, each in value.items()}
            elif name == "reward_by":
                shown["reward"] = "known" if known_rewards else f"by {value}, pooled: {pooled or self.reward_pool}"
            elif name == "limit":
                shown |= {name: ", ".join(value)} if value else {}
            elif name not in ("reward_pool", *self._quiet):
                shown[name] = _plain(value)
        return shown


def _check_loose(loose: Iterable[str], named: Iterable[str], regularizer: str) -> None:
    """Raise if a keyword is neither a rule nor a setting of the regularizer."""
    from certeq.regularizers import settings_of

    settings = settings_of(regularizer)
    for name in loose:
        if name not in settings:
            takes = f"Its settings are: {', '.join(settings)}." if settings else "It has none."
            hint = nearest(name, (*settings, *named))
            raise InputError(f"There is no rule {name!r}, and {regularizer!r} has no setting {name!r}.{hint} {takes}")


def _plain(value: Any) -> Any:
    """Settings as JSON knows them."""
    import numpy as np

    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return np.asarray(value).tolist() if not isinstance(value, str | int | float | bool | None) else value
