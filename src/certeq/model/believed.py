"""Borrowed targets: a mix of candidates whose shares the data choose, as rows for many small data sets or one large."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from certeq.base import matrices as sp
from certeq.base import threads as pool
from certeq.base.arrays import Floats, Integers
from certeq.data.counts import Counts
from certeq.data.positions import Positions
from certeq.model import borrowing, lending, mixing, targets, walls
from certeq.model.borrowing import NAMES, PLACED, Moves, Totals
from certeq.model.evidence import chances
from certeq.model.kernel import Kernel, Mixture, Operator, Rows, SparseRows
from certeq.model.lattice import Lattice, lattice, look_ahead, move_keys
from certeq.model.nonzeros import NonZeros, places, table_of

EXPERT = 0.9  # of an expert's rows; the rest is uniform
BLOCK = 1024  # states of a large data set that are judged together
ENOUGH = 400_000  # non-zeros to learn shares from: of a larger data set, an even selection of its blocks is used
CHUNK = 1_000_000  # non-zeros whose moves are numbered together
FEW_MOVES, MOST_FOLLOWED = 100, 10_000_000  # different moves, and times states: more of both is not worth following
MOST_LANDINGS = 2_000_000  # in a table of where each move leads from each state
MOST_WRITTEN = 150_000_000  # entries of the rows of a large data set: longer ones are worked out anew each time


@dataclass(frozen=True)
class Borrowed:
    """A target for each pair, and what it is made of."""

    names: tuple[str, ...]  # of the candidates
    share: Floats  # (..., A, candidates)
    rows: Kernel  # each pair's own rows in
    table: NonZeros  # of the counts
    judged: Floats  # chance of each of its non-zeros, its pair's own rows left out


class _Ready(NamedTuple):
    table: NonZeros
    grid: Lattice
    moves: Moves
    totals: Totals
    visits: Integers  # (D, S, A)


def borrow(counts: Counts, *, expert: Any = None, threads: int | None = None) -> Borrowed:
    """Learn what a pair can learn from others, without positions from the candidates that need none.

    Where a large data set has moves without end, hardly any of them twice, they tell nothing, and take for ever to
    follow: then it is as if there were no positions.
    """
    counts, ready = _prepare(counts, threads)
    table, D = ready.table, int(np.prod(counts.batch))
    names = NAMES + (() if counts.positions is None else PLACED) + (() if expert is None else ("expert",))
    known = _known(counts, table, expert)
    taken, judged = len(names) - known.shape[1], np.empty(len(table.count))
    padded = np.zeros((D, counts.n_actions, -(-len(names) // 4) * 4))
    parts = ready[:4]
    if counts.sparse:
        _learn_large(*parts, known, taken, padded, judged, threads)
    else:
        pool.run(mixing.learn, D, *parts, known, taken, padded, judged, grain=64, threads=threads)
    share = padded[..., : len(names)]
    rows: Kernel
    ours = share[..., :taken] / share[..., :taken].sum(axis=-1, keepdims=True)
    if counts.sparse:
        rows = _written(ready, ours, threads) or _large(ready, ours)
    else:
        rows = _small(counts, ready, ours, threads)
    whole = share.reshape(*counts.batch, *share.shape[1:])
    if expert is not None:
        said = Mixture(targets.expert(expert, counts), np.full((1, 1), 1 - EXPERT), targets.uniform(counts))
        mixed = Mixture(rows, whole[..., None, :, -1], said)
        rows = mixed if counts.sparse else Rows.trusted(mixed.dense())
    return Borrowed(names, whole, rows, table, judged)


def _prepare(counts: Counts, threads: int | None) -> tuple[Counts, _Ready]:
    table, S, A = table_of(counts), counts.n_states, counts.n_actions
    D, N = int(np.prod(counts.batch)), counts.n_outcomes
    grid = lattice(counts.positions, S)
    moves = _moves(counts.positions, table, grid)
    if counts.sparse and len(moves.source) > FEW_MOVES and S * len(moves.source) > MOST_FOLLOWED:
        return _prepare(replace(counts, positions=None), threads)
    begin = table.pointer[:: S * A]
    room = 2 * begin[:-1]
    most = 2 * len(table.count) if D > 1 else min(2 * len(table.count), (A + 1) * len(moves.source))
    first = np.zeros((D, A + 2), dtype=np.int64)
    totals = Totals(
        np.zeros((D, A, N)), np.zeros((D, A)), np.zeros((D, A)), first, np.empty(most, np.int32), np.empty(most)
    )
    pool.run(borrowing.add_up, D, table, grid, moves, room, totals, grain=64, threads=threads)
    visits = np.ascontiguousarray(counts.visits.reshape(D, S, A))
    closed = np.zeros((D, S, 2 * len(grid.size)), dtype=bool)
    if counts.positions is not None:
        pool.run(walls.close, D, table, grid, moves, totals, visits, closed, grain=64, threads=threads)
    grid = grid._replace(closed=closed, walled=closed.any(axis=(1, 2)))
    return counts, _Ready(table, grid, moves, totals, visits)


def _moves(positions: Positions | None, table: NonZeros, grid: Lattice) -> Moves:
    """Number the different moves."""
    S, N = table.states, table.outcomes
    if positions is None:
        nobody = np.zeros(1, dtype=np.int64)
        nowhere = np.zeros((S, 1), dtype=np.int32)
        number = np.zeros(len(table.count), dtype=np.int32)
        return Moves(number, nobody, nobody, nowhere, nowhere[:1], np.zeros(2, dtype=np.int64))
    if max(CHUNK, len(table.count)) >= S * N:
        index, *rest = _every_move(positions, N)
        return Moves(index[places(table)[1], table.outcome], *rest)
    number, source, outcome = _moves_seen(positions, table)
    return Moves(number, source, outcome, *_followed(positions, grid, source, outcome))


@lru_cache(maxsize=2)  # data sets drawn again have the positions of the first
def _every_move(positions: Positions, N: int) -> tuple[Any, ...]:
    """Number all moves that there could be, ``(S, N)``; an example of each, and where each leads."""
    state, outcome = np.indices((positions.n_states, N), sparse=True)
    _, at, index = np.unique(move_keys(positions, state, outcome), return_index=True, return_inverse=True)
    example = np.divmod(at, N)
    followed = _followed(positions, lattice(positions, positions.n_states), *example)
    return index.reshape(positions.n_states, N).astype(np.int32), *example, *followed


def _followed(positions: Positions, grid: Lattice, source: Integers, outcome: Integers) -> tuple[Any, Any, Any]:
    """Where each move leads from each state, unless that is too large a table, and by how much it shifts."""
    S = positions.n_states
    lands = np.empty((S, len(source) if S * len(source) <= MOST_LANDINGS else 0), dtype=np.int32)
    if lands.shape[1]:
        for s in range(S):
            look_ahead(grid, s, source, outcome, lands[s])
    shift = walls.shifts(positions, source, outcome)
    far = np.stack([-shift.min(axis=0, initial=0), shift.max(axis=0, initial=0)], axis=1).ravel().astype(np.int64)
    return lands, shift, far


def _moves_seen(positions: Positions, table: NonZeros) -> tuple[Any, Integers, Integers]:
    """Number only those moves that occur, some non-zeros at a time: number of each, and an example of each."""
    A, n = table.actions, len(table.count)
    parts = [(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)]

    def keys(low: int, high: int) -> Integers:
        line = np.searchsorted(table.pointer, np.arange(low, high), side="right") - 1
        return move_keys(positions, line // A, table.outcome[low:high])

    seen, at = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for part in parts:
        seen, place = np.unique(np.append(seen, keys(*part)), return_index=True)
        at = np.append(at, np.arange(*part))[place]
    number = np.empty(n, dtype=np.int32)
    for low, high in parts:
        number[low:high] = np.searchsorted(seen, keys(low, high))
    source = (np.searchsorted(table.pointer, at, side="right") - 1) // A
    return number, source, table.outcome[at].astype(np.int64)


def _known(counts: Counts, table: NonZeros, expert: Any) -> Floats:
    """Chances that an expert's rows give to each non-zero, ``(nonzeros, 0 or 1)``."""
    if expert is None:
        return np.empty((len(table.count), 0))
    said = chances(targets.expert(expert, counts), counts.batch, *places(table), table.outcome)
    return (EXPERT * said + (1 - EXPERT) / counts.n_outcomes)[:, None]


def _learn_large(
    table: NonZeros,
    grid: Lattice,
    moves: Moves,
    totals: Totals,
    known: Floats,
    taken: int,
    share: Floats,
    judged: Floats,
    threads: int | None,
) -> None:
    """Find the shares of one large data set: from some of its blocks, and then judge them all."""
    A = table.actions
    low = np.arange(0, table.states, BLOCK)
    first, last = table.pointer[low * A], table.pointer[np.minimum(low + BLOCK, table.states) * A]
    some = low[:: max(1, len(table.count) // ENOUGH)] // BLOCK
    sizes = (last - first)[some]
    starts, n = np.cumsum(sizes) - sizes, int(sizes.sum())
    q, action, visits = np.zeros((n, share.shape[2])), np.empty(n, dtype=np.int64), np.empty(n)
    nothing = np.empty(0, dtype=np.int64), np.empty(0)
    parts = (table, grid, moves, totals, np.ascontiguousarray(share[0, :, :taken]))
    pool.run(
        mixing.judge_blocks, len(some), low[some], BLOCK, starts, *parts, False, q, action, visits, threads=threads
    )
    at = np.repeat(first[some] - starts, sizes) + np.arange(n)
    q[:, taken : taken + known.shape[1]] = known[at]
    mixing.mix(q, table.count[at], action, visits, table.outcomes, share[0])
    parts = (table, grid, moves, totals, np.ascontiguousarray(share[0, :, :taken]))
    pool.run(mixing.judge_blocks, len(low), low, BLOCK, first, *parts, True, judged[:, None], *nothing, threads=threads)
    if known.shape[1]:
        judged += share[0, places(table)[2], taken] * known[:, 0]


def _small(counts: Counts, ready: _Ready, share: Floats, threads: int | None) -> Rows:
    """Write the rows of many small data sets."""
    D, N = len(share), counts.n_outcomes
    out = np.empty((D, counts.n_states, counts.n_actions, N))
    pool.run(lending.write, D, *ready, share, out, grain=64, threads=threads)
    return Rows.trusted(out[..., : counts.n_states].reshape(counts.transitions.shape))


def _written(ready: _Ready, share: Floats, threads: int | None) -> Kernel | None:
    """The rows of one large data set: short lines, mixed with the rows that all pairs share; None if they are long."""
    table, totals = ready.table, ready.totals
    S, A, N = table.states, table.actions, table.outcomes
    starts, parts = np.zeros(S * A + 1, dtype=np.int64), np.empty((4, S, A))

    def run(columns: Any, chances: Floats) -> None:
        given = (*ready, share, starts, columns, chances, parts)
        pool.run(lending.write_sparsely, S, *given, grain=BLOCK, threads=threads)

    run(np.empty(0, dtype=np.int32), np.empty(0))
    np.cumsum(starts, out=starts)
    n = int(starts[-1])
    if n > MOST_WRITTEN:
        return None
    columns, chances = np.empty(max(n, 1), dtype=np.int32), np.empty(max(n, 1))
    run(columns, chances)
    lines = sp.csr_array((chances[:n], columns[:n], starts.astype(np.int32)), shape=(S * A, S))
    arrived, total = totals.arrived[0, :, :S], parts[0]
    mixed: Kernel = SparseRows(lines, S, A)
    often = totals.tried[0]  # an action that nobody took has no part in what all have
    rows = arrived / np.maximum(often, 1)[:, None], arrived.sum(axis=0) / max(often.sum(), 1), np.full(S, 1 / N)
    for amount, row in zip(parts[1:], rows, strict=True):
        total = total + amount
        shared = Rows.trusted(np.ascontiguousarray(np.atleast_2d(row))[None])
        mixed = Mixture(mixed, np.divide(amount, total, out=np.zeros_like(total), where=total > 0), shared)
    return mixed


def _large(ready: _Ready, share: Floats) -> Operator:
    """The rows of one large data set, applied and not written out unless asked for."""
    table, totals = ready.table, ready.totals
    S, A, N = table.states, table.actions, table.outcomes
    arrived = totals.arrived[0]  # (A, N)

    def expect(values: Floats, policy: Integers | None) -> Floats:
        worth = np.append(values, 0.0) if N > S else np.ascontiguousarray(values, dtype=np.float64)
        shared = np.append(arrived @ worth, [(arrived @ worth).sum(), worth.sum() / N])
        chosen = np.empty(0, dtype=np.int64) if policy is None else policy
        out = np.empty((S, A if policy is None else 1))
        pool.run(lending.expect, S, *ready, share, worth, shared, chosen, out, grain=BLOCK)
        return out if policy is None else out[:, 0]

    def chance(state: Integers, action: Integers, outcome: Integers) -> Floats:
        out = np.empty(len(state))
        pool.run(lending.chances, len(state), state, action, outcome, *ready, share, out, grain=BLOCK)
        return out

    def write() -> Floats:
        out = np.empty((1, S, A, N))
        lending.write(0, 1, *ready, share, out)
        return out[0, ..., :S]

    longest = int(np.diff(table.pointer).max(initial=0))
    added = 2 * longest * len(ready.grid.offsets) + A * longest + len(totals.often) + S.bit_length() + 8
    return Operator((S, A, S), expect, chance, added, write)
