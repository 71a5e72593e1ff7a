"""The report on a learned policy: one HTML file that needs nothing else, not even a network.

First comes what fits on one printed page: what is advised, what it is worth, what limits it, and what to collect next.
All else is folded below it, each part under a line that says what was found. The page holds counts of states, never
rows or identifiers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import certeq
from certeq.base.arrays import whole
from certeq.base.display import harmless, number, percent, several, shorten
from certeq.questions import sure
from certeq.questions.alerts import alerts, checked, unasked
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.findings import Findings
from certeq.report import comparing as comparison
from certeq.report import curves, drawn, embed, html, maps, style, tell
from certeq.report import listing as tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from certeq.data.reading.choosing import Chosen
    from certeq.questions.comparison import Comparison
    from certeq.questions.frontier import Frontier
    from certeq.questions.posterior import Posterior

STEPS = 100  # of the slider
LONGEST = 200  # characters of a title
OUTCOMES = {"state": "in the same state", "anywhere": "anywhere in the data"}


class Picture(NamedTuple):
    """A picture with its words and its numbers."""

    name: str
    source: str  # an address that contains it
    alt: str
    caption: str
    table: tables.Listing | None = None


def render(
    findings: Findings,
    *,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    source: str = "",
    suppress_below: int = 0,
    manifest: Mapping[str, Any] | None = None,
) -> str:
    """Write the page.

    Parameters
    ----------
    findings
        What `certeq.examine` gathered; parts that are missing are left out, with the reason.
    title
        A heading; says in how many states there is advice unless given.
    author, date, source
        Who made the report and when, and what the data are called; told at the top where they are given.
    suppress_below
        Pairs tried fewer times than this, but at least once, are only told to be below it, everywhere in the page.
    manifest
        What else should be kept about how the page was made, such as the seed.
    """
    whole("suppress_below", suppress_below, 0)
    return html.write(
        "report.html",
        style="report.css",
        script="report.js",
        title=tell.title(findings) if title is None else shorten(title, LONGEST),
        about=[
            *tell.about(findings, source),
            *((name, shorten(said, LONGEST)) for name, said in (("Date", date), ("By", author)) if said),
        ],
        manifest=dict(_manifest(findings, manifest or {})),
        version=certeq.__version__,
        **dict(_context(findings, suppress_below)),
    )


def _context(findings: Findings, limit: int) -> Iterator[tuple[str, Any]]:
    learned, summary = findings.learned, findings.learned.summary
    if limit > 1 and findings.outer is not None:  # which pairs make it wide tells how often they were tried
        nameless = replace(findings.outer, thin=())
        findings = replace(findings, found={**findings.found, "outer": nameless})
    teller = tables.Teller(findings, limit)
    missing = dict(findings.missing)
    if teller.hidden.any():
        missing["audit"] = "The audit tells how often single pairs were tried, which this report does not."
        missing["origin"] = "Where a row comes from tells how often its pair was tried, which this report does not."
    why_no_slider = embed.why_not(learned, limit)
    minded, opened = _harmless(alerts(findings)), {asks: harmless(why) for asks, why in unasked(findings).items()}
    yield "advice", tell.advice(findings)
    yield "shortsighted", tell.shortsighted(findings, tell.NEARLY)
    yield "rule_words", _of(findings.few_rules, lambda found: _harmless(found.lines()[:1])) or []
    yield "rules", _of(findings.few_rules, lambda found: tables.few_rules(teller, found))
    yield "worth", _harmless(tell.worth(findings))
    yield "worth_drawn", _of(findings.posterior, _worth)
    yield "next_steps", list(tell.next_steps(findings))
    yield "typical", tell.typical(findings, teller.few)
    yield "how_sure", _harmless(tell.how_sure(findings))
    yield "in_short", dict(tell.in_short(findings, len(minded), len(opened)))
    yield "alerts", minded
    yield "checked", checked(findings)
    yield "unasked", opened
    yield "summary", summary
    yield "notes", _notes(findings)
    yield "limit", limit
    yield "few", teller.few
    yield "actions", teller.actions
    yield "policy_table", tables.policy_table(teller)
    yield "departures", tables.departures_table(teller)
    yield "reasons", list(tell.reasons(findings))
    yield "regularization", list(tell.regularization(findings))
    yield "missing", missing
    yield "told", {name: _harmless(part.lines()) for name, part in findings.found.items() if hasattr(part, "lines")}
    yield "audit", None if "audit" in missing else _of(findings.audit, lambda found: _harmless(found.lines()))
    yield "origin", None if "origin" in missing else _of(findings.origin, lambda found: _harmless(found.lines()))
    yield "planning_discount", _of(findings.audit, lambda found: found.planning_discount)
    yield "posterior", findings.posterior
    yield "undecided", _of(findings.posterior, lambda found: tables.undecided_table(teller, found))
    yield "fragility", _of(findings.fragility, lambda found: _harmless(found.lines()))
    yield "asked", _of(findings.fragility, lambda found: int(found.asked.sum()))
    yield "choices", int((findings.runner_up[0] >= 0).sum())
    yield "limit_of_clear", percent(learned.policy.clear)
    yield "sets", learned.policy.min_chance > 0
    yield "outcomes", _of(findings.fragility, lambda found: OUTCOMES[found.outcomes])
    yield "conventions", _of(findings.conventions, tables.conventions_table)
    yield "groups", _of(findings.groups, lambda found: tables.groups_table(found, limit))
    yield "off_policy", findings.off_policy
    yield "collect", _of(findings.collect, lambda found: tables.collect_table(teller, found))
    yield "regret", _of(findings.collect, lambda found: number(found.regret))
    yield "comparison", _of(findings.comparison, lambda found: _harmless(found.lines()))
    yield "pictures", {picture.name: picture for picture in _pictures(findings, teller)}
    yield "why_no_slider", why_no_slider
    yield "slider", None if why_no_slider else _slider(findings)
    yield "discount", learned.rules.discount
    yield "unit", harmless((learned.batch.unit if learned.batch is not None else "") or "step")
    yield "average", learned.rules.average
    yield "steps", STEPS
    yield "top", STEPS if learned.rules.discount < 1 or learned.rules.horizon else STEPS - 1
    yield "start", 9 * STEPS // 10
    yield "settings", {name: shorten(value, 300) for name, value in summary.settings.items() if value is not None}


def _worth(found: Posterior) -> drawn.Tracks:
    """What the advice and what was done are worth, on one scale."""
    spans = {name: found.interval(name) for name in (ADVICE, RECORDED)}
    scale = drawn.Scale.of(end for span in spans.values() for end in span)
    lines = [
        drawn.Track(
            name.capitalize(),
            drawn.interval(scale, span.low, span.mean, span.high, color),
            f"{number(span.mean)} ({number(span.low)} to {number(span.high)})",
        )
        for (name, span), color in zip(spans.items(), ("c0", "c6"), strict=True)
    ]
    return drawn.Tracks(lines, scale.ticks())


def _of(part: Any, tell: Callable[[Any], Any]) -> Any:
    """What is told of a part, None where the part is missing."""
    return None if part is None else tell(part)


def _harmless(lines: Iterable[str]) -> list[str]:
    return [harmless(line) for line in lines]


def _notes(findings: Findings) -> list[str]:
    """What was read, guessed and left out."""
    summary = findings.learned.summary
    dropped = [f"Left out: {count:,} × {why}." for why, count in summary.dropped.items()]
    return _harmless((*summary.seen, *dropped, *summary.notes))


def _slider(findings: Findings) -> dict[str, Any]:
    """What the page's planner reads: the model, and labels to show."""
    policy = findings.learned.policy
    labels = {
        "states": [shorten(name, tables.NAME) for name in policy.state_names],
        "actions": [shorten(name, tables.BRIEF) for name in policy.action_names],
    }
    return {"model": embed.model(findings.learned) | {"steps": STEPS}, "labels": labels}


def _pictures(findings: Findings, teller: tables.Teller) -> Iterator[Picture]:
    learned, limit = findings.learned, teller.limit
    visits = learned.policy.visits
    S, A = visits.shape
    never = several(int((visits == 0).sum()), "pair was", "pairs were")
    yield _picture(
        "count-map",
        lambda: maps.count_map(learned, suppress_below=limit),
        f"How often each of {several(A, 'action')} was tried in each of {several(S, 'state')}: between 0 and "
        f"{int(visits.max()):,} times; {never} never tried.",
        "How often each action was tried in each state. Hatched: a state in which it was never tried."
        + (f" Gray: tried fewer than {limit} times." if limit > 1 else ""),
        tables.visits_table(teller),
    )
    if learned.batch is not None and learned.batch.chosen is not None:
        yield _cuts(learned.batch.chosen)
    yield _picture(
        "policy-map",
        lambda: maps.policy_map(learned, suppress_below=limit),
        f"The advised action in each of {several(S, 'state')}; the table above tells the same.",
        "What is advised where. Neighbors on the sheet are neighbors in the data."
        + (" Gray, with the signs of the actions: no clear difference between them." if len(findings.open) else "")
        + _arrows(findings),
    )
    if findings.frontier is not None:
        yield from map(_frontier, itertools.count(), findings.frontier.frontiers)
    if len(curves.comparable(findings, limit)):
        yield _picture(
            "reasons",
            lambda: curves.reasons(findings, suppress_below=limit),
            "Bars for the most visited states: what the advised action earns more than the runner-up now, and later.",
            "The most visited states that have a runner-up. Bars to the right speak for the advised action.",
            tables.reasons_table(teller),
        )
    yield _picture(
        "weight-map",
        lambda: maps.weight_map(learned, suppress_below=limit),
        "How much of the estimate of each pair is the regularizer's target, between 0 (none) and 1 (all).",
        "Weight of the target in each pair: near 0 the data speak, near 1 the regularizer does.",
        tables.weights_table(teller),
    )
    if findings.path is not None:
        yield _path(findings)
    if findings.origin is not None and not teller.hidden.any():
        yield _picture(
            "origin",
            lambda: curves.origin(findings.origin),
            "Bars: how much of one row are the pair's own rows, and how much was borrowed, and from where.",
            "What one row of the plan is made of: its own rows, and what other pairs lend it.",
        )
    if findings.comparison is not None:
        yield _comparison(findings.comparison)
    if findings.posterior is not None:
        yield from _posterior(findings)
    if findings.risk is not None and findings.risk.followed:
        yield _picture(
            "trade-off",
            lambda: curves.trade_off(findings.risk),
            "A curve from doing what was done to following all of the advice: gain against the chance of doing worse.",
            "From left to right more of the advice is followed: where it is at least so sure, and elsewhere what was "
            "done. Bars: 90 % intervals. Dashed: the chance of doing worse that is accepted.",
            tables.risk_table(findings.risk),
        )
    if findings.off_policy is not None:
        found, model = findings.off_policy, findings.posterior
        yield _picture(
            "estimates",
            lambda: curves.estimates(found, None if model is None else model.interval(ADVICE)),
            "Values of the advice: by the model, and estimated from the episodes by several methods, with intervals.",
            "The value of the advice by the model, and estimated from the episodes without it. Gray: not to be "
            "compared; the table says why.",
            tables.estimates_table(found),
        )


def _frontier(place: int, found: Frontier) -> Picture:
    header = [(shorten(found.cost, tables.NAME), "number"), ("Value", "number"), ("One more unit earns", "number")]
    slopes = [*found.breakpoints.tolist(), 0.0]
    rows = (
        [tables.amount(cost), tables.amount(value), tables.amount(slope)]
        for cost, value, slope in list(zip(found.costs, found.values, slopes, strict=True))[: tables.SHOWN]
    )
    cost = shorten(harmless(found.cost), tables.NAME)
    return _picture(
        f"frontier-{place}",
        lambda: curves.frontier(found),
        f"A rising curve: the most that can be earned against {cost}, with the advice and what was recorded.",
        f"The most that can be earned with so much of {cost}, expected from the first decision on and discounted as "
        "rewards are. Dots: policies that are best at some price; lines: chosen between by lot.",
        tables.plain_table(f"frontier-{place}-table", "Policies that are best at some price.", header, rows),
    )


def _cuts(chosen: Chosen) -> Picture:
    header = [("Column", "head"), ("Cells", "number"), ("Explained with it", "number"), ("Without it", "number")]
    rows = (
        [
            tables.Cell(shorten(name, tables.NAME), "head"),
            tables.Cell("not used", "never") if cells == 1 else tables.Cell(number(cells), "number"),
            *(tables.Cell(f"{chosen.curve[name][size]:.1%}", "number") for size in (cells, 1)),
        ]
        for name, cells in sorted(chosen.cells.items(), key=lambda each: chosen.curve[each[0]][1])
    )
    return _picture(
        "cuts",
        lambda: curves.cuts(chosen),
        "For each column, the share of rewards and next values that is explained out of sample, by its cells.",
        "Columns are used if they predict rewards and next values better in episodes that were left out, and are then "
        "cut evenly, as finely as the rows carry. Here: what is explained with fewer or more cells of one column. "
        "Dots: chosen; dotted lines: not used.",
        tables.plain_table("cuts-table", "How the columns of the state were cut.", header, rows),
    )


def _arrows(findings: Findings) -> str:
    from certeq.report.sheet import sheet

    ordered = sheet(findings.learned.policy.recipe).ordered
    return " Arrows show where the advised action leads on average." if ordered else ""


def _picture(
    name: str, draw: Callable[[], Figure], alt: str, caption: str, table: tables.Listing | None = None
) -> Picture:
    return Picture(name, html.data_uri(style.to_page(draw())), alt, caption, table)


def _path(findings: Findings) -> Picture:
    path = findings.path
    assert path is not None
    header = [("Planning discount", "number"), ("State", "head"), ("Below it", "text"), ("Above it", "text")]
    names, actions = findings.learned.policy.state_names, [*findings.learned.policy.action_names, "no advice"]
    rows = (
        [
            tables.Cell(f"{point.value:.6f}", "number"),
            tables.Cell(shorten(names[point.state], tables.NAME), "head"),
            *(tables.Cell(shorten(actions[a], tables.BRIEF)) for a in (point.before, point.after)),
        ]
        for point in path.breakpoints[: tables.SHOWN]
    )
    caption = f"Where the advice changes, {several(len(path.breakpoints), 'time')} in all."
    return _picture(
        "path",
        lambda: curves.departures(path),
        "A curve over planning discounts: in how many states planning with it advises something else than this report.",
        "Planning with a lower discount, and in how many states that advises something else than this report. "
        + " ".join(harmless(line) for line in path.lines()),
        tables.plain_table("path-table", caption, header, rows),
    )


def _comparison(found: Comparison) -> Picture:
    header, lines = comparison.table(found)
    heads = [(name, "number" if i else "head") for i, name in enumerate(header)]
    rows = ([tables.Cell(str(line[0]), "head"), *map(tables.any_amount, line[1:])] for line in lines)
    return _picture(
        "comparison",
        lambda: comparison.comparison(found),
        "For each regularizer, how well it predicts held-out transitions, and what its advice is worth.",
        f"Regularizers on the same data, {found.transitions:,} held-out transitions in {found.folds} folds of "
        f"{found.units}. Differences are to the recommended one, model by model.",
        tables.plain_table("comparison-table", "Regularizers on the same data.", heads, rows),
    )


def _posterior(findings: Findings) -> Iterator[Picture]:
    found = findings.posterior
    assert found is not None
    header = [("Policy", "head"), ("Mean value", "number"), ("90 % interval", "number")]
    header += [("Claimed by the model", "number"), ("Optimism", "number")]
    rows = (
        [
            tables.Cell(name, "head"),
            tables.amount(found.interval(name).mean),
            tables.Cell(" to ".join(tables.amount(end).text for end in found.interval(name)[1:]), "number"),
            tables.amount(found.claimed[i]),
            tables.amount(found.optimism[i]),
        ]
        for i, name in enumerate(found.names)
    )
    counted = "from the first decision on" if found.watched is None else f"of {several(found.watched, 'decision')}"
    caption = f"Values {counted}, over {found.draws:,} models drawn from the posterior."
    yield _picture(
        "value-densities",
        lambda: curves.value_densities(found),
        "Densities of the value of each policy under the posterior, with means and 90 % intervals.",
        f"What each policy is worth{sure.period(findings)} in models that the data allow. Diamonds: what the fitted "
        "model itself claims, which tends to be too much for a policy that was chosen in it.",
        tables.plain_table("values-table", caption, header, rows),
    )
    yield _picture(
        "chances",
        lambda: curves.chances(found, clear=findings.learned.policy.min_chance, among=findings.choice),
        "A histogram over states with a choice of the probability that the advised action is the best one.",
        "How sure the advice is, state by state, where there is a choice; the policy table has each state's number.",
    )


def _manifest(findings: Findings, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    summary = findings.learned.summary.to_json()
    yield from ((name, harmless(value)) for name, value in summary["versions"].items())
    fingerprint = findings.learned.policy.data["fingerprint"]
    if fingerprint is not None:
        yield "SHA-256 of the data", fingerprint
    if findings.posterior is not None:
        yield "draws from the posterior", f"{findings.posterior.draws:,}"
    yield from ((harmless(name), harmless(value)) for name, value in given.items())
