"""Verdicts: what the paper says, what was measured, and whether they agree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from certeq.experiments.statistics import Interval

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
OUTCOMES = (HOLDS, FAILS, OPEN)


@dataclass(frozen=True)
class Verdict:
    """One claim of the paper against one measurement."""

    claim: str  # what the paper says, in our words
    measured: str  # what was found, with its interval
    outcome: str  # holds, does not hold, or undecided
    interval: Interval | None = None  # the number it was judged by, where it is a matter of chance
    note: str = ""  # why, where more can be said than the number

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        return asdict(self) | {"interval": None if self.interval is None else self.interval.to_json()}


def below(claim: str, difference: Interval, what: str, *, margin: float = 0.0, note: str = "") -> Verdict:
    """Judge "first loses less than second" by the interval of first - second; up to ``margin`` counts as equal.

    Without a margin, "less" is meant: two methods that never differ do not satisfy it.
    """
    room = f", allowed {margin:.3g}" if margin else ""
    if margin:
        holds, fails = difference.high <= margin, difference.low > margin
    else:
        holds, fails = difference.high < 0, difference.low >= 0
    outcome = HOLDS if holds else FAILS if fails else OPEN
    return Verdict(claim, f"{what}: {difference}{room}", outcome, difference, note)


def exactly(claim: str, true: bool, what: str, *, note: str = "") -> Verdict:
    """Judge something that is a matter of arithmetic, not of chance."""
    return Verdict(claim, what, HOLDS if true else FAILS, note=note)
