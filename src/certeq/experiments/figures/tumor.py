"""The tumor simulator: loss against strength in a world of 256 states that no table made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng
from certeq.experiments.procedure import method, run_cell
from certeq.experiments.statistics import difference, hindsight, interval
from certeq.experiments.sweeps import (
    CLOSE,
    Panel,
    best_strength,
    cells_of,
    draw_panels,
    judge_near,
    losses_of,
    panels_of,
    strengths_of,
)
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, below

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Tumor simulator"
CLAIM = (
    "Discount regularization and the uniform prior perform similarly; either can lose far more if its strength is set "
    "wrongly; the state-action-specific weight comes near the least loss of both, without tuning."
)
SIMILAR = 0.1  # "similarly": apart by at most this share
TIMES = 2.0  # "significantly higher": at least this many times the least loss
NOTES = (
    "As in the code of the paper's follow-up: 256 states cut from 100,000 simulated patients, “truth” counted from as "
    "many, data sets of 50 patients followed for 0 to 30 months and treated by the toss of a coin, known rewards, "
    "discount 0.99, losses weighted by how often each state occurs, pseudo-count 0.1. Noise and penalty of the paper's "
    "own figure are not known: noise 0.25 as in the follow-up, and dose penalty 1, because at the follow-up's 10, with "
    "rewards credited where they are earned, it is best never to treat. A method's best strength is chosen in "
    f"hindsight on the same data sets. “Similarly” means apart by at most {SIMILAR:.0%}, “far more” at least "
    f"{TIMES:g} times as much, “near” at most {CLOSE:.0%} more."
)
ALT = "Mean loss against strength in the tumor simulator, on a logarithmic axis, with 95 % bands, for each method."
METHODS = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    "specific (posterior)": method("least_mse", pseudo_count=0.1),
    "specific (MLE)": method("least_mse", plug_in="mle"),
    "oracle": method("oracle"),
}
GLOBAL = ("discount", "uniform prior")
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 30, "chunk": 30, "episodes": 5000},
    "paper": {"data_sets": 2000, "chunk": 100, "episodes": 100_000},
}


def tumor_panel(episodes: int, *, dose_penalty: float = 1.0, **world: Any) -> Panel:
    """Build a panel whose data are trials in the simulator, and whose truth is its table, counted from ``episodes``."""
    world = {**world, "episodes": episodes}
    regime = {"kind": "trials", "patients": 50, "world": world}
    return Panel("tumor", regime, {**world, "dose_penalty": dose_penalty}, weighted=True)


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All trials in chunks."""
    return cells_of({"tumor simulator": tumor_panel(settings["episodes"])}, METHODS, settings)


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithms 1 and 2 on one chunk of trials."""
    return run_cell(cell, rng)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge the three parts of the claim, on the same data sets."""
    return [verdict for panel in panels_of(table) for verdict in judge(table, panel)]


def judge(table: pl.DataFrame, panel: str) -> list[Verdict]:
    """Judge one setting of the simulator."""
    losses = {name: losses_of(table, panel, name) for name in METHODS}
    discount, uniform = (losses[name] for name in GLOBAL)
    at = " and ".join(f"{strengths_of(table)[best_strength(losses[name])]:g}" for name in GLOBAL)
    specific, plugged = (losses[f"specific ({plug})"][:, 0] for plug in ("posterior", "MLE"))
    least = min(hindsight(discount), hindsight(uniform), key=np.mean)
    return [
        similar(
            "the two global methods lose alike at their best",
            hindsight(uniform),
            hindsight(discount),
            f"uniform prior - discount, best at the strengths {at}",
        ),
        similar(
            "the two global methods lose alike on average over the strengths",
            uniform[:, 1:].mean(axis=1),
            discount[:, 1:].mean(axis=1),
            "uniform prior - discount",
        ),
        *(costly(f"a wrong strength costs the {name} far more", losses[name]) for name in GLOBAL),
        judge_near("the specific weight is near the least loss of both, or below", specific, least),
        judge_near("the specific weight is near the least loss of both also with the MLE as plug-in", plugged, least),
    ]


def similar(claim: str, first: Floats, second: Floats, what: str) -> Verdict:
    """Judge "alike" by whether the whole interval of first - second lies within a margin on either side."""
    gap, room = difference(first, second), SIMILAR * min(float(first.mean()), float(second.mean()))
    inside = max(-gap.low, gap.high) <= room
    outside = gap.low > room or gap.high < -room
    return Verdict(claim, f"{what}: {gap}, allowed ±{room:.3g}", HOLDS if inside else FAILS if outside else OPEN, gap)


def costly(claim: str, losses: Floats) -> Verdict:
    """Judge "far more" by the least loss, times a factor, minus the loss at the worst strength."""
    mean = losses.mean(axis=0)
    best, worst = losses[:, mean.argmin()], losses[:, mean.argmax()]
    what = f"{interval(worst)} at the worst strength, {interval(best)} at the best; {TIMES:g} × best - worst"
    return below(claim, interval(TIMES * best - worst), what)


def draw(table: pl.DataFrame) -> Figure:
    """Loss against strength, on a logarithmic axis."""
    return draw_panels(table, per_row=1, scale="log")
