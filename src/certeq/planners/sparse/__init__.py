"""Inexact policy iteration for one large sparse MDP, in compiled passes shared by all cores, and when it pays.

- ``iteration``: the loop. Back up, certify, correct, until the bound is met.
- ``passes``: full passes over all pairs, which improve the policy and carry the certificate.
- ``correction``: what the policy's own rows say, roughly, about the values in between.
- ``kernels``: what all of them are compiled from.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats
from certeq.model.kernel import Kernel, Mixture, Operator, SparseRows
from certeq.planners.problem import How, Problem, Solution
from certeq.planners.progress import Watch

WORTH = 100_000  # entries: below, SciPy is done before a compiler or its cache would be
ENDLESS = 1e-10  # a contraction closer to one than this gives no bound
RANGE = 1e-20, 1e20  # sizes of rewards that single precision can work on
TOLERANCE = 1e-12  # of values that are to be as exact as can be
PASSES = 1000  # at most, when a policy is evaluated


def able(problem: Problem) -> bool:
    """Whether it is one sparse model in which every step contracts, with rewards of ordinary size."""
    if not isinstance(_data_rows(problem.model), SparseRows) or problem.batch:
        return False
    discount = float(problem.discount)
    if 1 - discount <= ENDLESS and 1 - discount * float(problem.model.mass().max()) <= ENDLESS:
        return False
    largest = max(float(problem.reward.max()), -float(problem.reward.min()))
    return largest == 0 or RANGE[0] < largest < RANGE[1]


def pays(problem: Problem) -> bool:
    """Whether it is large enough."""
    return _entries(problem.model) >= WORTH


def _entries(model: Kernel) -> float:
    """How many entries the sparse rows of a model have, of data and target; more than enough where they are applied."""
    if isinstance(model, Mixture):
        return _entries(model.data) + _entries(model.target)
    return model.matrix.nnz if isinstance(model, SparseRows) else np.inf if isinstance(model, Operator) else 0


def _data_rows(model: Kernel) -> Kernel:
    """The rows that everything else is mixed into."""
    return _data_rows(model.data) if isinstance(model, Mixture) else model


def plan(problem: Problem, how: How) -> Solution:
    """Plan to a certified tolerance."""
    from certeq.planners.sparse.iteration import inexact_policy_iteration

    return inexact_policy_iteration(problem, how)


def evaluate(problem: Problem, probabilities: Floats, threads: int | None, tolerance: float = TOLERANCE) -> Floats:
    """Value ``(S,)`` of a policy ``(S, A)``."""
    from certeq.planners.sparse.iteration import inexact_policy_iteration

    taken = problem._replace(allowed=np.asarray(probabilities > 0))
    follow = probabilities if taken.allowed.sum() > problem.n_states else None  # one action is the best of one
    return inexact_policy_iteration(taken, How(tolerance, PASSES, Watch(), threads), follow).values
