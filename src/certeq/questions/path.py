"""The regularization path: the advice along a strength, or along a planning discount, and where exactly it changes.

The advice is planned on a grid (warm-started along it). Wherever neighbors disagree, the interval between them is
narrowed until it is no wider than the tolerance, for all such intervals at once. While it is wide, or advice changes in
several states, it is halved. Then the gap between the two actions of the one state is extrapolated to zero from each
side (not interpolated: where the advice flips, the gap has a kink), and the next points lie close around that place.
What is found is where the *planner's* advice flips, ties and all: actions closer than 1e-10 of the spread of all values
are tied, so where a gap is nearly flat its flip is found that much to the side.

A grid can miss a state whose advice changes and changes back between two neighbors. So each gap between the advised
action and a rival is also extrapolated into every interval from both sides, along its secants outside; where the two
lines meet below zero, a point is added there, again and again down to a smallest width. For a gap that is convex
around there the extrapolation is a lower bound, and nothing of at least that width is missed; a gap with a kink (the
advice of another state changes) or with a spike narrower than the grid can still hide a pair of flips.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers, whole, within
from certeq.base.display import number, several, told
from certeq.base.errors import InputError, unknown
from certeq.base.texts import finite
from certeq.learning.case import Case
from certeq.learning.learned import Learned, asked
from certeq.planners import compiled
from certeq.questions.asking import Question
from certeq.questions.words import advised, listed
from certeq.regularizers import settings_of

ALONG = {"strength": "uniform_prior", "planning_discount": "discount"}  # what moves -> the regularizer by default
POINTS = 65
TOLERANCE = 1e-10
ROUGHLY = 1e-6  # tolerance in a report
FINEST = 1e-5  # of the range: no point is added to look for a pair of flips in a narrower interval
SMOOTH = 0.01  # of the range: in a narrower interval with one flip, the gap between two actions is extrapolated to it
CLOSE = 64  # and the next points are so much closer to each side of it than the interval is wide
ROOM = 8_000_000  # numbers that one round of plans may hold


class Breakpoint(NamedTuple):
    """Where the advice of a state changes, read from low to high."""

    value: float
    state: int
    before: int  # action, -1 for no advice
    after: int


@dataclass(frozen=True)
class RegularizationPath:
    """The advice as a function of one setting: constant between knots."""

    along: str  # strength or planning_discount
    regularizer: str
    low: float
    high: float
    knots: Floats  # (K,), increasing: where some state's advice changes
    policies: Integers  # (K + 1, S): the advice between knots, -1 for none
    tolerance: float  # the knots are right to within half of this
    plans: int  # how many plans it took
    advice: Integers  # (S,): what the learned policy advises
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    @cached_property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """All changes of advice, in order."""
        return tuple(
            Breakpoint(float(knot), int(s), int(before[s]), int(after[s]))
            for knot, (before, after) in zip(self.knots, pairwise(self.policies), strict=True)
            for s in np.flatnonzero(before != after)
        )

    def policy_at(self, value: float) -> Integers:
        """The advice at a value, ``(S,)``."""
        at = float(within(self.along, value, self.low, self.high))
        return np.asarray(self.policies[np.searchsorted(self.knots, at)])

    def first_departure(self, policy: Integers) -> Floats:
        """Lowest value at which the advice of a state is not the policy's, ``(S,)``; NaN where it always is."""
        other = self.policies != policy
        starts = np.concatenate([[self.low], self.knots])
        return np.where(other.any(axis=0), starts[other.argmax(axis=0)], np.nan)

    def last_departure(self, policy: Integers) -> Floats:
        """Highest value at which the advice of a state is not the policy's, ``(S,)``; NaN where it always is."""
        other = self.policies[::-1] != policy
        ends = np.concatenate([self.knots, [self.high]])[::-1]
        return np.where(other.any(axis=0), ends[other.argmax(axis=0)], np.nan)

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """The path in words."""
        return list(self._lines())

    def _lines(self) -> Iterator[str]:
        S = len(self.state_names)
        what, of = self.along.replace("_", " "), "" if self.regularizer == "discount" else f" of {self.regularizer!r}"
        moving = np.flatnonzero((self.policies != self.policies[0]).any(axis=0))
        yield (
            f"Along the {what}{of}, from {number(self.low)} to {number(self.high)}, the advice changes "
            f"{several(len(self.breakpoints), 'time')}, in {len(moving):,} of {several(S, 'state')}"
            f"{listed(self.state_names, moving)}."
        )
        if len(moving) < S:
            yield f"In {several(S - len(moving), 'state')} the advice is the same all the way."
        start = self.policies[0] if self.along == "strength" else self.policies[-1]
        from_start = self.first_departure if self.along == "strength" else self.last_departure
        changed = from_start(start)
        if len(moving):
            soonest = float(np.nanmin(changed) if self.along == "strength" else np.nanmax(changed))
            states = np.flatnonzero(changed == soonest)
            origin = "no regularization" if self.along == "strength" else "the highest discount"
            yield (
                f"Starting from {origin}, the first advice to change does so at a {what} of {number(soonest)}"
                f"{listed(self.state_names, states)}."
            )

    def to_json(self) -> dict[str, Any]:
        """Write the path as plain values."""
        return {
            "format": "certeq-path",
            "version": 1,
            "along": self.along,
            "regularizer": self.regularizer,
            "low": self.low,
            "high": self.high,
            "tolerance": self.tolerance,
            "states": list(self.state_names),
            "actions": list(self.action_names),
            "start": advised(self.policies[0], self.action_names),
            "breakpoints": [
                {
                    "value": point.value,
                    "state": self.state_names[point.state],
                    "before": advised(np.array([point.before]), self.action_names)[0],
                    "after": advised(np.array([point.after]), self.action_names)[0],
                }
                for point in self.breakpoints
            ],
            "first_departure_from_advice": finite(self.first_departure(self.advice)),
            "words": self.lines(),
        }


def path(
    learned: Learned,
    along: str = "strength",
    *,
    regularizer: str | None = None,
    points: int = POINTS,
    tolerance: float = TOLERANCE,
) -> RegularizationPath:
    """Follow the advice along a setting of a regularizer, all else as it was learned.

    Parameters
    ----------
    learned
        What `certeq.learn` returned.
    along
        ``strength``, from 0 to 1, of ``uniform_prior`` by default; or ``planning_discount``, from 0 to the discount,
        of ``discount`` by default.
    regularizer
        Another one that has this setting.
    points
        Of the grid that the search starts from.
    tolerance
        Width of the interval in which a breakpoint is known to lie.
    """
    return follow(asked(learned), along, regularizer=regularizer, points=points, tolerance=tolerance)


def follow(
    case: Case, along: str, *, regularizer: str | None = None, points: int = POINTS, tolerance: float = TOLERANCE
) -> RegularizationPath:
    """Follow the advice of a case; see `path`."""
    if along not in ALONG:
        raise unknown("path", along, ALONG)
    chosen = ALONG[along] if regularizer is None else regularizer
    if along not in settings_of(chosen):
        raise InputError(f"{chosen!r} has no {along}, so there is no path along it.")
    if not tolerance > 0:
        raise InputError(f"tolerance must be a positive number; got {tolerance}.")
    low, high = 0.0, 1.0 if along == "strength" else case.rules.discount
    first = np.linspace(low, high, whole("points", points, 2))
    many = not case.data.counts.sparse and compiled.worth(first.shape, case.data.counts.n_states)
    search = _Search(case, along, chosen, {}, {"engine": "numba"} if many else {})
    search.visit(first)
    search.look_between(FINEST * (high - low))
    search.close_in(tolerance)
    knots, policies = search.read()
    advice = case.advise().policy
    plans = len(search.found)
    return RegularizationPath(
        along,
        chosen,
        low,
        high,
        knots,
        policies,
        tolerance,
        plans,
        advice,
        case.data.state_names,
        case.data.action_names,
    )


class _Search(NamedTuple):
    """The plans made so far."""

    case: Case
    along: str
    regularizer: str
    found: dict[float, tuple[Integers, Floats]]  # value -> advice (S,) and its lead over each action (S, A)
    how: dict[str, Any]  # all are planned alike

    def visit(self, values: Floats) -> None:
        """Plan at some values, in order, so that each plan starts from the one before."""
        data = self.case.data
        sparse = data.counts.sparse  # sparse models are planned in one by one
        size = 1 if sparse else max(1, ROOM // (len(data.state_names) * len(data.action_names)))
        for start in range(0, len(values), size):
            part = values[start : start + size]
            settings = {**self._kept(), self.along: part[0] if sparse else part}
            advice = self.case.under(self.regularizer, **settings).advise(**self.how)
            q = np.where(np.isneginf(advice.action_values), np.nan, advice.action_values)
            own = np.take_along_axis(q, np.maximum(advice.policy, 0)[..., None], axis=-1)
            leads = (own - q).reshape(len(part), *q.shape[-2:])
            policies = np.broadcast_to(advice.policy, leads.shape[:-1])
            self.found.update(zip(part.tolist(), zip(policies, leads, strict=True), strict=True))

    def _kept(self) -> dict[str, Any]:
        """Settings that the case has for this regularizer already, such as an expert's target."""
        same = self.regularizer == self.case.rules.regularizer
        moving = ("strength", "planning_discount", "magnitude")
        return {k: v for k, v in self.case.rules.settings.items() if same and k not in moving}

    def read(self) -> tuple[Floats, Integers]:
        """Knots and the advice between them."""
        values, policies, _ = self._sorted()
        change = np.flatnonzero((policies[1:] != policies[:-1]).any(axis=1))
        keep = np.concatenate([[0], change + 1])
        return (values[change] + values[change + 1]) / 2, policies[keep]

    def close_in(self, tolerance: float) -> None:
        """Narrow every interval whose ends advise differently, until it is no wider than the tolerance."""
        while True:
            values, policies, leads = self._sorted()
            middle = (values[1:] + values[:-1]) / 2
            apart = (policies[1:] != policies[:-1]).any(axis=1)
            wide = (np.diff(values) > tolerance) & (middle > values[:-1]) & (middle < values[1:])
            where = np.flatnonzero(apart & wide)
            if not len(where):
                return
            points = [_closer(i, values, policies, leads, tolerance) for i in where.tolist()]
            self.visit(np.unique(np.concatenate(points)))

    def look_between(self, finest: float) -> None:
        """Add points where an action may be overtaken and come back between two points."""
        while True:
            values, policies, lead = self._sorted()
            where = _meetings(values, policies, lead, finest)
            if len(where) == 0:
                return
            self.visit(where)

    def _sorted(self) -> tuple[Floats, Integers, Floats]:
        values = sorted(self.found)
        policies, leads = zip(*(self.found[value] for value in values), strict=True)
        return np.array(values), np.array(policies), np.array(leads)


def _closer(i: int, values: Floats, policies: Integers, leads: Floats, tolerance: float) -> Floats:
    """Values to plan at between values i and i + 1, whose advice differs: close around the flip, or in the middle."""
    left, right = values[i], values[i + 1]
    middle, aside = (left + right) / 2, max((right - left) / CLOSE, 0.4 * tolerance)
    changed = np.flatnonzero(policies[i] != policies[i + 1])
    if len(changed) > 1 or right - left > SMOOTH * (values[-1] - values[0]):
        return np.array([middle])
    s, found = changed[0], []
    for end, outer, other in ((i, i - 1, i + 1), (i + 1, i + 2, i)):  # a gap has a kink where it is zero
        if 0 <= outer < len(values) and policies[outer, s] == policies[end, s]:
            lead, before = leads[[end, outer], s, policies[other, s]]
            if before > lead:
                found.append(values[end] + (values[end] - values[outer]) * lead / (before - lead))
    if not found:
        return np.array([middle])
    crossing = np.clip(np.mean(found), left, right)
    points = [point for point in (crossing - aside, crossing + aside) if left < point < right]
    return np.array(points if len(points) == 2 else [*points, middle])


def _meetings(values: Floats, policies: Integers, lead: Floats, finest: float) -> Floats:
    """Where the secants from both sides of an interval meet below zero: one value, the lowest, for each interval."""
    if len(values) < 4:
        return np.zeros(0)
    width = np.diff(values)
    slope = np.diff(lead, axis=0) / width[:, None, None]  # (X - 1, S, A)
    falls, rises = slope[:-2], slope[2:]  # outside the inner intervals, to the left and to the right
    same = policies[1:] == policies[:-1]
    same = same[:-2] & same[1:-1] & same[2:]  # (X - 3, S)
    at, inner = lead[1:-2], width[1:-1, None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        step = (lead[2:-1] - at - rises * inner) / (falls - rises)  # from the left end to the meeting point
        bottom = at + falls * step
        noise = 1e-9 * np.nanmax(np.abs(lead), initial=0.0)
        dips = same[..., None] & (falls < 0) & (rises > 0) & (bottom < -noise) & (inner > finest)
    depth = np.where(dips, bottom, np.inf).reshape(len(width) - 2, -1)
    worst = depth.argmin(axis=1)
    rows = np.flatnonzero(np.isfinite(depth.min(axis=1)))
    share = step.reshape(len(width) - 2, -1)[rows, worst[rows]] / width[1:-1][rows]
    return np.asarray(values[1:-2][rows] + np.clip(share, 0.1, 0.9) * width[1:-1][rows])


ASKED = Question(
    "path",
    lambda asking: path(asking.learned, "planning_discount", tolerance=ROUGHLY),
    doing="Following the advice along planning discounts",
    by_itself="certeq.path(learned, 'planning_discount')",
    asks="what lower planning discounts advise",
    plans=250,
)
