"""Labels and small tables as people see them: nothing that somebody's data say may command, color or turn a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any

from certeq.base.errors import no_number

MOST = 10  # lines of a table in a notebook
ROUNDING = 1e-11  # of a number: what differs by less does so by the order of its sums
ALIKE = 5.0  # times as wide as another, up to which an interval takes the decimals of that
LONG = 1e15  # numbers from here on are told by their digits that count
LONGEST = 120  # characters of a label in a notebook


def harmless(text: object) -> str:
    """Text from somebody's data, with whatever could command a terminal or turn it around written out."""
    said = str(text)
    if said.isprintable():
        return said
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in said)


def shorten(text: object, length: int) -> str:
    """A label on one line, of at most ``length`` characters."""
    line = harmless(" ".join(str(text)[: 4 * length].split()))
    return line if len(line) <= length else line[: max(length - 1, 1)].rstrip() + "…"


def number(value: Any, digits: int = 3) -> str:
    """A number for people: whole ones with commas, others with a few digits that count."""
    if isinstance(value, int):
        return f"{value:,}"
    size = abs(float(value))
    if not isfinite(size):
        raise no_number("A sentence of the report")
    if size >= LONG:
        return f"{value:.{digits}g}".replace("-", "−")
    if size >= 10**digits:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−") if size >= 1e-4 or size == 0 else f"{value:.1e}".replace("-", "−")


def between(low: float, high: float, beside: tuple[float, float] | None = None) -> str:
    """Ends of an interval for people, with two digits of its width: 8.5 to 14.1.

    From 400 draws an end is known to a thirtieth of the width or so; more digits would tell of the draws alone. Of a
    width that is rounding, none is told. Of an interval ``beside`` which it stands it takes the decimals, if they suit.
    """
    width, size = abs(float(high) - float(low)), max(abs(low), abs(high))
    if isfinite(size) and width <= ROUNDING * size:
        return f"{number(low)} to {number(low)}"
    if not 1e-4 <= size < LONG:
        return f"{number(low)} to {number(high)}"
    other = 0.0 if beside is None else abs(float(beside[1]) - float(beside[0]))
    like = other if width / ALIKE <= other <= ALIKE * width else width
    places = 1 - floor(log10(like))
    places += any(end and not round(end, places) for end in (float(low), float(high)))  # on which side of 0, all see
    told = (f"{round(float(end), places) + 0.0:,.{max(places, 0)}f}".replace("-", "−") for end in (low, high))
    return " to ".join(told)


def percent(value: float, draws: int = 0) -> str:
    """A share for people; never 0 or 100 unless it is, and never where it is a share of draws."""
    if not isfinite(value):
        raise no_number("A share in the report")
    if draws and value in (0, 1):
        one = ceil(1000 / draws) / 10  # draw of them, in percent
        return f">{100 - one:g}%" if value else f"<{one:g}%"
    if 0 < value < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= value < 1 else f"{value:.0%}"


def in_a_sentence(share: str) -> str:
    """A share as a sentence says it: over 99% for >99%."""
    return share.replace(">", "over ").replace("<", "under ")


def of_draws(value: float) -> str:
    """A share of draws for people, which is never certain."""
    return percent(min(max(value, 1e-9), 1 - 1e-9))


def several(count: int, thing: str, things: str | None = None) -> str:
    """A number with its noun: 1 state, 2 states."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def tried(states: int, actions: int, pairs: int) -> str:
    """How many states and actions there are, and how many of their pairs were tried."""
    every = states * actions
    return (
        f"{several(states, 'state')} x {several(actions, 'action')}: {pairs:,} of {several(every, 'pair')} "
        f"{'was' if pairs == 1 else 'were'} tried ({pairs / every:.0%})."
    )


def duration(seconds: float) -> str:
    """A length of time for people."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def notebook(title: str, header: Sequence[object], rows: Iterable[Sequence[object]], total: int, note: str = "") -> str:
    """The HTML that a notebook shows of an object: a line, the first rows of a table, and what was left out."""
    cells = [[_cell(cell) for cell in row] for _, row in zip(range(MOST), rows, strict=False)]
    head = "".join(f'<th scope="col">{escape(shorten(name, LONGEST))}</th>' for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    left = total - len(cells)
    more = f"<p>… and {left:,} more.</p>" if left > 0 else ""
    said = f"<p>{escape(harmless(note))}</p>" if note else ""
    top = f"<p><strong>{escape(harmless(title))}</strong></p>{said}"
    return f"<div>{top}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"


def _cell(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return "–"
    return number(cell) if isinstance(cell, int | float) else shorten(cell, LONGEST)


def told(lines: Sequence[str]) -> str:
    """The HTML that a notebook shows of something that can tell itself in words."""
    return f"<div>{''.join(f'<p>{escape(harmless(line))}</p>' for line in lines)}</div>"
