"""Sparse models: the same plans as dense ones, and never an array of S x A x S."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from certeq import REGULARIZERS, Counts, InputError, Mixture, SparseRows, evaluate, plan, solve
from certeq.model.frequencies import mle
from certeq.regularizers import settings_of
from strategies import random_model

LARGE, A = 200_000, 2


def test_a_plain_sparse_matrix_will_do():
    T, R, gamma = random_model(5, 4, 2)
    found = solve(sp.csr_array(T.reshape(8, 4)), R, gamma)
    np.testing.assert_allclose(found.values, solve(T, R, gamma).values, atol=1e-8)
    assert found.method == "modified_policy_iteration"


def test_without_discounting_traps_are_named_in_sparse_models_too():
    with pytest.raises(InputError, match=r"among the states 0, 1\."):
        solve(sp.eye_array(2, format="csr"), [[0.0], [1.0]], 1.0)


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        (sp.csr_array([[0.5, 0.6], [0, 1]]), r"state 0, action 0 sums to 1\.1"),
        (sp.csr_array([[0.5, 0.5], [-0.5, 1]]), r"state 1, action 0 has the entry -0\.5"),
        (sp.csr_array(np.ones((3, 2)) / 2), r"S \* A lines and S columns"),
    ],
)
def test_bad_sparse_rows_are_named(matrix, says):
    with pytest.raises(InputError, match=says):
        solve(matrix, [[0.0], [1.0]], 0.9)


def test_a_batch_of_discounts_is_refused_in_so_many_words():
    with pytest.raises(InputError, match=r"one reward and one discount at a time; got a batch \(2,\)"):
        solve(sp.eye_array(2, format="csr"), [[0.0], [1.0]], [0.5, 0.9])


@pytest.fixture
def door_closed(monkeypatch):
    """Writing rows out is forbidden."""

    def forbidden(self):
        raise AssertionError("the expensive door was opened")

    for kind in (Mixture, SparseRows):
        monkeypatch.setattr(kind, "dense", forbidden)


def scattered_counts(S):
    """Three visits for each pair, to states not far away, and none for the pairs of the last states."""
    rng = np.random.default_rng(0)
    pairs = np.repeat(np.arange(S * A), 3)[: -S // 10 * 3]
    after = (pairs // A + rng.integers(-5, 50, size=len(pairs))) % S
    matrix = sp.coo_array((np.ones(len(pairs), dtype=np.int64), (pairs, after)), shape=(S * A, S)).tocsr()
    return Counts(matrix, None, A), rng.random((S, A))


@pytest.mark.usefixtures("door_closed")
@pytest.mark.parametrize("regularizer", ["uniform_prior", "epsilon_greedy"])
def test_two_hundred_thousand_states_are_planned_without_ever_writing_the_rows_out(regularizer):
    counts, reward = scattered_counts(LARGE)
    tracemalloc.start()
    found = plan(counts, reward, 0.8, regularizer=regularizer, strength=0.3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.outcome == "optimal"
    assert peak < 1000 * LARGE * A  # bytes; a dense array would have 8 * LARGE times as many
    # An outside check: nowhere does a backup improve on the values.
    assert np.abs(found.action_values.max(axis=-1) - found.values).max() <= 1e-8


@pytest.mark.usefixtures("door_closed")
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_every_regularizer_is_kept_sparse(regularizer):
    counts, reward = scattered_counts(3000)
    settings = {"strength": 0.3} if "strength" in settings_of(regularizer) else {}
    if regularizer == "expert_prior":
        settings["target"] = sp.csr_array(sp.eye_array(3000).tocsr()[np.repeat(np.arange(3000), A)])
    assert plan(counts, reward, 0.8, regularizer=regularizer, **settings).outcome == "optimal"


@pytest.mark.usefixtures("door_closed")
@pytest.mark.parametrize("unvisited", ["uniform", "zero", "self_loop", "average", "exclude"])
def test_every_convention_for_unvisited_pairs_is_kept_sparse(unvisited):
    counts, reward = scattered_counts(3000)
    found = plan(counts, reward, 0.5, regularizer="uniform_prior", strength=0.3, unvisited=unvisited, tolerance=1e-6)
    assert found.outcome == "optimal"
    assert ((found.policy < 0).sum() > 0) == (unvisited == "exclude")


@pytest.mark.usefixtures("door_closed")
def test_a_policy_is_evaluated_without_writing_the_rows_out():
    counts, reward = scattered_counts(3000)
    values = evaluate(mle(counts), reward, 0.8, np.zeros(3000, dtype=np.int64))
    rows = mle(counts).matrix[np.arange(3000) * A]
    np.testing.assert_allclose(values, reward[:, 0] + 0.8 * (rows @ values), atol=1e-10)
