"""Columns to codes, for one piece of the rows: what a column says becomes a whole number, in the order of the labels.

A column of states is coded together with its column of next states. Labels of rows that are left out later may be
among the labels here; whoever counts drops those that were not used.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Booleans, Integers
from certeq.base.errors import InputError
from certeq.base.limits import most
from certeq.data.counting.tallying import Codes, number, replace
from certeq.data.recipes import Bins, column
from certeq.data.recipes.columns import Kind
from certeq.data.recipes.fitting import Binning, fit_encode, place

RANGE = 1 << 22  # whole numbers within a range up to this long are counted from its lowest
EXACT = 2**53  # floats are whole numbers without gaps up to here
CHUNK = 1 << 20  # rows of text that are compared at a time
OFTEN = 8  # rows for each view of a text, at least, for views to be worth their number
LABELS = Binning("labels")


@dataclass(frozen=True)
class LabelSeries:
    """The different values of a column, sorted: a polars Series of integers, floats or text."""

    column: str
    kind: Kind  # whole numbers that were written as floats are floats here
    values: Any

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.column,)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values)


@dataclass(frozen=True)
class Coded:
    """A column, or one and its partner, as codes: a value of the first is ``now``, one of the second ``then``."""

    axis: LabelSeries | Bins
    now: Codes
    then: Codes  # empty where there is no partner
    absent_now: Booleans | None = None  # None: no value is missing
    absent_then: Booleans | None = None

    def check_sizes(self, kept: Booleans | None, ended: Booleans | None, rows: Sequence[int]) -> None:
        """Refuse numbers that cannot be labels, of the rows that are used, in the words of the reader."""
        if not isinstance(self.axis, LabelSeries) or self.axis.kind != "float":
            return
        values = self.axis.values.to_numpy()
        large = ~(np.abs(values) < EXACT)
        if not large.any():
            return
        used = np.ones(len(rows), dtype=bool) if kept is None else kept
        for codes, use in ((self.now, used), (self.then, used if ended is None else used & ~ended)):
            at = np.flatnonzero(use & large[codes]) if len(codes) else codes
            if len(at):
                name, one = self.axis.column, values[codes[at[:1]]]
                fit_encode({name: column(one, name)}, {name: LABELS}, rows=np.array([rows[int(at[0])]]))


class Words(NamedTuple):
    """A column of text as codes into some labels, which may be in any order, blank, missing or there twice."""

    codes: Codes
    labels: Any  # polars Series of text


class Values(NamedTuple):
    """What a column holds, as NumPy has it."""

    kind: Kind
    array: NDArray[Any]  # whole numbers or floats
    absent: Booleans | None


class Source(NamedTuple):
    """A column and its partner, if it has one, of a piece that begins somewhere in a file."""

    names: tuple[str, ...]
    series: tuple[Any, ...]  # polars Series of one length
    rows: range  # numbers of these rows in the file

    def refuse(self, which: int, row: int, choice: Binning) -> None:
        """Complain about a value of one of the columns in the words of the reader."""
        name, one = self.names[which], self.series[which][row : row + 1]
        fit_encode({name: column(one, name)}, {name: choice}, rows=np.array([self.rows[row]]))


def encode(source: Source, choice: Binning | None) -> Coded:
    """Code a column by its labels or its bins; by default, by its labels."""
    axis: LabelSeries | Bins
    if choice is not None and choice.way == "edges":
        axis, codes, absent = _bins(source, choice)
    elif any(_is_text(one) for one in source.series):
        axis, codes, absent = _text(source)
    else:
        axis, codes, absent = _numbers(source, choice)
    if len(source.names) == 1:
        return Coded(axis, codes[0], codes[0][:0], absent[0])
    return Coded(axis, codes[0], codes[1], absent[0], absent[1])


def _some(absent: Booleans) -> Booleans | None:
    return absent if absent.any() else None


def _bins(source: Source, choice: Binning) -> tuple[Bins, list[Codes], list[Booleans | None]]:
    axis = Bins(source.names[0], choice.edges)
    columns = [column(one[:], name) for one, name in zip(source.series, source.names, strict=True)]
    codes = [axis.codes({axis.column: one}) for one in columns]
    for which, (code, one) in enumerate(zip(codes, columns, strict=True)):
        bad = (code < 0) & ~one.missing
        if bad.any():
            source.refuse(which, int(np.argmax(bad)), choice)
    return axis, [np.maximum(code, 0).astype(np.uint32) for code in codes], [_some(one.missing) for one in columns]


# ---- text ----


def _is_text(series: Any) -> bool:
    import polars as pl

    return series.dtype in (pl.String, pl.Categorical, pl.Enum)


def _text(source: Source) -> tuple[LabelSeries, list[Codes], list[Booleans | None]]:
    """Text: the labels of both columns, trimmed and sorted; blank ones are missing."""
    import polars as pl

    parts = [words(one) for one in source.series]
    labels = pl.concat([part.labels for part in parts])
    length = int(labels.str.len_chars().max() or 0)
    if length > most("label"):
        raise InputError(
            f"Column {source.names[0]!r} holds a text of {length:,} characters; a label may have {most('label'):,}. "
            "Leave this column out, or shorten its labels."
        )
    trimmed = labels.str.strip_chars()
    trimmed = trimmed.set(trimmed == "", None)
    known = trimmed.drop_nulls().unique().sort()
    rank = trimmed.cast(pl.Enum(known)).to_physical().cast(pl.UInt32)
    ends = np.cumsum([len(part.labels) for part in parts])[:-1]
    blank, places = (np.split(array, ends) for array in (rank.is_null().to_numpy(), rank.fill_null(0).to_numpy()))
    absent = [_some(gone[part.codes]) if gone.any() else None for gone, part in zip(blank, parts, strict=True)]
    codes = [replace(part.codes, place_of) for part, place_of in zip(parts, places, strict=True)]
    return LabelSeries(source.names[0], "text", known), codes, absent


def words(series: Any) -> Words:
    """Number text by its views if most are there often, or by its hash; categories by themselves.

    The text of a category is written out once, not in every row, which could take any amount of memory.
    """
    import polars as pl

    if series.dtype != pl.String:
        found = number(series.to_physical().cast(pl.UInt64).fill_null(2**64 - 1).to_numpy())
        return Words(found.codes, series.gather(found.first).cast(pl.String))
    filled = series.fill_null("") if series.null_count() else series  # what is missing may have any view
    seen = views(filled)
    if seen is not None:
        found = number(seen)
        if len(found.first) <= len(series) // OFTEN:
            return Words(found.codes, filled.gather(found.first))
    return _by_hash(series)


def views(series: Any) -> NDArray[np.uint64] | None:
    """Sixteen bytes for each text, ``(n, 2)``: up to twelve bytes of it and their number, or the place where it is.

    Texts with one view are the same; the same text may have several. None where pyarrow, which shows them, is missing.
    """
    import polars as pl

    if importlib.util.find_spec("pyarrow") is None:
        return None
    array = series.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    if str(array.type) != "string_view" or not len(array):
        return None
    every = np.frombuffer(array.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    return every[array.offset : array.offset + len(array)]


def _by_hash(series: Any) -> Words:
    """Number text by its hash, which is quick, and compare it with the label of its number, which makes it sure."""
    import polars as pl

    found = number(hashes(series))
    labels = series.gather(found.first)
    if _agree(series, labels, found.codes):
        return Words(found.codes, labels)
    labels = series.unique()
    codes = series.fill_null("").replace_strict(labels.fill_null(""), np.arange(len(labels)), return_dtype=pl.UInt32)
    return Words(codes.to_numpy(writable=True), labels)


def hashes(series: Any) -> NDArray[np.uint64]:
    """A number for each text; equal texts have equal numbers."""
    return np.asarray(series.hash().to_numpy())


def _agree(series: Any, labels: Any, codes: Codes) -> bool:
    """Whether every row holds the label of its code: not so where two texts have one hash."""
    parts = (slice(i, i + CHUNK) for i in range(0, len(series), CHUNK))
    return all(series[part].eq_missing(labels.gather(codes[part])).all() for part in parts)


# ---- numbers, flags and dates ----


def _numbers(source: Source, choice: Binning | None) -> tuple[LabelSeries, list[Codes], list[Booleans | None]]:
    import polars as pl

    parts = _alike([_values(one, name) for one, name in zip(source.series, source.names, strict=True)])
    kind, absent = parts[0].kind, [part.absent for part in parts]
    if kind != "float":
        codes, labels = _whole(parts)
    else:
        for which, part in enumerate(parts):
            _check_floats(source, which, part, choice)
        filled = [part.array + 0.0 for part in parts]  # minus zero is zero
        for array in filled:
            array[np.isnan(array)] = 0.0
        if all((array == np.round(array)).all() and np.abs(array).max(initial=0) < EXACT for array in filled):
            whole = zip(filled, absent, strict=True)
            codes, labels = _whole([Values(kind, array.astype(np.int64), missing) for array, missing in whole])
        else:
            codes, labels = listed(filled)
        labels = labels.astype(np.float64)
    return LabelSeries(source.names[0], kind, pl.Series(labels)), codes, absent


def _values(series: Any, name: str) -> Values:
    """Read a column that is not text: quickly where it holds integers without gaps, as a large one should."""
    import polars as pl

    wide = series.dtype in (pl.UInt64, pl.Int128, pl.UInt128)
    fits = series.dtype.is_integer() and (not wide or not len(series) or (series.max() or 0) < 2**63)
    if fits and not series.null_count():
        array = series.to_numpy()
        return Values("integer", array.astype(np.int64) if array.dtype == np.uint64 else array, None)
    found = column(series, name)
    if found.kind == "text":
        raise InputError(f"Column {name!r} holds whole numbers beyond 2^63. Write them as text.")
    plain = found.values.view(np.int64) if found.kind == "date" else found.values
    return Values(found.kind, plain.view(np.uint8) if plain.dtype == bool else plain, _some(found.missing))


def _alike(parts: Sequence[Values]) -> list[Values]:
    """A column and its partner in one kind: whole numbers beside floats, or beside flags, become floats."""
    kinds = {part.kind for part in parts if part.absent is None or not part.absent.all()}
    kind: Kind = next(iter(kinds)) if len(kinds) == 1 else "float"
    arrays = [part.array.astype(np.float64, copy=False) if kind == "float" else part.array for part in parts]
    if kind != "float":  # a column of blanks, which looks like floats, may be any kind
        arrays = [np.zeros(len(array), dtype=np.int64) if array.dtype.kind == "f" else array for array in arrays]
    return [Values(kind, array, part.absent) for array, part in zip(arrays, parts, strict=True)]


def _check_floats(source: Source, which: int, part: Values, choice: Binning | None) -> None:
    here = ~np.isnan(part.array)
    broken = (part.array != np.round(part.array)) & here
    if choice is None and broken.any():
        row, name = int(np.argmax(broken)), source.names[0]
        raise InputError(
            f"{place(source.rows[row])}: {source.names[which]!r} is {part.array[row]:g}, a fraction. Counting reads "
            f"the rows once and cannot choose bins by itself: say where to cut, bins={{{name!r}: 'edges:1,2.5'}} "
            f"(--bins {name}=edges:1,2.5), or 'labels' if every value is a state of its own."
        )


def _whole(parts: Sequence[Values]) -> tuple[list[Codes], Integers]:
    """Codes and labels of whole numbers: counted from the lowest where the range is short, otherwise listed."""
    here = [part.array if part.absent is None else part.array[~part.absent] for part in parts]
    ends = [(int(array.min()), int(array.max())) for array in here if len(array)] or [(0, 0)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if high - low >= RANGE:
        return listed([part.array.astype(np.int64, copy=False) for part in parts])
    step = 1 << max((high - low).bit_length() - 3, 0)  # ends at round numbers are the same in most pieces
    low, size = low // step * step, (high // step - low // step + 1) * step
    return [_from(part.array, low, part.absent) for part in parts], low + np.arange(size)


def _from(array: NDArray[Any], low: int, absent: Booleans | None) -> Codes:
    """Whole numbers counted from the lowest; those that start at 0 and have the right size are codes already."""
    if low == 0 and absent is None and array.dtype.itemsize == 4:
        return array.view(np.uint32)
    kind = np.iinfo(array.dtype)
    wide = array if kind.bits >= 32 and kind.min <= low <= kind.max else array.astype(np.int64)
    codes = (wide - wide.dtype.type(low)).astype(np.uint32)
    if absent is not None:
        codes[absent] = 0
    return codes


def listed(arrays: Sequence[NDArray[Any]]) -> tuple[list[Codes], NDArray[Any]]:
    """Codes and sorted labels of any numbers of eight bytes, in several arrays."""
    found = number(np.concatenate(arrays).view(np.uint64))
    labels = found.words.view(arrays[0].dtype)
    order = np.argsort(labels)
    rank = np.empty(len(order), dtype=np.uint32)
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(array) for array in arrays[:-1]])
    return np.split(replace(found.codes, rank), ends), labels[order]
