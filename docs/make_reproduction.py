"""Make docs/reproduction.md of a finished run.

First ``certeq reproduce all --profile paper --out DIR``, then ``python docs/make_reproduction.py DIR``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from certeq.report.reproduction import of_paper, ours, tally

HERE = Path(__file__).parent
SMALL = 300_000  # bytes of a table that is kept beside the page
PREFACE = HERE / "reproduction-preface.md"


def main(folder: Path) -> None:
    """Write the page, and copy pictures and small tables beside it."""
    run = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    beside = HERE / "reproduction"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    seed = run["figures"][0]["seed"]
    page = [
        PREFACE.read_text(encoding="utf-8").format(
            command=f"certeq reproduce all --profile paper --seed {seed}",
            version=run["certeq"],
            seed=seed,
            claims=sum(run["counts"]["paper"].values()),
            paper=tally(run["counts"]["paper"]),
            ours=tally(run["counts"]["ours"]),
        )
    ]
    for figure in run["figures"]:
        page.append(section(figure, folder / figure["figure"], beside))
    (HERE / "reproduction.md").write_text("\n".join(page), encoding="utf-8")


def section(figure: dict[str, Any], source: Path, beside: Path) -> str:
    """One figure: claim, picture, verdicts."""
    name = figure["figure"]
    shutil.copy(source / figure["files"]["svg"], beside / f"{name}.svg")
    table = source / (figure["files"].get("csv") or figure["files"]["summary"])
    small = table.stat().st_size <= SMALL
    if small:
        shutil.copy(table, beside / f"{name}.csv")
    lines = [
        f"## {figure['title']}",
        "",
        f"*The claim.* {figure['claim']}",
        "",
        *([figure["notes"], ""] if figure["notes"] else []),
        f"![{figure['alt']}](reproduction/{name}.svg)",
        "",
        f"`{figure['command']}`, {figure['seconds']:.0f} s of work"
        + (f"; table: [{name}.csv](reproduction/{name}.csv)." if small else "; its table is too large to keep here."),
        "",
    ]
    for title, verdicts in (("the paper says", of_paper(figure["verdicts"])), ("we ask", ours(figure["verdicts"]))):
        lines += judged(title, verdicts)
    return "\n".join(lines)


def judged(title: str, verdicts: list[dict[str, Any]]) -> list[str]:
    """A table of verdicts, if there are any."""
    if not verdicts:
        return []
    lines = [f"| verdict | {title} | measured |", "|---|---|---|"]
    for verdict in verdicts:
        measured = " ".join(part for part in (verdict["measured"], verdict["note"]) if part)
        where = f" ({verdict['paper']})" if verdict["paper"] else ""
        lines.append(f"| **{verdict['outcome']}** | {cell(verdict['claim'] + where)} | {cell(measured)} |")
    return [*lines, ""]


def cell(text: str) -> str:
    """Text in a table of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
