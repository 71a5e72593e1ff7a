"""Overview of a policy: a few rules, the states to look at first, and what the page needs to search in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.display import percent, shorten
from certeq.report import listing
from certeq.report.listing import BRIEF, Cell, Line, Listing, Teller, any_amount, share

if TYPE_CHECKING:
    from certeq.questions.few_rules import FewRules

MANY = 24  # states, above which some are named to look at first
SEARCHED = 50_000  # states up to which the page can be searched for all of them


def few_rules(teller: Teller, found: FewRules) -> dict[str, Any] | None:
    """A few rules as a table with bars; None where they do not stand for the advice."""
    if not found.good or len(found.rules) < 2:
        return None
    used = dict.fromkeys(column for rule in found.rules for column, _ in rule.where)
    widest = max(rule.share for rule in found.rules)
    rules = [
        {
            "words": [dict(rule.where).get(column, "any") for column in used],
            "action": f"{teller.actions[rule.action]}{'' if rule.clear else ', not clearly'}",
            "color": rule.action % 8,
            "wide": round(100 * rule.share / widest, 1),
            "agree": round(100 * rule.share * rule.agrees / widest, 1),
            "alone": round(100 * rule.share * rule.alone / widest, 1),
            "text": f"{percent(rule.share)}, agrees in {percent(rule.agrees)}",
        }
        for rule in found.rules
    ]
    return {"columns": list(used), "rules": rules, "agreement": percent(found.agreement)}


def matter_table(teller: Teller, most: int = 5) -> Listing | None:
    """The states to look at first, where there are many: visited most, left open with most at stake, most to gain."""
    policy, (S, _) = teller.findings.learned.policy.first, teller.visits.shape
    if S <= MANY:
        return None
    often = teller.visits.sum(axis=1)
    runner, gap = teller.findings.runner_up
    kinds = {
        "visited most": (often > 0, often),
        "left open, most at stake": (policy.open, often * np.nan_to_num(policy.stake)),
        "most to gain": (~policy.open & (runner >= 0), often * np.nan_to_num(gap)),
    }
    sure, lines = policy.chances is not None, []
    for why, (there, worth) in kinds.items():
        order = np.argsort(-np.where(there, worth, -np.inf), kind="stable")
        shown = [s for s in order[:most].tolist() if there[s]]
        for piece in policy.pieces(shown):
            s, a = piece.state, piece.action
            tried = teller.count(s, a) if a >= 0 else Cell("–", "never")
            chance = [share(np.nan if piece.chance is None else piece.chance)] if sure else []
            cells = [Cell(why), teller.state(s), teller.advice(piece), *chance, tried, any_amount(piece.gap)]
            lines.append(Line(cells))
    header = [Cell("Why here"), Cell("State", "head"), Cell("Advised")]
    header += [Cell("Chance it is best", "number")] if sure else []
    header += [Cell("Tried", "number"), Cell("Gap", "number")]
    return Listing("matter-table", "States to look at first.", header, lines)


def elsewhere(teller: Teller) -> dict[str, Any] | None:
    """All states, for the page to search in, where its table has only some of them; as compact as it can be."""
    policy = teller.findings.learned.policy.first
    S = len(teller.visits)
    if not listing.LONG < S <= SEARCHED:
        return None
    words = [[shorten(word, BRIEF) for word in axis.words(alone=True)] for axis in policy.recipe.axes]
    told: dict[str, int] = {}
    advice, tried = [], []
    for piece in policy.pieces():
        advice.append(told.setdefault(teller.advice(piece).text, len(told)))
        tried.append("–" if piece.action < 0 else teller.count(piece.state, piece.action).text)
    return {"words": words, "cells": policy.recipe.cells.tolist(), "told": list(told), "advice": advice, "tried": tried}
