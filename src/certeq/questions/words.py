"""What the answers have in common when they are put into words and into files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.display import shorten

MOST = 5  # names that a sentence lists
LONGEST = 120  # characters of a label in a sentence
LIST = 24  # characters up to which labels are listed at all


def name(label: str) -> str:
    """A label in quotes, short enough for a sentence."""
    return f"'{shorten(label, LONGEST)}'"


def listed(labels: Sequence[str], places: Integers) -> str:
    """``: 'A', 'B' and 3 more``; nothing where there are none, or where labels are long: the files have them."""
    shown = [labels[i] for i in places[:MOST]]
    if not shown or max(map(len, shown)) > LIST:
        return ""
    more = f" and {len(places) - MOST:,} more" if len(places) > MOST else ""
    return f": {', '.join(map(name, shown))}{more}"


def advised(policy: Integers, action_names: Sequence[str]) -> list[Any]:
    """Actions by name, None for no advice; nested like the policy."""
    labels = np.array([*action_names, None], dtype=object)  # -1 is the last
    return list(labels[policy].tolist())
