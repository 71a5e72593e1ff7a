"""Plans against exact rational arithmetic: what a plan says about its own error must be true, in any world.

A small world is made of floats, which are fractions. Its optimal values are found in fractions, by policy iteration
without rounding; nothing of certeq takes part in that.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from certeq import InputError, Rows, SparseRows, evaluate, solve
from certeq.planners import PLANNERS
from certeq.questions.exact import value_bound

WORLDS = 500  # that a process examines at a time
WAYS = [(planner.method, "numpy", "dense") for planner in PLANNERS if planner.engine == "numpy"]
WAYS += [("policy_iteration", "numba", "dense"), ("value_iteration", "numpy", "sparse")]
WAYS += [("modified_policy_iteration", "numpy", "sparse"), ("inexact_policy_iteration", "numba", "sparse")]
DISCOUNTS = (0.0, 0.5, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-8, 1 - 1e-9, 1 - 1e-12, 1 - 1e-14, 1 - 2.0**-53)
SCALES = (1e-300, 1e-150, 1e-8, 1.0, 1e8, 1e150, 1e300)
SHAPES = (
    "random",
    "certain",
    "periodic",
    "unreachable",
    "one state",
    "one action",
    "tied",
    "ending",
    "nearly absorbing",
    "heavy",
    "as it comes",
)


@dataclass(frozen=True)
class World:
    """A small decision problem as floats. Rows that sum to more than 1 stand for themselves divided by their sum."""

    transition: np.ndarray  # (S, A, S)
    reward: np.ndarray  # (S, A)
    discount: float

    @cached_property
    def fractions(self) -> tuple[Any, Any, Fraction]:
        """Transitions, rewards and discount as they are meant, exactly."""
        rows = [[[Fraction(float(p)) for p in row] for row in rows] for rows in self.transition]
        T = [[[p / max(sum(row), 1) for p in row] for row in each] for each in rows]
        return T, [[Fraction(float(r)) for r in line] for line in self.reward], Fraction(self.discount)

    @cached_property
    def optimum(self) -> list[Fraction]:
        """V* in fractions: policies are improved until none does better anywhere by a single step."""
        T, R, gamma = self.fractions
        S, A = self.reward.shape
        policy = [0] * S
        while True:
            value = _value(T, R, gamma, tuple(policy))
            q = [[R[s][a] + gamma * _dot(T[s][a], value) for a in range(A)] for s in range(S)]
            better = [a if q[s][a] >= max(q[s]) else q[s].index(max(q[s])) for s, a in enumerate(policy)]
            if better == policy:
                return value
            policy = better

    def worth(self, policy: Any) -> list[Fraction]:
        """V of a policy in fractions: actions ``(S,)``, or probabilities ``(S, A)``, which are divided by their sum."""
        T, R, gamma = self.fractions
        if np.ndim(policy) == 1:
            return _value(T, R, gamma, tuple(map(int, policy)))
        S, A = self.reward.shape
        chance = [[Fraction(float(p)) for p in line] for line in policy]
        chance = [[p / sum(line) for p in line] for line in chance]
        rows = [[[_dot(chance[s], [T[s][a][n] for a in range(A)]) for n in range(S)]] for s in range(S)]
        return _value(rows, [[_dot(chance[s], R[s])] for s in range(S)], gamma, (0,) * S)


def _dot(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(one, other, strict=True)), Fraction(0))


def _value(T: Any, R: Any, gamma: Fraction, policy: tuple[int, ...]) -> list[Fraction]:
    """Solve V = R + γ T V by elimination, without rounding."""
    S = len(T)
    lines = [
        [Fraction(int(s == n)) - gamma * T[s][policy[s]][n] for n in range(S)] + [R[s][policy[s]]] for s in range(S)
    ]
    for i in range(S):
        pivot = next(row for row in range(i, S) if lines[row][i] != 0)
        lines[i], lines[pivot] = lines[pivot], lines[i]
        lines[i] = [x / lines[i][i] for x in lines[i]]
        for row in range(S):
            if row != i and lines[row][i] != 0:
                lines[row] = [x - lines[row][i] * y for x, y in zip(lines[row], lines[i], strict=True)]
    return [line[-1] for line in lines]


def world(rng: np.random.Generator, shape: str, discount: float, scale: float) -> World:
    """Draw a world of a certain shape."""
    S, A = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    S, A = (1 if shape == "one state" else S), (1 if shape == "one action" else A)
    T = np.eye(S)[rng.integers(S, size=(S, A))]
    if shape in ("random", "one action", "unreachable", "tied", "ending", "one state"):
        whole = rng.multinomial(1 << 20, rng.dirichlet(np.ones(S), size=(S, A)))
        T = whole / (1 << 20)
    if shape == "periodic":
        T = np.tile(np.roll(np.eye(S), 1, axis=1)[:, None, :], (1, A, 1))
    if shape == "unreachable" and S > 1:
        T[..., 0] += T[..., -1]
        T[..., -1] = 0
    if shape == "ending":
        T = T * rng.choice([0.0, 0.5, 1 - 2.0**-10, 1 - 2.0**-30], size=(S, A))[..., None]
    if shape in ("heavy", "as it comes"):
        T = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    if shape == "heavy":  # up to the mass that is taken for rounding, and no further
        T = T * (1 + rng.choice([0, 1e-15, 1e-12, 1e-10, 9.9e-10], size=(S, A)))[..., None]
    if shape == "nearly absorbing":
        T = (1 - 2.0**-50) * np.tile(np.eye(S)[:, None], (1, A, 1)) + 2.0**-50 * T
    R = rng.integers(-1000, 1001, size=(S, A)) / 1024
    if shape == "tied":
        R, T = np.repeat(R[:, :1], A, axis=1), np.repeat(T[:, :1], A, axis=1)
    return World(T, R * scale, discount)


@dataclass(frozen=True)
class Finding:
    """What a plan said, and what is true."""

    outcome: str
    bound: float
    error: Fraction  # largest distance of a value from the optimum
    loss: Fraction  # largest loss of the policy
    loss_bound: float
    largest: Fraction  # largest optimal value

    @property
    def holds(self) -> bool:
        """Whether values and policy are as good as was said, by numbers."""
        said = np.isfinite(self.bound) and np.isfinite(self.loss_bound)
        return bool(said and self.error <= Fraction(self.bound) and self.loss <= Fraction(self.loss_bound))


def examine(found: World, way: tuple[str, str, str], max_iterations: int | None = None) -> Finding | None:
    """Plan in a world and compare; None where the planner refuses, with a word, to plan so."""
    method, engine, kind = way
    S, A = found.reward.shape
    rows = sp.csr_array(found.transition.reshape(S * A, S))
    model = Rows(found.transition) if kind == "dense" else SparseRows(rows, S, A)  # which means what it says
    try:
        plan = solve(model, found.reward, found.discount, method=method, engine=engine, max_iterations=max_iterations)
        bound, loss_bound = float(plan.bound), float(plan.loss_bound)
    except InputError:
        return None
    loss = max(b - w for b, w in zip(found.optimum, found.worth(plan.policy), strict=True))
    error, largest = apart(plan.values, found.optimum), max(map(abs, found.optimum))
    return Finding(plan.outcome, bound, error, loss, loss_bound, largest)


def apart(values: Any, true: list[Fraction]) -> Fraction:
    """Largest distance of some values from the true ones."""
    return max(abs(Fraction(float(v)) - t) for v, t in zip(values, true, strict=True))


def judge_values(found: World, rng: np.random.Generator) -> str | None:
    """What is wrong with `value_bound` for any policy and values; "" where nothing, None where it is refused."""
    S, A = found.reward.shape
    policy = rng.integers(A, size=S) if rng.random() < 0.5 else rng.dirichlet(np.ones(A), size=S)
    if policy.ndim == 2:
        policy = np.minimum(policy * (1 + rng.choice([0, 1e-12, 9e-10, -9e-10])), 1)
    model = Rows(found.transition)
    try:
        values = evaluate(model, found.reward, found.discount, policy)
        values = values * (1 + rng.choice([0, 0, 1e-15, 1e-9, 0.1]) * rng.standard_normal(S))
        bound = float(value_bound(model, found.reward, found.discount, policy, values))
    except InputError:
        return None
    error = apart(values, found.worth(policy))
    return "" if np.isfinite(bound) and error <= Fraction(bound) else f"off by {float(error):.3g}, bound {bound:.3g}"


def quietly(world: World, way: tuple[str, str, str], most: int | None) -> tuple[Finding | None, str]:
    """What examining finds, and what a library said that people would see."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = examine(world, way, most)
    return found, "; ".join(str(each.message) for each in said)


def examine_some(seed: np.random.SeedSequence) -> tuple[Counter[str], Counter[str], list[tuple[str, str]]]:
    """Bounds of some worlds: how many of each kind, how many plans were stopped early, and what is wrong."""
    rng = np.random.default_rng(seed)
    tried, early, wrong = Counter[str](), Counter[str](), list[tuple[str, str]]()
    for _ in range(WORLDS):
        shape, discount = str(rng.choice(SHAPES)), float(rng.choice(DISCOUNTS))
        drawn = world(rng, shape, discount, float(rng.choice(SCALES)))
        most = int(rng.choice([1, 2, 3, 10, 300]))  # stopped early or not, a plan must know how good it is
        for way in WAYS:
            name = "-".join(way)
            found, said = quietly(drawn, way, None if way[0] == "policy_iteration" else most)
            wrong += [(name, f"{shape}, 1 - {1 - discount}: warned: {said}")] if said else []
            if found is not None:
                tried[name] += 2  # of the values, and of the policy
                early[name] += found.outcome != "optimal"
                wrong += [] if found.holds else [(name, f"{shape}, 1 - {1 - discount}: {found}")]
        judged = judge_values(drawn, rng)
        tried["value_bound"] += judged is not None
        wrong += [("value_bound", f"{shape}, 1 - {1 - discount}: {judged}")] if judged else []
    return tried, early, wrong
