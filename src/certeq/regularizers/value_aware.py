"""Weights for the error that matters: that of the expected next value, not of the whole row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, whole
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model.evidence import ODDS, STRUCTURES, Evidence
from certeq.model.frequencies import mle
from certeq.model.kernel import Kernel, Mixture
from certeq.planners import solve
from certeq.regularizers.evidence import evidence
from certeq.regularizers.shrinkage import Shrinkage

FAINT = 1e-10  # squared error, in units of the largest value, below which a row hardly matters
TOLERANCE = 1e-12  # of the values, where they are not exact
SETTLED = 1e-5  # largest change of a weight at which the iteration has arrived


@dataclass(frozen=True)
class ValueAware:
    """How the weights were arrived at."""

    evidence: Evidence  # what the first weights and the moments came from
    values: Floats  # (..., S): the values that the last weights answer to
    iterations: int
    settled: Booleans  # (...): whether weights and plan agree with one another


def value_aware(
    counts: Counts,
    *,
    reward: ArrayLike | None = None,
    discount: ArrayLike | None = None,
    allowed: Any = None,
    engine: str = "auto",
    target: Any = None,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, Any] | None = None,
    odds: float = ODDS,
    iterations: int = 30,
) -> Shrinkage:
    """Least error of the expected next value: w = (Var_T V / c) / (Var_T V / c + (T_target V - T V)²).

    V is the value of the plan that these weights lead to, so weights and plan are improved in turn, from the plan of
    ``evidence`` on, until neither changes. For the unknown row T stands its posterior under the evidence prior, whose
    mean m is the evidence row and whose precision is c/(1 - w_evidence); with v = Var_m V and k = (1 - w_evidence) /
    (c + 1 - w_evidence),

        E Var_T V = v·(1 - k),   E (T_target V - T V)² = (T_target V - m V)² + v·k.

    There need not be a fixed point that the iteration finds; ``details.settled`` says whether it did.
    """
    if reward is None or discount is None:
        raise InputError("value_aware needs the rewards and the discount, since its weights depend on the plan.")
    first = evidence(counts, target=target, structures=structures, groups=groups, odds=odds)
    data, pull = mle(counts), first.target
    rest = np.where(counts.visits > 0, 1 - first.weight, 1.0)
    known = rest / (counts.visits + rest)  # k
    weight, values, left = first.weight, np.zeros(counts.n_states), whole("iterations", iterations, 1)
    settled = np.zeros((), dtype=bool)
    while left > 0 and not settled.all():
        left -= 1
        model = Mixture(data, weight, pull)
        found = solve(model, reward, discount, allowed=allowed, engine=engine, tolerance=TOLERANCE).values
        values = np.where(settled[..., None], values, found)  # a data set that has arrived stays, whatever others do
        new = _weights(counts, data, pull, first.weight, known, values)
        settled, weight = np.abs(new - weight).max(axis=(-2, -1)) < SETTLED, new
    details = ValueAware(first.details, values, iterations - left, settled)
    return Shrinkage(weight, pull, learned=True, details=details)


def _weights(counts: Counts, data: Kernel, pull: Kernel, prior: Floats, known: Floats, values: Floats) -> Floats:
    """The weights that answer to these values, ``(..., S, A)``."""
    scale = np.abs(values).max(axis=-1, keepdims=True)
    v = values / np.where(scale > 0, scale, 1)  # weights do not depend on the unit of the values
    T, q, TT, qq = data.expect(v), pull.expect(v), data.expect(v * v), pull.expect(v * v)
    mean = (1 - prior) * T + prior * q
    spread = np.maximum((1 - prior) * TT + prior * qq - mean**2, 0.0)
    noise = spread * (1 - known) / np.maximum(counts.visits, 1)
    bias = (q - mean) ** 2 + spread * known
    # where next values hardly differ no weight matters, and rounding must not choose: the evidence weight takes over
    return np.where(counts.unvisited, 1.0, (noise + FAINT * prior) / (noise + bias + FAINT))
