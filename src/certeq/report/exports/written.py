"""Rules, written down: a policy as other programs read it, how columns become cells and what is advised in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

import certeq
from certeq.data.recipes.axes import Axis, Bins, Labels, OrMissing
from certeq.learning.policy import Policy


class ByLabel(Struct, tag_field="by", tag="label", kw_only=True):
    """A column whose value is one of these labels; its code is the label's place in the list, from 0."""

    column: str
    kind: Literal["text", "integer", "boolean", "date", "float"]
    labels: list[str | int | float | bool]
    missing: int | None  # the code of a missing value; null where it has none

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [self.column]


class ByCell(Struct, tag_field="by", tag="cell", kw_only=True):
    """A column of numbers that is cut; the code says how many of these edges are no larger than the number."""

    column: str
    edges: list[float]
    missing: int | None

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [self.column]


class ByCenter(Struct, tag_field="by", tag="center", kw_only=True):
    """Columns of numbers together; the code is the place of the nearest center, each column divided by its scale."""

    columns: list[str]
    centers: list[list[float]]
    scale: list[float]
    missing: int | None


Coding: TypeAlias = ByLabel | ByCell | ByCenter


class Rule(Struct, kw_only=True):
    """What is advised in one combination of codes, at one decision."""

    cell: list[int]  # a code for each entry of `codes`
    decision: int | None  # how many were made before; null where the advice does not depend on it
    state: str
    words: list[str]  # for the state, one for each entry of `codes`
    advice: str | None  # in words; null for none
    action: str | None  # that the plan takes; where `set` is not empty only the best guess
    set: list[str]  # the actions that the data do not tell apart, where they are several
    chance: float | None  # that the action is the best one; null where that is not known
    visits: int | None  # how often the action was tried


class Written(Struct, kw_only=True):
    """A policy for other programs. A row whose combination of codes is not listed has no advice."""

    format: Literal["certeq-rules"] = "certeq-rules"
    version: Literal[1] = 1
    certeq: str = certeq.__version__
    actions: list[str]
    horizon: int | None  # how many decisions are planned for; null where the advice does not depend on it
    codes: list[Coding]
    ranges: dict[str, tuple[float, float]]  # the least and the largest number that the data had
    rules: list[Rule]
    settings: dict[str, Any]
    data: dict[str, Any]


def of(policy: Policy) -> Written:
    """The rules of a policy, decision by decision and state by state."""
    cells, names = policy.recipe.cells.tolist(), policy.state_names
    return Written(
        actions=list(policy.action_names),
        horizon=policy.horizon,
        codes=[_coding(axis, () if policy.carried is None else policy.carried.columns) for axis in policy.recipe.axes],
        ranges=policy.ranges,
        rules=[
            Rule(
                cell=cells[piece.state],
                decision=None if policy.horizon is None else piece.decision,
                state=names[piece.state],
                words=list(piece.words),
                advice=piece.told,
                action=piece.advised,
                set=list(piece.among),
                chance=piece.chance,
                visits=piece.visits,
            )
            for piece in policy.pieces()
        ],
        settings=dict(policy.settings),
        data=dict(policy.data),
    )


def _coding(axis: Axis, carried: Sequence[str]) -> Coding:
    """How an axis is coded; a column whose last value is taken has no code for a missing one: a row does not tell."""
    inner, missing = (axis.present, axis.present.size) if isinstance(axis, OrMissing) else (axis, None)
    missing = None if any(name in carried for name in axis.columns) else missing
    if isinstance(inner, Labels):
        return ByLabel(column=inner.column, kind=inner.kind, labels=list(inner.labels), missing=missing)
    if isinstance(inner, Bins):
        return ByCell(column=inner.column, edges=list(inner.edges), missing=missing)
    centers = [list(center) for center in inner.centers]
    return ByCenter(columns=list(inner.clusters), centers=centers, scale=list(inner.scale), missing=missing)


def plain(rules: Written) -> dict[str, Any]:
    """The rules as plain values, as they stand in JSON."""
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(rules))
    return told


def write(rules: Written) -> str:
    """As JSON."""
    return msgspec.json.format(msgspec.json.encode(rules), indent=2).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of `write`."""
    return msgspec.json.schema(Written)
