"""Words in and out: reading what people write after an option, and writing what their data say without harm."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from certeq.base.display import harmless as harmless
from certeq.base.errors import InputError
from certeq.base.limits import most, way_out

LONGEST = 3000  # characters of a message


def names(text: str | None) -> list[str] | None:
    """Column names, separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",")]


def pair(text: str, option: str, form: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"{option} takes {form}; got {text!r}.")
    return name.strip(), value.strip()


def bins(said: list[str]) -> dict[str, str] | int:
    """How columns become states: one number for all, or COLUMN=HOW for some."""
    if len(said) == 1 and said[0].isdecimal() and len(said[0]) < 20:
        return int(said[0])
    form = "a number, or COLUMN=quantile:4, =edges:1,5, =kmeans:9 or =labels"
    return dict(pair(text, "--bins", form) for text in said)


def settings(said: Iterable[str]) -> dict[str, Any]:
    """Settings NAME=VALUE: whole numbers, numbers, arrays (a file .npy), else words."""
    pairs = (pair(text, "--setting", "NAME=VALUE, for example strength=0.3") for text in said)
    return {name: value(text) for name, text in pairs}


def value(text: str) -> Any:
    """Read a value as what it looks like."""
    if text.endswith(".npy"):
        return _array(Path(text))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def paragraph(error: Exception) -> str:
    """What an error says, in one paragraph that a terminal can show whatever the data hold."""
    said = harmless(error)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} ..."


def _array(path: Path) -> Any:
    """Read an array; as a view of the file first, since a header can claim to be larger than all the memory."""
    import numpy as np

    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.stat().st_size > most("policy_bytes"):
        raise InputError(f"{path} has more than {most('policy_bytes'):,} bytes; {way_out('policy_bytes')}.")
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy lets through whatever its parsers raise
        said = str(error)[:200] or type(error).__name__
        raise InputError(f"{path} is not an array that NumPy saved: {said}.") from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise InputError(f"{path} holds several arrays; save one alone, with numpy.save.")
    return np.array(found)
