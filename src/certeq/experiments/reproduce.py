"""The driver: figures in, tables, pictures, verdicts and one page out.

A figure's folder holds its shards, so that a run that was stopped goes on where it was; everything else in the folder,
and the page over all figures, is made from them.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import certeq
from certeq.base import places
from certeq.base.arrays import whole
from certeq.base.errors import InputError, unknown
from certeq.base.texts import json_text
from certeq.base.writing import write_files
from certeq.experiments import shards
from certeq.experiments.figures import FIGURES, STUDIES, figure
from certeq.experiments.statistics import summarize
from certeq.report import reproduction as page
from certeq.report import style

if TYPE_CHECKING:
    import polars as pl

PROFILES = ("smoke", "paper")
LARGE = 5_000_000  # bytes of a CSV that is summarized instead
TABLE, WHOLE, SUMMARY = "table.parquet", "table.csv", "summary.csv"
SVG, PNG, VERDICTS, INDEX = "picture.svg", "picture.png", "verdicts.json", "index.html"


@dataclass(frozen=True)
class Order:
    """What was asked for."""

    figures: tuple[str, ...]
    out: Path
    profile: str = "smoke"
    data_sets: int | None = None  # instead of the profile's
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", chosen(self.figures))
        if self.profile not in PROFILES:
            raise unknown("profile", self.profile, PROFILES)
        whole("--seed", self.seed, 0)
        if self.data_sets is not None:
            whole("--data-sets", self.data_sets, 2)  # one alone has no interval

    def settings(self, name: str) -> dict[str, Any]:
        """Settings of a figure, as the profile has them by default."""
        settings = dict(figure(name).SETTINGS[self.profile])
        if self.data_sets is not None and "data_sets" in settings:
            settings["data_sets"] = self.data_sets
        return settings

    def about(self, name: str) -> dict[str, Any]:
        """What a figure's results depend on, besides seed and version."""
        return {"figure": name, "profile": self.profile, "settings": self.settings(name)}

    def command(self, name: str) -> str:
        """How to get the figure again."""
        more = "" if self.data_sets is None else f" --data-sets {self.data_sets}"
        return f"certeq reproduce {name} --profile {self.profile} --seed {self.seed}{more}"


class Onlooker(Protocol):
    """Somebody who follows what happens."""

    def begin(self, name: str, unit: str) -> None:
        """A figure is begun; its progress counts data sets or tasks."""

    def progress(self, done: int, total: int) -> None:
        """So much of it is done."""

    def end(self, record: Mapping[str, Any], seconds: float) -> None:
        """It is finished, after so many seconds of this run."""

    def failed(self, name: str, error: Exception) -> None:
        """It could not be finished."""


@dataclass
class Reproduced:
    """What came of an order."""

    records: list[dict[str, Any]] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Read figure names in the paper's order; ``all``, or none, are all of the paper's. Studies go by their names."""
    for name in names:
        if name != "all" and name not in FIGURES and name not in STUDIES:
            raise unknown("figure", name, ("all", *FIGURES, *STUDIES))
    everything = not names or "all" in names
    return tuple(name for name in (*FIGURES, *STUDIES) if name in names or (everything and name in FIGURES))


def reproduce(
    order: Order, watch: Onlooker, *, workers: int = 1, scheduler: str | None = None, force: bool = False
) -> Reproduced:
    """Do all figures of an order; one that fails does not keep the others from being done."""
    _prepare(order, force=force)
    outcome = Reproduced()
    with places.executor(workers, scheduler) as executor:
        for name in order.figures:
            begun = time.perf_counter()
            try:
                record = _one(order, name, watch, executor)
            except Exception as error:
                outcome.failures[name] = error
                watch.failed(name, error)
                continue
            outcome.records.append(record)
            write_index(order.out)
            watch.end(record, time.perf_counter() - begun)
    return outcome


def _prepare(order: Order, *, force: bool) -> None:
    """See to it, before any work, that results of something else are neither mixed in nor lost."""
    index, verdicts = order.out / INDEX, order.out / VERDICTS
    if not force and (index.exists() or verdicts.exists()) and "figures" not in _read(verdicts):
        raise InputError(
            f"{index} was not written by certeq reproduce. Choose another --out, or overwrite with --force."
        )
    for name in order.figures:
        if force:
            _clear(order.out / name)
        else:
            shards.check(order.out / name / "shards", seed=order.seed, about=order.about(name))


def _clear(folder: Path) -> None:
    shards.clear(folder / "shards")
    for name in (TABLE, WHOLE, SUMMARY, SVG, PNG, VERDICTS):
        (folder / name).unlink(missing_ok=True)


def _one(order: Order, name: str, watch: Onlooker, executor: Executor | None) -> dict[str, Any]:
    """Compute, judge, draw and write one figure."""
    module, folder = figure(name), order.out / name
    cells = module.cells(order.settings(name))
    watch.begin(name, "data sets" if all("data_sets" in cell for cell in cells) else "tasks")
    table = shards.run(
        module.work,
        cells,
        folder / "shards",
        seed=order.seed,
        about=order.about(name),
        executor=executor,
        progress=watch.progress,
    )
    said = shards.manifest(folder / "shards") or {}
    drawn = module.draw(table)
    csv_name, csv = _csv(table, getattr(module, "VALUES", ("loss",)))
    record = {
        **_words(module, name),
        **{key: said[key] for key in ("certeq", "profile", "settings", "seed", "machines")},
        "command": order.command(name),
        "tasks": len(cells),
        "seconds": round(said["seconds"], 3),
        "rows": len(table),
        "width": round(drawn.get_figwidth() * 72),
        "files": {"table": TABLE, "summary" if csv_name == SUMMARY else "csv": csv_name, "svg": SVG, "png": PNG},
        "verdicts": [verdict.to_json() for verdict in module.holds(table)],
    }
    (folder / (WHOLE if csv_name == SUMMARY else SUMMARY)).unlink(missing_ok=True)
    contents: dict[str, str | bytes] = {
        TABLE: _parquet(table),
        csv_name: csv,
        SVG: style.to_svg(drawn),
        PNG: style.to_png(drawn),
        VERDICTS: json_text(record),
    }
    write_files({folder / file: content for file, content in contents.items()}, force=True)
    return record


def _words(module: ModuleType, name: str) -> dict[str, str]:
    """What a figure says about itself."""
    alt = getattr(module, "ALT", f"{module.TITLE}. {module.CLAIM}")
    notes = getattr(module, "NOTES", "")
    return {"figure": name, "title": module.TITLE, "claim": module.CLAIM, "notes": notes, "alt": alt}


def _parquet(table: pl.DataFrame) -> bytes:
    data = io.BytesIO()
    table.write_parquet(data)
    return data.getvalue()


def _csv(table: pl.DataFrame, values: Sequence[str]) -> tuple[str, str]:
    """The table as CSV, or where that is large, its means and half widths."""
    text = table.write_csv()
    if len(text) > LARGE and set(values) <= set(table.columns):
        return SUMMARY, summarize(table, values).write_csv()
    return WHOLE, text


def write_index(out: Path) -> None:
    """Write the page and the verdicts of all figures that are finished in this folder."""
    records, images = [], {}
    for name in (*FIGURES, *STUDIES):
        record = _read(out / name / VERDICTS)
        if record.get("figure") == name and (out / name / SVG).exists():
            records.append(record)
            images[name] = (out / name / SVG).read_bytes()
    verdicts = {"certeq": certeq.__version__, "counts": page.counts(records), "figures": records}
    html = page.reproduction(records, images, version=certeq.__version__)
    write_files({out / INDEX: html, out / VERDICTS: json_text(verdicts)}, force=True)


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object; an empty one where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
