"""Times in microseconds, exactly: what is finer, or lies outside of the years that a calendar has, is refused."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.errors import InputError

UNITS = {"ns": -1000, "us": 1, "ms": 1000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "D": 86400 * 10**6}
FIRST = int(np.datetime64("0001-01-01", "us").astype(np.int64))
LAST = int(np.datetime64("9999-12-31T23:59:59.999999", "us").astype(np.int64))


def microseconds(moments: NDArray[np.int64], unit: str, name: str, *, dates: bool = True) -> NDArray[Any]:
    """Whole numbers of a unit as dates (or, for a length of time, whole numbers) in microseconds."""
    size = UNITS[unit]
    if size < 0 and (moments % -size != 0).any():
        raise too_fine(name)
    low, high = (FIRST, LAST) if dates else (-(2**63), 2**63 - 1)
    ends = (moments.min(initial=0), moments.max(initial=0))
    exact = [int(end) // -size if size < 0 else int(end) * size for end in ends]
    if exact[0] < low or exact[1] > high:
        years = "outside of the years 1 to 9999" if dates else "of more than 292,000 years"
        raise InputError(f"Column {name!r} holds times {years}. Correct them, or write them as text.")
    found = moments // -size if size < 0 else moments * size
    return found.view("datetime64[us]") if dates else found


def check_seconds(column: Any, name: str) -> None:
    """Refuse moments of pyarrow in seconds that polars, which counts milliseconds, would turn into other moments."""
    if str(column.type).startswith(("timestamp[s", "duration[s")):
        ends = importlib.import_module("pyarrow.compute").min_max(column.cast("int64")).as_py()
        if max(abs(end or 0) for end in ends.values()) > 2**63 // 1000:
            raise InputError(f"Column {name!r} holds times that are too far away. Correct them, or write them as text.")


def too_fine(name: str) -> InputError:
    """Build the error for times that differ by less than can be kept."""
    return InputError(
        f"Column {name!r} holds times finer than a microsecond, which certeq would take for one another. Round "
        "them, or write them as text."
    )
