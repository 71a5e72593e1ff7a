"""Counting transitions: rows of codes in, the counts of one sparse matrix out, and what pairs earned.

A row (state, action, outcome) is one number, the key ``(state * A + action) * N + outcome``. The top bits of a key
choose one of about 500 buckets, and only the bits below are held, four bytes for each row, until many rows are there
(`Store`). Then bucket after bucket is counted in one of two ways, both of which end with the cells in order, as a CSR
matrix has them. Where rows repeat, each bit pattern has a counter of its own and a bit that says whether it was used:
of those few that a bucket uses, all are in the cache next to the processor. Where they do not repeat, or there are too
many patterns, the bucket is sorted, about ten bits at a time, and runs of equal keys are measured. Plain twin: a
dictionary, in tests/data/counting/test_tallying.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from certeq.base.compiling import njit  # isort: skip - before Numba

import numpy as np
from numba.cpython.unsafe import numbers as unsafe
from numpy.typing import NDArray

from certeq.base.arrays import Booleans, Floats, Integers

Codes: TypeAlias = NDArray[np.uint32]

_compile = njit(cache=True, nogil=True, error_model="numpy")
BUCKETS = 9  # bits of a key that choose its bucket, more only where the others would not fit in 32
DIGIT = 11  # bits that are sorted at a time, at most
MAX_BITS = 56  # of a key
LAID_OUT = 22  # bits below the bucket's for which there may be counters, at most
REPEATED = 4  # rows for each cell, at least, for counters to be quicker than sorting
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads words over the slots of a table
trailing_zeros: Any = unsafe.trailing_zeros  # whose annotation does not know that Numba fills in an argument
_0, _1, _6, _63 = map(np.uint64, (0, 1, 6, 63))


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


class RowsCounted(NamedTuple):
    """What was counted."""

    cells: Cells
    visits: Integers  # (S * A,): rows of each pair
    reached: Booleans  # (N,): which outcomes occur


class Store:
    """Rows, all of them codes below S, A and N, that are held until they are counted together."""

    def __init__(self, room: int, S: int, A: int, N: int) -> None:
        bits = (S * A * N - 1).bit_length()
        if bits > MAX_BITS:
            raise ValueError(f"{S} states x {A} actions x {N} outcomes are more than 2^{MAX_BITS} cells")
        self.sizes = S, A, N
        self.shift = max(0, min(bits - BUCKETS, 32))
        self.low = np.empty(room, dtype=np.uint32)  # lower bits; what is not written costs nothing
        self.starts: list[Integers] = []  # of the buckets, (2 ** (bits - shift) + 1,), for each block of rows
        self.buckets = 1 << (bits - self.shift)

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return int(self.starts[-1][-1]) if self.starts else 0

    def add(self, state: Codes, action: Codes, outcome: Codes) -> None:
        """Hold one more block of rows, for which there must be room."""
        _, A, N = map(np.uint64, self.sizes)
        block = _still(state), _still(action), _still(outcome)
        starts = np.zeros(self.buckets + 1, dtype=np.int64)
        starts[0] = self.rows
        _partition(*block, A, N, np.uint64(self.shift), starts, self.low)
        self.starts.append(starts)

    def count(self) -> RowsCounted:
        """Count all rows that are held."""
        S, A, N = self.sizes
        starts = np.stack(self.starts)  # (blocks, buckets + 1)
        n, largest = self.rows, int(np.diff(starts).sum(axis=0).max())
        laid_out = self.shift <= LAID_OUT
        often = np.zeros(1 << self.shift if laid_out else 0, dtype=np.uint32)
        used = np.zeros((len(often) + 63) // 64, dtype=np.uint64)
        digits = max(-(-self.shift // DIGIT), 1)
        place = np.empty(1 << -(-self.shift // digits), dtype=np.uint32)  # for one digit
        keys, spare = np.empty(largest, dtype=np.uint32), np.empty(largest, dtype=np.uint32)
        pointer = np.zeros(S * A + 1, dtype=np.int64)
        outcomes, numbers = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        visits, reached = np.zeros(S * A, dtype=np.int64), np.zeros(N, dtype=bool)
        scratch, out = (often, used, place, keys, spare), (pointer, outcomes, numbers, visits, reached)
        cells = _count(self.low, starts, np.uint64(self.shift), np.uint64(N), *scratch, *out)
        np.cumsum(pointer, out=pointer)
        for array in (outcomes, numbers):
            array.resize(cells, refcheck=False)  # in its place; a copy would need fresh memory
        return RowsCounted(Cells(pointer, outcomes, numbers), visits, reached)


def count(state: Codes, action: Codes, outcome: Codes, S: int, A: int, N: int) -> Cells:
    """Count rows, all of them codes below S, A and N."""
    store = Store(len(state), S, A, N)
    store.add(state, action, outcome)
    return store.count().cells


@_compile
def _partition(state: Any, action: Any, outcome: Any, A: Any, N: Any, shift: Any, starts: Any, low: Any) -> None:
    """Write the lower bits of all keys into ``low``, bucket b from starts[b] to starts[b + 1]; the first is given."""
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
def _count(
    low: Any,
    starts: Any,  # (blocks, buckets + 1)
    shift: Any,
    N: Any,
    often: Any,  # a counter for each pattern of lower bits, or none at all
    used: Any,  # a bit for each of them
    place: Any,
    keys: Any,
    spare: Any,
    pointer: Any,  # out: cells of line l at l + 1
    outcomes: Any,  # out
    numbers: Any,  # out
    visits: Any,  # out, as the next: none so far
    reached: Any,
) -> int:
    """Count each bucket; return how many cells there are."""
    cells, rows, line, first = 0, 0, _0, _0  # cells and rows so far; the current line, and its first key
    for b in range(starts.shape[1] - 1):
        top = np.uint64(b) << shift
        if len(often) and REPEATED * cells <= rows:
            _lay_out(low, starts, b, often, used)
            different = _read_off(often, used, keys, spare)
        else:
            different = _sort(low, starts, b, shift, place, keys, spare)
        for i in range(different):
            key = top + np.uint64(keys[i])
            if key - first >= N:
                line = key // N
                first = line * N
            pointer[line + _1] += 1
            outcomes[cells] = key - first
            numbers[cells] = spare[i]
            visits[line] += spare[i]
            reached[key - first] = True
            cells += 1
        for block in range(len(starts)):
            rows += starts[block, b + 1] - starts[block, b]
    return cells


@_compile
def _lay_out(low: Any, starts: Any, b: int, often: Any, used: Any) -> None:
    """Count the rows of a bucket, each by the counter of its own."""
    for block in range(len(starts)):
        for i in range(np.uint64(starts[block, b]), np.uint64(starts[block, b + 1])):
            key = np.uint64(low[i])
            often[key] += np.uint32(1)
            used[key >> _6] |= _1 << (key & _63)


@_compile
def _read_off(often: Any, used: Any, keys: Any, numbers: Any) -> int:
    """List the counters that were used, in order, and clear them; return how many there are."""
    different = 0
    for word in range(len(used)):
        bits = used[word]
        used[word] = _0
        while bits:
            key = (np.uint64(word) << _6) + np.uint64(trailing_zeros(bits))
            keys[different] = key
            numbers[different] = often[key]
            often[key] = 0
            different += 1
            bits &= bits - _1
    return different


@_compile
def _sort(low: Any, starts: Any, b: int, shift: Any, place: Any, keys: Any, spare: Any) -> int:
    """Sort the rows of a bucket; write the different ones into ``keys``, how often each into ``spare``."""
    end: Any = _0
    for block in range(len(starts)):
        for i in range(np.uint64(starts[block, b]), np.uint64(starts[block, b + 1])):
            keys[end] = low[i]
            end += _1
    ordered, other = keys, spare
    width: Any = np.uint64(trailing_zeros(np.uint64(len(place))))  # bits of a digit
    done: Any = _0  # bits that are sorted
    while done < shift:
        _by_digit(ordered, other, end, done, place)
        ordered, other = other, ordered
        done += width
    different = 0
    begin: Any = _0
    while begin < end:
        stop: Any = begin + _1
        while stop < end and ordered[stop] == ordered[begin]:
            stop += _1
        keys[different], spare[different] = ordered[begin], stop - begin  # where all that stood has been read
        different += 1
        begin = stop
    return different


@_compile
def _by_digit(keys: Any, out: Any, end: Any, shift: Any, place: Any) -> None:
    """Sort the first keys by one digit, those with the same digit in the order in which they stand."""
    mask = np.uint64(len(place) - 1)
    place[:] = 0
    for i in range(end):
        place[(np.uint64(keys[i]) >> shift) & mask] += np.uint32(1)
    at = np.uint32(0)
    for d in range(len(place)):
        size = place[d]
        place[d] = at
        at += size
    for i in range(end):
        key = keys[i]
        d = (np.uint64(key) >> shift) & mask
        out[place[d]] = key
        place[d] += np.uint32(1)


class Numbered(NamedTuple):
    """Words in the order in which they first occur, and which of them each row has."""

    words: NDArray[np.uint64]  # (k,) or (k, 2), all different
    first: Integers  # (k,): row where each first occurs
    codes: Codes  # (n,)


def number(words: NDArray[np.uint64]) -> Numbered:
    """Number the different words of an array ``(n,)``, or ``(n, 2)`` where they are twice as long.

    By a hash table that grows when an eighth of it is taken: what is looked up are numbers, which are short.
    """
    given = _still(words.reshape(len(words), words.ndim))  # (n, 1) or (n, 2)
    codes = np.empty(len(given), dtype=np.uint32)
    known, done, bits = 0, 0, 14
    different, first = np.empty((0, given.shape[1]), dtype=np.uint64), np.empty(0, dtype=np.int64)
    while True:
        room = 1 << (bits - 3)
        different = np.append(different[:known], np.empty((room - known, given.shape[1]), dtype=np.uint64), axis=0)
        first = np.append(first[:known], np.empty(room - known, dtype=np.int64))
        slots = np.zeros(1 << bits, dtype=np.uint32)
        _again(different[:known], slots, np.uint64(64 - bits))
        done, known = _number(given, done, slots, np.uint64(64 - bits), different, first, known, codes)
        if done == len(given):
            return Numbered(different[:known].reshape(known, *words.shape[1:]), first[:known], codes)
        bits += 2


@_compile
def _slot(words: Any, i: int, shift: Any) -> Any:
    """Where to look for a word first."""
    last = words[i, 1] * MIX if words.shape[1] == 2 else _0
    return ((words[i, 0] ^ last) * MIX) >> shift


@_compile
def _again(different: Any, slots: Any, shift: Any) -> None:
    """Enter known words into an empty table; a slot holds the number of a word, plus one."""
    mask = np.uint64(len(slots) - 1)
    for k in range(len(different)):
        slot = _slot(different, k, shift)
        while slots[slot] != 0:
            slot = (slot + _1) & mask
        slots[slot] = k + 1


@_compile
def _number(
    words: Any, begin: int, slots: Any, shift: Any, different: Any, first: Any, known: int, codes: Any
) -> tuple[int, int]:
    """Number words from row ``begin`` on, until the end or until there is no room: where it stopped, words known."""
    mask, last = np.uint64(len(slots) - 1), np.uint64(words.shape[1] - 1)
    for i in range(begin, len(words)):
        slot = _slot(words, i, shift)
        while slots[slot] != 0:
            k = np.uint64(slots[slot] - np.uint32(1))
            if different[k, _0] == words[i, _0] and different[k, last] == words[i, last]:
                codes[i] = k
                break
            slot = (slot + _1) & mask
        else:
            if known == len(different):
                return i, known
            different[known] = words[i]
            first[known] = i
            codes[i] = known
            known += 1
            slots[slot] = known
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

    number: Integers  # (2 * S * A,): rows of each pair
    pairs: Floats  # (2 * S * A,)
    arrivals: Integers  # (N,): rows by outcome
    arrived: Floats  # (N,): by outcome
    spread: Floats  # (2,): squared distances of the rows from the means of their pair and kind, added up
    span: Floats  # (2, 2): least and greatest of each kind, in no units


def earn(blocks: Sequence[tuple[Codes, Codes, Codes, Floats]], S: int, A: int, N: int, size: float) -> Earned:
    """Add up rewards by kind and pair, and by outcome, in the order of the rows; outcome N - 1 is an ending.

    A block of rows is their states, actions, outcomes and rewards.
    """
    number, pairs = np.zeros(2 * S * A, dtype=np.int64), np.zeros(2 * S * A)
    arrivals, arrived = np.zeros(N, dtype=np.int64), np.zeros(N)
    spread, span = np.zeros(2), np.array([[np.inf, -np.inf]] * 2)
    still = [tuple(_still(column) for column in block) for block in blocks]
    for rows in still:
        _add(*rows, np.uint64(A), 1.0 / size, number, pairs, arrivals, arrived, span)
    mean = pairs / np.maximum(number, 1)
    for rows in still:
        _spread(*rows, np.uint64(A), np.uint64(N), 1.0 / size, mean, spread)
    return Earned(number, pairs, arrivals, arrived, spread, span)


@_compile
def _add(
    state: Any,
    action: Any,
    outcome: Any,
    reward: Any,
    A: Any,
    scale: float,
    number: Any,
    pairs: Any,
    arrivals: Any,
    arrived: Any,
    span: Any,
) -> None:
    ending, half = np.uint64(len(arrived) - 1), np.uint64(len(pairs) // 2)
    least, greatest, least_ended, greatest_ended = span[0, 0], span[0, 1], span[1, 0], span[1, 1]
    for i in range(len(state)):
        then, pair = np.uint64(outcome[i]), np.uint64(state[i]) * A + np.uint64(action[i])
        if then == ending:
            pair += half
            least_ended, greatest_ended = min(least_ended, reward[i]), max(greatest_ended, reward[i])
        else:
            least, greatest = min(least, reward[i]), max(greatest, reward[i])
        number[pair] += 1
        pairs[pair] += reward[i] * scale
        arrivals[then] += 1
        arrived[then] += reward[i] * scale
    span[0, 0], span[0, 1], span[1, 0], span[1, 1] = least, greatest, least_ended, greatest_ended


@_compile
def _spread(
    state: Any, action: Any, outcome: Any, reward: Any, A: Any, N: Any, scale: float, mean: Any, spread: Any
) -> None:
    half, went_on, ended = np.uint64(len(mean) // 2), spread[0], spread[1]
    for i in range(len(state)):
        pair = np.uint64(state[i]) * A + np.uint64(action[i])
        if np.uint64(outcome[i]) == N - _1:
            distance = reward[i] * scale - mean[half + pair]
            ended += distance * distance
        else:
            distance = reward[i] * scale - mean[pair]
            went_on += distance * distance
    spread[0], spread[1] = went_on, ended
