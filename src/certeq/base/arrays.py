"""The array types that the signatures speak of, and the few checks that every room needs."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

from certeq.base.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
Rng: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None


def generator(rng: Rng) -> np.random.Generator:
    """Turn a seed, a SeedSequence, a Generator or None into a Generator."""
    return np.random.default_rng(rng)


def names(kind: str, given: Sequence[str], size: int) -> tuple[str, ...]:
    """Check the names of states or actions; without any, their numbers are their names."""
    if given and (len(given) != size or len(set(given)) != size):
        raise InputError(f"{kind}_names needs {size} different names; got {len(given)}, {len(set(given))} different.")
    return tuple(given) or tuple(map(str, range(size)))


def whole(name: str, value: Any, at_least: int, at_most: int | None = None) -> int:
    """Read a whole number that is large enough (and, where a limit is given, small enough)."""
    limits = f"at least {at_least}" if at_most is None else f"between {at_least} and {at_most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, {limits}; got {value!r}.") from None
    if number < at_least or (at_most is not None and number > at_most):
        raise InputError(f"{name} must be {limits}; got {number}.")
    return number


def check_level(level: float) -> None:
    """Raise if no interval can have this level."""
    if not 0 < level < 1:
        raise InputError(f"The level of an interval lies between 0 and 1, such as 0.9; got {level}.")


def middle(values: Floats, level: float, axis: int = -1) -> Floats:
    """Ends of the interval with equal tails that one more draw, like these, falls into with this chance; two in front.

    Of n draws the i-th smallest has i/(n + 1) below it (Weibull's rule). The usual rule, (i - 1)/(n - 1), leaves 0.9%
    too much outside a 90% interval with 200 draws.
    """
    check_level(level)
    return np.asarray(np.quantile(values, ((1 - level) / 2, (1 + level) / 2), axis=axis, method="weibull"))


def together(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast the leading axes of several things, or say which do not fit together."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InputError(f"These leading axes do not broadcast: {listed}.") from None


def first(bad: Booleans) -> tuple[int, ...]:
    """Index of the first True, for error messages that name a place."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape)) if bad.shape else ()


def unmasked(name: str, value: Any) -> Any:
    """Refuse an array of which entries are masked: NumPy would hand out what lies behind the mask."""
    masks = sys.modules.get("numpy.ma")  # where nobody has loaded it, nothing is masked
    if masks is not None and masks.is_masked(value):
        raise InputError(f"{name} has masked entries, which stand for nothing. Fill them in, or leave those rows out.")
    return value


def floats(name: str, value: ArrayLike) -> Floats:
    """Read a finite float array, or say where it is not finite."""
    try:
        array = np.asarray(unmasked(name, value), dtype=np.float64)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers; got {type(value).__name__} ({error}).") from None
    finite = np.isfinite(array)
    if not finite.all():
        place = first(~finite)
        raise InputError(f"{name} must be finite; {name}{list(place) if place else ''} is {array[place]}.")
    return array


def within(name: str, value: Any, low: float, high: float) -> Floats:
    """Read a float array whose entries lie in [low, high], or say which one does not."""
    array = floats(name, value)
    bad = (array < low) | (array > high)
    if bad.any():
        place = first(bad)
        at = f"{name}{list(place)}" if place else name
        limits = f"be at least {low:g}" if high == np.inf else f"lie between {low:g} and {high:g}"
        raise InputError(f"{name} must {limits}; {at} is {array[place]:g}.")
    return array
