"""Make docs/coverage.md of a finished run.

First ``certeq reproduce coverage --profile paper --seed 7 --out DIR``, then ``python docs/make_coverage.py DIR``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SENTENCE = " intervals hold the truth in 90%"
BEST = ": the advised action is best as often as claimed"


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
        "## Coverage of 90 % intervals",
        "",
        "With 95 % intervals of the coverage; **bold** where it is surely below 90 %.",
        "",
        "| data | credible | bootstrap | bootstrap, policy kept |",
        "|---|---|---|---|",
        *table(run["verdicts"]),
        "",
        "## Is the advised action best as often as claimed?",
        "",
        "| data | true - claimed | by claimed chance: claimed -> true (states) |",
        "|---|---|---|",
        *(
            f"| {verdict['claim'].removesuffix(BEST)} | {number(verdict)} | {verdict['note'].partition(': ')[2]} |"
            for verdict in run["verdicts"]
            if verdict["claim"].endswith(BEST)
        ),
        "",
        "## How it was done",
        "",
        run["notes"],
        "",
    ]
    (HERE / "coverage.md").write_text("\n".join(lines), encoding="utf-8")


def table(verdicts: list[dict[str, Any]]) -> list[str]:
    """One line for each panel, one column for each kind of interval."""
    rows: dict[str, list[str]] = {}
    for verdict in verdicts:
        panel, _, rest = verdict["claim"].partition(": ")
        if rest.endswith(SENTENCE):
            rows.setdefault(panel, []).append(number(verdict))
    return [f"| {panel} | {' | '.join(cells)} |" for panel, cells in rows.items()]


def number(verdict: dict[str, Any]) -> str:
    """A mean with its interval."""
    found = verdict["interval"]
    text = f"{found['mean']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"
    return f"**{text}**" if verdict["outcome"] == "does not hold" else text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
