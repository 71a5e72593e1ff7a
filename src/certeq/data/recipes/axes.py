"""Ways to turn columns into a code 0, 1, ...: labels, bins, clusters, or missing. Each maps new rows the same way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType

from certeq.base.arrays import Floats, Integers
from certeq.base.errors import InputError
from certeq.base.forms import Finite
from certeq.base.limits import check_lengths
from certeq.data.recipes.columns import Column, Kind, Label, as_text, clipped, label_text, shown, text_dates, text_flags

UNKNOWN = -1  # the code of a value that has none
NOWHERE = -1  # the place of a code that has none
TYPES: dict[Kind, set[type]]
TYPES = {"text": {str}, "date": {str}, "integer": {int}, "boolean": {bool}, "float": {int, float}}
SCATTERED = 4  # times as many places as whole numbers: beyond, their order is all that counts


def unit_text(unit: str | UnsetType) -> str:
    """What is written after a number."""
    return f" {unit}" if unit else ""


@dataclass(frozen=True)
class Labels:
    """One column whose different values are the codes, in order."""

    column: str
    kind: Kind
    labels: tuple[Label, ...]  # sorted; dates as ISO text
    unit: str | UnsetType = UNSET  # of numbers, written after them

    def __post_init__(self) -> None:
        if self.kind == "integer" and float in set(map(type, self.labels)):  # other programs write 3.0 for 3
            whole = (int(x) if isinstance(x, float) and x.is_integer() else x for x in self.labels)
            object.__setattr__(self, "labels", tuple(whole))
        if not set(map(type, self.labels)) <= TYPES[self.kind]:
            odd = next(label for label in self.labels if type(label) not in TYPES[self.kind])
            raise InputError(f"Column {self.column!r} needs labels of kind {self.kind}; got {odd!r}.")
        check_lengths(f"Column {clipped(self.column)!r}", self.labels)
        if not 0 < len(set(self.labels)) == len(self.labels):
            raise InputError(f"Column {self.column!r} needs labels, all of them different.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.column,)

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.labels)

    def codes(self, table: Mapping[str, Column]) -> Integers:
        """Code of each row, UNKNOWN for a label that was never seen."""
        found = _of_kind(table[self.column], self.kind).distinct
        place = self._place
        return np.array([*(place.get(label, UNKNOWN) for label in found.labels), UNKNOWN], dtype=np.int64)[found.codes]

    @cached_property
    def _place(self) -> dict[Label, int]:
        return {label: i for i, label in enumerate(self.labels)}  # 3, 3.0 and, for a flag, True and 1 are one key

    def words(self, alone: bool) -> list[str]:
        """Name of each code; alone, a label needs no column beside it. Beside others, long ones are cut."""
        texts = [label_text(x) + unit_text(self.unit) for x in self.labels]
        return texts if alone else [f"{clipped(self.column)}={text}" for text in shown(texts)]

    def why(self, table: Mapping[str, Column], row: int) -> str:
        """Why a row has no code."""
        known = [clipped(label_text(label)) for label in self.labels[:8]]
        some = ", ".join(known) + (f", ... ({self.size} in all)" if self.size > 8 else "")
        value = table[self.column].show(row)
        return f"{clipped(self.column)!r} is {value}, which never occurred in the data (known: {some})"

    @property
    def places(self) -> Integers | None:
        """Place of each code on a line; None for text and flags, which have no order.

        Whole numbers lie where they are, unless they are scattered too widely; other numbers and dates in their order.
        """
        if self.kind in ("text", "boolean"):
            return None
        if self.kind == "integer":
            numbers = [int(label) for label in self.labels]
            low = min(numbers)
            if max(numbers) - low <= SCATTERED * self.size:
                return np.array([number - low for number in numbers], dtype=np.int64)
        return np.arange(self.size)


@dataclass(frozen=True)
class Bins:
    """One column of numbers cut at its edges: k edges make k + 1 cells, a value on an edge belongs above it."""

    column: str
    edges: tuple[Finite, ...]  # increasing
    unit: str | UnsetType = UNSET  # written after the numbers

    def __post_init__(self) -> None:
        for lower, upper in itertools.pairwise(self.edges):
            if lower >= upper:
                got = f"{label_text(lower)}, then {label_text(upper)}"
                raise InputError(f"The edges of column {self.column!r} must increase; got {got}.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.column,)

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.edges) + 1

    def codes(self, table: Mapping[str, Column]) -> Integers:
        """Code of each row; values beyond the edges fall in the end cells."""
        values = table[self.column].numbers()
        if len(self.edges) <= 16:  # then counting the edges below is quicker than looking for the place between them
            cells = np.zeros(len(values), dtype=np.int64)
            for edge in self.edges:
                cells += values >= edge
        else:
            cells = np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)
        nowhere = np.isnan(values)
        return np.where(nowhere, UNKNOWN, cells) if nowhere.any() else cells

    def words(self, alone: bool) -> list[str]:
        """Name of each code, an interval."""
        at = shortest(self.edges)
        if not at:
            return ["any value" if alone else f"{clipped(self.column)} any value"]
        unit = unit_text(self.unit)
        inner = [f"{a} to {b}{unit}" for a, b in itertools.pairwise(at)]
        cells = [f"below {at[0]}{unit}", *inner, f"{at[-1]}{unit} or more"]
        return cells if alone else [f"{clipped(self.column)} {cell}" for cell in cells]

    def why(self, table: Mapping[str, Column], row: int) -> str:
        """Why a row has no code."""
        return f"{clipped(self.column)!r} is {table[self.column].show(row)}, which is not a number"

    @property
    def places(self) -> Integers | None:
        """Place of each code on a line: cells lie in the order of their edges."""
        return np.arange(self.size)


@dataclass(frozen=True)
class Clusters:
    """Several columns of numbers together: the code is the nearest center, each column measured in its own scale."""

    clusters: tuple[str, ...]  # the columns
    centers: tuple[tuple[Finite, ...], ...]  # (K, columns), in the units of the columns
    scale: tuple[Finite, ...]  # (columns,), one standard deviation

    def __post_init__(self) -> None:
        sizes = {len(self.columns), len(self.scale), *map(len, self.centers)}
        if not self.columns or not self.centers or len(sizes) > 1 or min(self.scale) <= 0:
            raise InputError("Clusters of columns need a positive 'scale' for each column, and 'centers' of that size.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return self.clusters

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.centers)

    def codes(self, table: Mapping[str, Column]) -> Integers:
        """Code of each row, UNKNOWN where a number is missing or infinite."""
        points = np.stack([table[name].numbers() for name in self.columns], axis=1)
        known = np.isfinite(points).all(axis=1)
        codes = np.full(len(points), UNKNOWN, dtype=np.int64)
        codes[known] = nearest_center(points[known] / np.array(self.scale), np.array(self.centers) / self.scale)
        return codes

    @property
    def places(self) -> Integers | None:
        """Clusters have no order: None."""
        return None

    def words(self, alone: bool) -> list[str]:
        """Name of each code: where the middle of the cluster lies."""
        middles = [
            ", ".join(f"{clipped(name)} {x:.3g}" for name, x in zip(self.columns, center, strict=True))
            for center in self.centers
        ]
        return [f"cluster {i + 1} ({middle})" for i, middle in enumerate(middles)]

    def why(self, table: Mapping[str, Column], row: int) -> str:
        """Why a row has no code."""
        bad = [name for name in self.columns if not np.isfinite(table[name].alone(row).numbers()[0])]
        return f"{clipped(bad[0])!r} is {table[bad[0]].show(row)}, which is not a finite number"


Present: TypeAlias = Labels | Bins | Clusters


@dataclass(frozen=True)
class OrMissing:
    """Another axis, with one more code for rows in which a value is missing: the last one."""

    present: Present

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return self.present.columns

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.present.size + 1

    def codes(self, table: Mapping[str, Column]) -> Integers:
        """Code of each row, that of missing values where one is."""
        missing = np.logical_or.reduce([table[name].missing for name in self.columns])
        return np.where(missing, self.present.size, self.present.codes(table))

    def words(self, alone: bool) -> list[str]:
        """Name of each code."""
        return [*self.present.words(alone), "missing" if alone else f"{clipped(' + '.join(self.columns))} missing"]

    def why(self, table: Mapping[str, Column], row: int) -> str:
        """Why a row has no code."""
        return self.present.why(table, row)

    @property
    def places(self) -> Integers | None:
        """Place of each code on a line; NOWHERE for that of missing values."""
        line = self.present.places
        return None if line is None else np.append(line, NOWHERE)


Axis: TypeAlias = Present | OrMissing
FORMS: dict[str, type[Present]] = {"labels": Labels, "edges": Bins, "clusters": Clusters}  # by a field that only it has
PRESENT = "present"  # the field of `OrMissing`, which has one of these in it


def nearest_center(points: Floats, centers: Floats) -> Integers:
    """Number of the nearest center of each point; the first one of several equally near."""
    from scipy.spatial.distance import cdist

    chunk = max(1, 4_000_000 // len(centers))
    parts = [cdist(points[i : i + chunk], centers, "sqeuclidean").argmin(axis=1) for i in range(0, len(points), chunk)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def shortest(edges: Sequence[float]) -> list[str]:
    """Edges with as few digits as tell them apart with one digit to spare, such as 3.2 and 7.9, or 40 and 55."""
    if not edges:
        return []
    gaps = np.diff(edges) if len(edges) > 1 else np.abs(np.array(edges))
    gap = float(gaps.min()) or 1.0
    largest = max(abs(edge) for edge in edges)
    if gap < 1e-6 or largest >= 1e9:
        return _significant(edges)
    for decimals in range(max(0, 1 + math.ceil(-math.log10(gap))), 17):
        words = [_trim(f"{edge:.{decimals}f}") for edge in edges]
        if len(set(words)) == len(words):
            return words
    return [repr(edge) for edge in edges]


def _significant(edges: Sequence[float]) -> list[str]:
    for digits in range(2, 17):
        words = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(words)) == len(words):
            return words
    return [repr(edge) for edge in edges]


def _trim(word: str) -> str:
    short = word.rstrip("0").rstrip(".") if "." in word else word
    return "0" if short == "-0" else short


def _of_kind(column: Column, kind: Kind) -> Column:
    """Read a column as the kind that the labels have, so that '3' in a text file is the state 3."""
    if column.kind == kind:
        return column
    if kind == "text":
        return as_text(column)
    if column.kind != "text":
        return column  # numbers of all kinds compare with one another; a date is none of them
    if kind == "date":
        dates = np.append(text_dates(column.labels), np.datetime64("NaT", "us"))[column.values]
        return Column("date", dates, np.isnat(dates))
    if kind == "boolean":
        flags = np.array([np.nan if f is None else float(f) for f in text_flags(column.labels)] + [np.nan])
        values = flags[column.values]
        return Column("float", values, np.isnan(values))
    numbers = column.numbers()
    return Column("float", numbers, np.isnan(numbers))
