"""Discount 1: right where every policy is sure to end, and an error that names the states where one is not."""

import numpy as np
import pytest
from hypothesis import given

from certeq import InputError, solve
from planned import both, each_without_discounting, plans
from strategies import SEEDS, random_rows


def corridor(length):
    """Walk left or right, a step costs 1; past either end the episode is over."""
    left, right = np.eye(length, k=-1), np.eye(length, k=1)
    return np.stack([left, right], axis=1), np.full((length, 2), -1.0)


def leaky(seed, S, A):
    """A random model in which every pair ends with some chance."""
    rng = np.random.default_rng(seed)
    return 0.9 * random_rows(rng, (S, A, S)), rng.uniform(-1, 1, (S, A))


@each_without_discounting
@pytest.mark.parametrize("length", [1, 2, 9, 32])
def test_a_corridor_is_left_by_the_nearer_end(planner, length):
    # Going back and forth would never end, so each state may take one direction or stay out of the middle's loop.
    T, R = corridor(length)
    nearer_left = np.arange(length) < length / 2
    allowed = np.stack([nearer_left, ~nearer_left], axis=1)
    distance = np.minimum(np.arange(length) + 1, length - np.arange(length))
    for found in plans(planner, both(T), R, 1.0, allowed=allowed):
        np.testing.assert_allclose(found.values, -distance, atol=1e-9 * length)


@each_without_discounting
def test_a_gambler_who_may_not_stop_is_ruined_by_the_classic_formula(planner):
    """Fair bets of one coin, reward 1 on reaching N: the chance of it is k / N."""
    N = 11
    up, down = np.eye(N - 1, k=1), np.eye(N - 1, k=-1)
    T = (0.5 * up + 0.5 * down)[:, None, :]
    R = np.zeros((N - 1, 1))
    R[-1] = 0.5
    for found in plans(planner, both(T), R, 1.0):
        np.testing.assert_allclose(found.values, np.arange(1, N) / N, atol=1e-9)
        assert found.outcome == "optimal"
        assert np.isfinite(found.bound)


@each_without_discounting
def test_the_states_where_one_could_stay_forever_are_named(planner):
    T, R = corridor(6)
    with pytest.raises(InputError, match=r"stay forever among the states 0, 1, 2, 3, 4, 5\. .*discount below 1"):
        plans(planner, both(T), R, 1.0)
    T[0, :] = T[5, :] = 0  # the ends end whatever is done, so only the middle is a trap
    with pytest.raises(InputError, match=r"among the states 1, 2, 3, 4\."):
        plans(planner, both(T), R, 1.0)


def test_a_state_from_which_ending_is_only_likely_is_not_a_trap_but_one_that_leads_to_a_trap_surely_is():
    T = np.zeros((4, 1, 4))
    T[0, 0, 0] = 0.999  # ends at last
    T[1, 0, 1] = 1  # a trap
    T[2, 0, [0, 1]] = 0.5  # may fall into the trap
    T[3, 0, 1] = 1  # surely falls into it
    with pytest.raises(InputError, match=r"among the states 1, 3\."):
        solve(T, np.zeros((4, 1)), 1.0)


def test_an_action_that_may_not_be_taken_is_no_trap():
    T, R = corridor(3)
    T[1, 0] = np.eye(3)[1]
    T[[0, 2]] = 0
    with pytest.raises(InputError, match=r"among the states 1\."):
        solve(T, R, 1.0)
    allowed = np.ones((3, 2), dtype=bool)
    allowed[1, 0] = False
    np.testing.assert_allclose(solve(T, R, 1.0, allowed=allowed).values, [-1, -2, -1])


def test_only_the_elements_without_discounting_need_to_end():
    T, R = corridor(4)
    found = solve(np.stack([T, 0.5 * T]), R, [0.9, 1.0])
    assert found.outcome == "optimal"
    np.testing.assert_allclose(found.values[1], solve(0.5 * T, R, 1.0).values)
    np.testing.assert_allclose(found.values[0], solve(T, R, 0.9).values)
    assert np.isfinite(found.bound).all()
    with pytest.raises(InputError, match="stay forever"):
        solve(np.stack([0.5 * T, T]), R, [0.9, 1.0])


def test_many_trapped_states_are_not_all_listed():
    with pytest.raises(InputError, match=r"states 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.\."):
        solve(np.eye(30)[:, None, :], np.zeros((30, 1)), 1.0)


@given(SEEDS)
def test_the_limit_of_discounting_less_and_less_is_not_discounting(seed):
    T, R = leaky(seed, 4, 2)
    np.testing.assert_allclose(solve(T, R, 1 - 1e-9).values, solve(T, R, 1.0).values, atol=1e-6)
