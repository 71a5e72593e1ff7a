"""Planning for the average: the most reward per decision in the long run, where decisions never stop.

Nothing is discounted, so values are relative: h(s) is how much more, in all, is earned from s on than the average g for
as many decisions. Policy iteration (Howard): g and h of a policy solve h + g = R + T h exactly, and the policy that is
greedy for them is no worse. For any h at all, the best average lies between the least and the largest of
max_a (R + T h) - h, so the distance of the two certifies the result.

A policy has one average only if it keeps coming back to the same states wherever it begins (a unichain). Each policy
that is considered is checked for that. Where an episode ends, the next one begins as episodes do: at ``start``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, within
from certeq.base.errors import InputError
from certeq.model.kernel import MASS_TOLERANCE, Kernel, Rows, check_plain
from certeq.planners.backup import backup, greedy, improve
from certeq.planners.plan import Plan
from certeq.planners.problem import Problem, read_problem

LIMIT = 1000  # policies
LARGEST = 200_000_000  # numbers of rows that are written out
REMEDY = "Plan with a discount instead, or regularize toward a target that leads everywhere, such as uniform_prior"


@dataclass(frozen=True)
class AveragePlan(Plan):
    """A policy for the long run. ``values`` are relative: they have the mean 0 over the time that the policy spends.

    ``bound`` certifies the average: nowhere does any policy earn more than ``gain + bound`` per decision.
    """

    gain: Floats | float = 0.0  # (...): reward per decision

    @property
    def bound(self) -> Floats:
        """Certified distance of ``gain`` to the best average of the model, ``(...)``."""
        apart = self.action_values.max(axis=-1) - self.values  # the gain is taken off the rewards already
        return np.asarray(np.abs(apart).max(axis=-1) + self.rounding)

    @property
    def loss_bound(self) -> Floats:
        """Certified loss of the policy per decision, ``(...)``."""
        return self.bound

    @property
    def precise(self) -> bool:
        """Whether the bound is small beside the rewards."""
        size = np.abs(self.problem.reward + np.asarray(self.gain)[..., None, None]).max(axis=(-2, -1), initial=0)
        return bool((self.bound <= 1e-5 * np.maximum(size, np.abs(self.gain)) + 1e-300).all())


def solve_average(
    transition: Kernel | ArrayLike | Any,
    reward: ArrayLike,
    *,
    allowed: ArrayLike | None = None,
    start: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> AveragePlan:
    """Plan for the most reward per decision; arguments as for `certeq.solve`.

    ``start`` ``(S,)`` is where the next episode begins after one has ended; rows that end episodes need it. ``names``
    are the states', for messages.

    >>> from certeq import solve_average
    >>> plan = solve_average([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 3]])
    >>> plan.policy, plan.gain
    (array([1, 1]), array(1.5))
    """
    problem, trusted = read_problem(transition, reward, 1.0, allowed)
    S, A = problem.n_states, problem.n_actions
    if S * A * S > LARGEST:
        raise InputError(
            f"Averages are planned for with all rows written out, and {S:,} states and {A:,} actions have too many. "
            "Use fewer states (coarser bins), or a discount close to 1."
        )
    if not trusted:
        check_plain(problem.model.dense())
    rows = np.broadcast_to(_going_on(problem.model, start), (*problem.batch, S, A, S))
    gains = np.broadcast_to(problem.reward, (*problem.batch, S, A))
    masks = np.broadcast_to(problem.allowed, (*problem.batch, S, A))
    policy, values = np.empty((*problem.batch, S), dtype=np.int64), np.empty((*problem.batch, S))
    gain, rounds = np.empty(problem.batch), np.empty(problem.batch, dtype=np.int64)
    for at in np.ndindex(problem.batch):
        policy[at], values[at], gain[at], rounds[at] = _iterate(rows[at], gains[at], masks[at], names)
    centered = Problem(Rows.trusted(np.asarray(rows)), gains - gain[..., None, None], np.ones(()), masks)
    residual = np.abs(backup(*centered, values).max(axis=-1) - values).max(axis=-1)
    return AveragePlan(policy, values, rounds, residual, rounds < LIMIT, 0.0, "policy_iteration", centered, gain=gain)


def _going_on(model: Kernel, start: ArrayLike | None) -> Floats:
    """Rows in which an ending is followed by the next episode's beginning."""
    rows, ends = model.dense(), np.maximum(1 - model.mass(), 0.0)
    if (ends <= MASS_TOLERANCE).all():
        return np.asarray(rows)
    if start is None:
        raise InputError("Some rows end the episode: say where the next one begins, with start=.")
    chance = within("start", start, 0, 1)
    if chance.shape != rows.shape[-1:] or abs(chance.sum() - 1) > 1e-9:
        raise InputError(f"start needs {rows.shape[-1]} probabilities that sum to 1; got shape {chance.shape}.")
    return np.asarray(rows + ends[..., None] * chance)


def _iterate(
    rows: Floats, reward: Floats, allowed: Booleans, names: Sequence[str] | None
) -> tuple[Integers, Floats, float, int]:
    """Policy, relative values, average and number of rounds of one problem."""
    problem = Problem(Rows.trusted(rows), reward, np.ones(()), allowed)
    state = np.arange(len(rows))
    policy = greedy(backup(*problem, np.zeros(len(rows))))
    rounds, settled = 0, False
    while not settled and rounds < LIMIT:
        chain = rows[state, policy]
        _check_meets(chain, policy, names)
        values, gain = relative_values(chain, reward[state, policy])
        better = improve(backup(*problem, values), policy)
        rounds, settled, policy = rounds + 1, bool((better == policy).all()), better
    return policy, values, gain, rounds


def relative_values(chain: Floats, gain: Floats) -> tuple[Floats, float]:
    """Solve h + g = R + T h for a chain ``(S, S)`` that comes back to the same states; h has the mean 0 over time."""
    system = np.eye(len(chain)) - chain
    system[:, 0] = 1.0  # the unknown h(0) is set to zero, and its place is taken by g
    found = np.linalg.solve(system, gain)
    often = np.linalg.solve(system.T, np.eye(len(chain))[0])  # share of the time in each state
    average, found[0] = float(found[0]), 0.0
    return found - often @ found, average


def _check_meets(chain: Floats, policy: Integers, names: Sequence[str] | None) -> None:
    """Raise, naming states, if the chain can settle in one of several sets of states."""
    from scipy.sparse.csgraph import connected_components

    _, member = connected_components(chain > MASS_TOLERANCE, directed=True, connection="strong")
    leaves = np.zeros(member.max() + 1, dtype=bool)
    at, to = np.nonzero(chain > MASS_TOLERANCE)
    leaves[member[at[member[at] != member[to]]]] = True
    closed = np.flatnonzero(~leaves)
    if len(closed) > 1:
        one, other = (int(np.flatnonzero(member == each)[0]) for each in closed[:2])
        called = [str(s) if names is None else repr(names[s]) for s in (one, other)]
        raise InputError(
            "An average needs policies that come back to the same states wherever they begin, but one that was "
            f"considered settles either around the state {called[0]} or around {called[1]}, and never leaves. {REMEDY}."
        )
