"""Make docs/study.md of a finished run.

First ``certeq reproduce study numeric --profile paper --seed 7 --out DIR``, then ``python docs/make_study.py DIR``. The
two may also be run apart; ``python docs/make_study.py DIR OTHER`` takes the worlds of numbers from the other folder.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl

from certeq.experiments.figures import numeric, study

HERE = Path(__file__).parent
SHOWN = ("ε* (posterior)", "none", "evidence", "oracle ε*", "learned target, no positions", "learned target")
NUMBERS = ("none", "evidence", "learned target", "true rows")


def main(folder: Path, other: Path) -> None:
    """Write the page, the table of all methods beside it, and the picture."""
    run = json.loads((folder / "study" / "verdicts.json").read_text(encoding="utf-8"))
    table = pl.read_parquet(folder / "study" / run["files"]["table"])
    found = study.ratios(table)
    beside = HERE / "study"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    shutil.copy(folder / "study" / run["files"]["svg"], beside / "study.svg")
    (beside / "ratios.csv").write_text(everything(found), encoding="utf-8")
    preface = (HERE / "study-preface.md").read_text(encoding="utf-8")
    lines = [
        preface.format(
            command=run["command"],
            version=run["certeq"],
            minutes=run["seconds"] / 60,
            sets=table.filter(pl.col("panel") == table["panel"][0]).select("cell", "data_set").n_unique(),
        ),
        "## What was asked, and what was found",
        "",
        "| verdict | claim | measured |",
        "|---|---|---|",
        *(
            f"| {verdict['outcome']} | {verdict['claim']} | {verdict['measured']} |"
            for verdict in run["verdicts"]
            if ": `learned_target` loses at most" not in verdict["claim"]
        ),
        "",
        f"![{study.ALT}](study/study.svg)",
        "",
        "## All cells, best and worst first",
        "",
        "Mean loss as a ratio to the better of discount and uniform prior, each at its best strength in hindsight on",
        "the same data sets, with 95 % intervals for `learned_target`. All methods with their intervals are in",
        "[ratios.csv](study/ratios.csv).",
        "",
        f"| cell | {' | '.join(SHOWN)} |",
        f"|---|{'---|' * len(SHOWN)}",
        *(line(panel, found[panel]) for panel in order(found)),
        "",
        *numbers(other, beside),
    ]
    (HERE / "study.md").write_text("\n".join(lines), encoding="utf-8")


def numbers(folder: Path, beside: Path) -> list[str]:
    """The section on worlds of numbers."""
    run = json.loads((folder / "numeric" / "verdicts.json").read_text(encoding="utf-8"))
    table = pl.read_parquet(folder / "numeric" / run["files"]["table"])
    shutil.copy(folder / "numeric" / run["files"]["svg"], beside / "numeric.svg")
    found = numeric.ratios(table)
    (beside / "numeric.csv").write_text(everything(found), encoding="utf-8")
    sets = table.filter(pl.col("panel") == table["panel"][0]).select("cell", "data_set").n_unique()
    return [
        "## Worlds of numbers",
        "",
        f"Made by `{run['command']}`, {sets} data sets in each cell. {numeric.NOTES}",
        "",
        "| verdict | claim | measured |",
        "|---|---|---|",
        *(f"| {each['outcome']} | {each['claim']} | {each['measured']} |" for each in run["verdicts"]),
        "",
        f"![{numeric.ALT}](study/numeric.svg)",
        "",
        f"| cell | {' | '.join(NUMBERS)} |",
        f"|---|{'---|' * len(NUMBERS)}",
        *(line(panel, each, NUMBERS) for panel, each in found.items()),
        "",
    ]


def order(found: dict[str, dict[str, study.Interval]]) -> list[str]:
    """Best and worst first, then inward; cells in which nothing was lost come last."""
    told = {panel: each[study.OURS] for panel, each in found.items() if np.isfinite(each[study.OURS].mean)}
    return study.extremes(told) + [panel for panel in found if panel not in told]


def line(panel: str, each: dict[str, study.Interval], shown: tuple[str, ...] = SHOWN) -> str:
    """One cell of the study."""
    numbers = [
        f"**{each[name].mean:.3f}** [{each[name].low:.3f}, {each[name].high:.3f}]"
        if name == study.OURS
        else f"{each[name].mean:.3f}"
        for name in shown
    ]
    return f"| {panel} | {' | '.join(numbers)} |"


def everything(found: dict[str, dict[str, study.Interval]]) -> str:
    """Every method in every cell."""
    rows = [
        {"cell": panel, "method": name, "ratio": each.mean, "low": each.low, "high": each.high}
        for panel, methods in found.items()
        for name, each in methods.items()
    ]
    return pl.DataFrame(rows).write_csv(float_precision=5)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[-1]))
