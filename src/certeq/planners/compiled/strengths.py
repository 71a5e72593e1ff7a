"""Policy iteration for one MDP of medium size at eight strengths side by side, where data rows are sparse.

Along a chain only weights, rewards and discounts change. So the values are a table with a column for each of eight
strengths, in the lanes of a register: each entry of a data row is read once for all of them, and what the target says
is one number per strength, as all pairs share its row.

1. The backup q = R + g ((1 - w) rows v + w target v) bounds the error: |v - v*| <= |max q - v| / (1 - g mass). A
   strength that meets its goal is left as it is while the others go on.
2. BiCGStab evaluates the greedy policy from where v stands: loosely while the policy still moves, fully once it stays.
   It is preconditioned by a sweep of Gauss and Seidel through the data rows, which costs nothing: the part of a row
   before the diagonal is read when the sweep is solved, the part behind it when the operator is applied.

Lanes never mix, so one that breaks down takes no other along. A chain with rows that are not sparse, or with a strength
that is not certified in the end, is left to ``medium``. One thread plans a chain from start to end, so results do not
depend on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.base.compiling import njit
from certeq.base.lanes import (
    WIDTH,
    add_up,
    anywhere,
    fill,
    gather,
    larger,
    load,
    minus,
    plus,
    room,
    scatter,
    smaller,
    store,
    where_equal,
    where_greater,
)
from certeq.planners.compiled.medium import ENDLESS, NOISE, POLISH, ROUNDING, TIE, TIE_ROUNDING, is_even

FULL = 4  # rows are sparse if at most one in so many entries is not zero
FORCING = 0.01  # an evaluation reduces the residual by this factor while the policy still moves
STEPS = 100  # of BiCGStab, at most, for one evaluation
REFINED = 5  # times that a policy is valued at most, each from what was left
ROUNDS = 40  # backups; a chain that needs more is left to ``medium``

_compile = njit(cache=True, nogil=True, error_model="numpy")


class ThinRows(NamedTuple):
    """The data rows of a chain, without what is zero, and the target row that all pairs share."""

    entry: Floats  # (n,): row after row, first what lies before the diagonal, then what lies behind it
    column: Any  # (n,): the next state of each entry
    ends: Any  # (S * A + 1,): the entries of row i are ends[i] .. ends[i + 1]; without sign, which makes loops quicker
    cut: Any  # (S * A,): the first entry of a row that lies behind the diagonal
    stay: Floats  # (S * A,): the entry on the diagonal
    even: Floats  # (S * A,): what all entries are, where they are the same: such a row has none of the above
    mass: Floats  # (S * A,): row sums
    target: Floats  # (S,)
    allowed: Booleans  # (S, A)


class Eight(NamedTuple):
    """What belongs to eight strengths: groups of lanes."""

    reward: Any  # (S, A)
    keep: Any  # (S, A): g (1 - w)
    pull: Any  # (S, A): g w
    discount: Any  # (1,)
    q: Any  # (S, A)
    v: Any  # (S,)
    policy: Any  # (S,): as floats
    r: Any  # (S,): residual of the policy
    taken: Any  # (S, A): keep where the policy takes the action, else 0; or g times its chance of taking it
    used: Booleans  # (S, A): whether that is anywhere
    pulled: Any  # (S,): pull of the policy's action
    spread: Any  # (S,): what the policy's row has everywhere
    inverse: Any  # (S,): 1 / what the policy's row has on the diagonal
    shadow: Any  # (S,): from here on BiCGStab's vectors
    p: Any  # (S,)
    through_p: Any  # (S,)
    z: Any  # (S,)
    through_r: Any  # (S,)
    y: Any  # (S,)
    gain: Any  # (S,): what the policy earns at once


@_compile
def _data(S: int, A: int) -> ThinRows:
    size = S * A * S // FULL + S  # pages that are never touched cost nothing
    return ThinRows(
        np.empty(size), np.empty(size, np.uint32), np.zeros(S * A + 1, np.uint64), np.zeros(S * A, np.uint64),
        np.empty(S * A), np.empty(S * A), np.empty(S * A), np.empty(S), np.empty((S, A), np.bool_),
    )  # fmt: skip


@_compile
def _side(S: int, A: int) -> Eight:
    P = S * A
    return Eight(
        room(P), room(P), room(P), room(1), room(P), room(S), room(S), room(S), room(P), np.empty(P, np.bool_),
        room(S), room(S), room(S), room(S), room(S), room(S), room(S), room(S), room(S), room(S),
    )  # fmt: skip


@_compile
def _read(rows: Floats, target: Floats, allowed: Booleans, data: ThinRows) -> bool:
    """Keep what is not zero; False if that is too much."""
    S, A = allowed.shape
    entry, column, count = data.entry, data.column, 0
    for s in range(S):
        data.target[s] = target[s]
        for a in range(A):
            data.allowed[s, a] = allowed[s, a]
            row, pair = rows[s, a], s * A + a
            same = is_even(row)
            data.mass[pair] = add_up(row)
            data.even[pair] = row[0] if same else 0.0
            data.stay[pair] = 0.0 if same else row[s]
            if count + S > entry.size:
                return False
            for j in range(s):
                if row[j] != 0.0 and not same:
                    entry[count], column[count] = row[j], j
                    count += 1
            data.cut[pair] = count
            for j in range(s + 1, S):
                if row[j] != 0.0 and not same:
                    entry[count], column[count] = row[j], j
                    count += 1
            data.ends[pair + 1] = count
    return True


@_compile
def _along(data: ThinRows, first: int, last: int, x: Any) -> Any:
    """Entries ``first`` to ``last`` times x, added up."""
    sum_ = fill(0.0)
    for k in range(first, last):
        sum_ = plus(sum_, fill(data.entry[k]), load(x, data.column[k]))
    return sum_


@_compile
def _prepare(data: ThinRows, side: Eight) -> Any:
    """Split weights into what is kept and what is pulled; return the greatest g times mass of a mixed row."""
    S, A = data.allowed.shape
    g, one, most, pulling = load(side.discount, 0), fill(1.0), fill(0.0), fill(add_up(data.target))
    for s in range(S):
        for a in range(A):
            pair = s * A + a
            w = load(side.pull, pair)
            keep, pull = g * (one - w), g * w
            store(side.keep, pair, keep)
            store(side.pull, pair, pull)
            if data.allowed[s, a]:
                most = larger(most, plus(keep * fill(data.mass[pair]), pull, pulling))
    return most


@_compile
def _backup(data: ThinRows, side: Eight, margin: Any) -> tuple[Any, Any, Any, Any]:
    """Set q of all pairs, the greedy policy, which leaves an action only for one that is better by the margin, and r.

    Returns the largest |max q - v| and |v|, 1 where the policy moved, and what counts as a tie.
    """
    S, A = data.allowed.shape
    v, zero, one = side.v, fill(0.0), fill(1.0)
    sum_, pulled, scale = zero, zero, zero
    for s in range(S):
        x = load(v, s)
        sum_, pulled = sum_ + x, plus(pulled, fill(data.target[s]), x)
        scale = larger(scale, larger(x, zero - x))
    noise = fill(NOISE) * scale
    size, moved, bottom, ceiling = zero, zero, fill(np.inf), fill(-np.inf)
    for s in range(S):
        x, old = load(v, s), load(side.policy, s)
        top, best, held = fill(-np.inf), zero, fill(-np.inf)
        for a in range(A):
            if data.allowed[s, a]:
                pair, action = s * A + a, fill(float(a))
                row = plus(fill(data.even[pair]) * sum_, fill(data.stay[pair]), x)
                row = row + _along(data, data.ends[pair], data.ends[pair + 1], v)
                q = plus(plus(load(side.reward, pair), load(side.keep, pair), row), load(side.pull, pair), pulled)
                store(side.q, pair, q)
                best = where_greater(q, top, action, best)
                top, bottom = larger(q, top), smaller(q, bottom)
                held = where_equal(old, action, q, held)
        ceiling = larger(top, ceiling)
        better = where_greater(top, held + margin, one, zero)
        moved = larger(better, moved)
        store(side.policy, s, where_greater(better, zero, best, old))
        r, away = where_greater(better, zero, top, held) - x, top - x
        store(side.r, s, where_greater(larger(r, zero - r), noise, r, zero))
        away = larger(away, zero - away)
        size = larger(where_greater(noise, away, zero, away), size)
    tie = plus(fill(TIE) * (ceiling - bottom), fill(TIE_ROUNDING), larger(ceiling, zero - bottom))
    return where_equal(sum_, sum_, size, sum_), scale, moved, tie  # what is no number stays none


@_compile
def _take(data: ThinRows, side: Eight) -> None:
    """Write down what the policy keeps of the data, and what it pulls to the target."""
    S, A = data.allowed.shape
    zero = fill(0.0)
    for s in range(S):
        policy, pulled = load(side.policy, s), zero
        for a in range(A):
            pair, action = s * A + a, fill(float(a))
            store(side.taken, pair, where_equal(policy, action, load(side.keep, pair), zero))
            pulled = where_equal(policy, action, load(side.pull, pair), pulled)
        store(side.pulled, s, pulled)


@_compile
def _settle(data: ThinRows, side: Eight) -> None:
    """Add up what the rows that are taken have everywhere, and on the diagonal."""
    S, A = data.allowed.shape
    one = fill(1.0)
    for s in range(S):
        spread, diagonal = fill(0.0), one
        for pair in range(s * A, s * A + A):
            taken = load(side.taken, pair)
            side.used[pair] = anywhere(taken)
            spread = plus(spread, taken, fill(data.even[pair]))
            diagonal = minus(diagonal, taken, fill(data.stay[pair]))
        store(side.spread, s, spread)
        store(side.inverse, s, one / diagonal)


@_compile
def _apply(data: ThinRows, side: Eight, y: Any, z: Any, out: Any) -> None:
    """``z`` = y after a sweep of Gauss and Seidel, and ``out`` = (I - g P) z under the policy."""
    S, A = data.allowed.shape
    sum_, pulled = fill(0.0), fill(0.0)
    for s in range(S):
        x = load(y, s)
        for pair in range(s * A, s * A + A):
            if side.used[pair]:
                x = plus(x, load(side.taken, pair), _along(data, data.ends[pair], data.cut[pair], z))
        x = x * load(side.inverse, s)
        store(z, s, x)
        sum_, pulled = sum_ + x, plus(pulled, fill(data.target[s]), x)
    for s in range(S):
        x = minus(minus(load(y, s), load(side.spread, s), sum_), load(side.pulled, s), pulled)
        for pair in range(s * A, s * A + A):
            if side.used[pair]:
                x = minus(x, load(side.taken, pair), _along(data, data.cut[pair], data.ends[pair + 1], z))
        store(out, s, x)


@_compile
def _inner(x: Any, y: Any, S: int) -> Any:
    sum_ = fill(0.0)
    for s in range(S):
        sum_ = plus(sum_, load(x, s), load(y, s))
    return sum_


@_compile
def _ratio(x: Any, y: Any) -> Any:
    """x / y, or 0 where that is no number."""
    ratio = x / y
    return where_equal(ratio - ratio, fill(0.0), ratio, fill(0.0))


@_compile
def _evaluate(data: ThinRows, side: Eight, enough: Any) -> None:
    """Move v until the residual of the policy, r, has at most the square norm ``enough``, by BiCGStab.

    A lane that has enough takes steps of length zero. One that breaks down ends as no number, and is seen to later.
    """
    S, zero, one = data.allowed.shape[0], fill(0.0), fill(1.0)
    for s in range(S):
        store(side.shadow, s, load(side.r, s))
        store(side.p, s, zero)
        store(side.through_p, s, zero)
    rho, alpha, omega, left = one, one, one, _inner(side.r, side.r, S)
    for _ in range(STEPS):
        if not anywhere(where_greater(left, enough, one, zero)):
            break
        before, rho = rho, _inner(side.shadow, side.r, S)
        beta = where_greater(left, enough, _ratio(rho, before) * _ratio(alpha, omega), zero)
        for s in range(S):
            p = minus(load(side.p, s), omega, load(side.through_p, s))
            store(side.p, s, plus(load(side.r, s), beta, p))
        _apply(data, side, side.p, side.z, side.through_p)
        alpha = where_greater(left, enough, _ratio(rho, _inner(side.shadow, side.through_p, S)), zero)
        for s in range(S):
            store(side.r, s, minus(load(side.r, s), alpha, load(side.through_p, s)))
        _apply(data, side, side.r, side.y, side.through_r)
        omega = _ratio(_inner(side.through_r, side.r, S), _inner(side.through_r, side.through_r, S))
        omega = where_greater(left, enough, omega, zero)
        left = zero
        for s in range(S):
            r = minus(load(side.r, s), omega, load(side.through_r, s))
            store(side.r, s, r)
            left = plus(left, r, r)
            store(side.v, s, plus(plus(load(side.v, s), alpha, load(side.z, s)), omega, load(side.y, s)))


@_compile
def _note_lowest(data: ThinRows, side: Eight, tie: Any) -> None:
    """Let the policy be the lowest of the tied actions."""
    S, A = data.allowed.shape
    for s in range(S):
        policy, least = load(side.policy, s), fill(-np.inf)
        for a in range(A):
            least = where_equal(policy, fill(float(a)), load(side.q, s * A + a) - tie, least)
        for a in range(A - 1, -1, -1):
            if data.allowed[s, a]:
                policy = where_greater(least, load(side.q, s * A + a), policy, fill(float(a)))
        store(side.policy, s, policy)


@_compile
def _plan(data: ThinRows, side: Eight, tolerance: float, limit: int) -> tuple[int, Any]:
    """Move v and the policy to the best; return the number of backups, 0 if not all lanes are certified, and |r|."""
    S, zero, one = data.allowed.shape[0], fill(0.0), fill(1.0)
    gap = one - _prepare(data, side)
    rounds, margin, size = 0, zero, fill(np.inf)
    if anywhere(where_greater(gap, fill(ENDLESS), zero, one)):
        return 0, size
    part = larger(fill(tolerance) * smaller(gap, fill(POLISH)), fill(ROUNDING))
    while rounds < min(limit, ROUNDS):
        rounds += 1
        size, scale, moved, tie = _backup(data, side, margin)
        goal = part * scale
        margin = fill(0.1) * goal
        if not anywhere(where_greater(size, goal, one, where_equal(size, size, zero, one))):  # nor is any no number
            _note_lowest(data, side, tie)
            return rounds, size
        enough = where_greater(moved, zero, fill(FORCING**2) * _inner(side.r, side.r, S), zero)
        enough = larger(enough, fill(0.25) * goal * goal)
        _take(data, side)
        _settle(data, side)
        _evaluate(data, side, where_greater(size, goal, enough, fill(np.inf)))
    return 0, size


@_compile
def plan_strengths(
    start: int, stop: int, rows: Floats, rows_of: Integers, weight: Floats, weight_of: Integers, target: Floats,
    target_of: Integers, reward: Floats, reward_of: Integers, discount: Floats, discount_of: Integers,
    allowed: Booleans, allowed_of: Integers, tolerance: float, max_iterations: int, policy: Any, values: Floats,
    iterations: Integers, residual: Floats,
) -> int:  # fmt: skip
    """Plan chains ``start`` to ``stop``, as ``plan_medium`` does; those that are left to it have 0 ``iterations``.

    All pairs share a target row: (n, 1, 1, S).
    """
    S, A, L = rows.shape[1], rows.shape[2], weight_of.shape[1]
    data, side = _data(S, A), _side(S, A)
    weights, rewards, discounts = weight.reshape(-1, S * A), reward.reshape(-1, S * A), discount.reshape(-1, 1)
    all_policy, all_values = policy.reshape(-1, S), values.reshape(-1, S)
    all_iterations, all_residual = iterations.reshape(-1), residual.reshape(-1)
    of, lines, sizes = np.empty(WIDTH, np.int64), np.empty(WIDTH, np.int64), np.empty(WIDTH)
    for k in range(start, stop):
        iterations[k] = 0
        if not _read(rows[rows_of[k]], target[target_of[k], 0, 0], allowed[allowed_of[k]], data):
            continue
        for first in range(0, L, WIDTH):
            for lane in range(WIDTH):
                lines[lane] = min(first + lane, L - 1)  # the last one fills lanes that are left
                of[lane] = weight_of[k, lines[lane]]
            gather(weights, of, side.pull, 0)
            for lane in range(WIDTH):
                of[lane] = reward_of[k, lines[lane]]
            gather(rewards, of, side.reward, 0)
            for lane in range(WIDTH):
                of[lane] = discount_of[k, lines[lane]]
            gather(discounts, of, side.discount, 0)
            for s in range(S):
                if first > 0:  # go on from the strength before
                    store(side.v, s, fill(side.v[s * WIDTH + WIDTH - 1]))
                    store(side.policy, s, fill(side.policy[s * WIDTH + WIDTH - 1]))
                else:
                    _begin(data, side, s)
            rounds, size = _plan(data, side, tolerance, max_iterations)
            if rounds == 0:
                iterations[k] = 0
                break
            store(sizes, 0, size)
            for lane in range(WIDTH):
                lines[lane] += k * L
                all_iterations[lines[lane]], all_residual[lines[lane]] = rounds, sizes[lane]
            scatter(side.v, 0, lines, all_values)
            scatter(side.policy, 0, lines, all_policy)
    return -1


@_compile
def _begin(data: ThinRows, side: Eight, s: int) -> None:
    """Start with the action that earns most at once."""
    best, top, A = fill(0.0), fill(-np.inf), data.allowed.shape[1]
    for a in range(A):
        if data.allowed[s, a]:
            reward = load(side.reward, s * A + a)
            best, top = where_greater(reward, top, fill(float(a)), best), larger(reward, top)
    store(side.v, s, top)
    store(side.policy, s, best)


@_compile
def _residual(data: ThinRows, side: Eight) -> tuple[Any, Any]:
    """``r = reward + g P v - v``, where the policy's reward is in ``side.gain``; returns the largest |r| and |v|."""
    S, A = data.allowed.shape
    zero = fill(0.0)
    sum_, size, scale = zero, zero, zero
    for s in range(S):
        sum_ = sum_ + load(side.v, s)
    for s in range(S):
        x = load(side.v, s)
        r = plus(load(side.gain, s), load(side.spread, s), sum_)
        for pair in range(s * A, s * A + A):
            if side.used[pair]:
                row = plus(_along(data, data.ends[pair], data.ends[pair + 1], side.v), fill(data.stay[pair]), x)
                r = plus(r, load(side.taken, pair), row)
        r = r - x
        store(side.r, s, r)
        size, scale = larger(larger(r, zero - r), size), larger(larger(x, zero - x), scale)
    return where_equal(sum_, sum_, size, sum_), scale


@_compile
def value_policies(
    start: int, stop: int, rows: Floats, reward: Floats, discount: float, of: Integers, chance: Floats,
    tolerance: float, values: Floats, done: Booleans,
) -> None:  # fmt: skip
    """Value policies ``start`` to ``stop``, of which each takes actions with some chance ``(S, A)``, in MDP ``of[i]``.

    Eight lie side by side if they belong to the same MDP, and the answer for one does not depend on its neighbors.
    Those in rows that are not sparse, or that are not certified, are not ``done``.
    """
    S, A = rows.shape[1:3]
    data, side = _data(S, A), _side(S, A)
    chances, lines, every = chance.reshape(-1, S * A), np.empty(WIDTH, np.int64), np.ones((S, A), np.bool_)
    no_target, g, zero = np.zeros(S), fill(discount), fill(0.0)
    part = fill(max(tolerance * min(1.0 - discount, POLISH), ROUNDING))
    first, read, sparse = start, -1, False
    while first < stop:
        world, last = of[first], first + 1
        while last < min(first + WIDTH, stop) and of[last] == world:
            last += 1
        for i in range(first, last):
            done[i] = False
        if world != read:
            sparse, read = _read(rows[world], no_target, every, data), world
        for lane in range(WIDTH):
            lines[lane] = min(first + lane, last - 1)
        first = last
        if not sparse:
            continue
        gather(chances, lines, side.taken, 0)
        mean = zero
        for s in range(S):
            gain = zero
            for a in range(A):
                pair = s * A + a
                taken = load(side.taken, pair)
                gain = plus(gain, taken, fill(reward[world, s, a]))
                store(side.taken, pair, g * taken)
            store(side.gain, s, gain)
            store(side.pulled, s, zero)
            mean = mean + gain / fill(float(S))
        for s in range(S):  # start from the best constant of an ordinary MDP, as in ``medium``
            store(side.v, s, mean / fill(1.0 - discount))
        _settle(data, side)
        for _ in range(REFINED):
            size, scale = _residual(data, side)
            goal = part * larger(scale, fill(0.5) * size)
            still = where_greater(size, goal, fill(1.0), where_equal(size, size, zero, fill(1.0)))
            if not anywhere(still):
                break
            _evaluate(data, side, where_greater(size, goal, fill(0.25) * goal * goal, fill(np.inf)))
        store(side.r, 0, still)
        for lane in range(WIDTH):
            done[lines[lane]] = side.r[lane] == 0.0
        scatter(side.v, 0, lines, values)
