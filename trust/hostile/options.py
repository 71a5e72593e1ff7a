"""Options: numbers beyond all measure where a command expects a sensible one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

CASES: dict[str, Callable[[Path], tuple[Any, ...]]] = {}
HUGE = "9" * 30
DIGITS = "9" * 5000

for _words in (
    ("learn", "--discount", "nan"),
    ("learn", "--discount", "1e400"),
    ("learn", "--discount", "-0.1"),
    ("learn", "--bins", HUGE),
    ("learn", "--bins", DIGITS),
    ("learn", "--bins", "nothing=quantile:4"),
    ("learn", "--state", "nothing"),
    ("learn", "--max-states", "0"),
    ("learn", "--min-visits", "-1"),
    ("learn", "--horizon", "0"),
    ("learn", "--horizon", "-5"),
    ("learn", "--horizon", "1000000000"),
    ("learn", "--regularizer", "\x1b[2J"),
    ("learn", "--regularizer", "discount", "--setting", "strength=nan"),
    ("learn", "--regularizer", "discount", "--setting", "strength=1e999"),
    ("learn", "--regularizer", "uniform_prior", "--setting", "magnitude=-1"),
    ("learn", "--regularizer", "uniform_prior", "--setting", "magnitude"),
    ("learn", "--out", "/proc/nowhere"),
    ("learn", "--out", "x" * 300),
    ("simulate", "nothing"),
    ("simulate", "river_swim", "--episodes", "-1"),
    ("simulate", "river_swim", "--episodes", HUGE),
    ("simulate", "river_swim", "--length", HUGE),
    ("simulate", "river_swim", "--episodes", "1000000000000"),
    ("simulate", "river_swim", "--seed", "-1"),
    ("simulate", "river_swim", "--setting", "n_states=1000000"),
    ("simulate", "river_swim", "--setting", "n_states=0"),
    ("simulate", "river_swim", "--setting", f"n_states={HUGE}"),
    ("simulate", "random_chain", "--setting", "n_states=1000000000"),
    ("simulate", "river_swim", "--policy", "/dev/zero"),
    ("reproduce", "nothing"),
    ("reproduce", "diagrams", "--workers", "0"),
    ("reproduce", "diagrams", "--data-sets", "1"),
    ("reproduce", "diagrams", "--scheduler", "http://localhost:1"),
    ("reproduce", "diagrams", "--scheduler", "tcp://localhost:1"),
):
    CASES[f"option: {' '.join(word if len(word) < 40 else word[:20] + '...' for word in _words)}"] = (
        lambda folder, words=_words: words  # type: ignore[misc]
    )
