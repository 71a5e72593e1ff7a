"""Epsilon-greedy regularization on the three tabular worlds, beside the discount and the uniform prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from certeq.base.arrays import Rng
from certeq.experiments.procedure import method, run_cell
from certeq.experiments.statistics import difference, hindsight
from certeq.experiments.sweeps import Panel, cells_of, draw_panels, losses_of, panels_of
from certeq.experiments.verdict import Verdict, below

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Epsilon-greedy regularization on the tabular environments"
CLAIM = (
    "The paper shows this comparison without words of its own. What it says of regularizers in general, with its "
    "controlled environment, is judged here: of the uniform prior and epsilon-greedy regularization, the one whose "
    "regularization matrix is closer to the true transitions loses less, at its best strength and with its specific "
    "weights."
)
NOTES = (
    "Closer means: a smaller squared distance from the true rows to the matrix that is mixed in, averaged over pairs "
    "and data sets. For epsilon-greedy that matrix is the average of the state's actions as estimated from the data; "
    "the true average is never farther away than the uniform matrix, so that it would decide nothing. As printed, the "
    "average is over all actions, one that was never tried being uniform; the weight of a pair that was never tried is "
    "1 where it is specific. The paper needs rewards by state here; where the random chain's rewards are drawn for "
    "each pair, they are averaged over actions with the same weight as the transitions. Numbers of data as in the main "
    "figure; best strengths are chosen in hindsight on the same data sets."
)
ALT = "For each world and way of collecting data: mean loss against strength, with 95% bands, for each method."
VALUES = ("loss", "to_uniform", "to_average", "to_estimate", "error_uniform", "error_average")
METHODS = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    "epsilon-greedy": method("epsilon_greedy"),
    "specific, uniform": method("least_mse", pseudo_count=0.25),
    "specific, epsilon-greedy": method("least_mse_epsilon_greedy", pseudo_count=0.25),
}
CHAIN = {
    "specific, uniform": method("least_mse", pseudo_count=0.5),
    "specific, epsilon-greedy": method("least_mse_epsilon_greedy", pseudo_count=0.5),
}
TUPLES = {"kind": "tuples", "size": 80}
TRAJECTORIES = {"kind": "trajectories", "episodes": 5, "length": 19}
PANELS = {
    "random chain, tuples": Panel("random_chain", TUPLES, methods=CHAIN),
    "River Swim, tuples": Panel("river_swim", {"kind": "tuples", "size": 95}),
    "Loop, tuples": Panel("loop", {"kind": "tuples", "size": 60}),
    "random chain (state), tuples": Panel("random_chain", TUPLES, {"rewards": "state"}, CHAIN),
    "River Swim, trajectories": Panel("river_swim", TRAJECTORIES),
    "Loop, trajectories": Panel("loop", TRAJECTORIES),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 200, "chunk": 200},
    "paper": {"data_sets": 5000, "chunk": 1000},
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All panels in chunks."""
    return [{**cell, "alignment": True} for cell in cells_of(PANELS, METHODS, settings)]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithms 1 and 2 on one chunk, and how far each target is from the truth."""
    return run_cell(cell, rng)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge whether the closer matrix loses less, on the same data sets."""
    return [verdict for panel in panels_of(table) for verdict in _judge(table, panel)]


def _judge(table: pl.DataFrame, panel: str) -> list[Verdict]:
    specific = ("specific, uniform", "specific, epsilon-greedy")
    uniform, average = (losses_of(table, panel, specific[0], name).mean() for name in ("to_uniform", "to_estimate"))
    what = f"distances {uniform:.3f} (uniform) and {average:.3f} (action average); difference"
    verdicts = []
    for pair, kind in ((("uniform prior", "epsilon-greedy"), ", each at its best strength"), (specific, "")):
        closer, farther = pair if uniform < average else pair[::-1]
        losses = [hindsight(losses_of(table, panel, name)) for name in (closer, farther)]
        claim = f"{panel}: {closer}, whose matrix is closer to the truth, loses less than {farther}{kind}"
        verdicts.append(below(claim, difference(*losses), what))
    return verdicts


def draw(table: pl.DataFrame) -> Figure:
    """One panel for each world and data regime."""
    return draw_panels(table, per_row=3)
