"""Sheets of the page: states as boxes along the columns that people named, each with a number or a sign.

Up to a few states a sheet is a table of states and actions. More of them lie where their columns say, if all have a
box of their own; otherwise what is shown is added up along two columns, those that matter to the advice first. A long
column is cut into bands of values that follow one another, if they have an order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.display import number, percent, shorten
from certeq.questions.few_rules import condition, order_of
from certeq.questions.findings import Findings
from certeq.report.drawn import Box, Boxes, Chart, Key, Tracks
from certeq.report.listing import BRIEF, Teller
from certeq.report.maps import FEW_STATES, NUMBERED, PANELS, action_signs, signs_of
from certeq.report.sheet import Side, sheet

ALONG = 24  # values of a column that others are added up along, one by one
BANDS = 8  # that a longer column is cut into
SHADES = 10
KEYED = 8  # actions that have a color of their own
NO_MAP = "No map: no column has an order, or few enough values, to group states by. The table lists those visited most."

Drawn = list[Tracks | Chart | Boxes]


class Paper(NamedTuple):
    """Where each state lies, and whether it lies there alone."""

    place: Integers  # (S,)
    shape: tuple[int, int]
    down: Side
    across: Side
    alone: bool

    def total(self, values: Floats) -> Floats:
        """Values of the states ``(S,)`` added up in each box, ``(rows, columns)``."""
        size = self.shape[0] * self.shape[1]
        return np.asarray(np.bincount(self.place, weights=values, minlength=size).reshape(self.shape), dtype=np.float64)

    @property
    def rest(self) -> str:
        """What a caption says about states that share a box."""
        return "" if self.alone else " A box adds up all states that fall in it."


def paper(findings: Findings) -> Paper | None:
    """Lay the states out; None where there is nothing to lay them along."""
    recipe = findings.learned.policy.recipe
    full = sheet(recipe)
    if full.across.titles and full.rows * full.columns <= NUMBERED:
        place = full.row * full.columns + full.column
        return Paper(place, (full.rows, full.columns), full.down, full.across, alone=True)
    groups = {k: found for k in range(len(recipe.axes)) if (found := _groups(findings, k)) is not None}
    rules = () if findings.few_rules is None else findings.few_rules.rules
    named = {name for rule in rules for name, _ in rule.where}
    whole = {k: len(words) == recipe.axes[k].size for k, (_, words) in groups.items()}
    chosen = sorted(sorted(groups, key=lambda k: (recipe.axis_names[k] not in named, not whole[k]))[:2])
    if not chosen:
        return None
    sides = [Side((recipe.axis_names[k],), groups[k][1]) for k in chosen]
    down, across = sides if len(sides) == 2 else (Side(()), *sides)
    rows, columns = (len(side.inner) or 1 for side in (down, across))
    codes = [groups[k][0][recipe.cells[:, k]] for k in chosen]
    place = codes[0] if len(codes) == 1 else codes[0] * columns + codes[1]
    alone = len(recipe.axes) == len(chosen) and all(whole[k] for k in chosen)
    return Paper(place, (rows, columns), down, across, alone)


def _groups(findings: Findings, k: int) -> tuple[Integers, tuple[str, ...]] | None:
    """Place of each code of a column along a side, and the words of each place; None where there would be too many."""
    learned = findings.learned
    axis = learned.policy.recipe.axes[k]
    if axis.size <= ALONG:
        return (np.arange(axis.size), tuple(axis.words(alone=True))) if axis.size > 1 else None
    named = learned.batch is None or learned.batch.recipe is not None  # mere numbers of states have no order
    order = order_of(learned.policy.recipe, learned.counts.positions, k) if named else None
    if order is None or not np.array_equal(order, np.arange(len(order))):
        return None
    place = np.full(axis.size, BANDS)  # those without a place, which are missing, come last
    for i, band in enumerate(np.array_split(order, BANDS)):
        place[band] = i
    return place, tuple(condition(axis, place == i) for i in range(place.max() + 1))


def count_map(findings: Findings, teller: Teller) -> tuple[Drawn, str]:
    """How often each action was tried in each state, darker where more often."""
    visits, limit = teller.visits.astype(np.float64), teller.limit
    caption = "How often each action was tried: darker where more often, a dashed box where never."
    caption += f" Gray: fewer than {limit} times, but at least once." if limit > 1 else ""

    def box(often: Floats, most: float) -> Callable[[int, int], Box]:
        def one(i: int, j: int) -> Box:
            c = int(often[i, j])
            if 0 < c < limit:
                return Box("hidden", f"<{limit}")
            return Box(_shade(log(c) / log(max(most, 2))), number(c)) if c else Box("blank")

        return one

    return _by_action(findings, teller, caption, lambda on, of: on(visits * of), box)


def weight_map(findings: Findings, teller: Teller) -> tuple[Drawn, str]:
    """How much of what follows each pair is the regularizer's target: 0 none, 1 all."""
    visits = np.where(teller.hidden, 0, teller.visits).astype(np.float64)
    weight = np.broadcast_to(findings.learned.shrinkage.weight, visits.shape)
    caption = "Weight of the target where something was tried: near 0 the data speak, near 1 the regularizer does."

    def mean(on: Callable[[Floats], Floats], of: Floats) -> Floats:
        often = on(visits * of)
        return np.where(often > 0, on(visits * weight * of) / np.maximum(often, 1), np.nan)

    def box(share: Floats, most: float) -> Callable[[int, int], Box]:
        def one(i: int, j: int) -> Box:
            w = float(share[i, j])
            return Box("blank") if np.isnan(w) else Box(_shade(w), f"{w:.2f}")

        return one

    return _by_action(findings, teller, caption, mean, box)


def _by_action(
    findings: Findings,
    teller: Teller,
    caption: str,
    measure: Callable[[Callable[[Floats], Floats], Floats], Floats],
    box: Callable[[Floats, float], Callable[[int, int], Box]],
) -> tuple[Drawn, str]:
    """A table of states and actions; or a sheet for each action, or for all of them together.

    ``measure`` is given how to add pairs up in boxes, and which actions count, ``(A,)``.
    """
    S, A = teller.visits.shape
    if S <= FEW_STATES:
        values = measure(lambda pairs: pairs, np.ones(A))
        names = tuple(teller.state(s).text for s in range(S))
        sides = Side(("state",), names), Side(("action",), tuple(teller.actions))
        draw = box(values, float(np.nanmax(values, initial=0)))
        return [Boxes("", [[draw(s, a) for a in range(A)] for s in range(S)], *sides)], caption
    at = paper(findings)
    if at is None:
        return [], NO_MAP
    there = at.total(np.ones(S)) > 0
    which = np.eye(A) if A <= PANELS else np.ones((1, A))
    titles = teller.actions if A <= PANELS else [f"all {A:,} actions"]
    sheets = [measure(lambda pairs: at.total(pairs.sum(axis=1)), of) for of in which]
    most = max(float(np.nanmax(values, initial=0)) for values in sheets)
    parts: Drawn = [_grid(at, there, title, box(values, most)) for title, values in zip(titles, sheets, strict=True)]
    return parts, caption + at.rest


def policy_map(findings: Findings, teller: Teller) -> tuple[Drawn, str]:
    """What is advised where: a color and a sign for each action, pale where it was hardly tried."""
    policy = findings.learned.policy
    first, (S, A) = policy.first, teller.visits.shape
    at = None if S <= FEW_STATES else paper(findings)
    if at is None:
        return [], ""
    signs = action_signs(policy.action_names)
    said = np.where(first.open, A, np.where(first.actions < 0, A + 1, first.actions))
    often = np.maximum(teller.visits.sum(axis=1), 1).astype(np.float64)
    shares = np.stack([at.total(often * (said == k)) for k in range(A + 2)], axis=-1)  # (rows, columns, A + 2)
    first_state = np.full(shares.shape[:2], -1)
    first_state.ravel()[at.place[::-1]] = np.arange(S)[::-1]

    def box(i: int, j: int) -> Box:
        k, s = int(shares[i, j].argmax()), int(first_state[i, j])
        look = f"c{k % KEYED}" if k < A else ("open" if k == A else "blank")
        if not at.alone:
            return Box(look, percent(float(shares[i, j, k] / shares[i, j].sum())))
        if k >= A:
            return Box(look, signs_of(first.among[s], signs) if k == A else "")
        return Box(f"{look} pale" if first.support[s] < teller.few else look, signs[k])

    used = [a for a in np.unique(first.actions[first.actions >= 0]).tolist() if a < A][:12]
    brief = {a: shorten(policy.action_names[a], BRIEF) for a in used}
    words = {a: name if name == signs[a] or not at.alone else f"{signs[a]}: {name}" for a, name in brief.items()}
    keys = [Key("bar", f"c{a % KEYED}", words[a]) for a in used]
    keys += [Key("bar", "open", "no clear difference")] if (said == A).any() else []
    grid = _grid(at, shares.sum(axis=-1) > 0, "", box, tuple(keys))
    pale = f" Pale: tried fewer than {teller.few} times." if at.alone else " Percent: share of visits advised so."
    return [grid], f"What is advised where; no color means no advice.{pale}{at.rest}"


def _grid(at: Paper, there: Booleans, title: str, box: Callable[[int, int], Box], keys: tuple[Key, ...] = ()) -> Boxes:
    rows, columns = at.shape
    boxes = [[box(i, j) if there[i, j] else None for j in range(columns)] for i in range(rows)]
    return Boxes(title, boxes, _brief(at.down), _brief(at.across), keys)


def _brief(side: Side) -> Side:
    return Side(*(tuple(shorten(word, BRIEF) for word in words) for words in (side.titles, side.inner, side.outer)))


def _shade(share: float) -> str:
    return f"s{min(int(SHADES * share), SHADES - 1)}"
