"""Where the states of a recipe lie on paper: on a line or a grid where their columns have an order, else row by row.

With up to four columns the sheet is nested, like a table with grouped lines: within each bin of the first column all
bins of the second, and the same across. What is near on paper is then near in the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from certeq.base.arrays import Integers
from certeq.data.recipes import Bins, Labels, Recipe

SIDE = 48  # cells along one side of a nested sheet
SPARSE = 6  # a nested sheet may have this many times as many cells as there are states
WIDE = 2.5  # how much wider than high a sheet without order is
LABELED = 40  # rows of such a sheet that have a number written beside them: more would overlap


@dataclass(frozen=True)
class Side:
    """What is written along one side of a sheet: the inner labels at every cell, the outer ones over groups of them."""

    titles: tuple[str, ...]
    inner: tuple[str, ...] = ()
    outer: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """The place of each state, and what is written beside it."""

    row: Integers  # (S,)
    column: Integers  # (S,)
    rows: int
    columns: int
    down: Side
    across: Side
    ordered: bool  # one or two columns of numbers: a step on paper is a step in the data

    def fill(self, values: object) -> np.ndarray:
        """Values of the states ``(S,)`` on the sheet, ``(rows, columns)``; NaN where no state is."""
        paper = np.full((self.rows, self.columns), np.nan)
        paper[self.row, self.column] = np.asarray(values, dtype=np.float64)
        return paper


def sheet(recipe: Recipe) -> Sheet:
    """Lay the states of a recipe out."""
    sizes = [axis.size for axis in recipe.axes]
    n = len(sizes)
    numeric = [isinstance(axis, Bins) or (isinstance(axis, Labels) and axis.kind != "text") for axis in recipe.axes]
    ordered = n <= 2 and all(numeric)
    half = min(range(n // 2, (n + 1) // 2 + 1), key=lambda k: max(prod(sizes[:k]), prod(sizes[k:]))) if n > 1 else 0
    down, across = prod(sizes[:half]), prod(sizes[half:])
    if n > 4 or max(down, across) > SIDE or down * across > SPARSE * max(recipe.n_states, 16):
        return _row_by_row(recipe)
    cells = recipe.cells
    row, column = _stack(cells[:, :half], sizes[:half]), _stack(cells[:, half:], sizes[half:])
    return Sheet(row, column, down, across, _side(recipe, 0, half), _side(recipe, half, n), ordered)


def _row_by_row(recipe: Recipe) -> Sheet:
    S = recipe.n_states
    columns = max(1, ceil((WIDE * S) ** 0.5))
    rows = ceil(S / columns)
    number = np.arange(S)
    every = ceil(rows / LABELED)
    numbers = tuple("" if i % every else f"{columns * i:,}" for i in range(rows))
    down = Side(("number of the first state in the row",), numbers)
    return Sheet(number // columns, number % columns, rows, columns, down, Side(()), ordered=False)


def _stack(codes: Integers, sizes: list[int]) -> Integers:
    """One place for each combination of codes, the last code running fastest."""
    place = np.zeros(len(codes), dtype=np.int64)
    for code, size in zip(codes.T, sizes, strict=True):
        place = place * size + code
    return place


def _side(recipe: Recipe, begin: int, end: int) -> Side:
    axes = recipe.axes[begin:end]
    names = recipe.axis_names[begin:end]
    words = [tuple(axis.words(alone=True)) for axis in axes]
    if not axes:
        return Side(())
    if len(axes) == 1:
        return Side((names[0],), words[0])
    return Side((names[0], f"within it, {names[1]}"), words[1] * axes[0].size, words[0])
