"""Coverage: do 90 % intervals for the value of the chosen policy hold the truth nine times out of ten?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Rng
from certeq.experiments.figures.tumor import tumor_panel
from certeq.experiments.intervals import BEST, BINS, INTERVALS, run_cell
from certeq.experiments.statistics import Interval, ratio
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, exactly
from certeq.questions.posterior import LEVEL

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Coverage: intervals for the value of the chosen policy"
CLAIM = (
    f"{LEVEL:.0%} credible intervals for the value of the policy that was chosen from the same data hold its true "
    f"value in {LEVEL:.0%} of the data sets; the probability that an advised action is best is how often it is."
)
SHORT = 0.05  # a coverage that is surely no more than this much too low holds
APART = 0.05  # probabilities that are right to within this, on average, are calibrated
NOTES = (
    "Not a figure of the paper. Policies are planned with `evidence`, pairs without data being what its target says. "
    "Rewards are known, except in the panel with noisy ones, where they are estimated from rows with a standard "
    "deviation of 0.5 (true rewards lie between 0 and 1). Data are trajectories of 19 decisions under random actions "
    "from random states, and in the tumor simulator patients who are followed for up to 30 months. Values are those of "
    "the truth's own first states. “Bootstrap” is the spread of what the whole pipeline claims for its own advice when "
    "episodes are drawn again; with the policy kept, of what it claims for the policy that was chosen from all of "
    "them. A chance is held against the truth only in states with one best action. In the simulator the truth is a "
    "table counted from many patients, whose states are not quite Markov; no interval here knows of that. Intervals of "
    f"coverage are 95 %, exact binomial. “Holds” means that the coverage is surely above {LEVEL - SHORT:.0%}, “does "
    f"not hold” that it is surely below {LEVEL:.0%}; chances hold if they are right to within {APART:g} on average. "
    "The law of estimated rewards (pairs in states, states in the whole) was chosen after a first run of 200 data "
    "sets, in which flat priors for each pair by itself covered 71 %, 81 % and 85 % in the panels with noisy rewards."
)
ALT = "For each world, coverage of 90 % intervals against the size of the data; and claimed against true chances."
VALUES = ("rows", "states", "low", "high", "truth", "covered", "claimed", "right")
LENGTH = 19
EPISODES = (3, 10, 30)
PATIENTS = (50,)
NOISE = 0.5
WORLDS: dict[str, tuple[str, float | None]] = {  # name: environment, noise of the rewards
    "random chain": ("random_chain", None),
    "random chain, noisy rewards": ("random_chain", NOISE),
    "River Swim": ("river_swim", None),
    "Loop": ("loop", None),
    "stay or leave": ("stay_or_leave", None),
    "grid": ("grid", None),
}
TUMOR = "tumor"
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "data_sets": 12, "chunk": 12, "tumor": 2, "tumor_chunk": 1, "episodes": 5000, "draws": 100, "replicates": 50,
        "tumor_draws": 100, "tumor_replicates": 50,
    },
    "paper": {
        "data_sets": 500, "chunk": 50, "tumor": 500, "tumor_chunk": 5, "episodes": 100_000, "draws": 200,
        "replicates": 100, "tumor_draws": 100, "tumor_replicates": 50,
    },
}  # fmt: skip


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All worlds at all sizes, in chunks; the tumor's own number of data sets is never above what was asked for."""
    made = []
    for name, (world, noise) in WORLDS.items():
        for episodes in EPISODES:
            regime = {"kind": "trajectories", "episodes": episodes, "length": LENGTH}
            cell = {"environment": world, "settings": {}, "regime": regime, "reward_noise": noise}
            made += _chunks(name, episodes, cell, settings, settings["data_sets"], settings["chunk"])
    trial = tumor_panel(settings["episodes"])
    for patients in PATIENTS:
        regime = dict(trial.regime) | {"patients": patients}
        cell = {"environment": trial.environment, "settings": dict(trial.settings), "regime": regime}
        few = min(settings["tumor"], settings["data_sets"])
        made += _chunks(TUMOR, patients, cell, settings, few, settings["tumor_chunk"])
    return made


def _chunks(
    world: str, size: int, cell: Mapping[str, Any], settings: Mapping[str, Any], total: int, chunk: int
) -> list[dict[str, Any]]:
    unit = "patients" if world == TUMOR else "episodes"
    named = {"panel": f"{world}, {size} {unit}", "world": world, "size": size}
    prefix = "tumor_" if world == TUMOR else ""
    asked = {name: settings[prefix + name] for name in ("draws", "replicates")}
    return [
        {**named, **cell, **asked, "data_sets": min(chunk, total - first), "first": first}
        for first in range(0, total, chunk)
    ]


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """One chunk of data sets."""
    return run_cell(cell, rng)


def coverage(part: pl.DataFrame) -> Interval:
    """Share of the intervals that hold the truth, with its exact binomial interval."""
    from scipy.special import betaincinv

    hits, n = float(part["covered"].sum()), len(part)
    low = betaincinv(hits, n - hits + 1, 0.025) if hits else 0.0
    high = betaincinv(hits + 1, n - hits, 0.975) if hits < n else 1.0
    return Interval(hits / n, float(low), float(high))


def holds(table: pl.DataFrame) -> list[Verdict]:
    """Judge all intervals and all chances, panel by panel; how many hold comes first."""
    import polars as pl

    panels = table["panel"].unique(maintain_order=True)
    found = {
        (panel, kind): table.filter((pl.col("panel") == panel) & (pl.col("kind") == kind))
        for kind in (*INTERVALS, BEST)
        for panel in panels
    }
    judged = {
        place: _chances(part, *place) if place[1] == BEST else _covers(part, *place) for place, part in found.items()
    }
    kept = {kind: [v.outcome != FAILS for (_, k), v in judged.items() if k == kind] for kind in (*INTERVALS, BEST)}
    return [
        *(
            exactly(f"{kind}: nowhere too low a coverage", all(good), f"{sum(good)} of {len(good)} panels")
            for kind, good in kept.items()
            if kind != BEST
        ),
        exactly("chances of the best action: calibrated everywhere", all(kept[BEST]), _of(kept[BEST])),
        *judged.values(),
    ]


def _of(good: list[bool]) -> str:
    return f"{sum(good)} of {len(good)} panels"


def _covers(part: pl.DataFrame, panel: str, kind: str) -> Verdict:
    found = coverage(part)
    low, high, truth = (part[name].to_numpy() for name in ("low", "high", "truth"))
    outcome = HOLDS if found.low >= LEVEL - SHORT else FAILS if found.high < LEVEL else OPEN
    gap = LEVEL - found.mean
    measured = f"coverage {found}" + (f", {gap:.3f} too low" if gap > 0 else "")
    note = (
        f"The truth is below {np.mean(truth < low):.1%} of the intervals and above {np.mean(truth > high):.1%}; their "
        f"mean width is {np.mean(high - low):.3g}, and the standard deviation of the truths {np.std(truth):.3g}."
    )
    return Verdict(f"{panel}: {kind} intervals hold the truth in {LEVEL:.0%}", measured, outcome, found, note)


def _chances(part: pl.DataFrame, panel: str, kind: str) -> Verdict:
    """Judge the mean of right - claimed over all states, data sets being independent."""
    states, claimed, right, at = (part[name].to_numpy() for name in ("states", "claimed", "right", "bin"))
    group = np.unique(part.select("cell", "data_set").to_numpy(), axis=0, return_inverse=True)[1].ravel()
    apart, total = (np.bincount(group, weights) for weights in (states * (right - claimed), states))
    found = ratio(apart, total)
    inside, outside = max(-found.low, found.high) <= APART, found.low > APART or found.high < -APART
    gaps = _by_bin(at, states, claimed, right)
    note = "By claimed chance: " + "; ".join(f"{c:.2f} -> {r:.2f} ({n:,.0f})" for c, r, n in gaps) + "."
    measured = f"right - claimed: {found}"
    outcome = HOLDS if inside else FAILS if outside else OPEN
    return Verdict(f"{panel}: the advised action is best as often as claimed", measured, outcome, found, note)


def _by_bin(at: Any, states: Any, claimed: Any, right: Any) -> list[tuple[float, float, float]]:
    """Mean claimed chance, frequency and number of states in each bin that has any."""
    count, said, was = (
        np.bincount(at, weights, minlength=BINS) for weights in (states, states * claimed, states * right)
    )
    return [(said[k] / count[k], was[k] / count[k], count[k]) for k in range(BINS) if count[k]]


def draw(table: pl.DataFrame) -> Figure:
    """Coverage against size for each world, and a reliability curve for all of them."""
    import polars as pl

    from certeq.report import style

    worlds = list(table["world"].unique(maintain_order=True))
    per_row = 4
    rows = -(-(len(worlds) + 1) // per_row)
    figure: Figure
    with style.style():
        figure, axes = style.canvas(per_row, rows, width=9.2, height=2.3)
        flat = axes.ravel()
        for axis in flat[len(worlds) + 1 :]:
            axis.set_visible(False)
        for axis, world in zip(flat, worlds, strict=False):
            _draw_coverage(axis, table.filter(pl.col("world") == world))
            axis.set(title=world, xlabel="patients" if world == TUMOR else "episodes", ylabel="coverage")
        _draw_reliability(flat[len(worlds)], table.filter(pl.col("kind") == BEST), worlds)
        handles, labels = flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(INTERVALS))
    return figure


def _draw_coverage(axis: Any, part: pl.DataFrame) -> None:
    import polars as pl

    from certeq.report import style

    sizes = sorted(part["size"].unique())
    axis.axhline(LEVEL, color="#999999", linewidth=0.8)
    for index, kind in enumerate(INTERVALS):
        found = [coverage(part.filter((pl.col("size") == size) & (pl.col("kind") == kind))) for size in sizes]
        center = np.array([each.mean for each in found])
        ends = np.abs(np.array([[each.low for each in found], [each.high for each in found]]) - center)
        color, marker = style.COLORS[index], style.MARKERS[index]
        axis.errorbar(sizes, center, yerr=ends, color=color, marker=marker, capsize=2, label=kind)
    axis.set(xscale="log", ylim=(-0.03, 1.03), xticks=sizes, xticklabels=list(map(str, sizes)))
    axis.minorticks_off()


def _draw_reliability(axis: Any, table: pl.DataFrame, worlds: list[str]) -> None:
    import polars as pl

    from certeq.report import style

    axis.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
    for index, world in enumerate(worlds):
        part = table.filter(pl.col("world") == world)
        columns = (part[name].to_numpy() for name in ("bin", "states", "claimed", "right"))
        said, was, _ = zip(*_by_bin(*columns), strict=True)
        axis.plot(said, was, color=style.COLORS[index], marker=style.MARKERS[index], markersize=2.5, label=world)
    axis.set(title="advice is best", xlabel="claimed chance", ylabel="frequency", xlim=(0, 1), ylim=(0, 1))
    axis.legend(fontsize=4.5, loc="lower right")
