"""States, or actions, as combinations of what several columns say: how codes are combined, and how two lists merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certeq.base.arrays import Integers
from certeq.data.counting.coding import EXACT, RANGE, Coded, LabelSeries, listed
from certeq.data.counting.tallying import Codes
from certeq.data.recipes import Bins, Labels, Recipe
from certeq.data.recipes.columns import NUMERIC, compact, iso


@dataclass(frozen=True)
class Grid:
    """Combinations of codes as one code each: with every further axis, (code so far) x size + (code on it)."""

    sizes: tuple[int, ...]
    listed: tuple[Integers | None, ...]  # for each axis the combinations that have a code; None: all of them

    @property
    def size(self) -> int:
        """How many codes there are."""
        size = 1
        for more, known in zip(self.sizes, self.listed, strict=True):
            size = size * more if known is None else len(known)
        return size

    def cells(self, codes: Integers) -> Integers:
        """Take codes apart, ``(n, axes)``."""
        columns = []
        for size, known in zip(reversed(self.sizes), reversed(self.listed), strict=True):
            codes, last = np.divmod(codes if known is None else known[codes], size)
            columns.append(last)
        return np.stack(columns[::-1], axis=1)

    def alike(self, other: Grid) -> bool:
        """Whether another grid has the same codes for the same combinations."""
        known = zip(self.listed, other.listed, strict=True)
        return self.sizes == other.sizes and all(
            one is two or (one is not None and two is not None and np.array_equal(one, two)) for one, two in known
        )


def combine(coded: Sequence[Coded]) -> tuple[Grid, Codes, Codes]:
    """Combine the codes of several columns; gives those of all rows now, and then."""
    first = coded[0]
    now, then = first.now, first.then
    grid = Grid((first.axis.size,), (None,))
    for more in coded[1:]:
        size = more.axis.size
        if grid.size * size <= RANGE:
            now, then = now * np.uint32(size) + more.now, then * np.uint32(size) + more.then
            known: Integers | None = None
        else:
            wide = [before.astype(np.int64) * size + code for before, code in ((now, more.now), (then, more.then))]
            (now, then), known = listed(wide)
        grid = Grid((*grid.sizes, size), (*grid.listed, known))
    return grid, now, then


@dataclass(frozen=True)
class Space:
    """States or actions: row k of ``cells`` holds the codes of number k on each axis; sorted, all different."""

    axes: tuple[LabelSeries | Bins, ...]
    cells: Integers  # (n, axes)

    def __len__(self) -> int:
        return len(self.cells)

    def recipe(self) -> Recipe:
        """As the recipe by which new rows are mapped the same way."""
        return Recipe(tuple(_final(axis) for axis in self.axes), self.cells)


def used(axes: Sequence[LabelSeries | Bins], cells: Integers) -> Space:
    """Make a space of cells that occur, without the labels that do not."""
    kept, columns = [], []
    for axis, codes in zip(axes, cells.T, strict=True):
        if isinstance(axis, LabelSeries):
            there, codes = compact(codes, axis.size) if len(codes) else (codes, codes)
            axis = replace(axis, values=axis.values.gather(there))
        kept.append(axis)
        columns.append(codes)
    return Space(tuple(kept), np.stack(columns, axis=1))


def same_axis(one: LabelSeries | Bins, other: LabelSeries | Bins) -> bool:
    """Whether the codes of two axes stand for the same things."""
    if isinstance(one, Bins) or isinstance(other, Bins):
        return one == other
    return one.kind == other.kind and bool(one.values.equals(other.values))


def union(one: Space, other: Space) -> tuple[Space, Integers, Integers]:
    """Merge two spaces; gives where the numbers of each went, in increasing order."""
    merged = [_merge(a, b) for a, b in zip(one.axes, other.axes, strict=True)]
    axes = tuple(axis for axis, _, _ in merged)
    mine = np.stack([place[codes] for (_, place, _), codes in zip(merged, one.cells.T, strict=True)], axis=1)
    yours = np.stack([place[codes] for (_, _, place), codes in zip(merged, other.cells.T, strict=True)], axis=1)
    if np.array_equal(mine, yours):
        same = np.arange(len(mine))
        return Space(axes, mine), same, same
    cells, codes = np.zeros((1, 0), dtype=np.int64), np.zeros(len(mine) + len(yours), dtype=np.int64)
    for axis, column in zip(axes, np.concatenate([mine, yours]).T, strict=True):
        keys, codes = compact(codes * axis.size + column, len(cells) * axis.size)
        before, last = np.divmod(keys, axis.size)
        cells = np.concatenate([cells[before], last[:, None]], axis=1)
    return Space(axes, cells), codes[: len(mine)], codes[len(mine) :]


def _merge(one: LabelSeries | Bins, other: LabelSeries | Bins) -> tuple[LabelSeries | Bins, Integers, Integers]:
    """Merge the labels of two axes; gives where the codes of each went."""
    import polars as pl

    if isinstance(one, Bins) or isinstance(other, Bins) or one.values.equals(other.values):
        same = np.arange(one.size)
        return one, same, same
    if one.kind != other.kind:
        one, other = _as_floats(one), _as_floats(other)
    values = pl.concat([one.values, other.values]).unique().sort()
    places = (values.search_sorted(axis.values).to_numpy().astype(np.int64) for axis in (one, other))
    return replace(one, values=values), *places


def _as_floats(axis: LabelSeries) -> LabelSeries:
    """Whole numbers and flags of one file beside floats of another; other kinds are not put together."""
    import polars as pl

    assert axis.kind in NUMERIC
    return replace(axis, kind="float", values=axis.values.cast(pl.Float64))


def _final(axis: LabelSeries | Bins) -> Labels | Bins:
    """An axis as recipes have it; floats that are all whole are integers."""
    if isinstance(axis, Bins):
        return axis
    values: Any = axis.values.to_numpy() if axis.kind != "text" else axis.values.to_list()
    kind = axis.kind
    if kind == "float" and (values == np.round(values)).all() and np.abs(values).max(initial=0) < EXACT:
        kind, values = "integer", values.astype(np.int64)
    if kind == "date":
        return Labels(axis.column, kind, tuple(iso(values.view("datetime64[us]"))))
    if kind == "boolean":
        values = values.astype(bool)
    return Labels(axis.column, kind, tuple(values if kind == "text" else values.tolist()))
