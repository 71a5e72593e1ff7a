"""Coverage: do 90% intervals for the value of the chosen policy hold the truth nine times out of ten?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Rng
from certeq.experiments.figures.tumor import tumor_panel
from certeq.experiments.intervals import BEST, BETTER, BINS, CREDIBLE, FITS, INTERVALS, OUTER, PRINTED, run_cell
from certeq.experiments.statistics import Interval, ratio
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, exactly
from certeq.questions.credible import LEVEL
from certeq.worlds.messy import KNOWING, MESSY

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "Coverage: intervals for the value of the chosen policy"
CLAIM = (
    f"{LEVEL:.0%} intervals for the value of the policy that was chosen from the same data hold its true value in "
    f"{LEVEL:.0%} of the data sets; chances are how often what they speak of is true."
)
SHORT = 0.02  # a coverage that may be no more than this much too low is not called too low
SURE, TRUE = 0.9, 0.87  # of cases said to be so sure, at least so many are to be true
APART = 0.05  # claimed and true chances are to be no farther apart, on average over bins
WIDE, ENOUGH = 0.95, 10  # with so many rows for each state an interval should not hold the truth more often than that
NOTES = (
    "Not a figure of the paper. Policies are learned with the usual rules of `certeq learn`. Rewards are known in "
    "the worlds of the paper and in the tumor simulator; with noise (a standard deviation of 0.5; true rewards lie "
    "between 0 and 1), in Gymnasium's slippery tables and in the worlds of numbers they are estimated from the rows. "
    "Data are trajectories of 19 decisions, or a single one of 570, under random actions from random states; in the "
    "simulator patients who are followed for up to 30 months, and again as in the bundled trial, read with the "
    "usual cells; in Gymnasium's "
    "tables episodes of people who take the best action but for the deviations that are said, at random then; in the "
    "worlds of numbers episodes of 20 random actions in 6 × 6 cells, and raw: as tables of numbers that people left "
    "who take the best action of a fine table but for their errors, read with the usual cells. Messy tables are "
    "those of `certeq.worlds.messy`, with so many cases, read with the words that somebody would say. Values are those "
    "of the truth's own first states, which are known to the method but in raw and messy tables and the bundled trial, "
    "over as many decisions as half of the episodes were watched for where more than a tenth of the time that counts "
    "comes later. The credible interval draws episodes again, and models from what is learned from each, and is set "
    "as decision 19 tells: nothing is counted twice where rows are many, its low end is lowered by what advice "
    "promises too much in the data that it was chosen in, by what the model says too much of what people earned, and "
    "by what states leave out where the advice is followed twice in a row; the outer one is never inside of it. The "
    "printed one is what a report gives: the credible one, or the outer one where the model is in doubt. “Shortest” "
    "is how much wider or narrower all intervals of a panel would have to be, about their middle, to hold the truth "
    "in 90%. No chance that the advice is better is held against the truth where a report gives none. The calibration "
    "error is the mean distance of claimed and true chances over ten bins; with few cases chance alone makes one, "
    "which is told beside it for cases that have nothing to do with each other. A chance that an action is best is "
    "told where there is a choice, and is of the actions that may be "
    "advised; it is held against the truth only where one of these is best. The simulator's truth is a table counted "
    "from many patients, whose states are not quite Markov, and neither are cells of numbers: “fits” is how often "
    "the report has nothing to say against the model, neither the comparison of returns over many decisions nor that "
    "people acted on more than the states hold. Intervals of coverage are 95%, exact binomial. “Does not hold” means "
    "that a coverage is "
    f"surely below {LEVEL - SHORT:.0%}; “holds”, that it was at least that."
)
ALT = "For each panel, coverage of 90% intervals, printed, credible and outer; and claimed against true chances."
VALUES = ("rows", "states", "low", "high", "truth", "covered", "claimed", "right")
RUNS = {
    "3 episodes": (3, 19),
    "10 episodes": (10, 19),
    "30 episodes": (30, 19),
    "one long episode": (1, 570),
}  # and length
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
TABLES: dict[
    str, tuple[str, int, tuple[tuple[float, int], ...]]
] = {  # name: environment, length, (deviations, episodes)
    "cliff": ("CliffWalking-v1", 200, ((0.1, 30), (1.0, 100))),
    "lake": ("FrozenLake-v1", 100, ((0.2, 100), (0.7, 100), (1.0, 100))),
}
NUMBERS, CELLS, NUMERIC = ("harbor", "machine", "dose"), 6, 80
PEOPLE, LOGS = {"30% errors": 0.3, "random": 1.0}, (20, 200)  # who logged the worlds of numbers, and how many episodes
FEW, MANY = 60, 300  # cases of a messy table
TUMOR = "tumor"
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "data_sets": 4,
        "chunk": 4,
        "tumor": 1,
        "tumor_chunk": 1,
        "bundled": 2,
        "raw": 1,
        "messy": 1,
        "episodes": 5000,
        "draws": 40,
    },
    "paper": {
        "data_sets": 1000,
        "chunk": 50,
        "tumor": 100,
        "tumor_chunk": 4,
        "bundled": 500,
        "raw": 200,
        "messy": 150,
        "episodes": 20_000,
        "draws": 120,
    },
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All worlds at all sizes, in chunks; the tumor's own number of data sets is never above what was asked for."""
    total, chunk = settings["data_sets"], settings["chunk"]
    made = []
    for name, (world, noise) in WORLDS.items():
        for run, (episodes, length) in RUNS.items():
            regime = {"kind": "trajectories", "episodes": episodes, "length": length}
            cell = {"kind": "world", "environment": world, "settings": {}, "regime": regime, "reward_noise": noise}
            made += _chunks(f"{name}, {run}", name, episodes, cell, settings, total, chunk)
    for name, (table, length, logs) in TABLES.items():
        for deviations, episodes in logs:
            cell = {"kind": "table", "environment": table, "length": length, "deviations": deviations, "discount": 0.99}
            who = "random" if deviations == 1 else f"{deviations:.0%} deviations"
            made += _chunks(f"{name}, {who}, {episodes} episodes", name, episodes, cell, settings, total, chunk)
    for name in NUMBERS:
        cell = {"kind": "numeric", "environment": name, "cells": CELLS}
        made += _chunks(f"{name}, {NUMERIC} episodes", name, NUMERIC, cell, settings, total, chunk)
    trial = tumor_panel(settings["episodes"])
    for patients in PATIENTS:
        regime = dict(trial.regime) | {"patients": patients}
        cell = {"kind": "world", "environment": trial.environment, "settings": dict(trial.settings), "regime": regime}
        few = min(settings["tumor"], total)
        made += _chunks(f"tumor, {patients} patients", TUMOR, patients, cell, settings, few, settings["tumor_chunk"])
    for name, (who, errors), size in product(NUMBERS, PEOPLE.items(), LOGS):
        cell = {"kind": "raw", "environment": name, "errors": errors}
        few = min(settings["raw"], total)
        made += _chunks(f"{name}, raw, {who}, {size} episodes", name, size, cell, settings, few, chunk)
    for name, size in product(MESSY | KNOWING, (FEW, MANY)):
        cell = {"kind": "messy", "environment": name}
        few = min(settings["messy"], total)
        made += _chunks(f"messy {name}, {size} cases", f"messy {name}", size, cell, settings, few, chunk)
    cell = {"kind": "bundled", "environment": "bundled"}
    often = min(settings["bundled"], 5 * total)
    made += _chunks("the bundled trial, repeated", "bundled", 50, cell, settings, often, settings["tumor_chunk"] * 5)
    return made


def _chunks(
    panel: str, world: str, size: int, cell: Mapping[str, Any], settings: Mapping[str, Any], total: int, chunk: int
) -> list[dict[str, Any]]:
    named = {"panel": panel, "world": world, "size": size, "draws": settings["draws"]}
    return [
        {**named, **cell, "data_sets": min(chunk, total - first), "first": first} for first in range(0, total, chunk)
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

    doubted = table.filter((pl.col("kind") == FITS) & (pl.col("right") == 0)).select("cell", "data_set")
    found = {
        (panel, kind): table.filter((pl.col("panel") == panel) & (pl.col("kind") == kind))
        for kind in (*INTERVALS, BETTER, BEST, FITS)
        for panel in table["panel"].unique(maintain_order=True)
    }
    sound = table.filter(pl.col("kind") == CREDIBLE).join(doubted, on=["cell", "data_set"], how="anti")
    trusted = {str(panel): coverage(part) for (panel,), part in sound.group_by("panel", maintain_order=True)}
    tell: dict[str, Any] = {BETTER: _chances, BEST: _chances, FITS: partial(_fits, trusted=trusted)}
    judged = {place: tell.get(place[1], _covers)(part, *place) for place, part in found.items() if len(part)}
    kept = {
        kind: [v.outcome != FAILS for (_, k), v in judged.items() if k == kind] for kind in (*INTERVALS, BETTER, BEST)
    }
    kept[FITS] = [each.high >= LEVEL - SHORT for each in trusted.values()]
    near = {
        kind: [calibration(part)[0] <= APART for (_, k), part in found.items() if k == kind and len(part)]
        for kind in (BETTER, BEST)
    }
    narrow = [coverage(part).low <= WIDE for part in _rich(table)]
    said = [*((SAID[kind], good) for kind, good in kept.items()), (NARROW, narrow)]
    said += [(NEAR[kind], good) for kind, good in near.items()]
    return [
        *(exactly(claim, all(good), f"{sum(good)} of {len(good)} panels") for claim, good in said),
        *_together(table),
        *judged.values(),
    ]


def _rich(table: pl.DataFrame) -> list[pl.DataFrame]:
    """The printed intervals of each panel with enough rows for each state."""
    import polars as pl

    shown = table.filter(pl.col("kind") == PRINTED).group_by("panel", maintain_order=True)
    return [part for _, part in shown if np.median(part["rows"].to_numpy() / part["states"].to_numpy()) >= ENOUGH]


def _together(table: pl.DataFrame) -> Iterator[Verdict]:
    """Judge the chances of all panels together, in which each counts the same, however often something was said."""
    import polars as pl

    for kind, claim in ALL.items():
        part = table.filter(pl.col("kind") == kind)
        if len(part):
            share = part.with_columns(states=pl.col("states") / pl.col("states").sum().over("panel"))
            columns = (share[name].to_numpy() for name in ("bin", "states", "claimed", "right"))
            claimed, true, count = np.array(_by_bin(*columns)).T
            gaps, count = true - claimed, count / count.sum()
            error, bold = float(np.abs(gaps) @ count), float(np.maximum(-gaps, 0) @ count)
            lines = zip(claimed, true, count, strict=True)
            said = "; ".join(f"{one:.2f} -> {other:.2f} ({much:.0%})" for one, other, much in lines)
            yield exactly(claim, error <= APART, f"{error:.3f}, of which {bold:.3f} too bold: {said}")


SAID = {
    PRINTED: "intervals that the report gives: nowhere surely below 88%",
    CREDIBLE: "credible intervals: nowhere surely below 88%",
    OUTER: "outer intervals: nowhere surely below 88%",
    BETTER: "chances that the advice beats the behavior: of those said to be 90% or more, 87% true",
    BEST: "chances that the advised action is best: of those said to be 90% or more, 87% true",
    FITS: "credible intervals where the report has nothing to say against the model: nowhere surely below 88%",
}
NARROW = f"intervals that the report gives, with {ENOUGH} rows or more for each state: nowhere surely above {WIDE:.0%}"
ALL = {
    kind: f"chances that {what}, over all panels together: calibration error of {APART:g} or less"
    for kind, what in ((BETTER, "the advice beats the behavior"), (BEST, "the advised action is best"))
}
NEAR = {
    BETTER: f"chances that the advice beats the behavior: calibration error of {APART:g} or less",
    BEST: f"chances that the advised action is best: calibration error of {APART:g} or less",
}


def calibration(part: pl.DataFrame) -> tuple[float, float]:
    """Mean distance of claimed and true chances over bins, and how large chance alone makes it."""
    bins = _by_bin(*(part[name].to_numpy() for name in ("bin", "states", "claimed", "right")))
    claimed, true, count = np.array(bins).T
    luck = np.sqrt(2 / np.pi * count * claimed * (1 - claimed))  # mean size of a normal number of this variance
    return float((np.abs(true - claimed) * count).sum() / count.sum()), float(luck.sum() / count.sum())


def _covers(part: pl.DataFrame, panel: str, kind: str) -> Verdict:
    found = coverage(part)
    low, high, truth = (part[name].to_numpy() for name in ("low", "high", "truth"))
    least = LEVEL - SHORT
    outcome = FAILS if found.high < least else HOLDS if found.mean >= least else OPEN
    gap = LEVEL - found.mean
    measured = f"coverage {found}" + (f", {gap:.3f} too low" if gap > 0 else "")
    missed = ~part["covered"].to_numpy().astype(bool)
    note = (
        f"The truth is below {np.mean(missed & (truth < low)):.1%} of the intervals and above "
        f"{np.mean(missed & (truth > high)):.1%}; their median width is {np.median(high - low):.3g}, the shortest that "
        f"would have held {shortest(low, high, truth):.2f} times as wide. There are "
        f"{np.median(part['rows'].to_numpy() / part['states'].to_numpy()):.3g} rows for each state."
    )
    return Verdict(f"{panel}: {kind} intervals hold the truth in {LEVEL:.0%}", measured, outcome, found, note)


def shortest(low: Any, high: Any, truth: Any) -> float:
    """How many times as wide intervals would have to be, about their middle, to hold the truth as often as they say."""
    half = np.maximum((high - low) / 2, 1e-12 * np.maximum(1.0, np.abs(truth)))
    return float(np.quantile(np.abs(truth - (low + high) / 2) / half, LEVEL))


def _chances(part: pl.DataFrame, panel: str, kind: str) -> Verdict:
    """Judge how often what was said to be sure is true; tell right - claimed over all, data sets being independent."""
    states, claimed, right, at = (part[name].to_numpy() for name in ("states", "claimed", "right", "bin"))
    group = np.unique(part.select("cell", "data_set").to_numpy(), axis=0, return_inverse=True)[1].ravel()
    apart, total = (np.bincount(group, weights) for weights in (states * (right - claimed), states))
    found = ratio(apart, total)
    sure = at == BINS - 1
    true = float((states * right)[sure].sum() / states[sure].sum()) if sure.any() else np.nan
    outcome = OPEN if not sure.any() else HOLDS if true >= TRUE else FAILS
    gaps = _by_bin(at, states, claimed, right)
    note = "By claimed chance: " + "; ".join(f"{c:.2f} -> {r:.2f} ({n:,.0f})" for c, r, n in gaps) + "."
    said = f"said to be {SURE:.0%} or more: {states[sure].sum():,}, true {true:.3f}; " if sure.any() else ""
    error, luck = calibration(part)
    measured = f"{said}calibration error {error:.3f} ({luck:.3f} by chance alone); right - claimed: {found}"
    return Verdict(f"{panel}: {kind} as often as claimed", measured, outcome, found, note)


def _fits(part: pl.DataFrame, panel: str, kind: str, *, trusted: Mapping[str, Interval]) -> Verdict:
    """Tell how often nothing spoke against the model, and how often the credible interval held there."""
    right = part["right"].to_numpy()
    found = coverage(part.with_columns(covered=part["right"]))
    note = f"There, credible intervals held in {trusted[panel]}." if panel in trusted else ""
    return Verdict(f"{panel}: {kind}", f"{np.mean(right):.0%} of data sets", OPEN, found, note)


def _by_bin(at: Any, states: Any, claimed: Any, right: Any) -> list[tuple[float, float, float]]:
    """Mean claimed chance, frequency and number of states in each bin that has any."""
    count, said, was = (
        np.bincount(at, weights, minlength=BINS) for weights in (states, states * claimed, states * right)
    )
    return [(said[k] / count[k], was[k] / count[k], count[k]) for k in range(BINS) if count[k]]


def draw(table: pl.DataFrame) -> Figure:
    """Draw the coverage of each panel, and claimed against true chances."""
    import polars as pl

    from certeq.report import style

    panels = table["panel"].unique(maintain_order=True).to_list()
    figure: Figure
    with style.style():
        figure, axes = style.canvas(2, 1, width=8.0, height=0.8 + 0.2 * len(panels))
        left, right = axes.ravel()
        left.axvline(LEVEL, color="#999999", linewidth=0.8)
        place = np.arange(len(panels))[::-1]
        for index, kind in enumerate(INTERVALS):
            parts = [table.filter((pl.col("panel") == panel) & (pl.col("kind") == kind)) for panel in panels]
            found = [coverage(part) for part in parts]
            center = np.array([each.mean for each in found])
            ends = np.abs(np.array([[each.low for each in found], [each.high for each in found]]) - center)
            how: dict[str, Any] = {"color": style.COLORS[index], "fmt": style.MARKERS[index], "capsize": 2}
            left.errorbar(center, place - 0.2 * index, xerr=ends, label=kind, markersize=3, **how)
        left.set(xlim=(-0.03, 1.03), xlabel="coverage", title="intervals of 90%")
        left.set_yticks(place, panels, fontsize=6)
        left.legend(fontsize=6, loc="lower left")
        _draw_reliability(right, table)
    return figure


def _draw_reliability(axis: Any, table: pl.DataFrame) -> None:
    import polars as pl

    from certeq.report import style

    axis.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
    for index, kind in enumerate((BEST, BETTER)):
        part = table.filter(pl.col("kind") == kind)
        if not len(part):
            continue
        columns = (part[name].to_numpy() for name in ("bin", "states", "claimed", "right"))
        said, was, _ = zip(*_by_bin(*columns), strict=True)
        axis.plot(said, was, color=style.COLORS[index], marker=style.MARKERS[index], label=kind)
    axis.set(title="chances, all panels", xlabel="claimed", ylabel="frequency", xlim=(0, 1), ylim=(0, 1))
    axis.legend(fontsize=6, loc="lower right")
