"""Where a row comes from: how much of it are the pair's own rows, and how much was borrowed, and from where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certeq.base.display import told
from certeq.base.errors import InputError
from certeq.learning.learned import Learned, asked
from certeq.questions.asking import Question
from certeq.questions.words import name
from certeq.regularizers.learned_target import WORDS, Believed

OWN = "from its own rows"
REST = "from a little of everything else"
LEAST = 0.01  # of a row that is worth a line of its own


@dataclass(frozen=True)
class Origin:
    """Where the row of one pair comes from."""

    state: str
    action: str
    parts: tuple[tuple[str, float], ...]  # where from, and how much of the row: its own rows first, then the most

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The parts in words."""
        said = ", ".join(f"{share:.0%} {words}" for words, share in self.parts)
        comes = said.replace("% ", "% comes ", 1)
        return [f"Of what the plan expects after {name(self.action)} in {name(self.state)}, {comes}."]


def origin(learned: Learned, state: int | None = None, action: int | None = None) -> Origin:
    """Tell where the row of a pair comes from: by default, the advised one of a state where own and borrowed meet."""
    asked(learned, anyhow=True)
    believed, policy = learned.shrinkage.details, learned.policy
    if not isinstance(believed, Believed):
        raise InputError(f"Only learned_target borrows rows; this policy was learned with {learned.rules.regularizer}.")
    advised = policy.first.actions
    if state is None:
        state = _telling(learned)
    a = int(advised[state]) if action is None else action
    if a < 0:
        raise InputError(f"Nothing is advised in {name(policy.state_names[state])}; say which action is meant.")
    weight = float(np.broadcast_to(learned.shrinkage.weight, policy.visits.shape)[state, a])
    pull = float(believed.probability * believed.borrowed.weight[state, a])
    plain = float((1 - believed.probability) * believed.plain.weight[state, a])
    borrowed = weight * pull / (pull + plain) if pull + plain > 0 else 0.0
    share = borrowed * believed.share[a]
    share[0] += weight - borrowed  # the uniform row, as one of the borrowed and by itself
    order = np.argsort(-share, kind="stable")
    parts = [(WORDS[believed.candidates[j]], float(share[j])) for j in order if share[j] >= LEAST]
    rest = weight - sum(part for _, part in parts)
    more = [(REST, rest)] if rest >= LEAST else []
    return Origin(policy.state_names[state], policy.action_names[a], ((OWN, 1 - weight), *parts, *more))


def _telling(learned: Learned) -> int:
    """The state whose advised row is most evenly its own and borrowed; the most visited of several."""
    advised, visits = learned.policy.first.actions, learned.policy.visits
    there = np.flatnonzero(advised >= 0)
    if not len(there):
        raise InputError("Nothing is advised anywhere, so there is no row to explain.")
    weight = np.broadcast_to(learned.shrinkage.weight, visits.shape)[there, advised[there]]
    even = np.round(np.abs(weight - 0.5), 1)
    return int(there[np.lexsort((-visits[there].sum(axis=1), even))[0]])


ASKED = Question(
    "origin",
    lambda asking: origin(asking.learned),
    doing="Telling where a row comes from",
    asks="where a row comes from",
    anyhow=True,
)
