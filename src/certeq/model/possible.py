"""Possible outcomes: what the user rules out, and the uniform row over the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Booleans
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model.kernel import Rows, SparseRows


def read_possible(possible: Any, counts: Counts) -> Any:
    """Read which outcomes are possible: booleans ``(S or 1, A or 1, N)``, or a sparse matrix ``(S * A, N)``.

    With endings in the data N is S + 1 and the last outcome is ending.
    """
    S, A, N = counts.n_states, counts.n_actions, counts.n_outcomes
    if sp.issparse(possible):
        allowed = sp.csr_array(possible, dtype=bool)
        if allowed.shape != (S * A, N):
            raise InputError(f"A sparse table of possible outcomes has the shape ({S * A}, {N}); got {allowed.shape}.")
        allowed.sum_duplicates()
        allowed.eliminate_zeros()
        empty = np.diff(allowed.indptr) == 0
    else:
        try:
            allowed = np.broadcast_to(np.asarray(possible, dtype=bool), (S, A, N))
        except ValueError:
            shape = np.shape(possible)
            raise InputError(f"possible needs booleans of shape ({S}, {A}, {N}); got shape {shape}.") from None
        if counts.sparse:
            allowed = sp.csr_array(allowed.reshape(S * A, N))
        empty = np.asarray(allowed.sum(axis=-1)).ravel() == 0
    if empty.any():
        s, a = divmod(int(np.argmax(empty)), A)
        raise InputError(f"No outcome is possible after state {s}, action {a}; allow at least one.")
    _check_seen(allowed, counts)
    return allowed


def _check_seen(allowed: Any, counts: Counts) -> None:
    """Raise if something happened that was declared impossible."""
    S, A = counts.n_states, counts.n_actions
    if sp.issparse(allowed):
        matrix = counts.transitions
        if counts.ended is not None:
            matrix = sp.hstack([matrix, sp.csr_array(counts.ended.reshape(-1, 1))], format="csr")
        against = (matrix > 0).astype(np.int8) - (matrix > 0).multiply(allowed).astype(np.int8)
        against.eliminate_zeros()
        place = None if against.nnz == 0 else tuple(int(part[0]) for part in against.nonzero())
        found: tuple[int, ...] | None = None if place is None else (*divmod(place[0], A), place[1])
    else:
        table = counts.transitions
        if counts.ended is not None:
            table = np.append(table, counts.ended[..., None], axis=-1)
        bad: Booleans = (table > 0) & ~allowed
        found = tuple(int(i) for i in np.argwhere(bad)[0][-3:]) if bad.any() else None
    if found is not None:
        s, a, n = found
        what = "the episode ended" if n == S else f"state {n} followed"
        raise InputError(f"After state {s}, action {a} {what}, which possible= rules out; one of the two is wrong.")


def uniform_over(allowed: Any, counts: Counts) -> Rows | SparseRows:
    """All possible outcomes of each pair alike."""
    S, A = counts.n_states, counts.n_actions
    if sp.issparse(allowed):
        sizes = np.diff(allowed.indptr)
        matrix = sp.csr_array((np.repeat(1 / sizes, sizes), allowed.indices, allowed.indptr), shape=allowed.shape)
        return SparseRows(matrix[:, :S], S, A)
    return Rows.trusted((allowed / allowed.sum(axis=-1, keepdims=True))[..., :S])
