"""Recipe: how the columns of a table become states, fitted once and kept, so that new rows are mapped the same way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from certeq.base.arrays import Integers
from certeq.base.display import shorten
from certeq.base.errors import InputError, nearest
from certeq.base.forms import Whole, damaged, fill, whole_table
from certeq.data.positions import MOST_DISPLACEMENTS, Positions
from certeq.data.recipes.axes import FORMS, NOWHERE, PRESENT, UNKNOWN, Axis, Bins, Labels, OrMissing, Present
from certeq.data.recipes.columns import TABLE_LIMIT, Column, clipped, compact, label_text, of_one_length, shown
from certeq.data.recipes.containers import column

VERSION = 1
LONGEST_UNIT = 20  # characters


class RecipeForm(msgspec.Struct):
    """A recipe as files have it."""

    version: Whole
    axes: Annotated[list[Any], Meta(min_length=1)]
    cells: Annotated[list[list[Whole]], Meta(min_length=1)]


@dataclass(frozen=True)
class Recipe:
    """Columns to codes, one for each axis, and combinations of codes to states.

    A state is a combination that occurred in the data: row k of ``cells`` holds the codes of state k, sorted.
    """

    axes: tuple[Axis, ...]
    cells: Integers = field(repr=False)  # (n_states, n_axes)

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells, dtype=np.int64)
        if not self.axes or cells.ndim != 2 or cells.shape[1] != len(self.axes) or not len(cells):
            raise InputError(
                f"A recipe needs at least one axis, and cells of shape (states, {len(self.axes)}); got {cells.shape}."
            )
        sizes = np.array([axis.size for axis in self.axes])
        if (cells < 0).any() or (cells >= sizes).any():
            raise InputError("The cells of a recipe must be codes of its axes; one of them is out of range.")
        step = np.diff(cells, axis=0)
        leading = step[np.arange(len(step)), np.argmax(step != 0, axis=1)]
        if (leading <= 0).any():
            raise InputError("The cells of a recipe must be sorted and all different.")
        object.__setattr__(self, "axes", tuple(self.axes))
        object.__setattr__(self, "cells", cells)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.axes == other.axes and np.array_equal(self.cells, other.cells)

    def __hash__(self) -> int:
        return hash((self.axes, self.cells.tobytes()))

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return len(self.cells)

    @property
    def cut(self) -> bool:
        """Whether a column of numbers was cut, so that a state holds several of its values."""
        return not all(isinstance(axis.present if isinstance(axis, OrMissing) else axis, Labels) for axis in self.axes)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that a table needs, in order."""
        return tuple(name for axis in self.axes for name in axis.columns)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """A name for each axis, made of its columns."""
        return tuple(" + ".join(axis.columns) for axis in self.axes)

    @property
    def possible(self) -> int:
        """How many combinations of codes there could be."""
        return math.prod(axis.size for axis in self.axes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each state, such as ``dose=low, age 40 to 55``; all different."""
        words = self._brief if len(self.axes) == 1 else self._words
        names = [", ".join(w[c] for w, c in zip(words, cell, strict=True)) for cell in self.cells.tolist()]
        often = Counter(names)  # labels that contain commas may run together
        return tuple(f"{name} (state {i})" if often[name] > 1 else name for i, name in enumerate(names))

    def measured(self, units: Mapping[str, str]) -> Recipe:
        """The same with units written after the numbers of some columns, as far as it has them."""
        axes = (
            OrMissing(_measured(axis.present, units)) if isinstance(axis, OrMissing) else _measured(axis, units)
            for axis in self.axes
        )
        return replace(self, axes=tuple(axes))

    @cached_property
    def positions(self) -> Positions | None:
        """Where each state lies: on a line for each column with an order, "same or not" for each other one.

        None where no column has an order, or where there are too many columns to tell displacements apart.
        """
        return self.placed({}, ())

    def placed(self, ordered: Mapping[str, Iterable[Any]], unordered: Iterable[str]) -> Positions | None:
        """Where each state lies if the labels of some columns have the order given, and others have none."""
        without = tuple(unordered)
        for name in (*ordered, *without):
            if name not in self.column_names:
                raise InputError(
                    f"The states have no column {name!r} to order.{nearest(name, self.column_names)} They have: "
                    f"{', '.join(self.column_names)}."
                )
        along = [_along(axis, ordered, without) for axis in self.axes]
        kinds = tuple("label" if line is None else "line" for line in along)
        if "line" not in kinds and not without:
            return None
        codes = zip(self.cells.T, along, strict=True)
        places = np.stack([code if line is None else line[code] for code, line in codes], axis=1)
        lost = (places == NOWHERE).any(axis=1)
        if np.prod(2.0 * (np.ptp(places, axis=0) + 1)) >= MOST_DISPLACEMENTS:
            return None
        return Positions(places, kinds, ~lost) if not lost.all() else None

    def parts(self, states: Integers) -> list[tuple[str, ...]]:
        """Words for some states, one for each axis: a table that reads better than long names."""
        words = self._brief
        return [tuple(w[c] for w, c in zip(words, cell, strict=True)) for cell in self.cells[states].tolist()]

    @cached_property
    def _brief(self) -> list[list[str]]:
        words = [axis.words(alone=True) for axis in self.axes]
        return words if len(words) == 1 else list(map(shown, words))

    def encode(self, table: Mapping[str, Any]) -> Integers:
        """State of each row of a table; -1 where a label or a combination was never seen, or a value is missing."""
        columns = self.read(table)
        return self.states([axis.codes(columns) for axis in self.axes])

    def read(self, table: Mapping[str, Any]) -> dict[str, Column]:
        """Take the columns that the recipe needs out of a table."""
        missing = [name for name in self.column_names if name not in table]
        if missing:
            there = [str(name) for name in table]
            raise InputError(
                f"The rows have no column {missing[0]!r}, which the states are made of.{nearest(missing[0], there)} "
                f"They have: {', '.join(there[:30])}."
            )
        return of_one_length({name: column(table[name], name) for name in self.column_names})

    def states(self, codes: list[Integers]) -> Integers:
        """State of each row from its code on each axis."""
        state = np.zeros(len(codes[0]), dtype=np.int64)
        for axis, known, code in zip(self.axes, self._known, codes, strict=True):
            key = np.where((state < 0) | (code < 0), UNKNOWN, state * axis.size + code)
            state = _places(known, key)
        return state

    def explain(self, table: Mapping[str, Any], row: int) -> str:
        """Say why a row has no state; an empty text where it has one."""
        names = [name for name in self.column_names if name in table]
        one = self.read({name: _one(table[name], row) for name in names})
        return "" if self.encode(one)[0] >= 0 else self.explain_many(one, np.array([0]))[0]

    def explain_many(self, table: Mapping[str, Any], rows: Integers) -> list[str]:
        """Say why each of some rows, none of which has a state, has none; rows that fail alike are looked at once."""
        part = {name: values.take(rows) for name, values in self.read(table).items()}
        codes = np.stack([axis.codes(part) for axis in self.axes], axis=1)
        marks = np.stack([part[axis.columns[0]].distinct.codes for axis in self.axes], axis=1)
        failing = codes < 0
        at, fails = failing.argmax(axis=1), np.logical_or.reduce(failing, axis=1).tolist()
        alike: dict[tuple[int, ...], str] = {}
        reasons = []
        for row, axis in enumerate(at.tolist()):
            if not fails[row]:
                key = (-1, *codes[row].tolist())
            else:  # a cluster fails by any of its columns, so its rows are each looked at
                key = (axis, int(marks[row, axis]), row if len(self.axes[axis].columns) > 1 else 0)
            if key not in alike:
                alike[key] = self._why(part, row, axis) if fails[row] else self._unmet(codes[row].tolist())
            reasons.append(alike[key])
        return reasons

    def _why(self, table: Mapping[str, Column], row: int, failing: int) -> str:
        """Why a row has no code on an axis."""
        axis = self.axes[failing]
        gone = [name for name in axis.columns if table[name].missing[row] and not isinstance(axis, OrMissing)]
        return f"{clipped(gone[0])!r} is missing" if gone else axis.why(table, row)

    def _unmet(self, codes: list[int]) -> str:
        parts = [words[code] for words, code in zip(self._words, codes, strict=True)]
        return f"the combination {', '.join(parts)} never occurred in the data"

    @cached_property
    def _words(self) -> list[list[str]]:
        return [axis.words(alone=False) for axis in self.axes]

    @cached_property
    def _known(self) -> list[Integers]:
        """For each axis the keys (state so far, code) that occur: a state so far is a different beginning of a cell."""
        known, state = [], np.zeros(len(self.cells), dtype=np.int64)
        for axis, code in zip(self.axes, self.cells.T, strict=True):
            keys, state = compact(state * axis.size + code, (int(state.max()) + 1) * axis.size)
            known.append(keys)
        return known

    @property
    def form(self) -> RecipeForm:
        """As files have it."""
        return RecipeForm(*self.form_without_cells, self.cells.tolist())

    @property
    def form_without_cells(self) -> tuple[int, list[Any]]:
        """Version and axes, as files have them."""
        return VERSION, list(self.axes)

    def to_json(self) -> dict[str, Any]:
        """As a plain dict that JSON can hold."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.form))
        return plain

    @classmethod
    def from_json(cls, given: Any) -> Recipe:
        """Read back what `to_json` wrote."""
        return cls.of(fill(RecipeForm, given, "recipe"))

    @classmethod
    def of(cls, form: RecipeForm) -> Recipe:
        """The recipe that a file has."""
        axes = cls.read_axes(form.version, form.axes)
        return cls(axes, whole_table("recipe", "cells", form.cells, (len(form.cells), len(axes))))

    @staticmethod
    def read_axes(version: int | float, axes: list[Any]) -> tuple[Axis, ...]:
        """The axes that a file has."""
        if version != VERSION:
            raise InputError(f"The recipe has version {version}; this certeq reads version {VERSION}.")
        return tuple(_axis(axis, f"axes[{i}]") for i, axis in enumerate(axes))


def _axis(given: Any, place: str) -> Axis:
    fields = fill(dict[str, Any], given, "recipe", place)
    if PRESENT in fields:
        inner = _axis(fields[PRESENT], f"{place}.{PRESENT}")
        if isinstance(inner, OrMissing):
            raise damaged("recipe", place, "missing values have one code, not two")
        return OrMissing(inner)
    form = next((FORMS[name] for name in FORMS if name in fields), None)
    if form is None:
        raise damaged("recipe", place, f"it needs 'labels', 'edges' or 'clusters'; got {', '.join(fields)}")
    return fill(form, fields, "recipe", place)


def _measured(axis: Present, units: Mapping[str, str]) -> Present:
    named = [name for name in axis.columns if name in units]
    if not named:
        return axis
    if isinstance(axis, Bins) or (isinstance(axis, Labels) and axis.kind in ("integer", "float")):
        return replace(axis, unit=shorten(units[named[0]], LONGEST_UNIT))
    raise InputError(
        f"Column {named[0]!r} is not a column of numbers that is cut or listed by itself, so it cannot have a unit. "
        "Leave unit= out for it (--unit)."
    )


def _along(axis: Axis, ordered: Mapping[str, Iterable[Any]], unordered: tuple[str, ...]) -> Integers | None:
    """Place of each code on a line: as told, or as the axis knows it; None without an order."""
    told = [name for name in axis.columns if name in ordered]
    if any(name in unordered for name in axis.columns):
        if told:
            raise InputError(f"Column {told[0]!r} is said to be both ordered and unordered; say one.")
        return None
    if not told:
        return axis.places
    (name,) = told[:1]
    if not isinstance(axis, Labels):
        raise InputError(f"Column {name!r} is cut into cells, not made of labels, and needs no order of them.")
    place = {label_text(label): i for i, label in enumerate(ordered[name])}
    missing = [word for word in map(label_text, axis.labels) if word not in place]
    if missing:
        raise InputError(
            f"The order of column {name!r} leaves out {missing[0]!r}; name all of its labels: "
            f"{', '.join(map(label_text, axis.labels))}."
        )
    return np.array([place[label_text(label)] for label in axis.labels], dtype=np.int64)


def _one(values: Any, row: int) -> Any:
    """The given row alone, before anything is converted: a table may have many rows to explain."""
    return values.alone(row) if isinstance(values, Column) else values[row : row + 1]


def _places(known: Integers, key: Integers) -> Integers:
    """Place of each key among the sorted known ones, UNKNOWN where it is none of them."""
    top = int(known[-1])
    if top < max(TABLE_LIMIT, 4 * len(key)):
        place = np.full(top + 2, UNKNOWN, dtype=np.int64)  # the last entry answers -1 and whatever is too large
        place[known] = np.arange(len(known))
        return place[np.minimum(key, top + 1)]
    at = np.minimum(np.searchsorted(known, key), len(known) - 1)
    return np.where(known[at] == key, at, UNKNOWN)
