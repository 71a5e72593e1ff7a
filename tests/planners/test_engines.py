"""The compiled engine says what the plain one says: small MDPs side by side, medium ones one by one."""

import numpy as np
import pytest

from certeq import InputError, solve
from certeq.model.kernel import Mixture, Rows
from certeq.worlds import river_swim
from strategies import random_model, random_rows

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
def test_they_agree_without_discounting_where_everything_ends(S, A):
    T, R, _ = random_model([S, A, 1], S, A, batch=(3,))
    T[:, 0] *= 0.5  # state 0 may end; from elsewhere it can be reached
    T[:, 1:] = 0.9 * T[:, 1:] + 0.1 * np.eye(S)[0]
    agree(T, R, 1.0)


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


@each_size
def test_they_agree_under_masks(S, A):
    T, R, gamma = random_model([S, A, 4], S, A, batch=(4,))
    allowed = np.random.default_rng(S).random((4, S, A)) < 0.6
    allowed[..., -1] |= ~allowed.any(axis=-1)
    agree(T, R, gamma, allowed=allowed)
    agree(T, R, gamma, allowed=allowed[0])


@pytest.mark.parametrize("S", [6, 40])
def test_they_agree_on_every_way_to_broadcast(S):
    A = 2
    for t, r, g, m in [
        ((), (5,), (), ()),
        ((), (), (5,), ()),
        ((5,), (), (), ()),
        ((), (), (), (5,)),
        ((2, 1), (3,), (2, 3), ()),
        ((2, 3), (), (2, 1), (3,)),
        ((3,), (2, 1), (), (2, 3)),
    ]:
        rng = np.random.default_rng(S)
        allowed = rng.random((*m, S, A)) < 0.8
        allowed[..., 0] |= ~allowed.any(axis=-1)
        T, R = random_rows(rng, (*t, S, A, S)), rng.uniform(-1, 1, (*r, S, A))
        agree(T, R, rng.choice([0.0, 0.6, 0.95], size=g), allowed=allowed)


@pytest.mark.parametrize("S", [6, 40])
def test_ties_are_broken_alike(S):
    T, R, gamma = random_model(S, S, 3, batch=(3,))
    T[:, :, 2], R[:, :, 2] = T[:, :, 1], R[:, :, 1]
    T[1], R[1] = T[1, :, :1], R[1, :, :1]  # all actions of the second are the same
    found = agree(T, R, gamma)
    assert (found.policy[1] == 0).all()
    assert (found.policy < 2).all()


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


def test_the_compiled_engine_refuses_what_it_does_not_do():
    with pytest.raises(InputError, match="engine='numba' does policy iteration in dense models"):
        solve(*random_model(0, 3, 2), engine="numba", method="value_iteration")
