"""Positions: where each state lies, so that a state can learn from its neighbors.

A state has a place on each of d axes, one for each column that the states were made of. An axis is one of

- ``line``: places are numbered along it, and two places are as far apart as their numbers. A move beyond the last place
  ends there. Ordered bins and whole numbers lie on lines.
- ``ring``: a line whose last place is next to its first: hours of the day, directions.
- ``label``: two places are the same or not, and that is all. Colors, wards, drugs.

No two states share a place. A state may also have none (a row of NaN): the state "discharged" among states that are
cells of vital signs. Nothing is near it, and a move there leads there from everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Integers
from certeq.base.errors import InputError, unknown

AXES = ("line", "ring", "label")
SMALLEST_RING = 5  # so that two steps one way and two steps the other lead to different places
MOST_DISPLACEMENTS = 2**62  # displacements are told apart by one number


@dataclass(frozen=True)
class Positions:
    """Places of S states on d axes; ``axes`` says of each axis whether it is a line, a ring or a label."""

    places: Any  # (S, d) whole numbers, a row of NaN for a state without a place; integers from 0 once it is born
    axes: tuple[str, ...] = ()  # all lines by default
    placed: Any = None  # (S,) whether a state has a place; read off the NaNs unless given

    def __post_init__(self) -> None:
        places, placed = _read(self.places)
        if self.placed is not None:
            placed = placed & np.asarray(self.placed, dtype=bool)
        d = places.shape[1]
        axes = tuple(self.axes) or ("line",) * d
        if len(axes) != d:
            raise InputError(f"axes needs a word for each of {d} axes; got {len(axes)}.")
        for axis in axes:
            if axis not in AXES:
                raise unknown("kind of axis", axis, AXES)
        if placed.any():
            places = np.where(placed[:, None], places - places[placed].min(axis=0), 0)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "placed", placed)
        object.__setattr__(self, "axes", axes)
        for k, (axis, size) in enumerate(zip(axes, self.sizes.tolist(), strict=True)):
            if axis == "ring" and size < SMALLEST_RING:
                raise InputError(f"A ring has at least {SMALLEST_RING} places; axis {k} has {size}. Call it a label.")
        if np.prod(2.0 * self.sizes) >= MOST_DISPLACEMENTS:
            raise InputError(f"Positions on {d} axes have too many places to tell displacements apart; leave axes out.")
        same = _twice(places, placed)
        if same is not None:
            raise InputError(f"States {same[0]} and {same[1]} have the same place; each state needs one of its own.")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Positions)
            and self.axes == other.axes
            and np.array_equal(self.placed, other.placed)
            and np.array_equal(self.places, other.places)
        )

    def __hash__(self) -> int:
        return hash((self.axes, self.places.tobytes(), self.placed.tobytes()))

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.places)

    @cached_property
    def sizes(self) -> Integers:
        """How many places each axis has, ``(d,)``."""
        return np.asarray(self.places[self.placed].max(axis=0, initial=0) + 1)


def as_positions(given: Any, n_states: int) -> Positions | None:
    """Read positions: None, `Positions`, or an array ``(S, d)`` or ``(S,)`` whose axes are lines."""
    if given is None:
        return None
    positions = given if isinstance(given, Positions) else Positions(given)
    if positions.n_states != n_states:
        raise InputError(f"positions needs a row for each of {n_states} states; got {positions.n_states}.")
    return positions


def _read(given: Any) -> tuple[Integers, Booleans]:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("positions must be numbers, one row for each state and one column for each axis.") from None
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"positions have the shape (states, axes); got {array.shape}.")
    nowhere = np.isnan(array)
    placed = np.asarray(~nowhere.any(axis=1))
    mixed = nowhere.any(axis=1) & ~nowhere.all(axis=1)
    if mixed.any():
        raise InputError(f"State {int(np.argmax(mixed))} has a place on some axes only; a state has all or none.")
    bad = placed & ((array != np.round(array)) | ~(np.abs(array) < 2**31)).any(axis=1)
    if bad.any():
        state = int(np.argmax(bad))
        raise InputError(
            f"The position of state {state} is {array[state].tolist()}; places are whole numbers, such as the number "
            "of the cell on each axis."
        )
    return np.where(placed[:, None], array, 0).astype(np.int64), placed


def _twice(places: Integers, placed: Booleans) -> tuple[int, int] | None:
    """Two states with one place, if there are such."""
    at = np.flatnonzero(placed)
    order = at[np.lexsort(places[at].T)]
    same = (np.diff(places[order], axis=0) == 0).all(axis=1)
    if not same.any():
        return None
    i = int(np.argmax(same))
    low, high = sorted((int(order[i]), int(order[i + 1])))
    return low, high
