"""The numbers of the paper's follow-up beside ours: its data, its rewards, its planner, and its slips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from certeq.base.arrays import Floats, Integers, Rng, generator
from certeq.base.compiling import njit
from certeq.data.counts import Counts
from certeq.experiments.figures.tumor import FORMS, tumor_panel
from certeq.experiments.procedure import ENGINE, STRENGTHS, draw_counts, draw_truth, oracle
from certeq.experiments.statistics import Interval, quantile
from certeq.experiments.verdict import FAILS, HOLDS, Verdict
from certeq.learning.equivalence import estimate
from certeq.model.kernel import Kernel, Mixture, Rows
from certeq.model.mdp import MDP
from certeq.model.unvisited import fill
from certeq.planners import solve
from certeq.questions.sweep import even, values

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "The follow-up's numbers, matched"
CLAIM = (
    "Rathnam et al. published the code of a journal version (JMLR 25, 2024) with its figures. Under its conventions, "
    "this code finds the same losses."
)
RIVER, TUMOR = "River Swim", "tumor"
EVEN, FIRST, ROUGH, ROUGHER = "ties shared", "first action", "stopped at 1e-4", "stopped at 1e-2"
STOPPED = {ROUGH: 1e-4, ROUGHER: 1e-2}
MLE, DISCOUNT, UNIFORM, SPECIFIC, ORACLE, EXPERT = (
    "MLE", "best discount", "best uniform prior", "ε*", "oracle ε*", "best left/right prior",
)  # fmt: skip
NOTES = (
    "Theirs are read off the published figures; ours have 95% intervals. A number is matched if theirs lies within "
    "what one more run of their size would give, all of them together 19 times out of 20, plus what the eye may be "
    "off. Conventions of that code: the random chain with a bonus of 1 for one pair and 4 rows of each (“equal "
    "counts”), and with rewards by state and 80 tuples; River Swim as 5 trajectories of 19 steps; pseudo-counts 0.5, "
    "0.25 and 0.1; a left/right prior that wraps around and has a sixth of the uniform prior's weight; the tumor "
    "simulator with a penalty of 10 and rewards credited to the state they lead to. Its tumor numbers are of one "
    "simulated table and 100 data sets; from table to table they move by more than from data set to data set, so ours "
    "are of several. Of tied actions it takes the first, which in River Swim is the wrong one; shared ties, our "
    "convention elsewhere, are shown beside it. Its planner is a value iteration from a random start that stops when "
    "nothing moves by more than a tolerance; the code names tolerances from 1e-5 to 1e-2. In River Swim, where the "
    "values of a strongly regularized plan differ by less than that, what it returns is in part the random start: "
    "shown for 1e-4, its usual one, and 1e-2."
)
ALT = (
    "For each of four settings of the follow-up, its losses and ours with intervals, method by method: MLE, best "
    "discount, best uniform prior, ε*, oracle. Last, loss against strength in River Swim under planners that stop "
    "early."
)
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 60, "chunk": 60, "tables": 2, "tumor": 4, "episodes": 2000},
    "paper": {"data_sets": 10_000, "chunk": 1000, "tables": 12, "tumor": 25, "episodes": 100_000},
}
LEFT_RIGHT = np.stack([np.roll(np.eye(6), -1, axis=1), np.roll(np.eye(6), 1, axis=1)], axis=1)  # (S, A, S), wrapping


@dataclass(frozen=True)
class Published:
    """A setting of the follow-up, and what its figures show."""

    environment: str
    regime: Mapping[str, Any]
    pseudo_count: float
    theirs: Mapping[str, float]  # loss by method
    runs: int  # independent ones behind each number: data sets, or tables where one table was drawn for all
    eye: float  # how far a reading may be off
    settings: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "random chain, equal counts": Published(
        "random_chain", {"kind": "equal", "each": 4}, 0.5,
        {MLE: 2.13, DISCOUNT: 1.03, UNIFORM: 1.03}, 10_000, 0.01, {"rewards": "bonus"},
    ),
    "random chain, rewards by state": Published(
        "random_chain", {"kind": "tuples", "size": 80}, 0.5,
        {MLE: 2.78, DISCOUNT: 2.55, UNIFORM: 2.385, SPECIFIC: 2.465, ORACLE: 2.345}, 5000, 0.01, {"rewards": "state"},
    ),
    RIVER: Published(
        "river_swim", {"kind": "trajectories", "episodes": 5, "length": 19}, 0.25,
        {MLE: 18.1, DISCOUNT: 18.1, UNIFORM: 7.45, SPECIFIC: 8.7, ORACLE: 3.55, EXPERT: 0.7}, 5000, 0.05,
    ),
    TUMOR: Published("tumor", {}, 0.1, {MLE: 292.0, DISCOUNT: 247.0, UNIFORM: 247.0, SPECIFIC: 252.0}, 1, 1.0),
}  # fmt: skip
NUMBERS = sum(len(case.theirs) for case in CASES.values())


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings in chunks; of the tumor simulator, a table in each."""
    total, chunk, few = settings["data_sets"], settings["chunk"], min(settings["tumor"], settings["data_sets"])
    parts = [
        _cell(name, first, min(chunk, total - first), case.settings, case.regime)
        for name, case in CASES.items()
        if name != TUMOR
        for first in range(0, total, chunk)
    ]
    for table in range(settings["tables"]):
        panel = tumor_panel(settings["episodes"], rng=table, **FORMS["as in the follow-up"])
        parts.append(_cell(TUMOR, table * few, few, panel.settings, panel.regime))
    return parts


def _cell(
    name: str, first: int, data_sets: int, settings: Mapping[str, Any], regime: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "panel": name,
        "environment": CASES[name].environment,
        "settings": dict(settings),
        "regime": dict(regime),
        "pseudo_count": CASES[name].pseudo_count,
        "planners": [EVEN, FIRST, *(STOPPED if name == RIVER else ())],
        "weighted": name == TUMOR,
        "data_sets": data_sets,
        "first": first,
    }


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Losses of every method under every planner on one chunk."""
    random, D = generator(rng), cell["data_sets"]
    truth = draw_truth(cell["environment"], cell["settings"], D, random)
    counts = draw_counts(truth, cell["regime"], D, random)
    optimal = solve(truth.transition, truth.reward, truth.discount, engine=ENGINE).values.reshape(-1, 1, truth.n_states)
    columns: dict[str, list[Any]] = {name: [] for name in ("planner", "method", "data_set", "strength", "loss")}
    for name, model, discount, grid in models(truth, counts, cell["pseudo_count"]):
        for planner in cell["planners"]:
            lost = optimal - values(truth, advised(planner, model, truth, discount, random))
            loss = lost @ truth.start if cell["weighted"] else lost.mean(axis=-1)  # (D, E)
            columns["planner"].append(np.full(loss.size, planner))
            columns["method"].append(np.full(loss.size, name))
            columns["data_set"].append(np.repeat(np.arange(D) + cell["first"], loss.shape[1]))
            columns["strength"].append(np.tile(grid, D))
            columns["loss"].append(loss.ravel())
    merged = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {"panel": np.full(len(merged["loss"]), cell["panel"]), **merged}


def models(truth: MDP, counts: Counts, pseudo_count: float) -> Iterator[tuple[str, Kernel, Floats, Floats]]:
    """What each method plans in, ``(D, E)``: name, model, discounts ``(E,)``, and the strengths they belong to."""
    spread, grid = Counts(counts.transitions[:, None]), np.array(STRENGTHS)
    gamma, once, alone = np.full(len(grid), truth.discount), np.array([truth.discount]), np.array([np.nan])

    def model(regularizer: str, **settings: Any) -> Kernel:
        return estimate(spread, truth.discount, regularizer=regularizer, **settings).transition

    yield DISCOUNT, model("none"), (1 - grid) * truth.discount, grid
    yield UNIFORM, model("uniform_prior", strength=grid), gamma, grid
    yield SPECIFIC, model("least_mse", pseudo_count=pseudo_count), once, alone
    yield ORACLE, oracle(truth, spread), once, alone
    if truth.n_states == len(LEFT_RIGHT):
        prior = (grid / (1 - grid) * counts.mean_visits[:, None] / truth.n_states)[..., None, None]  # (D, E, 1, 1)
        weight = prior / np.maximum(spread.visits + prior, np.finfo(float).tiny)
        yield EXPERT, Mixture(fill(spread, "uniform").rows, weight, Rows(LEFT_RIGHT)), gamma, grid


def advised(planner: str, model: Kernel, truth: MDP, discount: Floats, random: np.random.Generator) -> Floats:
    """The policy of a planner, ``(D, E, S, A)`` chances."""
    reward = truth.reward if truth.reward.ndim == 2 else truth.reward[:, None]
    A = truth.n_actions
    if planner in (EVEN, FIRST):
        plan = solve(model, reward, discount, engine=ENGINE)
        return even(plan.tied) if planner == EVEN else even(plan.policy[..., None] == np.arange(A))
    D, E, S = model.batch[0], len(discount), truth.n_states
    rows = np.broadcast_to(model.dense(), (D, E, S, A, S))
    policy = np.empty((D, E, S), dtype=np.int64)
    stop_early(rows, truth.reward, discount, random.random((D, E, S)), STOPPED[planner], policy)
    return even(policy[..., None] == np.arange(A))


@njit(cache=True, nogil=True)
def stop_early(
    rows: Floats, reward: Floats, discount: Floats, start: Floats, tolerance: float, policy: Integers
) -> None:
    """Value iteration as published: until no value moves by more than a tolerance; then the first best action."""
    D, E, S, A, _ = rows.shape
    new, q = np.empty(S), np.empty(A)
    for d in range(D):
        for e in range(E):
            v, moved = start[d, e], np.inf
            while True:
                last = moved <= tolerance
                moved = 0.0
                for s in range(S):
                    for a in range(A):
                        ahead = 0.0
                        for after in range(S):
                            ahead += rows[d, e, s, a, after] * v[after]
                        q[a] = reward[s, a] + discount[e] * ahead
                    best = np.argmax(q)
                    new[s] = q[best]
                    policy[d, e, s] = best
                    moved = max(moved, abs(new[s] - v[s]))
                if last:
                    break
                v[:] = new


def compared(table: pl.DataFrame, panel: str, planner: str) -> dict[str, tuple[Interval, Interval]]:
    """Our loss of each method with its interval, and where one more run of the follow-up's size would lie."""
    import polars as pl

    part = table.filter((pl.col("panel") == panel) & (pl.col("planner") == planner))
    group = "cell" if CASES[panel].runs == 1 else "data_set"  # what was drawn anew each time
    found = {}
    for name in part["method"].unique(maintain_order=True):
        mine = part.filter(pl.col("method") == name).sort("cell", "data_set", "strength")
        grid = mine["strength"].n_unique()
        losses = mine["loss"].to_numpy().reshape(-1, grid)
        runs = losses
        if group == "cell":
            runs = np.stack(
                [
                    losses[mine["cell"].to_numpy()[::grid] == c].mean(axis=0)
                    for c in mine["cell"].unique(maintain_order=True)
                ]
            )
        found[name] = _both(runs[:, int(losses.mean(axis=0).argmin())], CASES[panel].runs)
        if name == DISCOUNT:
            found[MLE] = _both(runs[:, 0], CASES[panel].runs)
    return {name: found[name] for name in (MLE, DISCOUNT, UNIFORM, SPECIFIC, ORACLE, EXPERT) if name in found}


def _both(runs: Floats, theirs: int) -> tuple[Interval, Interval]:
    n, mean, spread = len(runs), float(runs.mean()), float(runs.std(ddof=1))
    ours = float(quantile(n)) * spread / np.sqrt(n)
    again = float(stdtrit(n - 1, 1 - 0.025 / NUMBERS)) * spread * np.sqrt(1 / n + 1 / theirs)  # all together
    return Interval(mean, mean - ours, mean + ours), Interval(mean, mean - again, mean + again)


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge whether each of their numbers is one that another run of this code would give."""
    verdicts = []
    for panel, case in CASES.items():
        shared = compared(table, panel, EVEN)
        for name, (ours, again) in compared(table, panel, FIRST).items():
            if name not in case.theirs:
                continue
            theirs = case.theirs[name]
            inside = again.low - case.eye <= theirs <= again.high + case.eye
            verdicts.append(
                Verdict(
                    f"{panel}: {name} loses {theirs:g}",
                    f"{ours}; another run of their size lies within [{again.low:.4g}, {again.high:.4g}]; with ties "
                    f"shared {shared[name][0]}",
                    HOLDS if inside else FAILS,
                    ours,
                )
            )
    return verdicts + [_early(table, planner) for planner in STOPPED]


def _early(table: pl.DataFrame, planner: str) -> Verdict:
    """Tell what stopping early does in River Swim."""
    curves = {each: _curves(table, each) for each in (FIRST, planner)}
    apart = {name: curves[planner][name] - curves[FIRST][name] for name in curves[FIRST]}
    name = max(apart, key=lambda each: float(np.abs(apart[each]).max()))
    at = int(np.abs(apart[name]).argmax())
    most = float(np.abs(apart[name]).max())
    return Verdict(
        f"River Swim: value iteration {planner} returns the plan that it is stopped short of",
        f"mean loss moves by up to {most:.3g}, that of the {name.removeprefix('best ')} at strength {STRENGTHS[at]:g}: "
        f"{curves[FIRST][name][at]:.4g} when solved, {curves[planner][name][at]:.4g} when stopped",
        HOLDS if most < CASES[RIVER].eye else FAILS,
    )


def _curves(table: pl.DataFrame, planner: str) -> dict[str, Floats]:
    import polars as pl

    part = table.filter((pl.col("panel") == RIVER) & (pl.col("planner") == planner))
    means = part.filter(pl.col("strength").is_not_nan()).group_by("method", "strength").agg(pl.col("loss").mean())
    return {
        name: means.filter(pl.col("method") == name).sort("strength")["loss"].to_numpy()
        for name in (DISCOUNT, UNIFORM, EXPERT)
    }


def draw(table: pl.DataFrame) -> Figure:
    """Theirs and ours, method by method; and what stopping early does."""
    from certeq.report import style

    figure: Figure
    with style.style():
        figure, axes = style.canvas(3, 2, width=7.2, height=2.4)
        for axis, (panel, case) in zip(axes.ravel(), CASES.items(), strict=False):
            for index, planner in enumerate((FIRST, EVEN)):
                found = compared(table, panel, planner)
                x = np.arange(len(found)) + 0.18 * index
                mean = np.array([ours.mean for ours, _ in found.values()])
                half = mean - np.array([ours.low for ours, _ in found.values()])
                color, marker = style.COLORS[index], style.MARKERS[index]
                axis.errorbar(
                    x, mean, half, color=color, marker=marker, linestyle="", capsize=2, label=f"ours, {planner}"
                )
            places = [list(found).index(name) for name in case.theirs]
            axis.plot(np.array(places) - 0.18, list(case.theirs.values()), "D", color="black", label="follow-up")
            axis.set_xticks(
                range(len(found)), [name.removeprefix("best ").replace(" prior", "") for name in found], rotation=30
            )
            axis.set(title=panel)
        _draw_early(axes.ravel()[4], table)
        axes.ravel()[5].set_visible(False)
        axes[0, 0].set_ylabel("loss")
        axes[1, 0].set_ylabel("loss")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _draw_early(axis: Any, table: pl.DataFrame) -> None:
    from certeq.report import style

    dashes = {FIRST: "-", ROUGH: "--", ROUGHER: ":"}
    for planner, dash in dashes.items():
        for index, name in enumerate((DISCOUNT, UNIFORM)):
            label = f"{name.removeprefix('best ')}, {'solved' if planner == FIRST else planner}"
            axis.plot(
                STRENGTHS, _curves(table, planner)[name], dash, color=style.COLORS[index], label=label, linewidth=1
            )
    axis.set(title="River Swim, stopped early", xlabel="strength ε")
    axis.legend(fontsize=4.5)
