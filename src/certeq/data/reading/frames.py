"""Tables of columns from whatever holds them: files, data frames of several libraries, dicts of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.limits import most
from certeq.data.reading.files import check_columns, read_file, resolve
from certeq.data.recipes.columns import Column
from certeq.data.recipes.containers import column
from certeq.data.recipes.times import check_seconds


class Table(Mapping[str, Column]):
    """Columns of one length by name, in whatever container they came; each is read when it is asked for."""

    def __init__(
        self,
        held: Mapping[str, Any],
        n_rows: int,
        *,
        from_text: bool = False,
        fingerprint: str | None = None,
        notes: tuple[str, ...] = (),
        source: str = "the table",
    ) -> None:
        """Hold columns of a ``source``; ``from_text`` says that it was a text file, where '3' is a number."""
        self.n_rows, self.fingerprint, self.notes = n_rows, fingerprint, notes
        self._held, self._from_text, self._read = held, from_text, dict[str, Column]()
        self._source = source

    def __getitem__(self, name: str) -> Column:
        if name not in self._read:
            with door(f"Column {name!r} of {self._source}", "Write it as plain text, numbers or dates."):
                self._read[name] = column(self._held[name], name, from_text=self._from_text)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __len__(self) -> int:
        return len(self._held)


def open_table(source: Any, limit_bytes: int | None = None) -> Table:
    """Find the columns of a file, a data frame or a dict of arrays."""
    if isinstance(source, str | os.PathLike):
        path = resolve(source)
        frame, from_text, fingerprint = read_file(path, limit_bytes)
        with door(path.name):
            return _of_polars(frame, from_text, fingerprint, path.name)
    with door(f"This {type(source).__name__}", "Give text, numbers or dates in columns of one length."):
        return _of_mapping(source) if isinstance(source, Mapping) else _of_frame(source)


def _of_frame(source: Any) -> Table:
    import narwhals.stable.v2 as nw

    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        check_columns(len(frame.collect_schema().names()))
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise InputError(
            f"certeq cannot read a {type(source).__name__}. Give the name of a file, a pandas, polars or pyarrow "
            "table, or a dict of columns."
        )
    check_columns(len(frame.columns))
    if frame.implementation.is_pyarrow():
        for name in frame.columns:
            check_seconds(source[name], name)
    if not frame.implementation.is_pandas_like():
        return _of_polars(frame.to_polars())
    return _of_mapping({str(name): frame[name].to_native() for name in frame.columns})


def _of_polars(frame: Any, from_text: bool = False, fingerprint: str | None = None, source: str = "the table") -> Table:
    check_columns(len(frame.columns))
    _check_rows(frame.height)
    held = {name: part for whole in frame.get_columns() for name, part in flat(whole.name, whole).items()}
    check_columns(len(held))
    return Table(held, frame.height, from_text=from_text, fingerprint=fingerprint, source=source)


def _of_mapping(source: Mapping[Any, Any]) -> Table:
    held: dict[str, Any] = {}
    for name, values in source.items():
        if isinstance(values, np.ndarray) and values.ndim > 1:
            parts = values.reshape(len(values), -1)
            held |= {f"{name}_{i}": parts[:, i] for i in range(parts.shape[1])}
        else:
            held[str(name)] = values
    check_columns(len(held))
    try:
        lengths = {name: len(values) for name, values in held.items()}
    except TypeError:
        raise InputError("Each column must be an array or a list with one value for each row.") from None
    if len(set(lengths.values())) > 1:
        raise InputError(f"Columns must have one length; got {', '.join(f'{n}: {k}' for n, k in lengths.items())}.")
    n_rows = next(iter(lengths.values()), 0)
    _check_rows(n_rows)
    return Table(held, n_rows)


def flat(name: str, series: Any) -> dict[str, Any]:
    """A polars Series of structs or of lists of one length as plain columns: position_0, position_1, ..."""
    import polars as pl

    if isinstance(series.dtype, pl.Struct):
        parts = {f"{name}_{field.name}": series.struct.field(field.name) for field in series.dtype.fields}
        return {key: leaf for inner, part in parts.items() for key, leaf in flat(inner, part).items()}
    if isinstance(series.dtype, pl.List):
        lengths = series.list.len().unique().drop_nulls()
        if len(lengths) != 1 or lengths[0] == 0 or lengths[0] > most("columns"):
            return {name: series}
        series = series.list.to_array(int(lengths[0]))
    if isinstance(series.dtype, pl.Array):
        size = series.dtype.shape[0]
        items = {f"{name}_{i}": series.arr.get(i) for i in range(size)} if size <= most("columns") else {}
        return {key: leaf for inner, part in items.items() for key, leaf in flat(inner, part).items()} or {name: series}
    return {name: series}


def _check_rows(n_rows: int) -> None:
    if n_rows == 0:
        raise InputError("The table has no rows. There is nothing to read.")
