"""Possible outcomes: what is ruled out gets no chance, and what happened cannot be ruled out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from certeq import Counts, InputError, shrink
from strategies import SEEDS, as_sparse, random_counts


@given(seed=SEEDS)
def test_the_row_is_uniform_over_what_is_possible(seed):
    table = random_counts(seed, 4, 2, ended=True)
    happened = np.append(table.transitions, table.ended[..., None], axis=-1) > 0
    possible = happened | (np.random.default_rng(seed).random((4, 2, 5)) < 0.3)
    possible[..., 0] = True
    dense = shrink(table, "evidence", possible=possible)
    sparse = shrink(as_sparse(table), "evidence", possible=sp.csr_array(possible.reshape(8, 5)))
    for s, a in np.ndindex(4, 2):
        row = [1 / possible[s, a].sum() if possible[s, a, n] else 0.0 for n in range(5)]
        for found in (dense, sparse):
            np.testing.assert_allclose(found.target.dense()[s, a], row[:4], atol=1e-15)
    np.testing.assert_allclose(sparse.weight, dense.weight, atol=1e-12)
    assert ((dense.weight > 0) & (dense.weight <= 1)).all()


def test_an_outcome_that_happened_cannot_be_impossible():
    table = Counts(np.array([[[1, 2]], [[0, 3]]]))
    with pytest.raises(InputError, match="After state 0, action 0 state 1 followed, which possible= rules out"):
        shrink(table, "evidence", possible=[[[True, False]], [[True, True]]])
    with pytest.raises(InputError, match="After state 0, action 0 state 1 followed"):
        shrink(as_sparse(table), "evidence", possible=[[[True, False]], [[True, True]]])
    with pytest.raises(InputError, match="No outcome is possible after state 1, action 0"):
        shrink(table, "evidence", possible=[[[True, True]], [[False, False]]])
    with pytest.raises(InputError, match="possible needs booleans of shape"):
        shrink(table, "evidence", possible=[True, False, True])
    with pytest.raises(InputError, match="not both"):
        shrink(table, "evidence", possible=[True, True], target=np.eye(2)[None, :1])
