"""What a pair can learn from others: candidate targets, each a way of borrowing rows, and what they say.

| name | where a pair (s, a) looks | if that is not much, it looks on at |
|---|---|---|
| ``uniform`` | nowhere: every outcome alike | |
| ``arrivals`` | all pairs: where one arrives in general | uniform |
| ``action`` | all pairs of the action: where it leads, wherever it is taken | arrivals |
| ``state`` | all actions of the state: where one gets from here, whatever one does | arrivals |
| ``stay`` | nowhere: the state itself | |
| ``moves`` | all moves, of any action, made from here | uniform |
| ``action_moves`` | the moves of the action | moves |
| ``wider_moves`` | those of states at most two steps away | action_moves |
| ``near_moves`` | those of states one step away | wider_moves |
| ``wider`` | the rows of the action in states at most two steps away | action |
| ``near`` | those of states one step away | wider |

Looking on is a prior of one row: a candidate with counts f, m in all, is (f + base)/(m + 1). So none of them rules an
outcome out, one that knows nothing says what the next says, and no constant depends on the number of data.

The candidates of a pair are *judged* with its own rows left out, since a row explains itself too well, and *planned*
with them in. Endings are outcomes like others. What a move is, see `certeq.model.lattice`. Twin: ``tests/naive.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from certeq.model.lattice import land, neighbors

_compile = njit(cache=True, nogil=True, error_model="numpy")

NAMES = ("uniform", "arrivals", "action", "state", "stay")
PLACED = ("moves", "action_moves", "wider_moves", "near_moves", "wider", "near")  # for states with positions
UNIFORM, ARRIVALS, ACTION, STATE, STAY, MOVES, ACTION_MOVES, WIDER_MOVES, NEAR_MOVES, WIDER, NEAR = range(11)
STAYS = 0.9  # of the candidate "stay"; the rest is uniform


class Totals(NamedTuple):
    """What the rows of each data set add up to."""

    arrived: Any  # (D, A, N): where each action led
    tried: Any  # (D, A)
    moved: Any  # (D, A): moves from a state with a place
    first: Any  # (D, A + 2) int64: where the moves of each action begin below, then those of any action; and the end
    source: Any  # (moves,) int32: an example of each different move
    outcome: Any  # (moves,) int32
    often: Any  # (moves,)


@_compile
def add_up(start: int, stop: int, table: Any, grid: Any, move: Any, kinds: int, room: Any, out: Any) -> None:
    """Add up the rows of some data sets; ``room[d]`` is where the list of moves of data set d may begin.

    ``move`` is the number of the move of each non-zero, below ``kinds``.
    """
    S, A = table.states, table.actions
    slot = np.full(kinds, -1, dtype=np.int64)
    for d in range(start, stop):
        at = room[d]
        for a in range(A + 1):  # the last list is that of any action
            out.first[d, a] = at
            for s in range(S):
                placed = grid.placed[s]
                for b in range(a, a + 1) if a < A else range(A):
                    line = (d * S + s) * A + b
                    for i in range(table.pointer[line], table.pointer[line + 1]):
                        n, c = table.outcome[i], table.count[i]
                        if a < A:
                            out.arrived[d, a, n] += c
                            out.tried[d, a] += c
                        if placed:
                            if slot[move[i]] < 0:
                                slot[move[i]] = at
                                out.source[at], out.outcome[at], out.often[at] = s, n, 0.0
                                at += 1
                            out.often[slot[move[i]]] += c
                            if a < A:
                                out.moved[d, a] += c
            for s in range(S):  # forget the slots of this list
                for b in range(a, a + 1) if a < A else range(A):
                    line = (d * S + s) * A + b
                    for i in range(table.pointer[line], table.pointer[line + 1]):
                        slot[move[i]] = -1
        out.first[d, A + 1] = at


@_compile
def _add_nearby(
    table: Any, grid: Any, d: int, s: int, a: int, around: Any, first: int, last: int, moving: bool, into: Any
) -> float:
    """Add the rows of some neighbors, or their moves made from s, to a row; how many there were."""
    S, A = table.states, table.actions
    total = 0.0
    for k in range(first, last):
        line = (d * S + around[k]) * A + a
        for i in range(table.pointer[line], table.pointer[line + 1]):
            n = table.outcome[i]
            into[land(grid, s, around[k], n) if moving else n] += table.count[i]
            total += table.count[i]
    return total


@_compile
def _wipe_nearby(
    table: Any, grid: Any, d: int, s: int, a: int, around: Any, last: int, moving: bool, into: Any
) -> None:
    S, A = table.states, table.actions
    for k in range(last):
        line = (d * S + around[k]) * A + a
        for i in range(table.pointer[line], table.pointer[line + 1]):
            n = table.outcome[i]
            into[land(grid, s, around[k], n) if moving else n] = 0.0


@_compile
def _read(table: Any, first: int, last: int, row: Any, own: bool, out: Any) -> None:
    """Read a row at the pair's own outcomes; where its own rows are among those added up, without them."""
    for i in range(first, last):
        out[i - first] = row[table.outcome[i]] - (table.count[i] if own else 0.0)


@_compile
def _read_moves(
    table: Any, grid: Any, totals: Any, first: int, last: int, s: int, i0: int, i1: int, row: Any, out: Any
) -> None:
    """Add up listed moves made from s, and read them at the pair's own outcomes."""
    for k in range(first, last):
        row[land(grid, s, totals.source[k], totals.outcome[k])] += totals.often[k]
    _read(table, i0, i1, row, True, out)
    for k in range(first, last):
        row[land(grid, s, totals.source[k], totals.outcome[k])] = 0.0


@_compile
def _count_of(table: Any, first: int, last: int, outcome: int) -> float:
    """How often a pair was followed by an outcome; its outcomes are in order."""
    if last - first > 16:
        at = first + np.searchsorted(table.outcome[first:last], outcome)
        return float(table.count[at]) if at < last and table.outcome[at] == outcome else 0.0
    for i in range(first, last):
        if table.outcome[i] == outcome:
            return float(table.count[i])
    return 0.0


@_compile
def judge(
    d: int,
    low: int,
    high: int,  # states low .. high - 1 of data set d
    table: Any,
    grid: Any,
    totals: Any,
    share: Any,  # (A, J): with mixed, only what this mix of the candidates says
    mixed: bool,
    out: Any,  # out (answers, J or 1): chances of what was seen, its pair's own rows left out
    action: Any,  # out (answers,): its action
    visits: Any,  # out (answers,): those of its pair at the pair's first answer, 0 at others
) -> int:
    """Say how likely each candidate, or their mix, finds each non-zero of some states; how many there were."""
    S, A, N = table.states, table.actions, table.outcomes
    J = share.shape[1]
    row, around = np.zeros(N), np.empty(max(len(grid.offsets), 1), dtype=np.int64)
    q, fields = np.empty(J), np.zeros((6, 16))
    tried, moved, at = totals.tried[d].sum(), totals.moved[d].sum(), 0
    for s in range(low, high):
        begin, end = table.pointer[(d * S + s) * A], table.pointer[(d * S + s + 1) * A]
        here = 0.0
        for i in range(begin, end):
            here += table.count[i]
        known = J > MOVES and grid.placed[s] and begin < end
        found, close = neighbors(grid, s, around) if known else (0, 0)
        for a in range(A):
            line = (d * S + s) * A + a
            i0, i1 = table.pointer[line], table.pointer[line + 1]
            own, near, wider = 0.0, 0.0, 0.0
            for i in range(i0, i1):
                own += table.count[i]
            if i1 - i0 > fields.shape[1]:
                fields = np.zeros((6, i1 - i0))
            if known and i0 < i1:
                any_first, any_last = totals.first[d, A], totals.first[d, A + 1]
                _read_moves(table, grid, totals, any_first, any_last, s, i0, i1, row, fields[0])
                any_first, any_last = totals.first[d, a], totals.first[d, a + 1]
                _read_moves(table, grid, totals, any_first, any_last, s, i0, i1, row, fields[1])
                for j in (2, 4):
                    near = _add_nearby(table, grid, d, s, a, around, 0, close, j == 2, row)
                    _read(table, i0, i1, row, False, fields[j + 1])
                    wider = near + _add_nearby(table, grid, d, s, a, around, close, found, j == 2, row)
                    _read(table, i0, i1, row, False, fields[j])
                    _wipe_nearby(table, grid, d, s, a, around, found, j == 2, row)
            for i in range(i0, i1):
                n, c, k = table.outcome[i], table.count[i], i - i0
                arrived, by_state = 0.0, 0.0
                for b in range(A):
                    arrived += totals.arrived[d, b, n]
                    if b != a:
                        other = (d * S + s) * A + b
                        by_state += _count_of(table, table.pointer[other], table.pointer[other + 1], n)
                q[UNIFORM] = 1.0 / N
                q[ARRIVALS] = (arrived - c + q[UNIFORM]) / (tried - own + 1.0)
                q[ACTION] = (totals.arrived[d, a, n] - c + q[ARRIVALS]) / (totals.tried[d, a] - own + 1.0)
                q[STATE] = (by_state + q[ARRIVALS]) / (here - own + 1.0)
                q[STAY] = (1.0 - STAYS) / N + (STAYS if n == s else 0.0)
                if known:
                    q[MOVES] = (fields[0, k] + q[UNIFORM]) / (moved - own + 1.0)
                    q[ACTION_MOVES] = (fields[1, k] + q[MOVES]) / (totals.moved[d, a] - own + 1.0)
                    q[WIDER_MOVES] = (fields[2, k] + q[ACTION_MOVES]) / (wider + 1.0)
                    q[NEAR_MOVES] = (fields[3, k] + q[WIDER_MOVES]) / (near + 1.0)
                    q[WIDER] = (fields[4, k] + q[ACTION]) / (wider + 1.0)
                    q[NEAR] = (fields[5, k] + q[WIDER]) / (near + 1.0)
                elif J > MOVES:  # a state without a place has nothing near it
                    q[MOVES : NEAR_MOVES + 1] = q[UNIFORM]
                    q[WIDER : NEAR + 1] = q[ACTION]
                if mixed:
                    out[at, 0] = 0.0
                    for j in range(J):
                        out[at, 0] += share[a, j] * q[j]
                else:
                    for j in range(J):
                        out[at, j] = q[j]
                    action[at], visits[at] = a, own if i == i0 else 0.0
                at += 1
    return at


@_compile
def _looked_on(share: float, rows: float) -> float:
    """Weight of each row of a candidate that has so many, and also what is left for the one it looks on at."""
    return share / (rows + 1.0)


@_compile
def lend(
    table: Any,
    grid: Any,
    totals: Any,
    visits: Any,  # (D, S, A)
    d: int,
    s: int,
    a: int,
    share: Any,  # (J,): of the candidates, for this action
    around: Any,  # neighbors of s
    found: int,
    close: int,
    values: Any,  # (N,): what outcomes are worth
    row: Any,  # out (N,) where ``written``: the row itself, without its shared parts
    written: bool,
) -> Any:
    """Mix the candidates of a pair, its own rows in: the expected value, and the weights of the shared parts.

    Those are: of each arrival of the action, of each arrival, and of the uniform row; the value is without them.
    """
    S, A = table.states, table.actions
    line = (d * S + s) * A
    J, own, worth = len(share), visits[d, s, a], 0.0
    uniform, by_action, mine = share[UNIFORM] + (1.0 - STAYS) * share[STAY], share[ACTION], 0.0
    if J > MOVES and not grid.placed[s]:
        uniform += share[MOVES] + share[ACTION_MOVES] + share[WIDER_MOVES] + share[NEAR_MOVES]
        by_action += share[WIDER] + share[NEAR]
    elif J > MOVES:
        near = wider = own
        for k in range(found):
            wider += visits[d, around[k], a]
            near += visits[d, around[k], a] if k < close else 0.0
        moves1 = _looked_on(share[NEAR_MOVES], near)
        moves2 = _looked_on(share[WIDER_MOVES] + moves1, wider)
        moves3 = _looked_on(share[ACTION_MOVES] + moves2, totals.moved[d, a])
        moves4 = _looked_on(share[MOVES] + moves3, totals.moved[d].sum())
        rows1 = _looked_on(share[NEAR], near)
        rows2 = _looked_on(share[WIDER] + rows1, wider)
        uniform, by_action, mine = uniform + moves4, by_action + rows2, moves1 + moves2 + rows1 + rows2
        for k in range(found):
            moving = moves2 + (moves1 if k < close else 0.0)
            staying = rows2 + (rows1 if k < close else 0.0)
            other = (d * S + around[k]) * A + a
            for i in range(table.pointer[other], table.pointer[other + 1]):
                n, c = table.outcome[i], table.count[i]
                to = land(grid, s, around[k], n)
                worth += c * (moving * values[to] + staying * values[n])
                if written:
                    row[to] += moving * c
                    row[n] += staying * c
        worth += _lend_moves(grid, totals, totals.first[d, a], totals.first[d, a + 1], s, moves3, values, row, written)
        worth += _lend_moves(grid, totals, totals.first[d, A], totals.first[d, A + 1], s, moves4, values, row, written)
    by_action = _looked_on(by_action, totals.tried[d, a])
    here = visits[d, s].sum()
    by_state = _looked_on(share[STATE], here)
    arrivals = _looked_on(share[ARRIVALS] + by_action + by_state, totals.tried[d].sum())
    for b in range(A):
        weight = by_state + (mine if b == a else 0.0)
        for i in range(table.pointer[line + b], table.pointer[line + b + 1]):
            worth += weight * table.count[i] * values[table.outcome[i]]
            if written:
                row[table.outcome[i]] += weight * table.count[i]
    worth += STAYS * share[STAY] * values[s]
    if written:
        row[s] += STAYS * share[STAY]
    return worth, by_action, arrivals, uniform + arrivals


@_compile
def _lend_moves(
    grid: Any, totals: Any, first: int, last: int, s: int, weight: float, values: Any, row: Any, written: bool
) -> float:
    worth = 0.0
    for k in range(first, last):
        to, much = land(grid, s, totals.source[k], totals.outcome[k]), weight * totals.often[k]
        worth += much * values[to]
        if written:
            row[to] += much
    return worth


@_compile
def write(start: int, stop: int, table: Any, grid: Any, totals: Any, visits: Any, share: Any, out: Any) -> None:
    """Write the mixed rows of all pairs of some data sets, ``out`` (D, S, A, N); ``share`` is (D, A, J)."""
    S, A, N = table.states, table.actions, table.outcomes
    values, around = np.zeros(N), np.empty(max(len(grid.offsets), 1), dtype=np.int64)
    for d in range(start, stop):
        arrived = totals.arrived[d].sum(axis=0)
        for s in range(S):
            found, close = neighbors(grid, s, around)
            for a in range(A):
                row = out[d, s, a]
                row[:] = 0.0
                _, by_action, arrivals, uniform = lend(
                    table, grid, totals, visits, d, s, a, share[d, a], around, found, close, values, row, True
                )
                for n in range(N):
                    row[n] += by_action * totals.arrived[d, a, n] + arrivals * arrived[n] + uniform / N


@_compile
def chances(
    start: int, stop: int, state: Any, action: Any, table: Any, grid: Any, totals: Any, visits: Any, share: Any,
    outcome: Any, out: Any,
) -> None:  # fmt: skip
    """Chances of some outcomes of some pairs of one data set: ``out[i]`` of ``outcome[i]`` after the i-th pair."""
    N = table.outcomes
    values, row = np.zeros(N), np.zeros(1)
    around = np.empty(max(len(grid.offsets), 1), dtype=np.int64)
    arrived = totals.arrived[0].sum(axis=0)
    for i in range(start, stop):
        s, a, n = state[i], action[i], outcome[i]
        found, close = neighbors(grid, s, around)
        values[n] = 1.0
        worth, by_action, arrivals, uniform = lend(
            table, grid, totals, visits, 0, s, a, share[0, a], around, found, close, values, row, False
        )
        values[n] = 0.0
        out[i] = worth + by_action * totals.arrived[0, a, n] + arrivals * arrived[n] + uniform / N


@_compile
def expect(
    start: int,
    stop: int,
    table: Any,
    grid: Any,
    totals: Any,
    visits: Any,
    share: Any,
    values: Any,  # (N,)
    shared: Any,  # (A + 2,): what the arrivals of each action are worth, those of all, and the uniform row
    policy: Any,  # (S,): only these actions; or (0,): all
    out: Any,  # out (S, A) or (S, 1)
) -> None:
    """Expected values of the pairs of some states of one data set."""
    A = table.actions
    row, around = np.zeros(1), np.empty(max(len(grid.offsets), 1), dtype=np.int64)
    for s in range(start, stop):
        found, close = neighbors(grid, s, around)
        for k in range(out.shape[1]):
            a = policy[s] if len(policy) else k
            worth, by_action, arrivals, uniform = lend(
                table, grid, totals, visits, 0, s, a, share[0, a], around, found, close, values, row, False
            )
            out[s, k] = worth + by_action * shared[a] + arrivals * shared[A] + uniform * shared[A + 1]
