"""Policy iteration for many small MDPs, eight at a time.

Eight chains sit side by side in the lanes of vector registers (see ``lanes``). Each policy is evaluated exactly by
elimination: the rows of I - γP are diagonally dominant, so no pivoting is needed and all eight go through the same
steps. A few value-iteration sweeps give the first policy; after that, each step of a chain starts from the plan of the
step before. The regularized rows (1 - w)·data + w·target exist only inside the system that is being solved.

All that a block of eight needs stands in one array ``w``, and `Places` tells where: it stays in the nearest cache, and
one array is passed around instead of fifteen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.compiling import njit
from certeq.base.lanes import (
    WIDTH,
    anywhere,
    as_written,
    fill,
    gather,
    larger,
    load,
    minus,
    plus,
    prefetch,
    room,
    scatter,
    smaller,
    store,
    where_equal,
    where_greater,
)

START_SWEEPS = 3  # value-iteration sweeps before the first policy is evaluated
TIE, ROUNDING = 1e-10, 1e-13  # as in certeq.planners.backup: what counts as a tie
MASS_TOLERANCE = 1e-9  # as in certeq.model.kernel

_compile = njit(cache=True, nogil=True, error_model="numpy")
_lean = njit(inner=True, lean=True, nogil=True, error_model="numpy")


class Places(NamedTuple):
    """Sizes, and where each table begins in the workspace, counted in groups of eight lanes."""

    S: int
    A: int
    N: int  # S, or S + 1 if that is even
    GS: int  # the target has GS x GA rows; none at all if they are zero
    GA: int
    flat: bool  # whether the target is one row that has the same entry everywhere, such as the uniform one
    T: int  # (S, A, S) data rows
    G: int  # (GS, GA, S) target rows
    weight: int  # (S, A)
    R: int  # (S, A), minus infinity where an action is not allowed
    Q: int  # (S, A)
    D: int  # (S, A): expected value after each data row
    F: int  # (GS, GA): expected value after each target row; without any, one zero
    B: int  # (S,): best Q
    P: int  # (S,): policy, as floats
    L: int  # (S,): lowest tied actions, likewise
    V: int  # (N,)
    M: int  # (N, N + 1): a linear system, right-hand side last
    discount: int
    end: int


@_lean
def _places(S: int, A: int, GS: int, GA: int, flat: bool) -> Places:
    pairs, targets, N = S * A, GS * GA, S + S % 2
    G = pairs * S
    weight = G + targets * S
    R, Q, D, F = weight + pairs, weight + 2 * pairs, weight + 3 * pairs, weight + 4 * pairs
    B = F + max(targets, 1)
    P, L, V = B + S, B + 2 * S, B + 3 * S
    M = V + N
    discount = M + N * (N + 1)
    return Places(S, A, N, GS, GA, flat, 0, G, weight, R, Q, D, F, B, P, L, V, M, discount, discount + 1)


@_lean
def _shape(target: Any) -> Any:
    """Sizes GS and GA of the target, 0 if all is zero, and whether it is flat."""
    rows, flat = target.reshape(-1, target.shape[3]), target.shape[1] == 1 and target.shape[2] == 1
    some = False
    for row in rows:
        for entry in row:
            some |= entry != 0.0
            flat &= entry == row[0]
    return (target.shape[1], target.shape[2], flat) if some else (0, 0, False)


@_lean
def _fetch(first: int, stop: int, step: int, source: Any, of: Any, memory: Any, what: int, w: Any, at: int) -> bool:
    """Put the lines of eight chains into their lanes, unless they are there, and tell whether that changed anything.

    ``memory`` of this, its line ``what``, says which lines are there. Past the last chain, lanes repeat it. See
    `Operands` for ``of``.
    """
    held = memory[what]
    if (source.shape[0] == 1 and held[0] == 0) or (step > 0 and of.shape[1] == 1):
        return False  # there is nothing else to fetch
    changed, column, last = False, min(step, of.shape[1] - 1), min(stop, of.shape[0]) - 1
    if last == 0:  # all lanes have the same line
        line = of[0, column]
        if held[0] == line:
            return False
        held[0] = line
        for entry in range(source.shape[1]):
            as_written()
            store(w, at + entry, fill(float(source[line, entry])))
        return True
    for lane in range(WIDTH):
        line = of[min(first + lane, last), column]
        changed |= held[lane] != line
        held[lane] = line
    if changed:
        gather(source, held, w, at)
    return changed


@_lean
def _ask_ahead(first: int, stop: int, half: int, source: Any, of: Any) -> None:
    """Ask for half of the lines that the next block will fetch, while this one is worked on."""
    for lane in range(half * WIDTH // 2, (half + 1) * WIDTH // 2):
        prefetch(source, of[min(first + WIDTH + lane, stop - 1), 0])


@_lean
def _rows_are_good(w: Any, at: Places, unclear: float) -> bool:
    """Check, while the rows are in cache, that all are probabilities that sum to at most one. NaN fails.

    Neither may they lack so little, less than ``unclear``, that it could be rounding to single precision.
    """
    zero, one = fill(0.0), fill(1.0)
    limit = fill(1.0 + 1.001 * MASS_TOLERANCE)  # a little more than `check_rows`, which has to find what is wrong
    clear, whole = fill(1.0 - unclear), fill(1.0 - MASS_TOLERANCE)
    bad = zero
    for row in range(at.S * at.A):
        mass, least = zero, zero
        for j in range(at.S):
            as_written()
            p = load(w, at.T + row * at.S + j)
            mass = mass + p
            least = smaller(p, least)
        bad = where_greater(zero, least, one, bad)
        bad = where_greater(limit, mass, bad, one)
        bad = where_greater(mass, clear, where_greater(whole, mass, one, bad), bad)
    return not anywhere(bad)


@_lean
def _expect(w: Any, rows: int, V: int, out: int, count: int, S: int) -> None:
    """``out`` = rows times V; four rows at a time, so that each value is read once for all four."""
    fours = count - count % 4
    for i in range(0, fours, 4):
        first = rows + i * S
        a, b, c, d = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for j in range(S):
            as_written()
            v = load(w, V + j)
            a = plus(a, load(w, first + j), v)
            b = plus(b, load(w, first + S + j), v)
            c = plus(c, load(w, first + 2 * S + j), v)
            d = plus(d, load(w, first + 3 * S + j), v)
        store(w, out + i, a)
        store(w, out + i + 1, b)
        store(w, out + i + 2, c)
        store(w, out + i + 3, d)
    for i in range(fours, count):
        a = fill(0.0)
        for j in range(S):
            as_written()
            a = plus(a, load(w, rows + i * S + j), load(w, V + j))
        store(w, out + i, a)


@_lean
def _backup(w: Any, at: Places, V: int) -> Any:
    """Back the values that stand at V up into Q and its best B. Returns what is rounding among Q, and what is a tie."""
    _expect(w, at.G, V, at.F, at.GS * at.GA, at.S)  # first, as one row alone has to wait for itself
    _expect(w, at.T, V, at.D, at.S * at.A, at.S)
    return _mix(w, at)


@_lean
def _mix(w: Any, at: Places) -> Any:
    """The rest of a backup, where it is known what to expect: D after the data's rows, F after the target's."""
    S, A = at.S, at.A
    discount, never, top = load(w, at.discount), fill(-np.inf), fill(np.inf)
    by_state, by_action = at.GA if at.GS > 1 else 0, 1 if at.GA > 1 else 0
    low, high = top, never
    for s in range(S):
        best, pair, other = never, s * A, at.F + s * by_state
        for _ in range(A):
            as_written()
            future = load(w, at.D + pair)
            future = plus(future, load(w, at.weight + pair), load(w, other) - future)
            q = plus(load(w, at.R + pair), discount, future)
            store(w, at.Q + pair, q)
            best = larger(q, best)
            low = smaller(where_greater(q, never, q, top), low)  # what is not allowed has no say
            pair, other = pair + 1, other + by_action
        store(w, at.B + s, best)
        high = larger(best, high)
    rounding = fill(ROUNDING) * larger(high, fill(0.0) - low)  # the larger of |low| and |high|
    return rounding, plus(rounding, fill(TIE), high - low)


@_lean
def _improve(w: Any, at: Places, rounding: Any) -> Any:
    """Improve the policy P by Q, and return the lanes in which it changed (1 or 0).

    P leaves an action only for one that is better by more than rounding, so that the iteration must end.
    """
    S, A = at.S, at.A
    changed, one, never = fill(0.0), fill(1.0), fill(-np.inf)
    for s in range(S):
        old, least = load(w, at.P + s), load(w, at.B + s) - rounding
        new, held = old, never
        for a in range(A - 1, -1, -1):
            as_written()
            q, number = load(w, at.Q + s * A + a), fill(float(a))
            new = where_greater(least, q, new, number)
            held = where_equal(old, number, q, held)
        new = where_greater(least, held, new, old)
        changed = where_equal(new, old, changed, one)
        store(w, at.P + s, new)
    return changed


@_lean
def _note_lowest(w: Any, at: Places, tie: Any) -> None:
    """Note in L the lowest of the tied actions of each state."""
    for s in range(at.S):
        lowest, least = fill(0.0), load(w, at.B + s) - tie
        for a in range(at.A - 1, -1, -1):
            as_written()
            lowest = where_greater(least, load(w, at.Q + s * at.A + a), lowest, fill(float(a)))
        store(w, at.L + s, lowest)


@_lean
def _write_system(w: Any, at: Places) -> None:
    """M = I - γP_π and, as last column, R_π. If S is odd, one more line and column say that nothing is nothing."""
    S, A, N, GS, GA = at.S, at.A, at.N, at.GS, at.GA
    zero, one, discount = fill(0.0), fill(1.0), load(w, at.discount)
    for s in range(S):
        action, row, first = load(w, at.P + s), at.M + s * (N + 1), s * A
        weight, gain = load(w, at.weight + first), load(w, at.R + first)
        for a in range(1, A):
            as_written()
            number = fill(float(a))
            weight = where_equal(action, number, load(w, at.weight + first + a), weight)
            gain = where_equal(action, number, load(w, at.R + first + a), gain)
        keep, pull = discount * (weight - one), zero - discount * weight
        level = pull * load(w, at.G) if at.flat else zero
        line, shared = at.T + first * S, at.G + (s if GS > 1 else 0) * GA * S
        for j in range(0, N, 2):  # two columns and two actions at once; of what follows them, nothing stays
            as_written()
            entry = where_equal(action, one, load(w, line + S + j), load(w, line + j))
            after = where_equal(action, one, load(w, line + S + j + 1), load(w, line + j + 1))
            store(w, row + j, plus(level, keep, entry))
            store(w, row + j + 1, plus(level, keep, after))
        for a in range(2, A):
            number = fill(float(a))
            for j in range(S):
                as_written()
                entry = plus(level, keep, load(w, line + a * S + j))
                store(w, row + j, where_equal(action, number, entry, load(w, row + j)))
        for a in range(0 if at.flat else GA):
            factor = pull if GA == 1 else where_equal(action, fill(float(a)), pull, zero)
            for j in range(S):
                as_written()
                store(w, row + j, plus(load(w, row + j), factor, load(w, shared + a * S + j)))
        store(w, row + s, load(w, row + s) + one)
        store(w, row + S, zero)
        store(w, row + N, gain)
    if N > S:
        for j in range(N + 1):
            store(w, at.M + S * (N + 1) + j, one if j == S else zero)


@_lean
def _solve_system(w: Any, at: Places) -> None:
    """V = solution of M by elimination in blocks of 2 x 2, which takes half the reading, writing and dividing."""
    N, M, V = at.N, at.M, at.V
    C, one, zero = N + 1, fill(1.0), fill(0.0)
    for k in range(0, N, 2):
        upper, lower = M + k * C, M + (k + 1) * C
        a, b = load(w, upper + k), load(w, upper + k + 1)
        c, d = load(w, lower + k), load(w, lower + k + 1)
        scale = one / minus(b * c, a, d)
        a, b, c, d = scale * d, zero - scale * b, zero - scale * c, scale * a  # minus the inverse, kept in place
        store(w, upper + k, a)
        store(w, upper + k + 1, b)
        store(w, lower + k, c)
        store(w, lower + k + 1, d)
        for i in range(k + 2, N, 2):
            here, there = M + i * C, M + (i + 1) * C
            x, y = load(w, here + k), load(w, here + k + 1)
            here_upper, here_lower = plus(x * a, y, c), plus(x * b, y, d)
            x, y = load(w, there + k), load(w, there + k + 1)
            there_upper, there_lower = plus(x * a, y, c), plus(x * b, y, d)
            for j in range(k + 2, C):
                as_written()
                x, y = load(w, upper + j), load(w, lower + j)
                store(w, here + j, plus(plus(load(w, here + j), here_upper, x), here_lower, y))
                store(w, there + j, plus(plus(load(w, there + j), there_upper, x), there_lower, y))
    for k in range(N - 2, -1, -2):
        upper, lower = M + k * C, M + (k + 1) * C
        x, y = load(w, upper + N), load(w, lower + N)
        for j in range(N - 1, k + 1, -1):  # what was found last comes last, so that nothing waits for it
            as_written()
            v = load(w, V + j)
            x = minus(x, load(w, upper + j), v)
            y = minus(y, load(w, lower + j), v)
        store(w, V + k, minus(minus(zero, load(w, upper + k), x), load(w, upper + k + 1), y))
        store(w, V + k + 1, minus(minus(zero, load(w, lower + k), x), load(w, lower + k + 1), y))


@_lean
def _start(w: Any, at: Places) -> None:
    """First policy: value iteration from the best immediate rewards."""
    for s in range(at.S):
        best = fill(-np.inf)
        for a in range(at.A):
            as_written()
            best = larger(load(w, at.R + s * at.A + a), best)
        store(w, at.B + s, best)
        store(w, at.P + s, fill(0.0))
    for _ in range(START_SWEEPS - 1):
        _backup(w, at, at.B)
    rounding, _ = _backup(w, at, at.B)
    _improve(w, at, rounding)


@_lean
def _go_on(w: Any, at: Places) -> None:
    """First policy of a further step: a sweep from the values of the step before saves many an evaluation.

    What is expected after the rows is known since they were found.
    """
    rounding, _ = _mix(w, at)
    _improve(w, at, rounding)


@_lean
def _iterate(w: Any, at: Places, limit: int) -> Any:
    """Policy iteration from the policy P. Returns how many rounds each lane took, more than the limit if it was not
    enough, and what is a tie among the last action values Q.
    """
    rounds, one, tie = fill(1.0), fill(1.0), fill(0.0)
    for iteration in range(limit):
        _write_system(w, at)
        _solve_system(w, at)
        rounding, tie = _backup(w, at, at.V)
        changed = _improve(w, at, rounding)
        rounds = where_equal(changed, one, fill(iteration + 2.0), rounds)
        if not anywhere(changed):
            break
    return rounds, tie


@_lean
def _take(w: Any, at: Places) -> bool:
    """Make L the policy P, and tell whether that changed anything."""
    changed, one = fill(0.0), fill(1.0)
    for s in range(at.S):
        as_written()
        action = load(w, at.L + s)
        changed = where_equal(action, load(w, at.P + s), changed, one)
        store(w, at.P + s, action)
    return anywhere(changed)


@_lean
def _residual(w: Any, at: Places) -> Any:
    """Largest |B - V|; NaN if one of the values is not finite."""
    worst, zero, nothing = fill(0.0), fill(0.0), fill(0.0)
    for s in range(at.S):
        as_written()
        difference = load(w, at.B + s) - load(w, at.V + s)
        worst = larger(larger(difference, zero - difference), worst)
        nothing = plus(nothing, zero, difference)
    return worst + nothing


@_compile
def plan_small(
    start: int, stop: int, rows: Any, rows_of: Any, weight: Any, weight_of: Any, target: Any, target_of: Any,
    reward: Any, reward_of: Any, discount: Any, discount_of: Any, allowed: Any, allowed_of: Any, unclear: float,
    max_iterations: int, policy: Any, values: Any, iterations: Any, residual: Any,
) -> int:  # fmt: skip
    """Plan for the chains in [start, stop). Returns the first block with a bad transition row, or -1.

    Rows that lack less than ``unclear``, and more than rounding, are bad ones. There is no tolerance, as elimination is
    exact.
    """
    S, A, steps = rows.shape[1], rows.shape[2], policy.shape[1]
    GS, GA, flat = _shape(target)
    flat_rows, flat_target = rows.reshape(rows.shape[0], -1), target.reshape(target.shape[0], -1)
    flat_weight, flat_reward = weight.reshape(weight.shape[0], -1), reward.reshape(reward.shape[0], -1)
    flat_discount, flat_allowed = discount.reshape(-1, 1), allowed.reshape(allowed.shape[0], -1)
    rows_of, target_of = rows_of.reshape(-1, 1), target_of.reshape(-1, 1)
    all_allowed = allowed.all()
    at = _places(S, A, GS, GA, flat)
    w, answer = room(at.end), room(2)
    store(w, at.F, fill(0.0))
    held, lines = np.full((5, WIDTH), -1), np.empty(WIDTH, dtype=np.int64)
    flat_policy, flat_values = policy.reshape(-1, S), values.reshape(-1, S)
    flat_iterations, flat_residual = iterations.reshape(-1, 1), residual.reshape(-1, 1)
    for first in range(start, stop, WIDTH):
        if _fetch(first, stop, 0, flat_rows, rows_of, held, 0, w, at.T) and not _rows_are_good(w, at, unclear):
            return first
        if GS > 0:
            _fetch(first, stop, 0, flat_target, target_of, held, 1, w, at.G)
        for step in range(steps):
            _fetch(first, stop, step, flat_weight, weight_of, held, 2, w, at.weight)
            _fetch(first, stop, step, flat_discount, discount_of, held, 3, w, at.discount)
            _fetch(first, stop, step, flat_reward, reward_of, held, 4, w, at.R)
            if not all_allowed:
                held[4] = -1  # the rewards do not stay as they are
                for lane in range(WIDTH):
                    may = flat_allowed[allowed_of[min(first + lane, stop - 1)]]
                    for pair in range(S * A):
                        if not may[pair]:
                            w[(at.R + pair) * WIDTH + lane] = -np.inf
            if step == 0:
                _ask_ahead(first, stop, 0, flat_rows, rows_of)
                _start(w, at)
                _ask_ahead(first, stop, 1, flat_rows, rows_of)
            else:
                _go_on(w, at)
            rounds, tie = _iterate(w, at, max_iterations)
            _note_lowest(w, at, tie)
            store(answer, 0, rounds)
            store(answer, 1, _residual(w, at))
            for lane in range(WIDTH):
                lines[lane] = min(first + lane, stop - 1) * steps + step
            scatter(w, at.L, lines, flat_policy)
            scatter(w, at.V, lines, flat_values)
            scatter(answer, 0, lines, flat_iterations)
            scatter(answer, 1, lines, flat_residual)
    return -1


@_compile
def evaluate_small(
    start: int, stop: int, rows: Any, rows_of: Any, reward: Any, reward_of: Any, discount: Any, discount_of: Any,
    policy: Any, unclear: float, values: Any,
) -> int:  # fmt: skip
    """Value of ``policy`` (K, L, S) for the chains in [start, stop); one that stays along a chain is solved once."""
    S, A, steps = rows.shape[1], rows.shape[2], policy.shape[1]
    flat_rows, flat_reward = rows.reshape(rows.shape[0], -1), reward.reshape(reward.shape[0], -1)
    flat_discount, rows_of = discount.reshape(-1, 1), rows_of.reshape(-1, 1)
    flat_policy, flat_values = policy.reshape(-1, S), values.reshape(-1, S)
    at = _places(S, A, 0, 0, False)
    w = room(at.end)
    w[:] = 0.0  # weights among others
    held, lines = np.full((3, WIDTH), -1), np.empty(WIDTH, dtype=np.int64)
    for first in range(start, stop, WIDTH):
        moved = _fetch(first, stop, 0, flat_rows, rows_of, held, 0, w, at.T)
        if moved and not _rows_are_good(w, at, unclear):
            return first
        _ask_ahead(first, stop, 0, flat_rows, rows_of)
        for step in range(steps):
            moved |= _fetch(first, stop, step, flat_reward, reward_of, held, 1, w, at.R)
            moved |= _fetch(first, stop, step, flat_discount, discount_of, held, 2, w, at.discount)
            for lane in range(WIDTH):
                lines[lane] = min(first + lane, stop - 1) * steps + step
            gather(flat_policy, lines, w, at.L)
            if _take(w, at) or moved:
                _write_system(w, at)
                _solve_system(w, at)
                moved = False
            if step == 0:
                _ask_ahead(first, stop, 1, flat_rows, rows_of)
            scatter(w, at.V, lines, flat_values)
    return -1
