"""The audit of a planning discount: what planning with γ_p instead of γ assumes about this data, and what it changes.

A lower discount gives every row the same weight toward a row of zeros (Eq. 2). To a pair with c visits that is a prior
of c(γ - γ_p)/γ_p invented transitions (Eq. 3): the more is known, the more is invented. The audit writes this down for
each pair and compares the plan with others in the same one-line form, T_plan = (1 - w)·T_data + w·target:

- ``even``: as many invented transitions *in all*, the same number for every pair. The total is what is held fixed,
  because then only the way it is spread differs: with equal visits everywhere both plans are the same. It is
  ``uniform_prior`` with the same planning discount.
- ``learned_target``: priors whose target and strength the data choose.
- ``none``: no regularization.

Common shortcuts are told in that form too: zero rows for pairs without data, zero rows below a number of visits, and
ignoring the future (γ_p = 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Integers, whole, within
from certeq.base.display import number, several, told
from certeq.base.errors import InputError
from certeq.base.texts import finite
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.learning.case import Case, Data
from certeq.learning.learned import Learned, asked
from certeq.learning.rules import Rules
from certeq.model import weights
from certeq.model.kernel import MASS_TOLERANCE
from certeq.questions.asking import Question
from certeq.questions.words import advised, listed, name

AUDITED = "discount"
THRESHOLD = 6  # visits below which some studies throw a pair away


@dataclass(frozen=True)
class Alternative:
    """Another plan for the same data, in the one-line form, and where its advice is another."""

    name: str
    words: str  # what it is
    weight: str  # w, in words
    target: str  # what w pulls toward, in words
    policy: Integers  # (S,), -1 for no advice
    against: str  # name of the plan that it is compared with
    differs: Integers  # states where the advice is not that plan's

    def to_json(self, state_names: tuple[str, ...], action_names: tuple[str, ...]) -> dict[str, Any]:
        """Write it as plain values."""
        return {
            "name": self.name,
            "words": self.words,
            "weight": self.weight,
            "target": self.target,
            "advice": advised(self.policy, action_names),
            "against": self.against,
            "differs": [state_names[s] for s in self.differs],
        }


@dataclass(frozen=True)
class Equivalence:
    """Theorem 1 on this data: do a lower discount and a blend with the uniform row advise the same?"""

    endings: int  # observed transitions that ended an episode
    exact: bool  # whether nothing ends and all rows that may be chosen have mass 1, so that the theorem applies
    differs: Integers  # states where the two plans advise differently


@dataclass(frozen=True)
class Audit:
    """What a planning discount assumes about the data, and what it does to the advice."""

    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    discount: float
    planning_discount: float
    weight: float  # (γ - γ_p)/γ
    visits: Integers  # (S, A)
    invented: Floats  # (S, A): uniform transitions the discount amounts to, Eq. 3; infinite with data at γ_p = 0
    even: float  # invented transitions of each pair if the same total is spread evenly
    unvisited: str  # the convention for pairs without data
    plans: tuple[Alternative, ...]  # discount, even, learned_target, none
    shortcuts: tuple[Alternative, ...]  # zero_rows, threshold, bandit
    equivalence: Equivalence

    @property
    def most(self) -> tuple[int, int]:
        """The pair with the most visits, to which the most is added."""
        return self._pair(int(np.argmax(self.visits)))

    @property
    def least(self) -> tuple[int, int]:
        """The pair with the fewest visits among those with any."""
        seen = np.where(self.visits > 0, self.visits, np.iinfo(np.int64).max)
        return self._pair(int(np.argmin(seen)))

    @property
    def ratio(self) -> float:
        """How many times as much is added to ``most`` as to ``least``: the ratio of their visits."""
        return float(self.visits[self.most] / self.visits[self.least])

    def plan(self, name: str) -> Alternative:
        """One of the plans or shortcuts, by name."""
        return next(found for found in (*self.plans, *self.shortcuts) if found.name == name)

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The audit in words."""
        return [*self._assumed(), *self._changed(), *self._shortcuts(), self._theorem()]

    def to_json(self) -> dict[str, Any]:
        """Write the audit as plain values; None stands for infinitely many."""
        labels = self.state_names, self.action_names
        same = self.equivalence
        return {
            "format": "certeq-audit",
            "version": 1,
            "discount": self.discount,
            "planning_discount": self.planning_discount,
            "weight": self.weight,
            "states": list(self.state_names),
            "actions": list(self.action_names),
            "unvisited": self.unvisited,
            "visits": self.visits.tolist(),
            "invented": finite(self.invented),
            "invented_evenly": finite(np.array(self.even)),
            "ratio": self.ratio,
            "plans": [found.to_json(*labels) for found in self.plans],
            "shortcuts": [found.to_json(*labels) for found in self.shortcuts],
            "theorem_1": {
                "endings": same.endings,
                "exact": same.exact,
                "states": len(self.state_names),
                "same": len(self.state_names) - len(same.differs),
                "differs": [self.state_names[s] for s in same.differs],
            },
            "words": self.lines(),
        }

    def _pair(self, at: int) -> tuple[int, int]:
        return divmod(at, len(self.action_names))

    def _called(self, pair: tuple[int, int]) -> str:
        s, a = pair
        visits = several(int(self.visits[pair]), "visit")
        return f"state {name(self.state_names[s])}, action {name(self.action_names[a])}, {visits}"

    def _assumed(self) -> Iterator[str]:
        """What the discount adds to the data."""
        g, gp = number(self.discount), number(self.planning_discount)
        yield (
            f"Planning with discount {gp} where {g} is meant gives every pair the weight {number(self.weight)} toward "
            "ending at once: w = (γ - γ_p)/γ, target: zeros (Eq. 2)."
        )
        best, least = self._called(self.most), self._called(self.least)
        if self.weight == 0:
            yield "The two discounts are the same, so nothing is added to any pair."
        elif self.planning_discount == 0:
            yield (
                "A planning discount of 0 ignores whatever comes next. No number of invented transitions does that to "
                f"a pair with data: it would take infinitely many, for your best-observed pair ({best}) as for your "
                f"least observed ({least})."
            )
        else:
            most, fewest = (number(float(self.invented[pair])) for pair in (self.most, self.least))
            yield (
                f"Discounting at {gp} treats your best-observed pair ({best}) as if {most} uniform transitions had "
                f"been added to it, and your least observed ({least}) as if {fewest}: {number(self.ratio)} times as "
                "many, where more is known (Eq. 3)."
            )
        untried = int((self.visits == 0).sum())
        if untried:
            yield (
                f"{several(untried, 'pair was', 'pairs were')} never tried; there the discount adds nothing, and "
                f"the convention {self.unvisited!r} decides."
            )

    def _changed(self) -> Iterator[str]:
        """What that does to the advice."""
        for found in self.plans[1:]:
            yield f"{found.words[0].upper()}{found.words[1:]}, {self._difference(found)}"

    def _shortcuts(self) -> Iterator[str]:
        for found in self.shortcuts:
            yield (
                f"Shortcut: {found.words}. In the same form: w = {found.weight}, target: {found.target}. Here, "
                f"{self._difference(found)}"
            )

    def _difference(self, found: Alternative) -> str:
        lower = f"at discount {number(self.planning_discount)}"
        other = lower if found.against == AUDITED else "without regularization"
        return f"the advice differs from that {other} in {self._among(found.differs)}."

    def _among(self, states: Integers) -> str:
        return f"{len(states):,} of {several(len(self.state_names), 'state')}{listed(self.state_names, states)}"

    def _theorem(self) -> str:
        same, total, weight = self.equivalence, len(self.state_names), number(self.weight)
        agree = f"in {total - len(same.differs):,} of {several(total, 'state')}"
        if same.exact:
            return (
                "No episode ends in the data, so Theorem 1 applies: this discount and a blend of every row with the "
                f"uniform row, weight {weight}, have the same best actions. Computed: the same advice {agree}."
            )
        why = (
            several(same.endings, "observed transition ends an episode", "observed transitions end an episode")
            if same.endings
            else f"Pairs without data end the episode here (convention {self.unvisited!r})"
        )
        apart = f". Not in {self._among(same.differs)}" if len(same.differs) else ""
        return (
            f"{why}, and what lies beyond an ending is worth 0 whatever the discount. So Theorem 1, by which this "
            f"discount and a blend of every row with the uniform row (weight {weight}) advise the same, would be exact "
            f"only if terminal rows were regularized too. Computed on this MDP: the same advice {agree}{apart}."
        )


def audit(
    source: Learned | Batch | Counts | ArrayLike,
    planning_discount: float,
    *,
    discount: float | None = None,
    reward: ArrayLike | None = None,
    threshold: int = THRESHOLD,
    **options: Any,
) -> Audit:
    """Tell what a planning discount assumes about some data, and how it changes the advice.

    Parameters
    ----------
    source
        What `certeq.learn` returned, whose settings (except for the regularizer) are kept; or a batch; or counts.
    planning_discount
        γ_p, at most the discount.
    discount
        γ, what a reward one step later is worth; that of the learned policy, or 0.99.
    reward
        Known rewards ``(S, A)``; counts need them.
    threshold
        Visits below which the shortcut ``threshold`` throws a pair away.
    options
        For a batch, what `certeq.learn` takes besides: ``unvisited``, ``min_visits``, ``reward_by``, ...

    >>> from certeq import audit
    >>> found = audit([[[40, 0]], [[1, 1]]], 0.8, discount=0.9, reward=[[0], [1]])
    >>> found.invented.round(3)
    array([[5.  ],
           [0.25]])
    """
    case = _case(source, discount, reward, options).ruled(min_share=0.0)  # the plans of a paper, as they are
    if case.peculiar:
        raise InputError(case.peculiar)
    gamma, data = case.rules.discount, case.data
    gp = float(within("planning_discount", planning_discount, 0, gamma))
    weight = float(weights.from_discounts(gamma, gp))
    visits = data.counts.visits
    if not visits.any():
        raise InputError("There are no transitions to audit.")
    plans = _plans(case, gp)
    return Audit(
        state_names=data.state_names,
        action_names=data.action_names,
        discount=gamma,
        planning_discount=gp,
        weight=weight,
        visits=visits,
        invented=weights.implied_magnitude(visits, gamma, gp),
        even=float(weights.magnitude(data.counts.mean_visits, weight)),
        unvisited=case.rules.unvisited,
        plans=plans,
        shortcuts=_shortcuts(case, plans[-1].policy, whole("threshold", threshold, 1)),
        equivalence=_equivalence(case, gp, plans[0].policy),
    )


def _case(source: Any, discount: float | None, reward: ArrayLike | None, options: dict[str, Any]) -> Case:
    if isinstance(source, Learned):
        unused = [*(["reward"] if reward is not None else []), *options]
        if unused:
            raise InputError(f"A learned policy brings its own settings; {unused[0]} is not taken here.")
        return asked(source) if discount is None else asked(source).ruled(discount=discount)
    names = {name: options.pop(name) for name in ("state_names", "action_names") if name in options}
    gamma = {} if discount is None else {"discount": discount}
    return Case(Data.of(source, reward, **names), Rules.of(**({"regularizer": "none"} | gamma | options)))


def _plans(case: Case, planning_discount: float) -> tuple[Alternative, ...]:
    """The plan at γ_p, then those that it is compared with."""
    discounted = "(γ - γ_p)/γ for every pair"
    lower = case.under("discount", planning_discount=planning_discount).advise().policy
    even = case.under("uniform_prior", planning_discount=planning_discount).advise().policy
    learned, plain = case.under("learned_target").advise().policy, case.under("none").advise().policy
    amount = "with as many invented transitions in all, the same number for every pair"
    return tuple(
        Alternative(key, words, weight, target, policy, AUDITED, np.flatnonzero(policy != lower))
        for key, words, weight, target, policy in (
            (AUDITED, "planning with the lower discount", discounted, "zeros", lower),
            ("even", amount, "M/(c + M), one M for all pairs", "uniform", even),
            ("learned_target", "with priors that the data choose", "M/(c + M), M learned", "learned", learned),
            ("none", "without any regularization", "0", "none", plain),
        )
    )


def _shortcuts(case: Case, plain: Integers, threshold: int) -> tuple[Alternative, ...]:
    """What people do without calling it regularization, all else left unregularized."""
    visits, bare = case.data.counts.visits, case.under("none")
    untried, thin = int((visits == 0).sum()), visits < threshold
    lost, pairs = several(int(visits[thin].sum()), "visit"), several(int(thin.sum()), "pair")
    found: tuple[tuple[str, str, str, Case], ...] = (
        (
            "zero_rows",
            "a row of zeros for each pair without data",
            f"1 for the {several(untried, 'pair')} never tried, else 0",
            bare.ruled(unvisited="zero", min_visits=1),
        ),
        (
            "threshold",
            f"a row of zeros for each pair with fewer than {several(threshold, 'visit')}",
            f"1 for {pairs}, which throws {lost} away, else 0",
            bare.ruled(unvisited="zero", min_visits=threshold),
        ),
        (
            "bandit",
            "choosing by immediate reward alone (a discount of 0)",
            "1 for every pair, infinitely many invented transitions",
            case.under("discount", strength=1.0),
        ),
    )
    policies = [changed.advise().policy for *_, changed in found]
    return tuple(
        Alternative(key, words, weight, "zeros", policy, "none", np.flatnonzero(policy != plain))
        for (key, words, weight, _), policy in zip(found, policies, strict=True)
    )


def _equivalence(case: Case, planning_discount: float, lower: Integers) -> Equivalence:
    """Plan once more with a uniform blend of the same weight, and with the same rewards."""
    discounted = case.under("discount", planning_discount=planning_discount)
    model, counts = discounted.model, case.data.counts
    blended = case.under("uniform_blend", planning_discount=planning_discount)
    blend = blended.given(counts, discounted.table).advise().policy
    mass = np.broadcast_to(model.data.mass(), model.allowed.shape)
    endings = 0 if counts.ended is None else int(counts.ended.sum())
    whole_rows = bool((mass[model.allowed] >= 1 - MASS_TOLERANCE).all())
    return Equivalence(endings, whole_rows and endings == 0, np.flatnonzero(blend != lower))


ASKED = Question(
    "audit",
    lambda asking: audit(asking.learned, asking.planning_discount),
    doing="Auditing a planning discount",
    by_itself="certeq.audit(learned, 0.9)",
    asks="what a lower planning discount assumes",
    plans=9,
    sparse=True,
)
