"""The tumor simulator under other noise, penalty, starts and treatment: does the picture stay the same?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng
from certeq.experiments.figures.tumor import FORMS, GLOBAL, METHODS, PRINTED, SECTION, SIMILAR, judge, tumor_panel
from certeq.experiments.procedure import run_cell
from certeq.experiments.statistics import difference, hindsight
from certeq.experiments.sweeps import CLOSE, cells_of, losses_of, panels_of, plain_ticks
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, together

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Tumor simulator, other settings"
CLAIM = (
    "Across transition noise, dose penalty, start noise and treatment probability: discount regularization and the "
    "uniform prior perform similarly, a wrong strength can cost either of them significantly more, and the "
    "state-action-specific weight comes near the least loss of both without tuning."
)
DEFAULT = {"process_noise": 0.25, "dose_penalty": 1.0, "start_noise": 0.25, "treatment_probability": 0.5}
LABELS = {
    "process_noise": "transition noise",
    "dose_penalty": "dose penalty",
    "start_noise": "start noise",
    "treatment_probability": "treatment probability",
}
GRID = {
    "process_noise": (0.05, 0.15, 0.25, 0.35, 0.45),
    "dose_penalty": (0.0, 0.5, 1.0, 2.0, 3.0),
    "start_noise": (0.0, 0.125, 0.25, 0.375, 0.5),
    "treatment_probability": (0.1, 0.3, 0.5, 0.7, 0.9),
}
NOTES = (
    "The paper names the four settings but not their values. Here each is moved alone, two steps to either side of the "
    "main figure's, or as far as it makes sense: transition noise 0.05 to 0.45, dose penalty 0 to 3, start noise 0 to "
    "0.5, treatment probability 0.1 to 0.9, with the penalty per dose, as printed. Each setting has its own states and "
    "its own “truth”. A part of the claim holds if it holds in every setting, and in part if in some. As in the main "
    f"figure, “similarly” means apart by at most {SIMILAR:.0%}, “significantly more” that the paired difference is "
    f"clear, “near” at most {CLOSE:.0%} more."
)
ALT = (
    "Above: loss of the specific weight relative to the best discount and the best uniform prior, with 95% intervals, "
    "against each of four settings. Below: what the worst strength of each costs."
)
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 10, "chunk": 10, "episodes": 2000},
    "paper": {"data_sets": 400, "chunk": 200, "episodes": 100_000},
}


def panel_name(parameter: str, value: float) -> str:
    """Name of a setting in the table; the default belongs to all four parameters."""
    return "default" if value == DEFAULT[parameter] else f"{LABELS[parameter]} {value:g}"


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One cell for each setting, or more where its data sets do not fit into a chunk."""
    panels = {
        panel_name(parameter, value): tumor_panel(
            settings["episodes"], **(DEFAULT | FORMS[PRINTED] | {parameter: value})
        )
        for parameter, values in GRID.items()
        for value in values
    }
    return cells_of(panels, METHODS, settings)


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithms 1 and 2 on the trials of one setting."""
    return run_cell(cell, rng)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge each part of the claim in every setting, then all settings together."""
    panels = panels_of(table)
    each = [judge(table, panel) for panel in panels]
    return [_all(dict(zip(panels, part, strict=True))) for part in zip(*each, strict=True)]


def _all(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Judge "in every setting"."""
    where = {
        outcome: [name for name, v in verdicts.items() if v.outcome == outcome] for outcome in (HOLDS, FAILS, OPEN)
    }
    measured = f"holds in {len(where[HOLDS])} of {len(verdicts)} settings"
    for kind in (FAILS, OPEN):
        if where[kind]:
            measured += f"; {kind} for: {', '.join(where[kind])}"
    one, outcome = next(iter(verdicts.values())), together(v.outcome for v in verdicts.values())
    return Verdict(f"in every setting, {one.claim}", measured, outcome, paper=SECTION if one.paper else "")


def draw(table: pl.DataFrame) -> Figure:
    """One column for each parameter."""
    from certeq.report import style

    known = set(panels_of(table))
    figure: Figure
    with style.style():
        figure, axes = style.canvas(len(GRID), 2, width=7.2, height=2.0, sharey="row")
        for column, (parameter, values) in enumerate(GRID.items()):
            top, bottom = axes[:, column]
            there = [value for value in values if panel_name(parameter, value) in known]
            step = 0.06 * (max(there) - min(there))  # apart, so that the intervals do not hide one another
            for index, name in enumerate(GLOBAL):
                pairs = [_compared(table, panel_name(parameter, value), name) for value in there]
                for axis, which in ((top, 0), (bottom, 1)):
                    mean, half = np.array([pair[which] for pair in pairs]).T
                    x = np.array(there) + (index - 0.5) * step
                    color, marker = style.COLORS[index], style.MARKERS[index]
                    axis.errorbar(x, mean, half, color=color, marker=marker, label=name, linewidth=1, capsize=2)
            top.axhline(0, color="black", linewidth=0.8)
            top.axhspan(-CLOSE, CLOSE, color="#DDDDDD", linewidth=0, zorder=0)
            bottom.set(xlabel=LABELS[parameter], yscale="log")
            plain_ticks(bottom)
        axes[0, 0].set_ylabel("specific, relative to\nthe best global strength")
        axes[1, 0].set_ylabel("worst strength,\nrelative to the best")
        top.yaxis.set_major_formatter("{x:+.0%}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _compared(table: pl.DataFrame, panel: str, name: str) -> tuple[Floats, Floats]:
    """Specific minus best, and worst over best, both as a share of the best, each with the interval's half width."""
    losses = losses_of(table, panel, name)
    best, worst = hindsight(losses), losses[:, losses.mean(axis=0).argmax()]
    near = difference(losses_of(table, panel, "specific (posterior)")[:, 0], best)
    far = difference(worst, best)
    scale = float(best.mean())
    return (
        np.array([near.mean, near.high - near.mean]) / scale,
        np.array([scale + far.mean, far.high - far.mean]) / scale,
    )
