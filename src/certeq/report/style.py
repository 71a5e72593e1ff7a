"""How pictures look: one column wide, readable in print, safe for color-blind readers, the same bytes every time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN = 3.4  # inches
# eight colors that stay apart for color-blind readers (after Okabe and Ito)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

_STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "certeq",
    "svg.fonttype": "none",
    "text.parse_math": False,
}


INK = "#1c2126"  # of words and lines in a picture of a policy
_PAGE: Any = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color"), INK),
    "ytick.color": INK,
}


@contextmanager
def style(*, page: bool = False) -> Iterator[None]:
    """Draw in the house style; what shows a policy, with the ink of its ``page``."""
    import matplotlib as mpl

    plain = {name: value for name, value in mpl.rcParamsDefault.items() if not name.startswith(("backend", "toolbar"))}
    with mpl.rc_context(plain | (_STYLE | _PAGE if page else _STYLE)):  # whatever a matplotlibrc in this folder says
        yield


def canvas(columns: int = 1, rows: int = 1, *, width: float | None = None, height: float = 2.6, **more: Any) -> Any:
    """Make a figure and its axes (an array), without a window system; call it inside `style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width or COLUMN * columns, height * rows))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def line_with_band(axis: Any, x: Any, mean: Any, half: Any, *, label: str, index: int) -> None:
    """Draw a line with its 95% band; ``index`` chooses color and marker."""
    color = COLORS[index % len(COLORS)]
    axis.plot(x, mean, color=color, marker=MARKERS[index % len(MARKERS)], label=label)
    axis.fill_between(x, mean - half, mean + half, color=color, alpha=0.2, linewidth=0)


def level_with_band(axis: Any, mean: float, half: float, *, label: str, index: int, dashes: str = "--") -> None:
    """Draw a horizontal line with its 95% band, for a method without a strength."""
    color = COLORS[index % len(COLORS)]
    axis.axhline(mean, color=color, linestyle=dashes, label=label)
    axis.axhspan(mean - half, mean + half, color=color, alpha=0.15, linewidth=0)


def to_svg(figure: Figure) -> bytes:
    """Write a figure as SVG, byte for byte the same for the same picture."""
    return _save(figure, "svg", metadata={"Date": None})


def to_png(figure: Figure) -> bytes:
    """Write a figure as PNG."""
    return _save(figure, "png", dpi=200)


def _save(figure: Figure, kind: str, **more: Any) -> bytes:
    data = io.BytesIO()
    with style():
        figure.savefig(data, format=kind, **more)
    return data.getvalue()
