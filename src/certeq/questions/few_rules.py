"""Few rules: a small tree over the columns of the state that says what the advice says, and how often it does.

Each leaf names one action. It agrees with the advice in a state where that action is advised, alone or as one of
several; states count by how often they were visited. Of rules that agree as often, those hold that say more often which
of several actions has the most value. A leaf is cut in two along one column, by its order where it has
one and otherwise by one of its labels; or in three, by two cuts at once, so that columns that matter only together are
found. Of all such cuts of all leaves the one is made that adds most agreement for each leaf that it adds, until nothing
adds two hundredths or there are six leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.display import in_a_sentence, percent, several, shorten, told
from certeq.base.errors import InputError
from certeq.data.positions import Positions
from certeq.data.recipes import Bins, Recipe
from certeq.data.recipes.axes import NOWHERE, Axis, OrMissing, unit_text
from certeq.learning.learned import Learned
from certeq.learning.policy import Policy
from certeq.questions.asking import Asking, Question

LEAVES = 6
LEAST = 0.02  # share of all visits in which one more leaf must agree
GOOD = 0.8  # agreement from which on the rules are told for the advice
MOST = 0.5  # share of the visits of a rule
WAYS = 24  # to cut a column; of more, those at even shares of the visits, or by the most visited labels
ACTIONS = 12  # that leaves may name, those advised most
TIE = 2.0**-20  # of a visit: what it adds to agree with the action of most value too; sums of such stay exact
NAME = 40  # characters of a label in a condition
LISTED = 3  # labels that are named rather than the several others that are not


class ShortRule(NamedTuple):
    """A leaf: where it holds, what it says, and how that compares with the advice there."""

    where: tuple[tuple[str, str], ...]  # column, condition; of the columns that matter
    action: int
    share: float  # of all visits to states with advice
    agrees: float  # share of its visits in which its action is advised, alone or among others
    alone: float  # share of its visits in which its action is advised alone

    @property
    def clear(self) -> bool:
        """Whether its action is advised alone in most of its visits."""
        return self.alone >= MOST


@dataclass(frozen=True)
class FewRules:
    """A few rules, and in which share of the visits they say what the advice says."""

    rules: tuple[ShortRule, ...]
    agreement: float
    action_names: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether the rules may stand for the advice."""
        return self.agreement >= GOOD

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The rules in words."""
        share = in_a_sentence(percent(self.agreement))
        if not self.good:
            first = f"No {LEAVES} rules or fewer reproduce the advice: the best found agree with it in {share} of"
            return [f"{first} visits. Look up states one by one."]
        if len(self.rules) == 1:
            only = shorten(self.action_names[self.rules[0].action], NAME)
            some = "" if self.rules[0].clear else " It is seldom advised alone: most of the advice is open."
            return [f"One rule, “{only}” everywhere, agrees with the advice in {share} of visits.{some}"]
        first = f"{several(len(self.rules), 'rule')} agree with the advice in {share} of visits."
        parts = (
            f"{' and '.join(f'{column} {condition}' for column, condition in rule.where)}: "
            f"“{shorten(self.action_names[rule.action], NAME)}”{'' if rule.clear else ', no clear difference'}"
            for rule in self.rules
        )
        return [first, f"{'; '.join(parts)}."]

    def to_json(self) -> dict[str, Any]:
        """Write the rules as plain values."""
        rules = [
            {**rule._asdict(), "where": dict(rule.where), "action": self.action_names[rule.action]}
            for rule in self.rules
        ]
        about = {"format": "certeq-few-rules", "version": 1, "agreement": self.agreement}
        return about | {"rules": rules, "words": self.lines()}


class Divisible(NamedTuple):
    """A column as it may be cut."""

    masks: Booleans  # (P, K): groups of codes on the first side of each way to cut it
    codes: Booleans  # (P, size): the same, code by code
    group: Integers  # (S,): of each state


class Leaf(NamedTuple):
    """States, and the codes on each axis that lead to them."""

    states: Booleans  # (S,)
    allowed: tuple[Booleans, ...]  # (size,) for each axis


class Cut(NamedTuple):
    """One cut, or two: a side of the first is cut again."""

    agrees: float  # visits, all parts together
    cuts: tuple[tuple[int, int], ...]  # column, way
    side: bool = True  # of the first cut, which is cut again


def few_rules(policy: Policy, positions: Positions | None = None) -> FewRules:
    """Find a few rules that say what a policy says at its first decision.

    ``positions`` tell the order of columns; the recipe's own unless given.
    """
    first = policy.first
    there = first.actions >= 0
    if not there.any():
        raise InputError("Nothing is advised, so there is nothing to put into rules.")
    visits = np.where(there, np.maximum(policy.visits.sum(axis=1), 1), 0)
    best = first.actions[:, None] == np.arange(len(policy.action_names))
    gain = visits[:, None] * (first.among + TIE * best)  # (S, A)
    named = np.argsort(-gain.sum(axis=0), kind="stable")[:ACTIONS]
    gain = gain[:, named]
    recipe = policy.recipe
    columns = [_column(recipe, k, order_of(recipe, positions, k), visits) for k in range(len(recipe.axes))]
    root = Leaf(there, tuple(np.ones(axis.size, dtype=bool) for axis in recipe.axes))
    leaves = _grow(columns, gain, root)
    alone = first.among & (first.among.sum(axis=1) == 1)[:, None]
    rules, agreed = [], 0.0
    for leaf in leaves:
        here, total = visits[leaf.states], float(visits[leaf.states].sum())
        action = int(named[gain[leaf.states].sum(axis=0).argmax()])
        agrees, sure = (float(here @ which[leaf.states, action]) for which in (first.among, alone))
        agreed += agrees
        where = tuple(_conditions(recipe, columns, leaf))
        rules.append(ShortRule(where, action, total / float(visits.sum()), agrees / total, sure / total))
    return FewRules(tuple(rules), agreed / float(visits.sum()), policy.action_names)


def _grow(columns: list[Divisible], gain: Floats, root: Leaf) -> list[Leaf]:
    """Cut the leaf that gains most by it, as long as that is worth a line."""
    least = LEAST * float(gain.max(axis=1).sum())
    leaves = [(root, _cuts(columns, gain, root))]
    while True:
        options = [
            ((cut.agrees - gain[leaf.states].sum(axis=0).max()) / len(cut.cuts), -place, cut)
            for place, (leaf, cuts) in enumerate(leaves)
            for cut in cuts
            if len(leaves) + len(cut.cuts) <= LEAVES
        ]
        best = max(options, key=lambda each: each[:2], default=None)  # of equals the first, and one cut before two
        if best is None or best[0] < max(least, 1):
            return [leaf for leaf, _ in leaves]
        parts = _parts(columns, leaves[-best[1]][0], best[2])
        leaves[-best[1] : 1 - best[1] or None] = [(part, _cuts(columns, gain, part)) for part in parts]


def _parts(columns: list[Divisible], leaf: Leaf, cut: Cut) -> list[Leaf]:
    first, *more = cut.cuts
    sides = [_side(columns, leaf, *first, inside) for inside in (True, False)]
    if not more:
        return sides
    again = [_side(columns, sides[not cut.side], *more[0], inside) for inside in (True, False)]
    return [*again, sides[1]] if cut.side else [sides[0], *again]


def _side(columns: list[Divisible], leaf: Leaf, axis: int, way: int, inside: bool) -> Leaf:
    column = columns[axis]
    states = leaf.states & (column.masks[way][column.group] == inside)
    codes = leaf.allowed[axis] & (column.codes[way] == inside)
    return Leaf(states, (*leaf.allowed[:axis], codes, *leaf.allowed[axis + 1 :]))


def _cuts(columns: list[Divisible], gain: Floats, leaf: Leaf) -> list[Cut]:
    """The best single cut of a leaf, and the best two; from tables of what groups of one or two columns agree with."""
    here = gain[leaf.states]  # (n, A)
    groups = [column.group[leaf.states] for column in columns]
    total = here.sum(axis=0)
    one, two = Cut(-1.0, ()), Cut(-1.0, ())
    for i, first in enumerate(columns):
        if not len(first.masks):
            continue
        inside = first.masks @ _table(here, groups[i], len(first.masks.T))  # (P, A)
        score = inside.max(axis=1) + (total - inside).max(axis=1)
        at = int(score.argmax())
        one = Cut(float(score[at]), ((i, at),)) if score[at] > one.agrees else one
        for j, second in enumerate(columns):
            if not len(second.masks):
                continue
            K, L = len(first.masks.T), len(second.masks.T)
            table = _table(here, groups[i] * L + groups[j], K * L).reshape(K, L, -1)
            for side in (True, False):
                part = np.einsum("pk,kla->pla", (first.masks == side).astype(np.float64), table)
                both = np.einsum("ql,pla->pqa", second.masks.astype(np.float64), part)
                whole = inside if side else total - inside
                score = both.max(axis=2) + (whole[:, None] - both).max(axis=2) + (total - whole).max(axis=1)[:, None]
                p, q = np.unravel_index(int(score.argmax()), score.shape)
                two = Cut(float(score[p, q]), ((i, int(p)), (j, int(q))), side) if score[p, q] > two.agrees else two
    return [cut for cut in (one, two) if cut.cuts]


def _table(gain: Floats, group: Integers, size: int) -> Floats:
    """Visits that each action would agree with, by group, ``(size, A)``."""
    return np.stack([np.bincount(group, weights=of, minlength=size) for of in gain.T], axis=1)


# ---- columns: how they may be cut, and what a cut is called ----


def order_of(recipe: Recipe, positions: Positions | None, axis: int) -> Integers | None:
    """The codes of an axis in their order, as far as they have one; None where they have none."""
    line = recipe.axes[axis].places
    if positions is not None and len(positions.axes) == len(recipe.axes):
        line = None if positions.axes[axis] == "label" else np.full(recipe.axes[axis].size, NOWHERE)
        if line is not None:
            line[recipe.cells[positions.placed, axis]] = positions.places[positions.placed, axis]
    if line is None:
        return None
    order = np.argsort(line, kind="stable")
    return np.asarray(order[line[order] != NOWHERE])


def _column(recipe: Recipe, axis: int, order: Integers | None, visits: Integers) -> Divisible:
    code, size = recipe.cells[:, axis], recipe.axes[axis].size
    often = np.bincount(code, weights=visits, minlength=size)
    ways = []
    if order is not None and len(order) > 1:
        until = np.cumsum(often[order])[:-1]
        even = np.searchsorted(until, np.linspace(0, until[-1], WAYS))
        kept = range(len(until)) if len(until) <= WAYS else np.unique(even).tolist()
        ways += [np.isin(np.arange(size), order[: k + 1]) for k in kept]
    rest = np.setdiff1d(np.arange(size), np.arange(0) if order is None else order)
    alone = sorted(rest[np.argsort(-often[rest], kind="stable")][:WAYS].tolist())
    ways += [np.arange(size) == k for k in alone if size > 1]
    codes = np.array(ways, dtype=bool).reshape(len(ways), size)
    bits = np.ascontiguousarray(np.packbits(codes, axis=0).T)  # one number for each code: far sooner told apart
    alike = bits.view(f"V{bits.shape[1]}").ravel() if len(ways) else np.zeros(size, dtype=np.int64)
    _, first, place = np.unique(alike, return_index=True, return_inverse=True)
    return Divisible(codes[:, first], codes, place.ravel()[code])


def _conditions(recipe: Recipe, columns: list[Divisible], leaf: Leaf) -> Iterator[tuple[str, str]]:
    for name, axis, allowed in zip(recipe.axis_names, recipe.axes, leaf.allowed, strict=True):
        if not allowed.all():
            yield shorten(name, NAME), condition(axis, allowed)


def condition(axis: Axis, allowed: Booleans) -> str:
    """The codes that are left, in words."""
    inner: Axis = axis
    if isinstance(axis, OrMissing):
        inner, gone = axis.present, bool(allowed[-1])
        if not allowed[:-1].any():
            return "missing"
        rest = "" if allowed[:-1].all() else condition(inner, allowed[:-1])
        return f"{rest} or missing" if rest and gone else rest or "not missing"
    words = [shorten(word, NAME) for word in inner.words(alone=True)]
    kept, out = np.flatnonzero(allowed), np.flatnonzero(~allowed)
    low, high = int(kept[0]), int(kept[-1])
    if inner.places is not None and high - low + 1 == len(kept) > 1:
        return _between(words, low, high, unit_text(inner.unit) if isinstance(inner, Bins) else None)
    short = len(kept) <= len(out) or (len(out) > 1 and len(kept) <= LISTED)
    which, few = ("", kept) if short else ("not ", out)
    *most, last = (words[k] for k in few)
    return f"{which}{', '.join(most)}{' or ' if most else ''}{last}"


def _between(words: list[str], low: int, high: int, unit: str | None) -> str:
    """Codes from one to another; cells such as "3 to 5 cm" from the low end of the first to the high end of the last.

    Cells have a unit, which may be empty; labels have none.
    """
    start, end, after = words[low], words[high], unit or ""
    if unit is not None:
        start, end = start.partition(" to ")[0], end.rpartition(" to ")[2]
    if low == 0:
        return f"{'up to' if unit is None else 'below'} {end}"
    return f"{start}{after} or more" if high == len(words) - 1 else f"{start} to {end}"


def _ask(asking: Asking) -> FewRules:
    learned: Learned = asking.learned
    policy, found, risk = learned.policy, asking.found.get("posterior"), asking.found.get("risk")
    if found is not None:
        policy = replace(policy, chances=found.best)
    return few_rules(policy if risk is None else policy.stricter(risk.min_chance), learned.counts.positions)


ASKED = Question(
    "few_rules",
    _ask,
    doing="Looking for a few rules",
    asks="whether a few rules say the same",
    after=("posterior", "risk"),
    anyhow=True,
)
