"""The report on a learned policy: one HTML file that needs nothing else, not even a network.

First comes what fits on one printed page: what is advised, what it is worth, what limits it, and what to collect next.
All else is folded below it, each part under a line that says what was found. The page holds counts of states, never
rows or identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import certeq
from certeq.base.arrays import whole
from certeq.base.display import harmless, percent, several, shorten
from certeq.questions.alerts import alerts, checked, unasked
from certeq.questions.findings import Findings
from certeq.questions.sparse_draws import unwritten
from certeq.report import drawings, embed, html, overview, tell
from certeq.report import listing as tables

STEPS = 100  # of the slider
OUTCOMES = {"state": "in the same state", "anywhere": "anywhere in the data"}


def render(
    findings: Findings,
    *,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    source: str = "",
    suppress_below: int = 0,
    manifest: Mapping[str, Any] | None = None,
    audited: bool = False,
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
    audited
        Whether the page is above all about what a planning discount assumes, and begins with that.
    """
    whole("suppress_below", suppress_below, 0)
    return html.write(
        "report.html",
        style="report.css",
        script="report.js",
        filters={"several": several},
        title=tell.title(findings, audited=audited) if title is None else shorten(title, tell.LONGEST),
        about=list(tell.about(findings.learned.summary, source, date, author)),
        manifest=dict(_manifest(findings, manifest or {})),
        version=certeq.__version__,
        audited=audited,
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
        missing["audit"] = "The audit would show how often single pairs were tried, which this report hides."
        missing["origin"] = "Where a row comes from would show how often its pair was tried, which this report hides."
    why_no_slider = embed.why_not(learned, limit)
    rules = None if learned.indifferent else findings.few_rules
    minded, opened = _harmless(alerts(findings)), {asks: harmless(why) for asks, why in unasked(findings).items()}
    yield "advice", tell.advice(findings)
    yield "indifferent", learned.indifferent
    yield "shortsighted", tell.shortsighted(findings, tell.NEARLY)
    yield "rule_words", _of(rules, lambda found: _harmless(found.lines()[:1])) or []
    yield "rules", _of(rules, lambda found: overview.few_rules(teller, found))
    yield "worth", _harmless(tell.worth(findings))
    yield "worth_drawn", None if learned.indifferent else _of(findings.posterior, drawings.worth)
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
    yield "matter", overview.matter_table(teller)
    yield "elsewhere", overview.elsewhere(teller)
    yield "departures", tables.departures_table(teller)
    yield "reasons", list(tell.reasons(findings))
    yield "regularization", list(tell.regularization(findings))
    yield "missing", missing
    yield "told", {name: _harmless(part.lines()) for name, part in findings.found.items() if hasattr(part, "lines")}
    yield "audit", None if "audit" in missing else _of(findings.audit, lambda found: _harmless(found.lines()))
    yield "origin", None if "origin" in missing else _of(findings.origin, lambda found: _harmless(found.lines()))
    yield "planning_discount", _of(findings.audit, lambda found: found.planning_discount)
    yield "posterior", findings.posterior
    yield "large", unwritten(findings.learned.counts)
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
    yield "regret", _of(findings.collect, lambda _: tell.regret(findings))
    yield "pictures", {picture.name: picture for picture in drawings.pictures(findings, teller)}
    yield "why_no_slider", why_no_slider
    yield "slider", None if why_no_slider else _slider(findings)
    yield "discount", learned.rules.discount
    yield "unit", harmless(tell.unit(learned))
    yield "average", learned.rules.average
    yield "steps", STEPS
    yield "top", STEPS if learned.rules.discount < 1 or learned.rules.horizon else STEPS - 1
    yield "start", 9 * STEPS // 10
    yield "settings", tell.settings(summary)


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


def _manifest(findings: Findings, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    draws = {} if findings.posterior is None else {"draws from the posterior": f"{findings.posterior.draws:,}"}
    return tell.manifest(findings.learned, draws | dict(given))
