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
| ``near`` | the rows of the action in states one step away, where there are some on both sides | action |

Looking on is a prior of k rows: a candidate with counts f, m in all, is (f + k·base)/(m + k). So none of them rules an
outcome out, one that knows nothing says what the next says, and no constant depends on the number of data. What is near
has few rows, and looks on with k = 6; the others with k = 1. Rows of one side alone would lead to that side.

The candidates of a pair are *judged* with its own rows left out, since a row explains itself too well, and *planned*
with them in; the moves of any action are judged with all rows of the pair's action left out, since otherwise an action
that makes up most of the data would vouch for them. Endings are outcomes like others. What a move is, see
`certeq.model.lattice`. Twin: ``tests/naive.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.compiling import njit
from certeq.model.lattice import neighbors, place_of
from certeq.model.walls import landings

_compile = njit(cache=True, nogil=True, error_model="numpy")
_compile_into = njit(cache=True, nogil=True, error_model="numpy", inline="always")  # a call would count references

NAMES = ("uniform", "arrivals", "action", "state", "stay")
PLACED = ("moves", "action_moves", "wider_moves", "near_moves", "near")  # for states with positions
UNIFORM, ARRIVALS, ACTION, STATE, STAY, MOVES, ACTION_MOVES, WIDER_MOVES, NEAR_MOVES, NEAR = range(10)
LOCAL = 6.0  # rows by which what is near looks on
STAYS = 0.9  # of the candidate "stay"; the rest is uniform


class Totals(NamedTuple):
    """What the rows of each data set add up to."""

    arrived: Any  # (D, A, N): where each action led
    tried: Any  # (D, A)
    moved: Any  # (D, A): moves from a state with a place
    first: Any  # (D, A + 2) int64: where the moves of each action begin below, then those of any action; and the end
    move: Any  # (listed,) int32: number of a move
    often: Any  # (listed,): how often it was made


class Moves(NamedTuple):
    """The different moves, by number; where there are no positions, one that nobody made."""

    number: Any  # (nonzeros,) int32: that of each non-zero
    source: Any  # (moves,) int64: an example of each: from here
    outcome: Any  # (moves,) int64: to there
    lands: Any  # (S, moves) int32: where each leads from each state; (S, 0) where that would be too large
    shift: Any  # (moves, d) int32: how far each leads along each axis
    far: Any  # (2d,) int64: how far any of them leads to each side


@_compile
def add_up(start: int, stop: int, table: Any, grid: Any, moves: Any, room: Any, out: Any) -> None:
    """Add up the rows of some data sets; ``room[d]`` is where the list of moves of data set d may begin."""
    S, A, number = table.states, table.actions, moves.number
    slot = np.full(len(moves.source), -1, dtype=np.int64)
    for d in range(start, stop):
        at = room[d]
        for a in range(A + 1):  # the last list is that of any action
            out.first[d, a] = begin = at
            for s in range(S):
                for b in range(a, a + 1) if a < A else range(A):
                    line = (d * S + s) * A + b
                    for i in range(table.pointer[line], table.pointer[line + 1]):
                        c, m = table.count[i], number[i]
                        if a < A:
                            out.arrived[d, a, table.outcome[i]] += c
                            out.tried[d, a] += c
                        if grid.placed[s]:
                            if slot[m] < 0:
                                slot[m], out.move[at], out.often[at] = at, m, 0.0
                                at += 1
                            out.often[slot[m]] += c
                            if a < A:
                                out.moved[d, a] += c
            for k in range(begin, at):
                slot[out.move[k]] = -1
        out.first[d, A + 1] = at


@_compile_into
def _count_of(outcome: Any, count: Any, first: int, last: int, sought: int) -> float:
    """How often a pair was followed by an outcome; its outcomes are in order."""
    if last - first > 16:
        at = place_of(outcome, first, last, sought)
        return float(count[at]) if at < last and outcome[at] == sought else 0.0
    for i in range(first, last):
        if outcome[i] == sought:
            return float(count[i])
    return 0.0


@_compile
def judge(
    d: int,
    low: int,
    high: int,  # states low .. high - 1 of data set d
    table: Any,
    grid: Any,
    moves: Any,
    totals: Any,
    share: Any,  # (A, J): with mixed, only what this mix of the candidates says
    mixed: bool,
    out: Any,  # out (answers, J or 1): chances of what was seen, its pair's own rows left out
    action: Any,  # out (answers,): its action
    visits: Any,  # out (answers,): those of its pair at the pair's first answer, 0 at others
) -> None:
    """Say how likely each candidate, or their mix, finds each non-zero of some states."""
    S, A, N, J = table.states, table.actions, table.outcomes, share.shape[1]
    pointer, outcome, count, number = table.pointer, table.outcome, table.count, moves.number
    arrived, first, listed, often = totals.arrived[d], totals.first[d], totals.move, totals.often
    room, around = np.empty(len(moves.source), dtype=np.int32), np.empty((2, max(len(grid.offsets), 1)), dtype=np.int64)
    here = room
    general, row, plain, q, fields = np.zeros(N), np.zeros(N), np.zeros(N), np.empty(J), np.zeros((5, 16))
    tried, moved, at = totals.tried[d].sum(), totals.moved[d].sum(), 0
    for s in range(low, high):
        begin, end = pointer[(d * S + s) * A], pointer[(d * S + s + 1) * A]
        in_state, found, close = 0.0, 0, 0
        for i in range(begin, end):
            in_state += count[i]
        known = J > MOVES and grid.placed[s] and begin < end
        if known:
            found, close = neighbors(grid, s, around)
            here = landings(grid, moves, d, s, room)
            for k in range(first[A], first[A + 1]):
                general[here[listed[k]]] += often[k]
        for a in range(A):
            line = (d * S + s) * A + a
            i0, i1 = pointer[line], pointer[line + 1]
            own, near, wider, between = 0.0, 0.0, 0.0, 0.0
            for i in range(i0, i1):
                own += count[i]
            if i1 - i0 > fields.shape[1]:
                fields = np.zeros((5, i1 - i0))
            if known and i0 < i1:
                for k in range(first[a], first[a + 1]):
                    row[here[listed[k]]] += often[k]
                for i in range(i0, i1):
                    fields[0, i - i0] = general[outcome[i]] - row[outcome[i]]
                for i in range(i0, i1):
                    row[here[number[i]]] -= count[i]
                for i in range(i0, i1):
                    fields[1, i - i0] = row[outcome[i]]
                for k in range(first[a], first[a + 1]):
                    row[here[listed[k]]] = 0.0
                for ring in range(2):  # one step away, then two
                    for k in range(close if ring else 0, found if ring else close):
                        other, across = (d * S + around[0, k]) * A + a, (d * S + around[1, k]) * A + a
                        both = ring == 0 and around[1, k] >= 0 and pointer[across] < pointer[across + 1]
                        for i in range(pointer[other], pointer[other + 1]):
                            row[here[number[i]]] += count[i]
                            wider += count[i]
                            if both:
                                plain[outcome[i]] += count[i]
                                between += count[i]
                    near = wider if ring == 0 else near
                    for i in range(i0, i1):
                        fields[3 - ring, i - i0] = row[outcome[i]]
                        fields[4, i - i0] = plain[outcome[i]]
                for k in range(found):
                    other = (d * S + around[0, k]) * A + a
                    for i in range(pointer[other], pointer[other + 1]):
                        row[here[number[i]]] = 0.0
                        plain[outcome[i]] = 0.0
            for i in range(i0, i1):
                n, c, k = outcome[i], count[i], i - i0
                in_all, by_state = 0.0, 0.0
                for b in range(A):
                    in_all += arrived[b, n]
                    if b != a:
                        other = (d * S + s) * A + b
                        by_state += _count_of(outcome, count, pointer[other], pointer[other + 1], n)
                q[UNIFORM] = 1.0 / N
                q[ARRIVALS] = (in_all - c + q[UNIFORM]) / (tried - own + 1.0)
                q[ACTION] = (arrived[a, n] - c + q[ARRIVALS]) / (totals.tried[d, a] - own + 1.0)
                q[STATE] = (by_state + q[ARRIVALS]) / (in_state - own + 1.0)
                q[STAY] = (1.0 - STAYS) / N + (STAYS if n == s else 0.0)
                if known:
                    q[MOVES] = (fields[0, k] + q[UNIFORM]) / (moved - totals.moved[d, a] + 1.0)
                    q[ACTION_MOVES] = (fields[1, k] + q[MOVES]) / (totals.moved[d, a] - own + 1.0)
                    q[WIDER_MOVES] = (fields[2, k] + LOCAL * q[ACTION_MOVES]) / (wider + LOCAL)
                    q[NEAR_MOVES] = (fields[3, k] + LOCAL * q[WIDER_MOVES]) / (near + LOCAL)
                    q[NEAR] = (fields[4, k] + LOCAL * q[ACTION]) / (between + LOCAL)
                elif J > MOVES:  # a state without a place has nothing near it
                    for j in range(MOVES, NEAR_MOVES + 1):
                        q[j] = q[UNIFORM]
                    q[NEAR] = q[ACTION]
                if mixed:
                    out[at, 0] = 0.0
                    for j in range(J):
                        out[at, 0] += share[a, j] * q[j]
                else:
                    for j in range(J):
                        out[at, j] = q[j]
                    action[at], visits[at] = a, own if i == i0 else 0.0
                at += 1
        if known:
            for k in range(first[A], first[A + 1]):
                general[here[listed[k]]] = 0.0
