"""Finding one's way among positions, for compiled code: who is near, and where a move leads from another place.

A move is what leads from one state to an outcome: so many places along each line or ring, and on a label axis either
"the same" or "to this label". Made from another state, it leads so many places on from there; it is held at the ends of
a line; where it would lead to a place that no state has, the mover stays. An outcome without a place (an ending, or a
state that has none) is the same outcome from everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Integers
from certeq.base.compiling import njit
from certeq.data.positions import Positions

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inner = njit(inner=True, nogil=True, error_model="numpy")
LINE, RING, LABEL = range(3)
REACH = 2  # places that the wider neighborhood reaches
MOST_NEIGHBORS = 64  # beyond, with six lines or more, the wider neighborhood is left out
ROOMY = 16  # times as many places as states: then looking a place up in a table beats bisection


class Lattice(NamedTuple):
    """Positions as compiled code wants them; no states have a place if there are no positions."""

    places: Any  # (S, d) int32
    placed: Any  # (S,) bool
    size: Any  # (d,) int64
    axis: Any  # (d,) int64: LINE, RING or LABEL
    stride: Any  # (d,) int64: of the number of a place
    table: Any  # (places,) int32: the state at each place or -1; empty where it would be too large
    keys: Any  # (S,) int64: sorted numbers of the places that have a state, where there is no table
    order: Any  # (S,) int32: their states
    offsets: Any  # (n, d) int32: to the neighbors, those one step away first
    near: int  # how many of them are one step away
    closed: Any  # (D, S, 2d) bool: whether a wall stands before the next place back and forth on each axis, by data set
    walled: Any  # (D,) bool: whether there is any


def lattice(positions: Positions | None, n_states: int) -> Lattice:
    """Lay positions out."""
    if positions is None:
        positions = Positions(np.full((n_states, 1), np.nan))
    size, d = positions.sizes, len(positions.axes)
    stride = np.cumprod(np.append(1, size[::-1]))[:-1][::-1].astype(np.int64)
    key = positions.places @ stride
    at = np.flatnonzero(positions.placed)
    total = int(stride[0] * size[0])
    table, keys, order = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32)
    if total <= ROOMY * n_states + 4096:
        table = np.full(total, -1, dtype=np.int32)
        table[key[at]] = at
    else:
        by_key = at[np.argsort(key[at])]
        keys, order = key[by_key], by_key.astype(np.int32)
    axis = np.array([("line", "ring", "label").index(word) for word in positions.axes], dtype=np.int64)
    offsets, near = _offsets(np.flatnonzero(axis != LABEL), d)
    return Lattice(
        positions.places.astype(np.int32), positions.placed, size, axis, stride, table, keys, order, offsets, near,
        np.zeros((0, n_states, 2 * d), dtype=bool), np.zeros(0, dtype=bool),
    )  # fmt: skip


def _offsets(along: Integers, d: int) -> tuple[Any, int]:
    """Steps to the places at most REACH steps away along lines and rings, one step first; and how many those are."""
    steps = [tuple([0] * d)]
    rings = []
    for _ in range(REACH):
        wider = {(*step[:k], step[k] + by, *step[k + 1 :]) for step in steps for k in along.tolist() for by in (-1, 1)}
        fresh = sorted(wider - set(steps) - {tuple([0] * d)})
        rings.append(fresh)
        steps = steps + fresh
    one, two = rings
    chosen = one + (two if len(one) + len(two) <= MOST_NEIGHBORS else [])
    return np.array(chosen, dtype=np.int32).reshape(-1, d), len(one)


def move_keys(positions: Positions, state: Integers, outcome: Integers) -> Integers:
    """A number for the move from each state to each outcome; equal numbers are equal moves.

    Outcomes without a place have negative numbers of their own, as has a move from a state without one.
    """
    S = positions.n_states
    inside = np.minimum(outcome, S - 1)
    somewhere = (outcome < S) & positions.placed[inside] & positions.placed[state]
    key = np.zeros(np.broadcast_shapes(state.shape, outcome.shape), dtype=np.int64)
    for k, (axis, size) in enumerate(zip(positions.axes, positions.sizes.tolist(), strict=True)):
        here, there = positions.places[state, k], positions.places[inside, k]
        if axis == "label":
            code = np.where(here == there, 0, there + 1)
        else:
            code = (there - here) % size if axis == "ring" else there - here + size - 1
        key = key * (2 * size) + code
    return np.asarray(np.where(somewhere, key, -1 - outcome))


@_inner
def place_of(ordered: Any, low: int, high: int, sought: int) -> int:
    """Where a number stands, or would, between two places of an ordered list; NumPy's takes far longer to compile."""
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < sought:
            low = middle + 1
        else:
            high = middle
    return low


@_compile
def find(grid: Any, key: Any) -> int:
    """The state at a place, by the number of the place, or -1."""
    if len(grid.table):
        return int(grid.table[key])
    at = place_of(grid.keys, 0, len(grid.keys), key)
    if at < len(grid.keys) and grid.keys[at] == key:
        return int(grid.order[at])
    return -1


@_compile
def look_ahead(grid: Any, s: int, source: Any, outcome: Any, out: Any) -> None:
    """Note where each move, told by an example, leads from s.

    Looking them all up at once spares the loops over rows a call for each entry, whose counting of references alone
    would take most of their time.
    """
    places, placed, size, axis, stride = grid.places, grid.placed, grid.size, grid.axis, grid.stride
    table = grid.table
    for m in range(len(source)):
        to = outcome[m]
        if to >= len(placed) or not placed[to] or not placed[source[m]] or not placed[s]:
            out[m] = to
            continue
        key = np.int64(0)
        for k in range(len(size)):
            here, was, then = np.int64(places[s, k]), np.int64(places[source[m], k]), np.int64(places[to, k])
            if axis[k] == LABEL:
                place = here if was == then else then
            elif axis[k] == RING:
                place = (here + then - was) % size[k]
            else:
                place = min(max(here + then - was, np.int64(0)), size[k] - 1)
            key += place * stride[k]
        there = table[key] if len(table) else find(grid, key)
        out[m] = s if there < 0 else there


@_compile
def neighbors(grid: Any, s: int, out: Any) -> Any:
    """States near s, those one step away first: how many, and how many of them are one step away.

    ``out`` is (2, n): the states, and for those one step away the state across, as far on the other side, or -1.
    """
    found, close = 0, 0
    if not grid.placed[s]:
        return found, close
    for i in range(len(grid.offsets)):
        key, inside = np.int64(0), True
        for k in range(len(grid.size)):
            place = np.int64(grid.places[s, k]) + np.int64(grid.offsets[i, k])
            size = grid.size[k]
            if grid.axis[k] == RING:
                place = place - size if place >= size else place + size if place < 0 else place
            elif place < 0 or place >= size:
                inside = False
                break
            key += place * grid.stride[k]
        if inside:
            there = find(grid, key)
            if there >= 0:
                out[0, found] = there
                found += 1
        if i == grid.near - 1:
            close = found
    for k in range(close):
        out[1, k] = _across(grid, s, out[0, k])
    return found, close


@_inner
def _across(grid: Any, s: int, other: int) -> int:
    """The state as far from s as another, on the other side, or -1."""
    key = np.int64(0)
    for k in range(len(grid.size)):
        place, size = 2 * np.int64(grid.places[s, k]) - np.int64(grid.places[other, k]), grid.size[k]
        if grid.axis[k] == RING:
            place %= size
        elif place < 0 or place >= size:
            return -1
        key += place * grid.stride[k]
    return int(find(grid, key))
