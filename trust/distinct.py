"""Distinct in, distinct inside, or refused: what two values of a column become, whatever holds them.

The twin is Python: what each container itself says its values are, compared as exact values. Text is trimmed, and blank
text and NaN are missing; that is documented. Nothing else may become one that was two, or be lost.
"""

from __future__ import annotations

import datetime
import decimal
import io
import sys
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from certeq import InputError, read
from trust.formats.values import column

BLANK = "".join(chr(i) for i in range(sys.maxunicode) if chr(i).isspace() and not 28 <= i <= 31)  # signs are no blanks


def exact(value: Any) -> Any:
    """A value as something that is equal only to the same value; None where it is missing by the rules."""
    if isinstance(value, bytes):
        value = value.decode("utf-8")  # what is not text is refused
    if value is None or isinstance(value, str):
        return (value or "").strip(BLANK) or None
    if isinstance(value, float):
        return None if value != value else value + 0.0
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def seen(batch: Any, name: str) -> int:
    """How many different labels a batch has of a column."""
    (axis,) = (axis for axis in batch.recipe.axes if axis.columns == (name,))
    return int(axis.size)


def attempt(rng: np.random.Generator) -> tuple[str, str]:
    """Read a column of any type as labels, from a container of any kind; what came of it, and what is wrong."""
    while True:
        values = column(rng, int(rng.integers(2, 12)))
        try:
            values.validate(full=True)  # a table in memory is its maker's; what a file holds is `trust.formats`'s part
            break
        except pa.ArrowInvalid:
            continue
    container, given = _contained(rng, values)
    try:
        known = _values(values)
    except (ValueError, OverflowError, TypeError, NotImplementedError, pa.ArrowException, decimal.DecimalException):
        known = None  # Python itself cannot say what they are
    try:
        n = len(values)
        rows = {"state": given, "action": [0] * n, "reward": [0.0] * n, "next_state": given}
        found = seen(read(rows, state="state", next_state="next_state", bins={"state": "labels"}), "state")
    except InputError:
        return "refused", ""
    told = f"{values.type} in {container}: {values[:12]}"
    if known is None:
        return "read, but the twin cannot tell", ""
    if None in known:
        return "failed", f"a missing value was taken for a label: {told}"
    if len(known) != found:
        return "failed", f"{len(known)} different values became {found}: {told}"
    return "kept apart", ""


def _values(values: pa.Array) -> set[Any]:
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type) or pa.types.is_time(values.type):
        wide = pa.int32() if values.type.bit_width == 32 else pa.int64()
        return {None if v is None else int(v) for v in values.view(wide).to_pylist()}
    return {exact(value) for value in values.to_pylist()}


def _nested(kind: pa.DataType) -> bool:
    """Whether it is a dictionary of dictionaries, of which pyarrow makes the words of its own type for pandas."""
    return bool(pa.types.is_dictionary(kind) and pa.types.is_dictionary(kind.value_type))


def _contained(rng: np.random.Generator, values: pa.Array) -> tuple[str, Any]:
    """The column in one of the containers that people hand over."""
    import pandas as pd
    import polars as pl

    kind = str(rng.choice(["pyarrow", "polars", "pandas", "list", "numpy", "masked"]))
    try:
        if kind == "polars":
            return kind, pl.Series(pl.from_arrow(values))
        if kind == "pandas" and not _nested(values.type):
            return kind, pd.Series(values.to_pandas(types_mapper=pd.ArrowDtype if rng.random() < 0.5 else None))
        if kind == "list":
            return kind, values.to_pylist()
        if kind == "numpy":
            return kind, values.to_numpy(zero_copy_only=False) if not values.null_count else values.to_pylist()
        if kind == "masked" and pa.types.is_primitive(values.type):
            blank = np.asarray(values.is_null())
            filled = values.fill_null(values.drop_null()[0]) if values.null_count else values
            return kind, np.ma.masked_array(filled.to_numpy(zero_copy_only=False), blank)
    except BaseException as error:  # this library cannot hold such a column
        if isinstance(error, KeyboardInterrupt):
            raise
    return "pyarrow", pa.chunked_array([values])


def campaign(rng: np.random.Generator, times: int) -> tuple[Counter[str], list[str]]:
    """Many columns; gives what came of them, and what was wrong."""
    import contextlib
    import warnings

    found: Counter[str] = Counter()
    failures = []
    for _ in range(times):
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            what, wrong = attempt(rng)
        found[what] += 1
        failures += [wrong] if wrong else []
    return found, failures
