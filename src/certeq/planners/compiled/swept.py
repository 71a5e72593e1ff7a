"""Data sets times strengths in one kernel: count, weigh, mix, plan, and value what is advised in the truth.

Eight data sets lie side by side, as in ``small``, and nothing is written out between the steps: frequencies and weights
are made of the counts where they are needed, each strength starts from the plan of the one before, and a policy is
valued in the truth only if it is not the one that was valued last.
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
    largest,
    load,
    plus,
    room,
    scatter,
    store,
    where_equal,
    where_greater,
)
from certeq.model.weights import CONSTANT, GIVEN, RELATIVE
from certeq.planners.compiled.small import (
    Places,
    _ask_ahead,
    _fetch,
    _go_on,
    _iterate,
    _note_lowest,
    _places,
    _residual,
    _shape,
    _solve_system,
    _start,
)

_compile = njit(cache=True, nogil=True, error_model="numpy")
_lean = njit(inner=True, lean=True, nogil=True, error_model="numpy")


class More(NamedTuple):
    """What a sweep needs in the workspace besides `Places`."""

    truth: Places  # rows, rewards, discount and values of the truth; all else is shared with the plan
    visits: int  # (S, A)
    amount: int  # what the weights of this step are made of
    mean: int  # visits per pair
    taken: int  # (S, A): 1 for the tied actions, else 0
    tied: int  # (S,): which actions are tied, as the bits of a number
    optimal: int  # (S,): what can be had in the truth
    loss: int  # (steps,), as the next two
    rounds: int
    residual: int
    end: int


@_lean
def _more(at: Places, steps: int) -> More:
    S, pairs, N = at.S, at.S * at.A, at.N
    T = at.end
    R, weight, V, discount = T + pairs * S, T + pairs * (S + 1), T + pairs * (S + 2), T + pairs * (S + 2) + N
    truth = Places(
        S, at.A, N, 0, 0, False, T, at.G, weight, R, at.Q, at.D, at.F, at.B, at.P, at.L, V, at.M, discount, discount + 1
    )  # fmt: skip
    visits = truth.end
    taken = visits + pairs + 2
    optimal = taken + pairs + S
    loss = optimal + S
    return More(truth, visits, visits + pairs, visits + pairs + 1, taken, taken + pairs, optimal, loss, loss + steps,
                loss + 2 * steps, loss + 3 * steps)  # fmt: skip


@_lean
def _count(w: Any, at: Places, more: More) -> None:
    """Make frequencies of the counts that stand at T; a pair without visits has the uniform row."""
    S, pairs = at.S, at.S * at.A
    zero, one, uniform = fill(0.0), fill(1.0), fill(1.0 / at.S)
    total = zero
    for pair in range(pairs):
        row, visits = at.T + pair * S, zero
        for j in range(S):
            as_written()
            visits = visits + load(w, row + j)
        store(w, more.visits + pair, visits)
        total = total + visits
        scale = one / where_equal(visits, zero, one, visits)
        for j in range(S):
            as_written()
            store(w, row + j, where_equal(visits, zero, uniform, load(w, row + j) * scale))
    store(w, more.mean, total / fill(float(pairs)))


@_lean
def _weigh(w: Any, at: Places, more: More, kind: int) -> None:
    """Weights of all pairs: the same for all, or M / (c + M) with a magnitude M that is said, or relative to the data.

    Without visits it is 1, whatever the magnitude.
    """
    amount, zero, one = load(w, more.amount), fill(0.0), fill(1.0)
    if kind == RELATIVE:
        amount = amount * load(w, more.mean)
    for pair in range(at.S * at.A):
        weight = amount
        if kind != CONSTANT:
            visits = load(w, more.visits + pair)
            weight = where_equal(visits, zero, one, amount / (visits + amount))
        store(w, at.weight + pair, weight)


@_lean
def _note_ties(w: Any, at: Places, more: More, tie: Any) -> Any:
    """Note which actions are tied, and the lowest; return the lanes where they are others than before (1 or 0)."""
    S, A = at.S, at.A
    zero, one, changed = fill(0.0), fill(1.0), fill(0.0)
    for s in range(S):
        least, bits, lowest = load(w, at.B + s) - tie, zero, zero
        for a in range(A - 1, -1, -1):
            as_written()
            q = load(w, at.Q + s * A + a)
            taken = where_greater(least, q, zero, one)
            lowest = where_greater(least, q, lowest, fill(float(a)))
            store(w, more.taken + s * A + a, taken)
            bits = bits + bits + taken
        store(w, at.L + s, lowest)
        changed = where_equal(load(w, more.tied + s), bits, changed, one)
        store(w, more.tied + s, bits)
    return changed


@_lean
def _value(w: Any, truth: Places, taken: int) -> None:
    """V = values in the truth of the policy that takes each of the tied actions equally often."""
    S, A, N = truth.S, truth.A, truth.N
    zero, one, discount = fill(0.0), fill(1.0), load(w, truth.discount)
    for s in range(S):
        first, row = s * A, truth.M + s * (N + 1)
        number, gain = zero, zero
        for a in range(A):
            as_written()
            chosen = load(w, taken + first + a)
            number = number + chosen
            gain = plus(gain, chosen, load(w, truth.R + first + a))
        share = one / number
        for j in range(S):
            entry = zero
            for a in range(A):
                as_written()
                entry = plus(entry, load(w, taken + first + a), load(w, truth.T + (first + a) * S + j))
            store(w, row + j, zero - discount * share * entry)
        store(w, row + s, load(w, row + s) + one)
        store(w, row + S, zero)
        store(w, row + N, share * gain)
    if N > S:
        for j in range(N + 1):
            store(w, truth.M + S * (N + 1) + j, one if j == S else zero)
    _solve_system(w, truth)


@_lean
def _lose(w: Any, more: More, importance: Any) -> Any:
    """Loss: what the values lack of the optimal ones, each state as important as is said."""
    lost = fill(0.0)
    for s in range(more.truth.S):
        lost = plus(lost, fill(importance[s]), load(w, more.optimal + s) - load(w, more.truth.V + s))
    return lost


@_compile
def sweep_small(
    start: int, stop: int, counts: Any, counts_of: Any, amount: Any, amount_of: Any, target: Any, target_of: Any,
    reward: Any, reward_of: Any, discount: Any, discount_of: Any, allowed: Any, allowed_of: Any, kind: int,
    limit: int, rows: Any, rows_of: Any, gain: Any, gain_of: Any, true_discount: float, importance: Any,
    policy: Any, values: Any, iterations: Any, residual: Any, tied: Any, loss: Any, optimal: Any,
) -> int:  # fmt: skip
    """Sweep the chains in [start, stop). Returns a block in which a plan reached the limit, or -1.

    ``rows``, ``gain`` and ``true_discount`` are the truth; without any rows, plans are made and not valued, and then
    their values, rounds and residuals are told, of all, and values that are not finite count as the limit. All actions
    are ``allowed``.
    """
    S, A, steps = counts.shape[1], counts.shape[2], policy.shape[1]
    GS, GA, flat = _shape(target)
    flat_counts, flat_target = counts.reshape(counts.shape[0], -1), target.reshape(target.shape[0], -1)
    flat_amount, flat_reward = amount.reshape(amount.shape[0], -1), reward.reshape(reward.shape[0], -1)
    flat_rows, flat_gain = rows.reshape(rows.shape[0], S * A * S), gain.reshape(gain.shape[0], S * A)
    flat_discount, valued = discount.reshape(-1, 1), rows.shape[0] > 0
    counts_of, target_of = counts_of.reshape(-1, 1), target_of.reshape(-1, 1)
    rows_of, gain_of = rows_of.reshape(-1, 1), gain_of.reshape(-1, 1)
    flat_policy, flat_tied, flat_values = policy.reshape(-1, S), tied.reshape(-1, S), values.reshape(-1, S)
    at = _places(S, A, GS, GA, flat)
    more = _more(at, steps)
    w = room(more.end)
    w[:] = 0.0  # weights of the truth, among others
    store(w, more.truth.discount, fill(true_discount))
    held, lines = np.full((7, WIDTH), -1), np.empty(WIDTH, dtype=np.int64)
    fault, most, lost, discounts, rewards = -1, float(limit), fill(0.0), discount_of.shape[1], reward_of.shape[1]
    for first in range(start, stop, WIDTH):
        fresh = False
        if valued:
            fresh = _fetch(first, stop, 0, flat_rows, rows_of, held, 0, w, more.truth.T)
            fresh |= _fetch(first, stop, 0, flat_gain, gain_of, held, 1, w, more.truth.R)
        if fresh:
            _start(w, more.truth)
            rounds, _ = _iterate(w, more.truth, limit)
            if largest(rounds) > most:
                return first
            for s in range(S):
                store(w, more.optimal + s, load(w, more.truth.V + s))
            _ask_ahead(first, stop, 0, flat_rows, rows_of)
        counted = _fetch(first, stop, 0, flat_counts, counts_of, held, 2, w, at.T)
        if counted:
            _count(w, at, more)
        if GS > 0:
            _fetch(first, stop, 0, flat_target, target_of, held, 3, w, at.G)
        for step in range(steps):
            if kind == GIVEN:
                _fetch(first, stop, step, flat_amount, amount_of, held, 4, w, at.weight)
            elif _fetch(first, stop, step, flat_amount, amount_of, held, 4, w, more.amount) or counted:
                _weigh(w, at, more, kind)
                counted = False
            if step == 0 or discounts > 1:
                _fetch(first, stop, step, flat_discount, discount_of, held, 5, w, at.discount)
            if step == 0 or rewards > 1:
                _fetch(first, stop, step, flat_reward, reward_of, held, 6, w, at.R)
            if step == 0:
                _start(w, at)
                _ask_ahead(first, stop, 0, flat_counts, counts_of)
            else:
                _go_on(w, at)
            rounds, tie = _iterate(w, at, limit)
            if step == 0:
                _ask_ahead(first, stop, 1, flat_counts, counts_of)
            for lane in range(WIDTH):
                lines[lane] = min(first + lane, stop - 1) * steps + step
            if not valued:
                _note_lowest(w, at, tie)
                scatter(w, at.L, lines, flat_policy)
                scatter(w, at.V, lines, flat_values)
                store(w, more.rounds + step, rounds)
                left = _residual(w, at)
                store(w, more.residual + step, left)
                if anywhere(where_greater(fill(most + 1), rounds, left - left, rounds)):
                    fault = first
                continue
            if largest(rounds) > most:
                return first
            if anywhere(_note_ties(w, at, more, tie)) or fresh:
                _value(w, more.truth, more.taken)
                lost = _lose(w, more, importance)
            if fresh:
                _ask_ahead(first, stop, 1, flat_rows, rows_of)
                fresh = False
            scatter(w, at.L, lines, flat_policy)
            scatter(w, more.tied, lines, flat_tied)
            store(w, more.loss + step, lost)
        for lane in range(WIDTH):
            lines[lane] = min(first + lane, stop - 1)
        if valued:
            scatter(w, more.optimal, lines, optimal)
            scatter(w, more.loss, lines, loss)
        else:
            scatter(w, more.rounds, lines, iterations)
            scatter(w, more.residual, lines, residual)
    return fault
