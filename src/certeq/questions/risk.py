"""Risk: how far to follow the advice, if the chance of doing worse than was done may be no more than so much.

The advice is followed where its action is the best one with at least some chance, and elsewhere people go on as they
did. With a higher limit fewer states change, and less can be gained or lost. Each such policy is valued beside what was
recorded in the same models, drawn from all that the data leave open. Of those that are worse in no more models than the
user accepts, the one that gains most is chosen; its limit becomes the policy's ``min_chance``, so that ``certeq apply``
says a single action exactly where the advice is to be followed.

Choosing in the same data flatters. What advice as a whole promises too much, `Posterior.too_much`, is taken off each
policy's gain in proportion to that gain before it is asked whether it is worse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Rng
from certeq.base.display import between, in_a_sentence, number, percent, several, told
from certeq.base.errors import InputError
from certeq.learning.learned import Learned, asked
from certeq.questions.asking import Asking, Question, affordable_draws
from certeq.questions.credible import Difference, Posterior, gained
from certeq.questions.episodes import behavior
from certeq.questions.posterior import decided_thinly, drawn_values
from certeq.questions.sure import THIN

LIMITS = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.0)  # chances from which on an action is advised alone


class Following(NamedTuple):
    """What comes of following the advice where it is at least so sure, and of going on as was done elsewhere."""

    min_chance: float
    states: int  # in which what is done would change, at the first decision
    gain: Difference  # over what was recorded
    thin: float  # share of its decisions that are for pairs with few rows

    @property
    def worse(self) -> float:
        """The chance of doing worse than was done."""
        return 1 - self.gain.better


@dataclass(frozen=True)
class Risk:
    """Gain against the chance of doing worse, from the most careful policy to all of the advice."""

    risk: float  # that is accepted
    least: float  # limit below which nothing is advised alone in any case
    followed: tuple[Following, ...]
    draws: int

    @property
    def chosen(self) -> Following | None:
        """What gains most of all that keeps the risk; None where nothing does."""
        kept = [
            each
            for each in self.followed
            if each.worse <= self.risk and each.thin <= THIN and each.gain.mean > 0 and each.min_chance >= self.least
        ]
        return max(kept, key=lambda each: each.gain.mean, default=None)

    @property
    def min_chance(self) -> float:
        """The chance from which on an action is advised alone."""
        if not self.followed:
            return self.least
        return 1.0 if self.chosen is None else self.chosen.min_chance

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """What was chosen, in words."""
        if not self.followed:
            return ["Wherever one action is advised, it is what was done: there is nothing to gain or to lose."]
        every, chosen = self.followed[-1], self.chosen
        limit = f"with a chance of at most {percent(self.risk)}"
        whole = (
            f"Following all of the advice gains {number(every.gain.mean)} over what was done "
            f"({between(every.gain.low, every.gain.high)}) and is worse with a chance of "
            f"{in_a_sentence(percent(every.worse, self.draws))}."
        )
        if chosen is None:
            return [
                whole,
                f"No part of the advice both gains something and is worse {limit}, as far as the rows show. Do what "
                "was done, or collect what is missing first. An action stands alone only where it is best in "
                "every drawn model.",
            ]
        if every.worse <= self.risk and every.thin <= THIN and every.min_chance < self.least:
            whole += f" That is within the risk; with --min-chance {every.min_chance:g}, all of it could be followed."
        return [
            whole,
            f"To do worse than what was done {limit}, follow the advice where its action is the best one with a chance "
            f"of {percent(chosen.min_chance)} or more, and go on as was done elsewhere: "
            f"{several(chosen.states, 'state')} would change, the gain is {number(chosen.gain.mean)} "
            f"({between(chosen.gain.low, chosen.gain.high)}), and the chance of doing worse "
            f"{in_a_sentence(percent(chosen.worse, self.draws))}.",
        ]

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        return {
            "format": "certeq-risk",
            "version": 1,
            "risk": self.risk,
            "min_chance": self.min_chance,
            "draws": self.draws,
            "followed": [each._asdict() | {"gain": each.gain._asdict(), "worse": each.worse} for each in self.followed],
            "words": self.lines(),
        }


def risk(learned: Learned, found: Posterior, accepted: float, *, draws: int = 400, rng: Rng = 0) -> Risk:
    """Value following the advice more and more widely, beside what was recorded.

    Parameters
    ----------
    learned, found
        What was learned, and the posterior of what it is worth.
    accepted
        The chance of doing worse than was done that is accepted.
    draws, rng
        Models to value policies in, and the seed.
    """
    if accepted * draws < 1:
        raise InputError(
            f"A risk of {accepted:g} cannot be seen in {several(draws, 'drawn model')}, where one of them is a share "
            f"of {1 / draws:.2g}. Accept more (--risk), or draw more models (--draws)."
        )
    case, policy = asked(learned), replace(learned.policy, chances=found.best)
    done = behavior(case.data.counts)
    taken = np.eye(len(policy.action_names))[np.maximum(policy.actions, 0)]
    followed: dict[bytes, tuple[float, Floats]] = {}
    for limit in LIMITS:
        clear = (policy.actions >= 0) & ~policy.stricter(limit).open
        mixed = np.where(clear[..., None], taken, done)
        if (mixed == done).all():
            continue  # nothing changes, so that nothing can be worse
        if limit >= case.rules.min_chance or mixed.tobytes() not in followed:
            followed[mixed.tobytes()] = limit, mixed  # of limits that come to the same, the lowest that may be chosen
    if not followed:
        return Risk(accepted, case.rules.min_chance, (), draws)
    limits, mixed_ones = zip(*followed.values(), strict=True)
    start = found.start if found.starts is None else None  # where it is not known, it is drawn here as well
    values = drawn_values(case, [done, *mixed_ones], start, draws=draws, rng=rng, watched=found.watched)
    gains = values[1:] - values[0]
    top = gains[-1].mean()
    parts = []
    for limit, mixed, gain in zip(limits, mixed_ones, gains, strict=True):
        too_much = found.too_much * float(np.clip(gain.mean() / top, 0, 1)) if top > 0 else found.too_much
        first = mixed if mixed.ndim == 2 else mixed[0]
        changed = int((np.abs(first - done).max(axis=-1) > 0).sum())
        thin = decided_thinly(case.model, first, found.start, case.rules.discount, case.rules.horizon or found.watched)
        parts.append(Following(limit, changed, gained(gain, too_much, each=found.each), thin))
    return Risk(accepted, case.rules.min_chance, tuple(parts), draws)


def _ask(asking: Asking) -> Risk:
    accepted, found = asking.learned.rules.risk, asking.found.get("posterior")
    if accepted is None or found is None:
        raise InputError("It takes models drawn from the posterior.")
    draws = affordable_draws(asking.learned, asking.draws)
    return risk(asking.learned, found, accepted, draws=draws, rng=asking.rng)


ASKED = Question(
    "risk",
    _ask,
    doing="Weighing gain against risk",
    asks="how far to follow the advice at the risk that is accepted",
    applies=lambda learned: learned.rules.risk is not None,
    after=("posterior",),
)
