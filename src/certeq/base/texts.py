"""Texts of files: tables as CSV that a spreadsheet can open without harm, and JSON that any program can read.

With `certeq.base.display` and `certeq.report.html`, the door of everything written: no NaN and no infinity leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike
from certeq.base.errors import no_number

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV; text that a spreadsheet would run as a formula is led by an apostrophe."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def json_text(value: Any) -> str:
    """Write JSON that people can read; numbers that JSON does not have are an error."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        raise no_number("A file of results") from None


def finite(values: ArrayLike) -> Any:
    """A number, or nested lists of them, with None for what JSON does not have."""
    plain = np.array(values, dtype=object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def _cell(cell: Any) -> str:
    if isinstance(cell, float | np.floating) and not np.isfinite(cell):
        raise no_number("A table of results")
    text = "" if cell is None else str(cell)
    if isinstance(cell, str) and text.startswith(FORMULA_STARTS) and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',;\t"\n\r') else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
