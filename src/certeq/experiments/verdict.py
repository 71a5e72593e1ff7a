"""Verdicts: what was claimed, what was measured, and whether they agree.

A claim is *the paper's* where its text says so (``paper`` names the section), and *ours* elsewhere: a stricter
reading, a setting of ours, a number of the follow-up. Where the paper does not print a setting, its claim is judged
along a strip of values of that setting, and may hold in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from certeq.experiments.statistics import Interval

HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "undecided"
OUTCOMES = (HOLDS, PART, FAILS, OPEN)


@dataclass(frozen=True)
class Verdict:
    """One claim against one measurement."""

    claim: str  # what is said, in our words
    measured: str  # what was found, with its interval
    outcome: str  # holds, holds in part, does not hold, or undecided
    interval: Interval | None = None  # the number it was judged by, where it is a matter of chance
    note: str = ""  # why, where more can be said than the number
    paper: str = ""  # where the paper says it; nothing where the claim is ours

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        return asdict(self) | {"interval": None if self.interval is None else self.interval.to_json()}


def below(
    claim: str, difference: Interval, what: str, *, margin: float = 0.0, note: str = "", paper: str = ""
) -> Verdict:
    """Judge "first loses less than second" by the interval of first - second; up to ``margin`` counts as equal.

    Without a margin, "less" is meant: two methods that never differ do not satisfy it.
    """
    room = f", allowed {margin:.3g}" if margin else ""
    if margin:
        holds, fails = difference.high <= margin, difference.low > margin
    else:
        holds, fails = difference.high < 0, difference.low >= 0
    outcome = HOLDS if holds else FAILS if fails else OPEN
    return Verdict(claim, f"{what}: {difference}{room}", outcome, difference, note, paper)


def exactly(claim: str, true: bool, what: str, *, note: str = "", paper: str = "") -> Verdict:
    """Judge something that is a matter of arithmetic, not of chance."""
    return Verdict(claim, what, HOLDS if true else FAILS, note=note, paper=paper)


def strip(claim: str, outcomes: Mapping[float, str], unit: str, *, note: str = "", paper: str = "") -> Verdict:
    """Judge a claim along the values of a setting that the paper does not print."""
    return Verdict(claim, f"{stretches(outcomes)} {unit}", together(outcomes.values()), note=note, paper=paper)


def strips(
    claim: str, outcomes: Mapping[str, Mapping[float, str]], unit: str, *, note: str = "", paper: str = ""
) -> Verdict:
    """Judge a claim along the values of two such settings: a strip for each value of the second, by its name."""
    told = "; ".join(f"{name}: {stretches(each)}" for name, each in outcomes.items())
    everything = [outcome for each in outcomes.values() for outcome in each.values()]
    return Verdict(claim, f"{told} ({unit})", together(everything), note=note, paper=paper)


def together(outcomes: Any) -> str:
    """What comes of several outcomes: all, some or none."""
    found = set(outcomes)
    if len(found) == 1:
        return str(found.pop())
    return PART if found & {HOLDS, PART} else FAILS


def stretches(outcomes: Mapping[float, str]) -> str:
    """Outcomes along an axis in words, such as "holds from 1 to 3, undecided at 4"."""
    runs = [(said, [x for x, _ in run]) for said, run in groupby(sorted(outcomes.items()), key=lambda item: item[1])]
    return ", ".join(f"{said} {_stretch(values)}" for said, values in runs)


def _stretch(values: Sequence[float]) -> str:
    return f"at {values[0]:g}" if len(values) == 1 else f"from {values[0]:g} to {values[-1]:g}"
