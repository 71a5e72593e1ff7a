"""The main figure's claims along what the paper does not print: rows for each pair, and the pseudo-count of ε*."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from certeq.base.arrays import Floats, Rng
from certeq.experiments.procedure import method, run_cell
from certeq.experiments.statistics import difference, hindsight
from certeq.experiments.sweeps import CLOSE, Panel, cells_of, judge_best, judge_curves, judge_near, losses_of
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, Verdict, below, strip, strips

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TITLE = "From how few to how many rows the claims hold"
CLAIM = (
    "A uniform prior of one magnitude loses less than discount regularization in all three environments, across "
    "strengths; the state-action-specific weight, which needs no tuning, beats discount regularization and comes close "
    "to or beats the uniform prior. With independent tuples, as the paper draws them."
)
ROWS = (1, 2, 3, 4, 6, 8, 12, 20)  # for each pair, on average
PSEUDO_COUNTS = (0.05, 0.1, 0.25, 0.5, 1.0)
NOTES = (
    "How many tuples a data set has is not printed. The follow-up's code has 4 for each pair of the random chain, and "
    "no tuples for River Swim; of Loop nothing is known. So each claim gets a strip: from how many to how many rows "
    "per pair it holds. Nor is the pseudo-count of the posterior printed that ε* is computed from (the follow-up has "
    "0.5 for the random chain and 0.25 for River Swim): claims about ε* have a strip for each of five. “Across "
    "strengths” is judged by the mean over strengths; that no strength loses more is a stricter reading of ours. "
    "“Outperforms” is judged at the best strength of each, in hindsight on the same data sets; a strip of a claim "
    f"about ε* is against those, too. “Close to” means at most {CLOSE:.0%} more."
)
ALT = (
    "For each of three worlds, a table of signs: claims down, rows per pair across, and for claims about ε* one line "
    "for each pseudo-count. A filled circle means that the claim holds, a cross that it does not, an open circle that "
    "it is undecided."
)
WORLDS = {"random chain": ("random_chain", 20), "River Swim": ("river_swim", 12), "Loop": ("loop", 18)}  # and pairs
METHODS = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    **{f"ε* ({a:g})": method("least_mse", pseudo_count=a) for a in PSEUDO_COUNTS},
}
BETTER, OUTPERFORMS = "Sec. 7.4", "Fig. 6"
TUNING = "Sec. 7.5"
SIGNS = {HOLDS: ("o", "full"), FAILS: ("x", "full"), OPEN: ("o", "none")}
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {"data_sets": 60, "chunk": 60},
    "paper": {"data_sets": 4000, "chunk": 1000},
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All worlds with all numbers of rows."""
    panels = {
        f"{name}, {each} per pair": Panel(world, {"kind": "tuples", "size": each * pairs})
        for name, (world, pairs) in WORLDS.items()
        for each in ROWS
    }
    return cells_of(panels, METHODS, settings)


def work(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """Algorithms 1 and 2 on one chunk."""
    return run_cell(cell, rng)


Losses = Mapping[str, Floats]
Strip = dict[str, dict[float, str]]  # outcomes along the rows per pair, by claim or by pseudo-count
GLOBAL: dict[str, tuple[str, Callable[[Losses], Verdict]]] = {  # claim: where the paper says it, and the judgment
    "the uniform prior loses less than the discount, on average over the strengths": (
        BETTER,
        lambda losses: judge_curves("", losses["uniform prior"], losses["discount"])[0],
    ),
    "the uniform prior at its best loses less than the discount at its best": (
        OUTPERFORMS,
        lambda losses: judge_best("", losses["uniform prior"], losses["discount"]),
    ),
    "the uniform prior loses more than the discount at no strength": (
        "",
        lambda losses: judge_curves("", losses["uniform prior"], losses["discount"])[1],
    ),
}
SPECIFIC: dict[str, Callable[[Losses, Floats], Verdict]] = {
    "the specific weight beats the best discount": lambda losses, specific: below(
        "", difference(specific, hindsight(losses["discount"])), ""
    ),
    "the specific weight is close to the best uniform prior, or better": lambda losses, specific: judge_near(
        "", specific, hindsight(losses["uniform prior"])
    ),
}


def outcomes(table: pl.DataFrame, world: str) -> tuple[Strip, dict[str, Strip]]:
    """Outcomes by claim and rows per pair; for claims about ε* by claim, pseudo-count and rows per pair."""
    parts = table.partition_by("panel", "method", as_dict=True)
    found: dict[float, Losses] = {
        each: {name: losses_of(parts[panel, name], panel, name) for name in METHODS}
        for each in ROWS
        for panel in [f"{world}, {each} per pair"]
    }
    plain = {
        claim: {each: judge(losses).outcome for each, losses in found.items()} for claim, (_, judge) in GLOBAL.items()
    }
    specific = {
        claim: {
            f"pseudo-count {a:g}": {
                each: judge(losses, losses[f"ε* ({a:g})"][:, 0]).outcome for each, losses in found.items()
            }
            for a in PSEUDO_COUNTS
        }
        for claim, judge in SPECIFIC.items()
    }
    return plain, specific


def holds(table: pl.DataFrame) -> list[Verdict]:
    """A strip for each claim in each world."""
    verdicts = []
    for world in WORLDS:
        plain, specific = outcomes(table, world)
        for claim, each in plain.items():
            verdicts.append(strip(f"{world}: {claim}", each, "rows per pair", paper=GLOBAL[claim][0]))
        for claim, by_count in specific.items():
            verdicts.append(strips(f"{world}: {claim}", by_count, "rows per pair", paper=TUNING))
    return verdicts


def draw(table: pl.DataFrame) -> Figure:
    """Signs: claims and pseudo-counts down, rows per pair across, one panel for each world."""
    from certeq.report import style

    short = ("uniform beats discount: on average", "at their best", "at no strength more")
    names = ("ε* beats discount", "ε* near uniform")
    figure: Figure
    with style.style():
        figure, axes = style.canvas(3, 1, width=7.2, height=2.9, sharey=True)
        for axis, world in zip(axes[0], WORLDS, strict=True):
            plain, specific = outcomes(table, world)
            lines = dict(zip(short, plain.values(), strict=True))
            for name, by_count in zip(names, specific.values(), strict=True):
                lines |= {f"{name}, {count.split()[-1]}": each for count, each in by_count.items()}
            for y, each in enumerate(lines.values()):
                for x, outcome in enumerate(each.values()):
                    marker, fill = SIGNS[outcome]
                    color = style.COLORS[0] if outcome == HOLDS else style.COLORS[1] if outcome == FAILS else "#777777"
                    axis.plot(x, y, marker=marker, fillstyle=fill, color=color, markersize=5, linestyle="")
            axis.set_xticks(range(len(ROWS)), [str(each) for each in ROWS])
            axis.set_yticks(range(len(lines)), list(lines))
            axis.set(title=world, xlabel="rows per pair", ylim=(len(lines) - 0.5, -0.5), xlim=(-0.5, len(ROWS) - 0.5))
            for edge in (2.5, 2.5 + len(PSEUDO_COUNTS)):
                axis.axhline(edge, color="#999999", linewidth=0.6)
            axis.grid(visible=False)
        figure.supxlabel("● holds    ○ undecided    × does not hold", fontsize=7)
    return figure
