"""The page on a reproduction: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certeq.base.display import duration
from certeq.report import html

TITLE = "The paper's figures, with verdicts"
HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "undecided"
LOOKS = {  # class and sign: never by color alone
    HOLDS: ("yes", "✓"),
    PART: ("open", "◐"),
    FAILS: ("no", "✗"),
    OPEN: ("open", "?"),
}
MANY = {HOLDS: "hold", PART: "hold in part", FAILS: "do not hold"}


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
        counts=counts(figures),
        counts_of={figure["figure"]: count(of_paper(figure["verdicts"])) for figure in figures},
        of_paper=of_paper,
        ours=ours,
        looks=LOOKS,
        machines=machines,
        version=version,
    )


def of_paper(verdicts: Any) -> list[Any]:
    """Verdicts on what the paper says."""
    return [verdict for verdict in verdicts if verdict["paper"]]


def ours(verdicts: Any) -> list[Any]:
    """Verdicts on what we ask beyond it."""
    return [verdict for verdict in verdicts if not verdict["paper"]]


def counts(figures: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many verdicts of each kind, the paper's and ours apart."""
    verdicts = [verdict for figure in figures for verdict in figure["verdicts"]]
    return {"paper": count(of_paper(verdicts)), "ours": count(ours(verdicts))}


def tally(counts: Mapping[str, int]) -> str:
    """How many of each, in words."""
    some = {said: number for said, number in counts.items() if number}
    return ", ".join(f"{number} {said if number == 1 else MANY.get(said, said)}" for said, number in some.items())


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
