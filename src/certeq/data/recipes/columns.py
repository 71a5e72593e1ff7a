"""One column of a table, whatever container it came in: numbers as numbers, text as codes into its distinct labels.

Text is kept as a dictionary because everything asked of it (is it really a number, which labels are there, was this
label known before) is a question about the few distinct labels and not about the many rows.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.errors import InputError

Kind: TypeAlias = Literal["text", "integer", "boolean", "date", "float"]
Label: TypeAlias = str | int | float | bool
NUMERIC: tuple[Kind, ...] = ("boolean", "integer", "float")

TABLE_LIMIT = 1 << 22  # a range of whole numbers up to this long is looked up in a table, above it by bisection
ABSENT = ("NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A")  # what text files write where a value is missing
SHOWN = 100  # characters of a label, or of a column's name, in the name of a state and in messages
TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class Column:
    """A column of n values of one kind; text values are positions in ``labels``, sorted and all different."""

    kind: Kind
    values: NDArray[Any]  # (n,): int64, float64, bool, datetime64[us]; for text int64, -1 where missing
    missing: Booleans  # (n,)
    labels: tuple[str, ...] = ()  # of text only

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self.kind == "text":
            return np.asarray(np.array([*self.labels, None], dtype=object)[self.values])
        return np.asarray(self.numbers() if self.kind == "float" or self.missing.any() else self.values, dtype=dtype)

    def take(self, rows: Integers | Booleans) -> Column:
        """The column of some of the rows."""
        return Column(self.kind, self.values[rows], self.missing[rows], self.labels)

    def alone(self, row: int) -> Column:
        """The column of one row, which knows no other labels: a table may have many rows to explain."""
        label = () if self.kind != "text" or self.missing[row] else (str(self.label(row)),)
        values = np.zeros(1, dtype=np.int64) if label else self.values[row : row + 1]
        return Column(self.kind, values, self.missing[row : row + 1], label)

    def without(self, rows: Booleans) -> Column:
        """The column with some of its rows blank."""
        if not rows.any():
            return self
        values = np.where(rows, -1, self.values) if self.kind == "text" else self.values
        return Column(self.kind, values, self.missing | rows, self.labels)

    def show(self, row: int) -> str:
        """One value as a message shows it, text in quotes."""
        if self.missing[row]:
            return "missing"
        word = label_text(self.label(row))
        return repr(word if len(word) <= 80 else f"{word[:77]}...") if self.kind == "text" else word

    def label(self, row: int) -> Label:
        """One value that is not missing, as it stands in JSON."""
        value = self.values[row]
        if self.kind == "text":
            return self.labels[int(value)]
        return iso(np.atleast_1d(value))[0] if self.kind == "date" else cast(Label, value.item())

    @cached_property
    def distinct(self) -> Distinct:
        """The different values and which row has which; floats that are all whole count as integers."""
        return _distinct(self)

    def numbers(self) -> Floats:
        """The values as numbers, NaN where there is none: missing, a date, or text that is not a number."""
        if self.kind == "text":
            return np.asarray(np.append(text_numbers(self.labels), np.nan)[self.values])
        if self.kind == "date":
            return np.full(len(self), np.nan)
        values = self.values.astype(np.float64)
        return np.where(self.missing, np.nan, values) if self.missing.any() else values


@dataclass(frozen=True)
class Distinct:
    """The different values of a column, in order, and for each row which one it is: -1 where missing."""

    kind: Kind
    labels: tuple[Label, ...]
    codes: Integers


def of_one_length(columns: dict[str, Column]) -> dict[str, Column]:
    """The columns, if each has as many values as any other."""
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name}: {len(values):,}" for name, values in columns.items())
        raise InputError(f"Columns must have one length, a value for each row; got {lengths}.")
    return columns


def _distinct(column: Column) -> Distinct:
    kind, values, present = column.kind, column.values, ~column.missing
    if kind == "text":
        used = np.zeros(len(column.labels) + 1, dtype=bool)  # the last one is that of missing values
        used[values] = True
        if used[:-1].all():
            return Distinct(kind, column.labels, values)
        codes = np.append(np.cumsum(used[:-1]) - 1, -1)[values]
        return Distinct(kind, tuple(label for label, u in zip(column.labels, used, strict=False) if u), codes)
    if kind == "float" and is_whole(column):
        kind, values = "integer", np.where(present, values, 0).astype(np.int64)
    keys = values.view(np.int64) if kind == "date" else values.astype(np.int64) if kind != "float" else values
    different, codes = _unique(keys, present)
    return Distinct(kind, tuple(_labels(kind, different)), codes)


def compact(keys: Integers, limit: int) -> tuple[Integers, Integers]:
    """Sorted different keys, all in 0 .. limit - 1, and for each row which one it is."""
    if limit > max(TABLE_LIMIT, 4 * len(keys)):
        different, codes = np.unique(keys, return_inverse=True)
        return different, codes.astype(np.int64, copy=False)
    seen = np.zeros(limit, dtype=bool)
    seen[keys] = True
    different = np.flatnonzero(seen)
    place = np.empty(limit, dtype=np.int64)
    place[different] = np.arange(len(different))
    return different, place[keys]


def pool(one: Column, other: Column) -> Column:
    """Put one column below another, such as next states below states; the kinds are reconciled."""
    one, other = _reconcile(one, other.kind), _reconcile(other, one.kind)
    if one.kind != other.kind:
        widen = as_float if {one.kind, other.kind} <= {*NUMERIC} else as_text  # too large a number is then no label
        one, other = widen(one), widen(other)
    missing = np.concatenate([one.missing, other.missing])
    if one.kind != "text":
        return Column(one.kind, np.concatenate([one.values, other.values]), missing)
    labels = tuple(sorted({*one.labels, *other.labels}))
    place = {label: i for i, label in enumerate(labels)}
    parts = [np.array([*(place[label] for label in c.labels), -1], dtype=np.int64)[c.values] for c in (one, other)]
    return Column("text", np.concatenate(parts), missing, labels)


def _reconcile(mine: Column, kind: Kind) -> Column:
    """Bring a column nearer to another kind where nothing is lost by it."""
    if mine.kind == kind:
        return mine
    if mine.missing.all():  # a column of blanks is of any kind
        return blank(kind, len(mine))
    if mine.kind == "text" and kind in NUMERIC:  # numbers written as text, perhaps beside words that are not used
        numbers = mine.numbers()
        if not np.isnan(numbers[~mine.missing]).any():
            return Column("float", numbers, mine.missing)
    return mine


def as_float(column: Column) -> Column:
    """The same numbers as floats."""
    return Column("float", column.values.astype(np.float64), column.missing)


def blank(kind: Kind, n: int) -> Column:
    """A column of n missing values."""
    types: dict[str, Any] = {"boolean": bool, "float": np.float64, "date": "datetime64[us]"}
    values = np.full(n, -1, dtype=np.int64) if kind == "text" else np.zeros(n, dtype=types.get(kind, np.int64))
    return Column(kind, values, np.ones(n, dtype=bool))


def as_text(column: Column) -> Column:
    """The same values as text."""
    if column.kind == "text":
        return column
    found = column.distinct
    words = [label_text(label) for label in found.labels]
    order = np.argsort(np.array(words, dtype=object), kind="stable") if words else np.zeros(0, dtype=np.int64)
    place = np.append(np.argsort(order), -1).astype(np.int64)
    return Column("text", place[found.codes], column.missing, tuple(words[i] for i in order))


def is_whole(column: Column) -> bool:
    """Whether all values that are there are whole numbers."""
    if column.kind != "float":
        return column.kind in ("integer", "boolean")
    values = column.values[~column.missing]
    few = values[:1000]
    return bool(
        (few == np.round(few)).all() and (values == np.round(values)).all() and np.abs(values).max(initial=0) < 2**53
    )


def clipped(text: str, room: int = SHOWN) -> str:
    """As much of a text as a name or a message has room for: names are many, and texts may be long."""
    return text if len(text) <= room else f"{text[: room - 1]}…"


def shown(texts: Iterable[str], room: int = SHOWN) -> list[str]:
    """Texts cut to what there is room for; those that are then alike are numbered, so that they stay apart."""
    cut = [clipped(text, room) for text in texts]
    often = Counter(cut)
    return [f"{text} (label {i})" if often[text] > 1 else text for i, text in enumerate(cut)]


def label_text(label: Label) -> str:
    """A label as people read it: 3 and not 3.0, true and not True."""
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() and abs(label) < 2**53 else repr(label)
    return str(label)


def iso(dates: NDArray[Any]) -> list[str]:
    """Dates as text: the day where there is no time of day, otherwise with it."""
    days, seconds = dates.astype("datetime64[D]"), dates.astype("datetime64[s]")
    return [str(d if d == m else s if s == m else m) for d, s, m in zip(days, seconds, dates, strict=True)]


def text_numbers(labels: Sequence[str]) -> Floats:
    """Labels as numbers, NaN where they are none."""
    import polars as pl

    numbers = pl.Series(list(labels), dtype=pl.String).cast(pl.Float64, strict=False)
    return numbers.fill_null(float("nan")).to_numpy().astype(np.float64)


def text_dates(labels: Sequence[str]) -> NDArray[Any]:
    """Labels in the ISO form as dates, NaT where they are none."""
    dates = np.full(len(labels), np.datetime64("NaT", "us"))
    for i, label in enumerate(labels):
        try:
            moment = datetime.datetime.fromisoformat(label if len(label) != 7 else f"{label}-01")
        except ValueError:
            continue
        dates[i] = naive(moment)
    return dates


def text_flags(labels: Iterable[str]) -> list[bool | None]:
    """Labels that say yes or no as booleans, None where they say something else."""
    lower = [label.lower() for label in labels]
    return [True if word in TRUE else False if word in FALSE else None for word in lower]


def _unique(keys: NDArray[Any], present: Booleans) -> tuple[NDArray[Any], Integers]:
    """Different keys of the rows that are present, sorted, and each row's place among them: -1 where missing."""
    everything = bool(present.all())
    here = keys if everything else keys[present]
    if here.dtype == np.int64 and len(here) and int(here.max()) - int(here.min()) < max(TABLE_LIMIT, 4 * len(here)):
        low = int(here.min())
        different, codes = compact(here - low, int(here.max()) - low + 1)
        different = different + low
    else:
        different, codes = np.unique(here, return_inverse=True)
    if everything:
        return different, codes.astype(np.int64, copy=False)
    all_codes = np.full(len(keys), -1, dtype=np.int64)
    all_codes[present] = codes
    return different, all_codes


def _labels(kind: Kind, different: NDArray[Any]) -> list[Any]:
    if kind == "date":
        return iso(different.astype(np.int64).view("datetime64[us]"))
    return [bool(v) for v in different] if kind == "boolean" else different.tolist()


def naive(moment: datetime.datetime) -> datetime.datetime:
    """A moment without its time zone, in UTC where it had one."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
