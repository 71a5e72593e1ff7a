"""Avoided: where the plan alone would advise what people hardly ever did, and the advice keeps to what was done."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.display import number, several, told
from certeq.base.texts import finite
from certeq.learning.learned import Learned, asked
from certeq.learning.proven import CAREFUL, LEAST, SURE, TELLING
from certeq.learning.shown import AHEAD
from certeq.questions.asking import Question
from certeq.questions.words import advised, listed


@dataclass(frozen=True)
class Avoided:
    """What the plain plan advises, beside what is advised where only actions that were tried often enough may be."""

    min_share: float
    habits: float  # standard errors by which what people usually did turned out better than the rest; or NaN
    shown: float  # standard errors by which what they seldom did turned out better where they did it, over all states
    kept_out: int  # pairs that were tried, and yet may not be advised
    advice: Integers  # (S,), -1 for none
    plain: Integers  # (S,): with all tried actions allowed
    visits: Integers  # (S, A)
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    @property
    def differs(self) -> Integers:
        """States where the plain plan would advise something else."""
        return np.flatnonzero(self.advice != self.plain)

    @property
    def well(self) -> bool:
        """Whether what people usually did turned out better than the rest."""
        return self.habits > TELLING

    @property
    def bold(self) -> bool:
        """Whether what people seldom did may be advised wherever it has a few rows."""
        return self.shown > SURE

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The comparison in words."""
        S, where = len(self.advice), self.differs
        if self.bold:
            return [
                "Where people happened to do what the plan would advise and they seldom did, it turned out better than "
                f"what they usually did, over all states together ({number(round(self.shown, 1))} standard errors over "
                f"the next {AHEAD[0]} decisions, or more). So an action may be advised wherever it was tried {LEAST} "
                "times or more, however seldom people chose it."
            ]
        if not self.kept_out:
            return ["Every action that was tried may be advised: none was much rarer than the usual one of its state."]
        kept = several(self.kept_out, "pair was", "pairs were")
        share = self.min_share if isnan(self.habits) else max(self.min_share, CAREFUL)
        found = [
            f"{kept} less than {number(share)} times as likely to be chosen as the usual action of the same state, by "
            "how people acted there and elsewhere, and may not be advised, since what followed does not show that such "
            "an action is better. People who take care avoid what does harm, so the rows hardly show the harm."
        ]
        if self.well:
            found.append(
                "What people usually did seems to have turned out better than the rest, over all states "
                f"(by {number(round(self.habits, 1))} standard errors), so what they seldom did is advised only on "
                "strong proof."
            )
        elif not isnan(self.habits):
            found.append(
                "What people usually did did not clearly turn out better than the rest, over all states, so weaker "
                "proof is enough for what they seldom did."
            )
        if not len(where):
            return [*found, "The advice would be the same without this rule."]
        s = where[np.argmax(self.visits[where].sum(axis=1))]
        seldom, usual = self.plain[s], self.advice[s]
        return [
            *found,
            f"Without this rule the advice would differ in {len(where):,} of {several(S, 'state')}"
            f"{listed(self.state_names, where)}. In the busiest of them, {self.state_names[s]}, it would be "
            f"{self.action_names[seldom]} (tried {several(int(self.visits[s, seldom]), 'time')}) instead of "
            f"{self.action_names[usual]} (tried {several(int(self.visits[s, usual]), 'time')}).",
        ]

    def to_json(self) -> dict[str, Any]:
        """Write the comparison as plain values."""
        return {
            "format": "certeq-avoided",
            "version": 1,
            "min_share": self.min_share,
            "habits": finite(self.habits),
            "shown": self.shown,
            "pairs_kept_out": self.kept_out,
            "states": list(self.state_names),
            "actions": list(self.action_names),
            "advice": advised(self.advice, self.action_names),
            "plain": advised(self.plain, self.action_names),
            "words": self.lines(),
        }


def avoided(learned: Learned) -> Avoided:
    """Plan once more with every tried action allowed, and tell where the advice would be another."""
    case = asked(learned, anyhow=True)
    data, rules, model = case.data, case.rules, case.model
    visits = data.counts.visits
    kept_out = int(((visits >= rules.min_visits) & ~model.allowed).sum())
    advice = case.advise().policy
    plain = case.ruled(min_share=0.0).advise().policy if kept_out else advice
    told_by_people = float(case.habits), case.shown
    return Avoided(
        rules.min_share, *told_by_people, kept_out, advice, plain, visits, data.state_names, data.action_names
    )


ASKED = Question(
    "avoided",
    lambda asking: avoided(asking.learned),
    doing="Planning with every action that was tried",
    by_itself="certeq.questions.avoided.avoided(learned)",
    asks="what would be advised if people's habits had no say",
    plans=2,
    sparse=True,
    anyhow=True,
)
