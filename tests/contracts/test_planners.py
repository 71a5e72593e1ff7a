"""The laws that every planner of the catalogue obeys. A new one needs a line in PLANNERS and then gets them all."""

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import naive
from certeq import Mixture, Rows, solve
from certeq.worlds import river_swim
from planned import both, each_of_batches, each_planner, plans, sparse_rows
from strategies import SEEDS, SHAPES, random_model, random_rows

few = hypothesis_settings(max_examples=30)  # for each of the planners
DISCOUNTS = st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0])
AXES = st.sampled_from([(1, 1), (3, 1), (1, 2), (3, 2)])
RING = np.stack([np.roll(np.eye(6), 1, axis=1), np.roll(np.eye(6), -1, axis=1), np.eye(6)], axis=1)  # round, or stay
TWO = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # stay, or change places


def world(seed, S, A, discount):
    """A random model with endings; without discounting, every step may end."""
    T, R, _ = random_model(seed, S, A, ends=True)
    return T if discount < 1 else 0.9 * T, R


def mask(rng, shape):
    """Some actions, at least one in each state."""
    allowed = rng.random(shape) < 0.7
    allowed[..., -1] |= ~allowed.any(axis=-1)
    return allowed


def keeps_its_promises(found, T, R, discount):
    """Compare a plan with the best of all policies, found by trying every one."""
    best = naive.exact_value_of_policy(T, R, discount, naive.best_policy_by_enumeration(T, R, discount))
    scale = max(np.abs(best).max(), np.abs(R).max())
    assert found.outcome == "optimal"
    assert found.bound <= 1.1e-9 * scale
    assert np.abs(found.values - best).max() <= found.bound + 1e-12 * scale
    lost = best - naive.exact_value_of_policy(T, R, discount, found.policy)
    assert lost.max() <= found.loss_bound + 1e-12 * scale
    assert found.loss_bound <= 1e-6 * scale


@each_planner
@few
@given(SEEDS, st.integers(1, 3), st.integers(1, 3), DISCOUNTS)
def test_no_policy_is_better_than_its_plan_and_its_bounds_are_true(planner, seed, S, A, discount):
    T, R = world(seed, S, A, discount)
    for found in plans(planner, both(T), R, discount):
        keeps_its_promises(found, T, R, discount)
        assert found.method == planner.method


@each_planner
@few
@given(SEEDS, DISCOUNTS)
def test_a_masked_action_is_as_if_it_did_not_exist(planner, seed, discount):
    T, R = world(seed, 3, 3, discount)
    allowed = mask(np.random.default_rng(seed), R.shape)
    lines, stand_in = np.arange(3)[:, None], np.where(allowed, np.arange(3), allowed.argmax(axis=1)[:, None])
    R[~allowed] = 10  # however good it is
    for found in plans(planner, both(T), R, discount, allowed=allowed):
        assert allowed[np.arange(3), found.policy].all()
        keeps_its_promises(found, T[lines, stand_in], R[lines, stand_in], discount)


@each_planner
@few
@given(SEEDS, AXES, AXES, DISCOUNTS)
def test_a_mixture_is_planned_in_as_if_it_were_written_out(planner, seed, of_target, of_weight, discount):
    rng = np.random.default_rng(seed)
    T, R = world(seed, 3, 2, discount)
    target, weight = (1.0 if discount < 1 else 0.9) * random_rows(rng, (*of_target, 3)), rng.random(of_weight)
    weight[rng.random(of_weight) < 0.2] = seed % 2
    kinds = (Rows(T), Rows(target)), (sparse_rows(T), Rows(target)), (sparse_rows(T), sparse_rows(target))
    for found in plans(planner, [Mixture(data, weight, pull) for data, pull in kinds], R, discount):
        keeps_its_promises(found, naive.mix(T, weight, target), R, discount)


@each_planner
@few
@given(SEEDS, AXES, AXES)
def test_what_states_or_actions_share_need_not_be_written_out(planner, seed, of_rows, of_reward):
    rng = np.random.default_rng(seed)
    rows, R = random_rows(rng, (*of_rows, 3)), rng.random(of_reward)
    for found in plans(planner, [Rows(rows), sparse_rows(rows)], R, 0.9):
        keeps_its_promises(found, np.broadcast_to(rows, (3, 2, 3)), np.broadcast_to(R, (3, 2)), 0.9)


@each_of_batches
@few
@given(SEEDS, SHAPES, SHAPES, SHAPES, SHAPES)
def test_a_batch_is_a_loop(planner, seed, t, r, g, m):
    rng, batch = np.random.default_rng(seed), np.broadcast_shapes(t, r, g, m)
    T, R = random_rows(rng, (*t, 3, 2, 3), ends=True), rng.uniform(-1, 1, (*r, 3, 2))
    gamma, allowed = rng.choice([0.0, 0.5, 0.9], size=g), mask(rng, (*m, 3, 2))
    [found] = plans(planner, [T], R, gamma, allowed=allowed)
    assert found.policy.shape == found.values.shape == (*batch, 3)
    assert found.bound.shape == found.iterations.shape == found.residual.shape == found.converged.shape == batch
    parts = ((T, (3, 2, 3)), (R, (3, 2)), (gamma, ()), (allowed, (3, 2)))
    T, R, gamma, allowed = (np.broadcast_to(part, (*batch, *own)) for part, own in parts)
    for index in np.ndindex(batch):
        [alone] = plans(planner, [T[index]], R[index], gamma[index], allowed=allowed[index])
        np.testing.assert_allclose(found.values[index], alone.values, atol=1e-8)
        np.testing.assert_array_equal(found.policy[index], alone.policy)


@each_planner
def test_without_a_future_the_best_reward_is_taken(planner):
    T, R = world(1, 5, 3, 0.0)
    for found in plans(planner, both(T), R, 0.0):
        np.testing.assert_array_equal(found.policy, R.argmax(axis=-1))
        np.testing.assert_array_equal(found.values, R.max(axis=-1))


@each_planner
def test_the_lowest_of_tied_actions_is_taken_and_all_are_listed(planner):
    reward = np.zeros((6, 3))
    reward[0] = 1
    for found in plans(planner, both(RING), reward, 0.9):
        assert found.policy.tolist() == [2, 1, 1, 0, 0, 0]  # opposite the reward, both ways round are as good
        assert found.ties() == [(3,)]
        assert found.tied[3].tolist() == [True, True, False]


@each_planner
def test_a_tie_between_different_ways_to_the_same_value_is_seen(planner):
    """Ten at once, or one a step for ever at discount 0.9: no symmetry makes these equal, only the arithmetic."""
    T = np.zeros((3, 2, 3))
    T[0, 0, 1] = T[0, 1, 2] = 1
    T[1, :, 1] = 1
    for found in plans(planner, both(T), [[0, 0], [1, 1], [10, 10]], 0.9):
        assert found.ties() == [(0,), (1,), (2,)]
        assert found.policy.tolist() == [0, 0, 0]


@each_planner
def test_where_nothing_is_ever_earned_every_action_is_tied(planner):
    for found in plans(planner, both(TWO), np.zeros((2, 2)), 0.9):
        assert found.tied.all()
        assert found.policy.tolist() == [0, 0]


@each_of_batches
def test_ties_of_a_batch_name_the_element(planner):
    [found] = plans(planner, [TWO], np.array([[[0, 0.5], [1, 0]], [[1, 1], [1, 1]]]), 0.5)
    assert found.ties() == [(1, 0), (1, 1)]


@each_planner
def test_a_plan_that_stopped_early_says_so_and_by_how_much_it_may_be_off(planner):
    river = river_swim(n_states=20)
    best = solve(river.transition, river.reward, river.discount, engine="numpy")
    for hurried in plans(planner, both(river.transition.array), river.reward, river.discount, limit=1):
        error = np.abs(hurried.values - best.values).max()
        assert error > 0.01
        assert hurried.bound >= error
        assert hurried.outcome.startswith("stopped early: 1 of 1 plans reached the iteration limit")
        assert not hurried.converged
        assert hurried.iterations == 1


@each_planner
def test_a_finished_plan_needed_no_more_iterations_than_it_says(planner):
    """Given just as many iterations as it took, it finishes again; given one fewer, it does not."""
    river = river_swim(n_states=12)
    problem = (both(river.transition.array), river.reward, river.discount)
    for i, found in enumerate(plans(planner, *problem)):
        took = int(found.iterations)
        assert took > 1
        assert plans(planner, *problem, limit=took)[i].converged
        assert not plans(planner, *problem, limit=took - 1)[i].converged


@each_of_batches
def test_each_plan_of_a_batch_stops_on_its_own(planner):
    easy, hard = np.full((20, 2, 20), 1 / 20), river_swim(n_states=20).transition.array
    reward = river_swim(n_states=20).reward
    [alone] = plans(planner, [easy], reward, 0.99)
    [found] = plans(planner, [np.stack([easy, hard])], reward, 0.99, limit=int(alone.iterations))
    assert found.converged.tolist() == [True, False]
    assert found.outcome.startswith("stopped early: 1 of 2")
    np.testing.assert_allclose(found.values[0], alone.values, atol=1e-12)


@each_planner
def test_the_arguments_are_left_as_they_were(planner):
    T, R, _ = random_model(3, 4, 2)
    before = T.copy(), R.copy()
    T.flags.writeable = R.flags.writeable = False
    plans(planner, both(T), R, 0.9)
    np.testing.assert_array_equal(T, before[0])
    np.testing.assert_array_equal(R, before[1])
