"""Planning from counts in one kernel, where frequencies and weights are never written out; with what plans lose.

``kind`` tells what the weights are made of (see `certeq.model.weights`), and ``amount`` is that: one number for each
data set and strength ``(...)`` or, where they are given, the weights ``(..., S, A)`` themselves. Every action is
allowed, and the frequencies of a pair without visits are uniform.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.model.mdp import MDP
from certeq.model.weights import GIVEN, MAGNITUDE, RELATIVE
from certeq.planners.compiled import told
from certeq.planners.problem import How, Solution

if TYPE_CHECKING:
    from certeq.planners.compiled.operands import Operands

BITS = 52  # actions whose ties are exact as the bits of one float
FAR = 1e200  # a magnitude beyond all counts: the weight is 1


class Counted(NamedTuple):
    """What there is to plan; leading axes broadcast."""

    counts: Integers  # (..., S, A, S)
    kind: int
    amount: Floats
    target: Floats  # (..., 1 or S, 1 or A, S)
    reward: Floats  # (..., S, A)
    discount: Floats  # (...), below 1

    def operands(self) -> Operands:
        """Line everything up for the kernel, strengths as odds."""
        from certeq.planners.compiled.operands import operands

        amount = self.amount
        if self.kind == RELATIVE:
            amount = amount / np.maximum(1 - amount, 1 / FAR)
        if self.kind in (RELATIVE, MAGNITUDE):
            amount = np.minimum(amount, FAR)
        weight = amount if self.kind == GIVEN else amount[..., None, None]
        every = np.ones((1, 1), dtype=bool)
        return operands(self.counts, weight, self.target, self.reward, self.discount, every)


class Swept(NamedTuple):
    """What a sweep over data sets and strengths ``(..., E)`` found."""

    policy: Integers  # (..., E, S): the lowest of the tied actions
    tied: Integers  # (..., E, S): the tied actions, as the bits of a number
    loss: Floats  # (..., E)
    optimal: Floats  # (..., S): optimal values in the truth


def plan_counts(work: Counted, how: How) -> Solution:
    """Plan for data sets of up to 32 states."""
    aligned = work.operands()
    K, L = aligned.chains, aligned.steps
    S, A = work.counts.shape[-3:-1]
    policy, values = np.empty((K, L, S), dtype=np.int64), np.empty((K, L, S))
    rounds, residual = np.empty((K, L), dtype=np.int64), np.empty((K, L))
    nothing = np.zeros(0, dtype=np.int64)
    no_truth = (np.zeros((0, S, A, S)), nothing, np.zeros((0, S, A)), nothing, 0.0, np.zeros(S))
    unasked = np.empty((0, 0, S), dtype=np.int64), np.empty((0, 0)), np.empty((0, S))
    fine = _run(aligned, work.kind, how, *no_truth, policy, values, rounds, residual, *unasked)
    return told(aligned.batch, how.limit, policy, values, rounds, residual, fine)


def sweep_counts(work: Counted, how: How, truth: MDP, importance: Floats) -> Swept | None:
    """Plan for data sets ``(..., 1, S, A, S)`` at strengths ``(..., E)``, and value the plans in the truth.

    A truth of several MDPs has the axes of the data sets. Returns None where the target changes along the strengths,
    which the kernel does not do, or where a plan reached the limit of iterations.
    """
    aligned = work.operands()
    batch, K, L, S = aligned.batch, aligned.chains, aligned.steps, work.counts.shape[-1]
    if batch[-1] != L:
        return None
    policy, tied = np.empty((K, L, S), dtype=np.int64), np.empty((K, L, S), dtype=np.int64)
    loss, optimal = np.empty((K, L)), np.empty((K, S))
    rows, gain = (
        _one_for_each(part, axes, batch[:-1]) for part, axes in ((truth.transition.dense(), 3), (truth.reward, 2))
    )
    unasked = np.empty((0, 0, S)), np.empty((0, 0), dtype=np.int64), np.empty((0, 0))
    out = (policy, *unasked, tied, loss, optimal)
    if not _run(aligned, work.kind, how, *rows, *gain, truth.discount, importance, *out):
        return None
    return Swept(
        policy.reshape(*batch, S), tied.reshape(*batch, S), loss.reshape(batch), optimal.reshape(*batch[:-1], S)
    )


def _one_for_each(table: Floats, axes: int, sets: tuple[int, ...]) -> tuple[Floats, Integers]:
    """A flat table of the truth, and which entry belongs to which data set."""
    lead = table.shape[: table.ndim - axes]
    of = np.broadcast_to(np.arange(prod(lead)).reshape(lead), sets)
    whole = np.require(table, requirements=("C", "W"))
    return whole.reshape(-1, *table.shape[table.ndim - axes :]), np.array(of).ravel()


def _run(aligned: Operands, kind: int, how: How, *rest: Any) -> bool:
    """Whether everything went well."""
    from certeq.base import threads as pool
    from certeq.planners.compiled.swept import sweep_small

    given = (*aligned.arrays, kind, how.limit, *rest)
    faults = pool.run(sweep_small, aligned.chains, *given, grain=aligned.grain, threads=how.threads)
    return max(faults) < 0
