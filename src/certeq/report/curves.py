"""Pictures of how sure something is: values under the posterior, advice along a discount, gaps taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Booleans, Floats
from certeq.base.display import shorten
from certeq.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from certeq.data.reading.choosing import Chosen
    from certeq.questions.credible import CredibleInterval, Posterior
    from certeq.questions.findings import Findings
    from certeq.questions.frontier import Frontier
    from certeq.questions.off_policy import OffPolicy
    from certeq.questions.origin import Origin
    from certeq.questions.path import RegularizationPath
    from certeq.questions.risk import Risk

COLUMNS = 8  # whose lines a picture of cuts has, those that matter most
WIDTH = 4.8  # inches; narrow enough to be read on a phone
NOW, LATER = style.COLORS[0], style.COLORS[1]


def value_densities(posterior: Posterior, *, level: float = 0.9) -> Figure:
    """What each policy is worth under the posterior: density, mean and interval, and what the fitted model claims."""
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=0.75 + 0.62 * len(posterior.names))
        axis = axes[0, 0]
        for i, name in enumerate(posterior.names):
            base, color = len(posterior.names) - 1 - i, style.COLORS[i % len(style.COLORS)]
            x, height = _density(posterior.values[i])
            axis.fill_between(x, base, base + 0.8 * height, color=color, alpha=0.35, linewidth=0)
            axis.plot(x, base + 0.8 * height, color=color, linewidth=1)
            found = posterior.interval(name, level)
            axis.plot([found.low, found.high], [base, base], color=color, linewidth=3, solid_capstyle="butt")
            axis.plot(found.mean, base, "o", color=color, markersize=5)
            axis.plot(posterior.claimed[i], base, "D", color=style.INK, markersize=4, markerfacecolor="none")
        axis.set_yticks(range(len(posterior.names)), [shorten(name, 26) for name in posterior.names[::-1]])
        axis.set(xlabel="value", ylim=(-0.25, len(posterior.names)))
        _quiet(axis)
        axis.plot([], [], "o-", color="#8a9199", linewidth=3, label=f"mean and {level:.0%} interval")
        axis.plot([], [], "D", color=style.INK, markersize=4, markerfacecolor="none", label="claimed by the model")
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def estimates(off_policy: OffPolicy, model: CredibleInterval | None = None) -> Figure:
    """A policy's value by the model, and estimated from the episodes alone; gray where it is not to be compared."""
    known = [one for one in off_policy.estimates if np.isfinite(one.value)]
    names = [*(["by the model"] if model is not None else []), *(one.words for one in known)]
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=0.6 + 0.26 * max(len(names), 1))
        axis, y = axes[0, 0], len(names) - 1
        if model is not None:
            axis.axvspan(model.low, model.high, color=style.COLORS[0], alpha=0.12, linewidth=0)
            _dot(axis, y, model, style.COLORS[0])
        for i, one in enumerate(known):
            color = style.COLORS[1] if one.trusted else "#8a9199"
            _dot(axis, y - i - (model is not None), (one.value, one.low, one.high), color)
        axis.set_yticks(range(len(names)), names[::-1])
        axis.set(xlabel="value of the advice", ylim=(-0.6, len(names) - 0.4))
        _quiet(axis)
    return figure


def trade_off(found: Risk) -> Figure:
    """Gain over what was done against the chance of doing worse, for following more and more of the advice."""
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=2.6)
        axis = axes[0, 0]
        worse, gains = [0.0], [0.0]
        for each in found.followed:
            worse, gains = [*worse, each.worse], [*gains, each.gain.mean]
            axis.plot([each.worse] * 2, each.gain[1:3], color=style.COLORS[0], alpha=0.35, linewidth=2.2)
        axis.plot(worse, gains, "o-", color=style.COLORS[0], markersize=5, linewidth=1)
        axis.axhline(0, color="#8a9199", linewidth=0.8)
        axis.axvline(
            found.risk, color=style.COLORS[1], linewidth=1, linestyle="--", label=f"accepted: {found.risk:.0%}"
        )
        chosen = found.chosen
        at = (0.0, 0.0) if chosen is None else (chosen.worse, chosen.gain.mean)
        axis.plot(*at, "o", color=style.COLORS[1], markersize=9, markerfacecolor="none", label="chosen")
        axis.set(xlabel="chance of doing worse than was done", ylabel="gain over what was done")
        axis.set_xlim(-0.02, max(*worse, found.risk) * 1.08 + 0.02)
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _dot(axis: Any, y: float, found: tuple[float, float, float], color: str) -> None:
    mean, low, high = found
    if np.isfinite(low):
        axis.plot([low, high], [y, y], color=color, linewidth=2.2, solid_capstyle="butt")
    axis.plot(mean, y, "o", color=color, markersize=5)


def origin(found: Origin) -> Figure:
    """How much of one pair's row are its own rows, and how much was borrowed, and from where."""
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=0.5 + 0.26 * len(found.parts))
        axis, y = axes[0, 0], np.arange(len(found.parts))[::-1]
        colors = [NOW if i == 0 else LATER for i in range(len(found.parts))]
        axis.barh(y, [share for _, share in found.parts], color=colors, height=0.6)
        for at, (_, share) in zip(y, found.parts, strict=True):
            axis.text(share, at, f" {share:.0%}", va="center")
        axis.set_yticks(y, [shorten(words.removeprefix("from "), 48) for words, _ in found.parts])
        axis.set(xlabel="share of the row", xlim=(0, 1.12 * max(share for _, share in found.parts)))
        _quiet(axis)
    return figure


def frontier(found: Frontier) -> Figure:
    """The most that can be earned against what it costs, with the advice, what was recorded, and the limit."""
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=2.4)
        axis = axes[0, 0]
        axis.plot(found.costs, found.values, ".-", color=NOW, linewidth=1.4, markersize=4)
        axis.plot(*found.advice, "o", color=style.COLORS[2], markersize=7, label="the advice")
        axis.plot(
            *found.recorded, "D", color=style.INK, markerfacecolor="none", markersize=5, label="what was recorded"
        )
        if found.limit is not None:
            axis.axvline(found.limit, color=style.INK, linewidth=0.8, linestyle=":", label="limit")
        axis.set(xlabel=f"{shorten(found.cost, 40)} from the first decision on", ylabel="value")
        _quiet(axis)
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def departures(path: RegularizationPath) -> Figure:
    """In how many states the advice is another than the learned one, along the path."""
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=2.3)
        axis = axes[0, 0]
        other = (path.policies != path.advice).sum(axis=1)
        edges = np.concatenate([[path.low], path.knots, [path.high]])
        axis.stairs(other, edges, baseline=0, fill=True, color=style.COLORS[0], alpha=0.25)
        axis.stairs(other, edges, baseline=None, color=style.COLORS[0], linewidth=1.6)
        what = path.along.replace("_", " ")
        axis.set(xlabel=what, ylabel="states with other advice", ylim=(0, None))
        if path.low < path.high:  # not where the discount is 0, and there is nothing below it
            axis.set_xlim(path.low, path.high)
        _quiet(axis)
    return figure


def reasons(findings: Findings, *, states: int = 12, suppress_below: int = 0) -> Figure:
    """Why the advised action leads: what it earns at once, and what it leads to, over the runner-up.

    For the most visited states that have a runner-up; pairs tried fewer than ``suppress_below`` times are left out.
    """
    shown = comparable(findings, suppress_below)[:states]
    policy = findings.learned.policy
    names = [state_words(findings, int(s)) for s in shown]
    runner, gap = findings.runner_up
    actions = [shorten(name, 14) for name in policy.action_names]
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=0.8 + 0.3 * max(len(shown), 1))
        axis, y = axes[0, 0], np.arange(len(shown))[::-1]
        axis.barh(y + 0.17, findings.now[shown], height=0.3, color=NOW, label="now: reward")
        axis.barh(y - 0.17, findings.later[shown], height=0.3, color=LATER, label="later: where it leads")
        axis.plot(gap[shown], y, "D", color=style.INK, markersize=4, label="both: the gap")
        axis.axvline(0, color=style.INK, linewidth=0.8)
        labels = [
            f"{name}\n{actions[findings.advised[s]]} over {actions[runner[s]]}"
            for s, name in zip(shown, names, strict=True)
        ]
        axis.set_yticks(y, labels, fontsize=6)
        axis.set(xlabel="in favor of the advised action", ylim=(-0.6, len(shown) - 0.4))
        _quiet(axis)
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def comparable(findings: Findings, suppress_below: int = 0) -> Any:
    """States whose advice can be compared with a runner-up, most visited first."""
    runner, _ = findings.runner_up
    visits, state = findings.learned.policy.visits, np.arange(len(runner))
    told = np.minimum(findings.support, visits[state, runner]) >= suppress_below
    order = np.argsort(-visits.sum(axis=1), kind="stable")
    return order[((runner >= 0) & told)[order]]


def state_words(findings: Findings, state: int, length: int = 34) -> str:
    """A state in a few words: its place on each column."""
    (words,) = findings.learned.policy.recipe.parts(np.array([state]))
    return shorten(" · ".join(shorten(word, length) for word in words), length)


def chances(posterior: Posterior, *, clear: float = 0.8, among: Booleans | None = None) -> Figure:
    """In how many states, of all or ``among`` some ``(S,)``, the advised action is best with which probability."""
    chance = np.atleast_2d(posterior.advised_best)[0]
    chance = chance[~np.isnan(chance) & (True if among is None else among)]
    figure: Figure
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=1.9)
        axis = axes[0, 0]
        edges = np.linspace(0, 1, 21)
        number, _ = np.histogram(chance, edges)
        colors = [style.COLORS[4] if edge < clear - 1e-9 else style.COLORS[0] for edge in edges[:-1]]
        axis.bar(edges[:-1] + 0.025, number, width=0.045, color=colors)
        axis.axvline(clear, color=style.INK, linewidth=0.8, linestyle=":")
        top = max(int(number.max()), 1)
        axis.set(
            xlabel="probability that the advised action is the best", ylabel="states", xlim=(0, 1), ylim=(0, 1.08 * top)
        )
        axis.text(clear - 0.01, top, "undecided", ha="right", va="top", fontsize=7)
        axis.text(clear + 0.01, top, "clear", ha="left", va="top", fontsize=7)
        _quiet(axis)
    return figure


def cuts(chosen: Chosen) -> Figure:
    """What is explained out of sample, column by column, with fewer or more cells; a dot is what was chosen."""
    figure: Figure
    order = sorted(chosen.curve, key=lambda name: -np.ptp(list(chosen.curve[name].values())))[:COLUMNS]
    with style.style(page=True):
        figure, axes = style.canvas(width=WIDTH, height=2.4)
        axis = axes[0, 0]
        for i, name in enumerate(order):
            sizes, color = list(chosen.curve[name]), style.COLORS[i % len(style.COLORS)]
            line = ":" if chosen.cells[name] == 1 else "-"
            label = shorten(name, 26) + (" (not used)" if chosen.cells[name] == 1 else "")
            axis.plot(sizes, list(chosen.curve[name].values()), line, color=color, linewidth=1.2, label=label)
            axis.plot(chosen.cells[name], chosen.curve[name][chosen.cells[name]], "o", color=color, markersize=5)
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks := [1, 2, 4, 8, 16], [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.set(xlabel="cells of the column, all others as chosen", ylabel="explained out of sample")
        axis.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
        _quiet(axis)
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _density(values: Floats) -> tuple[Floats, Floats]:
    """A smooth histogram, highest at 1: Gaussian kernels of Silverman's width."""
    spread = float(values.std()) or max(abs(float(values.mean())), 1.0) * 1e-3
    width = 1.06 * spread * len(values) ** -0.2
    x = np.linspace(values.min() - 3 * width, values.max() + 3 * width, 160)
    height = np.exp(-0.5 * ((x[:, None] - values) / width) ** 2).sum(axis=1)
    return x, height / height.max()


def _quiet(axis: Any) -> None:
    """Lines where the eye needs them: across the values, and nowhere else."""
    axis.grid(axis="y", visible=False)
    axis.tick_params(length=0)
    axis.spines["left"].set_visible(False)
