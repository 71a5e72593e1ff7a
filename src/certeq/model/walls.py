"""Walls: borders between neighboring places that hardly anybody crosses, although usual moves would.

Moves are carried from state to state, and without this they would be carried through walls: a few per cent of a row,
which no row of its own contradicts, and which a plan that looks for the best way will find. A border is told by the
state in front of it, the axis and the direction. With the rows that there are, the moves that each action usually makes
would cross it X times on average, and O rows did. If it is open, O is Poisson with mean X; if a wall stands there, with
mean LEAK · X. So

    X (1 - LEAK) + O log LEAK

is the evidence for a wall. A border is closed where its own speaks for that and, with what speaks for it seen from the
other side and for its continuation to the sides, is more than SURE; and where its own speaks for it and a closed border
goes on there. Borrowed moves do not cross a closed border: what would cross it stays where it is. Along each axis, rows
cross the borders on the line of the state that they start from. Twin: ``tests/naive.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.compiling import njit
from certeq.data.positions import Positions
from certeq.model.lattice import LABEL, RING, find, look_ahead

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inner = njit(inner=True, nogil=True, error_model="numpy")
_compile_into = njit(cache=True, nogil=True, error_model="numpy", inline="always")  # a call would count references
LEAK = 0.02  # what gets through a wall, as a share of what would get through without
SURE = 10.0  # evidence, in nats, from which a border is closed
LOG_LEAK = math.log(LEAK)


def shifts(positions: Positions | None, source: Integers, outcome: Integers) -> Any:
    """How far each move, told by an example, leads along each axis, ``(moves, d)`` int32.

    On a ring the shorter way; on a label axis, and to or from where there is no place, nowhere.
    """
    if positions is None:
        return np.zeros((len(source), 1), dtype=np.int32)
    inside = np.minimum(outcome, positions.n_states - 1)
    known = (outcome < positions.n_states) & positions.placed[inside] & positions.placed[source]
    apart = np.where(known[:, None], positions.places[inside] - positions.places[source], 0)
    for k, (axis, size) in enumerate(zip(positions.axes, positions.sizes.tolist(), strict=True)):
        if axis == "ring":
            apart[:, k] = (apart[:, k] + (size - 1) // 2) % size - (size - 1) // 2
        elif axis == "label":
            apart[:, k] = 0
    return apart.astype(np.int32)


@_inner
def _next(grid: Any, s: int, side: int) -> int:
    """The state one step from s along axis ``side // 2``, forward if ``side`` is odd; or -1."""
    key = np.int64(0)
    for k in range(len(grid.size)):
        place = np.int64(grid.places[s, k])
        if k == side // 2:
            place += 1 if side % 2 else -1
            if grid.axis[k] == RING:
                place %= grid.size[k]
            elif grid.axis[k] == LABEL or place < 0 or place >= grid.size[k]:
                return -1
        key += place * grid.stride[k]
    return int(find(grid, key))


@_inner
def _would(d: int, moves: Any, totals: Any, out: Any) -> None:
    """How many of all moves of each action lead more than so many steps to each side, ``out`` (A, 2d, steps)."""
    shift = moves.shift
    out[:] = 0.0
    for a in range(out.shape[0]):
        for i in range(totals.first[d, a], totals.first[d, a + 1]):
            for k in range(shift.shape[1]):
                far = shift[totals.move[i], k]
                for step in range(abs(far)):
                    out[a, 2 * k + (1 if far > 0 else 0), step] += totals.often[i]


@_inner
def _weigh(
    d: int, table: Any, grid: Any, moves: Any, totals: Any, visits: Any, beyond: Any, would: Any, own: Any
) -> None:
    """Add up the evidence for a wall at each border."""
    S, A, sides = table.states, table.actions, own.shape[1]
    shift, number = moves.shift, moves.number
    own[:] = 0.0
    for s in range(S):
        if not grid.placed[s]:
            continue
        line = (d * S + s) * A
        for i in range(table.pointer[line], table.pointer[line + A]):  # what did cross
            for k in range(sides // 2):
                far, at = shift[number[i], k], s
                side = 2 * k + (1 if far > 0 else 0)
                for _ in range(abs(far)):
                    if beyond[at, side] < 0:
                        break
                    own[at, side] += LOG_LEAK * table.count[i]
                    at = beyond[at, side]
        for side in range(sides):  # what would
            at = s
            for step in range(would.shape[2]):
                expected = 0.0
                for a in range(A):
                    if visits[d, s, a] > 0:
                        expected += visits[d, s, a] * would[a, side, step] / totals.moved[d, a]
                if expected == 0.0 or beyond[at, side] < 0:
                    break
                own[at, side] += (1.0 - LEAK) * expected
                at = beyond[at, side]


@_compile
def close(start: int, stop: int, table: Any, grid: Any, moves: Any, totals: Any, visits: Any, out: Any) -> None:
    """Find the walls of some data sets; ``out`` is (D, S, 2d)."""
    S, A, sides = table.states, table.actions, out.shape[2]
    beyond, own = np.empty((S, sides), dtype=np.int32), np.empty((S, sides), dtype=np.float32)
    longest = 0
    for side in range(len(moves.far)):
        longest = max(longest, moves.far[side])
    would = np.empty((A, sides, longest))
    for s in range(S):
        for side in range(sides):
            beyond[s, side] = _next(grid, s, side) if grid.placed[s] else -1
    for d in range(start, stop):
        _would(d, moves, totals, would)
        _weigh(d, table, grid, moves, totals, visits, beyond, would, own)
        for s in range(S):
            for side in range(sides):
                out[d, s, side] = _surely(beyond, own, s, side)
        _continue(beyond, own, out[d])


@_inner
def _surely(beyond: Any, own: Any, s: int, side: int) -> bool:
    """Whether a border is closed for what was seen there, from across and beside it."""
    if own[s, side] <= 0:
        return False
    sure = own[s, side] + max(own[beyond[s, side], side ^ 1], 0.0)
    for other in range(own.shape[1]):
        if other // 2 != side // 2 and beyond[s, other] >= 0:
            sure += max(own[beyond[s, other], side], 0.0)
    return bool(sure > SURE)


@_inner
def _continue(beyond: Any, own: Any, closed: Any) -> None:
    """Close what a closed border goes on to, if its own rows speak for that: back and forth until nothing changes."""
    S, sides = closed.shape
    more, back = False, False
    for s in range(S):
        for side in range(sides):
            more |= closed[s, side]
    while more:
        more = False
        for i in range(S):
            s = S - 1 - i if back else i
            for side in range(sides):
                if own[s, side] > 0 and not closed[s, side]:
                    for other in range(sides):
                        if other // 2 != side // 2 and beyond[s, other] >= 0 and closed[beyond[s, other], side]:
                            closed[s, side] = more = True
        back = not back


@_compile_into
def landings(grid: Any, moves: Any, d: int, s: int, room: Any) -> Any:
    """Where each move leads from s in data set d; ``room`` may be written to."""
    walled = grid.walled[d]
    if moves.lands.shape[1]:
        if not walled:
            return moves.lands[s]
        for m in range(len(room)):
            room[m] = moves.lands[s, m]
    else:
        look_ahead(grid, s, moves.source, moves.outcome, room)
    if walled and grid.placed[s]:
        _hold_back(grid, grid.closed[d], moves, s, room)
    return room


@_inner
def _hold_back(grid: Any, closed: Any, moves: Any, s: int, out: Any) -> None:
    """Let moves that would cross a wall stay at s."""
    shift, held = moves.shift, False
    free = np.empty(closed.shape[1], dtype=np.int64)  # steps to the next wall, if a move could lead so far
    for side in range(len(free)):
        at, free[side] = s, moves.far[side]
        for steps in range(moves.far[side]):
            if closed[at, side]:
                free[side], held = steps, True
                break
            at = _next(grid, at, side)
            if at < 0:
                break
    if held:
        for m in range(len(shift)):
            for k in range(shift.shape[1]):
                if shift[m, k] > free[2 * k + 1] or -shift[m, k] > free[2 * k]:
                    out[m] = s
