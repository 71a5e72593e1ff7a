"""What a plan says about its own error is true in exact fractions, in any world, without an allowance for rounding."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import certeq
from certeq import Counts, InputError, solve, solve_finite
from certeq.base import display, texts
from certeq.regularizers import DEFAULT
from certeq.report import html
from strategies import SEEDS
from trust import exact

each_way = pytest.mark.parametrize("way", exact.WAYS, ids="-".join)


@pytest.mark.slow
@each_way
def test_values_and_policy_are_as_good_as_the_plan_says(way):
    planned = Counter()

    @settings(max_examples=200)  # many of them are refused: seven of ten by inexact policy iteration
    @given(SEEDS, st.sampled_from(exact.SHAPES), st.sampled_from(exact.DISCOUNTS), st.sampled_from(exact.SCALES))
    def law(seed, shape, discount, scale):
        world = exact.world(np.random.default_rng(seed), shape, discount, scale)
        found = exact.examine(world, way, max_iterations=None if way[0] == "policy_iteration" else 200)
        planned[found is not None] += 1
        if found is None:  # refused with a word: too large for numbers, or for this method
            assert scale > 1e290 or 1 - discount <= 1e-8 or way[0] == "inexact_policy_iteration"
            return
        assert found.holds, found

    law()
    assert planned[True] > planned.total() / 5


@pytest.mark.slow
@each_way
def test_stopped_early_it_says_so_and_the_bound_still_holds(way):
    planned = Counter()

    @given(SEEDS, st.sampled_from(exact.DISCOUNTS), st.integers(1, 3))
    def law(seed, discount, limit):
        world = exact.world(np.random.default_rng(seed), "certain", discount, 1.0)
        found = exact.examine(world, way, max_iterations=limit)
        planned["not at all" if found is None else found.outcome == "optimal"] += 1
        if found is not None:
            planned["with a bound"] += 1
            assert found.holds, found
            if found.error > Fraction(1, 10**5) * found.largest:  # then it must not pass for optimal
                assert found.outcome != "optimal"

    law()
    assert planned[False] > 0, "nothing was stopped early"
    assert planned["with a bound"] > planned["not at all"]


@pytest.mark.parametrize("limit", range(1, 6))
def test_a_large_constant_that_was_taken_off_the_values_is_not_forgotten_by_the_bound(limit):
    """A correction that overshoots makes values of 6e10, whose rounding is seen in residuals of what is left: 1e6."""
    world = exact.world(np.random.default_rng(3415657104), "certain", 1 - 1e-6, 1.0)
    found = exact.examine(world, ("inexact_policy_iteration", "numba", "sparse"), max_iterations=limit)
    assert found.holds, found


def test_the_bound_of_any_values_of_a_policy_holds_in_exact_arithmetic():
    rng = np.random.default_rng(4)
    found = Counter()
    for shape in exact.SHAPES:
        for discount in exact.DISCOUNTS:
            found[exact.judge_values(exact.world(rng, shape, discount, 1.0), rng)] += 1
    assert set(found) == {"", None}
    assert found[""] > 5 * found[None]


@pytest.mark.parametrize("discount", [0.9, 1 - 1e-6, 1 - 2.1e-9, 1 - 1e-12, 1.0])
def test_rows_above_one_stand_for_rows_of_one_and_what_is_too_much_counts_in_the_bound_or_is_refused(discount):
    heavy = exact.World(np.full((1, 1, 1), 1 + 9.9e-10), np.ones((1, 1)), discount)
    if 1 - discount < 2e-9:
        said = "every policy must be sure to end" if discount == 1 else r"Divide each row by its sum; one sums to 1 \+"
        with pytest.raises(InputError, match=said):
            solve(heavy.transition, heavy.reward, discount)
    else:
        found = solve(heavy.transition, heavy.reward, discount)
        assert exact.apart(found.values, heavy.optimum) <= Fraction(float(found.bound))
        assert (found.outcome == "optimal") == (discount == 0.9)


@pytest.mark.parametrize("lacking", [2e-9, 1e-7, 9e-7])
def test_rows_that_lack_next_to_nothing_are_an_ending_only_where_that_is_said(lacking):
    """Rows in single precision sum to 1 - 6e-8; to plan as if episodes ended there would be silent nonsense."""
    rows, reward = np.full((2, 1, 2), (1 - lacking) / 2), np.ones((2, 1))
    for plain in (rows, rows.tolist(), sp.csr_array(rows.reshape(2, 2)), np.tile(rows, (40_000, 1, 1, 1))):
        with pytest.raises(InputError, match=r"state 0, action 0.* sums to 1 - .*certeq\.Rows\(transitions\)"):
            solve(plain, reward, 0.9)
    with pytest.raises(InputError, match="Divide each row by its sum if nothing ends"):
        certeq.MDP(rows, reward, 0.9)
    assert solve(certeq.Rows(rows), reward, 1.0).values[0] == pytest.approx(1 / lacking, rel=1e-3)


@pytest.mark.parametrize("S", [3, 60, 1100])
def test_without_discounting_episodes_are_only_as_long_as_numbers_can_tell(S):
    """From each state half of the ways lead back to the start: the longest way to the end takes 2^(S + 1) - 2 steps."""
    rows = np.zeros((S, 1, S))
    rows[:, 0, 0] += 0.5
    rows[np.arange(S - 1), 0, np.arange(1, S)] += 0.5
    if S == 3:
        found = solve(rows, np.ones((S, 1)), 1.0)
        assert abs(found.values[0] - 14) <= found.bound < 1e-10
    else:
        with pytest.raises(InputError, match=r"last (so|too) long"):
            solve(rows, np.ones((S, 1)), 1.0)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_next_to_a_discount_of_one_a_plan_says_what_rounding_hides(engine):
    """At 1 - 1e-12 a double keeps four digits of such values; a plan must not claim sixteen."""
    rng = np.random.default_rng(0)
    for discount, outcome in ((0.99, "optimal"), (1 - 1e-12, "optimal as far as rounding lets one see; see bound")):
        world = exact.world(rng, "random", discount, 1.0)
        found = solve(world.transition, world.reward, discount, method="policy_iteration", engine=engine)
        assert found.outcome == outcome
        assert found.converged
        relative = float(found.bound / np.abs(found.values).max())
        assert relative < 1e-11 if discount == 0.99 else 1e-5 < relative < 0.1


@pytest.mark.slow
def test_without_discounting_the_bound_holds_where_every_policy_ends():
    rng = np.random.default_rng(1)
    for _ in range(12):
        world = exact.world(rng, "random", 1.0, 1.0)
        ends = exact.World(world.transition * (1 - 2.0 ** -int(rng.integers(1, 30))), world.reward, 1.0)
        for way in exact.WAYS:
            found = exact.examine(ends, way, max_iterations=None if way[0] == "policy_iteration" else 200)
            assert found.holds, (way, found)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("scale", [1e306, 1.7e308])
def test_rewards_that_would_add_up_beyond_all_numbers_are_refused(engine, scale):
    rows = np.full((2, 2, 2), 0.5)
    with pytest.raises(InputError, match=r"beyond what numbers can hold\. Divide all rewards"):
        solve(rows, np.full((2, 2), scale), 0.99, engine=engine, method="policy_iteration")
    found = solve(rows, np.full((2, 2), 1e300), 0.99, engine=engine, method="policy_iteration")
    np.testing.assert_allclose(found.values, 1e302)


@pytest.mark.parametrize(("discount", "horizon"), [(1.0, 3), (1.0, 100_000), (0.9, 1)])
def test_a_finite_horizon_whose_sums_would_overflow_is_refused_and_one_below_that_is_finite(discount, horizon):
    rows, most = np.ones((1, 1, 1)), 1e305 / horizon
    assert np.isfinite(solve_finite(rows, [[0.05 * most]], discount, horizon).values).all()
    with pytest.raises(InputError, match=r"beyond what numbers can hold\. Divide all rewards"):
        solve_finite(rows, [[1.7e308]], discount, horizon)


@pytest.mark.parametrize("size", [1e-80, 1e-158, 1e-310])
def test_rewards_of_endings_that_are_next_to_nothing_beside_others_spoil_no_posterior(size):
    """Their variance is the smallest of numbers, or none, and what is divided by it would be beyond the largest."""
    rng, ends = np.random.default_rng(0), np.arange(60) % 5 == 4
    rows = {"episode": np.arange(60) // 5, "state": rng.choice(list("ABC"), 60), "action": rng.choice(list("xy"), 60)}
    earned = rng.integers(-3, 4, 60) * np.where(ends, size, 1.0)
    learned = certeq.learn(certeq.read(rows | {"reward": earned, "done": ends}), draws=5)
    assert np.isfinite(learned.policy.chances).all()


def test_no_number_that_is_none_leaves_by_any_door():
    for value in (np.nan, np.inf, -np.inf, np.float64("nan")):
        table, file = (lambda x: texts.csv_text(["value"], [[x]])), (lambda x: texts.json_text({"value": [x]}))
        for leave in (table, file, display.number, display.percent, html.sound):
            with pytest.raises(InputError, match="a result is infinite or not a number, so nothing was written"):
                leave(value)


@given(SEEDS, st.sampled_from(exact.SHAPES), st.sampled_from(exact.SCALES[1:-1]), st.integers(1, 6))
def test_a_finite_horizon_is_right_to_the_last_digits(seed, shape, scale, horizon):
    world = exact.world(np.random.default_rng(seed), shape, 1.0, scale)
    S, A = world.reward.shape
    T = [[[Fraction(float(p)) for p in row] for row in rows] for rows in world.transition]
    R = [[Fraction(float(r)) for r in line] for line in world.reward]
    values = [Fraction(0)] * S
    for _ in range(horizon):
        values = [max(R[s][a] + sum(T[s][a][n] * values[n] for n in range(S)) for a in range(A)) for s in range(S)]
    found = solve_finite(world.transition, world.reward, 1.0, horizon)
    largest = horizon * max(abs(r) for line in R for r in line)
    for v, exactly in zip(found.values[0], values, strict=True):
        assert abs(Fraction(float(v)) - exactly) <= largest * Fraction(1, 10**13)


@pytest.mark.parametrize("regularizer", ["none", "uniform_prior", "least_mse", DEFAULT])
def test_a_billion_visits_are_counted_and_planned_with(regularizer):
    """Counts of 10^9 next to counts of 1 and 0; with so much data every regularizer leaves the data alone."""
    settings = {"magnitude": 1.0} if regularizer == "uniform_prior" else {}
    counts = np.array([[[10**9, 0], [1, 0]], [[0, 3 * 10**9], [10**9, 10**9]]])
    found = certeq.plan(Counts(counts), np.array([[1.0, 0.0], [0.5, 0.0]]), 0.9, regularizer=regularizer, **settings)
    assert found.outcome == "optimal"
    assert found.policy[0] == 0
    assert found.values[0] == pytest.approx(10.0, rel=1e-6)
    assert Counts(counts).visits.sum() == 6 * 10**9 + 1
