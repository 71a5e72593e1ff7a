"""Inexact policy iteration for many dense MDPs of medium size (some thirty to a thousand states).

Each MDP is solved by a loop around one backup, q = R + g ((1 - w) rows v + w target v), which never forms the mixture:

1. The backup bounds the error of v: |v - v*| <= |max q - v| / (1 - g mass). If all rows have the same mass, v first
   moves by the constant that makes the bound smallest (MacQueen): the slowest mode is gone. Stop when it is met.
2. Pairs that the bound proves suboptimal are never looked at again.
3. If the residual shrinks fast, the backup itself is the next v (value iteration; random dense rows need no more).
4. Otherwise GMRES evaluates the greedy policy from where v stands: loosely while the policy still moves, fully once it
   stays. Where GMRES stalls, as it does for nearly periodic chains, elimination takes over.

Rows in which most blocks of eight next states are empty are packed once per chain, and only full blocks are read; a row
that is the same everywhere, such as that of a pair without visits, is one number. One thread solves an MDP from start
to end, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.compiling import njit
from certeq.base.lanes import WIDTH, add_up, dot, fill, load, plus, store, total

SLACK = 32  # so many rows are packed before it is judged whether packing is worth it
SWEEPS = 16  # keep sweeping if at most this many more sweeps are expected
WARMUP = 3  # backups before GMRES may start
FORCING = 0.1  # GMRES reduces the residual by this factor while the policy still moves
DIRECT = 128  # up to so many states elimination takes no longer than GMRES
RESTART = 32  # Krylov vectors kept by GMRES
CYCLES = 4  # GMRES gives way to elimination when it expects more restarts than this
ROUNDS = 5  # an evaluation is refined at most this often
POLISH = 1e-3  # the residual goes below this part of the tolerance, so that exact ties are seen as ties
ROUNDING = 1e-14  # no relative residual below this is asked for
NOISE = 2e-15  # and one below this is zero: solving for rounding errors would magnify them and play with ties
TIE, TIE_ROUNDING = 1e-10, 1e-13  # as in certeq.planners.backup: what counts as a tie
ENDLESS = 1e-10  # a contraction closer to one than this gives no bound

# Numba compiles each function together with all it calls, again at every level: the upper levels are pasted in instead
_pasted = njit(inline="always")
_plain = njit(cache=True, nogil=True, error_model="numpy")


class MediumModel(NamedTuple):
    """One planned MDP, as views of the operands."""

    rows: Floats  # (S, A, S)
    sparse: bool  # whether the rows are packed
    weight: Floats  # (S, A)
    mixed: bool  # whether any weight is not zero
    target: Floats  # (1 or S, 1 or A, S)
    reward: Floats  # (S, A)
    discount: float


class Room(NamedTuple):
    """What one thread writes on: the packed rows of the chain at hand, and scratch for one solve."""

    packed: Floats  # (n, 8): the blocks of eight next states that are not all zero, row after row
    blocks: Any  # (n,): where in its row each block stands
    ends: Integers  # (S * A + 1,): the blocks of row i are ends[i] .. ends[i + 1]
    even: Floats  # (S * A,): what all entries of a row are that has no blocks, as it is the same everywhere
    mass: Floats  # (S, A): row sums
    target_mass: Floats  # (1 or S, 1 or A)
    target_value: Floats  # (1 or S, 1 or A): target . v, where several pairs share a target row
    alive: Booleans  # (S, A): allowed and not proved suboptimal
    q: Floats  # (S, A)
    r: Floats  # (S,): residual, max q - v
    padded: Floats  # (S + 8,): v, then zeros
    basis: Floats  # (RESTART + 1, S)
    triangle: Floats  # (RESTART, RESTART + 1): GMRES's Hessenberg matrix, rotated, one column per line
    rotation: Floats  # (RESTART, 2): cosines and sines
    rest: Floats  # (RESTART + 1,): the residual in the rotated basis


@_pasted
def _room(S: int, A: int, G: int, H: int) -> Room:
    size = (S * A // 2 + SLACK) * (S // WIDTH + 1)  # pages that are never touched cost nothing
    return Room(
        np.empty((size, WIDTH)), np.empty(size, np.uint16), np.zeros(S * A + 1, np.int64), np.zeros(S * A),
        np.empty((S, A)), np.empty((G, H)), np.empty((G, H)), np.ones((S, A), np.bool_), np.empty((S, A)),
        np.empty(S), np.zeros(S + WIDTH),
        np.empty((RESTART + 1, S)), np.empty((RESTART, RESTART + 1)), np.empty((RESTART, 2)), np.empty(RESTART + 1),
    )  # fmt: skip


@_plain
def _largest(x: Floats) -> float:
    top = 0.0
    for i in range(x.size):
        top = max(top, abs(x[i]))
    return top


@_plain
def _add(x: Floats, factor: float, y: Floats) -> None:
    times, blocks = fill(factor), x.size // WIDTH
    for i in range(blocks):
        store(x, i, plus(load(x, i), times, load(y, i)))
    for i in range(blocks * WIDTH, x.size):
        x[i] += factor * y[i]


@_plain
def _dot_blocks(packed: Floats, blocks: Any, low: int, high: int, v: Floats) -> float:
    lanes = fill(0.0)
    for k in range(low, high):
        lanes = plus(lanes, load(packed, k), load(v, blocks[k]))
    return total(lanes)


@_plain
def is_even(row: Floats) -> bool:
    """Whether all entries are the same, and not zero."""
    same = row[0] != 0.0
    if same:  # few rows get here, and without a way out the compiler looks at many entries at once
        for i in range(row.size):
            same &= row[i] == row[0]
    return same


@_plain
def _pack(rows: Floats, target: Floats, room: Room) -> bool:
    """Add up all rows, and copy the blocks that are not empty; False if that is not worth it, as half are full."""
    S, A, N = rows.shape
    packed, blocks = room.packed, room.blocks
    count, sparse = 0, True
    for s in range(S):
        for a in range(A):
            row = rows[s, a]
            room.mass[s, a] = add_up(row)
            if sparse:
                room.even[s * A + a] = row[0] if is_even(row) else 0.0
            if sparse and room.even[s * A + a] == 0.0:
                for i in range(N // WIDTH):
                    total = 0.0
                    for j in range(WIDTH):
                        total += row[i * WIDTH + j]
                    if total != 0.0:
                        store(packed, count, load(row, i))
                        blocks[count] = i
                        count += 1
                if N % WIDTH:
                    for j in range(WIDTH):
                        packed[count, j] = row[N // WIDTH * WIDTH + j] if j < N % WIDTH else 0.0
                    blocks[count] = N // WIDTH
                    count += 1
            room.ends[s * A + a + 1] = count
            if sparse:
                sparse = 2 * WIDTH * count <= (s * A + a + SLACK) * N
    for s in range(target.shape[0]):
        for a in range(target.shape[1]):
            room.target_mass[s, a] = add_up(target[s, a])
    return sparse


@_plain
def _expect(model: MediumModel, room: Room, policy: Any, every: bool, v: Floats) -> None:
    """``q[s, a]`` = expected v after pair (s, a), for the policy's pairs or for every pair alive."""
    rows, sparse, weight, mixed, target, _, _ = model
    packed, blocks, ends, even, _, _, shared, alive, q, _, padded, _, _, _, _ = room
    S, A = weight.shape
    for s in range(S):
        padded[s] = v[s]
    sum_ = add_up(v)
    for s in range(S):
        for a in range(0 if every else policy[s], A if every else policy[s] + 1):
            if alive[s, a]:
                if sparse:
                    pair = s * A + a
                    if even[pair] != 0.0:
                        q[s, a] = even[pair] * sum_
                    else:
                        q[s, a] = _dot_blocks(packed, blocks, ends[pair], ends[pair + 1], padded)
                else:
                    q[s, a] = dot(rows[s, a], v)
    if mixed:
        G, H = target.shape[:2]
        sharing = G == 1 or H == 1  # a target row belongs to several pairs: dot it with v once
        if sharing:
            for s in range(G):
                for a in range(H):
                    shared[s, a] = dot(target[s, a], v)
        for s in range(S):
            for a in range(0 if every else policy[s], A if every else policy[s] + 1):
                if alive[s, a]:
                    b, c, w = s if G > 1 else 0, a if H > 1 else 0, weight[s, a]
                    q[s, a] = (1.0 - w) * q[s, a] + w * (shared[b, c] if sharing else dot(target[b, c], v))


@_plain
def _residual(model: MediumModel, room: Room, policy: Any, v: Floats) -> float:
    """``r = reward + g P v - v`` under the policy; returns its largest absolute entry."""
    _expect(model, room, policy, False, v)
    noise = NOISE * _largest(v)
    for s in range(v.size):
        r = model.reward[s, policy[s]] + model.discount * room.q[s, policy[s]] - v[s]
        room.r[s] = r if abs(r) > noise else 0.0
    return _largest(room.r)


@_plain
def _cycle(model: MediumModel, room: Room, policy: Any, v: Floats, size: float, goal: float) -> float:
    """Move v, where the policy's residual is r with 2-norm ``size``, by GMRES; return the 2-norm that is left."""
    basis, h, turn, e = room.basis, room.triangle, room.rotation, room.rest
    for i in range(v.size):
        basis[0, i] = room.r[i] / size
    e[0], n = size, 0
    while n < RESTART and size > goal:
        x, y = basis[n], basis[n + 1]
        _expect(model, room, policy, False, x)
        for i in range(v.size):
            y[i] = x[i] - model.discount * room.q[i, policy[i]]
        for k in range(n + 1):
            h[n, k] = dot(y, basis[k])
            _add(y, -h[n, k], basis[k])
        below = np.sqrt(dot(y, y))
        for k in range(n):
            c, s = turn[k, 0], turn[k, 1]
            h[n, k], h[n, k + 1] = c * h[n, k] + s * h[n, k + 1], c * h[n, k + 1] - s * h[n, k]
        length = np.sqrt(h[n, n] ** 2 + below**2)
        if length == 0.0:  # singular
            break
        scale = 1.0 / below if below > 0.0 else 0.0
        for i in range(v.size):
            y[i] *= scale
        turn[n, 0], turn[n, 1], h[n, n] = h[n, n] / length, below / length, length
        e[n], e[n + 1] = turn[n, 0] * e[n], -turn[n, 1] * e[n]
        size = abs(e[n + 1])
        n += 1
    for k in range(n - 1, -1, -1):  # solve the triangle; e becomes the coordinates in the basis
        for j in range(k + 1, n):
            e[k] -= h[j, k] * e[j]
        e[k] /= h[k, k]
        _add(v, e[k], basis[k])
    return size


@_plain
def _subtract(matrix: Floats, s: int, k: int) -> None:
    """Clear entry (s, k) of a matrix by a multiple of row k, whose entries before k are zero."""
    if matrix[s, k] != 0.0:
        width = matrix.shape[1] // WIDTH
        factor = fill(-matrix[s, k] / matrix[k, k])
        for i in range(k // WIDTH, width):
            store(matrix, s * width + i, plus(load(matrix, s * width + i), factor, load(matrix, k * width + i)))
        matrix[s, k] = 0.0


@_plain
def _subtract_four(matrix: Floats, s: int, k: int) -> None:
    """The same for the four rows from s on, which row k is read once for."""
    one, two, three, four = matrix[s, k], matrix[s + 1, k], matrix[s + 2, k], matrix[s + 3, k]
    if one != 0.0 or two != 0.0 or three != 0.0 or four != 0.0:
        width, scale = matrix.shape[1] // WIDTH, -1.0 / matrix[k, k]
        a, b, c, d = fill(one * scale), fill(two * scale), fill(three * scale), fill(four * scale)
        at = s * width
        for i in range(k // WIDTH, width):
            row = load(matrix, k * width + i)
            store(matrix, at + i, plus(load(matrix, at + i), a, row))
            store(matrix, at + width + i, plus(load(matrix, at + width + i), b, row))
            store(matrix, at + 2 * width + i, plus(load(matrix, at + 2 * width + i), c, row))
            store(matrix, at + 3 * width + i, plus(load(matrix, at + 3 * width + i), d, row))
        for i in range(4):
            matrix[s + i, k] = 0.0


@_plain
def _eliminate(model: MediumModel, room: Room, policy: Any, v: Floats) -> None:
    """Move v, where the policy's residual is r, to its values by elimination, in which I - g P needs no pivots."""
    S, r = v.size, room.r
    matrix = np.zeros((S + 3, (S // WIDTH + 1) * WIDTH))  # r is its last column; rows beyond S stay empty
    g = min(model.discount, 1.0 - ENDLESS)  # never singular; if the policy ends, further rounds mend the difference
    last = matrix.shape[1] - 1
    for first in range(0, S, 4):
        for s in range(first, min(first + 4, S)):
            a = policy[s]
            b, c = min(s, model.target.shape[0] - 1), min(a, model.target.shape[1] - 1)
            w = model.weight[s, a]
            for i in range(S):
                matrix[s, i] = -g * ((1.0 - w) * model.rows[s, a, i] + w * model.target[b, c, i])
            matrix[s, s] += 1.0
            matrix[s, last] = r[s]
        for k in range(first):
            _subtract_four(matrix, first, k)
        for s in range(first, min(first + 4, S)):
            for k in range(first, s):
                _subtract(matrix, s, k)
    for s in range(S - 1, -1, -1):
        r[s] = (matrix[s, last] - dot(matrix[s, s + 1 : S], r[s + 1 :])) / matrix[s, s]
        v[s] += r[s]


@_pasted
def _evaluate(model: MediumModel, room: Room, policy: Any, v: Floats, goal: float) -> None:
    """Move v until the policy's residual, which is r at the start, is at most ``goal`` in the 2-norm."""
    size = np.sqrt(dot(room.r, room.r))
    if size > goal and v.size <= DIRECT:
        _eliminate(model, room, policy, v)
        return
    while size > goal:
        before = size
        size = _cycle(model, room, policy, v, before, goal)
        if size > goal:
            _residual(model, room, policy, v)
            size = np.sqrt(dot(room.r, room.r))
            if not size * (size / before) ** CYCLES <= goal:
                _eliminate(model, room, policy, v)
                break


@_pasted
def _masses(model: MediumModel, room: Room) -> tuple[float, float]:
    """Return the least and the greatest mass of a mixed row, among the pairs alive."""
    low, high = np.inf, 0.0
    G, H = room.target_mass.shape
    for s in range(room.mass.shape[0]):
        for a in range(room.mass.shape[1]):
            if room.alive[s, a]:
                w = model.weight[s, a]
                mass = (1.0 - w) * room.mass[s, a] + w * room.target_mass[min(s, G - 1), min(a, H - 1)]
                low, high = min(low, mass), max(high, mass)
    return low, high


@_pasted
def _goal(tolerance: float, gap: float, scale: float) -> float:
    """Return the residual to reach: the error is at most residual / gap, unless the gap is too small to say so."""
    return max(tolerance * min(gap if gap > ENDLESS else 1.0, POLISH), ROUNDING) * scale


@_pasted
def _plan(
    model: MediumModel, room: Room, tolerance: float, max_iterations: int, v: Floats, policy: Any
) -> tuple[int, float]:
    """Move v to the optimal values, and the policy with it; return the number of backups and the residual."""
    reward, g, q, r, alive = model.reward, model.discount, room.q, room.r, room.alive
    S, A = q.shape
    least, greatest = _masses(model, room)
    gap = 1.0 - g * greatest
    bounded = gap > ENDLESS
    even = bounded and greatest - least <= 1e-12  # all rows have the same mass
    last, goal, forcing, slow, iterations = np.inf, 0.0, FORCING, False, 0
    while True:
        iterations += 1
        _expect(model, room, policy, True, v)
        low, high, moved, noise = np.inf, -np.inf, False, NOISE * _largest(v)
        bottom, ceiling = np.inf, -np.inf
        for s in range(S):
            top, best = -np.inf, 0
            for a in range(A):
                if alive[s, a]:
                    q[s, a] = reward[s, a] + g * q[s, a]
                    if q[s, a] > top:
                        top, best = q[s, a], a
                    bottom = min(bottom, q[s, a])
            ceiling = max(ceiling, top)
            if top > q[s, policy[s]] + 0.1 * goal:  # the old action stays where it is as good
                policy[s], moved = best, True
            r[s] = top - v[s] if abs(top - v[s]) > noise else 0.0
            low, high = min(low, r[s]), max(high, r[s])
        tie = TIE * (ceiling - bottom) + TIE_ROUNDING * max(ceiling, -bottom)
        middle = 0.0
        if even and (high - low > tie or not slow):  # the residual of v + shift is r - gap * shift
            middle = 0.5 * (low + high)
            for s in range(S):
                v[s] += middle / gap
                r[s] -= middle
        size = max(high - middle, middle - low)
        goal = _goal(tolerance, gap, _largest(v))
        if size <= goal and (bounded or (slow and not moved)):
            break
        if iterations >= max_iterations:
            iterations += 1  # one more than allowed: not done
            break
        for s in range(S):
            for a in range(A):
                alive[s, a] &= not bounded or q[s, a] >= q[s, policy[s]] - 2.0 * (g * size / gap + tie)
        if slow and size > 0.5 * last:  # such a loose evaluation leads nowhere
            forcing *= 0.01
        if slow or (iterations >= WARMUP and not (bounded and size * (size / last) ** SWEEPS <= goal)):
            enough = forcing * np.sqrt(dot(r, r)) if moved or not slow else 0.0
            _evaluate(model, room, policy, v, max(0.5 * goal, enough))
            slow = True
        else:
            _add(v, 1.0, r)
        last = size
    for s in range(S):
        a, best = 0, policy[s]
        while a < best and not (alive[s, a] and q[s, a] >= q[s, best] - tie):
            a += 1
        policy[s] = a
    return iterations, size


@_plain
def plan_medium(
    start: int, stop: int, rows: Floats, rows_of: Integers, weight: Floats, weight_of: Integers, target: Floats,
    target_of: Integers, reward: Floats, reward_of: Integers, discount: Floats, discount_of: Integers,
    allowed: Booleans, allowed_of: Integers, tolerance: float, max_iterations: int, policy: Any, values: Floats,
    iterations: Integers, residual: Floats,
) -> int:  # fmt: skip
    """Plan chains ``start`` to ``stop``; each step of a chain starts from the values of the step before it.

    ``iterations`` is larger than ``max_iterations`` where they did not suffice. Returns -1, as nothing can be at fault:
    unlike ``plan_small``, the rows are checked before.

    All arrays are C-contiguous and writable (Numba would compile once more for those that are not). See ``Operands``.
    """
    S, A = weight.shape[1:]
    room = _room(S, A, target.shape[1], target.shape[2])
    for k in range(start, stop):
        T, G = rows[rows_of[k]], target[target_of[k]]
        if k == start or rows_of[k] != rows_of[k - 1] or target_of[k] != target_of[k - 1]:
            sparse = _pack(T, G, room)
        for step in range(weight_of.shape[1]):
            w, R, g = weight[weight_of[k, step]], reward[reward_of[k, step]], discount[discount_of[k, step]]
            v, pi = values[k, step], policy[k, step]
            for s in range(S):
                pi[s] = -1
                for a in range(A):
                    room.q[s, a] = 0.0
                    room.alive[s, a] = allowed[allowed_of[k], s, a]
                    if room.alive[s, a] and (pi[s] < 0 or R[s, a] > R[s, pi[s]]):
                        pi[s] = a
                v[s] = values[k, step - 1, s] if step > 0 else R[s, pi[s]]
            model = MediumModel(T, sparse, w, w.any(), G, R, g)
            iterations[k, step], residual[k, step] = _plan(model, room, tolerance, max_iterations, v, pi)
    return -1


@_plain
def evaluate_medium(
    start: int, stop: int, rows: Floats, rows_of: Integers, weight: Floats, weight_of: Integers, target: Floats,
    target_of: Integers, reward: Floats, reward_of: Integers, discount: Floats, discount_of: Integers, policy: Any,
    tolerance: float, values: Floats, residual: Floats,
) -> None:  # fmt: skip
    """Evaluate the policies of chains ``start`` to ``stop``; each step starts from the values of the step before it."""
    S, A = weight.shape[1:]
    room = _room(S, A, target.shape[1], target.shape[2])
    for k in range(start, stop):
        T, G = rows[rows_of[k]], target[target_of[k]]
        if k == start or rows_of[k] != rows_of[k - 1] or target_of[k] != target_of[k - 1]:
            sparse = _pack(T, G, room)
        for step in range(weight_of.shape[1]):
            w, R, g = weight[weight_of[k, step]], reward[reward_of[k, step]], discount[discount_of[k, step]]
            v, pi = values[k, step], policy[k, step]
            model = MediumModel(T, sparse, w, w.any(), G, R, g)
            mean = 0.0
            for s in range(S):
                mean += R[s, pi[s]] / S
            for s in range(S):  # start from the best constant of an ordinary MDP: the values will be about as large
                v[s] = values[k, step - 1, s] if step > 0 else mean / max(1.0 - g, ENDLESS)
            for _ in range(ROUNDS):
                size = _residual(model, room, pi, v)
                residual[k, step] = size
                goal = _goal(tolerance, 1.0 - g, max(_largest(v), 0.5 * size))  # as |r| <= 2 |v - values|
                if size <= goal:
                    break
                _evaluate(model, room, pi, v, 0.5 * goal)
