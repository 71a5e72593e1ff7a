"""Appendix: the controlled environment, a ring of ten states. κ: how sure leaving is; λ: how alike the actions are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import solve, weights
from certeq.model.moments import true_action_moments, true_moments
from certeq.worlds import stay_or_leave

KAPPAS, LAMBDAS = st.floats(0, 1), st.floats(0, 0.5)
UNIFORM = np.full(10, 0.1)


@given(KAPPAS, LAMBDAS)
def test_its_rows_are_the_papers(kappa, lam):
    T = stay_or_leave(kappa=kappa, lam=lam).transition.array
    np.testing.assert_allclose(T, naive.stay_or_leave(kappa, lam), atol=1e-15)


def test_it_has_the_papers_size_discount_and_three_adjacent_rewards():
    ring = stay_or_leave()
    assert (ring.n_states, ring.n_actions, ring.discount) == (10, 2, 0.99)
    paying = np.flatnonzero(ring.reward[:, 0])
    assert len(paying) == 3
    assert np.ptp(paying) == 2
    np.testing.assert_array_equal(ring.reward[:, 0], ring.reward[:, 1])  # a function of the state


@given(KAPPAS)
def test_at_half_the_actions_are_the_same_and_every_state_is_a_tie(kappa):
    ring = stay_or_leave(kappa=kappa, lam=0.5)
    np.testing.assert_allclose(ring.transition.array[:, 0], ring.transition.array[:, 1], atol=1e-15)
    assert solve(ring.transition, ring.reward, ring.discount).ties() == [(s,) for s in range(10)]


@given(KAPPAS, st.integers(1, 50))
def test_alike_actions_make_the_action_average_the_target_without_bias(kappa, visits):
    """The appendix's finding, in its purest case: the target that fits the world has the smaller error."""
    rows = stay_or_leave(kappa=kappa, lam=0.5).transition.array[0]
    alike = true_action_moments([visits, visits], rows)
    np.testing.assert_allclose(weights.action_average_bias_squared(alike, 1), 0, atol=1e-15)
    toward_uniform = true_moments(visits, rows, UNIFORM)
    averaged = weights.action_average_mse(alike, weights.least_mse_action_average(alike))
    shrunk = weights.mse(toward_uniform, weights.least_mse(toward_uniform))
    V, B = toward_uniform.spread, toward_uniform.distance
    np.testing.assert_allclose(averaged, V / visits / 2, atol=1e-12)  # twice the data
    np.testing.assert_allclose(shrunk, V * B / (V + visits * B), atol=1e-12)


@given(st.integers(1, 50))
def test_uniform_leaving_makes_the_uniform_row_the_target_without_bias(visits):
    leave = stay_or_leave(kappa=0, lam=0).transition.array[0, 1]
    assert weights.least_mse(true_moments(visits, leave, UNIFORM)) == pytest.approx(1, abs=1e-12)


def test_sure_leaving_needs_no_regularization():
    leave = stay_or_leave(kappa=1, lam=0).transition.array[0, 1]
    assert weights.least_mse(true_moments(5, leave, UNIFORM)) == 0
