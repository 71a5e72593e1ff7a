"""The card: a small page to print, with what is advised in each state. It has no scripts and needs no network."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import certeq
from certeq.base.display import harmless, of_draws, several, shorten
from certeq.base.errors import InputError
from certeq.report import html
from certeq.report.exports.written import ByCenter, Rule, Written

MOST = 200  # lines that people can look up on paper


def write(rules: Written) -> str:
    """The page."""
    for by in rules.codes:
        if isinstance(by, ByCenter):
            raise InputError(
                f"Nobody finds the nearest of {len(by.centers)} centers of {', '.join(by.columns)} on paper. Learn "
                "with columns that are cut one by one (--bins), or export --to python."
            )
    if len(rules.rules) > MOST:
        raise InputError(
            f"A card has up to {MOST} lines; this policy has {len(rules.rules):,}. Learn with fewer states (--bins), "
            "or export --to python, sql or json."
        )
    tables = [
        ("" if decision is None else f"Decision {decision + 1} of {rules.horizon}", [_line(rule) for rule in group])
        for decision, group in groupby(rules.rules, key=lambda rule: rule.decision)
    ]
    rows = rules.data.get("rows")
    return html.write(
        "card.html",
        style="page.css",
        title="Decision card",
        columns=[harmless(" + ".join(by.columns)) for by in rules.codes],
        tables=tables,
        learned=f"Learned from {several(rows, 'row')}" if isinstance(rows, int) else "Learned from logged decisions",
        print=str(rules.data.get("fingerprint", ""))[:12],
        ranges=[f"{shorten(name, 80)}: {low:g} to {high:g}" for name, (low, high) in rules.ranges.items()],
        version=certeq.__version__,
    )


def _line(rule: Rule) -> dict[str, Any]:
    return {
        "words": [shorten(word, 80) for word in rule.words],
        "advice": None if rule.advice is None else shorten(rule.advice, 200),
        "chance": "" if rule.chance is None else of_draws(rule.chance),
        "visits": "" if rule.visits is None else f"{rule.visits:,}",
    }
