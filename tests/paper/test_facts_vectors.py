"""Numbers that come from the paper, its authors' notebooks or independent computation, through the public calls."""

import numpy as np
import pytest

import naive
from certeq import shrink, solve, weights
from certeq.model.moments import Moments
from certeq.worlds import loop, river_swim

VECTORS = naive.VECTORS


@pytest.mark.parametrize("discount", VECTORS["river_swim"]["optimal_value"])
def test_river_swims_optimal_values(discount):
    river = river_swim(discount=discount)
    found = solve(river.transition, river.reward, river.discount)
    np.testing.assert_allclose(found.values, VECTORS["river_swim"]["optimal_value"][discount], atol=6e-4)


def test_river_swims_optimal_policy_and_mean_value():
    river = river_swim()
    found = solve(river.transition, river.reward, river.discount)
    assert found.policy.tolist() == VECTORS["river_swim"]["optimal_policy"][0.99]
    assert found.values.mean() == pytest.approx(VECTORS["river_swim"]["optimal_value_mean"][0.99], abs=6e-4)


def test_the_worlds_are_those_of_the_twins():
    for world, (T, R) in ((river_swim(), naive.river_swim()), (loop(), naive.loop()), (loop(slip=0), naive.loop(1))):
        np.testing.assert_allclose(world.transition.array, T, atol=1e-15)
        np.testing.assert_array_equal(world.reward, R)


def test_loops_optimal_values_and_where_only_b_is_best():
    facts, world = VECTORS["loop"], loop()
    found = solve(world.transition, world.reward, facts["gamma"])
    np.testing.assert_allclose(found.values, facts["optimal_value"], atol=6e-4)
    assert found.values.mean() == pytest.approx(facts["optimal_value_mean"], abs=6e-4)
    only_b = [s for s in range(9) if found.tied[s].tolist() == [False, True]]
    assert only_b == facts["takes_b_in"]
    assert found.ties() == [(1,), (2,), (3,), (4,), (8,)]


def test_loops_start_without_slips():
    world = loop(slip=0)
    start = solve(world.transition, world.reward, world.discount).values[0]
    assert start == pytest.approx(VECTORS["loop"]["deterministic_value_of_start"], abs=5e-5)


def test_the_recorded_row_error():
    facts = VECTORS["row_mse"]
    N, square, weight = facts["outcomes"], facts["sum_of_squares"], facts["weight"]
    known = Moments(np.array(7.0), np.array(square), np.array(1 / N), np.array(1 / N))
    assert weights.mse(known, weight) == pytest.approx(facts["corrected"], abs=6e-5)
    plain = weights.variance(known, weight) + weight * known.distance
    assert plain == pytest.approx(facts["as_printed"], abs=6e-4)
    assert abs(facts["simulated"] - weights.mse(known, weight)) < 5e-4 < abs(facts["simulated"] - plain)


def test_the_recorded_posterior_weight():
    facts = VECTORS["posterior_epsilon_star"]
    table = np.zeros((10, 1, 10), dtype=int)
    table[3, 0] = facts["counts"]
    star = shrink(table, "least_mse", plug_in="posterior", pseudo_count=facts["pseudo_count"]).weight[3, 0]
    assert star == pytest.approx(facts["closed_form"], abs=5e-6)
    assert star == pytest.approx(facts["monte_carlo"], abs=2e-4)
