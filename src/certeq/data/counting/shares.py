"""Counting some neighboring pieces of the rows, and the tree by which what was counted is put together.

Rows of pieces whose codes stand for the same things are held and counted together, since what each count costs beside
the rows, it costs once for all of them. Counts are whole numbers, so it does not matter how they are added up. What
rows earned is rounded, so that is added up piece by piece and along the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.data.counting.parquet import Piece
from certeq.data.counting.parts import NOTHING, Part, merge
from certeq.data.counting.pieces import CodedRows, Layout, PieceCodes, code_piece
from certeq.data.counting.tallying import Cells, Store, earn
from certeq.data.sums import Sums

TALLEST = 4  # branches of 2 ** 4 pieces are joined to what came before, so that only so many wait, however many come
TOGETHER = 8  # pieces whose rows are held to be counted together, at most
SMALLEST = -1000  # exponent of the smallest unit of rewards


def tree(leaves: Iterable[Any], begin: Callable[[Any], Any], join: Callable[[Any, Any], Any], height: int = 0) -> Any:
    """Join neighbors two by two, then what came of them, and so on; as soon as there are two, so that few wait.

    Branches of the greatest height are joined to all that came before. A leaf may be a branch already, of some height.
    """
    waiting: list[tuple[int, Any]] = []  # (height, branch), of falling heights
    for leaf in leaves:
        tall, branch = height, begin(leaf)
        while waiting and waiting[-1][0] == tall:
            branch = join(waiting.pop()[1], branch)
            tall = min(tall + 1, TALLEST)
        waiting.append((tall, branch))
    _, branch = waiting.pop()
    while waiting:
        branch = join(waiting.pop()[1], branch)
    return branch


def count_share(share: Sequence[Piece], layout: Layout) -> Part:
    """Count some neighboring pieces, one after another."""
    return count_pieces(share, partial(code_piece, layout=layout), layout, max(piece.rows for piece in share))


def count_pieces(pieces: Iterable[Any], code: Callable[[Any], list[CodedRows]], layout: Layout, most: int) -> Part:
    """Count some neighboring pieces, each of them ``most`` rows or fewer; one at a time is read and coded."""
    counted: list[Part] = []
    held: Held | None = None

    def begin(piece: Any) -> Part | None:
        nonlocal held
        blocks = code(piece)
        for rows in blocks:
            if held is not None and not held.takes(rows):
                counted.append(held.count())
                held = None
            held = held or Held(rows.coding, layout, TOGETHER * most)
            held.add(rows)
        return None if layout.roles.reward is None else _earned(blocks, layout)

    earned: Part | None = tree(pieces, begin, lambda one, other: one and merge(one, other))
    total: Part = tree([*counted, *([held.count()] if held else [])], lambda part: part, merge)
    return replace(total, rewards=None if earned is None else earned.rewards)


class Held:
    """Rows of neighboring pieces whose codes stand for the same things."""

    def __init__(self, coding: PieceCodes, layout: Layout, room: int) -> None:
        self.coding, self.layout = coding, layout
        S, A = len(coding.states), len(coding.actions)
        self.store = Store(room, S, A, S + 1)
        self.rows, self.dropped, self.left = 0, Counter[str](), NOTHING

    def takes(self, rows: CodedRows) -> bool:
        """Whether these rows can be counted together with those that are held."""
        return self.store.rows + len(rows.state) <= len(self.store.low) and self.coding.alike(rows.coding)

    def add(self, rows: CodedRows) -> None:
        """Hold some more rows."""
        self.store.add(rows.state, rows.action, rows.outcome)
        self.rows += rows.rows
        self.dropped += Counter(rows.dropped)
        self.left |= rows.left

    def count(self) -> Part:
        """Count all of them."""
        S, A = len(self.coding.states), len(self.coding.actions)
        cells, visits, reached = self.store.count()
        there, tried = _occur(visits.reshape(S, A), reached)
        spaces = self.coding.spaces(there, tried, self.layout)
        return Part(*spaces, *_split(cells, S, A, there, tried), None, self.rows, dict(self.dropped), self.left)


def _occur(visits: Integers, reached: Booleans) -> tuple[Integers, Integers]:
    """Which states and actions occur, given visits ``(S, A)`` and which outcomes do, ``(S + 1,)``."""
    return np.flatnonzero(visits.any(axis=1) | reached[:-1]), np.flatnonzero(visits.any(axis=0))


def _split(cells: Cells, S: int, A: int, there: Integers, tried: Integers) -> tuple[Cells, Integers]:
    """Cells by the states and actions that occur, and the endings of each pair."""
    sizes, ended = np.diff(cells.pointer), _ended(cells, S)
    ends = ended > 0
    outcome, number = cells.outcome, cells.number
    if ends.any():
        goes_on = outcome != S
        outcome, number = outcome[goes_on], number[goes_on]
    line = (there[:, None] * A + tried).ravel()
    pointer = np.append(0, np.cumsum((sizes - ends)[line]))
    if len(there) == S:
        return Cells(pointer, outcome, number), ended[line]
    place_of = np.zeros(S, dtype=np.int32)
    place_of[there] = np.arange(len(there))
    return Cells(pointer, place_of[outcome], number), ended[line]


def _ended(cells: Cells, S: int) -> Integers:
    """How often each pair was followed by an ending, which is the last of its cells, ``(S * A,)``."""
    if not len(cells.outcome):
        return np.zeros(len(cells.pointer) - 1, dtype=np.int64)
    last = np.maximum(cells.pointer[1:] - 1, 0)
    ends = (np.diff(cells.pointer) > 0) & (cells.outcome[last] == S)
    return np.where(ends, cells.number[last], 0)


# ---- rewards ----


def _earned(blocks: Sequence[CodedRows], layout: Layout) -> Part:
    """What the pairs of a piece earned, as a part in which nothing else is counted; all blocks are coded alike."""
    coding = blocks[0].coding
    S, A = len(coding.states), len(coding.actions)
    rows = [(block.state, block.action, block.outcome, block.reward) for block in blocks if block.reward is not None]
    size = _unit([reward for *_, reward in rows])
    earned = earn(rows, S, A, S + 1, size)
    number, pairs = earned.number.reshape(2, S, A), earned.pairs.reshape(2, S, A)
    there, tried = _occur(number.sum(axis=0), earned.arrivals > 0)
    kinds, reached = np.ix_(np.arange(2), there, tried), np.append(there, S)
    sums = Sums(
        size,
        number[kinds],
        pairs[kinds],
        earned.spread,
        earned.arrivals[reached],
        earned.arrived[reached],
        earned.span,
    )
    none = np.zeros(len(there) * len(tried) + 1, dtype=np.int64)
    nothing = Cells(none, np.zeros(0, dtype=np.int32), none[:0])
    return Part(*coding.spaces(there, tried, layout), nothing, none[1:], sums, 0, {})


def _unit(rewards: Sequence[Floats]) -> float:
    """A power of two that no reward exceeds: a change of units then rounds nothing."""
    largest = max(max(-float(some.min(initial=0)), float(some.max(initial=0))) for some in rewards)
    return 2.0 ** max(int(np.frexp(largest)[1]), SMALLEST) if largest else 1.0
