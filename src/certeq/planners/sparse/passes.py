"""A sparse problem laid out for the compiled passes, with the policy as it stands."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Floats
from certeq.base.threads import run
from certeq.model.kernel import MASS_TOLERANCE, Kernel, Mixture, Operator, Rows, SparseRows, parts
from certeq.planners.problem import Problem
from certeq.planners.sparse import kernels
from certeq.planners.sparse.correction import ALL, FAILURES, LIGHT, NOBODYS, Choice, Component, Follower
from certeq.planners.sparse.kernels import BLOCK, Lines, PerPair, SparseModel

Weighted = tuple[Floats, Rows | SparseRows | Operator]  # (S or 1, A or 1), and the rows that count with it

SETTLED = 0.8  # part of the states that must have slack enough for any to be passed over
PIECES = 8  # parts of the states that sweeps go through side by side, whatever the number of threads
AGAIN = 4  # sweeps for which it is found out once what dense target rows expect: averages, which change little
NOTHING = Lines(np.zeros(2, dtype=np.uint32), np.empty(0, dtype=np.uint32), np.empty(0), 0, 0)


class Seen(NamedTuple):
    """What a full pass found out."""

    low: float  # least and
    high: float  # greatest change of a value
    bottom: float  # least and
    top: float  # greatest value, backed up
    spread: float  # of action values; of all of them when last all were looked at, if that was more
    moved: int  # how many states changed their action


class Passes:
    """Full passes over all pairs, and corrections along the policy in between.

    ``gap`` is 1 - γ mass for the greatest mass of a row; ``uneven`` is γ times how far masses lie apart.
    """

    def __init__(self, problem: Problem, threads: int | None = None, follow: Floats | None = None) -> None:
        S, A = problem.allowed.shape
        data, rest = decompose(problem.model)
        self.run, self.blocks = partial(run, threads=threads), -(-S // BLOCK)
        self.rest = [(weight, leaf, lines(leaf) if isinstance(leaf, SparseRows) else leaf) for weight, leaf in rest]
        self.weight = sum((weight for weight, _ in rest), start=np.zeros((1, 1))) if len(rest) != 1 else rest[0][0]
        discount, mixed, main = float(problem.discount), table(self.weight), lines(data)
        allowed, masked = np.ascontiguousarray(problem.allowed), not problem.allowed.all()
        self.model = SparseModel(main, mixed, bool(rest), table(problem.reward), discount, A, allowed, masked)
        parts = [
            Component(main, mixed, 1.0, -1.0),
            *(Component(rows, table(weight), 0.0, 1.0) for weight, _, rows in self.rest),
        ]
        least, most = _masses(problem)
        self.gap, self.uneven = 1 - discount * most, discount * (most - least)
        self.follower = Follower(parts, S, A, discount, 1 - self.gap, follow is not None, self.run)
        self.policy, self.better, self.lowest = (np.zeros(S, dtype=np.uint32) for _ in range(3))
        self.follow, self.share = follow, ALL if follow is None else table(follow)
        self.best, self.spare, self.notes = np.empty(S), np.empty(S), np.empty((self.blocks, 6))
        self.seen: Seen  # in the last pass
        self.stale = True  # whether the follower has the rows of another policy
        self.drift, self.last = 0.0, np.zeros(S)  # how far action values may have come apart; what was backed up last
        self.slack = np.zeros(S, dtype=np.float32)  # how far they may, in each state, until another is as good

    def back_up(self, values: Floats, keep: float, near: float) -> Seen:
        """Make a full pass; see `kernels.improve`. Of values that are all zero, rows expect nothing."""
        reach = self._reach(values, near)
        followed = self.follower.followed if reach < np.inf else NOBODYS
        model = self.model if values.any() else self.model._replace(data=NOTHING, weight=ALL, mixed=False)
        pull = self._pull(values) if model.mixed else ALL
        self.run(
            kernels.improve, self.blocks, model, pull, values, self.policy, self.share, self.follow is not None, keep,
            near, followed, self.slack, self.drift, reach, self.better, self.lowest, self.best, self.notes,
        )  # fmt: skip
        self.policy, self.better = self.better, self.policy
        least, most = self.notes.min(axis=0).tolist(), self.notes.max(axis=0).tolist()
        moved = int(self.notes[:, 5].sum())
        self.stale |= moved > 0
        spread = most[3] - least[4]
        spread = spread if reach == np.inf else max(spread, self.seen.spread)
        self.seen = Seen(least[0], most[1], least[2], most[3], spread, moved)
        return self.seen

    def _reach(self, values: Floats, near: float) -> float:
        """How much slack a state needs to be passed over in the next pass: more than any has, unless most have enough.

        Two actions of a state come apart by no more than values do. A constant that is added to all values does nothing
        to rows of the same mass.
        """
        if self.follow is not None or not self.follower.precise:
            return np.inf
        self.run(kernels.apart, self.blocks, values, self.last, self.notes, grain=LIGHT)
        low, high = float(self.notes[:, 0].min()), float(self.notes[:, 1].max())
        self.drift += (1 - self.gap) * (high - low) + self.uneven * abs(low + high) / 2
        self.last = values
        self.run(kernels.beyond, self.blocks, self.slack, self.drift + near, self.notes, grain=LIGHT)
        return self.drift + near if self.notes[:, 0].sum() > SETTLED * len(values) else np.inf

    def correct(self, values: Floats, shift: float, part: float, trial: bool) -> Floats:
        """Correct values that were just backed up by following the policy, until that part of their residual is left.

        If all rows have the same mass, the residual is rid of a constant by adding ``shift`` to the values. A ``trial``
        only finds out whether this is slow. The given values stay as they are until the next correction, which writes
        over them.
        """
        if self.stale:
            self.follower.take(self._choices())
            self.stale = False
        even = self.uneven <= MASS_TOLERANCE
        constant = shift if even else 0.0
        low, high = self.seen.low - constant * self.gap, self.seen.high - constant * self.gap
        size, vectors = max(high, -low), self.follower.vectors
        what = self.best, values, constant * self.gap, size
        self.run(kernels.begin, self.blocks, *what, vectors[0], vectors[2], grain=LIGHT)
        total, corrected = self.follower.correct(part, even, trial), self.spare
        self.run(kernels.end, self.blocks, values, total, constant, size, corrected, grain=LIGHT)
        self.spare = values
        return corrected

    def sweep(self, values: Floats, often: int) -> Floats:
        """Back values up in place, from the first state to the last and back, by turns.

        Where states that are near one another have near numbers, what pays in one of them is then known far away after
        a single pass, and the policy follows.
        """
        near = next((one for one in self.rest if isinstance(one[2], Lines)), None)
        rest = [one for one in self.rest if one is not near]
        lent, share = (NOTHING, ALL) if near is None else (near[2], table(near[0]))
        for i in range(often):
            if i % AGAIN == 0:
                pull = sum((weight * self._expect(leaf, rows, values) for weight, leaf, rows in rest), np.zeros((1, 1)))
            new = values.copy()
            what = PIECES, self.model, lent, share, table(pull), values, new, i % 2 == 1
            self.run(kernels.sweep, PIECES, *what)
            values = new
        return values

    def distrust(self) -> None:
        """Follow the policy by sweeps alone from now on."""
        self.follower.failures = FAILURES

    def _choices(self) -> list[Choice]:
        if self.follow is None:
            return [Choice(self.policy, ALL)]
        S, A = self.follow.shape
        return [Choice(np.full(S, a, dtype=np.uint32), self.share) for a in range(A)]

    def _pull(self, values: Floats) -> PerPair:
        """What the target rows expect; of several, the average by their weights."""
        expected = [self._expect(leaf, rows, values) for _, leaf, rows in self.rest]
        if len(expected) <= 1:
            return table(expected[0]) if expected else ALL
        total = sum(weight * each for (weight, _, _), each in zip(self.rest, expected, strict=True))
        return table(np.divide(total, self.weight, out=np.zeros_like(total), where=self.weight > 0))

    def _expect(self, leaf: Rows | SparseRows | Operator, rows: Lines | Rows | Operator, values: Floats) -> Floats:
        if not isinstance(rows, Lines):
            return rows.expect(values)
        out = np.empty(leaf.shape[:2])
        self.run(kernels.expect, -(-out.size // BLOCK), rows, values, out.reshape(-1))
        return out


def _masses(problem: Problem) -> tuple[float, float]:
    """Least and greatest mass of a row that may be chosen."""
    mass = problem.model.mass()
    if not problem.allowed.all():
        mass = np.broadcast_to(mass, problem.allowed.shape)[problem.allowed]
    return min(float(mass.min()), 1.0), min(float(mass.max()), 1.0)


def decompose(model: Kernel) -> tuple[SparseRows, list[Weighted]]:
    """The model as sparse data and a list of weighted targets; what these leave is the weight of the data."""
    if isinstance(model, SparseRows):
        return model, []
    if not isinstance(model, Mixture):
        raise TypeError("the data of a large model are sparse")  # `certeq.planners.sparse.able` sees to it
    data, rest = decompose(model.data)
    if not model.weight.any():
        return data, rest
    both = [((1 - model.weight) * weight, leaf) for weight, leaf in rest] + parts(model.target, model.weight)
    merged: list[Weighted] = []
    for weight, leaf in both:
        same = [i for i, (_, other) in enumerate(merged) if _alike(leaf, other)]
        if same:
            merged[same[0]] = merged[same[0]][0] + weight, leaf
        else:
            merged.append((weight, leaf))
    return data, merged


def _alike(one: Kernel, other: Kernel) -> bool:
    if isinstance(one, Rows) and isinstance(other, Rows) and one.shape[0] == 1:
        return np.array_equal(one.array, other.array)
    return one is other


def table(array: Floats) -> PerPair:
    """A table ``(S or 1, A or 1)`` of numbers, without copying one that is merely broadcast."""
    s = slice(1) if array.strides[0] == 0 else slice(None)
    a = slice(1) if array.strides[1] == 0 else slice(None)
    small = np.ascontiguousarray(array[s, a], dtype=np.float64)
    by_state, by_action = small.shape[1] if small.shape[0] > 1 else 0, int(small.shape[1] > 1)
    return PerPair(small.reshape(-1), by_state, by_action)


def lines(rows: SparseRows) -> Lines:
    """Sparse rows with unsigned indices, as narrow as they can be; the usual CSR matrix is shared, not copied."""
    matrix = rows.matrix
    by_state, by_action = rows.a_axis if rows.s_axis > 1 else 0, int(rows.a_axis > 1)
    chances = np.ascontiguousarray(matrix.data, dtype=np.float64)
    return Lines(_unsigned(matrix.indptr, matrix.nnz), _unsigned(matrix.indices, 0), chances, by_state, by_action)


def _unsigned(index: NDArray[np.integer], largest: int) -> NDArray[np.unsignedinteger]:
    if largest >= 2**32:
        return index.view(np.uint64)
    return index.view(np.uint32) if index.dtype == np.int32 else index.astype(np.uint32)
