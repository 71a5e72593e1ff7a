"""Compiled Dirichlet rows: drawn as their twin draws them, and as Dirichlet rows are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from certeq.base.random import stream, words
from certeq.model.gammas import draw
from certeq.questions import draws
from naive import dirichlet_row
from strategies import SEEDS

SHAPES = st.sampled_from([0.0, 1e-12, 1e-5, 0.003, 0.2, 0.999, 1.0, 1.5, 7.0, 300.0])


def drawn(alpha, seed):
    table = np.atleast_2d(np.asarray(alpha, dtype=np.float64))
    out = np.empty(table.shape)
    draw(table, words(np.random.default_rng(seed), 1)[0], out)
    return out


@given(SEEDS, st.lists(SHAPES, min_size=1, max_size=9))
def test_rows_are_those_of_the_plain_twin(seed, alpha):
    if not any(alpha):
        return
    numbers = iter(stream(words(np.random.default_rng(seed), 1)[0], 5000).tolist())
    for row in drawn([alpha] * 3, seed):
        np.testing.assert_allclose(row, dirichlet_row(alpha, numbers), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "alpha", [[3.2, 0.01, 0.5, 0.0, 1.0, 7.0], [0.003, 0.002, 0.1, 0.05], [1.0, 1e-9, 0.3], [40.5, 1.2, 0.99]], ids=str
)
def test_each_outcome_has_the_distribution_that_it_has_by_itself(alpha):
    rows = drawn(np.broadcast_to(alpha, (40_000, len(alpha))), 5)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    for i, own in enumerate(alpha):
        if own == 0.0:
            assert not rows[:, i].any()
            continue
        at = np.array([1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.7, 0.95])
        wanted, often = beta(own, sum(alpha) - own).cdf(at), (rows[:, i, None] <= at).mean(axis=0)
        assert (abs(often - wanted) <= 4.5 * np.sqrt(wanted * (1 - wanted) / len(rows)) + 1e-4).all()


def test_outcomes_go_together_as_they_should():
    alpha = np.array([2.0, 0.5, 0.3, 4.0])
    rows, whole = drawn(np.broadcast_to(alpha, (100_000, 4)), 3), alpha.sum()
    mean = alpha / whole
    np.testing.assert_allclose(np.cov(rows.T), (np.diag(mean) - np.outer(mean, mean)) / (whole + 1), atol=5e-4)


def test_where_all_round_to_zero_one_outcome_is_drawn_by_its_parameter():
    rows = drawn(np.broadcast_to([1e-9, 0.0, 3e-9], (20_000, 3)), 1)
    assert set(rows.ravel().tolist()) == {0.0, 1.0}
    assert (rows.sum(axis=1) == 1).all()
    assert rows[:, 2].mean() == pytest.approx(0.75, abs=0.02)


def test_many_numbers_are_drawn_by_the_kernel_and_few_by_numpy():
    alpha = np.random.default_rng(0).gamma(0.3, size=(30, 40, 2, 40))
    one, other = (draws.draw_rows(alpha, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert (one == 0.0).any()
    np.testing.assert_allclose(one.sum(axis=-1), 1.0)
    few = draws.draw_rows(alpha[:1, :2], np.random.default_rng(7))
    wanted = np.random.default_rng(7).standard_gamma(alpha[:1, :2])
    np.testing.assert_allclose(few, wanted / wanted.sum(axis=-1, keepdims=True))
