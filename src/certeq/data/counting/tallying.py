"""Counting transitions: rows of codes in, the counts of one sparse matrix out, and what pairs earned.

A row (state, action, outcome) is one number, the key ``(state * A + action) * N + outcome``, and counting is sorting
the keys and measuring runs of equal ones. The top bits of a key choose one of about 500 buckets, whose keys then fit in
the cache next to the processor, where the remaining bits are sorted by counting, about ten at a time. The keys
themselves are never stored, only the bits below the bucket's. Unlike a hash table this ends with the cells in order, as
a CSR matrix has them, and it does not mind how many cells there are. Plain twin: a dictionary, in
tests/data/counting/test_tallying.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Floats, Integers
from certeq.base.compiling import njit

Codes: TypeAlias = NDArray[np.uint32]

_compile = njit(cache=True, nogil=True, error_model="numpy")
BUCKETS = 9  # bits of a key that choose its bucket, more only where the others would not fit in 32
DIGIT = 11  # bits that are sorted at a time, at most
MAX_BITS = 56  # of a key
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads words over the slots of a table
_1, _0 = np.uint64(1), np.uint64(0)


def _still(array: NDArray[Any]) -> NDArray[Any]:
    """The array as one that is only read: a kernel is compiled once for those, and not again for others."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class Cells(NamedTuple):
    """Counts as the three arrays of a CSR matrix, one line for each pair and one column for each outcome."""

    pointer: Integers  # (S * A + 1,)
    outcome: NDArray[np.int32]  # (cells,), increasing within a line
    number: Integers  # (cells,): how often


def count(state: Codes, action: Codes, outcome: Codes, S: int, A: int, N: int) -> Cells:
    """Count rows, all of them codes below S, A and N."""
    bits = (S * A * N - 1).bit_length()
    if bits > MAX_BITS:
        raise ValueError(f"{S} states x {A} actions x {N} outcomes are more than 2^{MAX_BITS} cells")
    shift = max(0, min(bits - BUCKETS, 32))
    digits = -(-shift // DIGIT)
    width = -(-shift // digits) if digits else 0
    n = len(state)
    starts = np.zeros((1 << (bits - shift)) + 1, dtype=np.int64)
    low, spare = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    rows = _still(state), _still(action), _still(outcome)
    _partition(*rows, np.uint64(A), np.uint64(N), np.uint64(shift), starts, low)
    pointer = np.zeros(S * A + 1, dtype=np.int64)
    outcomes, numbers = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)  # what is not written costs nothing
    cells = _runs(starts, low, spare, np.uint64(shift), digits, width, np.uint64(N), pointer, outcomes, numbers)
    np.cumsum(pointer, out=pointer)
    return Cells(pointer, outcomes[:cells].copy(), numbers[:cells].copy())


@_compile
def _partition(state: Any, action: Any, outcome: Any, A: Any, N: Any, shift: Any, starts: Any, low: Any) -> None:
    """Write the lower bits of all keys into ``low``, bucket by bucket: bucket b from starts[b] to starts[b + 1]."""
    for i in range(len(state)):
        key = (np.uint64(state[i]) * A + np.uint64(action[i])) * N + np.uint64(outcome[i])
        starts[(key >> shift) + _1] += 1
    for b in range(len(starts) - 1):
        starts[b + 1] += starts[b]
    place = starts[:-1].copy()
    for i in range(len(state)):
        key = (np.uint64(state[i]) * A + np.uint64(action[i])) * N + np.uint64(outcome[i])
        at = place[key >> shift]
        low[np.uint64(at)] = np.uint32(key & ((_1 << shift) - _1))
        place[key >> shift] = at + 1


@_compile
def _runs(
    starts: Any,
    low: Any,
    spare: Any,
    shift: Any,
    digits: int,
    width: int,
    N: Any,
    pointer: Any,  # out: cells of line l at l + 1
    outcomes: Any,  # out
    numbers: Any,  # out
) -> int:
    """Sort each bucket and measure the runs of equal keys; return how many there are."""
    place = np.empty(1 << width, np.uint32)
    cells, line, first = 0, _0, _0  # the current line, and its first key
    for b in range(len(starts) - 1):
        begin, end = np.uint64(starts[b]), np.uint64(starts[b + 1])
        if begin == end:
            continue
        keys, other = low, spare
        for digit in range(digits):
            _by_digit(keys, other, begin, end, np.uint64(digit * width), place)
            keys, other = other, keys
        i = begin
        while i < end:
            j = i + _1
            while j < end and keys[j] == keys[i]:
                j += _1
            key = (np.uint64(b) << shift) + np.uint64(keys[i])
            if key - first >= N:
                line = key // N
                first = line * N
            pointer[line + _1] += 1
            outcomes[cells] = key - first
            numbers[cells] = j - i
            cells += 1
            i = j
    return cells


@_compile
def _by_digit(keys: Any, out: Any, begin: Any, end: Any, shift: Any, place: Any) -> None:
    """Sort a range of keys by one digit, those with the same digit in the order in which they stand."""
    mask = np.uint64(len(place) - 1)
    place[:] = 0
    for i in range(begin, end):
        place[(np.uint64(keys[i]) >> shift) & mask] += np.uint32(1)
    at = np.uint32(begin)
    for d in range(len(place)):
        size = place[d]
        place[d] = at
        at += size
    for i in range(begin, end):
        key = keys[i]
        d = (np.uint64(key) >> shift) & mask
        out[place[d]] = key
        place[d] += np.uint32(1)


class Numbered(NamedTuple):
    """Words in the order in which they first occur, and which of them each row has."""

    words: NDArray[np.uint64]  # (k,), all different
    first: Integers  # (k,): row where each first occurs
    codes: Codes  # (n,)


def number(words: NDArray[np.uint64]) -> Numbered:
    """Number the different words of an array, by a hash table that doubles when a quarter of it is taken."""
    codes = np.empty(len(words), dtype=np.uint32)
    known, done, bits = 0, 0, 14
    different, first = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    while True:
        room = 1 << (bits - 2)
        different = np.append(different[:known], np.empty(room - known, dtype=np.uint64))
        first = np.append(first[:known], np.empty(room - known, dtype=np.int64))
        slots, held = np.zeros(1 << bits, dtype=np.uint32), np.empty(1 << bits, dtype=np.uint64)
        shift = np.uint64(64 - bits)
        _again(different[:known], slots, held, shift)
        done, known = _number(_still(words), done, slots, held, shift, different, first, known, codes)
        if done == len(words):
            return Numbered(different[:known], first[:known], codes)
        bits += 1


@_compile
def _again(different: Any, slots: Any, held: Any, shift: Any) -> None:
    """Enter known words into an empty table; a slot holds a word, and its number plus one."""
    mask = np.uint64(len(slots) - 1)
    for k in range(len(different)):
        slot = (different[k] * MIX) >> shift
        while slots[slot] != 0:
            slot = (slot + _1) & mask
        slots[slot] = k + 1
        held[slot] = different[k]


@_compile
def _number(
    words: Any, begin: int, slots: Any, held: Any, shift: Any, different: Any, first: Any, known: int, codes: Any
) -> tuple[int, int]:
    """Number words from row ``begin`` on, until the end or until there is no room: where it stopped, words known."""
    mask = np.uint64(len(slots) - 1)
    for i in range(begin, len(words)):
        word = words[i]
        slot = (word * MIX) >> shift
        while True:
            k = slots[slot]
            if k == 0:
                if known == len(different):
                    return i, known
                different[known] = word
                first[known] = i
                codes[i] = known
                known += 1
                slots[slot] = known
                held[slot] = word
                break
            if held[slot] == word:
                codes[i] = k - np.uint32(1)
                break
            slot = (slot + _1) & mask
    return len(words), known


def replace(codes: Codes, places: NDArray[np.uint32]) -> Codes:
    """``places[codes]``; NumPy would first make every code eight bytes long."""
    found = np.empty_like(codes)
    _replace(_still(codes), _still(places), found)
    return found


@_compile
def _replace(codes: Any, places: Any, found: Any) -> None:
    for i in range(len(codes)):
        found[i] = places[np.uint64(codes[i])]


class Earned(NamedTuple):
    """What rows earned, in units of a given size: those that went on, then those that ended."""

    pairs: Floats  # (2 * S * A,)
    arrived: Floats  # (N,): by outcome
    spread: Floats  # (2,): squared distances of the rows from the means of their pair and kind, added up
    span: Floats  # (2, 2): least and greatest of each kind, in no units


def earn(
    state: Codes, action: Codes, outcome: Codes, reward: Floats, number: Integers, A: int, N: int, size: float
) -> Earned:
    """Add up rewards by kind and pair, ``number`` ``(2 * S * A,)`` of which there are, and by outcome, in row order.

    Outcome N - 1 is an ending.
    """
    pairs, arrived = np.zeros(len(number)), np.zeros(N)
    spread, span = np.zeros(2), np.array([[np.inf, -np.inf]] * 2)
    rows = _still(state), _still(action), _still(outcome), _still(reward)
    _add(*rows, np.uint64(A), 1.0 / size, pairs, arrived, span)
    _spread(*rows, np.uint64(A), np.uint64(N), 1.0 / size, pairs / np.maximum(number, 1), spread)
    return Earned(pairs, arrived, spread, span)


@_compile
def _add(
    state: Any, action: Any, outcome: Any, reward: Any, A: Any, scale: float, pairs: Any, arrived: Any, span: Any
) -> None:
    ending, half = np.uint64(len(arrived) - 1), np.uint64(len(pairs) // 2)
    for i in range(len(state)):
        units = reward[i] * scale
        kind = _1 if np.uint64(outcome[i]) == ending else _0
        pairs[kind * half + np.uint64(state[i]) * A + np.uint64(action[i])] += units
        arrived[np.uint64(outcome[i])] += units
        span[kind, 0] = min(span[kind, 0], reward[i])
        span[kind, 1] = max(span[kind, 1], reward[i])


@_compile
def _spread(
    state: Any, action: Any, outcome: Any, reward: Any, A: Any, N: Any, scale: float, mean: Any, spread: Any
) -> None:
    half = np.uint64(len(mean) // 2)
    for i in range(len(state)):
        kind = _1 if np.uint64(outcome[i]) == N - _1 else _0
        distance = reward[i] * scale - mean[kind * half + np.uint64(state[i]) * A + np.uint64(action[i])]
        spread[kind] += distance * distance
