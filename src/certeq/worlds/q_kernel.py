"""The loop of Q-learning, compiled: one replication after another, each on its own random stream.

Outcomes are numbered 0 .. S, where S stands for "the episode ended"; pairs are numbered ``s * A + a``.

Three things make it quick. Indices are unsigned, because signed ones make Numba emit code for negative indices. Inverse
sampling counts how many cumulative sums are at most u: no branches, so nothing for the processor to guess wrong. And
rows are read from one flat table in the body of the loop, not through a function that takes arrays: there Numba would
count references at every step, at twice the price of the step itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Floats, Integers
from certeq.base.compiling import njit
from certeq.base.random import seeded, uniform

STANDARD, CONSTANT, SPECIFIC = 0, 1, 2

_0, _1 = np.uint64(0), np.uint64(1)
_TINY = 1e-300
_SCAN = np.uint64(16)  # rows up to this wide are scanned, wider ones bisected


class Lottery(NamedTuple):
    """All rows that next states are drawn from, end to end: first those of the world, then those of the target.

    A row is the cumulative probability of each outcome that can happen, in order, and which outcome that is; then, at
    least once and up to the length of the longest row of its kind, 2.0 and "ended". So drawing is: the outcome that
    stands at the first cumulative probability above u.
    """

    cumulative: Floats  # (n,)
    outcome: NDArray[np.uint64]  # (n,)
    world_length: int  # the row of pair p in world w starts at (w * pairs + p) * world_length
    target_length: int  # row i of the target starts at target_start + i * target_length
    target_start: int


class Target(NamedTuple):
    """What eps* compares the counts with: U rows, of which pair (s, a) has number ``s * by_state + a * by_action``."""

    probability: Floats  # (U, S + 1), ending included
    square: Floats  # (U,), sum of squares of each row
    by_state: int
    by_action: int


class Settings(NamedTuple):
    """The numbers of the algorithm; a schedule is (initial, decay, floor)."""

    variant: int
    probability: float
    discount: float
    episodes: int
    steps: int
    step_size: tuple[float, float, float]
    exploration: tuple[float, float, float]
    curve_every: int  # 0 for no curve
    worlds: int  # R, or 1 for one world that all replications share


class Record(NamedTuple):
    """What the kernel writes; ``q`` holds the initial values, everything else zeros."""

    q: Floats  # (R, S * A)
    counts: Integers  # (R, S * A, S + 1)
    reward: Floats  # (R,)
    simulated: Integers  # (R,)
    curve: Floats  # (R, n)


@njit(cache=True, nogil=True, error_model="numpy")
def best(q: Any, first: Any, A: Any) -> Any:
    """Give the largest of ``q[first : first + A]`` and the lowest action that attains it."""
    value: Any = q[first]
    action: Any = _0
    for b in range(_1, A):
        better = q[first + b] > value
        value = q[first + b] if better else value
        action = b if better else action
    return value, action


@njit(cache=True, nogil=True, error_model="numpy")
def scheduled(schedule: Any, n: Any) -> Any:
    """Value of a schedule at its n-th use, n = 1, 2, ...: max(floor, initial / n^decay)."""
    initial, decay, floor = schedule
    return max(floor, initial if decay == 0.0 else initial / n**decay)


@njit(cache=True, nogil=True, error_model="numpy")
def simulation_chance(n: Any, squares: Any, overlap: Any, target_square: Any) -> Any:
    """Chance of simulating a pair with n visits: eps* of Eq. 5 from its counts c, but at most n / (n + 1).

    With T = c / n, V = 1 - sum T^2 and B = sum (target - T)^2, eps* = V / (V + n B); here both sides times n^3, so that
    sum c^2 and sum c * target, which grow by one term at each visit, are all that is needed. The limit says that n B is
    at least V / n. The tiny number turns 0 / 0, a sure outcome that is also the target's, into 0.
    """
    variance = n * n - squares  # n^2 V
    bias = squares - 2.0 * n * overlap + n * n * target_square  # n^2 B
    return n * variance / (n * variance + max(n * n * bias, variance, _TINY))


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    start: int,
    stop: int,
    seeds: Any,
    table: Lottery,
    reward: Floats,
    target: Target,
    settings: Settings,
    record: Record,
) -> None:
    """Run replications start .. stop - 1 of Algorithm 3. `model_free` says in which order numbers are drawn."""
    pairs = np.uint64(record.counts.shape[1])
    ended = np.uint64(record.counts.shape[2]) - _1
    A = pairs // ended
    cumulative, outcome = table.cumulative, table.outcome
    world_length, target_length = np.uint64(table.world_length), np.uint64(table.target_length)
    target_start = np.uint64(table.target_start)
    by_state, by_action = np.uint64(target.by_state), np.uint64(target.by_action)
    variant, discount = settings.variant, settings.discount
    updates = np.empty(pairs)  # real and simulated
    visits = np.empty(pairs)  # real: n
    squares = np.empty(pairs)  # sum of c^2
    overlap = np.empty(pairs)  # sum of c * target
    chance = np.empty(pairs)  # of simulating, when this pair comes up again
    value = np.zeros(ended + _1)  # largest q of each state; ending is worth 0
    greedy = np.empty(ended, dtype=np.uint64)  # the lowest action that attains it
    for r in range(start, stop):
        world = np.uint64(min(r, settings.worlds - 1)) * pairs * world_length
        rewards = reward[min(r, reward.shape[0] - 1)]
        q, counts = record.q[r], record.counts[r]
        updates[:] = 0.0
        visits[:] = 0.0
        squares[:] = 0.0
        overlap[:] = 0.0
        chance[:] = 0.0  # a pair that was never tried is tried first
        for i in range(ended):
            value[i], greedy[i] = best(q, i * A, A)
        state = seeded(seeds[r])
        explore = scheduled(settings.exploration, 1.0)
        earned, simulated, real, marks, until_mark = 0.0, 0, 0, 0, settings.curve_every
        for _ in range(settings.episodes):
            u, state = uniform(state)
            s = np.uint64(np.int64(u * ended))
            last = real + settings.steps
            while real < last:
                u, state = uniform(state)
                a = greedy[s]
                if u < explore:
                    u, state = uniform(state)
                    a = np.uint64(np.int64(u * A))
                pair = s * A + a
                row = s * by_state + a * by_action

                simulate = False
                if variant != STANDARD:
                    u, state = uniform(state)
                    simulate = u < chance[pair]
                length = target_length if simulate else world_length
                at = target_start + row * target_length if simulate else world + pair * world_length

                u, state = uniform(state)
                if length <= _SCAN:
                    below = _0
                    for i in range(length):
                        below += np.uint64(cumulative[at + i] <= u)
                    at += below
                else:
                    while length > _1:
                        half = length >> _1
                        at = at + half if cumulative[at + half - _1] <= u else at
                        length -= half
                following = outcome[at]

                # Q(s,a) <- Q(s,a) + step [r(s,a) + discount max Q(s') - Q(s,a)]
                updates[pair] += 1.0
                step = scheduled(settings.step_size, updates[pair])
                q[pair] += step * (rewards[pair] + discount * value[following] - q[pair])
                value[s], action = best(q, s * A, A)
                if action != greedy[s]:  # seldom: so the next decision need not wait for this update
                    greedy[s] = action
                if simulate:
                    simulated += 1
                    continue

                real += 1
                earned += rewards[pair]
                seen = counts[pair, following]
                counts[pair, following] = seen + 1
                if variant == CONSTANT:
                    chance[pair] = settings.probability
                elif variant == SPECIFIC:
                    visits[pair] += 1.0
                    squares[pair] += 2.0 * seen + 1.0
                    overlap[pair] += target.probability[row, following]
                    chance[pair] = simulation_chance(visits[pair], squares[pair], overlap[pair], target.square[row])
                explore = scheduled(settings.exploration, real + 1.0)
                until_mark -= 1
                if until_mark == 0:
                    record.curve[r, marks] = earned
                    marks += 1
                    until_mark = settings.curve_every
                s = following
                if s == ended:
                    u, state = uniform(state)
                    s = np.uint64(np.int64(u * ended))
        record.reward[r] = earned
        record.simulated[r] = simulated
