"""An expert's prior on River Swim: left goes left, right goes right, against what assumes all pairs alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Rng
from certeq.experiments.procedure import method, run_cell
from certeq.experiments.sweeps import Panel, cells_of, draw_panels, judge_best, judge_curves, losses_of
from certeq.experiments.verdict import Verdict, strip

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "An expert's prior on River Swim"
CLAIM = (
    "A prior that moves the swimmer left for “left” and right for “right”, for certain, loses less than discount "
    "regularization and than the uniform prior, which assume the same transitions for all pairs."
)
NOTES = (
    "At the ends of the river the prior stays where it is (the code of the paper's follow-up wraps around), and at "
    "each strength it weighs as many observations as the uniform prior does (in that code, six times fewer). Data are "
    "independent tuples, as printed, and 5 trajectories of 19 steps, as in that code. How many tuples is not printed: "
    "the claims are judged along 1 to 20 rows for each pair. At strength 0 all three are the MLE."
)
ALT = "Mean loss against strength on River Swim, with 95% bands, for discount, uniform prior and left/right prior."
S = 6
LEFT_RIGHT = np.stack(  # (S, A, S)
    [np.eye(S)[np.maximum(np.arange(S) - 1, 0)], np.eye(S)[np.minimum(np.arange(S) + 1, S - 1)]], axis=1
)
EXPERT = "left/right prior"
METHODS = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    EXPERT: method("expert_prior", target=LEFT_RIGHT.tolist()),
}
ROWS = (1, 2, 4, 8, 20)  # for each of the 12 pairs
TRAJECTORIES = "5 trajectories"
PANELS = {
    **{f"{each} per pair": Panel("river_swim", {"kind": "tuples", "size": 12 * each}) for each in ROWS},
    TRAJECTORIES: Panel("river_swim", {"kind": "trajectories", "episodes": 5, "length": 19}),
}
SECTION = "Sec. 7.4, Fig. 7"
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 200, "chunk": 200},
    "paper": {"data_sets": 4000, "chunk": 1000},
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All numbers of rows, and trajectories, in chunks."""
    return cells_of(PANELS, METHODS, settings)


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithm 1 on one chunk."""
    return run_cell(cell, rng)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge the expert against both others on the same data sets, along the rows for each pair, and in trajectories."""
    along = [_judge(table, f"{each} per pair") for each in ROWS]
    strips = [
        strip(first.claim, dict(zip(ROWS, (v.outcome for v in each), strict=True)), "rows per pair", paper=first.paper)
        for each in zip(*along, strict=True)
        for first in each[:1]
    ]
    found = [replace(v, claim=f"{TRAJECTORIES}: {v.claim}", paper="") for v in _judge(table, TRAJECTORIES)]
    return strips + found


def _judge(table: pl.DataFrame, panel: str) -> list[Verdict]:
    expert, verdicts = losses_of(table, panel, EXPERT), []
    for name in ("discount", "uniform prior"):
        other = losses_of(table, panel, name)
        verdicts += judge_curves(f"the left/right prior loses less than the {name}", expert, other, SECTION)
        claim = f"the left/right prior at its best loses less than the {name} at its best"
        verdicts.append(judge_best(claim, expert, other, SECTION))
    return verdicts


def draw(table: pl.DataFrame) -> Figure:
    """One panel for each number of rows, and one for trajectories."""
    return draw_panels(table, per_row=3)
