"""Make docs/coverage.md of a finished run.

First ``certeq reproduce coverage --profile paper --seed 20261130 --out DIR``, then
``python docs/make_coverage.py DIR``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KINDS = ("printed", "credible", "outer")
COLUMNS = ("data", "rows", "printed", "below", "above", "shortest", "credible", "shortest", "outer", "shortest", "fits")
COLUMNS += ("credible there",)
SENTENCE = " intervals hold the truth in 90%"
CHANCES = {"better than the behavior": "Does the advice beat the behavior as often as claimed?"}
CHANCES["best action"] = "Is the advised action best as often as claimed?"


def main(folder: Path) -> None:
    """Write the page and copy the picture."""
    run = json.loads((folder / "coverage" / "verdicts.json").read_text(encoding="utf-8"))
    beside = HERE / "coverage-pictures"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    shutil.copy(folder / "coverage" / run["files"]["svg"], beside / "coverage.svg")
    settings = run["settings"]
    preface = (HERE / "coverage-preface.md").read_text(encoding="utf-8")
    told = [verdict for verdict in run["verdicts"] if verdict["interval"] is None]
    lines = [
        preface.format(command=run["command"], version=run["certeq"], **settings),
        "| verdict | claim | measured |",
        "|---|---|---|",
        *(f"| {verdict['outcome']} | {verdict['claim']} | {verdict['measured']} |" for verdict in told),
        "",
        f"![{run['alt']}](coverage-pictures/coverage.svg)",
        "",
        "## Coverage of 90% intervals",
        "",
        "“Rows” are those for each state. With 95% intervals of the coverage; "
        "**bold** where it is surely below 88%. “Shortest” is how many times as "
        "wide all intervals of the panel would have to be to hold the truth in 90%; “below” and “above” is where "
        "the truth lay when it was missed; “fits” is how often the report has nothing to say against the model, and "
        "“credible there” how often the credible interval held the truth in those data sets.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *table(run["verdicts"]),
        "",
        *(line for kind, title in CHANCES.items() for line in chances(run["verdicts"], kind, title)),
        "## How it was done",
        "",
        run["notes"],
        "",
    ]
    (HERE / "coverage.md").write_text("\n".join(lines), encoding="utf-8")


def table(verdicts: list[dict[str, Any]]) -> list[str]:
    """One line for each panel: all kinds of interval, and whether the model fits."""
    found = {verdict["claim"]: verdict for verdict in verdicts}
    panels = [claim.partition(f": {KINDS[0]}")[0] for claim in found if claim.endswith(KINDS[0] + SENTENCE)]
    lines = []
    for panel in panels:
        kinds = [found[f"{panel}: {kind}{SENTENCE}"] for kind in KINDS]
        below, above = re.findall(r"([\d.]+%)", kinds[0]["note"])
        fits = found.get(f"{panel}: model fits")
        shares = [re.search(r"held ([\d.]+) times", each["note"])[1] for each in kinds]  # type: ignore[index]
        told = "" if fits is None else fits["measured"].split()[0]
        there = "" if fits is None else fits["note"].removeprefix("There, credible intervals held in ").rstrip(".")
        rest = (part for each, share in zip(kinds[1:], shares[1:], strict=True) for part in (number(each), share))
        rows = re.search(r"There are ([\d.e+]+) rows", kinds[0]["note"])[1]  # type: ignore[index]
        cells = (panel, rows, number(kinds[0]), below, above, shares[0], *rest, told, there)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def chances(verdicts: list[dict[str, Any]], kind: str, title: str) -> list[str]:
    """A table of chances."""
    end = f": {kind} as often as claimed"
    rows = [
        f"| {verdict['claim'].removesuffix(end)} | {mark(verdict)} | {verdict['note'].partition(': ')[2]} |"
        for verdict in verdicts
        if verdict["claim"].endswith(end)
    ]
    top = ["| data | measured | by claimed chance: claimed -> true (cases) |", "|---|---|---|"]
    return [f"## {title}", "", *top, *rows, ""]


def mark(verdict: dict[str, Any]) -> str:
    """What was measured, bold where it does not hold."""
    return f"**{verdict['measured']}**" if verdict["outcome"] == "does not hold" else str(verdict["measured"])


def number(verdict: dict[str, Any]) -> str:
    """A mean with its interval."""
    found = verdict["interval"]
    text = f"{found['mean']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"
    return f"**{text}**" if verdict["outcome"] == "does not hold" else text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
