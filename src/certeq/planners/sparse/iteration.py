"""Inexact policy iteration: full passes that certify, and rough corrections in between.

1. A full pass backs the values v up, r = max Q - v, and improves the policy. It bounds the error: |v - v*| is at most
   |r| / (1 - γ mass). A constant c added to v takes c (1 - γ mass) off r: if all rows have the same mass, the best one
   (MacQueen) leaves half the span of r; if masses differ by up to m, at most |c| γ m more than that.
2. When the bound is met, or somebody interrupts, that is the plan.
3. Otherwise the policy's own rows give a rough correction of v (`correction`), and the next pass follows. Where that
   is slow and the policy is slow to settle, sweeps in place (`kernels.sweep`) come in between.

A given policy is evaluated in the same way, with nothing to improve. The mixture of data and target is never written
out. The plain twin is ``planners.value_iteration.modified_policy_iteration``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Floats
from certeq.planners.backup import ROUNDING, TIE
from certeq.planners.certify import UNIT, added, excess
from certeq.planners.problem import How, Problem, Solution
from certeq.planners.sparse.passes import Passes, Seen

FORCING = 0.03  # a correction leaves this part of the residual, or the part of the states whose action changed
FIRST = 0.1  # and this part at the very beginning, and where sweeps lead the policy on
TIGHTEN = 0.1  # and this part of that where it led nowhere: the residual was not halved, and
FEWER = 0.95  # no fewer states than this part of those before changed their action
ENOUGH = 0.3  # and this part of what is allowed once it stays
SETTLING = 0.5  # where more states than this part of those before change their action, the policy is slow to settle;
SWEEPS = 40  # where corrections are slow as well, it is led on by so many sweeps after each until it has settled
PRECISION = 1e-5  # no single correction is asked for more
NOISE = 2e-15  # relative to values and rewards: no action is left for one that is better by less
FLOOR = 1e-13  # relative to values and rewards: a residual below this may be rounding
PROGRESS = 0.9  # a pass should bring the residual below this part of the least so far
STRIKES = 50  # passes without progress, after which BiCGStab is not trusted any longer


class Certified(NamedTuple):
    """What the last full pass certifies."""

    values: Floats  # (S,), as they were backed up
    shift: float  # constant to add to them
    size: float  # bound on the residual that then remains
    scale: float  # largest value
    seen: Seen
    iteration: int


@np.errstate(over="ignore", invalid="ignore")  # what is beyond all numbers is refused in the end
def inexact_policy_iteration(problem: Problem, how: How, follow: Floats | None = None) -> Solution:
    """Plan, or evaluate the policy with the probabilities ``follow``, ``(S, A)``, to a certified tolerance."""
    tolerance, limit, watch, threads = how[:4]
    values, earned = np.zeros(problem.n_states), max(float(problem.reward.max()), -float(problem.reward.min()))
    least, last, strikes, forcing, keep, near, moved = np.inf, np.inf, 0, FORCING, 0.0, 0.0, problem.n_states
    converged = swept = False
    with watch:
        passes = Passes(problem, threads, follow)
        gap = passes.gap
        for iteration in range(1, limit + 1):
            known = _certify(passes.back_up(values, keep, near), values, gap, passes.uneven, iteration)
            size, scale = known.size, known.scale
            goal, ground = tolerance * scale * gap, max(scale, earned)  # ground: what is rounded
            watch.report(iteration, size, size / gap, goal / gap)
            led_on = iteration == 2 or size < 0.5 * last or known.seen.moved < FEWER * moved
            restless = follow is None and known.seen.moved > (0 if swept else SETTLING * moved)
            forcing, moved = forcing if led_on else max(TIGHTEN * forcing, PRECISION), known.seen.moved
            strikes = 0 if size < PROGRESS * least else strikes + 1
            least, last = min(size, least), size
            converged = size <= goal
            if converged or not size < np.inf or (strikes > 1 and size <= FLOOR * ground) or iteration == limit:
                break
            if strikes >= STRIKES:
                passes.distrust()
            keep = max(0.1 * goal, NOISE * ground)
            near = _tie(known) + 2 * tolerance * scale
            rough = iteration == 1 or (restless and passes.follower.slow and forcing == FORCING)
            wanted = min(FIRST if rough else forcing, moved / problem.n_states)
            part = max(wanted, ENOUGH * goal / size, PRECISION)
            values = passes.correct(values, known.shift, part, trial=iteration == 1 and follow is None)
            if restless and passes.follower.slow:
                values, swept = passes.sweep(values, SWEEPS), True
    final = known.values + known.shift
    size = known.size + _hidden(known, final, problem)
    error, residual, count = np.asarray(size / gap), np.asarray(size), np.asarray(known.iteration)
    policy = passes.lowest.astype(np.int64)
    return Solution(policy, final, count, residual, np.asarray(converged), error, watch.interrupted)


def _certify(seen: Seen, values: Floats, gap: float, uneven: float, iteration: int) -> Certified:
    """Find the constant to add to the values, 0 where none helps, and a bound on the residual that then remains."""
    plain = max(seen.high, -seen.low)
    shift = (seen.low + seen.high) / 2 / gap
    size = (seen.high - seen.low) / 2 + abs(shift) * uneven
    if size >= plain:
        shift, size = 0.0, plain
    scale = max(abs(seen.bottom + shift), abs(seen.top + shift), 1e-300)
    return Certified(values, shift, size, scale, seen, iteration)


def _hidden(known: Certified, final: Floats, problem: Problem) -> float:
    """What rounding hides of the residual where a large constant was taken off: values were larger when backed up."""
    larger = max(float(np.abs(known.values).max() - np.abs(final).max()), 0.0)
    return (added(problem) * UNIT + float(excess(problem))) * larger


def _tie(known: Certified) -> float:
    """What counts as a tie."""
    return TIE * known.seen.spread + ROUNDING * known.scale
