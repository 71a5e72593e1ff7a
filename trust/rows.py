"""Lines of the table that a campaign makes, and how large campaigns are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

SCALE = "TRUST_SCALE"  # how much of each campaign to run: 1 is what docs/trust.md tells of


@dataclass
class Row:
    """One line of the table."""

    what: str
    tried: int
    found: str
    failures: list[str] = field(default_factory=list)


def words(counts: Mapping[str, int]) -> str:
    """Counts in words."""
    return ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items()) if number)


def scaled(times: int) -> int:
    """How often to try something, at the scale that was asked for."""
    return max(1, round(times * float(os.environ.get(SCALE, "1"))))
