"""With the same number of observations of every pair, a lower discount and a uniform prior give identical policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng, generator
from certeq.experiments.procedure import ENGINE, STRENGTHS, draw_counts, draw_truth
from certeq.experiments.statistics import bands, difference
from certeq.experiments.verdict import FAILS, HOLDS, Verdict, exactly
from certeq.questions.sweep import sweep

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Identical losses with equal counts on the random chain (paper, Fig. 5)"
CLAIM = (
    "When every state-action pair was observed equally often, discount regularization and a uniform prior give "
    "identical policies, and so identical losses, at every strength."
)
NOTES = (
    "Exactly 4 observations of each of the 20 pairs, and a new random chain for each data set, as in the follow-up. "
    "Policies are compared as sets: every action that is best for one method is best for the other."
)
ALT = (
    "Loss against strength on the random chain: the curves of the discount and of the uniform prior lie on each other."
)
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 200, "chunk": 200},
    "paper": {"data_sets": 10_000, "chunk": 10_000},
}
SECTION = "Sec. 7.3, Fig. 5"
METHODS = {"discount": "discount", "uniform_prior": "uniform prior"}
VALUES = (*METHODS, "same_policy")


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Chunks of data sets."""
    total, chunk = settings["data_sets"], settings["chunk"]
    return [
        {"each": 4, "strengths": list(STRENGTHS), "data_sets": min(chunk, total - first), "first": first}
        for first in range(0, total, chunk)
    ]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Plan on each data set at each strength with both methods; keep the losses, and whether the policies agree."""
    random, D = generator(rng), cell["data_sets"]
    truth = draw_truth("random_chain", {}, D, random)
    counts = draw_counts(truth, {"kind": "equal", "each": cell["each"]}, D, random)
    grid, how = np.asarray(cell["strengths"]), dict[str, Any](truth=truth, engine=ENGINE)
    found = {
        name: sweep(counts, truth.reward, truth.discount, regularizer=name, strength=grid, **how) for name in METHODS
    }
    return {
        "data_set": np.repeat(np.arange(D) + cell["first"], len(grid)),
        "strength": np.tile(grid, D),
        **{name: each.loss.ravel() for name, each in found.items()},
        "same_policy": (found["discount"].tied == found["uniform_prior"].tied).all(axis=(-2, -1)).ravel(),
    }


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Policies and losses are identical, data set by data set, and the strength does matter."""
    discount, prior = (_losses(table, name) for name in METHODS)  # (D, E) each
    same = int(table["same_policy"].sum())
    apart = float(np.abs(discount - prior).max())
    paired = difference(prior.mean(axis=1), discount.mean(axis=1))
    strengths = discount.shape[1]
    identical = Verdict(
        f"Loss is identical for both methods at all {strengths} strengths",
        f"largest |difference| {apart:.2g} over {discount.size:,} plans; mean difference {paired}",
        HOLDS if apart == 0 else FAILS,
        paired,
        paper=SECTION,
    )
    swing = discount.mean(axis=0)
    return [
        exactly(
            "The policies are identical",
            same == len(table),
            f"{same:,} of {len(table):,} policies ({same / len(table):.2%}), one for each data set and strength",
            paper=SECTION,
        ),
        identical,
        exactly(
            "Which is not because nothing depends on the strength",
            bool(np.ptp(swing) > 0),
            f"mean loss {swing.min():.4g} to {swing.max():.4g}, depending on the strength",
        ),
    ]


def _losses(table: pl.DataFrame, name: str) -> Floats:
    return table[name].to_numpy().reshape(-1, table["strength"].n_unique())


def draw(table: pl.DataFrame) -> Figure:
    """Both curves on one axis, the second over the first."""
    from certeq.report import style

    figure: Figure
    grid = np.unique(table["strength"].to_numpy())
    with style.style():
        figure, axes = style.canvas(width=4.2, height=2.9)
        axis = axes[0, 0]
        mean, half = bands(_losses(table, "discount"))
        axis.plot(grid, mean, color=style.COLORS[5], linewidth=6, alpha=0.8, label=METHODS["discount"])
        axis.fill_between(grid, mean - half, mean + half, color=style.COLORS[5], alpha=0.25, linewidth=0)
        mean, half = bands(_losses(table, "uniform_prior"))
        style.line_with_band(axis, grid, mean, half, label=METHODS["uniform_prior"], index=1)
        axis.set(xlabel="strength ε", ylabel="loss")
        axis.set_ylim(bottom=0)
        axis.legend()
    return figure
