"""Nodes and arrows, for drawing a small MDP."""

from __future__ import annotations

from typing import Any

RADIUS = 0.24


def node(axis: Any, place: tuple[float, float], label: str) -> None:
    """Draw a state."""
    from matplotlib.patches import Circle

    axis.add_patch(Circle(place, RADIUS, facecolor="white", edgecolor="black", linewidth=1.1, zorder=3))
    axis.text(*place, label, ha="center", va="center", fontsize=8, zorder=4)


def arrow(
    axis: Any,
    begin: tuple[float, float],
    end: tuple[float, float],
    label: str,
    *,
    bend: float = 0.0,
    halfway: float = 0.5,
    side: int = 1,
    **look: Any,
) -> None:
    """Draw an arrow between states with its label halfway, or at another share of the way.

    It bulges to its left by ``bend`` times its length. From a state to itself it is a loop above (``side`` 1) or below.
    """
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = begin, end
    if begin == end:
        w, h, foot = 0.45 * RADIUS, side * 3.6 * RADIUS, side * 0.9 * RADIUS
        points = [(x0 - w, y0 + foot), (x0 - 2.6 * w, y0 + h), (x0 + 2.6 * w, y0 + h), (x0 + w, y0 + foot)]
        middle = (x0, y0 + 0.25 * foot + 0.75 * h)
    else:
        dx, dy = x1 - x0, y1 - y0
        length = (dx * dx + dy * dy) ** 0.5
        nx, ny = -dy / length, dx / length  # to the left of the way
        top = ((x0 + x1) / 2 + nx * bend * length, (y0 + y1) / 2 + ny * bend * length)
        control = (2 * top[0] - (x0 + x1) / 2, 2 * top[1] - (y0 + y1) / 2)  # so that the curve passes through the top
        points = [_toward(begin, control), control, _toward(end, control)]
        t = halfway
        middle = tuple(
            (1 - t) ** 2 * p + 2 * t * (1 - t) * q + t * t * r for p, q, r in zip(begin, control, end, strict=True)
        )
    codes = [Path.MOVETO, *([Path.CURVE4] * 3 if len(points) == 4 else [Path.CURVE3] * 2)]
    axis.add_patch(
        FancyArrowPatch(path=Path(points, codes), arrowstyle="-|>", mutation_scale=7, linewidth=1.1, zorder=2, **look)
    )
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axis.text(*middle, label, ha="center", va="center", fontsize=6.5, color=look.get("color"), bbox=paper, zorder=2.5)


def key(axis: Any, entries: list[tuple[str, Any, Any]]) -> None:
    """Say what colors and dashes mean."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=color, linestyle=dashes, label=label) for label, color, dashes in entries]
    axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.14, 1.2), ncols=len(entries))


def _toward(place: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Where the way from one place to another leaves the first one's circle."""
    dx, dy = other[0] - place[0], other[1] - place[1]
    share = RADIUS / (dx * dx + dy * dy) ** 0.5
    return place[0] + share * dx, place[1] + share * dy
