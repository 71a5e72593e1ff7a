"""Candidates: targets that could be the mean of the prior, to be compared by evidence.

- ``uniform``: every possible outcome alike;
- ``marginal``: where one arrives in general, whatever the pair;
- ``state``: where the other actions of the same state lead (the pair's own rows are left out);
- ``self_loop``: stay where you are;
- ``reachable``: every outcome alike that occurs anywhere in the data;
- ``expert``: rows that the user gives.

Each but the first is blended with a share of the uniform row, so that one unexpected outcome does not rule it out.
``marginal`` and ``reachable`` are read off the data that they are then to explain. To judge them fairly, each row is
explained by what the *other* rows say (leaving one out); the product over rows is then a pseudo-likelihood, close to a
marginal likelihood but not one. Outcomes that were declared impossible have no chance under any candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from certeq.base.arrays import Booleans, Floats
from certeq.base.errors import InputError, unknown
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.model.evidence import Nonzeros, chances
from certeq.model.kernel import Kernel, Mixture, Rows, SparseRows, entries

NAMES = ("uniform", "marginal", "state", "self_loop", "reachable")
EDGE = 0.1  # share of the uniform row in every other candidate


@dataclass(frozen=True)
class Candidate:
    """Rows to pull toward, and what they say of each observation when the pair's own are left out."""

    rows: Kernel
    judged: Callable[[Counts, Nonzeros], Floats] | None = None  # chances of outcomes; None: those of the rows


def candidates(
    counts: Counts, names: Sequence[str] = NAMES, *, expert: Any = None, possible: Any = None
) -> dict[str, Candidate]:
    """Make the candidates of these names; an expert's rows are one more."""
    allowed = None if possible is None else read_possible(possible, counts)
    plain = targets.uniform(counts) if allowed is None else uniform_over(allowed, counts)
    made = {}
    for name in names:
        if name not in _MAKERS:
            raise unknown("candidate target", name, _MAKERS)
        made[name] = _MAKERS[name](counts, plain, allowed)
    if expert is not None:
        made["expert"] = Candidate(_blend(targets.expert(expert, counts), np.float64(EDGE), plain, allowed))
    if not made:
        raise InputError("Name at least one candidate target.")
    return made


def _uniform(counts: Counts, plain: Kernel, allowed: Any) -> Candidate:
    return Candidate(plain)


def _self_loop(counts: Counts, plain: Kernel, allowed: Any) -> Candidate:
    return Candidate(_blend(targets.self_loop(counts), np.float64(EDGE), plain, allowed))


def _state(counts: Counts, plain: Kernel, allowed: Any) -> Candidate:
    rows, others = targets.other_actions(counts)
    return Candidate(_blend(rows, np.where(others > 0, EDGE, 1.0), plain, allowed))


def _marginal(counts: Counts, plain: Kernel, allowed: Any) -> Candidate:
    arrived = _arrivals(counts)  # (..., N)
    rows = _shared(arrived / np.maximum(arrived.sum(axis=-1, keepdims=True), 1), counts)
    seen = np.asarray(arrived.any(axis=-1))[..., None, None]

    def judged(table: Counts, at: Nonzeros) -> Floats:
        data_set, state, action, outcome, count = at
        own = table.visits.reshape(-1, table.n_states, table.n_actions)[data_set, state, action]
        flat = arrived.reshape(-1, arrived.shape[-1])
        others = flat.sum(axis=1)[data_set] - own
        chance = (flat[data_set, outcome] - count) / np.maximum(others, 1)
        return np.asarray(np.where(others > 0, chance, 0.0))

    return _left_out(_blend(rows, np.where(seen, EDGE, 1.0), plain, allowed), judged, plain)


def _reachable(counts: Counts, plain: Kernel, allowed: Any) -> Candidate:
    arrived = _arrivals(counts)
    reached = arrived > 0
    rows = _shared(reached / np.maximum(reached.sum(axis=-1, keepdims=True), 1), counts)
    seen = np.asarray(reached.any(axis=-1))[..., None, None]

    def judged(table: Counts, at: Nonzeros) -> Floats:
        data_set, _, _, outcome, count = at
        flat = arrived.reshape(-1, arrived.shape[-1])
        elsewhere = flat[data_set, outcome] > count
        return np.asarray(elsewhere / np.maximum((flat > 0).sum(axis=1), 1)[data_set])

    return _left_out(_blend(rows, np.where(seen, EDGE, 1.0), plain, allowed), judged, plain)


_MAKERS: dict[str, Callable[[Counts, Kernel, Any], Candidate]] = {
    "uniform": _uniform,
    "marginal": _marginal,
    "state": _state,
    "self_loop": _self_loop,
    "reachable": _reachable,
}


def _left_out(rows: Kernel, judged: Callable[[Counts, Nonzeros], Floats], plain: Kernel) -> Candidate:
    """A candidate that is judged with the pair's own rows left out, blended with the uniform row like its rows."""

    def blended(table: Counts, at: Nonzeros) -> Floats:
        return (1 - EDGE) * judged(table, at) + EDGE * chances(plain, table.batch, *at[:4])

    return Candidate(rows, blended)


def _arrivals(counts: Counts) -> Floats:
    """How often each outcome occurred in all, ``(..., N)``."""
    if counts.sparse:
        total = np.asarray(counts.transitions.sum(axis=0), dtype=np.float64).ravel()
    else:
        total = counts.transitions.sum(axis=(-3, -2)).astype(np.float64)
    if counts.ended is None:
        return total
    return np.append(total, counts.ended.sum(axis=(-2, -1))[..., None], axis=-1)


def _shared(row: Floats, counts: Counts) -> Rows:
    """One row ``(..., N)`` for all pairs of a data set; an ending is missing mass."""
    return Rows.trusted(row[..., None, None, : counts.n_states])


def _blend(rows: Kernel, edge: Any, plain: Kernel, allowed: Any) -> Kernel:
    """Rows with a share of the uniform row, kept to what is possible."""
    kept, lost = (rows, 0.0) if allowed is None else _restrict(rows, allowed)
    return Mixture(kept, np.maximum(np.atleast_2d(edge), lost), plain)


def _restrict(rows: Kernel, allowed: Any) -> tuple[Kernel, Floats]:
    """Rows over possible outcomes alone, and 1 for each pair that has none of them left."""
    S = rows.shape[-1]
    if sp.issparse(allowed):
        line = np.repeat(np.arange(allowed.shape[0]), np.diff(allowed.indptr))
        A = allowed.shape[0] // S
        inside = allowed.indices < S
        ending = np.broadcast_to(1 - rows.mass(), (S, A)).ravel()[line]
        chance = np.empty(len(line))
        chance[inside] = entries(rows, line[inside] // A, line[inside] % A, allowed.indices[inside])
        chance[~inside] = ending[~inside]
        total = np.bincount(line, chance, minlength=S * A)
        kept = sp.csr_array(
            (chance / np.where(total > 0, total, 1)[line], (line, allowed.indices)), shape=allowed.shape
        )
        return SparseRows(kept[:, :S], S, A), (total <= 0).astype(float).reshape(S, A)
    full = rows.dense()
    if allowed.shape[-1] > S:
        full = np.append(full, np.maximum(1 - full.sum(axis=-1, keepdims=True), 0), axis=-1)
    full = full * allowed
    total = full.sum(axis=-1, keepdims=True)
    kept = full / np.where(total > 0, total, 1)
    return Rows.trusted(kept[..., :S]), (total[..., 0] <= 0).astype(float)


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
