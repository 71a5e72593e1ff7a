"""Plan: what a planner returns. The policy, its values, and how much to trust them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.display import notebook, several
from certeq.base.errors import InputError
from certeq.planners.backup import backup, best_supported, tied
from certeq.planners.certify import TINY, certified, slip
from certeq.planners.problem import SMALLER, Problem, Solution

PRECISE = 1e-5  # of the largest value: what a bound may be without a word


@dataclass(frozen=True)
class Plan:
    """A policy for each MDP of a batch.

    ``policy`` is the lowest-numbered of the tied best actions, -1 for "no advice". ``bound`` certifies the values:
    nowhere is \\|values - optimal values\\| larger.
    """

    policy: Integers  # (..., S)
    values: Floats  # (..., S)
    iterations: Integers  # (...)
    residual: Floats  # (...): largest \|max Q - V\|
    converged: Booleans  # (...)
    error: Floats | float  # (...): how far the values may be off, up to a shift, when actions are compared
    method: str
    posed: Problem | Callable[[], Problem] = field(repr=False)  # what was planned in, or how to write it out
    interrupted: bool = False  # whether somebody stopped the planner
    tried: Callable[[], Booleans] | None = field(default=None, repr=False)  # which pairs have data, (..., S, A)

    @classmethod
    def of(
        cls,
        solution: Solution,
        method: str,
        posed: Problem | Callable[[], Problem],
        tried: Callable[[], Booleans] | None = None,
    ) -> Plan:
        """Make a plan of what an algorithm found. A problem that is to be written out has discounts below 1."""
        if not solution.finite and not np.isfinite(solution.values).all():
            raise InputError("Rewards add up to more than numbers can hold here. " + SMALLER)
        made = cls(*solution[:-2], method, posed, solution.interrupted, tried)
        if isinstance(posed, Problem) and (posed.discount == 1).any():
            _ = made.bound  # which refuses episodes that are too long for numbers
        return made

    @cached_property
    def problem(self) -> Problem:
        """What was planned in; written out when it is first looked at."""
        return self.posed if isinstance(self.posed, Problem) else self.posed()

    @cached_property
    def untried(self) -> Booleans | None:
        """Where the action has no data, ``(..., S)``; None where the plan was not made from data."""
        if self.tried is None:
            return None
        pairs = self.tried()
        tried = np.broadcast_to(pairs, (*self.policy.shape, pairs.shape[-1]))
        taken = np.take_along_axis(tried, np.maximum(self.policy, 0)[..., None], axis=-1)[..., 0]
        return np.asarray(~taken & (self.policy >= 0))

    @cached_property
    def rounding(self) -> Floats:
        """What arithmetic may hide of a residual, ``(...)``; see `certeq.planners.certify.slip`."""
        return slip(self.problem, self.values)

    @cached_property
    def bound(self) -> Floats:
        """Certified distance to the optimal values of the model, ``(...)``: residual times the longest way ahead."""
        return certified(self.problem, self.residual + self.rounding, np.abs(self.values).max(axis=-1, initial=0), 1)

    @cached_property
    def loss_bound(self) -> Floats:
        """Certified loss of the policy, ``(...)``: in no state is it worth less than the optimum by more than this.

        One backup says how far the optimum may lie above the values, and the policy's own worth below them. Where there
        is no advice, any allowed action may be taken.
        """
        q = self.action_values
        worth = np.take_along_axis(q, np.maximum(self.policy, 0)[..., None], axis=-1)[..., 0]
        if (self.policy < 0).any():
            worth = np.where(self.policy < 0, np.where(np.isneginf(q), np.inf, q).min(axis=-1), worth)
        above, below = (q.max(axis=-1) - self.values).max(axis=-1), (self.values - worth).max(axis=-1)
        return certified(self.problem, np.maximum(above, 0) + np.maximum(below, 0) + 2 * self.rounding, 0.0, 2)

    @property
    def precise(self) -> bool:
        """Whether the bound is small beside values and rewards; next to a discount of one, rounding may forbid that."""
        earned = np.abs(self.problem.reward).max(axis=(-2, -1), initial=0)
        scale = np.maximum(np.abs(self.values).max(axis=-1, initial=0), earned)
        return bool((self.bound <= PRECISE * scale + TINY * self.bound.size).all())

    @property
    def outcome(self) -> str:
        """What happened, in words."""
        early = int(np.size(self.converged) - np.sum(self.converged))
        if self.interrupted:
            return f"stopped early: interrupted after {int(np.max(self.iterations))} iterations; see bound"
        if not early:
            return "optimal" if self.precise else "optimal as far as rounding lets one see; see bound"
        which = f"{early} of {np.size(self.converged)} plans"
        return f"stopped early: {which} reached the iteration limit, or what rounding allows; see bound"

    @cached_property
    def action_values(self) -> Floats:
        """Q, ``(..., S, A)``; minus infinity where an action is not allowed."""
        return backup(*self.problem, self.values)

    @cached_property
    def advantages(self) -> Floats:
        """Q minus the best Q of the state, ``(..., S, A)``: 0 for the best, negative for the others."""
        return np.asarray(self.action_values - self.action_values.max(axis=-1, keepdims=True))

    @cached_property
    def tied(self) -> Booleans:
        """Which actions are as good as the best, ``(..., S, A)``."""
        return tied(self.action_values, self.error)

    @property
    def told(self) -> str:
        """The plan in a line; that it takes actions which nobody tried cannot be overlooked."""
        *batch, S = self.policy.shape
        one = f", one for each of {tuple(batch)}" if batch else ""
        untried = 0 if self.untried is None else int(self.untried.sum())
        where = f"{several(untried, 'state')}" + (" of all plans" if batch else "")
        beware = f"; in {where} the action was never tried (unvisited='exclude' forbids that)" if untried else ""
        return f"Plan for {several(S, 'state')}, {self.outcome} ({self.method.replace('_', ' ')}){one}{beware}"

    def __repr__(self) -> str:
        return f"<{self.told}>"

    def _repr_html_(self) -> str:
        *batch, S = self.policy.shape
        title = self.told
        if batch:
            return notebook(title, (), (), 0)
        pairs = enumerate(zip(self.policy, self.values, strict=True))
        rows = ((s, "–" if a < 0 else a, f"{v:.4g}") for s, (a, v) in pairs)
        return notebook(title, ("state", "action", "value"), rows, S)

    def ties(self) -> list[tuple[int, ...]]:
        """Where more than one action is best: indices ``(..., s)``."""
        return [tuple(map(int, place)) for place in np.argwhere(self.tied.sum(axis=-1) > 1)]

    def supported(self, visits: Integers) -> Plan:
        """The same plan, with the best supported of tied actions; ``visits`` of pairs are ``(..., S, A)``."""
        made = replace(self, policy=np.where(self.policy < 0, -1, best_supported(self.tied, visits)))
        vars(made).update(action_values=self.action_values, tied=self.tied)  # known, and large
        return made

    def without_advice(self, states: Booleans) -> Plan:
        """Withdraw the advice for some states, ``(..., S)``."""
        return replace(self, policy=np.where(states, -1, self.policy)) if states.any() else self
