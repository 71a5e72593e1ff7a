"""Eq. 4: MSE = Σ (1 - ε)² T(1 - T)/c + ε² (q - T)². The main text prints ε for ε² in the bias; its appendix has ε²."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import weights
from certeq.model.moments import true_moments
from strategies import SEEDS, WEIGHTS, random_rows

ROW = np.array([0.4, 0.2, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.0])
UNIFORM = np.full(10, 0.1)
VISITS, WEIGHT, DATA_SETS = 7, 0.5, 200_000


def printed(row, target, visits, weight):
    """Eq. 4 as the main text has it."""
    return naive.row_variance(row, visits, weight) + weight * ((target - row) ** 2).sum()


@pytest.fixture(scope="module")
def simulated_errors():
    """Squared error of the regularized row in each of many data sets."""
    frequencies = np.random.default_rng(4).multinomial(VISITS, ROW, size=DATA_SETS) / VISITS
    return (((1 - WEIGHT) * frequencies + WEIGHT * UNIFORM - ROW) ** 2).sum(axis=1)


@given(SEEDS, st.integers(1, 8), st.integers(1, 100), WEIGHTS)
def test_variance_bias_and_error_are_the_formulas(seed, N, visits, weight):
    rng = np.random.default_rng(seed)
    row, target = random_rows(rng, (2, N))
    known = true_moments(visits, row, target)
    assert weights.variance(known, weight) == pytest.approx(naive.row_variance(row, visits, weight), abs=1e-14)
    assert weights.bias_squared(known, weight) == pytest.approx(naive.row_bias_squared(row, target, weight), abs=1e-14)
    assert weights.mse(known, weight) == pytest.approx(naive.row_mse(row, target, visits, weight), abs=1e-14)


def test_simulation_agrees_with_the_square_of_the_weight(simulated_errors):
    standard_error = simulated_errors.std() / np.sqrt(DATA_SETS)
    exact = weights.mse(true_moments(VISITS, ROW, UNIFORM), WEIGHT)
    assert abs(simulated_errors.mean() - exact) < 4 * standard_error


def test_simulation_rules_out_the_main_texts_plain_weight(simulated_errors):
    standard_error = simulated_errors.std() / np.sqrt(DATA_SETS)
    assert abs(simulated_errors.mean() - printed(ROW, UNIFORM, VISITS, WEIGHT)) > 100 * standard_error


def test_variance_and_bias_are_told_apart_by_simulation():
    rows = np.random.default_rng(5).multinomial(VISITS, ROW, size=DATA_SETS) / VISITS * (1 - WEIGHT) + WEIGHT * UNIFORM
    known = true_moments(VISITS, ROW, UNIFORM)
    assert rows.var(axis=0).sum() == pytest.approx(weights.variance(known, WEIGHT), rel=0.01)
    assert ((rows.mean(axis=0) - ROW) ** 2).sum() == pytest.approx(weights.bias_squared(known, WEIGHT), rel=0.01)


def test_everything_broadcasts():
    rows = random_rows(np.random.default_rng(0), (3, 1, 4))
    known = true_moments([[1, 5]], rows, np.full(4, 0.25))
    errors = weights.mse(known, np.linspace(0, 1, 7)[:, None, None])
    assert errors.shape == (7, 3, 2)
    assert errors[2, 1, 1] == pytest.approx(naive.row_mse(rows[1, 0], [0.25] * 4, 5, 1 / 3))


@pytest.mark.parametrize("row", [[0.5, 0.5], [1.0, 0.0]])
def test_without_data_the_variance_is_infinite_unless_the_target_stands_alone(row):
    nothing = true_moments(0, row, [0.5, 0.5])
    assert weights.variance(nothing, 1) == 0
    assert weights.variance(nothing, 0.5) == np.inf
    assert weights.mse(nothing, 1) == naive.row_bias_squared(row, [0.5, 0.5], 1)
