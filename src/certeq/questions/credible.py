"""What was drawn from a posterior, told: means, the middle of the draws, and chances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from certeq.base import display
from certeq.base.arrays import Booleans, Floats, Integers, middle
from certeq.base.display import notebook, number, several
from certeq.base.errors import unknown
from certeq.base.texts import finite

LEVEL = 0.9
CLEAR = 0.8  # an action that is best in fewer than four of five draws is not clearly the best
ROUNDING = 1e-9
ENOUGH = 10  # data sets drawn again from which one can tell how far apart they are
FEW = 3.0  # rows that a value rests on, with which half of what is counted twice stays so
STEEP = 0.5  # the most that models are taken to differ by for each unit that data sets differ by


class CredibleInterval(NamedTuple):
    """A posterior mean with an equal-tailed credible interval."""

    mean: float
    low: float
    high: float


class Difference(NamedTuple):
    """Value of one policy minus that of another, draw by draw."""

    mean: float
    low: float
    high: float
    better: float  # probability that the first is worth more; draws in which they are worth the same count half


@dataclass(frozen=True)
class Posterior:
    """Values of policies in models drawn from the posterior; the first policy is the advised one."""

    names: tuple[str, ...]
    state_values: Floats  # (P, draws, S), at the first decision
    start: Floats  # (S,): distribution of the first state
    claimed: Floats  # (P,): value under ``start`` in the fitted model
    best: Floats  # (S, A); (H, S, A) with a horizon: chance that each action is the best one
    advised_best: Floats  # (S,); (H, S) with a horizon: the same for what is advised, NaN where nothing is
    thin: float = 0.0  # share of the advised decisions, as the model has them follow, for pairs with fewer than 5 rows
    each: int = 1  # draws from each data set drawn again; 1 where none was, and intervals tend to be too narrow
    starts: Floats | None = None  # (draws, S): the first states of those data sets, where they are not said to be known
    watched: int | None = None  # values are of so many decisions, for which episodes were watched; None for all
    flattery: float = 0.0  # how much too much advice promises that was chosen in such data, on average
    history: float = 0.0  # how much too much it promises since states leave out what came before
    overstated: float = 0.0  # how much too much the model says that people earned
    exact: bool = False  # whether states are as they were recorded, and no cells cut from numbers
    rests: float = 0.0  # how many rows the doubt about the value of the advice rests on
    once: bool = True  # whether what rests on the same rows is counted once; not where people knew more than the states
    doubt: tuple[float, float] = (0.0, 0.0)  # how much lower and higher its ends are, where its model is in doubt

    @property
    def again(self) -> bool:
        """Whether the data were drawn again as well."""
        return self.each > 1

    @cached_property
    def values(self) -> Floats:
        """Value of each policy in each draw, under its start, ``(P, draws)``."""
        if self.starts is None:
            return np.asarray(self.state_values @ self.start)
        return np.asarray((self.state_values * self.starts).sum(axis=-1))

    @property
    def too_much(self) -> float:
        """What the value of the advised policy may promise too much, all told."""
        return self.flattery + self.history + self.overstated

    @property
    def astray(self) -> bool:
        """Whether what the fitted model claims for the advised policy lies outside of what drawn models say of it."""
        _, low, high = credible(self.values[0], lower=self.too_much)
        rounding = ROUNDING * max(1.0, abs(low), abs(high))
        return not low - rounding <= self.claimed[0] <= high + rounding

    @property
    def draws(self) -> int:
        """How many models were drawn."""
        return int(self.state_values.shape[1])

    @property
    def optimism(self) -> Floats:
        """Value that the fitted model claims minus the posterior mean, for each policy, ``(P,)``."""
        mean = self.values.mean(axis=1)
        return np.where(np.isclose(self.claimed, mean, rtol=display.ROUNDING, atol=0.0), 0.0, self.claimed - mean)

    def mean(self, name: str) -> float:
        """Posterior mean of a policy's value."""
        return self.interval(name).mean

    def interval(self, name: str, level: float = LEVEL) -> CredibleInterval:
        """Posterior mean and credible interval of a policy's value; the ends of the advised one are set with care."""
        place = self._place(name)
        values = self.values[place]
        if place:
            return credible(values, level)
        return CredibleInterval(float(values.mean()), *self._ends(values, self.claimed[0], level))

    def states(self, name: str, level: float = LEVEL) -> Floats:
        """Posterior mean, low and high end of a policy's value in each state, ``(3, S)``."""
        values = self.state_values[self._place(name)]
        return np.stack([values.mean(axis=0), *middle(values, level, axis=0)])

    def difference(self, first: str, second: str, level: float = LEVEL) -> Difference:
        """How much more the first policy is worth than the second, and with what probability it is.

        Where one of them is the advised one, what it may promise too much counts in the interval and the probability.
        """
        one, other = self._place(first), self._place(second)
        apart, claimed = self._apart(one, other), float(self.claimed[one] - self.claimed[other])
        if one == other or (one and other):
            return gained(apart, 0.0, level, self.each)
        if other == 0:
            mean, low, high, better = self.difference(second, first, level)
            return Difference(-mean, -high, -low, 1 - better)
        return Difference(float(apart.mean()), *self._ends(apart, claimed, level), self._better(apart))

    def bare(self, name: str) -> float:
        """Chance that the advised policy is worth more than another, of the models alone: nothing is taken off."""
        return self._better(self._apart(0, self._place(name)), bare=True)

    def _apart(self, one: int, other: int) -> Floats:
        """How much more a policy is worth than another in each draw; what is rounding is nothing."""
        first, second = self.values[one], self.values[other]
        return np.where(np.isclose(first, second, rtol=display.ROUNDING, atol=0.0), 0.0, first - second)

    def undecided(self, clear: float = CLEAR) -> Integers:
        """States where the advised action is best in fewer than ``clear`` of the draws, least sure first.

        For a plan with a horizon: at its first decision. The usual limit, 0.8, is the odds of four to one that people
        tend to call likely; nothing is computed from it.
        """
        chance = np.atleast_2d(self.advised_best)[0]
        order = np.argsort(chance, kind="stable")
        return np.asarray(order[chance[order] < clear])

    def _repr_html_(self) -> str:
        found = zip(self.names, map(self.interval, self.names), self.claimed, strict=True)
        rows = ((name, *(number(part) for part in interval), number(float(c))) for name, interval, c in found)
        title = f"Values of {several(len(self.names), 'policy', 'policies')} in {several(self.draws, 'drawn model')}"
        return notebook(title, ("policy", "mean", "low", "high", "claimed"), rows, len(self.names))

    def to_json(self, level: float = LEVEL) -> dict[str, Any]:
        """Write what was found as plain values."""
        gaps = dict(zip(self.names, self.optimism.tolist(), strict=True))
        return {
            "draws": self.draws,
            "data_drawn_again": self.again,
            "thin": self.thin,
            "level": level,
            "policies": {
                name: {**self.interval(name, level)._asdict(), "claimed": claimed, "optimism": gaps[name]}
                for name, claimed in zip(self.names, self.claimed.tolist(), strict=True)
            },
            "differences": [
                {"first": first, "second": second, **self.difference(first, second, level)._asdict()}
                for i, first in enumerate(self.names)
                for second in self.names[i + 1 :]
            ],
            "start": self.start.tolist(),
            "advised": self.names[0],
            "advised_best": finite(self.advised_best),
            "best": self.best.tolist(),
            "undecided": self.undecided().tolist(),
            "states": dict(zip(("mean", "low", "high"), self.states(self.names[0], level).tolist(), strict=True)),
        }

    @property
    def kept(self) -> float:
        """What is left of the pooled spread where data and models are not both counted, as they rest on the same rows.

        With many rows half of the variance; with few, on which neither draws of data nor of models can be relied, more.
        """
        return float(np.sqrt(1 - 0.5 * self.rests / (self.rests + FEW))) if self.again and self.once else 1.0

    @property
    def lowered(self) -> float:
        """How much lower the low end of the advised policy's value is for what choosing flatters."""
        values = self.values[0]
        below = float(np.median(values) - middle(values, LEVEL)[0])
        return self._below(below) - (self.kept * below if self.exact else below)

    def _below(self, spread: float) -> float:
        """How far below its median the low end is, of draws that are so far spread there; flattery included."""
        return float(np.hypot(self.kept * spread, self.flattery)) if self.exact else spread + self.flattery

    def _ends(self, values: Floats, claimed: float, level: float) -> tuple[float, float]:
        """Ends for the advised policy, or for how far it is ahead, which the fitted model claims to be so much."""
        low, high = middle(values, level)
        center, (lower, higher) = np.median(values), self.doubt
        if not self.again:
            return float(low - self.too_much - lower), float(high + higher)
        below = self._below(float(center - low)) + self.too_much - self.flattery
        above = self.kept * steepness(values, self.each, level) * (high - center)
        return float(center - below - lower), float(max(center, claimed) + above + higher)

    def _better(self, apart: Floats, *, bare: bool = False) -> float:
        """Chance that the advised policy is ahead, which is so far ahead in each draw: 95% where its low end is 0."""
        times, off = self.kept if self.exact else 1.0, 0.0 if bare else self.too_much
        if self.exact and self.again and not bare:
            below = float(np.median(apart) - middle(apart, LEVEL)[0])
            times, off = self._below(below) / below if below > 0 else 1.0, self.too_much - self.flattery
        return ahead(about_median(apart, times), off)

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise unknown("policy", name, self.names)
        return self.names.index(name)


def credible(values: Floats, level: float = LEVEL, *, lower: float = 0.0, higher: float = 0.0) -> CredibleInterval:
    """Mean of what was drawn, and its middle with ends that are set so much lower and higher."""
    low, high = middle(values, level)
    return CredibleInterval(float(values.mean()), float(low - lower), float(high + higher))


def gained(gain: Floats, too_much: float = 0.0, level: float = LEVEL, each: int = 1) -> Difference:
    """What was gained in each draw as a difference, of which what it promises too much is taken off."""
    mean, low, high = credible(gain, level, lower=too_much)
    return Difference(mean, low, high, ahead(np.where(gain == 0, 0.0, once(gain, each)), too_much))


def ahead(gain: Floats, too_much: float) -> float:
    """Share of draws in which something is gained, beyond what is promised too much; where nothing is, half counts."""
    return float(((gain > too_much) & (gain != 0)).mean() + 0.5 * (gain == 0).mean())


def about_median(values: Floats, times: float) -> Floats:
    """Draws so many times as far from their median; those that are 0 stay, since nothing was gained in them."""
    center = np.median(values, axis=0)
    return np.where(values == 0, 0.0, center + times * (values - center))


def steepness(values: Floats, each: int, level: float = LEVEL) -> float:
    """How much farther above its median an interval reaches than its draws, where higher values are less certain.

    If the truth lies high, models would have been drawn farther apart. With the slope b of the spread of models of a
    data set along their mean, the acceleration of a bootstrap interval is b/3 (for counts of rare events, exactly so).
    """
    sets = len(values) // each
    if each == 1 or sets < ENOUGH:
        return 1.0
    size = np.abs(values).max()  # squares of the largest numbers are none
    parts = (values[: sets * each] / (size if size > 0 else 1.0)).reshape(sets, each)
    apart, spread = parts.mean(axis=1) - parts.mean(), parts.std(axis=1, ddof=1)
    square = apart @ apart
    slope = apart @ spread / square if square > 0 else 0.0
    return float(1 / (1 - NormalDist().inv_cdf((1 + level) / 2) * np.clip(slope, 0.0, STEEP) / 3))


def once(values: Floats, each: int) -> Floats:
    """Draws ``(draws, ...)``, so many from each data set drawn again, with what is not known counted once.

    Data sets drawn again are about as far apart as models drawn from one of them, and for the same reason: there are
    only so many rows. Pooled draws have both, so that a chance that is counted in them is nearer to one half than it
    should be. The larger of the two variances is kept, and the middle of the draws stays where it is.
    """
    sets = len(values) // each
    if each == 1 or sets < ENOUGH:
        return values
    size = np.abs(values).max(axis=0)
    size = np.where(size > 0, size, 1.0)  # squares of the largest numbers are none
    parts = (values[: sets * each] / size).reshape(sets, each, *values.shape[1:])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = np.maximum(parts.mean(axis=1).var(axis=0, ddof=1) - within / each, 0.0)
    total = within + between
    kept = np.sqrt(np.where(total > 0, np.maximum(within, between) / np.where(total > 0, total, 1.0), 1.0))
    center = np.median(values, axis=0)
    return np.asarray(center + kept * (values - center))


def chances(lead: Floats, each: int) -> Floats:
    """Chance that each action is the best one, ``(S, A)``; it is so far ahead of the best other one ``(draws, S, A)``.

    Actions that are tied, with a lead of 0, share what the draw has to say. Where that happens draws are counted as
    they are: in models in which nothing pays, nothing is far apart.
    """
    tied = lead == 0
    steady = once(np.where(np.isfinite(lead), lead, np.sign(lead)), each)
    ahead = np.where(tied.any(axis=(0, 2))[:, None], lead, steady) > 0
    share = (ahead + tied / np.maximum(tied.sum(axis=-1, keepdims=True), 1)).mean(axis=0)
    return np.asarray(share / np.maximum(share.sum(axis=-1, keepdims=True), 1.0))


def leads(q: Floats, tied: Booleans) -> Floats:
    """How far each action is ahead of the best other one, like ``q`` ``(..., A)``; 0 where they are tied."""
    top = q.max(axis=-1, keepdims=True)
    other = np.partition(q, -2, axis=-1)[..., -2:-1] if q.shape[-1] > 1 else np.full(top.shape, -np.inf)
    apart = q - np.where(q == top, other, top)
    return np.where(tied & (tied.sum(axis=-1, keepdims=True) > 1), 0.0, apart)
