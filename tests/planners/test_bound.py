"""What a plan says about its own error is true: against exact fractions, and when it had to stop early."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive
from certeq import solve
from certeq.worlds import random_chain
from planned import both, each_planner, each_without_discounting, plans
from strategies import SEEDS

DISCOUNTS = [Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)]


def rational_model(seed, ends):
    """Two states, two actions, with eighths for probabilities: floats hold them exactly."""
    rng = np.random.default_rng(seed)
    eighths = rng.integers(0, 9, size=(2, 2))
    mass = rng.integers(1, 9, size=(2, 2)) if ends else np.full((2, 2), 8)
    first = np.minimum(eighths, mass)
    whole = np.stack([first, mass - first], axis=-1)
    T = [[[Fraction(int(n), 8) for n in whole[s, a]] for a in range(2)] for s in range(2)]
    R = [[Fraction(int(n), 4) for n in line] for line in rng.integers(-8, 9, size=(2, 2))]
    return T, R


def exact_optimum(T, R, gamma):
    """V* in fractions: the best of all policies in each state."""
    values = [naive.exact_value_of_policy(T, R, gamma, policy) for policy in product(range(2), repeat=2)]
    return [max(V[s] for V in values) for s in range(2)]


def as_floats(nested):
    return np.array(nested, dtype=float)


def off_by(found, best):
    """How far the values of a plan are off, in fractions until the end."""
    return float(max(abs(Fraction(float(v)) - b) for v, b in zip(found.values, best, strict=True)))


@each_planner
@example(seed=27516141, ends=True, gamma=Fraction(0), limit=None)  # values of 0 beside large rewards
@given(SEEDS, st.booleans(), st.sampled_from(DISCOUNTS), st.sampled_from([1, 2, 5, None]))
def test_the_values_are_never_further_off_than_the_bound(planner, seed, ends, gamma, limit):
    T, R = rational_model(seed, ends)
    gamma = Fraction(float(gamma))  # as the float that is planned with
    best = exact_optimum(T, R, gamma)
    rounding = 1e-13 * (1 + float(max(map(abs, best)))) / (1 - float(gamma))
    for found in plans(planner, both(as_floats(T)), as_floats(R), float(gamma), limit=limit):
        error = off_by(found, best)
        assert error <= float(found.bound) + rounding
        if limit is None:
            assert found.outcome == "optimal"
            assert error <= 1e-9 * float(max(map(abs, best))) + rounding


@each_without_discounting
@given(SEEDS, st.sampled_from([1, 2, None]))
def test_without_discounting_the_bound_holds_too(planner, seed, limit):
    T, R = rational_model(seed, ends=True)
    T[0][0][0] = T[0][1][0] = Fraction(0)  # from state 0 one moves on or ends
    T[1][0] = T[1][1] = [Fraction(1, 4), Fraction(1, 2)]
    best = exact_optimum(T, R, 1)
    for found in plans(planner, both(as_floats(T)), as_floats(R), 1.0, limit=limit):
        assert np.isfinite(found.bound)
        assert off_by(found, best) <= float(found.bound) + 1e-12


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("discount", [0.9, 0.999, 1 - 1e-6])
@pytest.mark.parametrize("S", [12, 40])
def test_ties_never_make_policy_iteration_go_round_in_circles(engine, discount, S):
    """Worlds full of ties: certain moves and rewards of -1, 0 and 1, where rounding alone tells actions apart."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        moves, pay = rng.integers(S, size=(S, 4)), rng.integers(-1, 2, size=(S, 4))
        rows = np.eye(S)[moves] if seed % 2 else (np.eye(S)[moves] + np.eye(S)[moves[:, ::-1]]) / 2
        found = solve(rows, pay, discount, method="policy_iteration", engine=engine, max_iterations=100)
        assert found.outcome == "optimal"


@each_planner
def test_an_advantage_too_small_for_one_step_is_taken_where_it_adds_up_over_many(planner):
    """State 0 may go round for nothing (a gain now, as much lost in state 2) or stay and earn half a tie a step."""
    discount = 0.99
    worth = 1 / (1 - discount)  # of state 1: the spread of the action values
    gain = 0.5e-10 * worth
    T, R = np.zeros((3, 2, 3)), np.array([[1, gain], [1, 1], [-1 / discount, -1 / discount]])
    T[0, 0, 2] = T[0, 1, 0] = 1
    T[1, :, 1] = T[2, :, 0] = 1
    for found in plans(planner, both(T), R, discount):
        assert found.outcome == "optimal"
        assert found.values[0] == pytest.approx(gain * worth, abs=1e-9 * worth)


@pytest.mark.parametrize("method", ["value_iteration", "modified_policy_iteration"])
def test_sweeping_stops_within_the_tolerance_and_not_long_after(method):
    sweeps = []
    for tolerance in (1e-1, 1e-4, 1e-7, 1e-10):
        plans = []
        for seed in range(10):
            chain = random_chain(rng=seed)
            plans.append(solve(chain.transition, chain.reward, chain.discount, method=method, tolerance=tolerance))
            best = solve(chain.transition, chain.reward, chain.discount).values
            assert np.abs(plans[-1].values - best).max() <= tolerance * np.abs(best).max()
        sweeps.append(sum(int(found.iterations) for found in plans))
    assert sweeps == sorted(sweeps)
    assert sweeps[0] < sweeps[-1]


@pytest.mark.parametrize("method", ["value_iteration", "modified_policy_iteration"])
def test_sweeping_ends_when_nothing_but_rounding_is_left_to_gain(method):
    """No tolerance should make a world of four states take a million sweeps."""
    ring, reward = np.roll(np.eye(4), 1, axis=1)[:, None, :], np.array([[1.0], [0.0], [-1.0], [0.0]])
    found = solve(ring, reward, 0.99, method=method, tolerance=1e-15, max_iterations=20_000)
    np.testing.assert_allclose(found.values, solve(ring, reward, 0.99).values, atol=1e-12)
    assert found.iterations < 10_000
