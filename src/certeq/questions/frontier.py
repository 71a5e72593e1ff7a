"""The frontier: what can be earned at which cost, what the limits cost, and how likely they are kept.

Of each column that was added up beside the reward: the corners of value against cost in the fitted model, exact at the
breakpoints (`certeq.planners.constrained`), and where the advice and what was recorded lie. Whether a limit is kept is
asked of the models that the data allow: rewards and costs are drawn in the same models, so that limits are judged
together. Advice that was chosen since it keeps a limit in these data tends to use more elsewhere: that is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, floats, generator
from certeq.base.display import between, in_a_sentence, number, percent, several, told
from certeq.base.errors import InputError
from certeq.data.order import unit_of
from certeq.learning.case import Case, Data
from certeq.learning.learned import Learned, asked
from certeq.learning.limiting import constrained, cost_case, rows_of
from certeq.planners.constrained import Constrained, Corner, keep
from certeq.planners.constrained import frontier as corners_of
from certeq.questions.asking import Asking, Question, affordable_draws
from certeq.questions.chains import read_policy
from certeq.questions.credible import CredibleInterval, Difference, credible, gained
from certeq.questions.episodes import behavior, watched
from certeq.questions.exact import evaluate
from certeq.questions.posterior import drawn_values
from certeq.questions.sparse_posterior import each_drawn

AGAIN = 25  # data sets drawn again, to see by how much costs are told too low


@dataclass(frozen=True)
class Frontier:
    """Value against cost in the fitted model, both expected from the first decision on."""

    cost: str  # name of the column
    corners: tuple[Corner, ...]  # from the cheapest to the best
    advice: tuple[float, float]  # cost and value of the advice
    recorded: tuple[float, float]  # and of what was recorded
    limit: float | None  # of this column

    @cached_property
    def costs(self) -> Floats:
        """Costs of the corners, ``(C,)``, rising."""
        return np.array([corner.costs[0] for corner in self.corners])

    @cached_property
    def values(self) -> Floats:
        """Values of the corners, ``(C,)``, rising."""
        return np.array([corner.value for corner in self.corners])

    @cached_property
    def breakpoints(self) -> Floats:
        """Prices at which the best policy changes, ``(C - 1,)``, falling: what one more unit of cost earns."""
        return np.asarray(np.diff(self.values) / np.diff(self.costs))

    def value_at(self, limit: float) -> float:
        """The most that any policy earns within a limit; by lot between two corners where none has just that cost."""
        most = float(floats("limit", limit))
        if most < self.costs[0]:
            raise InputError(f"No policy keeps {self.cost}<={most:g}: the least is {number(self.costs[0])}.")
        return float(np.interp(most, self.costs, self.values))

    def policy_at(self, limit: float) -> Integers:
        """The best corner within a limit: actions ``(S,)``, or ``(H, S)`` with a horizon."""
        self.value_at(limit)
        return self.corners[int(np.searchsorted(self.costs, limit, side="right")) - 1].policy

    def lines(self) -> list[str]:
        """The frontier in words."""
        least, most = self.corners[0], self.corners[-1]
        said = [
            f"Without a limit, the best policy earns {number(most.value)} and uses {number(most.costs[0])} of "
            f"{self.cost!r}. The thriftiest one earns {number(least.value)} and uses {number(least.costs[0])}; "
            f"{several(max(len(self.corners) - 2, 0), 'more policy lies', 'more policies lie')} in between."
        ]
        said.append(
            f"What was done earns {number(self.recorded[1])} and uses {number(self.recorded[0])}; the advice earns "
            f"{number(self.advice[1])} and uses {number(self.advice[0])}."
        )
        if self.limit is not None:
            value = self.value_at(self.limit)
            gain = value - self.advice[1]
            by_lot = f", {number(gain)} more than the advice, which is a single policy" if gain > 1e-9 else ""
            said.append(
                f"Within {self.limit:g} the most that can be earned, if need be by tossing a coin between two policies "
                f"at the start, is {number(value)}{by_lot}."
            )
        return said

    def _repr_html_(self) -> str:
        return told(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Write the frontier as plain values."""
        points = [{"cost": c.costs[0], "value": c.value, "policy": c.policy.tolist()} for c in self.corners]
        return {
            "format": "certeq-frontier",
            "version": 1,
            "column": self.cost,
            "limit": self.limit,
            "corners": points,
            "breakpoints": self.breakpoints.tolist(),
            "advice": list(self.advice),
            "recorded": list(self.recorded),
            "words": self.lines(),
        }


def frontier(learned: Learned, column: str | None = None) -> Frontier:
    """Value against cost: all policies that are best at some price of a column that was read with ``beside=``.

    Other limits than this column's are left aside. ``column`` may be left out where there is only one.
    """
    asked(learned)
    case = plain_case(learned)
    names = tuple(rows_of(case).beside)
    if column is None and len(names) > 1:
        raise InputError(f"Say of which column, one of {', '.join(names)}: frontier(learned, {names[0]!r}).")
    name = names[0] if column is None else column
    problem = constrained(case, [name])
    limits = {each.column: each.most for each in learned.rules.limits}
    advice, recorded = (_worth(problem, policy) for policy in (learned.policy.actions, behavior(learned.counts)))
    return Frontier(name, corners_of(problem), advice, recorded, limits.get(name))


def plain_case(learned: Learned) -> Case:
    """The case with rewards as they are, not net of prices."""
    return learned.case if learned.limited is None else learned.limited.case


def _worth(problem: Constrained, policy: Any) -> tuple[float, float]:
    """Cost and value of a policy under the start."""
    cost, value = (_values(problem, table, policy) @ problem.start for table in (problem.costs[0], problem.reward))
    return float(cost), float(value)


def _values(problem: Constrained, table: Floats, policy: Any) -> Floats:
    if problem.horizon is None:
        return evaluate(problem.model, table, problem.discount, policy)
    steps = read_policy("policy", policy, table.shape[0], table.shape[1], problem.horizon)
    values = np.zeros(len(table))
    for t in reversed(range(problem.horizon)):
        ahead = table + problem.discount * problem.model.expect(values)
        values = (steps[t % len(steps)] * ahead).sum(axis=1)
    return values


@dataclass(frozen=True)
class Tradeoffs:
    """What a report tells of costs: a frontier for each column, and how likely the limits are kept."""

    frontiers: tuple[Frontier, ...]
    value: CredibleInterval | None = None  # of the advice, not net of prices
    gain: Difference | None = None  # over what was done, likewise
    costs: tuple[CredibleInterval, ...] = ()  # of the advice, one for each limit
    kept: tuple[float, ...] = ()  # chance that each limit is kept
    all_kept: float | None = None  # chance that all of them are
    draws: int = 0
    why_not: str = ""  # no chances are told
    watched: int | None = None  # decisions for which half of the episodes were watched, where more than these count

    def lines(self) -> list[str]:
        """Everything in words."""
        said = [line for each in self.frontiers for line in each.lines()]
        limited = [each for each in self.frontiers if each.limit is not None]
        for each, cost, chance in zip(limited, self.costs, self.kept, strict=False):
            said.append(
                f"In the models that the data allow, the advice uses {between(cost.low, cost.high)} of "
                f"{each.cost!r} (90% interval), and keeps {each.cost}<={each.limit:g} with a chance of "
                f"{in_a_sentence(percent(chance, self.draws))}."
            )
        if len(self.kept) > 1 and self.all_kept is not None:
            kept = in_a_sentence(percent(self.all_kept, self.draws))
            said.append(f"The chance that all limits are kept is {kept}.")
        said += self.uncharged()
        if self.watched is not None:
            decisions = "1 decision" if self.watched == 1 else f"{self.watched:,} decisions or fewer"
            said.append(
                f"Half of the episodes were watched for {decisions}: for what adds up "
                f"later there is only the model's word. To limit what was watched, set --horizon {self.watched}."
            )
        if limited and not self.kept:
            said.append(f"How likely the limits are kept is not given: {self.why_not}")
        return said

    def uncharged(self) -> list[str]:
        """What the advice earns where nothing is charged, beside what was done; nothing where nothing was charged."""
        value, gain = self.value, self.gain
        if value is None or gain is None:
            return []
        return [
            f"Before any charge, the advice earns {number(value.mean)} ({between(value.low, value.high)}) "
            f"in these models. Over what was done that is a gain of {number(gain.mean)} "
            f"({between(gain.low, gain.high)}); the chance that it is above 0 is "
            f"{in_a_sentence(percent(gain.better, self.draws))}."
        ]

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        return {
            "frontiers": [each.to_json() for each in self.frontiers],
            "chance_kept": list(self.kept),
            "chance_all_kept": self.all_kept,
            "value": None if self.value is None else self.value._asdict(),
            "gain": None if self.gain is None else self.gain._asdict(),
            "costs": [each._asdict() for each in self.costs],
            "draws": self.draws,
        }


def _ask(asking: Asking) -> Tradeoffs:
    learned = asking.learned
    case = plain_case(learned)
    found = tuple(frontier(learned, name) for name in rows_of(case).beside)
    limits = {each.column: each.most for each in learned.rules.limits}
    if not limits:
        return Tradeoffs(found)
    try:
        draws = affordable_draws(learned, asking.draws)
    except InputError as error:
        return Tradeoffs(found, why_not=str(error))
    cases = (case, *(cost_case(case, name) for name in limits))
    policies = learned.policy.actions, behavior(learned.counts)
    (value, done), *paid = (drawn_values(each, policies, draws=draws, rng=asking.rng) for each in cases)
    more = understated(case, draws=min(AGAIN, draws), rng=asking.rng)
    costs, charged = [each[0] for each in paid], learned.batch is not rows_of(case)
    kept = np.array([cost + extra <= most for cost, extra, most in zip(costs, more, limits.values(), strict=True)])
    return Tradeoffs(
        found,
        credible(value) if charged else None,
        gained(value - done, each=each_drawn(learned.counts, draws)) if charged else None,
        tuple(credible(cost, higher=extra) for cost, extra in zip(costs, more.tolist(), strict=True)),
        tuple(kept.mean(axis=1).tolist()),
        float(kept.all(axis=0).mean()),
        draws,
        watched=watched(rows_of(case), case.rules.discount) if case.rules.horizon is None else None,
    )


def understated(case: Case, *, draws: int = AGAIN, rng: Rng = 0) -> Floats:
    """How much more of each limited column advice adds up to than the data say in which it was chosen, ``(K,)``.

    A policy is chosen since it seems to keep the limit there. So episodes are drawn again, the best within the limits
    is chosen in what is learned from them, and valued in the model of all rows, which had no say in it; on average.
    """
    limits, batch = case.rules.limits, rows_of(case)
    names, most = [each.column for each in limits], np.array([each.most for each in limits])
    whole, apart = constrained(case, names), list[Floats]()
    member = unit_of(batch)
    size = int(member.max()) + 1
    for random in generator(rng).spawn(draws):
        often = np.bincount(random.integers(size, size=size), minlength=size)[member]
        rows = batch.take(np.repeat(np.arange(len(batch)), often))
        problem = replace(constrained(Case(Data.of_rows(rows), case.rules, case.usual), names), start=whole.start)
        try:
            corner = keep(problem, most, case.rules.limit).corner
        except InputError:  # nothing keeps them there
            continue
        if corner is not None:
            apart.append(np.array(whole.worth(corner.policy)[1:]) - corner.costs)
    return np.maximum(np.mean(apart, axis=0), 0.0) if apart else np.zeros(len(most))


ASKED = Question(
    "frontier",
    _ask,
    doing="Following value against cost",
    asks="what a limit costs, and whether it is kept",
    by_itself="certeq.questions.frontier.frontier(learned)",
    plans=150,  # about
    applies=lambda learned: learned.batch is not None and bool(learned.batch.beside),
)
