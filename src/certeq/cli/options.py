"""Words in and out: reading what people write after an option, and writing what their data say without harm."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from certeq.errors import InputError


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
    if len(said) == 1 and said[0].isdecimal():
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


def _array(path: Path) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is not an array that NumPy saved: {error}.") from None


def harmless(text: object) -> str:
    """Text from somebody's data, with whatever could command a terminal or turn it around written out."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(text))
