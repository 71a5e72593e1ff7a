"""The page on a reproduction: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certeq.base.display import duration
from certeq.report import html

TITLE = "The paper's figures, with verdicts"
HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
LOOKS = {HOLDS: ("yes", "✓"), FAILS: ("no", "✗"), OPEN: ("open", "?")}  # class and sign: never by color alone


def reproduction(figures: Sequence[Mapping[str, Any]], pictures: Mapping[str, bytes], *, version: str) -> str:
    """Write the page: ``figures`` are records as in verdicts.json, ``pictures`` their SVG images by name."""
    machines: list[Any] = []
    for figure in figures:
        machines += [machine for machine in figure["machines"] if machine not in machines]
    return html.write(
        "reproduction.html",
        style="page.css",
        filters={"duration": duration, "plain": plain},
        title=TITLE,
        figures=figures,
        images={name: html.data_uri(picture) for name, picture in pictures.items()},
        counts=count(verdict for figure in figures for verdict in figure["verdicts"]),
        counts_of={figure["figure"]: count(figure["verdicts"]) for figure in figures},
        looks=LOOKS,
        machines=machines,
        version=version,
    )


def count(verdicts: Any) -> dict[str, int]:
    """How many verdicts of each kind."""
    outcomes = [verdict["outcome"] for verdict in verdicts]
    return {outcome: outcomes.count(outcome) for outcome in LOOKS}


def plain(value: Any) -> str:
    """A setting for people."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {plain(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
