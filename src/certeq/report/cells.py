"""Drawing cells: boxes of color with numbers in them and words along two sides. What all maps are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Booleans, Floats
from certeq.base.display import shorten
from certeq.report import style
from certeq.report.sheet import Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 6.8  # inches
LABEL = 26  # characters of a state's or an action's name in a picture
RASTER = 1500  # cells; a sheet of more becomes an image
SHADES, LEVELS = "YlGnBu", 64
GAP = 0.03  # of a cell, between it and the next
EMPTY, HIDDEN = "#c9ced3", "#b4bac0"
HATCH: Any = {"facecolor": "none", "edgecolor": "#8a9199", "hatch": "//////", "linewidth": 0}


@dataclass(frozen=True)
class ValueSheet:
    """One sheet of values."""

    title: str
    values: Floats  # (rows, columns), NaN where nothing is
    empty: Booleans  # (rows, columns): never tried
    hidden: Booleans  # (rows, columns): not told


def per_line(panels: int) -> int:
    """How many sheets stand side by side."""
    return panels if panels <= 3 else ceil(panels / 2)


def canvas(shape: tuple[int, int], across: Side, panels: int = 1, *, extra: float = 0.0) -> tuple[Figure, list[Any]]:
    """A figure with an axis for each sheet, its cells about square and large enough to read, with room for words."""
    rows, columns = shape
    beside = per_line(panels)
    lines = ceil(panels / beside)
    cell = (WIDTH - 1.9) / (beside * columns)
    low = 0.3 if rows <= 6 else 0.2 if rows <= 24 else 0.14
    sheet = min(rows * min(max(cell, low), 0.36), 8.0)
    figure, axes = style.canvas(beside, lines, width=WIDTH, height=sheet + 0.4 + _room(across) + extra / lines)
    for axis in axes.flat[panels:]:
        axis.set_visible(False)
    for axis in axes.flat:
        axis.set(xlim=(0, columns), ylim=(rows, 0))
        axis.grid(visible=False)
        axis.tick_params(which="both", length=0)
        axis.spines[:].set_visible(False)
    return figure, list(axes.flat[:panels])


def _room(across: Side) -> float:
    """Inches that the words below a sheet take."""
    words = _words(across, "x")
    upright = 0.05 * max(map(len, words), default=0) if _upright(words) else 0.15
    return upright + 0.18 * (len(across.titles) + bool(across.outer))


def paint(axis: Any, panel: ValueSheet, scale: Any) -> None:
    """Color the cells; hatch those that are empty, gray those that are hidden."""
    import matplotlib as mpl

    shown = ~(np.isnan(panel.values) | panel.empty | panel.hidden)
    shades = mpl.colormaps[SHADES].resampled(LEVELS)
    share = np.clip(np.ma.getdata(scale(np.where(shown, panel.values, scale.vmin))), 0, 1)
    level = np.where(shown, np.minimum(LEVELS * share, LEVELS - 1), -1).astype(np.int64)
    colors = [(level == color, shades(int(color))) for color in np.unique(level[shown])]
    fill(axis, [*colors, (panel.hidden, HIDDEN), (panel.empty, None)])


def fill(axis: Any, layers: Sequence[tuple[Booleans, Any]]) -> None:
    """Fill cells ``(rows, columns)`` with colors; without a color they are hatched.

    Very many cells become an image, in which hatching is gray: each cell as a box of its own would make a large file.
    """
    shape = layers[0][0].shape
    if shape[0] * shape[1] <= RASTER:
        for cells, color in layers:
            _boxes(axis, cells, **(HATCH if color is None else {"facecolor": color, "edgecolor": "none"}))
        return
    from matplotlib.colors import to_rgba

    image = np.zeros((*shape, 4))
    for cells, color in layers:
        image[cells] = to_rgba(EMPTY if color is None else color)
    axis.imshow(image, extent=(0, shape[1], shape[0], 0), aspect="auto", interpolation="none")


def _boxes(axis: Any, cells: Booleans, **look: Any) -> None:
    """Draw some cells as one path, which keeps the file small, with a little space between them."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    row, column = (place[:, None] for place in np.nonzero(cells))
    if len(row):
        x = column + np.array([GAP, 1 - GAP, 1 - GAP, GAP, GAP])
        y = row + np.array([GAP, GAP, 1 - GAP, 1 - GAP, GAP])
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(row)
        axis.add_patch(PathPatch(Path(np.stack([x.ravel(), y.ravel()], axis=1), codes), in_layout=False, **look))


def numbers(axis: Any, panel: ValueSheet, scale: Any, instead: str) -> None:
    """Write each cell's number into it."""
    for (row, column), value in np.ndenumerate(panel.values):
        if np.isnan(value) or panel.empty[row, column]:
            continue
        if panel.hidden[row, column]:
            write(axis, row, column, instead, "#10242c")
        else:
            write(axis, row, column, _brief(float(value)), "#ffffff" if scale(value) > 0.55 else "#10242c")


def write(axis: Any, row: int, column: int, text: str, color: str) -> None:
    """Write a word into a cell."""
    columns = axis.get_xlim()[1]
    size = 7.5 if columns <= 8 else 6.0 if columns <= 12 else 5.0
    look: Any = {"ha": "center", "va": "center", "fontsize": size, "color": color, "in_layout": False}
    axis.text(column + 0.5, row + 0.53, text, **look)


def _brief(value: float) -> str:
    """A number that fits into a cell."""
    if value == int(value):
        return f"{int(value)}" if value < 10_000 else f"{value / 1000:.0f}k"
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.3g}"


def sides(axis: Any, down: Side, across: Side, *, left: bool = True) -> None:
    """Write what rows and columns are, the rows' words only on the left of several sheets."""
    _side(axis, down, "y", shown=left)
    _side(axis, across, "x", shown=True)


def _side(axis: Any, side: Side, which: str, *, shown: bool) -> None:
    """Inner labels at every cell, outer ones farther out, lines between their groups."""
    ticks = getattr(axis, f"set_{which}ticks")
    words = _words(side, which) if shown else [""] * len(side.inner)
    upright: Any = {"rotation": 90} if which == "x" and _upright(words) else {}
    nested = bool(side.outer)
    ticks(np.arange(len(words)) + 0.5, words, minor=nested, fontsize=6 if nested else 7, **upright)
    getattr(axis, f"set_{which}label")("\n".join(shorten(part, 48) for part in side.titles) if shown else "")
    if not nested:
        return
    group = len(words) // len(side.outer)
    turned: Any = {"rotation": 90, "va": "center"} if which == "y" else {}
    middles = (np.arange(len(side.outer)) + 0.5) * group
    ticks(middles, [shorten(text, 14) if shown else "" for text in side.outer], fontsize=7, **turned)
    axis.tick_params(axis=which, which="major", pad=5 + 3.9 * max(map(len, words)) if which == "y" or upright else 14)
    for edge in np.arange(1, len(side.outer)) * group:
        (axis.axhline if which == "y" else axis.axvline)(edge, color=style.INK, linewidth=0.7)


def _words(side: Side, which: str) -> list[str]:
    return [shorten(text, LABEL if which == "y" else 14) for text in side.inner]


def _upright(words: list[str]) -> bool:
    """Whether words are too long to stand side by side."""
    return sum(map(len, words)) > 44
