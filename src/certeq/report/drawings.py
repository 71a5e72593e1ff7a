"""Pictures of the page: what each of them shows, with its words and its numbers. The templates draw them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certeq.base.display import between, harmless, number, percent, several, shorten
from certeq.questions import sure
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.findings import Findings
from certeq.report import listing as tables
from certeq.report.curves import comparable, state_words
from certeq.report.drawn import Boxes, Chart, Key, Mark, Scale, Track, Tracks, interval
from certeq.report.sheets import count_map, policy_map, weight_map

if TYPE_CHECKING:
    from certeq.data.reading.choosing import Chosen
    from certeq.questions.credible import CredibleInterval, Posterior
    from certeq.questions.frontier import Frontier
    from certeq.questions.off_policy import OffPolicy
    from certeq.questions.origin import Origin
    from certeq.questions.path import RegularizationPath
    from certeq.questions.risk import Risk

STATES = 12  # that a picture of reasons has
COLUMNS = 8  # that a picture of cuts has, those that matter most
BINS = (0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)  # of chances
GRAY = "c6"
FEW_TICKS, LETTERS = 3, 13  # on a scale that has only part of the width


class Picture(NamedTuple):
    """A picture with its words and its numbers."""

    name: str
    parts: list[Tracks | Chart | Boxes]
    caption: str
    table: tables.Listing | None = None


def pictures(findings: Findings, teller: tables.Teller) -> Iterator[Picture]:
    """All pictures that there are findings for."""
    learned = findings.learned
    yield Picture("count-map", *count_map(findings, teller), tables.visits_table(teller))
    if learned.batch is not None and learned.batch.chosen is not None:
        yield _cuts(learned.batch.chosen)
    yield Picture("policy-map", *policy_map(findings, teller))
    if findings.frontier is not None:
        yield from map(_frontier, itertools.count(), findings.frontier.frontiers)
    if len(comparable(findings, teller.limit)):
        yield _reasons(findings, teller)
    yield Picture("weight-map", *weight_map(findings, teller), tables.weights_table(teller))
    if findings.path is not None:
        yield _path(findings.path)
    if findings.origin is not None and not teller.hidden.any():
        yield _origin(findings.origin)
    if findings.posterior is not None and not learned.indifferent:  # else a scale of rounding
        yield _values(findings)
        yield _chances(findings)
    if findings.risk is not None and findings.risk.followed:
        yield _trade_off(findings.risk)
    if findings.off_policy is not None:
        model = findings.posterior
        yield _estimates(findings.off_policy, None if model is None else model.interval(ADVICE))


def worth(found: Posterior) -> Tracks:
    """What the advice and what was done are worth, on one scale."""
    return _spans(
        [(name.capitalize(), found.interval(name), color) for name, color in ((ADVICE, "c0"), (RECORDED, GRAY))]
    )


def _spans(lines: Iterable[tuple[str, CredibleInterval, str]]) -> Tracks:
    """Intervals on one scale."""
    lines = list(lines)
    scale = Scale.of(end for _, span, _ in lines for end in span)
    first = lines[0][1][1:]
    tracks = [
        Track(
            name,
            interval(scale, span.low, span.mean, span.high, color),
            f"{number(span.mean)} ({between(span.low, span.high, first)})",
        )
        for name, span, color in lines
    ]
    return Tracks(tracks, scale.ticks(about=FEW_TICKS, letters=LETTERS))


def _values(findings: Findings) -> Picture:
    found: Posterior = findings.posterior
    scale = Scale.of([*found.claimed, *(end for name in found.names for end in found.interval(name))])
    lines, rows, first = [], [], found.interval(found.names[0])[1:]
    for i, name in enumerate(found.names):
        span, color = found.interval(name), f"c{i % 8}"
        ends = between(span.low, span.high, first)
        marks = [*interval(scale, span.low, span.mean, span.high, color), Mark("diamond", scale(found.claimed[i]))]
        lines.append(Track(shorten(name, tables.BRIEF), marks, f"{number(span.mean)} ({ends})"))
        rows.append(
            [
                tables.Cell(name, "head"),
                tables.amount(span.mean),
                tables.Cell(ends, "number"),
                tables.amount(found.claimed[i]),
                tables.amount(found.optimism[i]),
            ]
        )
    header = [("Policy", "head"), ("Mean value", "number"), ("90% interval", "number")]
    header += [("Claimed by the model", "number"), ("Optimism", "number")]
    counted = "from the first decision on" if found.watched is None else f"of {several(found.watched, 'decision')}"
    caption = f"Values {counted}, over {found.draws:,} models drawn from the posterior."
    much = " The fitted model claims too much for a policy that was chosen in it." if found.optimism[0] > 0 else ""
    return Picture(
        "values",
        [Tracks(lines, scale.ticks(), keys=(Key("diamond", "", "claimed by the model"),))],
        f"What each policy is worth{sure.period(findings)} in models that the data allow: mean and 90% interval.{much}",
        tables.plain_table("values-table", caption, header, rows),
    )


def _chances(findings: Findings) -> Picture:
    policy = findings.learned.policy
    chance = np.atleast_2d(findings.posterior.advised_best)[0]
    chance = chance[~np.isnan(chance) & findings.choice]
    often, _ = np.histogram(chance, BINS)
    scale = Scale(0, max(int(often.max()), 1))
    lines = []
    for (low, high), count in zip(itertools.pairwise(BINS), often.tolist(), strict=True):
        name = f"below {high:.0%}" if low == 0 else f"{low:.0%} or more" if high == 1 else f"{low:.0%} to {high:.0%}"
        color = "c0" if low >= policy.clear - 1e-9 else "c4"
        lines.append(Track(name, [Mark("whole", 0, scale(count), color)], several(count, "state")))
    keys = (Key("bar", "c4", "undecided"), Key("bar", "c0", "clear"))
    return Picture(
        "chances",
        [Tracks(lines[::-1], [], keys=keys)],
        "How sure the advice is where there is a choice: the number of states by the chance that the advised action "
        "is best. The policy table has the chance for each state.",
    )


def _estimates(found: OffPolicy, model: CredibleInterval | None) -> Picture:
    known = [one for one in found.estimates if np.isfinite(one.value)]
    ends = [end for one in known for end in (one.value, one.low, one.high)]
    scale = Scale.of([*ends, *(model or ())])
    lines = [] if model is None else [("by the model", model.mean, model.low, model.high, "c0")]
    lines += [(one.words, one.value, one.low, one.high, "c1" if one.trusted else GRAY) for one in known]
    tracks = [
        Track(name, interval(scale, low, middle, high, color), number(middle))
        for name, middle, low, high, color in lines
    ]
    words = {"c0": "by the model", "c1": "from the episodes", GRAY: "not to be compared"}
    used = {line[-1] for line in lines}
    keys = tuple(Key("dot", color, what) for color, what in words.items() if color in used)
    return Picture(
        "estimates",
        [Tracks(tracks, scale.ticks(), keys=keys)],
        "The value of the advice by the model, and estimated from the episodes without it, with intervals. The table "
        "says why some are not to be compared.",
        tables.estimates_table(found),
    )


def _trade_off(found: Risk) -> Picture:
    scale = Scale.of([0.0, *(end for each in found.followed for end in each.gain[:3])])
    lines = [
        Track(
            f"where at least {percent(each.min_chance)} sure",
            interval(scale, each.gain.low, each.gain.mean, each.gain.high, "c1" if each == found.chosen else "c0"),
            f"{number(each.gain.mean)}; worse: {percent(each.worse)}",
            "chosen" if each == found.chosen else "",
        )
        for each in found.followed
    ]
    return Picture(
        "trade-off",
        [Tracks(lines, scale.ticks(), keys=(Key("dot", "c1", f"chosen, for an accepted risk of {found.risk:.0%}"),))],
        "From top to bottom, more of the advice is followed: where it is at least this sure, and elsewhere what was "
        "done. Dots and spans: gain over what was done, with 90% intervals; beside them the chance of doing worse.",
        tables.risk_table(found),
    )


def _origin(found: Origin) -> Picture:
    scale = Scale(0, max(share for _, share in found.parts))
    lines = [
        Track(
            harmless(words.removeprefix("from ")), [Mark("whole", 0, scale(share), "c1" if i else "c0")], percent(share)
        )
        for i, (words, share) in enumerate(found.parts)
    ]
    return Picture(
        "origin",
        [Tracks(lines, [], keys=(Key("bar", "c0", "its own rows"), Key("bar", "c1", "borrowed")))],
        "What one row of the plan is made of: its own rows, and what other pairs lend it.",
    )


def _reasons(findings: Findings, teller: tables.Teller) -> Picture:
    shown = comparable(findings, teller.limit)[:STATES]
    runner, gap = findings.runner_up
    now, later = findings.now, findings.later
    scale = Scale.of([0.0, *now[shown], *later[shown], *gap[shown]])
    zero = scale(0)
    lines = [
        Track(
            state_words(findings, int(s), tables.BRIEF),
            [
                Mark("upper", zero, scale(now[s]), "c0"),
                Mark("lower", zero, scale(later[s]), "c1"),
                Mark("diamond", scale(gap[s])),
            ],
            f"{number(float(gap[s]))}",
            f"{teller.actions[findings.advised[s]]} over {teller.actions[runner[s]]}",
        )
        for s in shown
    ]
    keys = (
        Key("bar", "c0", "now: reward"),
        Key("bar", "c1", "later: where it leads"),
        Key("diamond", "", "both: the gap"),
    )
    return Picture(
        "reasons",
        [Tracks(lines, scale.ticks(), keys=keys)],
        "The most visited states that have a runner-up. Bars to the right of 0 speak for the advised action.",
        tables.reasons_table(teller),
    )


def _path(found: RegularizationPath) -> Picture:
    other = (found.policies != found.advice).sum(axis=1)
    edges = [found.low, *found.knots.tolist(), found.high]
    across = Scale.of(edges, margin=0)
    up = Scale(0, max(float(other.max()), 1) * 1.05)
    steps = [
        (across(x), up(y)) for ends, y in zip(itertools.pairwise(edges), other.tolist(), strict=True) for x in ends
    ]
    header = [("Planning discount", "number"), ("State", "head"), ("Below it", "text"), ("Above it", "text")]
    names, actions = found.state_names, [*found.action_names, "no advice"]
    rows = (
        [
            tables.Cell(f"{point.value:.6f}", "number"),
            tables.Cell(shorten(names[point.state], tables.NAME), "head"),
            *(tables.Cell(shorten(actions[a], tables.BRIEF)) for a in (point.before, point.after)),
        ]
        for point in found.breakpoints[: tables.SHOWN]
    )
    words = "A curve over planning discounts: in how many states planning with it advises something else."
    what = found.along.replace("_", " ")
    return Picture(
        "path",
        [Chart(words, steps, [], across.ticks(), up.ticks(), what, "states with other advice")],
        "Planning with a lower discount, and in how many states the advice differs from this report. "
        + " ".join(harmless(line) for line in found.lines()),
        tables.plain_table(
            "path-table", f"Where the advice changes, {several(len(found.breakpoints), 'time')} in all.", header, rows
        ),
    )


def _frontier(place: int, found: Frontier) -> Picture:
    header = [(shorten(found.cost, tables.NAME), "number"), ("Value", "number"), ("One more unit earns", "number")]
    slopes = [*found.breakpoints.tolist(), 0.0]
    rows = (
        [tables.amount(cost), tables.amount(value), tables.amount(slope)]
        for cost, value, slope in list(zip(found.costs, found.values, slopes, strict=True))[: tables.SHOWN]
    )
    cost = shorten(harmless(found.cost), tables.NAME)
    limit = [] if found.limit is None else [found.limit]
    across = Scale.of([*found.costs, found.advice[0], found.recorded[0], *limit])
    up = Scale.of([*found.values, found.advice[1], found.recorded[1]])
    line = [(across(x), up(y)) for x, y in zip(found.costs, found.values, strict=True)]
    points = [(Mark("dot", x, color="c0"), y) for x, y in line[: tables.SHOWN]]
    points += [(Mark("dot", across(found.advice[0]), color="c2"), up(found.advice[1]))]
    points += [(Mark("diamond", across(found.recorded[0])), up(found.recorded[1]))]
    points += [(Mark("limit", across(most)), 0.0) for most in limit]
    keys = (Key("dot", "c2", "the advice"), Key("diamond", "", "what was recorded"))
    words = f"A rising curve: the most that can be earned against {cost}, with the advice and what was recorded."
    return Picture(
        f"frontier-{place}",
        [Chart(words, line, points, across.ticks(), up.ticks(), cost, "value", keys)],
        f"The most that can be earned with so much of {cost}, expected from the first decision on and discounted as "
        "rewards are. Dots: policies that are best at some price; lines: chosen between by lot."
        + (" Dashed: the limit." if limit else ""),
        tables.plain_table(f"frontier-{place}-table", "Policies that are best at some price.", header, rows),
    )


def _cuts(chosen: Chosen) -> Picture:
    header = [("Column", "head"), ("Cells", "number"), ("Explained with it", "number"), ("Without it", "number")]
    order = sorted(chosen.cells.items(), key=lambda each: chosen.curve[each[0]][1])
    share = {name: [chosen.curve[name][size] for size in (cells, 1)] for name, cells in order}
    rows = (
        [
            tables.Cell(shorten(name, tables.NAME), "head"),
            tables.Cell("not used", "never") if cells == 1 else tables.Cell(number(cells), "number"),
            *(tables.Cell(f"{part:.1%}", "number") for part in share[name]),
        ]
        for name, cells in order
    )
    scale = Scale.of(part for name, _ in order[:COLUMNS] for part in share[name])
    lines = [
        Track(
            shorten(name, tables.BRIEF),
            [Mark("span", scale(share[name][1]), scale(share[name][0])), Mark("dot", scale(share[name][0]))],
            "not used" if cells == 1 else f"{cells} cells, {_points(share[name][0] - share[name][1])}",
        )
        for name, cells in order[:COLUMNS]
    ]
    ticks = scale.ticks(lambda part: f"{number(round(100 * part, 9))}%")
    return Picture(
        "cuts",
        [Tracks(lines, ticks)],
        "Columns are used if they predict rewards and next values better in episodes that were left out, and are then "
        "cut evenly, as finely as the rows carry. Here: what is explained with all columns as chosen (dot), and how "
        "much of that would be lost without this one.",
        tables.plain_table("cuts-table", "How the columns of the state were cut.", header, rows),
    )


def _points(apart: float) -> str:
    return f"{apart:+.1%}".replace("-", "−")
