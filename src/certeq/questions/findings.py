"""Findings: everything that can be said about a learned policy, gathered once, so that a report only has to read.

Each part may be missing: too large, not asked for, or not to be had from this data. Then the reason is kept instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.learning.learned import Learned


@dataclass(frozen=True)
class Findings:
    """A learned policy, from rows or from counts of them, and what was found out about it.

    Each answer is an attribute by the name of its question: ``plain``, ``posterior``, ``off_policy``, ``audit``,
    ``path``, ``fragility``, ``conventions``, ``collect``, ``origin``; None where it is missing.
    """

    learned: Learned
    found: Mapping[str, Any] = field(default_factory=dict)  # name of a question -> its answer
    missing: Mapping[str, str] = field(default_factory=dict)  # name of a question -> why there is no answer

    def __getattr__(self, name: str) -> Any:
        """Give the answer to a question."""
        if name.startswith("_") or name in self.__dataclass_fields__:  # while it is being made, or copied
            raise AttributeError(name)
        return self.found.get(name)

    @property
    def advised(self) -> Integers:
        """The advice, ``(S,)``, at the first decision where there are several; -1 for none."""
        return self.learned.policy.first.actions

    @property
    def support(self) -> Integers:
        """How often the advised action was tried, ``(S,)``; 0 where there is no advice."""
        return self.learned.policy.first.support

    @property
    def runner_up(self) -> tuple[Integers, Floats]:
        """Second-best action of each state, -1 for none, and how much less it is worth, both ``(S,)``."""
        return self.learned.policy.first.runner_up()

    @property
    def choice(self) -> Booleans:
        """Where something else may be advised as well, ``(S,)``."""
        return np.asarray(self.runner_up[0] >= 0)

    @property
    def usual(self) -> int:
        """In how many states the advice is what was done most, since all else that was tried may not be advised."""
        visits = self.learned.policy.visits
        several = (visits > 0).sum(axis=1) > 1
        return int((several & ~self.choice & (self.support == visits.max(axis=1))).sum())

    @property
    def open(self) -> Integers:
        """States where the data leave it open which action is best, least sure first; none where nobody asked."""
        policy = self.learned.policy.first
        order = np.argsort(policy.chance, kind="stable")
        return np.asarray(order[policy.open[order]])

    @property
    def unclear(self) -> int:
        """In how many states with a choice no action is clearly best, whether or not one is advised alone."""
        policy = self.learned.policy.first
        return int((policy.stricter(policy.clear).among.sum(axis=-1) > 1).sum())

    @property
    def now(self) -> Floats:
        """How much more the advised action earns at once than the runner-up, ``(S,)``."""
        runner, _ = self.runner_up
        state = np.arange(len(runner))
        more = self.learned.reward[state, self.advised] - self.learned.reward[state, runner]
        return np.where(runner >= 0, more, np.nan)

    @property
    def later(self) -> Floats:
        """How much more the states are worth that the advised action leads to, discounted, ``(S,)``."""
        return np.asarray(self.runner_up[1] - self.now)


def drift(learned: Learned) -> Floats:
    """Where the advised action leads on average, in cells along each column, ``(S, columns)``; 0 where it ends."""
    cells, model = learned.policy.recipe.cells, learned.model.transition
    state, action = np.arange(len(cells)), np.maximum(learned.policy.first.actions, 0)
    mass = model.mass()[state, action][:, None]
    ahead = np.stack([model.expect(code.astype(np.float64))[state, action] for code in cells.T], axis=1)
    return np.where(mass > 0, ahead / np.maximum(mass, 1e-300) - cells, 0.0)
