"""Numbers at the ends of what numbers can be, in rewards, states, times and discounts; none may come out as no number.

The tables are sound: labels are letters, so that whatever reads ``nan`` or ``inf`` in what was written is a number that
is none.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np

DISCOUNTS = (0.0, 1e-300, 0.5, 0.99, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 2.0**-53, 1.0)
NO_NUMBER = re.compile(r"(?<![\w.])[-−+]?(nan|NaN|inf|Infinity|infinity)(?![\w.])")
SCRIPT = re.compile(r"<(script|style)\b(?![^>]*application/json).*?</\1>", re.DOTALL)  # our own words, not data


def rewards(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rewards of one of many sizes, of many sizes at once, all alike, next to nothing, or one unlike all others."""
    plain = rng.integers(-3, 4, size=n).astype(float)
    kind = rng.integers(7)
    if kind == 0:
        return plain * 10.0 ** rng.integers(-60, 61)
    if kind == 1:
        return plain * 10.0 ** rng.integers(-320, 49, size=n)
    if kind == 2:
        return np.full(n, rng.choice([0.0, -0.0, 1.0, -1e49, 1e-49]))
    if kind == 3:
        return plain * rng.choice([1e-308, 5e-324, 1e153, 1e154, 1e155, 1e200, 1e300, 1.7e308 / 3])
    if kind == 4:
        plain[rng.integers(n)] = rng.choice([1e49, -1e49, 1e16, 1e-300])
    return plain + (1e15 if kind == 5 else 0)  # where differences are lost among the digits


def made(rng: np.random.Generator, folder: Path) -> Path:
    """A table of numbers, and what somebody would do with it, as a list of words."""
    n, S, A = int(rng.integers(8, 80)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    numeric = rng.random() < 0.3
    places = rng.standard_normal(n) * 10.0 ** rng.integers(-310, 308) if numeric else rng.integers(S, size=n)
    episode = np.arange(n) // int(rng.integers(2, 12))
    ends = np.append(episode[1:] != episode[:-1], True) & (rng.random(n) < rng.choice([0, 0.5, 1]))
    with (folder / "numbers.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["episode", "state", "action", "reward", "done"])
        told = [repr(float(x)) if numeric else "ABCDE"[x] for x in places]
        pay = [repr(float(r)) for r in rewards(rng, n)]
        acts = ["xyz"[a] for a in rng.integers(A, size=n)]
        lines.writerows(zip(episode, told, acts, pay, ends.astype(int), strict=True))
    words = [str(rng.choice(["learn", "learn", "learn", "audit", "compare"])), "numbers.csv", "--force", "--out", "out"]
    words += ["--discount", repr(float(rng.choice(DISCOUNTS))), "--draws", "3"]
    words += ["--planning-discount", repr(0.9 * float(words[6]))] if words[0] == "audit" else []
    words += ["--no-report"] if rng.random() < 0.5 else []
    words += ["--horizon", str(rng.integers(1, 9))] if rng.random() < 0.2 and words[0] != "compare" else []
    (folder / "words.json").write_text(json.dumps(words))
    return folder / "words.json"


def unsound(folder: Path, heard: str) -> str:
    """What was written, or said, as a number and is none; empty where nothing is."""
    texts = {"what it said": heard}
    for path in sorted((folder / "out").rglob("*")):
        if path.suffix in (".json", ".csv", ".html", ".svg"):
            texts[path.name] = SCRIPT.sub("", path.read_text(encoding="utf-8"))
    for name, text in texts.items():
        if found := NO_NUMBER.search(text):
            return f"{name}: …{text[max(found.start() - 80, 0) : found.end() + 40]!r}…"
    return ""
