import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.worlds import stay_or_leave

STAY, LEAVE = 0, 1


@given(kappa=st.floats(0, 1), lam=st.floats(0, 0.5), n_states=st.integers(3, 15))
def test_rows_are_distributions_and_the_same_all_round_the_ring(kappa, lam, n_states):
    T = stay_or_leave(kappa=kappa, lam=lam, n_states=n_states).transition.array
    np.testing.assert_allclose(T.sum(axis=-1), 1, atol=1e-12)
    for s in range(n_states):
        np.testing.assert_allclose(np.roll(T[s], -s, axis=-1), T[0], atol=1e-12)


@given(kappa=st.floats(0, 1))
def test_at_lambda_one_half_the_actions_are_the_same(kappa):
    T = stay_or_leave(kappa=kappa, lam=0.5).transition.array
    np.testing.assert_allclose(T[:, STAY], T[:, LEAVE], atol=1e-12)


def test_at_kappa_zero_leaving_is_uniform():
    np.testing.assert_allclose(stay_or_leave(kappa=0).transition.array[:, LEAVE], 0.1)


def test_at_kappa_one_leaving_is_a_step_round_the_ring():
    T = stay_or_leave(kappa=1).transition.array
    np.testing.assert_array_equal(T[:, LEAVE].argmax(axis=1), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0])
    assert (T[:, LEAVE].max(axis=1) == 1).all()


def test_staying_stays_three_times_in_four_or_lands_anywhere():
    T = stay_or_leave().transition.array
    np.testing.assert_allclose(T[:, STAY], 0.75 * np.eye(10) + 0.025)


@given(kappa=st.floats(0, 1), lam=st.floats(0, 0.5))
def test_lambda_moves_the_actions_toward_each_other(kappa, lam):
    apart = stay_or_leave(kappa=kappa).transition.array
    mixed = stay_or_leave(kappa=kappa, lam=lam).transition.array
    np.testing.assert_allclose(mixed[:, STAY], (1 - lam) * apart[:, STAY] + lam * apart[:, LEAVE], atol=1e-12)
    np.testing.assert_allclose(mixed.mean(axis=1), apart.mean(axis=1), atol=1e-12)


def test_three_neighbors_pay_by_either_action():
    np.testing.assert_array_equal(stay_or_leave().reward, np.repeat([[1]] * 3 + [[0]] * 7, 2, axis=1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kappa": 1.2}, "kappa must lie between 0 and 1; kappa is 1.2"),
        ({"lam": 0.6}, "lam must lie between 0 and 0.5; lam is 0.6"),
        ({"n_states": 2}, "n_states must be at least 3; got 2"),
    ],
)
def test_a_bad_setting_is_named(settings, message):
    with pytest.raises(InputError, match=message):
        stay_or_leave(**settings)
