"""The compiled engine says what the plain one says: small MDPs side by side, medium ones one by one."""

import numpy as np
import pytest

from certeq import InputError, solve
from certeq.model.kernel import Mixture, Rows
from certeq.worlds import river_swim
from strategies import random_model, random_rows

pytestmark = pytest.mark.slow  # kernels are compiled

SIZES = [(1, 1), (2, 2), (7, 3), (8, 2), (9, 2), (16, 1), (31, 2), (32, 3), (33, 2), (40, 3), (64, 2)]
each_size = pytest.mark.parametrize(("S", "A"), SIZES)
TOLERANCE = 2e-9  # certified, relative to the largest value; small MDPs are exact


def agree(transition, reward, discount, **settings):
    """Plan with both engines, compare everything that both promise, and give back the compiled plan."""
    plain, fast = (
        solve(transition, reward, discount, engine=engine, method="policy_iteration", **settings)
        for engine in ("numpy", "numba")
    )
    scale = np.abs(plain.values).max(initial=1e-3)
    np.testing.assert_allclose(fast.values, plain.values, atol=TOLERANCE * scale)
    np.testing.assert_array_equal(fast.policy, plain.policy)
    np.testing.assert_array_equal(fast.tied, plain.tied)
    assert fast.outcome == plain.outcome == "optimal"
    assert fast.values.shape == plain.values.shape
    assert fast.iterations.shape == fast.residual.shape == plain.iterations.shape
    assert (fast.bound <= 1e-5 * scale).all()
    return fast


@each_size
@pytest.mark.parametrize("ends", [False, True])
def test_they_agree_on_random_models(S, A, ends):
    for discount in (0.0, 0.5, 0.99, 0.999):
        agree(*random_model([S, A], S, A, batch=(5,), ends=ends, discount=discount))


@each_size
def test_they_agree_on_long_narrow_chains(S, A):
    if S >= 2:
        river = river_swim(n_states=S, discount=0.99)
        agree(river.transition.array, river.reward, np.array([0.5, 0.9, 0.99]))


@each_size
@pytest.mark.parametrize("shape", ["shared", "by state", "by pair"])
def test_they_agree_on_mixtures_along_a_path_of_strengths(S, A, shape):
    rng = np.random.default_rng([S, A, 2])
    T, R, _ = random_model([S, A, 3], S, A, batch=(3, 1))
    target = random_rows(rng, {"shared": (1, 1, S), "by state": (S, 1, S), "by pair": (S, A, S)}[shape], ends=True)
    weight = np.linspace(0, 1, 4)[:, None, None] * rng.random((S, A)) ** 0.1
    found = agree(Mixture(Rows(T), weight, Rows(target)), R, 0.95)
    assert found.policy.shape == (3, 4, S)


@pytest.mark.parametrize("S", [6, 40])
def test_the_result_does_not_depend_on_the_threads(S):
    world = random_model(9, S, 2, batch=(130 if S == 6 else 5,), discount=0.95)
    one, two = (solve(*world, engine="numba", threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.policy, two.policy)
    np.testing.assert_array_equal(one.iterations, two.iterations)


@pytest.mark.parametrize("S", [6, 40])
@pytest.mark.parametrize("value", [np.nan, -0.5, 0.9, np.inf])
def test_a_bad_row_is_named_by_either_engine(S, value):
    T, R, gamma = random_model(2, S, 2, batch=(20,))
    T[17, 3, 1] = 1 / S
    T[17, 3, 1, 2] = value
    for engine in ("numpy", "numba"):
        with pytest.raises(InputError, match=r"state 3, action 1 of batch element \[17\]"):
            solve(T, R, gamma, engine=engine)


@pytest.mark.parametrize("excess", [0.0, 0.9e-9, 1e-9])
def test_a_row_past_one_by_a_rounding_error_is_planned_with(excess):
    T = np.array([[[1 + excess]]])
    for engine in ("numpy", "numba"):
        np.testing.assert_allclose(solve(T, [[1.0]], 0.5, engine=engine).values, 2, rtol=1e-8)
