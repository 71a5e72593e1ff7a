"""How much of each candidate the target is made of: shares that explain the rows, each pair's own left out.

Rows are taken as drawn around a mix q = Σ πⱼqⱼ of the candidates, with a prior of magnitude M. A count c of an outcome
then stands for e = Mq·(1/Mq + 1/(Mq + 1) + ... + 1/(Mq + c - 1)) independent draws from q (between 1 and c: the more
M, the more of them), of which the share πⱼqⱼ/q goes to candidate j. Shares and M follow from these in turn (EM):

    π  ∝ prior + Σ e πⱼqⱼ/q                 shares for all actions
    πₐ ∝ FOLLOW · π + the same for one action   shares of its own, which follow those for all
    M  = (1 + Σ e) / (1/N + Σ over pairs of 1/M + ... + 1/(M + visits - 1))

The prior favors the uniform row. Twin: ``tests/naive.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certeq.base.compiling import njit
from certeq.model.borrowing import judge

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inner = njit(inner=True, nogil=True, error_model="numpy")
_compile_into = njit(cache=True, nogil=True, error_model="numpy", inline="always")  # a call would count references
PRIOR, PRIOR_UNIFORM = 0.3, 1.0  # draws that each candidate, and the uniform row, are credited with before any data
FOLLOW = 5.0  # draws by which the shares of an action follow those of all
ROUNDS = 10
FEW = 16


@_compile_into
def harmonic(x: float, c: float) -> float:
    """1/x + 1/(x + 1) + ... + 1/(x + c - 1) for x > 0 and whole c."""
    total, j = 0.0, 0.0
    while j < min(c, FEW):
        total += 1.0 / (x + j)
        j += 1.0
    return total + _digamma(x + c) - _digamma(x + FEW) if c > FEW else total


@_inner
def _digamma(x: float) -> float:
    """The logarithmic derivative of Γ for x ≥ 16, to rounding."""
    r = 1.0 / (x * x)
    return math.log(x) - 0.5 / x - r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r / 240.0)))


@_compile_into
def _mean(share: Any, a: int, q: Any, i: int) -> float:
    """Σ πⱼqⱼ in four sums, an order that is written out and quick; J is a multiple of four."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    for j in range(0, share.shape[1], 4):
        one += share[a, j] * q[i, j]
        two += share[a, j + 1] * q[i, j + 1]
        three += share[a, j + 2] * q[i, j + 2]
        four += share[a, j + 3] * q[i, j + 3]
    return (one + two) + (three + four)


@_inner
def _sum(x: Any) -> float:
    """Sum in order. Loops compile far sooner than expressions with arrays, which bring all of broadcasting along."""
    total = 0.0
    for j in range(len(x)):
        total += x[j]
    return total


@_inner
def _tails(visits: Any) -> Any:
    """How many pairs have more than i visits, for i below 64 and below the most visits."""
    most = 0.0
    for i in range(len(visits)):
        most = max(most, visits[i])
    tail = np.zeros(int(min(most, 64.0)))
    for i in range(len(visits)):
        if visits[i] > 0:
            tail[int(min(visits[i], len(tail))) - 1] += 1.0
    for i in range(len(tail) - 2, -1, -1):
        tail[i] += tail[i + 1]
    return tail


@_compile
def mix(q: Any, count: Any, action: Any, visits: Any, outcomes: int, share: Any) -> None:
    """Find the shares ``(A, J)`` from chances ``(n, J)`` of what was seen; see `judge` for the other columns.

    Columns of zeros are no candidates, and have no share; J is a multiple of four.
    """
    A, J = share.shape
    M, gained, total, tail = float(outcomes), np.empty((A, J)), np.empty(J), _tails(visits)
    prior = np.full(J, PRIOR)
    prior[0] = PRIOR_UNIFORM
    for j in range(J):
        if len(count) and q[0, j] == 0.0:
            prior[j] = 0.0
    whole = _sum(prior)
    for a in range(A):
        for j in range(J):
            share[a, j] = prior[j] / whole
    for _ in range(ROUNDS):
        gained[:] = 0.0
        drawn, held = 1.0, 1.0 / outcomes
        for i in range(len(count)):
            a = action[i]
            mean = _mean(share, a, q, i)
            draws = 1.0 / mean if count[i] == 1.0 else M * harmonic(M * mean, count[i])  # e / q
            drawn += draws * mean
            for j in range(J):
                gained[a, j] += draws * q[i, j]
            if visits[i] > len(tail):
                held += harmonic(M + len(tail), visits[i] - len(tail))
        for i in range(len(tail)):
            held += tail[i] / (M + i)
        M = drawn / held
        for j in range(J):
            for_all = 0.0
            for a in range(A):
                gained[a, j] *= share[a, j]
                for_all += gained[a, j]
            total[j] = prior[j] + for_all
        whole = _sum(total)
        for a in range(A):
            for j in range(J):
                share[a, j] = gained[a, j] + FOLLOW * (total[j] / whole)
            own = _sum(share[a])
            for j in range(J):
                share[a, j] /= own


@_compile
def learn(
    start: int,
    stop: int,
    table: Any,
    grid: Any,
    moves: Any,
    totals: Any,
    known: Any,  # (nonzeros, 0 or 1): chances that an expert's rows give to what was seen
    borrowed: int,  # candidates without the expert
    share: Any,  # out (D, A, J): theirs, then the expert's, then zeros up to a multiple of four
    judged: Any,  # out (nonzeros,): chances that the mix gives to what was seen, its pair's own rows left out
) -> None:
    """Find the shares of some data sets."""
    S, A, J = table.states, table.actions, share.shape[2]
    for d in range(start, stop):
        first, last = table.pointer[d * S * A], table.pointer[(d + 1) * S * A]
        q, action, visits = np.zeros((last - first, J)), np.empty(last - first, dtype=np.int64), np.empty(last - first)
        judge(d, 0, S, table, grid, moves, totals, share[d, :, :borrowed], False, q, action, visits)
        if known.shape[1]:
            for i in range(last - first):
                q[i, borrowed] = known[first + i, 0]
        mine = share[d]
        mix(q, table.count[first:last], action, visits, table.outcomes, mine)
        for i in range(last - first):
            judged[first + i] = _mean(mine, action[i], q, i)


@_compile
def judge_blocks(
    start: int,
    stop: int,
    low: Any,  # (blocks,): first state of each block
    size: int,
    first: Any,  # (blocks,): where its answers begin
    table: Any,
    grid: Any,
    moves: Any,
    totals: Any,
    share: Any,  # (A, J)
    mixed: bool,
    out: Any,
    action: Any,
    visits: Any,
) -> None:
    """Judge some blocks of states of one large data set."""
    for k in range(start, stop):
        at, high = first[k], min(low[k] + size, table.states)
        judge(0, low[k], high, table, grid, moves, totals, share, mixed, out[at:], action[at:], visits[at:])
