"""River Swim planned with a lower discount and with averaged transitions: other values, the same policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats, Rng
from certeq.experiments.verdict import Verdict, exactly
from certeq.model.kernel import Mixture, Rows
from certeq.model.weights import planning_discount
from certeq.planners import Plan, solve
from certeq.worlds import river_swim

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Values and policy on River Swim under two regularizers (paper, Fig. 1)"
CLAIM = (
    "Planning with a lower discount, or with transitions averaged with a matrix whose rows are all the same, yields "
    "different values but the same optimal policy (Theorem 1)."
)
NOTES = (
    "γ = 0.999 and ε = 0.5, as in the authors' code. That code averages with rows of 0.10, which sum to 0.6, where a "
    "uniform row of six states has 1/6; the slip cannot change the policy, and both are shown."
)
ALT = (
    "A grid of six river states for each of three methods, colored by value on a logarithmic scale. The values differ "
    "by orders of magnitude between methods; the arrows agree: left in the leftmost state, right in all others."
)
SETTINGS: dict[str, dict[str, Any]] = {"smoke": {}, "paper": {}}

LOWER, UNIFORM, AUTHORS = "lower discount", "averaged with uniform rows", "averaged with rows of 0.10"
PRINTED = {  # values, states 0..5, and half a unit of their last digit
    LOWER: ((0.00999, 0.00650, 0.02460, 0.09763, 0.38757, 1.53853), 5e-6),
    UNIFORM: ((171.907, 171.903, 171.921, 171.994, 172.284, 173.435), 5e-4),
    AUTHORS: ((0.52363, 0.52013, 0.53824, 0.61127, 0.90120, 2.05217), 5e-6),
}
BEST = ("left", "right", "right", "right", "right", "right")
ROUNDING = 1e-9
SECTION = "Sec. 5.1, Fig. 1"


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One."""
    return [{"discount": 0.999, "strength": 0.5, "authors_cell": 0.10}]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Plan three times in the known river; nothing is random."""
    river = river_swim(discount=cell["discount"])
    S, A = river.reward.shape
    weight = np.full((1, 1), cell["strength"])

    def averaged(row: float) -> Plan:
        return solve(Mixture(river.transition, weight, Rows(np.full((1, 1, S), row))), river.reward, river.discount)

    plans = {
        LOWER: solve(river.transition, river.reward, planning_discount(river.discount, cell["strength"])),
        UNIFORM: averaged(1 / S),
        AUTHORS: averaged(cell["authors_cell"]),
    }
    return {
        "method": np.repeat(list(plans), S * A),
        "state": np.tile(np.repeat(np.arange(S), A), len(plans)),
        "action": np.tile(river.action_names, S * len(plans)),
        "value": np.concatenate([np.repeat(plan.values, A) for plan in plans.values()]),
        "advantage": np.concatenate([plan.advantages.ravel() for plan in plans.values()]),
        "advised": np.concatenate([(np.arange(A) == plan.policy[:, None]).ravel() for plan in plans.values()]),
    }


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Values differ, policies and advantages agree, and the values are those of the authors."""
    gap = _values(table, UNIFORM) - _values(table, LOWER)
    apart = np.abs(_advantages(table, UNIFORM) - _advantages(table, LOWER)).max()
    policies = {method: _policy(table, method) for method in PRINTED}
    same = sum(len({policies[method][s] for method in PRINTED}) == 1 for s in range(len(BEST)))
    return [
        exactly(
            "The optimal policy is the same: left in the leftmost state, right elsewhere",
            set(policies.values()) == {BEST},
            f"the same action in {same} of {len(BEST)} states under all three; policy {', '.join(policies[LOWER])}",
            paper=SECTION,
        ),
        exactly(
            "The values differ",
            bool((np.abs(gap) > ROUNDING).all()),
            f"by {gap.mean():.6g} in every state (from {gap.min():.9g} to {gap.max():.9g}), the constant of the proof",
            paper=SECTION,
        ),
        exactly(
            "The advantages agree: each action is as far from the best in both",
            bool(apart <= ROUNDING),
            f"largest difference {apart:.2g}",
        ),
        *(_printed(table, method) for method in PRINTED),
    ]


def _printed(table: pl.DataFrame, method: str) -> Verdict:
    values, digit = PRINTED[method]
    off = float(np.abs(_values(table, method) - values).max())
    return exactly(
        f"Values, {method}: {', '.join(f'{value:g}' for value in values)}",
        off <= digit * 1.001,
        f"largest difference {off:.2g}; half a unit of the last digit given is {digit:.0e}",
    )


def _part(table: pl.DataFrame, method: str) -> pl.DataFrame:
    import polars as pl

    return table.filter(pl.col("method") == method).sort("state", "action")


def _values(table: pl.DataFrame, method: str) -> Floats:
    return _part(table, method)["value"].to_numpy().reshape(-1, 2)[:, 0]


def _advantages(table: pl.DataFrame, method: str) -> Floats:
    return _part(table, method)["advantage"].to_numpy().reshape(-1, 2)


def _policy(table: pl.DataFrame, method: str) -> tuple[str, ...]:
    import polars as pl

    return tuple(_part(table, method).filter(pl.col("advised"))["action"])


def draw(table: pl.DataFrame) -> Figure:
    """States across, methods down; color and number are the value, the arrow is the advice."""
    from matplotlib.colors import LogNorm

    from certeq.report import style

    figure: Figure
    methods = list(dict.fromkeys(table["method"].to_list()))
    values = np.stack([_values(table, method) for method in methods])
    with style.style():
        figure, axes = style.canvas(width=6.4, height=2.5)
        axis = axes[0, 0]
        shades = axis.imshow(values, norm=LogNorm(), cmap="viridis", aspect="auto")
        for row, method in enumerate(methods):
            for state, action in enumerate(_policy(table, method)):
                value = values[row, state]
                ink = "black" if shades.norm(value) > 0.53 else "white"
                axis.text(state, row - 0.18, f"{value:.4g}", ha="center", va="center", color=ink)
                reach = 0.22 if action == "right" else -0.22
                arrow = {"arrowstyle": "-|>", "color": ink, "lw": 1.6, "mutation_scale": 10}
                axis.annotate("", (state + reach, row + 0.2), (state - reach, row + 0.2), arrowprops=arrow)
        axis.set_xticks(range(values.shape[1]))
        axis.set_yticks(range(len(methods)), [method.replace(" with ", " with\n") for method in methods])
        axis.set(xlabel="state of the river")
        axis.grid(visible=False)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
        for edge in np.arange(1, len(methods)) - 0.5:
            axis.axhline(edge, color="white", linewidth=4)
        figure.colorbar(shades, ax=axis, label="value", pad=0.02, format="{x:g}")
    return figure
