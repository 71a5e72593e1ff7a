"""Make docs/images/scaling.svg from what ``benchmarks.large scaling`` and ``benchmarks.counting scaling`` measured.

``python docs/make_scaling.py`` reads the two tables in benchmarks/, and measures nothing itself.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from certeq.report import style

ROOT = Path(__file__).parents[1]
A, SUCCESSORS = 4, 10
WORLDS = {"garnet": "successors anywhere", "local": "successors nearby"}


def read(name: str) -> list[dict[str, Any]]:
    """A table of numbers and a few words."""
    with (ROOT / "benchmarks" / name).open(newline="") as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def draw(planned: list[dict[str, Any]], counted: list[dict[str, Any]]) -> Any:
    """Four pictures: time and memory of planning by states, and of counting by rows."""
    figure, ((time, memory), (seconds, peak)) = style.canvas(2, 2, width=9.0, height=3.0)
    usual = [row for row in planned if row["actions"] == A and row["non_zeros"] == row["states"] * A * SUCCESSORS]
    index = 0
    for world, words in WORLDS.items():
        for prior in ("False", "True"):
            rows = [row for row in usual if (row["world"], row["prior"]) == (world, prior)]
            states = [row["states"] for row in rows]
            label = words + (", uniform prior" if prior == "True" else "")
            look = {"color": style.COLORS[index], "marker": style.MARKERS[index], "label": label}
            time.plot(states, [row["processor_seconds"] for row in rows], **look)
            used = [row["peak_megabytes"] - row["before_megabytes"] + row["csr_megabytes"] for row in rows]
            memory.plot(states, used, **look)
            index += 1
    plain = [row for row in usual if (row["world"], row["prior"]) == ("garnet", "False")]
    states = [row["states"] for row in plain]
    for factor, dashes in ((1.0, ":"), (2.5, "--")):
        label = f"{factor:g} x the rows themselves" if factor > 1 else "the rows themselves (CSR)"
        line = [factor * row["csr_megabytes"] for row in plain]
        memory.plot(states, line, color=style.INK, linestyle=dashes, marker="", label=label)
    rows = [row["rows"] for row in counted]
    seconds.plot(rows, [row["processor_seconds"] for row in counted], color=style.COLORS[0], marker=style.MARKERS[0])
    peak.plot(rows, [row["peak_megabytes"] for row in counted], color=style.COLORS[0], marker=style.MARKERS[0])
    file = [row["file_megabytes"] for row in counted]
    peak.plot(rows, file, color=style.INK, linestyle=":", marker="", label="the Parquet file")
    for axis, title, x, y in (
        (time, "Planning: time", "states, 4 actions, 10 successors", "processor seconds"),
        (memory, "Planning: memory, with the model", "states, 4 actions, 10 successors", "megabytes"),
        (seconds, "Counting: time", "rows with rewards", "processor seconds"),
        (peak, "Counting: peak memory of the process", "rows with rewards", "megabytes"),
    ):
        axis.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter(_brief)
            side.set_minor_formatter("")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=7)
    return figure


def _brief(value: float, _: Any) -> str:
    """A power of ten in few letters."""
    for size, letter in ((1e6, " million"), (1e3, ",000")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def main() -> None:
    """Read, draw and write."""
    with style.style():
        figure = draw(read("large-scaling.csv"), read("counting-scaling.csv"))
        (ROOT / "docs" / "images" / "scaling.svg").write_bytes(style.to_svg(figure))


if __name__ == "__main__":
    main()
