"""Planning with costs beside the reward: the frontier of what can be earned at which cost, and the best within limits.

A price on each cost turns the problem into a plain one, reward minus price times cost, whose best policy is a corner of
the set of all values and costs that policies can have. That set is convex, since policies may be mixed by lot at the
first decision, so corners tell all of it:

- `frontier`, of one cost, looks between two corners with the price at which both are worth the same. Either there is a
  corner above their line, or the line is an edge: every corner and every breakpoint of the price is found, to rounding.
  Each plan begins at one of the two. Reward and costs of a policy are valued apart, once, and so at all prices.
- `keep`, of any number of costs and limits, finds the best mixture of corners by column generation: a small linear
  program mixes the corners so far, its prices lead to the next one, until none is worth more (Dantzig and Wolfe). This
  is the linear program over occupancy measures, taken apart.

A best policy within K limits may have to randomize in K states. The policy to be followed is a single one all the same:
prices are raised above those of the mixture, until the corner there keeps all limits. With one limit no corner that
keeps it is worth more; a policy that is no corner may be, and finding the best of all is NP-hard. None is worth
more than the mixture, so what it would gain is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.display import number
from certeq.base.errors import InputError
from certeq.model.kernel import Kernel, is_sparse
from certeq.planners import solve, solve_finite
from certeq.planners.backup import best_supported, chosen, greedy, improve, policy_rows, tied, value_policy

ROUNDING = 1e-10  # of the largest value or cost: corners closer than this are one
MOST = 1000  # corners that are looked for
ABOVE, RAISED = 1e-6, 100  # share by which prices are raised above those of the mixture, at first; and how often
TINY = 1e-300
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Corner(NamedTuple):
    """The best policy at some prices, with what it is worth and costs, under the start."""

    prices: Floats  # (K,), infinite where the reward did not count at all
    policy: Integers  # (S,), or (H, S) with a horizon
    value: float
    costs: Floats  # (K,)


class Within(NamedTuple):
    """The best within limits."""

    corner: Corner | None  # a single policy that keeps them; None where only mixtures were found
    mixture: tuple[tuple[float, Corner], ...]  # the best mixture: chances and policies, taken by lot at the start
    prices: Floats  # (K,): what one unit more of each limit is worth to the mixture

    @property
    def value(self) -> float:
        """What the mixture is worth: no policy within the limits is worth more."""
        return float(sum(chance * corner.value for chance, corner in self.mixture))


@dataclass(frozen=True)
class Constrained:
    """A problem with costs."""

    model: Kernel  # (S, A, S)
    reward: Floats  # (S, A)
    costs: Floats  # (K, S, A)
    discount: float
    start: Floats  # (S,): distribution of the first state
    allowed: Booleans | None = None  # (S, A)
    horizon: int | None = None
    visits: Integers | None = None  # (S, A): of tied actions the best supported is taken
    _known: dict[bytes, tuple[Floats, Floats]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def corner(self, prices: Any, weight: float = 1.0, near: Corner | None = None) -> Corner:
        """Plan at these prices, the reward taken ``weight`` times; from a policy that was the best nearby, if given."""
        rates = np.asarray(prices, dtype=np.float64)
        share = np.append(weight, -rates)  # of reward and costs in what is planned for
        if near is not None and self.horizon is None and not is_sparse(self.model):
            policy = self._improved(share, near.policy)
        else:
            policy = self._planned(np.tensordot(share, self._tables, axes=1))
        value, *costs = self.worth(policy)
        return Corner(rates / weight if weight else np.full(len(rates), np.inf), policy, value, np.array(costs))

    @cached_property
    def _tables(self) -> Floats:
        """Reward and costs, ``(1 + K, S, A)``."""
        return np.stack([self.reward, *self.costs])

    def _planned(self, net: Floats) -> Integers:
        plan: Any
        if self.horizon is None:
            plan = solve(self.model, net, self.discount, allowed=self.allowed)
        else:
            plan = solve_finite(self.model, net, self.discount, self.horizon, allowed=self.allowed)
        return np.asarray(plan.policy if self.visits is None else plan.supported(self.visits).policy)

    def _improved(self, share: Floats, policy: Integers) -> Integers:
        """Policy iteration from a policy: what it is worth at any prices is known once it is valued at all."""
        allowed = True if self.allowed is None else self.allowed
        while True:
            q = np.where(allowed, np.tensordot(share, self._valued(policy)[1], axes=1), -np.inf)
            better = improve(q, policy)
            if np.array_equal(better, policy):
                return greedy(q) if self.visits is None else best_supported(tied(q), self.visits)
            policy = better

    def _valued(self, policy: Integers) -> tuple[Floats, Floats]:
        """Reward and costs of a policy from each state, ``(1 + K, S)``, and of each action first; remembered."""
        known = self._known.get(policy.tobytes())
        if known is None:
            rows = np.eye(len(self.start)) - self.discount * policy_rows(self.model, policy)
            values = np.linalg.solve(rows, np.stack([chosen(table, policy) for table in self._tables]).T).T
            ahead = np.stack([self.model.expect(each) for each in values])
            known = np.asarray(values, dtype=np.float64), self._tables + self.discount * ahead
            self._known[policy.tobytes()] = known
        return known

    def worth(self, policy: Integers) -> list[float]:
        """Reward and each cost of a policy, under the start."""
        if self.horizon is None and not is_sparse(self.model):
            return [float(value) for value in self._valued(policy)[0] @ self.start]
        return [float(self._value(table, policy) @ self.start) for table in self._tables]

    def _value(self, table: Floats, policy: Integers) -> Floats:
        if self.horizon is None:
            return value_policy(self.model, table, np.asarray(self.discount), policy)
        values = np.zeros(len(self.start))
        for actions in policy[::-1]:
            values = chosen(table + self.discount * self.model.expect(values), actions)
        return values


def frontier(problem: Constrained) -> tuple[Corner, ...]:
    """All corners of one cost, from the cheapest to the best; each is worth more than those before and costs more."""
    if len(problem.costs) != 1:
        raise InputError(f"A frontier is of one cost; got {len(problem.costs)}.")
    best = problem.corner([0.0])
    least = problem.corner([1.0], weight=0.0, near=best)
    size = max(abs(best.value), abs(least.value)), max(abs(best.costs[0]), abs(least.costs[0]))
    near = [ROUNDING * (one or 1.0) for one in size]
    found, open_edges = [least], [(least, best)]
    while open_edges:
        low, high = open_edges.pop()
        more, dearer = high.value - low.value, high.costs[0] - low.costs[0]
        if dearer <= near[1] or more <= near[0] or len(found) >= MOST:
            if more > near[0] or dearer <= near[1]:
                found.append(high)
            continue
        between = problem.corner([more / dearer], near=low)
        above = (between.value - low.value) * dearer - (between.costs[0] - low.costs[0]) * more
        if above <= near[0] * dearer + near[1] * more:
            found.append(high)
        else:  # the cheaper half is taken first
            open_edges += [(between, high), (low, between)]
    return _rising(found, near)


def _rising(found: list[Corner], near: list[float]) -> tuple[Corner, ...]:
    """Without what costs as much and is worth less, or is worth as much and costs more."""
    kept: list[Corner] = []
    for corner in sorted(found, key=lambda one: (one.costs[0], one.value)):
        if kept and corner.value <= kept[-1].value + near[0]:
            continue
        while kept and corner.costs[0] <= kept[-1].costs[0] + near[1]:
            kept.pop()
        kept.append(corner)
    return tuple(kept)


def keep(problem: Constrained, limits: Floats, names: tuple[str, ...] = ()) -> Within:
    """Find the best within limits ``(K,)``; where nothing keeps them, say what the least is."""
    K = len(limits)
    corners = [problem.corner(np.zeros(K))]
    if _keeps(corners[0], limits):
        return Within(corners[0], ((1.0, corners[0]),), np.zeros(K))
    corners += [problem.corner(np.eye(K)[k], weight=0.0, near=corners[0]) for k in range(K)]
    _check_each(corners[1:], limits, names)
    while True:
        master = _mix(corners, limits)
        new = problem.corner(master.prices, weight=float(master.kept), near=corners[-1])
        if len(corners) > MOST or master.gain(new) <= ROUNDING * master.size:
            break
        corners.append(new)
    if not master.kept:
        raise InputError(
            f"Each of the limits {' and '.join(names)} can be kept, but not all at once, even if policies are mixed. "
            "Raise one of them."
        )
    mixture = [(float(w), one) for w, one in zip(master.chances, corners, strict=True) if w > ROUNDING]
    return Within(_single(problem, corners, master.prices, limits), tuple(mixture), master.prices)


def _single(problem: Constrained, corners: list[Corner], prices: Floats, limits: Floats) -> Corner | None:
    """A single policy within the limits: the best of the corners so far, or one that rising prices lead to.

    The prices of the limits that are not kept rise, all others stay. With several limits there may be none.
    """
    kept = [one for one in corners if np.isfinite(one.prices).all() and _keeps(one, limits)]
    size = max(abs(one.value) for one in corners) or 1.0
    unit = size / np.maximum(np.abs([one.costs for one in corners]).max(axis=0), TINY)
    rates, above = np.asarray(prices), ABOVE
    over = np.ones(len(limits), dtype=bool)
    for _ in range(RAISED):
        rates = np.where(over, np.maximum(rates, ABOVE * unit) * (1 + above), rates)
        corner = problem.corner(rates, near=corners[-1])
        over = corner.costs > _room(corner, limits)
        if not over.any():
            kept.append(corner)
            break
        above = min(1.5 * above, 1.0)
    return _inside(problem, max(kept, key=lambda one: one.value)) if kept else None


def _inside(problem: Constrained, corner: Corner) -> Corner:
    """The corner at prices well inside of those at which it is the best, where nothing is nearly tied by design."""
    share, last = ABOVE, corner
    while share <= 1:
        higher = problem.corner(corner.prices * (1 + share), near=corner)
        if (higher.policy != corner.policy).any():
            break
        share, last = 4 * share, higher
    return corner._replace(prices=(corner.prices + last.prices) / 2)


def _room(corner: Corner, limits: Floats) -> Floats:
    """Limits with room for rounding."""
    return limits + ROUNDING * np.maximum(np.abs(limits), np.abs(corner.costs))


def _keeps(corner: Corner, limits: Floats) -> bool:
    return bool((corner.costs <= _room(corner, limits)).all())


def _check_each(cheapest: list[Corner], limits: Floats, names: tuple[str, ...]) -> None:
    for k, corner in enumerate(cheapest):
        if corner.costs[k] > _room(corner, limits)[k]:
            called = f"limit {names[k]}" if names else f"limit of cost {k}, {number(limits[k])}"
            raise InputError(
                f"No policy keeps the {called}: the least that the model allows is {number(corner.costs[k])}, expected "
                "from the first decision on and discounted as rewards are. Raise the limit."
            )


class _Master(NamedTuple):
    """The best mixture of the corners so far; where none keeps the limits, the one that comes closest."""

    kept: bool
    chances: Floats
    prices: Floats  # (K,)
    worth: float  # of every corner in the mixture, once prices are paid
    size: float  # of the numbers that were computed with

    def gain(self, new: Corner) -> float:
        """How much more a new corner is worth than those in the mixture."""
        return float(self.kept * new.value - self.prices @ new.costs - self.worth)


def _mix(corners: list[Corner], limits: Floats) -> _Master:
    """Mix corners: Σ w V as large as possible while Σ w C ≤ limits; else Σ w C - limits as small as can be."""
    from scipy.optimize import linprog

    value, costs = np.array([one.value for one in corners]), np.array([one.costs for one in corners]).T
    unit, scale = np.abs(value).max() or 1.0, np.abs(costs).max(axis=1) + np.abs(limits)
    scale[scale == 0] = 1.0
    rows, bound, one = costs / scale[:, None], limits / scale, np.ones((1, len(value)))
    found = linprog(-value / unit, rows, bound, one, [1.0], options=EXACT)
    if found.status == 0:
        prices = -found.ineqlin.marginals * unit / scale
        return _Master(True, found.x, prices, -found.eqlin.marginals[0] * unit, unit)
    over = np.append(np.zeros(len(value)), 1.0)  # one more column: by how much limits are missed
    rows, one = np.column_stack([rows, -np.ones(len(limits))]), np.append(one, [[0.0]], axis=1)
    missed = linprog(over, rows, bound, one, [1.0])
    prices = -missed.ineqlin.marginals / scale
    return _Master(False, missed.x[:-1], prices, -missed.eqlin.marginals[0], 1.0)
