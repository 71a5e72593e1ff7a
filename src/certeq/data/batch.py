"""Batch: logged decisions as checked integer rows, each (state, action, reward, next state)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, first, floats, names, unmasked, whole
from certeq.base.display import number, several
from certeq.base.errors import InputError
from certeq.base.limits import check_pairs
from certeq.data.positions import Positions, as_positions
from certeq.data.recipes import Labels, Recipe

if TYPE_CHECKING:
    from certeq.data.reading.choosing import Chosen

ENDED = -1  # stands in ``next_state`` where the episode ended after the row: there is no next state


class Carried(NamedTuple):
    """Where the last value of the episode was taken if one was missing, and by which columns rows were put in order."""

    columns: tuple[str, ...]
    episode: str | None
    time: str | None
    marked: bool = False  # whether episodes were told apart by marks of their ends, which new rows do not have yet


@dataclass(frozen=True)
class Batch:
    """Rows of logged decisions, all arrays of one length n.

    Several data sets can be kept in one batch: ``data_set[i]`` says which one row i belongs to. A batch that was read
    from a table also keeps how columns became states and actions, and what was left out or guessed on the way.
    """

    state: Integers  # (n,), 0 .. n_states - 1
    action: Integers  # (n,), 0 .. n_actions - 1
    next_state: Integers  # (n,), ENDED where the episode ended
    n_states: int
    n_actions: int
    reward: Floats | None = None  # (n,)
    episode: Integers | None = None  # (n,)
    time: Integers | None = None  # (n,)
    data_set: Integers | None = None  # (n,), 0 .. n_data_sets - 1
    n_data_sets: int | None = None
    group: Integers | None = None  # (n,), the group that each row's episode belongs to
    group_names: tuple[str, ...] = ()
    by: str | None = None  # the column that tells groups apart
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    recipe: Recipe | None = None  # columns -> states
    action_recipe: Recipe | None = None  # columns -> actions
    dropped: Mapping[str, int] = field(default_factory=dict)  # why rows are not here -> how many
    goal: str = ""  # which way is better, in words, where rewards have a name
    ends: str | None = None  # how last rows of episodes without marks were read: always, never, or by which column
    decisions: tuple[str, ...] = ()  # what was decided while reading and changes the advice, in words; told first
    notes: tuple[str, ...] = ()  # what was guessed or decided while reading, in words
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # least and largest number of each column
    carried: Carried | None = None  # columns in which last values were taken for missing ones
    n_rows_read: int | None = None  # rows of the table, of which these transitions were made
    fingerprint: str | None = None  # SHA-256 of the file, in hexadecimal
    chosen: Chosen | None = None  # how finely columns were cut, and what was left out, where the rows chose
    beside: Mapping[str, Floats] = field(default_factory=dict)  # columns added up beside the reward, (n,) each
    within: Mapping[str, Integers] = field(default_factory=dict)  # where rows lie within their state by a column, (n,)
    history: Mapping[str, Integers] = field(default_factory=dict)  # ranks in the row before and after, (n, 2); -1: none
    duration: Floats | None = None  # (n,): time until the next decision; 0 where it ended and nobody knows how long
    unit: str = "unit"  # of durations, in words
    positions: Positions | None = None  # where the states lie; those of the recipe unless given

    def __post_init__(self) -> None:
        check_pairs(self.n_states, self.n_actions)
        n = len(np.atleast_1d(np.asarray(self.state)))
        limits = {
            "state": (0, self.n_states),
            "action": (0, self.n_actions),
            "next_state": (ENDED, self.n_states),
            "episode": (None, None),
            "time": (None, None),
            "data_set": (0, self.n_data_sets),
            "group": (0, len(self.group_names) or None),
        }
        for name, (low, high) in limits.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, indices(name, getattr(self, name), n, low, high))
        if self.reward is not None:
            object.__setattr__(self, "reward", _amounts("reward", self.reward, n))
        if self.duration is not None:
            object.__setattr__(self, "duration", _lengths(self.duration, np.asarray(self.next_state) == ENDED))
        object.__setattr__(self, "beside", {name: _amounts(name, each, n) for name, each in self.beside.items()})
        if (self.data_set is None) != (self.n_data_sets is None):
            raise InputError("data_set and n_data_sets go together: give both or neither.")
        for name, recipe, size in (
            ("recipe", self.recipe, self.n_states),
            ("action_recipe", self.action_recipe, self.n_actions),
        ):
            if recipe is not None and recipe.n_states != size:
                raise InputError(f"{name} makes {recipe.n_states} of them, but the batch has {size}.")
        dropped = {str(why): whole(f"dropped[{why!r}]", number, 0) for why, number in self.dropped.items()}
        object.__setattr__(self, "dropped", dropped)
        object.__setattr__(self, "decisions", tuple(map(str, self.decisions)))
        object.__setattr__(self, "notes", tuple(map(str, self.notes)))
        if self.n_rows_read is not None:
            object.__setattr__(self, "n_rows_read", whole("n_rows_read", self.n_rows_read, 0))
        given = self.positions if self.positions is not None or self.recipe is None else self.recipe.positions
        object.__setattr__(self, "positions", as_positions(given, self.n_states))
        object.__setattr__(self, "state_names", names("state", self.state_names, self.n_states))
        object.__setattr__(self, "action_names", names("action", self.action_names, self.n_actions))

    def take(self, rows: Integers | Booleans) -> Batch:
        """Some of the rows; states, actions and all else stay what they are."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        arrays: dict[str, Any] = {name: part[rows] for name, part in parts.items() if isinstance(part, np.ndarray)}
        named = {each: getattr(self, each) for each in ("beside", "within", "history")}
        some: dict[str, Any] = {each: {name: part[rows] for name, part in by.items()} for each, by in named.items()}
        return replace(self, **arrays, **some)

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        parts = [several(len(self), "row"), several(self.n_states, "state"), several(self.n_actions, "action")]
        parts += [] if self.episode is None else [several(len(np.unique(self.episode)), "episode")]
        parts += [] if self.n_data_sets is None else [several(self.n_data_sets, "data set")]
        parts += [f"{int(self.ended.sum()):,} ended", "no rewards" if self.reward is None else "rewards"]
        return f"Batch({', '.join(parts)})"

    @property
    def ended(self) -> Booleans:
        """Which rows ended their episode, ``(n,)``."""
        return np.asarray(self.next_state == ENDED)

    def lasting(self, durations: Floats) -> str:
        """From which to which duration these go, in words: 4 to 90 days."""
        low, high = (number(float(each)) for each in (durations.min(), durations.max()))
        unit, *of = self.unit.split(" ", 1)
        return " ".join([low if low == high else f"{low} to {high}", unit if high == "1" else f"{unit}s", *of])

    @property
    def starts(self) -> Floats:
        """Where episodes begin, ``(S,)``: shares of first states; without episodes, shares of all rows' states."""
        often = np.bincount(self.state[self.first_rows], minlength=self.n_states)
        return often / often.sum() if len(self) else np.full(self.n_states, 1 / self.n_states)

    @property
    def first_rows(self) -> Integers:
        """The first row of each episode; without episodes, every row."""
        if self.episode is None:
            return np.arange(len(self))
        order = np.lexsort((self.episode,) if self.time is None else (self.time, self.episode))
        return np.asarray(order[np.append(True, np.diff(self.episode[order]) != 0)[: len(order)]])

    @property
    def recipe_or_numbers(self) -> Recipe:
        """The recipe; for rows that never were a table, one that reads a column ``state`` of the states' names."""
        if self.recipe is not None:
            return self.recipe
        numbered = self.state_names == tuple(map(str, range(self.n_states)))
        labels = (
            Labels("state", "integer", tuple(range(self.n_states)))
            if numbered
            else Labels("state", "text", self.state_names)
        )
        return Recipe((labels,), np.arange(self.n_states)[:, None])


def _amounts(name: str, values: ArrayLike, n: int) -> Floats:
    """Read one finite number for each row."""
    amounts = floats(name, values)
    if amounts.shape != (n,):
        raise InputError(f"{name} has shape {amounts.shape}, but there are {n} rows.")
    return amounts


def _lengths(values: ArrayLike, ended: Booleans) -> Floats:
    """Read durations: above 0, or 0 where the episode ended and nobody knows how long that took."""
    lengths = _amounts("duration", values, len(ended))
    bad = (lengths < 0) | ((lengths == 0) & ~ended)
    if bad.any():
        (row,) = first(bad)
        raise InputError(f"Row {row}: the duration is {lengths[row]:g}, but the next decision must come later.")
    return lengths


def indices(name: str, values: object, n: int, low: int | None, high: int | None) -> Integers:
    """Read whole numbers in [low, high), or name the first row that is not one."""
    try:
        array = np.asarray(unmasked(name, values))
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{name} must be one number for each row; it has lists of several lengths.") from None
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape}, but there are {n} rows.")
    if array.dtype.kind == "u" and array.max(initial=0) >= 2**63:
        raise InputError(f"Row {int(array.argmax())}: {name} is {array.max()}, but must be below 2^63.")
    numbers = array.astype(np.int64, copy=False) if array.dtype.kind in "biu" else _whole(name, array)
    bad = np.zeros(n, dtype=bool)
    if low is not None:
        bad |= numbers < low
    if high is not None:
        bad |= numbers >= high
    if bad.any():
        (row,) = first(bad)
        limit = f"at least {low}" if high is None else f"between {low} and {high - 1}"
        raise InputError(f"Row {row}: {name} is {numbers[row]}, but must be {limit}.")
    return numbers


def _whole(name: str, array: np.ndarray) -> Integers:
    """Read floats that are whole numbers as integers."""
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    values = floats(name, array)
    bad = (values != np.round(values)) | (np.abs(values) >= 2**53)
    if bad.any():
        (row,) = first(bad)
        raise InputError(f"Row {row}: {name} is {values[row]}, but must be a whole number below 2^53.")
    return values.astype(np.int64)
