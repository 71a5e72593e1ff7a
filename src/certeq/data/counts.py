"""Counts: how often each pair was followed by each outcome. The only thing an estimate may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, unmasked
from certeq.base.display import notebook, several
from certeq.base.errors import InputError
from certeq.data.batch import ENDED, Batch, indices
from certeq.data.positions import as_positions

MOST = 2**62  # rows that can be added up
DENSE_LIMIT = 2_000_000  # above this many cells, `tally` keeps the counts of one data set sparse


@dataclass(frozen=True)
class Counts:
    """Transition counts, dense ``(..., S, A, S)`` or, for one large MDP, a CSR matrix ``(S * A, S)``.

    ``ended`` counts how often the episode ended after a pair. Ending is an outcome like any other: when the data have
    it, each row has N = S + 1 outcomes, otherwise N = S. ``positions`` tell where the states lie, where that is known:
    `Positions`, or an array ``(S, d)`` of whole numbers.
    """

    transitions: Any  # integer array (..., S, A, S), or csr_array (S * A, S)
    ended: Integers | None = None  # (..., S, A)
    n_actions: int = field(default=0)  # needed only for a sparse matrix
    positions: Any = None  # `Positions` once it is born, or None: where the states lie, if they lie anywhere

    def __post_init__(self) -> None:
        if sp.issparse(self.transitions):
            matrix = sp.csr_array(self.transitions)  # shares the arrays
            if not matrix.has_canonical_format:
                matrix = matrix.copy()
                matrix.sum_duplicates()  # a cell that is listed twice means the sum
            S = int(matrix.shape[1])
            A = self.n_actions or (int(matrix.shape[0]) // S if S else 0)
            if S == 0 or matrix.shape[0] != S * A:
                raise InputError(f"Sparse counts have S * A lines and S columns; got {matrix.shape} for {A} actions.")
            matrix.data = _whole("counts", matrix.data, lambda i: _sparse_place(matrix, i, A))
            object.__setattr__(self, "transitions", matrix)
            object.__setattr__(self, "n_actions", A)
            pairs: tuple[int, ...] = (S, A)
        else:
            array = np.asarray(unmasked("counts", self.transitions))
            if array.ndim < 3 or array.shape[-3] != array.shape[-1] or 0 in array.shape[-3:]:
                raise InputError(f"Counts have the axes (..., S, A, S), all at least 1; got shape {array.shape}.")
            if self.n_actions not in (0, array.shape[-2]):
                raise InputError(f"Counts of shape {array.shape} have {array.shape[-2]} actions, not {self.n_actions}.")
            object.__setattr__(self, "transitions", _whole("counts", array, lambda i: _dense_place(array, i)))
            object.__setattr__(self, "n_actions", array.shape[-2])
            pairs = array.shape[:-1]
        if self.ended is not None:
            ended = np.asarray(unmasked("ended", self.ended))
            if ended.shape != pairs:
                raise InputError(f"ended needs one count for each pair, shape {pairs}; got {ended.shape}.")
            whole = _whole("ended", ended, lambda i: f"index {[int(k) for k in np.unravel_index(i, ended.shape)]}")
            object.__setattr__(self, "ended", whole)
        object.__setattr__(self, "positions", as_positions(self.positions, self.n_states))

    @classmethod
    def stack(cls, several: Sequence[Counts]) -> Counts:
        """Dense counts of several data sets of the same states and actions, with a leading axis."""
        ended = [each.ended for each in several if each.ended is not None]
        transitions = np.stack([each.transitions for each in several])
        return cls(transitions, np.stack(ended) if ended else None, positions=several[0].positions)

    def __getitem__(self, data_set: int | Booleans) -> Counts:
        """One data set of several, or some of them."""
        ended = None if self.ended is None else self.ended[data_set]
        return self._checked(self.transitions[data_set], ended)

    def __repr__(self) -> str:
        of = f"{several(self.n_states, 'state')}, {several(self.n_actions, 'action')}"
        sets = f", {self.batch} data sets" if self.batch else ""
        tried = int((self.visits > 0).sum())
        return f"Counts({of}{sets}: {int(self.visits.sum()):,} rows, {tried:,} of {self.visits.size:,} pairs tried)"

    def _repr_html_(self) -> str:
        S, A = self.n_states, self.n_actions
        title = f"Counts of {several(S, 'state')} and {several(A, 'action')}"
        if self.batch:
            return notebook(f"{title}, {self.batch} data sets", (), (), 0)
        rows = ((s, *(f"{c:,}" for c in visits)) for s, visits in enumerate(self.visits))
        return notebook(f"{title}: visits", ("state", *(f"action {a}" for a in range(A))), rows, S)

    def spread(self) -> Counts:
        """The same data sets with one more axis, of length 1, behind their own: for settings to be swept along."""
        if self.sparse:
            return self
        ended = None if self.ended is None else self.ended[..., None, :, :]
        return self._checked(self.transitions[..., None, :, :, :], ended)

    def _checked(self, transitions: Integers, ended: Integers | None) -> Counts:
        """The same counts otherwise arranged, which need not be looked through again."""
        made = object.__new__(Counts)
        vars(made).update(vars(self), transitions=transitions, ended=ended)
        for known in ("visits", "unvisited", "square_sum"):
            vars(made).pop(known, None)
        return made

    @property
    def sparse(self) -> bool:
        """Whether the transitions are kept as a CSR matrix."""
        return bool(sp.issparse(self.transitions))

    @property
    def written_out(self) -> Counts:
        """The same with transitions that are an array, ``(S, A, S)``, if they are sparse."""
        if not self.sparse:
            return self
        shape = self.n_states, self.n_actions, self.n_states
        return Counts(self.transitions.toarray().reshape(shape), self.ended, self.n_actions, self.positions)

    @property
    def n_states(self) -> int:
        """S."""
        return int(self.transitions.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes: one data set for each index."""
        return () if self.sparse else self.transitions.shape[:-3]

    @property
    def n_outcomes(self) -> int:
        """N: how many outcomes a row has; the states, and ending when the data have it."""
        return self.n_states + (self.ended is not None)

    @cached_property
    def visits(self) -> Integers:
        """How often each pair was tried, ``(..., S, A)``."""
        if self.sparse:
            visits = np.asarray(self.transitions.sum(axis=1), dtype=np.int64).reshape(self.n_states, self.n_actions)
        else:
            visits = np.einsum("...i->...", self.transitions)  # many short sums: five times as fast as sum
        return visits if self.ended is None else visits + self.ended

    @cached_property
    def unvisited(self) -> Booleans:
        """Pairs that were never tried, ``(..., S, A)``."""
        return np.asarray(self.visits == 0)

    @property
    def mean_visits(self) -> Floats:
        """Visits per pair, averaged over the pairs of each data set, ``(...)``. Design's c̄."""
        return np.asarray(self.visits.mean(axis=(-2, -1)))

    @cached_property
    def square_sum(self) -> Floats:
        """Σᵢ cᵢ² over all outcomes of each pair, ``(..., S, A)``: all that ε* needs to know of a row."""
        if self.sparse:
            squares = _line_squares(self.transitions).reshape(self.n_states, self.n_actions)
        else:
            values = self.transitions.astype(np.float64)
            squares = np.einsum("...i,...i->...", values, values)
        return np.asarray(squares if self.ended is None else squares + self.ended.astype(np.float64) ** 2)


def _line_squares(matrix: Any, lines: int = 100_000) -> Floats:
    """Sum of squares of each line of a CSR matrix, some lines at a time to spare memory."""
    squares = np.empty(matrix.shape[0])
    for start in range(0, len(squares), lines):
        ends = matrix.indptr[start : start + lines + 1]
        data = matrix.data[ends[0] : ends[-1]].astype(np.float64)
        line = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        squares[start : start + lines] = np.bincount(line, data * data, minlength=len(ends) - 1)
    return squares


def as_counts(counts: Counts | ArrayLike | Any) -> Counts:
    """Read counts: `Counts`, an integer array ``(..., S, A, S)`` or a sparse matrix ``(S * A, S)``."""
    return counts if isinstance(counts, Counts) else Counts(counts)


def tally(
    state: ArrayLike | Batch,
    action: ArrayLike | None = None,
    next_state: ArrayLike | None = None,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    sparse: bool | None = None,
) -> Counts:
    """Count transitions, from a `Batch` or from three arrays of one length.

    Repeated rows count as often as they stand there. A next state of -1 means that the episode ended. Without
    ``n_states`` and ``n_actions`` the largest number seen decides, so a state that never occurs needs them said. No
    rows at all are fine when the sizes are said: every pair is then unvisited. A batch of several data sets gives
    counts with one leading axis. ``sparse=None`` keeps one data set sparse when S * A * S is over two million.
    """
    if isinstance(state, Batch):
        batch = state
        for name, said, there in (("n_states", n_states, batch.n_states), ("n_actions", n_actions, batch.n_actions)):
            if said is not None and said != there:
                raise InputError(
                    f"{name} is {said!r}, but the batch has {there}. A batch says itself how many there are."
                )
        if action is not None or next_state is not None:
            raise InputError("A batch holds its actions and next states; give either a batch or three columns.")
    else:
        batch = _batch(state, action, next_state, n_states, n_actions)
    S, A, D = batch.n_states, batch.n_actions, batch.n_data_sets
    pair = batch.state * A + batch.action
    stays = ~batch.ended
    ended = None
    if not stays.all():
        lines = pair if batch.data_set is None else batch.data_set * (S * A) + pair
        ended = np.bincount(lines[~stays], minlength=(D or 1) * S * A).reshape(*(() if D is None else (D,)), S, A)
    if sparse if sparse is not None else (D is None and S * A * S > DENSE_LIMIT):
        if D is not None:
            raise InputError("Counts of several data sets are dense; count them one by one to keep them sparse.")
        ones = np.ones(int(stays.sum()), dtype=np.int64)
        matrix = sp.coo_array((ones, (pair[stays], batch.next_state[stays])), shape=(S * A, S)).tocsr()
        return Counts(matrix, ended, A, batch.positions)
    cell = pair[stays] * S + batch.next_state[stays]
    if batch.data_set is not None:
        cell += batch.data_set[stays] * (S * A * S)
    shape = (S, A, S) if D is None else (D, S, A, S)
    return Counts(np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape), ended, A, batch.positions)


def count_again(batch: Batch, often: Integers, like: Counts) -> Counts:
    """Counts of a batch whose rows stand there so many times, ``(n,)``."""
    S, A = batch.n_states, batch.n_actions
    pair, stays = batch.state * A + batch.action, ~batch.ended
    ended = None if like.ended is None else _sum(pair, often * ~stays, S * A).reshape(S, A)
    if like.sparse:
        place = (pair[stays], batch.next_state[stays])
        matrix = sp.coo_array((often[stays], place), shape=(S * A, S)).tocsr()
        matrix.eliminate_zeros()
        return Counts(matrix, ended, A, like.positions)
    table = _sum(pair[stays] * S + batch.next_state[stays], often[stays], S * A * S).reshape(S, A, S)
    return Counts(table, ended, A, like.positions)


def _sum(place: Integers, often: Integers, size: int) -> Integers:
    return np.bincount(place, often, minlength=size).astype(np.int64)


def _batch(state: Any, action: Any, next_state: Any, n_states: int | None, n_actions: int | None) -> Batch:
    if action is None or next_state is None:
        raise InputError("tally needs a Batch, or the three columns state, action and next_state.")
    n = len(np.asarray(state))
    states = indices("state", state, n, 0, n_states)
    actions = indices("action", action, n, 0, n_actions)
    next_states = indices("next_state", next_state, n, ENDED, n_states)
    if n == 0 and (n_states is None or n_actions is None):
        raise InputError("There are no rows to count. Say n_states and n_actions if that is meant.")
    if n_states is None:
        n_states = int(max(states.max(), next_states.max())) + 1
    if n_actions is None:
        n_actions = int(actions.max()) + 1
    return Batch(states, actions, next_states, n_states, n_actions)


def _whole(name: str, values: Any, place: Any) -> Integers:
    """Read non-negative whole numbers as integers, or say where there is something else."""
    array = np.asarray(unmasked(name, values))
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be whole numbers; got an array of type {array.dtype}.")
    most = MOST // max(array.size, 1)
    if array.dtype == np.int64 and array.view(np.uint64).max(initial=0) <= most:
        return array  # negative numbers would be very large ones here: one look instead of two
    bad = np.zeros(0, dtype=bool)
    if array.dtype.kind == "f" or (array.dtype.kind == "i" and array.min(initial=0) < 0):
        bad = ~((array >= 0) & (array == np.floor(array)) & (array < 2**53))
    if bad.any():
        at = int(np.argmax(bad))
        what = "not be negative" if array.ravel()[at] < 0 else "be whole numbers"
        raise InputError(f"{name} must {what}; {place(at)} has {array.ravel()[at]}.")
    if array.max(initial=0) > most and array.sum(dtype=np.float64) >= MOST:
        raise InputError(f"{name} add up to more than 2^62, which cannot have been counted.")
    return array.astype(np.int64, copy=False)


def _dense_place(array: Any, at: int) -> str:
    *batch, s, a, n = (int(i) for i in np.unravel_index(at, array.shape))
    where = f" of data set {list(batch)}" if batch else ""
    return f"state {s}, action {a}, next state {n}{where}"


def _sparse_place(matrix: Any, at: int, A: int) -> str:
    line = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
    return f"state {line // A}, action {line % A}, next state {int(matrix.indices[at])}"
