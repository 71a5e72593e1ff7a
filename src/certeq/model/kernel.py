"""Transition kernels: what happens next, as an operator on values.

A kernel gives, for each pair (s, a), a row: the distribution of the next state. A row may sum to less than one; the
missing mass is the chance that the episode ends. A row that sums to a little more than one, by up to 1e-9, stands for
itself divided by its sum. Four kinds share one algebra:

- ``Rows``: a dense array ``(..., S, A, S)`` with any leading batch axes;
- ``SparseRows``: a CSR matrix with one line per row;
- ``Operator``: rows of one large MDP that are known by what they do to values, never written out;
- ``Mixture``: ``(1 - weight) * data + weight * target``, the line at the heart of this package, never written out.

In all of them the state axis and the action axis of a row may be 1, which means "the same for all": a row shared by
every pair has shape ``(1, 1, S)``, one row per state ``(S, 1, S)``. Kernels broadcast like arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Booleans, Floats, Integers, first, floats, together, unmasked
from certeq.base.errors import InputError

MASS_TOLERANCE = 1e-9  # rounding allowed in "a row sums to at most one"
UNCLEAR = 1e-6  # what a row of plain numbers may not lack without a word: it may be rounding to single precision


@dataclass(frozen=True)
class Rows:
    """Dense rows, ``array`` of shape ``(..., S or 1, A or 1, S)``."""

    array: Floats

    def __post_init__(self) -> None:
        try:
            array = np.asarray(unmasked("transitions", self.array), dtype=np.float64)
        except InputError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"Transitions must be an array of numbers; got {type(self.array).__name__}.") from None
        object.__setattr__(self, "array", array)
        if array.ndim < 3:
            raise InputError(f"Transitions need the axes (..., states, actions, next states); got shape {array.shape}.")
        S, A, N = array.shape[-3:]
        if S not in (1, N) or min(S, A, N) < 1:
            raise InputError(
                f"Transitions of shape {array.shape} have {S} states but {N} next states; "
                "expected (..., S, A, S) with as many next states as states."
            )
        check_rows(array)

    @classmethod
    def trusted(cls, array: Floats) -> Rows:
        """Wrap rows that were built from checked parts, without checking them again."""
        self = object.__new__(cls)
        object.__setattr__(self, "array", array)
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """``(..., S or 1, A or 1, S)``."""
        return self.array.shape

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes."""
        return self.array.shape[:-3]

    def expect(self, values: Floats) -> Floats:
        """Expected next value of each pair; ``values`` is ``(..., S)``, the result ``(..., S or 1, A or 1)``."""
        if self.array.shape[-3:-1] == (1, 1):  # one sum, perhaps a long one: NumPy adds in pairs, which rounds least
            return np.asarray((self.array * values[..., None, None, :]).sum(axis=-1))
        if values.ndim == 1:
            return np.asarray(self.array @ values)
        return np.asarray((self.array @ values[..., None, :, None])[..., 0])

    def mass(self) -> Floats:
        """Chance that the episode goes on after each pair, ``(..., S or 1, A or 1)``."""
        return np.asarray(self.array.sum(axis=-1))

    def dense(self) -> Floats:
        """The rows as an array (for this kernel, no cost)."""
        return self.array

    def under(self, policy: Integers) -> Floats:
        """Rows of the chosen actions, ``(..., S, S)``; ``policy`` is ``(..., S)``."""
        S = self.shape[-1]
        actions = np.broadcast_to(policy, (*np.broadcast_shapes(self.batch, policy.shape[:-1]), S))
        full = np.broadcast_to(self.array, (*actions.shape[:-1], S, self.shape[-2], S))
        if full.shape[-2] == 1:
            return np.asarray(full[..., 0, :])
        return np.asarray(np.take_along_axis(full, actions[..., None, None], axis=-2)[..., 0, :])


@dataclass(frozen=True)
class SparseRows:
    """Sparse rows of one MDP: line ``s * a_axis + a`` of ``matrix`` is the row of (s, a)."""

    matrix: Any  # scipy.sparse.csr_array, (s_axis * a_axis, S)
    s_axis: int  # S or 1
    a_axis: int  # A or 1

    def __post_init__(self) -> None:
        matrix = sp.csr_array(self.matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        object.__setattr__(self, "matrix", matrix)
        if matrix.shape[0] != self.s_axis * self.a_axis or self.s_axis not in (1, matrix.shape[1]):
            raise InputError(
                f"A sparse kernel of {self.s_axis} states x {self.a_axis} actions needs a matrix of shape "
                f"({self.s_axis * self.a_axis}, {self.s_axis}); got {matrix.shape}."
            )
        mass = self._mass.ravel()
        if matrix.nnz == 0 or (matrix.data.min() >= 0 and mass.max() <= 1 + MASS_TOLERANCE):
            return  # NaN fails both comparisons
        bad = ~(np.isfinite(matrix.data) & (matrix.data >= 0))
        if bad.any():
            at = int(np.argmax(bad))
            line = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
            raise _bad_row(divmod(line, self.a_axis), f"has the entry {matrix.data[at]}", ())
        line = int(np.argmax(mass > 1 + MASS_TOLERANCE))
        raise _bad_row(divmod(line, self.a_axis), f"sums to {mass[line]:.9g}", ())

    @property
    def shape(self) -> tuple[int, ...]:
        """``(S or 1, A or 1, S)``."""
        return (self.s_axis, self.a_axis, int(self.matrix.shape[1]))

    @property
    def batch(self) -> tuple[int, ...]:
        """A sparse kernel is one MDP: no leading axes."""
        return ()

    def expect(self, values: Floats) -> Floats:
        """Expected next value of each pair; see ``Rows.expect``."""
        if values.ndim != 1:
            raise InputError("A sparse kernel takes one vector of values at a time.")
        return np.asarray(self.matrix @ values).reshape(self.s_axis, self.a_axis)

    @cached_property
    def _mass(self) -> Floats:
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64).reshape(self.s_axis, self.a_axis)

    def mass(self) -> Floats:
        """Chance that the episode goes on after each pair."""
        return self._mass

    def dense(self) -> Floats:
        """Write the rows out: ``S * A * S`` numbers. The deliberate expensive door."""
        return np.asarray(self.matrix.toarray(), dtype=np.float64).reshape(self.shape)

    def under(self, policy: Integers) -> Any:
        """Lines of the chosen actions, a CSR matrix ``(S or 1, S)``."""
        if self.a_axis == 1:
            return self.matrix
        states = np.arange(self.s_axis) if self.s_axis > 1 else np.zeros(len(policy), dtype=np.int64)
        return self.matrix[states * self.a_axis + policy]


@dataclass(frozen=True)
class Operator:
    """Rows of one large MDP that are applied and not written out."""

    shape: tuple[int, int, int]  # (S, A, S)
    apply: Callable[[Floats, Integers | None], Floats]  # values (S,) -> (S, A); under a policy (S,) -> (S,)
    chance: Callable[[Integers, Integers, Integers], Floats]  # of some transitions, arrays of one length
    added: int  # how many numbers are added up at most for an expected value
    write: Callable[[], Floats]  # all rows, (S, A, S)

    @property
    def batch(self) -> tuple[int, ...]:
        """One MDP: no leading axes."""
        return ()

    def expect(self, values: Floats) -> Floats:
        """Expected next value of each pair; see ``Rows.expect``."""
        if values.ndim != 1:
            raise InputError("An operator takes one vector of values at a time.")
        return self.apply(values, None)

    @cached_property
    def _mass(self) -> Floats:
        return np.minimum(self.apply(np.ones(self.shape[-1]), None), 1.0)

    def mass(self) -> Floats:
        """Chance that the episode goes on after each pair."""
        return self._mass

    def dense(self) -> Floats:
        """Write the rows out. The deliberate expensive door."""
        return self.write()


@dataclass(frozen=True)
class Mixture:
    """``(1 - weight) * data + weight * target``, applied without being built."""

    data: Kernel
    weight: Floats  # (..., S or 1, A or 1), in [0, 1]
    target: Kernel

    def __post_init__(self) -> None:
        weight = floats("weight", self.weight)
        if ((weight < 0) | (weight > 1)).any():
            place = first((weight < 0) | (weight > 1))
            raise InputError(f"Weights lie between 0 and 1; weight{list(place)} is {weight[place]}.")
        object.__setattr__(self, "weight", weight if weight.ndim else weight[None, None])
        if self.data.shape[-1] != self.target.shape[-1] or self.weight.ndim < 2:
            shapes = f"data {self.data.shape}, weight {self.weight.shape}, target {self.target.shape}"
            raise InputError(f"A mixture needs rows of one length and weights (..., S, A); got {shapes}.")
        together(data=self.data.shape, weight=(*self.weight.shape, 1), target=self.target.shape)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """``(..., S or 1, A or 1, S)``."""
        return np.broadcast_shapes(self.data.shape, (*self.weight.shape, 1), self.target.shape)

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes."""
        return self.shape[:-3]

    def expect(self, values: Floats) -> Floats:
        """Expected next value of each pair; see ``Rows.expect``."""
        return (1 - self.weight) * self.data.expect(values) + self.weight * self.target.expect(values)

    def mass(self) -> Floats:
        """Chance that the episode goes on after each pair."""
        return (1 - self.weight) * self.data.mass() + self.weight * self.target.mass()

    def dense(self) -> Floats:
        """Write the mixture out: ``S * A * S`` numbers. The deliberate expensive door."""
        weight = self.weight[..., None]
        return (1 - weight) * self.data.dense() + weight * self.target.dense()


Kernel: TypeAlias = Rows | SparseRows | Operator | Mixture


def one_of(kernel: Kernel, data_set: int | Booleans) -> Kernel:
    """The rows of one data set of several, or of some; rows that are the same for all of them are its own as well."""
    if not kernel.batch:
        return kernel
    if isinstance(kernel, Mixture):
        weight = kernel.weight[data_set] if kernel.weight.ndim > 2 else kernel.weight
        return Mixture(one_of(kernel.data, data_set), weight, one_of(kernel.target, data_set))
    assert isinstance(kernel, Rows)
    return Rows.trusted(kernel.array[data_set])


def parts(kernel: Kernel, weight: Floats | float = 1.0) -> list[tuple[Floats, Rows | SparseRows | Operator]]:
    """The rows that a kernel is mixed from, each with its weight ``(..., S or 1, A or 1)``, times one that is given."""
    if not isinstance(kernel, Mixture):
        return [(np.atleast_2d(weight), kernel)]
    return parts(kernel.data, (1 - kernel.weight) * weight) + parts(kernel.target, kernel.weight * weight)


def is_sparse(kernel: Kernel) -> bool:
    """Whether the kernel has a sparse part, so that writing it out would be a mistake."""
    if isinstance(kernel, Mixture):
        return is_sparse(kernel.data) or is_sparse(kernel.target)
    return isinstance(kernel, SparseRows | Operator)


def terms(kernel: Kernel) -> int:
    """Bound how many roundings an expected value goes through: at most one for each entry of a row.

    A row that all pairs share is summed in pairs, long dense rows in at least eight lanes.
    """
    if isinstance(kernel, Mixture):
        return terms(kernel.data) + terms(kernel.target) + 4
    if isinstance(kernel, Operator):
        return kernel.added
    if isinstance(kernel, SparseRows):
        return int(np.diff(kernel.matrix.indptr).max(initial=0))
    S = kernel.shape[-1]
    return min(S, 64 + (S.bit_length() if kernel.shape[-3:-1] == (1, 1) else S // 8))


def entries(kernel: Kernel, state: Integers, action: Integers, next_state: Integers) -> Floats:
    """Chances ``T[..., state, action, next_state]`` of some transitions, without writing the kernel out.

    The three index arrays broadcast; the result has the leading axes of the kernel and then theirs.
    """
    if isinstance(kernel, Mixture):
        state, action, next_state = np.broadcast_arrays(state, action, next_state)
        weight = _at(kernel.weight, state, action)
        data, target = (entries(part, state, action, next_state) for part in (kernel.data, kernel.target))
        return np.asarray((1 - weight) * data + weight * target)
    if isinstance(kernel, Rows):
        return _at(kernel.array, state, action, next_state)
    if isinstance(kernel, Operator):
        state, action, next_state = np.broadcast_arrays(state, action, next_state)
        flat = (np.ascontiguousarray(index.ravel(), dtype=np.int64) for index in (state, action, next_state))
        return kernel.chance(*flat).reshape(state.shape)
    pair = _on(kernel.s_axis, state), _on(kernel.a_axis, action)
    line = np.ravel_multi_index(np.broadcast_arrays(*pair), (kernel.s_axis, kernel.a_axis))
    lines, columns = np.broadcast_arrays(line, next_state)
    found = kernel.matrix[lines.ravel(), columns.ravel()]
    dense = found.toarray() if sp.issparse(found) else found
    return np.asarray(dense, dtype=np.float64).reshape(lines.shape)


def _at(array: Floats, state: Integers, action: Integers, *rest: Integers) -> Floats:
    """Entries of ``(..., S or 1, A or 1, ...)`` at some pairs."""
    s_axis, a_axis = array.shape[array.ndim - 2 - len(rest) :][:2]
    places: tuple[Any, ...] = (..., _on(s_axis, state), _on(a_axis, action), *rest)
    return np.asarray(array[places])


def _on(axis: int, index: Integers) -> Integers:
    """Places on an axis; where it is 1, the one entry answers for all."""
    return index if axis > 1 else np.zeros_like(index)


def kernel(transition: Any) -> Kernel:
    """Read transitions: a kernel, an array ``(..., S, A, S)``, or a sparse matrix ``(S * A, S)``.

    Plain numbers must make clear what they mean (`check_meant`); a kernel means what it says.
    """
    if isinstance(transition, Rows | SparseRows | Operator | Mixture):
        return transition
    if sp.issparse(transition):
        lines, states = transition.shape
        if states == 0 or lines % states:
            raise InputError(f"A sparse transition matrix has S * A lines and S columns; got {transition.shape}.")
        rows: Rows | SparseRows = SparseRows(transition, states, lines // states)
    else:
        rows = Rows(transition)
    check_meant(rows.mass())
    return rows


def check_meant(mass: Floats) -> None:
    """Raise where a row of plain numbers, ``(..., S, A)``, lacks so little that it may be rounding, or an ending."""
    unclear = (mass < 1 - MASS_TOLERANCE) & (mass > 1 - UNCLEAR)
    if unclear.any():
        *batch, s, a = place = first(unclear)
        where = f" of batch element {list(batch)}" if batch else ""
        raise InputError(
            f"The transition row of state {s}, action {a}{where} sums to 1 - {1 - mass[place]:.2g}: too little for "
            "rounding, unless to single precision, and hardly an ending. Divide each row by its sum if nothing ends "
            "there; if episodes do end so rarely, say so by giving certeq.Rows(transitions), or certeq.SparseRows."
        )


def check_rows(array: Floats) -> None:
    """Raise unless every entry is finite and non-negative and every row sums to at most one."""
    with np.errstate(over="ignore", invalid="ignore"):  # of entries that will be refused
        mass = array.sum(axis=-1)
    if array.size == 0 or (array.min() >= 0 and mass.max() <= 1 + MASS_TOLERANCE):
        return  # NaN fails both comparisons
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        *batch, s, a, _ = place = first(bad)
        raise _bad_row((s, a), f"has the entry {array[place]}", tuple(batch))
    *batch, s, a = place = first(mass > 1 + MASS_TOLERANCE)
    raise _bad_row((s, a), f"sums to {mass[place]:.9g}", tuple(batch))


def check_plain(array: Floats) -> None:
    """Check rows of plain numbers: `check_rows`, and that it is clear what they mean."""
    check_rows(array)
    check_meant(array.sum(axis=-1))


def _bad_row(pair: tuple[int, int], what: str, batch: tuple[int, ...]) -> InputError:
    where = f" of batch element {list(batch)}" if batch else ""
    return InputError(
        f"The transition row of state {pair[0]}, action {pair[1]}{where} {what}. "
        "Entries must be probabilities, and a row sums to at most 1 (what is missing is the chance of ending)."
    )
