"""What the loss-against-strength figures share: panels of cells, reading losses back, judging and drawing them.

A panel is an environment with settings and a data regime. Its data sets are drawn in chunks, one cell each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from certeq.base.arrays import Floats
from certeq.experiments.procedure import STRENGTHS, Method
from certeq.experiments.statistics import bands, difference, hindsight, interval, quantile
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, below

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

DASHES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
AMOUNT = re.compile(r"([\d,]+) (?:skewed )?(?:tuples|trajector|patients|rows)")  # of data, in the name of a panel
CLOSE = 0.05  # "close to", "near": at most this much more, as a share of the smaller loss


@dataclass(frozen=True)
class Panel:
    """One picture: where the data come from."""

    environment: str
    regime: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Method] = field(default_factory=dict)  # in place of the figure's own of the same name
    weighted: bool = False  # whether losses are weighted by the truth's start instead of all states alike
    reward_noise: float | None = None  # of a row's reward, where rewards are estimated; None: they are known


def cells_of(
    panels: Mapping[str, Panel],
    methods: Mapping[str, Method],
    settings: Mapping[str, Any],
    strengths: Sequence[float] = STRENGTHS,
) -> list[dict[str, Any]]:
    """Cells of all panels: ``data_sets`` data sets each, in chunks of ``chunk``."""
    total, chunk = settings["data_sets"], settings["chunk"]
    return [
        {
            "panel": name,
            "environment": panel.environment,
            "settings": dict(panel.settings),
            "regime": dict(panel.regime),
            "methods": _said({key: panel.methods.get(key, chosen) for key, chosen in methods.items()}),
            "strengths": list(strengths),
            "weighted": panel.weighted,
            **({} if panel.reward_noise is None else {"reward_noise": panel.reward_noise}),
            "data_sets": min(chunk, total - first),
            "first": first,
        }
        for name, panel in panels.items()
        for first in range(0, total, chunk)
    ]


def _said(methods: Mapping[str, Method]) -> dict[str, Any]:
    """Methods as plain values."""
    return {name: {"regularizer": m.regularizer, "settings": dict(m.settings)} for name, m in methods.items()}


def losses_of(table: pl.DataFrame, panel: str, method: str, column: str = "loss") -> Floats:
    """Losses ``(data sets, strengths)`` of a method in a panel; line d is the same data set for every method."""
    import polars as pl

    part = table.filter((pl.col("panel") == panel) & (pl.col("method") == method))
    order = [name for name in ("cell", "data_set", "strength") if name in part.columns]
    return part.sort(order)[column].to_numpy().reshape(-1, part["strength"].n_unique())


def panels_of(table: pl.DataFrame) -> list[str]:
    """Panels in the order in which they were drawn."""
    return list(table["panel"].unique(maintain_order=True))


def strengths_of(table: pl.DataFrame) -> Floats:
    """The strengths on the x axis."""
    grid = np.unique(table["strength"].to_numpy())
    return np.asarray(grid[np.isfinite(grid)])


def together(differences: Floats) -> tuple[Floats, Floats]:
    """Ends of 95% intervals of the mean of each column, all of which hold together (Bonferroni)."""
    n, k = differences.shape
    mean, half = bands(differences)
    if n > 1:
        half = half * stdtrit(n - 1, 1 - 0.025 / k) / quantile(n)
    return mean - half, mean + half


def judge_curves(claim: str, first: Floats, second: Floats, paper: str = "") -> list[Verdict]:
    """Judge "first loses less than second, across strengths" in two readings: on average, and at every one.

    The second is a stricter one of ours. Strength 0 is left out: there nothing is regularized.
    """
    gaps = (first - second)[:, 1:]
    low, high = together(gaps)
    less, more = int((high < 0).sum()), int((low > 0).sum())
    count = f"less at {less} of {gaps.shape[1]} strengths, more at {more}"
    outcome = FAILS if more else HOLDS if less and (high <= 0).all() else OPEN
    return [
        below(
            f"{claim}, on average over the strengths",
            interval(gaps.mean(axis=1)),
            f"{count}; mean difference",
            paper=paper,
        ),
        Verdict(f"{claim}, and at no strength more", count, outcome),
    ]


def best_strength(losses: Floats) -> int:
    """Index of the strength that is best on average, in hindsight."""
    return int(losses.mean(axis=0).argmin())


def judge_best(claim: str, first: Floats, second: Floats, paper: str = "") -> Verdict:
    """Judge "first at its best loses less than second at its best", each at the strength that hindsight prefers."""
    return below(claim, difference(hindsight(first), hindsight(second)), "difference", paper=paper)


def judge_near(claim: str, first: Floats, second: Floats, close: float = CLOSE, paper: str = "") -> Verdict:
    """Judge "first is close to second or better": at most the share ``close`` of second's mean loss above it."""
    return below(claim, difference(first, second), "difference", margin=close * float(second.mean()), paper=paper)


def judge_trend(claim: str, losses: Mapping[str, Floats]) -> Verdict:
    """Judge whether more data ever make losses clearly larger: the interval of a difference lies above zero.

    Panels whose names differ in the amount of data alone belong together; their data sets are independent.
    """
    families: dict[str, dict[int, str]] = {}
    for panel in losses:
        found = AMOUNT.search(panel)
        if found:
            family = f"{panel[: found.start(1)]}{panel[found.end(1) :]}".replace("trajectory", "trajectories")
            families.setdefault(family, {})[int(found[1].replace(",", ""))] = panel
    steps = [step for family in families.values() for step in pairwise(family[n] for n in sorted(family))]
    worse = []
    for few, many in steps:
        n = min(len(losses[few]), len(losses[many]))
        if difference(losses[many][:n], losses[few][:n]).low > 0:
            worse.append(many)
    said = f"worse in {len(worse)} of {len(steps)} steps" + (f": {'; '.join(worse)}" if worse else "")
    return Verdict(claim, said, FAILS if worse else HOLDS if steps else OPEN)


def draw_panels(table: pl.DataFrame, *, per_row: int = 3, scale: str = "linear") -> Figure:
    """One axis for each panel: lines with bands against the strength, levels for methods without one."""
    from certeq.report import style

    panels = panels_of(table)
    figure: Figure
    with style.style():
        rows = -(-len(panels) // per_row)
        columns = min(per_row, len(panels))
        figure, axes = style.canvas(columns, rows, width=max(2.3 * columns, style.COLUMN), height=2.2)
        for axis in axes.ravel()[len(panels) :]:
            axis.set_visible(False)
        for place, (axis, panel) in enumerate(zip(axes.ravel(), panels, strict=False)):
            _draw_panel(axis, table, panel)
            axis.set(title=panel, yscale=scale)
            low, high = axis.get_ylim()
            if scale == "log":
                plain_ticks(axis)
            elif low < high / 2:
                axis.set_ylim(bottom=-0.03 * high)  # so that a loss of 0 can be seen
            if place % columns == 0:
                axis.set_ylabel("loss")
            if place + columns >= len(panels):
                axis.set_xlabel("strength ε")
        handles, labels = axes.ravel()[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns + 1, 3))
    return figure


def plain_ticks(axis: Any) -> None:
    """Write the ticks of a logarithmic loss axis as plain numbers: 1, 2, 5, 10, 20, ..."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _draw_panel(axis: Any, table: pl.DataFrame, panel: str) -> None:
    from certeq.report import style

    grid, levels = strengths_of(table), 0
    for index, method in enumerate(table["method"].unique(maintain_order=True)):
        mean, half = bands(losses_of(table, panel, method))
        if len(mean) > 1:
            style.line_with_band(axis, grid, mean, half, label=method, index=index)
        else:
            dashes: Any = DASHES[levels % len(DASHES)]
            style.level_with_band(axis, float(mean[0]), float(half[0]), label=method, index=index, dashes=dashes)
            levels += 1
