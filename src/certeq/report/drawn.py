"""What the page draws by itself: marks along a scale, as shares of its width. The templates make SVG of them.

Labels and numbers are text of the page, which wraps and speaks every script; only marks are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from certeq.base.display import number
from certeq.report.sheet import Side

TICKS = 5  # numbers along a scale, about
MARGIN = 0.04  # of a scale, beyond what lies on it


class Mark(NamedTuple):
    """Something on a line: a dot, a diamond, a span, or a bar (whole, upper or lower half), in percent of the width."""

    kind: str
    at: float
    to: float = 0.0
    color: str = "c0"


class Track(NamedTuple):
    """A line of a picture: what it is called, what lies on it, and its numbers in words."""

    label: str
    marks: list[Mark]
    text: str = ""
    more: str = ""  # a second label, softer


class Key(NamedTuple):
    """What a mark or a color means."""

    kind: str
    color: str
    words: str


@dataclass(frozen=True)
class Tracks:
    """Lines that share a scale."""

    kind = "tracks"

    lines: list[Track]
    ticks: list[tuple[float, str]]
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A line over a scale, with points beside it; all in percent of width and height."""

    kind = "chart"
    words: str  # what it shows, for those who do not see it
    line: list[tuple[float, float]]
    points: list[tuple[Mark, float]]  # with their heights
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    label: str  # of the scale across
    upward: str  # of the scale up
    keys: tuple[Key, ...] = ()


class Box(NamedTuple):
    """A cell of a sheet: its color, by a class of the style, and what is written in it."""

    look: str
    text: str = ""


@dataclass(frozen=True)
class Boxes:
    """A sheet of boxes with words along two sides; None where nothing is."""

    kind = "grid"
    title: str
    boxes: Sequence[Sequence[Box | None]]
    down: Side
    across: Side
    keys: tuple[Key, ...] = ()


class Scale(NamedTuple):
    """From numbers to percent of a width."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float], *, margin: float = MARGIN) -> Scale:
        """A scale on which all finite values lie, with a little room."""
        known = [float(value) for value in values if isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        room = margin * (high - low) if high > low else 0.5 * abs(high) or 1.0
        return cls(low - room, high + room)

    def __call__(self, value: float) -> float:
        """Where a number lies, in percent."""
        return round(100 * (float(value) - self.low) / (self.high - self.low), 2)

    def ticks(
        self, tell: Callable[[float], str] = number, *, about: int = TICKS, letters: int | None = None
    ) -> list[tuple[float, str]]:
        """Round numbers along the scale, in words: every second one where neighbors would touch in so many letters."""
        rough = (self.high - self.low) / about
        power = 10.0 ** floor(log10(rough))
        steps = [step * power for step in (1, 2, 5, 10)]
        step = next(step for step in steps if step >= rough)
        if floor(self.high / step) <= ceil(self.low / step):  # one number alone tells no distance
            step = steps[max(steps.index(step) - 1, 0)]
        first, last = ceil(self.low / step), floor(self.high / step)
        found = [(self(i * step), tell(round(i * step, 12))) for i in range(first, last + 1)]
        pairs = pairwise(found)
        crowded = letters is not None and any(
            (b - a) / 100 * letters < (len(one) + len(other)) / 2 + 1 for (a, one), (b, other) in pairs
        )
        return found[:: 2 if crowded else 1]


def interval(scale: Scale, low: float, middle: float, high: float, color: str) -> list[Mark]:
    """A span with a dot on it; the dot alone where nobody knows the span."""
    span = [Mark("span", scale(low), scale(high), color)] if isfinite(low) and isfinite(high) else []
    return [*span, Mark("dot", scale(middle), color=color)]
