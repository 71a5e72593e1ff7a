"""What the advice would be under each convention for pairs without data: no choice to be made in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.display import several, told
from certeq.learning.learned import Learned, asked
from certeq.model.unvisited import CONVENTIONS
from certeq.questions.asking import Question
from certeq.questions.words import advised, listed


@dataclass(frozen=True)
class Conventions:
    """The advice under each convention, all else as it was learned."""

    chosen: str  # the convention of the learned policy
    policies: Mapping[str, Integers]  # convention -> (S,), -1 for no advice
    thin: int  # pairs with too few visits, which a convention decides about
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    @property
    def flips(self) -> Integers:
        """States where two conventions advise different actions, not counting those that advise none."""
        table = np.stack(list(self.policies.values()))
        lowest = np.where(table >= 0, table, table.max(initial=0)).min(axis=0)
        return np.flatnonzero((table.max(axis=0) != lowest) & (table >= 0).any(axis=0))

    def differs(self, convention: str) -> Integers:
        """States where a convention advises otherwise than the chosen one, or advises where that does not."""
        return np.flatnonzero(self.policies[convention] != self.policies[self.chosen])

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The comparison in words."""
        S = len(self.state_names)
        if not self.thin:
            return ["Every pair was tried often enough, so no convention for pairs without data plays a part."]
        told = [
            f"{several(self.thin, 'pair has', 'pairs have')} too few visits, and a convention decides what stands for "
            f"them. The choice changes the advised action in {len(self.flips):,} of {several(S, 'state')}"
            f"{listed(self.state_names, self.flips)}."
        ]
        for convention in self.policies:
            if convention != self.chosen:
                other = self.differs(convention)
                told.append(
                    f"Under {convention!r} instead of {self.chosen!r} the advice changes in {len(other):,} of "
                    f"{several(S, 'state')}{listed(self.state_names, other)}."
                )
        return told

    def to_json(self) -> dict[str, Any]:
        """Write the comparison as plain values."""
        return {
            "format": "certeq-conventions",
            "version": 1,
            "chosen": self.chosen,
            "thin_pairs": self.thin,
            "states": list(self.state_names),
            "actions": list(self.action_names),
            "advice": {name: advised(policy, self.action_names) for name, policy in self.policies.items()},
            "flips": [self.state_names[s] for s in self.flips],
            "words": self.lines(),
        }


def compare_conventions(learned: Learned) -> Conventions:
    """Plan once for each convention for unvisited pairs, avoided actions included: some advise what nobody tried."""
    case = asked(learned, anyhow=True)
    data, rules = case.data, case.rules
    policies = {name: case.ruled(unvisited=name, min_share=0.0).advise().policy for name in CONVENTIONS}
    thin = int((data.counts.visits < rules.min_visits).sum())
    return Conventions(rules.unvisited, policies, thin, data.state_names, data.action_names)


ASKED = Question(
    "conventions",
    lambda asking: compare_conventions(asking.learned),
    doing="Planning under other conventions",
    by_itself="certeq.compare_conventions(learned)",
    asks="what stands for pairs without data",
    plans=6,
    sparse=True,
    anyhow=True,
)
