"""Value iteration and modified policy iteration: sweeps, with a guarantee for when to stop.

After a backup LV of V, the optimal values lie within ``horizon * max|LV - V|`` of V. If no row ends the episode, adding
a constant to V only shifts everything, and the tighter bounds of MacQueen hold: V* - LV lies between γ/(1 - γ) times
the least and the greatest change. Sweeping stops when the certified error, relative to the values, is at most the
tolerance, or when nothing but rounding is left of the change: then more sweeps would show no more, and the certificate
is what `certeq.planners.plan.Plan.bound` makes of it.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.model.kernel import MASS_TOLERANCE, is_sparse
from certeq.planners.backup import backup, chosen, greedy, policy_operator, policy_rows
from certeq.planners.certify import UNIT, added, longest
from certeq.planners.problem import How, Problem, Solution

PATIENCE = 100  # sweeps, and one for each state, after which an error that does not fall is rounding and stays
SETTLED = 3  # sweeps without a smaller error, after which a change that rounding explains is nothing else
PARTIAL_SWEEPS = 20  # of policy evaluation between two improvements of modified policy iteration


def value_iteration(problem: Problem, how: How) -> Solution:
    """Back up until the certified error is small enough."""
    return _sweep(problem, how, 0)


def modified_policy_iteration(problem: Problem, how: How) -> Solution:
    """Value iteration with some cheap sweeps of the current policy after each improvement."""
    return _sweep(problem, how, PARTIAL_SWEEPS)


def _sweep(problem: Problem, how: How, partial: int) -> Solution:
    model, reward, discount, allowed = problem
    tolerance, limit, watch, _ = how[:4]
    batch, S = problem.batch, problem.n_states
    mass = np.where(allowed, model.mass(), 1.0)
    never_ends = (mass >= 1 - MASS_TOLERANCE).all(axis=(-2, -1)) & (discount < 1)  # (...)
    factor = np.where(discount < 1, discount / np.where(discount < 1, 1 - discount, 1), 0.0)
    horizon = longest(problem)
    earned, unit = np.abs(reward).max(axis=(-2, -1), initial=0), added(problem) * UNIT
    values = np.zeros((*batch, S))
    final, certified = values.copy(), np.full(batch, np.inf)
    iterations = np.zeros(batch, dtype=np.int64)
    running = np.ones(batch, dtype=bool)
    stuck, settled = np.zeros(batch, dtype=bool), np.zeros(batch, dtype=bool)
    least, since = np.full(batch, np.inf), np.zeros(batch, dtype=np.int64)
    with watch:
        for iteration in range(1, limit + 1):
            q = backup(model, reward, discount, allowed, values)
            best = q.max(axis=-1)
            change = best - values
            low, high = change.min(axis=-1), change.max(axis=-1)
            shift = np.where(never_ends, factor * (low + high) / 2, 0.0)
            error = np.where(never_ends, factor * (high - low) / 2, horizon * np.abs(change).max(axis=-1))
            estimate = best + shift[..., None]
            final = np.where(running[..., None], estimate, final)
            certified = np.where(running, error, certified)
            iterations[running] = iteration
            since = np.where(error < least, 0, since + 1)
            least = np.minimum(error, least)
            stuck |= running & (since > PATIENCE + S)
            left = np.where(never_ends, (high - low) / 2, np.abs(change).max(axis=-1))
            rounding = unit * (earned + np.abs(values).max(axis=-1))
            settled |= running & (since > SETTLED) & (left <= rounding)
            goal = tolerance * np.maximum(np.abs(estimate).max(axis=-1), 1e-300)
            running = running & ~stuck & ~settled & (error > goal)
            slowest = int(np.argmax(error / goal))
            watch.report(iteration, *(float(np.ravel(x)[slowest]) for x in (np.maximum(high, -low), error, goal)))
            if not running.any():
                break
            best_action = q.argmax(axis=-1)  # the best one itself: to follow one that ties would stop the fall short
            values = np.where(running[..., None], _evaluate_partly(problem, best_action, best, partial), values)
    q = backup(model, reward, discount, allowed, final)
    residual = np.abs(q.max(axis=-1) - final).max(axis=-1)
    done = ~(running | stuck)
    policy = greedy(q, np.where(done, certified, 0.0))  # far from the end an error would tie everything
    return Solution(policy, final, iterations, residual, done, certified, watch.interrupted)


def _evaluate_partly(problem: Problem, policy: Integers, values: Floats, sweeps: int) -> Floats:
    """Follow a fixed policy for some sweeps."""
    if not sweeps:
        return values
    gain = chosen(problem.reward, policy)
    if is_sparse(problem.model):
        apply = policy_operator(problem.model, policy)
        for _ in range(sweeps):
            values = gain + problem.discount * apply(values)
        return values
    rows = policy_rows(problem.model, policy)
    for _ in range(sweeps):
        values = gain + problem.discount[..., None] * (rows @ values[..., None])[..., 0]
    return values
