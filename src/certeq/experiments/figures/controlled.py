"""The controlled world, turned by two knobs: which regularizer wins where, and is it the one that fits the world?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Rng
from certeq.experiments.procedure import method, run_cell
from certeq.experiments.statistics import Interval, hindsight, quantile
from certeq.experiments.sweeps import Panel, cells_of, losses_of, together
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, below, stretches

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Controlled environment: which regularizer wins where"
CLAIM = (
    "On a ring where κ makes leaving predictable and λ makes the two actions alike, the method whose regularization "
    "matrix is best aligned with the true environment has the lowest loss: the uniform prior or epsilon-greedy "
    "regularization."
)
SECTION = "Appendix, Fig. 10"
KAPPAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
NOTES = (
    "The paper gives neither the grid, nor the size of the data, nor the rewards. Here κ and λ move in steps of 0.2 "
    "and 0.1, data sets are 80 independent tuples (4 for each pair, as for the random chain), and states 0 to 2 pay "
    "1. The uniform matrix is what leaving does at κ = 0, and suits the world less and less as κ rises: so the claim "
    "is judged by the trend in κ of the difference in loss, a straight line through its means over λ, with its "
    "interval, and by who loses less at each κ. Beyond that we ask how often the better aligned wins, setting by "
    "setting, where “aligned” has two readings. By distance: the squared distance from the true rows to the matrix "
    "that is mixed in, averaged over pairs. By this the action average is always the better aligned, since nothing is "
    "closer to the rows of a state than their mean. By error: the least mean squared error of the rows that a matrix "
    "allows (Eq. 4), which also counts that the action average has to be estimated. A setting counts where the paired "
    "difference in loss is clear (95% intervals that hold for all settings together). Best strengths are chosen in "
    "hindsight on the same data sets; specific weights have pseudo-count 0.5; epsilon-greedy is as printed, an action "
    "that was never tried being uniform. At λ = 0.5 the actions are the same and nothing can be lost."
)
ALT = (
    "Three maps over κ and λ: difference in loss between uniform prior and epsilon-greedy at their best strengths, "
    "with specific weights, and the difference in the least error of the rows."
)
VALUES = ("loss", "to_uniform", "to_average", "to_estimate", "error_uniform", "error_average")
METHODS = {
    "uniform prior": method("uniform_prior"),
    "epsilon-greedy": method("epsilon_greedy"),
    "specific, uniform": method("least_mse"),
    "specific, epsilon-greedy": method("least_mse_epsilon_greedy"),
}
PAIRS = {
    "at the best strength": ("uniform prior", "epsilon-greedy"),
    "with specific weights": ("specific, uniform", "specific, epsilon-greedy"),
}
READINGS = {"by distance": ("to_uniform", "to_average"), "by error": ("error_uniform", "error_average")}
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 100, "chunk": 100},
    "paper": {"data_sets": 2000, "chunk": 2000},
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All settings of the two knobs."""
    tuples = {"kind": "tuples", "size": 80}
    panels = {
        f"κ = {kappa:g}, λ = {lam:g}": Panel("stay_or_leave", tuples, {"kappa": kappa, "lam": lam})
        for kappa in KAPPAS
        for lam in LAMBDAS
    }
    return [{**cell, "alignment": True} for cell in cells_of(panels, METHODS, settings)]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithms 1 and 2 in one setting, and how far each target is from the truth."""
    columns = run_cell(cell, rng)
    knobs = {name: np.full(len(columns["loss"]), cell["settings"][name]) for name in ("kappa", "lam")}
    return {**knobs, **columns}


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge the trend in κ, and how often the better aligned wins."""
    trends = [
        _in_kappa(table, kind, pair, SECTION if kind == "at the best strength" else "") for kind, pair in PAIRS.items()
    ]
    return trends + [
        _judge(
            f"the better aligned, {reading}, has the lower loss {kind} more often than not",
            _gaps(table, pair),
            _advantage(table, *columns),
        )
        for kind, pair in PAIRS.items()
        for reading, columns in READINGS.items()
    ]


def _in_kappa(table: pl.DataFrame, kind: str, pair: tuple[str, str], paper: str) -> Verdict:
    """Judge whether epsilon-greedy gains on the uniform prior as κ rises; settings are independent of one another."""
    gaps = _gaps(table, pair)[:, _knobs(table)[:, 1] < 0.5]  # (data sets, settings); at λ = .5 there is nothing to lose
    kappas, of = np.unique(_knobs(table)[_knobs(table)[:, 1] < 0.5, 0], return_inverse=True)
    n, mean, error = len(gaps), gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))

    def contrast(weight: Floats) -> Interval:
        center, half = float(weight @ mean), float(quantile(n) * np.sqrt((weight**2) @ error**2))
        return Interval(center, center - half, center + half)

    away = (kappas - kappas.mean())[of]
    slope = contrast(-away / (away**2).sum())  # of epsilon-greedy minus uniform
    at = {float(kappa): contrast((of == k) / (of == k).sum()) for k, kappa in enumerate(kappas)}
    outcomes = {kappa: HOLDS if each.high < 0 else FAILS if each.low > 0 else OPEN for kappa, each in at.items()}
    return below(
        f"as κ rises and the uniform matrix suits the world less, epsilon-greedy gains on the uniform prior {kind}",
        slope,
        "change in epsilon-greedy - uniform for κ from 0 to 1",
        note=f"That the uniform prior loses less {stretches(outcomes)} of κ.",
        paper=paper,
    )


def _judge(claim: str, differences: Floats, closer: Floats) -> Verdict:
    """Count; ``closer`` is positive where the action average is closer than the uniform row."""
    uniform, greedy = _wins(differences)
    agree = int((uniform & (closer < 0)).sum() + (greedy & (closer > 0)).sum())
    clear = int((uniform | greedy).sum())
    measured = (
        f"{agree} of {clear} settings with a clear winner, of {len(closer)} in all; the uniform prior wins "
        f"{int(uniform.sum())} and is the better aligned in {int((closer < 0).sum())} of all, epsilon-greedy wins "
        f"{int(greedy.sum())}"
    )
    outcome = OPEN if 2 * agree == clear else HOLDS if 2 * agree > clear else FAILS
    return Verdict(claim, measured, outcome, note=_trend(differences.mean(axis=0), closer))


def _trend(lost: Floats, closer: Floats) -> str:
    """Say whether the better aligned does better, setting by setting, even where it does not win."""
    from scipy.stats import spearmanr

    if not (np.ptp(lost) and np.ptp(closer)):
        return ""
    trend = spearmanr(lost, closer).statistic
    return (
        "As a trend over the settings, the rank correlation between epsilon-greedy's advantage in loss and in "
        f"alignment is {trend:.2f}."
    )


def _gaps(table: pl.DataFrame, pair: tuple[str, str]) -> Floats:
    """Loss of uniform minus epsilon-greedy, ``(data sets, settings)``."""
    return np.stack(
        [
            np.subtract(*(hindsight(losses_of(part, panel, name)) for name in pair))
            for panel, part in _parts(table).items()
        ],
        axis=1,
    )


def _parts(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The table of each setting."""
    parts = table.partition_by("panel", maintain_order=True)
    return {str(part["panel"][0]): part for part in parts}


def _knobs(table: pl.DataFrame) -> Floats:
    """κ and λ of each setting, ``(settings, 2)``."""
    return np.array([(part["kappa"][0], part["lam"][0]) for part in _parts(table).values()])


def _wins(differences: Floats) -> tuple[Booleans, Booleans]:
    """In which settings the uniform prior, and in which epsilon-greedy, clearly loses less."""
    low, high = together(differences)
    return high < 0, low > 0


def _advantage(table: pl.DataFrame, first: str, second: str) -> Floats:
    """Mean of the first column minus the second for each setting: how much better the action average is aligned."""
    return np.array([(part[first] - part[second]).to_numpy().mean() for part in _parts(table).values()])


def draw(table: pl.DataFrame) -> Figure:
    """Maps of both differences in loss and of the difference in distance."""
    from certeq.report import style

    closer = _advantage(table, *READINGS["by error"])
    figure: Figure
    with style.style():
        figure, axes = style.canvas(3, 1, width=7.2, height=3.1)
        for axis, (kind, pair) in zip(axes[0], PAIRS.items(), strict=False):
            differences = _gaps(table, pair)
            uniform, greedy = _wins(differences)
            wrong = (uniform & (closer > 0)) | (greedy & (closer < 0))
            _draw_map(axis, table, differences.mean(axis=0), ~(uniform | greedy), wrong)
            axis.set_title(f"loss {kind}")
        nowhere = np.zeros(len(closer), dtype=bool)
        _draw_map(axes[0, 2], table, closer, nowhere, nowhere)
        axes[0, 2].set_title("least error of the rows")
        axes[0, 0].set_ylabel("λ (actions are alike)")
        figure.supxlabel("gray: no clear difference      ×: the worse aligned (by error) wins", fontsize=7)
    return figure


def _draw_map(axis: Any, table: pl.DataFrame, values: Floats, unclear: Booleans, wrong: Booleans) -> None:
    """Draw uniform minus epsilon-greedy for each setting, as a color and in numbers."""
    (kappas, x), (lambdas, y) = (np.unique(column, return_inverse=True) for column in _knobs(table).T)
    grid = np.full((len(lambdas), len(kappas)), np.nan)
    grid[y, x] = values
    top = max(float(np.abs(values).max()), 1e-9)
    image = axis.imshow(grid, origin="lower", cmap="PuOr", vmin=-top, vmax=top, aspect="auto")
    for i, value in enumerate(values):
        tone = "#777777" if unclear[i] else "white" if abs(value) > 0.65 * top else "black"
        text = f"{value:.2f}".replace("-0.00", "0.00") + ("\n×" if wrong[i] else "")
        axis.text(x[i], y[i], text, ha="center", va="center", fontsize=5.5, color=tone)
    axis.set_xlabel("κ (leaving is predictable)")
    axis.set_xticks(range(len(kappas)), [f"{k:g}" for k in kappas])
    axis.set_yticks(range(len(lambdas)), [f"{v:g}" for v in lambdas])
    axis.grid(visible=False)
    axis.figure.colorbar(image, ax=axis, location="bottom", label="uniform minus epsilon-greedy", aspect=30)
