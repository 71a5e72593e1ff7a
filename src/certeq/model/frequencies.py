"""Frequencies: T_data, how often each outcome followed each pair, as rows."""

from __future__ import annotations

import numpy as np

from certeq.base import matrices as sp
from certeq.data.counts import Counts
from certeq.model.kernel import Rows, SparseRows


def mle(counts: Counts) -> Rows | SparseRows:
    """T_MLE. The row of an unvisited pair is zero here; `certeq.model.unvisited` decides what stands in."""
    scale = 1.0 / np.maximum(counts.visits, 1)
    if counts.sparse:
        S, A = counts.n_states, counts.n_actions
        tallied = counts.transitions
        data = tallied.data * np.repeat(scale.ravel(), np.diff(tallied.indptr))
        return SparseRows(sp.csr_array((data, tallied.indices, tallied.indptr), shape=tallied.shape), S, A)
    return Rows.trusted(counts.transitions * scale[..., None])
