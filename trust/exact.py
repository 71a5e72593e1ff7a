"""Plans against exact rational arithmetic: what a plan says about its own error must be true, in any world.

A small world is made of floats that are whole multiples of a power of two, so that it can be read as fractions without
a change. Its optimal values are found in fractions, by trying every policy; nothing of certeq takes part in that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from certeq import InputError, solve
from certeq.planners import PLANNERS

WAYS = [(planner.method, "numpy", "dense") for planner in PLANNERS if planner.engine == "numpy"]
WAYS += [("policy_iteration", "numba", "dense"), ("value_iteration", "numpy", "sparse")]
WAYS += [("modified_policy_iteration", "numpy", "sparse"), ("inexact_policy_iteration", "numba", "sparse")]
DISCOUNTS = (0.0, 0.5, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12)
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
)


@dataclass(frozen=True)
class World:
    """A small decision problem as floats."""

    transition: np.ndarray  # (S, A, S)
    reward: np.ndarray  # (S, A)
    discount: float

    def optimum(self) -> list[Fraction]:
        """V* in fractions: in each state the best of all policies."""
        T = [[[Fraction(float(p)) for p in row] for row in rows] for rows in self.transition]
        R = [[Fraction(float(r)) for r in line] for line in self.reward]
        gamma, (S, A) = Fraction(self.discount), self.reward.shape
        values = [_value(T, R, gamma, policy) for policy in product(range(A), repeat=S)]
        return [max(value[s] for value in values) for s in range(S)]

    def worth(self, policy: Any) -> list[Fraction]:
        """V of a policy in fractions."""
        T = [[[Fraction(float(p)) for p in row] for row in rows] for rows in self.transition]
        R = [[Fraction(float(r)) for r in line] for line in self.reward]
        return _value(T, R, Fraction(self.discount), tuple(map(int, policy)))


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
    """Draw a world of a certain shape; probabilities are multiples of 2**-20, or of 2**-50 where nearly absorbing."""
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
        """Whether values and policy are as good as was said."""
        return not self.finite or (self.error <= Fraction(self.bound) and self.loss <= Fraction(self.loss_bound))

    @property
    def finite(self) -> bool:
        """Whether a bound was given at all; an infinite one promises nothing, and says so."""
        return bool(np.isfinite(self.bound) and np.isfinite(self.loss_bound))


def examine(found: World, way: tuple[str, str, str], max_iterations: int | None = None) -> Finding | None:
    """Plan in a world and compare; None where the planner refuses, with a word, to plan so."""
    method, engine, kind = way
    S, A = found.reward.shape
    model = found.transition if kind == "dense" else sp.csr_array(found.transition.reshape(S * A, S))
    try:
        plan = solve(model, found.reward, found.discount, method=method, engine=engine, max_iterations=max_iterations)
    except InputError:
        return None
    best = found.optimum()
    values = plan.values
    if not np.isfinite(values).all():
        return Finding(plan.outcome, float(plan.bound), Fraction(0), Fraction(0), float(plan.loss_bound), Fraction(0))
    error = max(abs(Fraction(float(v)) - b) for v, b in zip(values, best, strict=True))
    loss = max(b - w for b, w in zip(best, found.worth(plan.policy), strict=True))
    return Finding(plan.outcome, float(plan.bound), error, loss, float(plan.loss_bound), max(map(abs, best)))
