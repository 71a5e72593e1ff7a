"""The page on a comparison, one HTML file: which regularizer to use, why, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import certeq
from certeq.base.display import harmless, shorten
from certeq.learning.learned import Learned
from certeq.questions.comparison import Comparison
from certeq.report import comparing, html, tell
from certeq.report.drawings import GRAY, Picture
from certeq.report.drawn import Key, Scale, Track, Tracks, interval
from certeq.report.listing import Cell, Listing, any_amount, plain_table


def render(
    found: Comparison,
    learned: Learned,
    *,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    source: str = "",
    manifest: Mapping[str, Any] | None = None,
) -> str:
    """Write the page; ``learned`` is what was compared on, the rest as for the report on a policy."""
    first, *more = map(harmless, found.lines())
    return html.write(
        "compared.html",
        style="report.css",
        title=f"Use {found.recommended}" if title is None else shorten(title, tell.LONGEST),
        about=list(tell.about(learned.summary, source, date, author)),
        recommendation=first,
        reasons=more,
        pictures=[_predictions(found), _values(found)],
        table=_table(found),
        command=found.command,
        settings=tell.settings(learned.summary),
        manifest=dict(tell.manifest(learned, {"models drawn": f"{found.values.draws:,}", **(manifest or {})})),
        version=certeq.__version__,
    )


def _color(found: Comparison, name: str) -> str:
    return "c1" if name == found.recommended else GRAY


def _predictions(found: Comparison) -> Picture:
    told = {each.name: comparing.shown(found, each.name) for each in found.entries}
    scale = Scale.of([0.0, *(end for _, lead in told.values() if lead is not None for end in (lead.low, lead.high))])
    lines = [
        Track(name, [] if lead is None else interval(scale, lead.low, lead.mean, lead.high, _color(found, name)), words)
        for name, (words, lead) in told.items()
    ]
    return Picture(
        "prediction",
        [Tracks(lines, scale.ticks(), (Key("dot", "c1", "recommended"),))],
        f"How well each predicts: the log probability of a held-out transition compared with {found.recommended}, the "
        f"standard error in parentheses; the bar is two of them to either side. {found.transitions:,} transitions, in "
        f"{found.folds} folds of {found.units}, each predicted from the others. One that gave no chance to a "
        "transition that happened has no score; neither has one that does not say which state comes next.",
    )


def _values(found: Comparison) -> Picture:
    told = {each.name: found.worth(each.name)[1] for each in found.entries}
    scale = Scale.of(end for apart in told.values() for end in apart[:3])
    lines = [
        Track(
            name,
            interval(scale, apart.low, apart.mean, apart.high, _color(found, name)),
            comparing.value_words(found, name),
        )
        for name, apart in told.items()
    ]
    return Picture(
        "value",
        [Tracks(lines, scale.ticks())],
        f"What the advice of each is worth compared with {found.recommended}, in the same {found.values.draws:,} "
        f"models, with 90% intervals. The models are drawn from what {found.entries[0].name} makes of the data, which "
        "favors its advice a little.",
    )


def _table(found: Comparison) -> Listing:
    header, lines = comparing.table(found)
    words = [isinstance(cell, str) for cell in lines[0]]
    heads = [(name, "head" if i == 0 else "" if words[i] else "number") for i, name in enumerate(header)]
    rows = (
        [Cell(str(line[0]), "head"), *(Cell(one) if isinstance(one, str) else any_amount(one) for one in line[1:])]
        for line in lines
    )
    return plain_table("comparison-table", "Regularizers on the same data.", heads, rows)
