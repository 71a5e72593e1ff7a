"""The uniform prior that a planning discount amounts to: larger for lower discounts, and for pairs with more data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng
from certeq.experiments.verdict import Verdict, exactly
from certeq.model.weights import implied_magnitude

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Prior magnitude implied by a planning discount (paper, Fig. 2)"
CLAIM = (
    "A planning discount γ_p below γ is a uniform Dirichlet prior with α = (γ - γ_p)/γ_p · c/N in each of the N cells "
    "of a row: it grows as γ_p falls, is infinite at γ_p = 0, and is larger for pairs with more observations c."
)
NOTES = "The paper draws N = 10 states, c = 20 observations and γ = 0.99; other numbers of observations are added."
ALT = (
    "Prior magnitude per cell on a logarithmic axis against the planning discount. All curves fall steeply from 0, "
    "then slowly, then steeply to nothing at 0.99; the curves for 5, 20 and 80 observations lie one above the other."
)
SETTINGS: dict[str, dict[str, Any]] = {"smoke": {}, "paper": {}}
PAPER_VISITS = 20
ROUNDING = 1e-12  # relative
SECTION = "Sec. 5.2, Fig. 2"


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One."""
    return [{"states": 10, "discount": 0.99, "visits": [5, PAPER_VISITS, 80], "steps": 99}]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Eq. 3 on a grid of planning discounts, 0 included; nothing is random."""
    visits = np.asarray(cell["visits"], dtype=np.int64)
    lower = np.linspace(0, cell["discount"], cell["steps"] + 1)
    total = implied_magnitude(visits[:, None], cell["discount"], lower)  # (visits, γ_p), Σα
    return {
        "visits": np.repeat(visits, len(lower)),
        "states": np.full(total.size, cell["states"]),
        "discount": np.full(total.size, cell["discount"]),
        "planning_discount": np.tile(lower, len(visits)),
        "alpha": (total / cell["states"]).ravel(),
    }


def holds(table: pl.DataFrame) -> list[Verdict]:
    """The closed form, its two directions, and its limit."""
    import polars as pl

    at_zero = table.filter(pl.col("planning_discount") == 0)
    limit = at_zero["alpha"].to_numpy()
    rest = table.filter(pl.col("planning_discount") > 0)
    c, N, gamma, lower, alpha = (
        rest[name].to_numpy() for name in ("visits", "states", "discount", "planning_discount", "alpha")
    )
    formula = (gamma - lower) / lower * c / N
    off = float((np.abs(alpha - formula) / np.maximum(formula, 1)).max())
    paper = _curve(table, PAPER_VISITS)
    by_visits = np.stack([_curve(table, visits) for visits in sorted(set(table["visits"]))])[:, 1:-1]
    steps = np.diff(paper[1:])
    ratio = by_visits[-1] / by_visits[0]
    return [
        exactly(
            "With N = 10, c = 20 and γ = 0.99 each cell gets α = 2(0.99 - γ_p)/γ_p",
            off <= ROUNDING,
            f"largest relative difference from the closed form {off:.2g} at {len(formula)} points",
            paper=SECTION,
        ),
        exactly(
            "A lower planning discount implies a larger prior",
            bool((steps < 0).all()),
            f"falling at {int((steps < 0).sum())} of {len(steps)} steps, from {paper[1]:.4g} to {paper[-1]:.4g}",
            paper=SECTION,
        ),
        exactly(
            "The prior is larger for pairs with more data",
            bool((np.diff(by_visits, axis=0) > 0).all()),
            f"16 times the observations: {ratio.min():.6g} to {ratio.max():.6g} times the prior, at every discount",
            paper=SECTION,
        ),
        exactly(
            "At a planning discount of 0 the prior is infinite for all pairs",
            bool(np.isinf(limit).all()),
            f"infinite for {int(np.isinf(limit).sum())} of {len(limit)} numbers of observations, the limit of Eq. 3",
            paper=SECTION,
        ),
    ]


def _curve(table: pl.DataFrame, visits: int) -> Floats:
    import polars as pl

    return table.filter(pl.col("visits") == visits).sort("planning_discount")["alpha"].to_numpy()


def draw(table: pl.DataFrame) -> Figure:
    """One curve for each number of observations; the paper's is the thick one."""
    from certeq.report import style

    figure: Figure
    grid = np.unique(table["planning_discount"].to_numpy())
    inside = slice(1, -1)  # infinite at 0 and zero at γ: neither has a place on a logarithmic axis
    with style.style():
        figure, axes = style.canvas(width=4.2, height=2.9)
        axis = axes[0, 0]
        for index, visits in enumerate(sorted(set(table["visits"]))):
            paper = visits == PAPER_VISITS
            label = f"{visits} observations{' (paper)' if paper else ''}"
            dashes = "-" if paper else (0, (4, 2)) if visits < PAPER_VISITS else (0, (1, 1))
            axis.plot(
                grid[inside],
                _curve(table, visits)[inside],
                color=style.COLORS[index],
                label=label,
                linewidth=2.2 if paper else 1.3,
                linestyle=dashes,
            )
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set(xlabel="planning discount γ_p", ylabel="prior α per cell of a row", xlim=(0, 1))
        axis.text(0.05, 0.97, "infinite at γ_p = 0", fontsize=7, transform=axis.transAxes, va="center")
        axis.legend(loc="lower left")
    return figure
