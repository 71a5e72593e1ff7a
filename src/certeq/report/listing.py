"""Tables of the report: which lines and cells, and what may not be told. The page lays them out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.display import between, harmless, number, of_draws, percent, shorten
from certeq.data.look import FEW
from certeq.learning.policy import AdviceLine
from certeq.learning.sets import in_words
from certeq.questions.findings import Findings
from certeq.report.curves import comparable

if TYPE_CHECKING:
    from certeq.questions.collect import Ranking
    from certeq.questions.conventions import Conventions
    from certeq.questions.credible import Posterior
    from certeq.questions.fragility import Fragility
    from certeq.questions.groups import Groups
    from certeq.questions.off_policy import OffPolicy
    from certeq.questions.risk import Risk

LONG, SHOWN = 2_000, 500  # with more states than LONG, tables show the SHOWN most visited
CELLS = 20_000  # that a table of states and actions may have
LETTERS = 300_000  # of all labels together, up to which each is told in full
BRIEF = 80  # characters of a label otherwise
NAME = 160  # characters of a state's name in tables that only refer to it


class Cell(NamedTuple):
    """What stands in a cell, and how: text, number, action (with its color) or share (with a bar)."""

    text: str
    kind: str = "text"
    more: Any = None


class Line(NamedTuple):
    """A line of a table, with marks that it can be found by."""

    cells: list[Cell]
    marks: str = ""
    action: int = -1


@dataclass(frozen=True)
class Listing:
    """A table with its words."""

    name: str
    caption: str
    header: list[Cell]
    lines: list[Line]


class Teller:
    """Says what may be said: counts below a limit are only said to be below it."""

    def __init__(self, findings: Findings, suppress_below: int) -> None:
        self.findings, self.limit = findings, suppress_below
        policy = findings.learned.policy
        self.visits = policy.visits
        self.hidden = (self.visits > 0) & (self.visits < suppress_below)
        self.few = max(FEW, suppress_below)  # tried less often than this, advice is marked as thin
        self.order = np.argsort(-self.visits.sum(axis=1), kind="stable")
        S = len(self.visits)
        self.shown: Integers = self.order if S <= LONG else self.order[:SHOWN]
        kept = "policy.csv" if policy.readable else "policy.npz"
        self.partial = "" if S <= LONG else f" The {SHOWN:,} most visited of {S:,} states; {kept} has all of them."
        words = policy.recipe.parts(self.shown)
        full = sum(len(word) for parts in words for word in parts) <= LETTERS
        self.axes = [shorten(name, BRIEF) for name in policy.recipe.axis_names]
        self.words = {
            s: [harmless(word) if full else shorten(word, BRIEF) for word in parts]
            for s, parts in zip(self.shown.tolist(), words, strict=True)
        }
        self.actions = [shorten(name, BRIEF) for name in policy.action_names]

    def count(self, state: int, action: int) -> Cell:
        """How often a pair was tried."""
        if self.hidden[state, action]:
            return Cell(f"<{self.limit}", "number", 0)
        return Cell(number(int(self.visits[state, action])), "number" if self.visits[state, action] else "never")

    def state(self, state: int) -> Cell:
        """A state by its name."""
        return Cell(shorten(self.findings.learned.policy.state_names[state], NAME), "head")

    def advice(self, piece: AdviceLine) -> Cell:
        """What is advised, by name and color; where it is several actions, all of them, and no color if it is open."""
        cell = self.action(piece.action, "no advice")
        if not piece.among:
            return cell
        words = in_words([shorten(name, BRIEF) for name in piece.among], tied=not piece.open)
        return Cell(words) if piece.open else cell._replace(text=words)

    def action(self, action: int, otherwise: str = "–") -> Cell:
        """An action by its name and color."""
        return Cell(otherwise, "soft") if action < 0 else Cell(self.actions[action], "action", action % 8)


def amount(value: float) -> Cell:
    """A number, or nothing where there is none."""
    return Cell("–", "never") if np.isnan(value) else Cell(number(value), "number")


def any_amount(value: Any) -> Cell:
    """A number, or nothing where there is none."""
    return Cell("–", "never") if value is None else amount(value)


def share(value: float) -> Cell:
    """A probability with its bar; as a share of draws it is never certain."""
    if np.isnan(value):
        return Cell("–", "never")
    return Cell(of_draws(value), "share", round(40 * float(value), 1))


def policy_table(teller: Teller) -> Listing:
    """The advice of each state with its support, its rival, and how sure it is."""
    findings, policy = teller.findings, teller.findings.learned.policy.first
    sure, fragile = policy.chances is not None, findings.fragility
    header = [*(Cell(name, "head") for name in teller.axes), Cell("Advised")]
    header += [Cell("Chance it is best", "number"), Cell("At stake", "number")] if sure else []
    header += [Cell("Tried", "number"), Cell("Runner-up"), Cell("Gap", "number")]
    header += [Cell("Contrary rows to change it", "number")] if fragile is not None else []
    lines = []
    for piece in policy.pieces(teller.shown):
        s, a = piece.state, piece.action
        marks = ["thin"] if piece.visits is not None and piece.visits < teller.few else []
        marks += ["open"] if piece.open else []
        marks += ["none"] if a < 0 else []
        cells = [Cell(word, "head") for word in teller.words[s]]
        cells += [teller.advice(piece)]
        chance = np.nan if piece.chance is None else piece.chance
        cells += [share(chance), any_amount(piece.stake)] if sure else []
        cells += [teller.count(s, a) if a >= 0 else Cell("–", "never")]
        cells += [teller.action(piece.rival, piece.no_rival if a >= 0 else "–"), any_amount(piece.gap)]
        cells += [_contrary(fragile, s)] if fragile is not None else []
        lines.append(Line(cells, " ".join(marks), a))
    caption = f"Advice in each state, the most visited first.{teller.partial}"
    return Listing("policy-table", caption, header, lines)


def _contrary(fragile: Fragility, state: int) -> Cell:
    """How many rows against it would change a piece of advice."""
    number_of = int(fragile.observations[state])
    if not fragile.asked[state]:
        return Cell("not asked" if fragile.choice[state] else "–", "never")
    return Cell(f">{fragile.cap:,}" if number_of > fragile.cap else number(number_of), "number", number_of)


def undecided_table(teller: Teller, posterior: Posterior) -> Listing:
    """States where no action is clearly the best, the most visited first, with the two most likely ones."""
    findings = teller.findings
    best = posterior.best if posterior.best.ndim == 2 else posterior.best[0]
    open_states = set(findings.open.tolist())
    lines = []
    for s in [s for s in teller.shown.tolist() if s in open_states]:
        a = int(findings.advised[s])
        rest = np.where(np.arange(best.shape[1]) == a, -1.0, best[s])
        rival = int(rest.argmax())
        cells = [teller.state(s), teller.action(a), share(float(best[s, a])), teller.count(s, a)]
        lines.append(Line([*cells, teller.action(rival), share(float(rest[rival])), teller.count(s, rival)]))
    heads = ("Chance it is best", "Tried")
    header = [Cell("State", "head"), Cell("Advised"), *(Cell(head, "number") for head in heads)]
    header += [Cell("Or instead"), *(Cell(head, "number") for head in heads)]
    caption = f"Undecided states, the most visited first: {len(open_states):,} in all."
    return Listing("undecided-table", caption, header, lines)


def groups_table(found: Groups, limit: int) -> Listing:
    """What is known of each group; of one with fewer rows than may be told, that alone."""
    heads = ("Decisions", "Supported", "As advised", "Value of the advice", "Gain over what was done", "Gain apart")
    lines = []
    for group in found.groups:
        cells = [Cell(shorten(group.name, NAME), "head")]
        if group.rows < limit:
            lines.append(Line([*cells, Cell(f"<{limit}", "number", 0), *(Cell("–", "never") for _ in heads[1:])]))
            continue
        spans = (group.value, group.gain, group.apart)
        cells += [Cell(number(group.rows), "number"), Cell(percent(group.supported), "number")]
        cells.append(Cell("–", "never") if group.agreement is None else Cell(_shares(*group.agreement), "number"))
        cells += [
            Cell("–", "never") if span is None else Cell(f"{number(span[0])} ({between(*span[1:3])})", "number")
            for span in spans
        ]
        lines.append(Line(cells))
    caption = (
        f"Groups by {shorten(found.by, NAME)}, with 90% intervals. Supported: decisions in states where the group "
        f"itself tried the advised action {FEW} times. Apart: from the first group."
    )
    return Listing("groups-table", caption, [Cell("Group", "head"), *(Cell(head, "number") for head in heads)], lines)


def _shares(middle: float, low: float, high: float) -> str:
    return f"{percent(middle)} ({percent(low)} to {percent(high)})"


def risk_table(found: Risk) -> Listing:
    """Following more and more of the advice: what changes, what that gains, and how likely it is worse."""
    heads = ("States that change", "Gain", "90% interval", "Chance of doing worse", "Rests on few rows")
    lines = [
        Line(
            [
                Cell(f"{percent(each.min_chance)}{' (chosen)' if each == found.chosen else ''}", "head"),
                Cell(number(each.states), "number"),
                amount(each.gain.mean),
                Cell(between(each.gain.low, each.gain.high), "number"),
                share(each.worse),
                Cell(percent(each.thin), "number"),
            ]
        )
        for each in found.followed
    ]
    header = [Cell("Followed where at least this sure", "head"), *(Cell(head, "number") for head in heads)]
    return Listing("risk-table", "Gain and risk of following more and more of the advice.", header, lines)


def departures_table(teller: Teller) -> Listing:
    """States where what was done most often is not advised, the most visited first, each with its support."""
    advised, usual = teller.findings.advised, teller.visits.argmax(axis=1)
    policy = teller.findings.learned.policy.first
    departs = (advised >= 0) & (advised != usual) & ~(policy.open & policy.among[np.arange(len(usual)), usual])
    sure = policy.chances is not None
    lines = []
    for s in [s for s in teller.shown.tolist() if departs[s]]:
        a, b = int(advised[s]), int(usual[s])
        pairs = [teller.action(a), teller.count(s, a), teller.action(b), teller.count(s, b)]
        marks = "open" if policy.open[s] else ""
        pairs += [share(float(policy.chance[s]))] if sure else []
        lines.append(Line([teller.state(s), *pairs], marks))
    header = [Cell("State", "head"), Cell("Advised"), Cell("Tried", "number"), Cell("Done most often")]
    header += [Cell("Tried", "number"), *([Cell("Chance it is best", "share")] if sure else [])]
    caption = f"States where what was done most often is not advised: {int(departs.sum()):,} in all.{teller.partial}"
    return Listing("departures-table", caption, header, lines)


def conventions_table(found: Conventions) -> Listing:
    """How many states are advised otherwise under each convention."""
    lines = [
        Line([Cell(name, "head"), Cell("yes" if name == found.chosen else "–"), amount(len(found.differs(name)))])
        for name in found.policies
    ]
    header = [Cell("Convention", "head"), Cell("Used"), Cell("States with other advice", "number")]
    return Listing("conventions-table", "Conventions for pairs without data.", header, lines)


def visits_table(teller: Teller) -> Listing:
    """How often each action was tried in each state."""
    header = [Cell("State", "head"), *(Cell(name, "number") for name in teller.actions)]
    states = _fitting(teller, len(teller.actions))
    lines = [Line([teller.state(s), *(teller.count(s, a) for a in range(len(teller.actions)))]) for s in states]
    return Listing("visits-table", f"Times tried.{_part(teller, states)}", header, lines)


def weights_table(teller: Teller) -> Listing:
    """Weight of the target in each pair."""
    learned = teller.findings.learned
    weight = np.broadcast_to(learned.shrinkage.weight, teller.visits.shape)
    header = [Cell("State", "head"), *(Cell(name, "number") for name in teller.actions)]
    states = _fitting(teller, len(teller.actions))

    def told(s: int, a: int) -> Cell:
        return Cell("not told", "never") if teller.hidden[s, a] else Cell(f"{weight[s, a]:.3f}", "number")

    lines = [Line([teller.state(s), *(told(s, a) for a in range(len(teller.actions)))]) for s in states]
    return Listing("weights-table", f"Weight of the target.{_part(teller, states)}", header, lines)


def reasons_table(teller: Teller) -> Listing:
    """The gap to the runner-up, taken apart."""
    findings = teller.findings
    runner, gap = findings.runner_up
    apart = np.stack([findings.now, findings.later, gap], axis=1)
    kept = [s for s in comparable(findings, teller.limit).tolist() if s in teller.words]
    numeric = [Cell(name, "number") for name in ("Now", "Later", "Gap")]
    lines = [
        Line(
            [
                teller.state(s),
                teller.action(int(findings.advised[s])),
                teller.action(int(runner[s])),
                *(amount(value) for value in apart[s]),
            ]
        )
        for s in kept
    ]
    header = [Cell("State", "head"), Cell("Advised"), Cell("Runner-up"), *numeric]
    return Listing("reasons-table", f"Why the advised action leads.{teller.partial}", header, lines)


def estimates_table(found: OffPolicy) -> Listing:
    """Off-policy estimates with their intervals, and what to know about each."""
    header = [Cell("Estimate", "head"), *(Cell(head, "number") for head in ("Value", f"{found.level:.0%} interval"))]
    header += [Cell("Comparable"), Cell("Note")]
    lines = [
        Line(
            [
                Cell(one.words, "head"),
                amount(one.value),
                Cell("–", "never") if np.isnan(one.low) else Cell(between(one.low, one.high), "number"),
                Cell("yes" if one.trusted else "no"),
                Cell(one.note),
            ]
        )
        for one in found.estimates
    ]
    return Listing("estimates-table", "Estimates from the episodes alone.", header, lines)


def collect_table(teller: Teller, found: Ranking, most: int = 10) -> Listing:
    """The pairs whose observation would help most."""
    lines = [
        Line(
            [
                teller.action(int(found.action[i])),
                teller.state(int(found.state[i])),
                teller.count(int(found.state[i]), int(found.action[i])),
                amount(float(found.gain[i])),
                amount(float(found.error[i])),
            ]
        )
        for i in range(min(most, int((found.gain > 0).sum())))
    ]
    numeric = [Cell(head, "number") for head in ("Tried so far", "Regret removed", "Give or take")]
    header = [Cell("Try"), Cell("In state", "head"), *numeric]
    return Listing("collect-table", "Where one more observation helps most.", header, lines)


def plain_table(name: str, caption: str, header: Iterable[tuple[str, str]], rows: Iterable[Iterable[Cell]]) -> Listing:
    """A table of cells that were made elsewhere."""
    return Listing(name, caption, [Cell(*head) for head in header], [Line(list(row)) for row in rows])


def _fitting(teller: Teller, columns: int) -> list[int]:
    """As many states as a table of so many columns should have."""
    fitting: list[int] = teller.shown[: max(20, CELLS // columns)].tolist()
    return fitting


def _part(teller: Teller, states: list[int]) -> str:
    total = len(teller.visits)
    return "" if len(states) == total else f" The {len(states):,} most visited of {total:,} states."
