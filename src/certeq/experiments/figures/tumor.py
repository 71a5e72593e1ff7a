"""The tumor simulator: loss against strength in a world of 256 states that no table made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    "Discount regularization and the uniform prior perform similarly; either can lose significantly more if its "
    "strength is set wrongly; the state-action-specific weight comes near the least loss of both, without tuning."
)
SECTION = "Sec. 7.6, Fig. 8"
SIMILAR = 0.1  # "similarly": apart by at most this share
NOTES = (
    "As in the code of the paper's follow-up: 256 states cut from 100,000 simulated patients, “truth” counted from as "
    "many, data sets of 50 patients followed for 0 to 30 months and treated by the toss of a coin, known rewards, "
    "discount 0.99, losses weighted by how often each state occurs, pseudo-count 0.1, noise 0.25. The reward is judged "
    "in three forms. “Per dose” is the printed one, with a penalty for each dose; its size is not printed, and 1 here. "
    "“By concentration” is that of the public code, which charges for the drug that is left at the month's end, also "
    "1. “As in the follow-up” has its penalty of 10 by concentration and its rewards credited to the state they lead "
    "to, a slip; credited where they are earned, a penalty of 10 makes it best never to treat. Why the shortsighted "
    "plan (strength 0.99) is so good in the first two: the printed step takes out within the month what a dose kills, "
    "so that a dose pays at once. With steps that keep the mass it pays over years, and the shortsighted plan never "
    "treats. A method's best strength is chosen in hindsight on the same data sets. “Similarly” means apart by at "
    f"most {SIMILAR:.0%}, “significantly more” that the paired difference is clear, “near” at most {CLOSE:.0%} more."
)
ALT = (
    "Mean loss against strength in the tumor simulator under three forms of the reward, on a logarithmic axis, with "
    "95% bands, for each method."
)
METHODS = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    "specific (posterior)": method("least_mse", pseudo_count=0.1),
    "specific (MLE)": method("least_mse", plug_in="mle"),
    "oracle": method("oracle"),
}
GLOBAL = ("discount", "uniform prior")
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 12, "chunk": 12, "episodes": 5000},
    "paper": {"data_sets": 1000, "chunk": 100, "episodes": 100_000},
}


def tumor_panel(episodes: int, *, dose_penalty: float = 1.0, **world: Any) -> Panel:
    """Build a panel whose data are trials in the simulator, and whose truth is its table, counted from ``episodes``."""
    hidden = ("penalty_on", "rewards")  # what transitions do not show
    reward = {name: value for name, value in world.items() if name in hidden}
    world = {name: value for name, value in world.items() if name not in hidden} | {"episodes": episodes}
    regime = {"kind": "trials", "patients": 50, "world": world}
    return Panel("tumor", regime, {**world, **reward, "dose_penalty": dose_penalty}, weighted=True)


PRINTED = "per dose"
FORMS: dict[str, dict[str, Any]] = {
    PRINTED: {"penalty_on": "dose"},
    "by concentration": {},
    "as in the follow-up": {"dose_penalty": 10.0, "rewards": "miscredited"},
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All trials in chunks."""
    panels = {name: tumor_panel(settings["episodes"], **form) for name, form in FORMS.items()}
    return cells_of(panels, METHODS, settings)


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithms 1 and 2 on one chunk of trials."""
    return run_cell(cell, rng)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge the parts of the claim under each form of the reward, on the same data sets."""
    return [
        replace(verdict, claim=f"{panel}: {verdict.claim}", paper=verdict.paper if panel == PRINTED else "")
        for panel in panels_of(table)
        for verdict in judge(table, panel)
    ]


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
        replace(
            similar(
                "the two global methods lose alike on average over the strengths",
                uniform[:, 1:].mean(axis=1),
                discount[:, 1:].mean(axis=1),
                "uniform prior - discount",
            ),
            paper="",
        ),
        *(costly(f"a wrong strength costs the {name} significantly more", losses[name]) for name in GLOBAL),
        judge_near("the specific weight is near the least loss of both, or below", specific, least, paper=SECTION),
        judge_near("the specific weight is near the least loss of both also with the MLE as plug-in", plugged, least),
    ]


def similar(claim: str, first: Floats, second: Floats, what: str) -> Verdict:
    """Judge "alike" by whether the whole interval of first - second lies within a margin on either side."""
    gap, room = difference(first, second), SIMILAR * min(float(first.mean()), float(second.mean()))
    inside = max(-gap.low, gap.high) <= room
    outside = gap.low > room or gap.high < -room
    outcome = HOLDS if inside else FAILS if outside else OPEN
    return Verdict(claim, f"{what}: {gap}, allowed ±{room:.3g}", outcome, gap, paper=SECTION)


def costly(claim: str, losses: Floats) -> Verdict:
    """Judge "significantly more" by the loss at the best strength minus that at the worst, pair by pair."""
    mean = losses.mean(axis=0)
    best, worst = losses[:, mean.argmin()], losses[:, mean.argmax()]
    what = f"{interval(worst)} at the worst strength, {interval(best)} at the best; best - worst"
    return below(claim, difference(best, worst), what, paper=SECTION)


def draw(table: pl.DataFrame) -> Figure:
    """Loss against strength, on a logarithmic axis."""
    return draw_panels(table, per_row=3, scale="log")
