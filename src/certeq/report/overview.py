"""Overview of a policy: a few rules, the states to look at first, and what the page needs to search in all of them."""

from __future__ import annotations

import json
import zlib
from binascii import b2a_base64
from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.display import percent, shorten
from certeq.report import listing
from certeq.report.listing import BRIEF, Cell, Line, Listing, Teller, any_amount, share

if TYPE_CHECKING:
    from certeq.questions.few_rules import FewRules

MANY = 24  # states, above which some are named to look at first
MOST_SEARCHED = 50_000_000  # letters of all labels, up to which the page can be searched for them


def few_rules(teller: Teller, found: FewRules) -> dict[str, Any] | None:
    """A few rules as a table with bars; None where they do not stand for the advice."""
    if not found.good or len(found.rules) < 2:
        return None
    used = dict.fromkeys(column for rule in found.rules for column, _ in rule.where)
    widest = max(rule.share for rule in found.rules)
    rules = [
        {
            "words": [dict(rule.where).get(column, "any") for column in used],
            "action": f"{teller.actions[rule.action]}{'' if rule.clear else ', no clear difference'}",
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


def elsewhere(teller: Teller) -> str | None:
    """All states, for the page to search in, where its table has only some of them; as compact as it can be.

    One line of JSON (words of each axis, ways to put the advice, and of what type which numbers follow), then numbers:
    place on each axis, advice, and how often that was tried, 0 for none and 1 for too few to be told. All of it is
    compressed, and written in base 64; the page reads it once somebody searches.
    """
    policy, S = teller.findings.learned.policy.first, len(teller.visits)
    if S <= listing.LONG:
        return None
    words = [[shorten(word, BRIEF) for word in axis.words(alone=True)] for axis in policy.recipe.axes]
    told: dict[str, int] = {}
    ways = [told.setdefault(text, len(told)) for text in (*teller.actions, "no advice")]
    advice = np.array(ways)[policy.actions]  # -1 is the last
    for piece in policy.pieces(np.flatnonzero(policy.among.sum(axis=-1) > 1)):
        advice[piece.state] = told.setdefault(teller.advice(piece).text, len(told))
    pair = np.arange(S), np.maximum(policy.actions, 0)
    tried = np.where(policy.actions < 0, 0, np.where(teller.hidden[pair], 1, np.minimum(teller.visits[pair], 4e9) + 2))
    columns = [
        each.astype(np.min_scalar_type(int(each.max(initial=0)))) for each in (*policy.recipe.cells.T, advice, tried)
    ]
    axes = teller.axes if len(words) > 1 else [""]
    about = {
        "axes": axes,
        "words": words,
        "told": list(told),
        "bytes": [each.itemsize for each in columns],
        "limit": teller.limit,
    }
    head = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode()
    if len(head) > MOST_SEARCHED:
        return None
    numbers = [each.astype(each.dtype.newbyteorder("<")).tobytes() for each in columns]
    return b2a_base64(zlib.compress(b"".join((head, b"\n", *numbers))), newline=False).decode()
