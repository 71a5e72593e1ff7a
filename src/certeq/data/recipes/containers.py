"""Columns out of containers: polars, pandas and pyarrow series, NumPy arrays, plain lists."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Integers
from certeq.base.errors import InputError
from certeq.base.limits import most, way_out
from certeq.data.recipes.columns import ABSENT, Column, Kind, blank, label_text, naive, text_numbers
from certeq.data.recipes.times import UNITS, check_seconds, microseconds, too_fine

SAMPLE = 10_000  # rows that tell whether a shortcut is worth trying
HANDFUL = 12  # labels


def column(values: Any, name: str = "", *, from_text: bool = False) -> Column:
    """Read a column from a polars Series, a pandas Series, an array or a list.

    Text that came from a text file (``from_text``) becomes numbers or booleans where every label is one, and the usual
    signs for a missing value are read as such. Blank text is always missing.
    """
    if isinstance(values, Column):
        return values
    if type(values).__module__.startswith("polars."):
        return _of_polars(values, name, from_text)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return _of_objects(np.fromiter(values, dtype=object, count=len(values)), name, from_text)
    if isinstance(values, np.ma.MaskedArray):
        found = _of_numpy(np.asarray(values.data), name, from_text)
        return found.without(np.ma.getmaskarray(values))
    if not isinstance(values, np.ndarray):
        import narwhals.stable.v2 as nw

        series = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            return _of_narwhals(series, name, from_text)
    return _of_numpy(np.asarray(values), name, from_text)


def _of_polars(series: Any, name: str, from_text: bool) -> Column:
    import polars as pl

    kind, missing = series.dtype, series.is_null().to_numpy()
    if kind == pl.String:
        return _of_text(series, name, from_text)
    if kind in (pl.Categorical, pl.Enum):
        return _of_categories(series, name)
    if kind == pl.Null:
        return blank("float", len(series))
    if kind == pl.Boolean:
        return Column("boolean", series.fill_null(False).to_numpy().astype(bool), missing)
    if kind.is_integer():
        if (series.max() or 0) >= 2**63 or (series.min() or 0) < -(2**63):
            return _of_text(series.cast(pl.String), name, False)
        return Column("integer", series.fill_null(0).cast(pl.Int64).to_numpy(), missing)
    if kind.is_float():
        return _of_numpy(series.cast(pl.Float64).to_numpy(), name, False)
    if kind.is_decimal():
        numbers = series.cast(pl.Float64)
        if numbers.n_unique() < series.n_unique():  # two of them would be one float
            return _of_text(series.cast(pl.String), name, False)
        return _of_numpy(numbers.to_numpy(), name, False)
    if kind in (pl.Date, pl.Datetime):  # whatever its zone, a moment is kept as it is in UTC
        moments = series.to_physical().fill_null(0).cast(pl.Int64).to_numpy()
        return Column("date", microseconds(moments, getattr(kind, "time_unit", "D"), name), missing)
    if kind in (pl.Duration, pl.Time):
        return Column("integer", series.to_physical().fill_null(0).to_numpy(), missing)
    if kind == pl.Object:
        return _of_objects(series.to_numpy(), name, from_text)
    raise InputError(f"Column {name!r} has the type {kind}, which is not a plain value. Give text, numbers or dates.")


def _of_narwhals(series: Any, name: str, from_text: bool) -> Column:
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if series.implementation.is_pyarrow():
        check_seconds(series.to_native(), name)
    if not series.implementation.is_pandas_like():
        return _of_polars(series.to_polars(), name, from_text)
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if kind.is_integer() or kind == nw.Boolean:
        filled = series.fill_null(0 if kind.is_integer() else False) if missing.any() else series
        values = np.asarray(filled.to_numpy())
        plain = _of_numpy(values if kind.is_integer() else values.astype(bool), name, False)
        return Column(plain.kind, plain.values, missing, plain.labels)
    if kind.is_decimal():
        return _of_objects(np.fromiter(series.to_list(), dtype=object, count=len(series)), name, from_text)
    if kind.is_float():
        return _of_numpy(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64), name, False)
    if kind == nw.Datetime and kind.time_zone:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return _of_numpy(np.asarray(series.to_numpy()), name, from_text)


def _of_numpy(array: NDArray[Any], name: str, from_text: bool) -> Column:
    if array.ndim != 1:
        raise InputError(f"Column {name!r} has the shape {array.shape}; a column has one value for each row.")
    none = np.zeros(len(array), dtype=bool)
    match array.dtype.kind:
        case "b":
            return Column("boolean", array, none)
        case "u" if array.max(initial=0) >= 2**63:
            return _of_objects(array.astype(str).astype(object), name, False)
        case "i" | "u":
            return Column("integer", array.astype(np.int64, copy=False), none)
        case "f":
            values = array.astype(np.float64, copy=False)
            if ((values != array) & ~np.isnan(array)).any():
                raise InputError(
                    f"Column {name!r} holds numbers of more than 64 bits. Round them, or write them as text."
                )
            return Column("float", values, np.isnan(values))
        case "M" | "m":
            blanks = np.isnat(array)
            unit, step = np.datetime_data(array.dtype)
            if step != 1 or unit not in UNITS:
                unit = "D" if unit in ("Y", "M", "W") and array.dtype.kind == "M" else "us"
                coarse = array.astype(f"{array.dtype.kind}8[{unit}]")
                if (coarse.astype(array.dtype) != array)[~blanks].any():
                    raise InputError(f"Column {name!r} holds times of {array.dtype}, which certeq cannot keep exactly.")
                array = coarse
            plain = np.where(blanks, 0, array.view(np.int64))
            exact = microseconds(plain, unit, name, dates=array.dtype.kind == "M")
            return Column("date" if array.dtype.kind == "M" else "integer", exact, blanks)
        case "U" | "T":
            return _of_objects(array.astype(object), name, from_text)
        case "S":
            return _of_objects(array.astype(object), name, from_text)
        case "O":
            return _of_objects(array, name, from_text)
    raise InputError(
        f"Column {name!r} has the type {array.dtype}, which certeq cannot read. Give text, numbers or dates."
    )


def _of_objects(array: NDArray[Any], name: str, from_text: bool) -> Column:
    """Python objects: find out what they are. Text mixed with numbers is read as text."""
    import polars as pl

    missing = np.fromiter(map(_absent, array), dtype=bool, count=len(array))
    here = array[~missing]
    types = set(map(type, here))
    n = len(array)

    def spread(kind: Kind, values: NDArray[Any]) -> Column:
        whole = blank(kind, n).values
        whole[~missing] = values
        return Column(kind, whole, missing)

    if not types:
        return blank("float", n)
    if all(issubclass(t, bytes) for t in types):
        array, types = np.array([_decoded(v, name) if isinstance(v, bytes) else v for v in array], object), {str}
    if all(issubclass(t, str) for t in types):
        return _of_text(
            pl.Series([None if m else v for v, m in zip(array, missing, strict=True)], dtype=pl.String), name, from_text
        )
    if all(issubclass(t, bool | np.bool_) for t in types):
        return spread("boolean", here.astype(bool))
    if all(issubclass(t, int | np.integer) for t in types) and max(map(abs, here)) < 2**63:
        return spread("integer", here.astype(np.int64))
    if all(issubclass(t, int | float | np.number | np.bool_ | decimal.Decimal) for t in types):
        numbers = _as_floats(here)
        if numbers is not None:
            return spread("float", numbers)
    if all(issubclass(t, datetime.date | np.datetime64) for t in types):
        dates = [naive(v) if isinstance(v, datetime.datetime) else v for v in here]
        if any(getattr(v, "nanosecond", 0) for v in here):
            raise too_fine(name)
        exact = [_of_numpy(np.array([v]), name, False).values[0] if isinstance(v, np.datetime64) else v for v in dates]
        return spread("date", np.array(exact, dtype="datetime64[us]"))
    if all(issubclass(t, str | int | float | np.generic | decimal.Decimal | datetime.date) for t in types):
        words = [None if m else _word(v) for v, m in zip(array, missing, strict=True)]
        return _of_text(pl.Series(words, dtype=pl.String), name, from_text)
    kinds = ", ".join(sorted(t.__name__ for t in types))
    raise InputError(
        f"Column {name!r} holds values of type {kinds}, which certeq cannot read. Give text, numbers or dates."
    )


def _decoded(label: bytes, name: str) -> str:
    try:
        return label.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"Column {name!r} holds {label[:40]!r}, which is not text (UTF-8). Write it as text."
        ) from None


def _as_floats(numbers: NDArray[Any]) -> NDArray[Any] | None:
    """Numbers of several kinds as floats, unless two that differ would become one."""
    try:
        floats = numbers.astype(np.float64)
    except OverflowError:  # a whole number that no float can hold
        return None
    return floats if len(np.unique(floats)) == len(set(numbers.tolist())) else None


def _absent(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)  # NaN is not itself


def _word(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return label_text(plain) if isinstance(plain, bool | int | float) else str(plain)


def _of_categories(series: Any, name: str) -> Column:
    """A polars Categorical or Enum: its numbers may follow any order, and name labels that do not occur."""
    import polars as pl

    codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    used, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    labels = [None if c < 0 else series[int(i)] for c, i in zip(used, first, strict=True)]
    _check_lengths(pl.Series(labels, dtype=pl.String), name, first)
    return _relabel(labels, inverse)


def _check_lengths(series: Any, name: str, rows: Integers | None = None) -> None:
    """Refuse labels that are documents; ``rows`` tells where each label stands, if not in its own row."""
    bytes_each, limit = series.str.len_bytes(), most("label")
    long = (bytes_each > limit).fill_null(False).arg_true().to_numpy()
    for at in [bytes_each.arg_max(), *long[:1000]] if len(long) else ():  # not every letter is one byte
        length = len(series[int(at)])
        if length > limit:
            row = int(at if rows is None else rows[at])
            raise InputError(
                f"Column {name!r}, row {row + 1}, holds a text of {length:,} characters; a label may have {limit:,}. "
                f"Leave this column out, shorten its labels, or {way_out('label')}."
            )


def _of_text(series: Any, name: str, from_text: bool) -> Column:
    _check_lengths(series, name)
    if from_text and (numbers := _numeric(series)) is not None:
        return numbers
    labels, codes = _factorized(series)
    trimmed = labels.str.strip_chars()
    if len(labels) and labels[0] and (trimmed == labels).all() and not (from_text and labels.is_in(ABSENT).any()):
        found = Column("text", codes, codes < 0, tuple(labels.to_list()))  # nothing to tidy, as nearly always
    else:
        found = _relabel([*labels.to_list(), None], codes, ABSENT if from_text else ())
    return _flags(found) if from_text and len(found.labels) <= 6 else found


def _numeric(series: Any) -> Column | None:
    """Text from a text file as numbers, where all of it is numbers or the usual signs for a missing value."""
    import polars as pl

    if series.null_count() == len(series):
        return blank("float", len(series))
    sample = series[int(series.is_not_null().arg_max() or 0)].strip()
    if sample not in ABSENT and np.isnan(text_numbers([sample])).any():
        return None
    trimmed = series.str.strip_chars()
    written = trimmed.set(trimmed.is_in([*ABSENT, ""]), None)
    missing = written.is_null().to_numpy()
    kinds: tuple[tuple[Kind, Any], ...] = (("integer", pl.Int64), ("float", pl.Float64))
    for kind, wanted in kinds:
        values = written.cast(wanted, strict=False)
        if values.null_count() == int(missing.sum()):
            return Column(kind, values.fill_null(0).to_numpy(), missing)
    return None


def _flags(column: Column) -> Column:
    """Text from a text file as booleans, where it says nothing but true and false."""
    words = [label.lower() for label in column.labels]
    if not {*words} <= {"true", "false"}:
        return column
    return Column("boolean", np.array([*(word == "true" for word in words), False])[column.values], column.missing)


def _factorized(series: Any) -> tuple[Any, Integers]:
    """Sorted labels of a polars Series of text, and for each row which one it is, -1 where missing.

    Two shortcuts, each tried only where the first rows promise something: long runs of one label, such as a patient's
    rows, are looked at only once; and a handful of labels are compared one by one.
    """
    import polars as pl

    start = series.head(SAMPLE)
    if 4 * int(start.rle_id()[-1] if len(start) else 0) < len(start):
        run = series.rle_id().to_numpy()
        labels, codes = _looked_up(series.filter(pl.Series(np.append(True, run[1:] != run[:-1]))))
        return labels, codes[run]
    labels = start.unique().drop_nulls().sort()
    if 0 < len(labels) <= HANDFUL:
        numbers, there = np.zeros(len(series), dtype=np.int8), series.null_count()
        for i, label in enumerate(labels):
            same = (series == label).fill_null(False).to_numpy()
            numbers += same.view(np.int8) * np.int8(i + 1)
            there += int(np.count_nonzero(same))
        if there == len(series):
            return labels, numbers.astype(np.int64) - 1
    return _looked_up(series)


def _looked_up(series: Any) -> tuple[Any, Integers]:
    import polars as pl

    labels = series.unique().drop_nulls().sort()
    physical = series.cast(pl.Enum(labels)).to_physical().cast(pl.Int64)
    return labels, (physical.fill_null(-1) if physical.null_count() else physical).to_numpy()


def _relabel(labels: Sequence[str | None], codes: Integers, absent: Sequence[str] = ()) -> Column:
    """Make codes into these labels into a column: labels trimmed, sorted, blank ones missing."""
    import polars as pl

    trimmed = pl.Series(labels, dtype=pl.String).str.strip_chars().to_list()  # Python trims some control signs as well
    kept = sorted({label for label in trimmed if label and label not in absent})
    place = {label: i for i, label in enumerate(kept)}
    moved = np.array([place.get(label, -1) if label else -1 for label in trimmed], dtype=np.int64)[codes]
    return Column("text", moved, moved < 0, tuple(kept))
