"""The main job: rows in, a policy out, with everything that was decided on the way."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

import certeq
from certeq.base.arrays import ArrayLike, Floats
from certeq.base.display import harmless, number, several
from certeq.base.errors import InputError
from certeq.base.fields import takes
from certeq.data.batch import Batch
from certeq.data.counting.tallied import Tallied
from certeq.data.counts import Counts
from certeq.data.look import FEW, look
from certeq.learning.case import Case, Data
from certeq.learning.elapsed import paid
from certeq.learning.equivalence import Model
from certeq.learning.limiting import Limited, limit
from certeq.learning.policy import Policy
from certeq.learning.rules import Rules
from certeq.model.rewards import Rewards
from certeq.planners import FinitePlan, Plan, Progress
from certeq.planners.average import AveragePlan
from certeq.regularizers import Shrinkage

SAME = "Every reward is the same, so there is nothing to choose: no action can be better than another."
BEYOND = 1e-6  # of the largest value: what rounding and planning may add to what is possible


@dataclass(frozen=True)
class Summary:
    """What was read, learned and noticed, in numbers and in words."""

    rows: int
    episodes: int | None
    states: int
    actions: int
    pairs_seen: int
    pairs: int
    endings: int
    dropped: Mapping[str, int]
    goal: str  # which way is better, in words
    decisions: tuple[str, ...]  # what was decided unasked and changes the advice; told before all else
    notes: tuple[str, ...]
    alerts: tuple[str, ...]
    settings: Mapping[str, Any]
    advised: int
    mean_value: float
    seen: tuple[str, ...] = ()  # what the rows show before anybody plans, in words
    markov: bool | None = None  # whether the states look Markov; None where that was not checked or cannot be told
    people: str | None = None  # the alert that they acted on more than the states hold, if so; None: not checked
    choices: int = 0  # states in which more than one action may be advised
    clear: int | None = None  # of them, those in which one action is clearly best; None where that was not computed
    of: Learned | None = field(default=None, repr=False, compare=False)  # what it sums up
    open: str = ""  # the alert that tells of the others, or why nothing is known of them; it is among the alerts

    def to_json(self) -> dict[str, Any]:
        """Write the summary as plain values, with the versions that made it."""
        versions = {"certeq": certeq.__version__, "python": platform.python_version(), "numpy": np.__version__}
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain |= {"dropped": dict(self.dropped), "settings": dict(self.settings)}
        del plain["open"], plain["of"], plain["people"]
        return {"format": "certeq-summary", "version": 1, "versions": versions} | plain

    def __call__(self) -> None:
        """Print what ``certeq learn`` shows in a terminal: ``learned.summary()``."""
        from certeq.learning.screen import show

        if self.of is None:
            raise InputError("This summary stands alone; what was learned prints its own: learned.summary().")
        show(self.of)


@dataclass(frozen=True)
class Learned:
    """Everything `learn` found out, and the case it was found in: data and rules."""

    case: Case
    plan: Plan | FinitePlan
    policy: Policy
    summary: Summary
    limited: Limited | None = None  # how limits were kept, where there are any
    answers: Mapping[str, Any] = field(default_factory=dict)  # to questions that were asked of it already, by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "summary", replace(self.summary, of=self))

    def __repr__(self) -> str:
        facts = self.summary
        sure = "" if facts.clear is None else f", one action clearly best in {facts.clear:,} of {facts.choices:,}"
        return (
            f"Learned({several(facts.rows, 'row')}, {several(facts.states, 'state')}, "
            f"{several(facts.actions, 'action')}; advice in {facts.advised:,}{sure}; "
            f"{self.rules.regularizer}, {_criterion(self.rules)}; {several(len(facts.alerts), 'alert')})"
        )

    @property
    def rules(self) -> Rules:
        """Everything that was decided about estimating, regularizing and planning."""
        return self.case.rules

    @property
    def batch(self) -> Batch | None:
        """The rows; None where there are only counts of them."""
        return self.case.data.batch

    @property
    def counts(self) -> Counts:
        """Transition counts."""
        return self.case.data.counts

    @property
    def model(self) -> Model:
        """The estimated and regularized transitions."""
        return self.case.model

    @property
    def shrinkage(self) -> Shrinkage:
        """Weights and target that were used."""
        return self.model.shrinkage

    @property
    def rewards(self) -> Rewards | None:
        """How rewards were estimated; None where they were known."""
        return self.case.rewards

    @property
    def table(self) -> Floats:
        """Rewards ``(S, A)`` before the regularizer and the states without advice had their say."""
        return self.case.table

    @property
    def reward(self) -> Floats:
        """Rewards ``(S, A)``, as the plan saw them."""
        return self.model.reward(self.table)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.case.data.state_names

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions."""
        return self.case.data.action_names

    @property
    def indifferent(self) -> bool:
        """Whether every reward is the same, so that nothing can be better than anything else."""
        return _indifferent(self.case)

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped the planner, and the plan is what it had by then."""
        return isinstance(self.plan, Plan) and self.plan.interrupted

    def _repr_html_(self) -> str:
        found = self.summary
        tried = f"{found.rows:,} transitions, {found.pairs_seen:,} of {found.pairs:,} pairs tried."
        return f"<div><p>{escape(harmless(' '.join((tried, *found.alerts))))}</p>{self.policy._repr_html_()}</div>"

    def with_chances(
        self,
        chances: Floats | None,
        why: str = "",
        answers: Mapping[str, Any] | None = None,
        min_chance: float | None = None,
    ) -> Learned:
        """The same with the chance that each action is best, like its action values; or with the reason for none.

        ``min_chance`` is another chance from which on an action is advised alone.
        """
        policy = replace(self.policy, chances=chances)
        if min_chance is not None:
            policy = policy.stricter(min_chance)
        clear, said = (0, "") if self.indifferent else _clear(policy.first, why)
        first, settings = (self.summary.people or "", said), self.summary.settings
        rest = (alert for alert in self.summary.alerts if alert not in (self.summary.open, self.summary.people))
        alerts = (*filter(None, first), *rest)
        limit = {} if min_chance is None else {"min_chance": min_chance}
        summary = replace(self.summary, clear=clear, open=said, alerts=alerts, settings={**settings, **limit})
        return replace(self, policy=policy, summary=summary, answers=dict(answers or {}))


def _criterion(rules: Rules) -> str:
    return "average" if rules.average else f"discount {rules.discount:g}"


def asked(learned: Learned, *, anyhow: bool = False) -> Case:
    """The case of a learned policy, for a question that asks it again.

    ``anyhow``, where the question adds up no discounted rewards, whatever the policy is for.
    """
    if not isinstance(learned, Learned):
        raise InputError(f"This asks about what certeq.learn returned; got {type(learned).__name__}.")
    if learned.case.peculiar and not anyhow:
        raise InputError(learned.case.peculiar)
    return learned.case


@takes(Rules)
def learn(
    source: Batch | Tallied,
    rules: Rules | None = None,
    *,
    reward: ArrayLike | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
    **said: Any,
) -> Learned:
    """Learn a policy from a batch of rows, or from counts of rows: `certeq.learn` without asking how sure it is."""
    if not isinstance(source, Batch | Tallied):
        raise InputError(f"learn takes a Batch, which certeq.read makes from a table; got {type(source).__name__}.")
    ruled = Rules.of(rules, **said)
    case, limited = limit(Case(Data.of(paid(source, ruled), reward), ruled))
    plan = case.plan(progress=progress, on_interrupt=on_interrupt)
    policy = _policy(case, plan)
    return Learned(case, plan, policy, _summarize(case, plan, policy), limited)


def _policy(case: Case, plan: Plan | FinitePlan) -> Policy:
    data = case.data
    assert data.recipe is not None
    source: dict[str, Any] = {"rows": data.size, "fingerprint": data.fingerprint}
    if data.ranges:
        source["ranges"] = {name: list(span) for name, span in data.ranges.items()}
    if data.carried is not None:
        source["carried"] = data.carried._asdict() | {"columns": list(data.carried.columns)}
    chosen = case.rules.to_json(known_rewards=data.known_rewards, pooled=_pooled(case))
    return Policy(
        data.recipe, data.action_names, plan.policy, data.counts.visits, case.action_values(plan), chosen, source
    )


def _pooled(case: Case) -> str:
    """Where rewards borrow from, in words, where that was left to the data."""
    told = case.rewards
    if case.rules.reward_pool != "auto" or told is None or told.arrival is not None:
        return ""
    if told.kinds is None:
        return f"auto ({told.pool})"
    going, ending = told.kinds
    return f"auto (going on: {going.pool}, ending: {ending.pool})"


def _summarize(case: Case, plan: Plan | FinitePlan, policy: Policy) -> Summary:
    data, counts = case.data, case.data.counts
    batch = data.batch
    seen = None if batch is None else look(batch)
    episodes = None if batch is None or batch.episode is None else len(np.unique(batch.episode))
    return Summary(
        rows=data.size,
        episodes=episodes,
        states=counts.n_states,
        actions=counts.n_actions,
        pairs_seen=int((counts.visits > 0).sum()),
        pairs=counts.n_states * counts.n_actions,
        endings=data.endings,
        dropped=dict(data.dropped),
        goal=data.goal or "Larger rewards are better.",
        decisions=(*_average(plan), *data.decisions),
        notes=tuple(data.notes),
        alerts=(*(() if seen is None else seen.alerts()), *_alerts(case, plan, policy)),
        settings=policy.settings,
        advised=int((policy.first.actions >= 0).sum()),
        mean_value=float(np.atleast_2d(plan.values)[0].mean()),
        seen=() if seen is None else tuple(seen.lines()),
        markov=None if seen is None else seen.markov,
        people=None if seen is None else seen.people,
        choices=int((policy.first.runner_up()[0] >= 0).sum()),
    )


def _average(plan: Plan | FinitePlan) -> Iterator[str]:
    """What values mean where they are relative."""
    if isinstance(plan, AveragePlan):
        yield (
            f"The advice is for the average: {number(float(plan.gain))} per decision in the long run, by the model. "
            "Values are relative to that: how much more is earned, in all, from a state on."
        )


def _alerts(case: Case, plan: Plan | FinitePlan, policy: Policy) -> list[str]:
    """What a careful person would want to be told."""
    if _indifferent(case):
        return [SAME]
    alerts = []
    counts, stranded = case.data.counts, case.model.stranded
    S = counts.n_states
    first = policy.first.actions
    thin = (first >= 0) & (policy.first.support < FEW)
    tried = (counts.visits > 0).sum(axis=1)
    if stranded.any():
        alerts.append(
            f"In {int(stranded.sum()):,} of {several(S, 'state')} no action was tried often enough to be advised."
        )
    if thin.any():
        alerts.append(
            f"In {int(thin.sum()):,} of {several(S, 'state')} the advised action was tried fewer than {FEW} times."
        )
    if (tried == 1).any():
        alerts.append(
            f"In {int((tried == 1).sum()):,} of {several(S, 'state')} only one action was ever tried: nothing to "
            "compare."
        )
    rare = np.flatnonzero((counts.visits > 0).sum(axis=0) == 1)
    if len(rare) and S > 1:
        alerts.append(f"Action {case.data.action_names[rare[0]]!r} was tried in one state only.")
    ties = (np.atleast_3d(plan.tied.T).T[0].sum(axis=-1) > 1) & (first >= 0)
    if ties.any():
        alerts.append(
            f"In {int(ties.sum()):,} of {several(S, 'state')} several actions are equally good; the one tried most "
            "often is advised."
        )
    beyond = _beyond(case, plan)
    if beyond:
        alerts.append(beyond)
    if isinstance(plan, Plan) and plan.outcome != "optimal":
        alerts.append(f"Planning {plan.outcome.removesuffix('; see bound')}. {_worth(plan)}")
    return alerts


def _clear(policy: Policy, why: str) -> tuple[int | None, str]:
    """In how many states with a choice one action is clearly best, and an alert about the others."""
    choices = int((policy.runner_up()[0] >= 0).sum())
    if policy.chances is None:
        return None, f"How sure each action is was not computed, so clear advice and coin flips look alike. {why}"
    undecided = int((policy.stricter(policy.clear).among.sum(axis=-1) > 1).sum())
    if not undecided:
        return choices, ""
    then = "so the advice there is a set" if policy.min_chance else "but one is advised all the same"
    return choices - undecided, (
        f"In {undecided:,} of {several(choices, 'state')} with a choice no action is best with a chance of "
        f"{policy.clear:.0%} or more, {then}."
    )


def _indifferent(case: Case) -> bool:
    """Whether rewards are all the same, and values too: of fewer rewards, or of later ones, they are not."""
    fewer = case.data.endings > 0 or case.fade is not None or case.rules.unvisited == "zero"
    return case.data.alike and not (fewer and np.any(case.by_pair))


def _beyond(case: Case, plan: Plan | FinitePlan) -> str:
    """A warning where values are claimed that the rewards do not allow; an empty text where none is."""
    values, (least, most) = plan.values, case.possible
    room = BEYOND * max(1.0, float(np.abs(values).max()))
    high, low = float(values.max()), float(values.min())
    if not (high > most + room or low < least - room):
        return ""
    claimed, allowed = (high, most) if high > most + room else (low, least)
    return (
        f"A value of {number(claimed)} is claimed, but the rewards allow {number(allowed)} at most: do not believe the "
        "values. Rewards known by pair are paid again where the regularizer lets an ending go on; leave them to be "
        "estimated from the rows, or give each kind of ending a state of its own."
    )


def _worth(plan: Plan) -> str:
    """What a plan is certified to be worth, in words."""
    return (
        f"Its values are within {number(float(plan.bound.max()))} of the best possible ones in this model, and in no "
        f"state does following the advice lose more than {number(float(plan.loss_bound.max()))}."
    )
