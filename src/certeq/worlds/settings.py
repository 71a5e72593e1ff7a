"""What the worlds ask of their settings: each check reads a value, or names the setting that is wrong."""

from __future__ import annotations

from collections.abc import Collection

from certeq.base.arrays import whole, within
from certeq.base.errors import InputError, nearest

Size = int | tuple[int, ...] | None


def number(name: str, value: object, low: float, high: float) -> float:
    """Read one number in [low, high]."""
    array = within(name, value, low, high)
    if array.shape:
        raise InputError(
            f"{name} must be one number between {low:g} and {high:g}; got an array of shape {array.shape}."
        )
    return float(array)


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Read one of a few words."""
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {words}; got {value!r}.{nearest(str(value), choices)}")
    return str(value)


def leading_axes(size: Size) -> tuple[int, ...]:
    """Read the leading axes of a batch of worlds: none, one length, or several."""
    lengths = () if size is None else size if isinstance(size, tuple) else (size,)
    return tuple(whole("size", length, 1) for length in lengths)
