"""The passes over one large sparse MDP of which inexact policy iteration is made.

Every kernel works on blocks of ``BLOCK`` states (or lines), writes only what belongs to its own blocks, and leaves a
line of sums, least and greatest values for each block in ``notes``, to be put together in order. So nothing depends on
how many threads share the blocks.

``improve`` reads the rows of all pairs in double precision and carries the certificate. Between two such passes a
policy is followed on a copy of its own rows, which lie side by side (``copy_rows``; then ``follow``, or ``first``,
``apply``, ``half``, ``whole`` and ``last`` for BiCGStab). For BiCGStab they are in single precision: two thirds of the
bytes, and precise enough, as each evaluation is only asked for a rough correction of the values. Each state has a slot
there that holds any of its rows, so that only rows of actions that changed are copied anew. What is done to mere
vectors is shared as well: with a million states, what one thread does by itself is what all others wait for.

Indices are unsigned: signed ones make Numba look for negative numbers at each access, at half the speed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.compiling import njit

BLOCK = 2048  # states or lines: enough work for a thread, few enough notes
FULL = 1 - 1e-6  # of a number in single precision, which is not more than what was rounded to it
_quick = njit(inner=True, nogil=True, fastmath={"contract", "reassoc"})  # several sums side by side
_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


class Lines(NamedTuple):
    """Sparse rows in double precision; that of (s, a) is line ``s * by_state + a * by_action``."""

    starts: Any  # (lines + 1,), unsigned
    columns: Any  # (n,) uint32
    chances: Floats  # (n,)
    by_state: int
    by_action: int


class PerPair(NamedTuple):
    """One number for each pair, at ``s * by_state + a * by_action``; a step of 0 says "the same for all"."""

    numbers: Floats
    by_state: int
    by_action: int


class SparseModel(NamedTuple):
    """What a full pass reads: rows ``(1 - weight) * data + weight * target``, and what the target expects."""

    data: Lines
    weight: PerPair
    mixed: bool  # whether there is a target at all
    reward: PerPair
    discount: float
    n_actions: int
    allowed: Any  # (S, A) booleans
    masked: bool  # whether any of them is False


class Followed(NamedTuple):
    """The rows of one policy times the discount: ``rows x + pull @ amount + extra``."""

    slots: Any  # (S + 1,), unsigned: where the entries of each state begin
    lengths: Any  # (S,) uint32: how many there are
    columns: Any  # uint32
    chances: Any  # float64, or float32
    amount: Any  # (K, S) float32: how much each state has of target rows that all states share


@njit(inline="always")
def _states(block: int, size: int) -> Any:
    return range(np.uint64(block * BLOCK), np.uint64(min(size, (block + 1) * BLOCK)))


@njit(inline="always")
def _place(s: Any, a: Any, by_state: int, by_action: int) -> Any:
    return s * np.uint64(by_state) + a * np.uint64(by_action)


@njit(inline="always")
def _expect(rows: Any, s: Any, x: Any, total: Any) -> Any:
    """What state s expects of x, and what it began with."""
    begin = np.uint64(rows.slots[s])
    for k in range(begin, begin + np.uint64(rows.lengths[s])):
        total += rows.chances[k] * x[rows.columns[k]]
    return total


@_kernel
def improve(
    start: int, stop: int, model: SparseModel, pull: PerPair, values: Floats, policy: Any, share: PerPair,
    averaged: bool, keep: float, near: float, followed: Followed, slack: Any, drift: float, reach: float, better: Any,
    lowest: Any, best: Floats, notes: Floats,
) -> None:  # fmt: skip
    """Back values up: ``best`` = max Q, ``better`` = the improved policy, ``lowest`` = the lowest of the best actions.

    In ``better`` an action is left only for one that is better by more than ``keep``; for ``lowest`` any that comes
    ``near`` enough will do. With ``averaged``, best is the mean of Q under the probabilities ``share`` instead. Where
    a state's ``slack`` is beyond ``reach``, no action can come near that of the policy, whose rows are ``followed``,
    and no other is looked at. Elsewhere it is found anew, from ``drift`` on. Notes: least and greatest change of a
    value, least and greatest best, least Q that was looked at, number of actions that changed.
    """
    starts, columns, chances, line_s, line_a = model.data
    slots, lengths, own_columns, own_chances, _ = followed
    weight, weight_s, weight_a = model.weight
    reward, reward_s, reward_a = model.reward
    expected, pull_s, pull_a = pull
    mixed, masked, discount, A = model.mixed, model.masked, model.discount, np.uint64(model.n_actions)
    q = np.empty(A)
    for block in range(start, stop):
        low, high, bottom, top, least, moved = np.inf, -np.inf, np.inf, -np.inf, np.inf, 0
        for s in _states(block, values.size):
            most, mean, choice = -np.inf, 0.0, np.uint64(0)
            if slack[s] * np.float32(FULL) > reach:
                choice, total = np.uint64(policy[s]), 0.0
                for k in range(np.uint64(slots[s]), np.uint64(slots[s]) + np.uint64(lengths[s])):
                    total += own_chances[k] * values[own_columns[k]]
                if mixed:
                    w = weight[_place(s, choice, weight_s, weight_a)]
                    total += discount * w * expected[_place(s, choice, pull_s, pull_a)]
                most = reward[_place(s, choice, reward_s, reward_a)] + total
                lowest[s] = better[s] = choice
            else:
                for a in range(A):
                    q[a] = -np.inf
                    if not masked or model.allowed[s, a]:
                        line = _place(s, a, line_s, line_a)
                        total = 0.0
                        for k in range(starts[line], starts[line + np.uint64(1)]):
                            total += chances[k] * values[columns[k]]
                        if mixed:
                            w = weight[_place(s, a, weight_s, weight_a)]
                            total = (1.0 - w) * total + w * expected[_place(s, a, pull_s, pull_a)]
                        q[a] = reward[_place(s, a, reward_s, reward_a)] + discount * total
                        least = min(least, q[a])
                        if q[a] > most:
                            most, choice = q[a], np.uint64(a)
                        if averaged:
                            mean += share.numbers[_place(s, a, share.by_state, share.by_action)] * q[a]
                if averaged:
                    most = mean
                else:
                    choice = np.uint64(policy[s]) if q[policy[s]] >= most - keep else choice
                    first, second = choice, -np.inf
                    for i in range(A):  # from the last action to the first
                        place = A - np.uint64(1) - np.uint64(i)
                        first = place if q[place] >= most - near else first
                        second = max(second, q[place]) if place != choice else second
                    slack[s] = drift + (q[choice] - second)
                    lowest[s] = first
                    moved += choice != policy[s]
                    better[s] = choice
            best[s] = most
            change = most - values[s]
            low, high = min(low, change), max(high, change)
            bottom, top = min(bottom, most), max(top, most)
        note = notes[block]
        note[0], note[1], note[2], note[3], note[4], note[5] = low, high, bottom, top, least, moved


@_kernel
def sweep(
    start: int, stop: int, pieces: int, model: SparseModel, near: Lines, share: PerPair, rest: PerPair, values: Floats,
    new: Floats, backward: bool,
) -> None:  # fmt: skip
    """Back values up one after another, ``new`` = max Q, each by what those of its own piece have become before it.

    ``near`` are sparse rows of a target that count with ``share``; ``rest`` is what all other targets add. ``new``
    begins as a copy of the values. Pieces do not see what becomes of one another, so threads may share them.
    """
    starts, columns, chances, line_s, line_a = model.data
    near_starts, near_columns, near_chances, near_s, near_a = near
    S, A = np.uint64(values.size), np.uint64(model.n_actions)
    for piece in range(np.uint64(start), np.uint64(stop)):
        low, high = S * piece // np.uint64(pieces), S * (piece + np.uint64(1)) // np.uint64(pieces)
        for i in range(low, high):
            s = low + high - np.uint64(1) - i if backward else i
            most = -np.inf
            for a in range(A):
                if not model.masked or model.allowed[s, a]:
                    line, own, lent = _place(s, a, line_s, line_a), 0.0, 0.0
                    for k in range(starts[line], starts[line + np.uint64(1)]):
                        to = columns[k]
                        own += chances[k] * (new[to] if low <= to < high else values[to])
                    line = _place(s, a, near_s, near_a)
                    for k in range(near_starts[line], near_starts[line + np.uint64(1)]):
                        to = near_columns[k]
                        lent += near_chances[k] * (new[to] if low <= to < high else values[to])
                    total = (
                        1.0 - model.weight.numbers[_place(s, a, model.weight.by_state, model.weight.by_action)]
                    ) * own
                    total += share.numbers[_place(s, a, share.by_state, share.by_action)] * lent
                    total += rest.numbers[_place(s, a, rest.by_state, rest.by_action)]
                    gain = model.reward.numbers[_place(s, a, model.reward.by_state, model.reward.by_action)]
                    most = max(most, gain + model.discount * total)
            new[s] = most


@_kernel
def expect(start: int, stop: int, lines: Lines, values: Floats, out: Floats) -> None:
    """What each line expects: a sparse matrix times a vector."""
    starts, columns, chances = lines.starts, lines.columns, lines.chances
    for block in range(start, stop):
        for line in _states(block, out.size):
            total = 0.0
            for k in range(starts[line], starts[line + np.uint64(1)]):
                total += chances[k] * values[columns[k]]
            out[line] = total


@_kernel
def add_room(start: int, stop: int, lines: Lines, n_actions: int, together: bool, room: Any) -> None:
    """Add to ``room`` how many entries the longest row of each state has, or all its rows together."""
    for block in range(start, stop):
        for s in _states(block, room.size):
            longest, total = np.uint64(0), np.uint64(0)
            for a in range(np.uint64(n_actions)):
                line = _place(s, a, lines.by_state, lines.by_action)
                length = np.uint64(lines.starts[line + np.uint64(1)] - lines.starts[line])
                longest, total = max(longest, length), total + length
            room[s] += total if together else longest


@_kernel
def copy_rows(
    start: int, stop: int, lines: Lines, weight: PerPair, base: float, slope: float, share: PerPair, policy: Any,
    before: Any, first: bool, least: float, slots: Any, lengths: Any, columns: Any, chances: Any,
) -> None:  # fmt: skip
    """Copy the rows of actions that are not as ``before``, times ``share * (base + slope * weight)``.

    The first copy empties the slots, further ones go on where it ended. What comes to ``least`` or less is left out.
    """
    starts, of, given = lines.starts, lines.columns, lines.chances
    for block in range(start, stop):
        for s in _states(block, policy.size):
            if policy[s] != before[s]:
                a = np.uint64(policy[s])
                if first:
                    lengths[s] = 0
                factor = base + slope * weight.numbers[_place(s, a, weight.by_state, weight.by_action)]
                factor *= share.numbers[_place(s, a, share.by_state, share.by_action)]
                if factor != 0.0:
                    line = _place(s, a, lines.by_state, lines.by_action)
                    to = np.uint64(slots[s]) + np.uint64(lengths[s])
                    for k in range(starts[line], starts[line + np.uint64(1)]):
                        if factor * given[k] > least:
                            columns[to] = of[k]
                            chances[to] = factor * given[k]
                            to += np.uint64(1)
                    lengths[s] = to - np.uint64(slots[s])


@_kernel
def lighten(start: int, stop: int, rows: Followed, least: float, chances: Any) -> None:
    """Move the chances of all rows into ``chances``; what is ``least`` or less is left out."""
    for block in range(start, stop):
        for s in _states(block, rows.lengths.size):
            begin = to = np.uint64(rows.slots[s])
            for k in range(begin, begin + np.uint64(rows.lengths[s])):
                if rows.chances[k] > least:
                    rows.columns[to] = rows.columns[k]
                    chances[to] = rows.chances[k]
                    to += np.uint64(1)
            rows.lengths[s] = to - begin


@_kernel
def add_amounts(start: int, stop: int, weight: PerPair, scale: float, share: PerPair, policy: Any, amount: Any) -> None:
    """Add ``scale * share * weight`` of the policy's pairs to ``amount``."""
    for block in range(start, stop):
        for s in _states(block, policy.size):
            a = np.uint64(policy[s])
            w = weight.numbers[_place(s, a, weight.by_state, weight.by_action)]
            amount[s] += scale * w * share.numbers[_place(s, a, share.by_state, share.by_action)]


@_quick
def _product(one: Any, other: Any) -> float:
    total = 0.0
    for i in range(len(one)):
        total += one[i] * other[i]
    return total


@_kernel
def pull(start: int, stop: int, rows: Any, x: Any, notes: Any) -> None:
    """What rows that all states share, ``(K, S)``, expect of x, block by block: notes ``(blocks, K)``."""
    for block in range(start, stop):
        low, high = block * BLOCK, min(x.size, (block + 1) * BLOCK)
        for k in range(len(rows)):
            notes[block, k] = _product(rows[k, low:high], x[low:high])


@_quick
def _begin(amount: Any, pull: Any, extra: Any, y: Any) -> None:
    """``y = pull @ amount + extra`` for the states of a block; ``extra`` has one number for each, or none."""
    y[:] = 0.0
    for k in range(len(amount)):
        much = pull[k]
        for i in range(len(y)):
            y[i] += much * amount[k, i]
    for i in range(len(extra)):
        y[i] += extra[i]


@_kernel
def begin(start: int, stop: int, best: Any, values: Any, constant: float, size: float, x: Any, total: Any) -> None:
    """``x = total = (best - values - constant) / size``: the residual that is to be corrected."""
    for block in range(start, stop):
        for s in _states(block, x.size):
            x[s] = total[s] = (best[s] - values[s] - constant) / size


@_kernel
def end(start: int, stop: int, values: Any, total: Any, constant: float, size: float, out: Any) -> None:
    """``out = values + size * total + constant``: the values, corrected."""
    for block in range(start, stop):
        for s in _states(block, out.size):
            out[s] = values[s] + (size * total[s] + constant)


@_kernel
def apart(start: int, stop: int, one: Any, other: Any, notes: Any) -> None:
    """Notes: least and greatest of ``one - other``."""
    for block in range(start, stop):
        low, high = np.inf, -np.inf
        for s in _states(block, one.size):
            low, high = min(low, one[s] - other[s]), max(high, one[s] - other[s])
        notes[block, 0], notes[block, 1] = low, high


@_kernel
def beyond(start: int, stop: int, slack: Any, reach: float, notes: Any) -> None:
    """Notes: how many of the slacks are beyond reach."""
    for block in range(start, stop):
        count = 0
        for s in _states(block, slack.size):
            count += slack[s] * np.float32(FULL) > reach
        notes[block, 0] = count


@_kernel
def take_off(start: int, stop: int, x: Any, constant: float) -> None:
    """``x -= constant``."""
    for block in range(start, stop):
        for s in _states(block, x.size):
            x[s] -= constant


@_kernel
def follow(
    start: int, stop: int, rows: Followed, pull: Any, extra: Any, x: Any, y: Any, total: Any, notes: Any
) -> None:
    """``y = P x`` and ``total += y``, with P the rows times the discount. Notes: least and greatest y."""
    for block in range(start, stop):
        low, high = np.inf, -np.inf
        own = slice(block * BLOCK, min(x.size, (block + 1) * BLOCK))
        _begin(rows.amount[:, own], pull, extra[own], y[own])
        for s in _states(block, x.size):
            z = _expect(rows, s, x, y[s])
            y[s] = z
            total[s] += z
            low, high = min(low, z), max(high, z)
        notes[block, 0], notes[block, 1] = low, high


@_kernel
def apply(
    start: int, stop: int, rows: Followed, pull: Any, extra: Any, x: Any, y: Any, shadow: Any, notes: Any
) -> None:
    """``y = x - P x``. Notes: y·shadow, y·x, y·y."""
    for block in range(start, stop):
        with_shadow, with_x, square = 0.0, 0.0, 0.0
        own = slice(block * BLOCK, min(x.size, (block + 1) * BLOCK))
        _begin(rows.amount[:, own], pull, extra[own], y[own])
        for s in _states(block, x.size):
            z = x[s] - _expect(rows, s, x, y[s])
            y[s] = z
            with_shadow += z * shadow[s]
            with_x += z * x[s]
            square += z * z
        notes[block, 0], notes[block, 1], notes[block, 2] = with_shadow, with_x, square


@_kernel
def first(start: int, stop: int, r: Any, d: Any, shadow: Any, p: Any, notes: Floats) -> None:
    """``d = 0`` and ``shadow = p = r``, with which BiCGStab begins. Notes: r·r."""
    for block in range(start, stop):
        square = 0.0
        for s in _states(block, r.size):
            d[s], shadow[s], p[s] = 0.0, r[s], r[s]
            square += r[s] * r[s]
        notes[block, 0] = square


@_kernel
def half(start: int, stop: int, r: Any, alpha: Any, v: Any) -> None:
    """``r -= alpha * v``, the first half of a step of BiCGStab."""
    for block in range(start, stop):
        for s in _states(block, r.size):
            r[s] -= alpha * v[s]


@_kernel
def whole(
    start: int, stop: int, x: Any, r: Any, p: Any, v: Any, t: Any, alpha: Any, omega: Any, beta: Any, notes: Floats
) -> None:
    """Finish the step: ``x += alpha p + omega r``, ``r -= omega t``, ``p = r + beta (p - omega v)``.

    Notes: least and greatest r.
    """
    for block in range(start, stop):
        low, high = np.inf, -np.inf
        for s in _states(block, r.size):
            x[s] += alpha * p[s] + omega * r[s]
            z = r[s] - omega * t[s]
            r[s] = z
            p[s] = z + beta * (p[s] - omega * v[s])
            low, high = min(low, z), max(high, z)
        notes[block, 0], notes[block, 1] = low, high


@_kernel
def last(start: int, stop: int, total: Any, d: Any, shadow: Any) -> None:
    """``total += d - shadow``: what BiCGStab has found, in place of what it began with."""
    for block in range(start, stop):
        for s in _states(block, total.size):
            total[s] += d[s] - shadow[s]
