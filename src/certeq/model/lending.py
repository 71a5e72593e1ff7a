"""Targets for planning: the candidates of each pair mixed by their shares, its own rows in.

The mix is a weighted sum of rows of other pairs. Its weights follow from the shares from the nearest candidate on: what
a candidate leaves to the next is added to the next one's own share. See `certeq.model.borrowing` for the candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base.compiling import njit
from certeq.model.borrowing import (
    ACTION,
    ACTION_MOVES,
    ARRIVALS,
    LOCAL,
    MOVES,
    NEAR,
    NEAR_MOVES,
    STATE,
    STAY,
    STAYS,
    UNIFORM,
    WIDER_MOVES,
)
from certeq.model.lattice import neighbors
from certeq.model.walls import landings

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inner = njit(inner=True, nogil=True, error_model="numpy")
_compile_into = njit(cache=True, nogil=True, error_model="numpy", inline="always")  # a call would count references


@_inner
def _looked_on(share: float, rows: float, prior: float = 1.0) -> float:
    """Weight of each row of a candidate that has so many; what it looks on at is left ``prior`` times that."""
    return share / (rows + prior)


@_compile_into
def lend(
    table: Any,
    moves: Any,
    totals: Any,
    visits: Any,  # (D, S, A)
    d: int,
    s: int,
    a: int,
    placed: bool,
    share: Any,  # (J,): of the candidates, for this action
    around: Any,  # neighbors of s, and what lies across
    found: int,
    close: int,
    here: Any,  # (moves,): where each move leads from s
    values: Any,  # (N,): what outcomes are worth
    row: Any,  # out (N,) where ``written``: the row itself, without its shared parts
    written: bool,
) -> Any:
    """Mix the candidates of a pair: the expected value, and the weights of the shared parts.

    Those are: of each move made from s, of each arrival of the action, of each arrival, and of the uniform row. The
    value and the row are without them.
    """
    S, A = table.states, table.actions
    pointer, outcome, count, number = table.pointer, table.outcome, table.count, moves.number
    line = (d * S + s) * A
    J, own, worth = len(share), float(visits[d, s, a]), 0.0
    uniform, by_action = share[UNIFORM] + (1.0 - STAYS) * share[STAY], share[ACTION]
    moved, mine, moves4 = 0.0, 0.0, 0.0  # the first two: weights of the pair's own rows, as moves and as they are
    if J > MOVES and not placed:
        uniform += share[MOVES] + share[ACTION_MOVES] + share[WIDER_MOVES] + share[NEAR_MOVES]
        by_action += share[NEAR]
    elif J > MOVES:
        near = wider = between = own
        for k in range(found):
            seen = visits[d, around[0, k], a]
            wider += seen
            near += seen if k < close else 0
            between += seen if k < close and around[1, k] >= 0 and visits[d, around[1, k], a] > 0 else 0
        moves1 = _looked_on(share[NEAR_MOVES], near, LOCAL)
        moves2 = _looked_on(share[WIDER_MOVES] + LOCAL * moves1, wider, LOCAL)
        moves3 = _looked_on(share[ACTION_MOVES] + LOCAL * moves2, totals.moved[d, a])
        moves4 = _looked_on(share[MOVES] + moves3, totals.moved[d].sum())
        rows1 = _looked_on(share[NEAR], between, LOCAL)
        uniform, by_action, moved, mine = uniform + moves4, by_action + LOCAL * rows1, moves1 + moves2, rows1
        for k in range(found):
            both = k < close and around[1, k] >= 0 and visits[d, around[1, k], a] > 0
            moving, staying = moves2 + (moves1 if k < close else 0.0), rows1 if both else 0.0
            other = (d * S + around[0, k]) * A + a
            for i in range(pointer[other], pointer[other + 1]):
                to, n, c = here[number[i]], outcome[i], count[i]
                if written:
                    row[to] += moving * c
                    row[n] += staying * c
                else:
                    worth += c * (moving * values[to] + staying * values[n])
        for k in range(totals.first[d, a], totals.first[d, a + 1]):
            to, much = here[totals.move[k]], moves3 * totals.often[k]
            if written:
                row[to] += much
            else:
                worth += much * values[to]
    by_action = _looked_on(by_action, totals.tried[d, a])
    by_state = _looked_on(share[STATE], visits[d, s].sum())
    arrivals = _looked_on(share[ARRIVALS] + by_action + by_state, totals.tried[d].sum())
    for b in range(A):
        moving, staying = (moved, by_state + mine) if b == a else (0.0, by_state)
        for i in range(pointer[line + b], pointer[line + b + 1]):
            to, n, c = here[number[i]], outcome[i], count[i]
            if written:
                row[to] += moving * c
                row[n] += staying * c
            else:
                worth += c * (moving * values[to] + staying * values[n])
    if written:
        row[s] += STAYS * share[STAY]
    else:
        worth += STAYS * share[STAY] * values[s]
    return worth, moves4, by_action, arrivals, uniform + arrivals


@_compile
def write(
    start: int, stop: int, table: Any, grid: Any, moves: Any, totals: Any, visits: Any, share: Any, out: Any
) -> None:
    """Write the mixed rows of all pairs of some data sets, ``out`` (D, S, A, N); ``share`` is (D, A, J)."""
    S, A, N = table.states, table.actions, table.outcomes
    values, general, arrived = np.zeros(N), np.zeros(N), np.zeros(N)
    around = np.empty((2, max(len(grid.offsets), 1)), dtype=np.int64)
    room = np.empty(len(moves.source), dtype=np.int32)
    for d in range(start, stop):
        arrived[:] = 0.0
        for a in range(A):
            for n in range(N):
                arrived[n] += totals.arrived[d, a, n]
        for s in range(S):
            found, close = neighbors(grid, s, around)
            here = landings(grid, moves, d, s, room)
            general[:] = 0.0
            if grid.placed[s]:
                for k in range(totals.first[d, A], totals.first[d, A + 1]):
                    general[here[totals.move[k]]] += totals.often[k]
            for a in range(A):
                row = out[d, s, a]
                row[:] = 0.0
                _, mean, by_action, arrivals, uniform = lend(
                    table, moves, totals, visits, d, s, a, grid.placed[s], share[d, a], around, found, close, here,
                    values, row, True,
                )  # fmt: skip
                for n in range(N):
                    shared = by_action * totals.arrived[d, a, n] + arrivals * arrived[n] + uniform / N
                    row[n] += mean * general[n] + shared


@_inner
def _worth_of_moves(placed: bool, totals: Any, here: Any, values: Any) -> float:
    """What all moves of one data set, made from a state, are worth."""
    worth, A = 0.0, totals.first.shape[1] - 2
    if placed:
        for k in range(totals.first[0, A], totals.first[0, A + 1]):
            worth += totals.often[k] * values[here[totals.move[k]]]
    return worth


@_compile
def chances(
    start: int, stop: int, state: Any, action: Any, outcome: Any, table: Any, grid: Any, moves: Any, totals: Any,
    visits: Any, share: Any, out: Any,
) -> None:  # fmt: skip
    """Chances of some outcomes of some pairs of one data set: ``out[i]`` of ``outcome[i]`` after the i-th pair."""
    N = table.outcomes
    values, row, around = np.zeros(N), np.zeros(1), np.empty((2, max(len(grid.offsets), 1)), dtype=np.int64)
    room = np.empty(len(moves.source), dtype=np.int32)
    arrived = totals.arrived[0].sum(axis=0)
    for i in range(start, stop):
        s, a, n = state[i], action[i], outcome[i]
        found, close = neighbors(grid, s, around)
        here = landings(grid, moves, 0, s, room)
        values[n] = 1.0
        worth, mean, by_action, arrivals, uniform = lend(
            table, moves, totals, visits, 0, s, a, grid.placed[s], share[0, a], around, found, close, here, values,
            row, False,
        )  # fmt: skip
        worth += mean * _worth_of_moves(grid.placed[s], totals, here, values)
        values[n] = 0.0
        out[i] = worth + by_action * totals.arrived[0, a, n] + arrivals * arrived[n] + uniform / N


@_compile
def expect(
    start: int,
    stop: int,
    table: Any,
    grid: Any,
    moves: Any,
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
    row, around = np.zeros(1), np.empty((2, max(len(grid.offsets), 1)), dtype=np.int64)
    room = np.empty(len(moves.source), dtype=np.int32)
    for s in range(start, stop):
        found, close = neighbors(grid, s, around)
        here = landings(grid, moves, 0, s, room)
        general = _worth_of_moves(grid.placed[s], totals, here, values)
        for k in range(out.shape[1]):
            a = policy[s] if len(policy) else k
            worth, mean, by_action, arrivals, uniform = lend(
                table, moves, totals, visits, 0, s, a, grid.placed[s], share[0, a], around, found, close, here, values,
                row, False,
            )  # fmt: skip
            worth += mean * general + by_action * shared[a]
            out[s, k] = worth + arrivals * shared[A] + uniform * shared[A + 1]


@_compile
def write_sparsely(
    start: int,
    stop: int,
    table: Any,
    grid: Any,
    moves: Any,
    totals: Any,
    visits: Any,
    share: Any,
    line_starts: Any,  # (S * A + 1,): out, how many entries each line has; or, once added up, where each begins
    columns: Any,  # out, the entries of all lines in order; or (0,): they are only counted
    chances: Any,  # out, likewise: each line divided by its sum
    parts: Any,  # out (4, S, A): that sum, and what the shared parts add: arrivals of the action, of all, and uniform
) -> None:
    """Write the pairs of some states of one data set, each as a short line and amounts of what all pairs share."""
    S, A, N = table.states, table.actions, table.outcomes
    values, row, seen = np.zeros(1), np.zeros(N), np.full(N, -1, dtype=np.int64)
    around = np.empty((2, max(len(grid.offsets), 1)), dtype=np.int64)
    room, found_at = np.empty(len(moves.source), dtype=np.int32), np.empty(N, dtype=np.int32)
    for s in range(start, stop):
        found, close = neighbors(grid, s, around)
        here = landings(grid, moves, 0, s, room)
        for a in range(A):
            line = s * A + a
            _, mean, by_action, arrivals, uniform = lend(
                table, moves, totals, visits, 0, s, a, grid.placed[s], share[0, a], around, found, close, here, values,
                row, True,
            )  # fmt: skip
            n = _note(row, seen, found_at, 0, line, s)
            if grid.placed[s]:
                for k in range(totals.first[0, A], totals.first[0, A + 1]):
                    row[here[totals.move[k]]] += mean * totals.often[k]
                for m in range(len(here)):
                    n = _note(row, seen, found_at, n, line, here[m])
                for k in range(close):
                    other = around[0, k] * A + a
                    for i in range(table.pointer[other], table.pointer[other + 1]):
                        n = _note(row, seen, found_at, n, line, table.outcome[i])
            for i in range(table.pointer[s * A], table.pointer[s * A + A]):
                n = _note(row, seen, found_at, n, line, table.outcome[i])
            places, total = found_at[:n], 0.0
            for k in range(n):
                total += row[places[k]]
            if len(columns):
                places.sort()
                at = line_starts[line]
                for k in range(n):
                    if places[k] < S:
                        columns[at], chances[at] = places[k], row[places[k]] / total
                        at += 1
                parts[0, s, a], parts[1, s, a] = total, by_action * totals.tried[0, a]
                parts[2, s, a], parts[3, s, a] = arrivals * totals.tried[0].sum(), uniform
            else:
                line_starts[line + 1] = n - (N > S and row[N - 1] > 0)
            for k in range(n):
                row[places[k]] = 0.0


@_compile_into
def _note(row: Any, seen: Any, found_at: Any, n: int, line: int, place: int) -> int:
    """Note a place of a line that holds something, unless it was noted already; returns how many there are."""
    if row[place] > 0 and seen[place] != line:
        seen[place] = line
        found_at[n] = place
        return n + 1
    return n
