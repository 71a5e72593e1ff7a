"""Sweeps: one kernel from counts to losses, against the same steps one after the other, and against plain loops."""

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from certeq import MDP, Counts, InputError, Rows, evaluate, loss, plan, solve, sweep
from certeq.model.weights import dirichlet
from certeq.questions.sweep import even
from strategies import random_counts, random_model, random_rows

GRID = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
MAGNITUDES = np.array([0.0, 0.5, 3.0, np.inf])
compiled = pytest.mark.slow  # a kernel is compiled


def world(seed, S, A, sets=()):
    """A truth, or one for each data set, in which rewards tie now and then."""
    model = random_model(seed, S, A, batch=sets)
    return MDP(Rows(model.transition), np.round(2 * model.reward) / 2, 0.95)


def target(S, A):
    return random_rows(np.random.default_rng(S), (S, A, S))


def step_by_step(table, reward, discount, truth, start=None, **settings):
    """Plan by NumPy and value what is tied, each step for itself: policies, ties and losses."""
    gain = reward if reward.ndim == 2 else reward[..., None, :, :]
    found = plan(table.spread(), gain, discount, engine="numpy", **settings)
    rows, earned = truth.transition.dense(), truth.reward
    rows, earned = (rows[..., None, :, :, :], earned[..., None, :, :]) if truth.batch else (rows, earned)
    best = solve(rows, earned, truth.discount, engine="numpy").values
    lost = best - evaluate(Rows(rows), earned, truth.discount, even(found.tied))
    return found.policy, found.tied, lost.mean(axis=-1) if start is None else lost @ start


CASES = {
    "none": {},
    "discount": {"strength": GRID},
    "discount, planning discounts": {"planning_discount": np.array([0.0, 0.3, 0.9])},
    "uniform_prior": {"strength": GRID},
    "uniform_prior, magnitudes": {"magnitude": MAGNITUDES},
    "uniform_prior, one strength": {"strength": 0.3},
    "uniform_blend": {"strength": GRID},
    "epsilon_greedy": {"strength": GRID},
    "expert_prior": {"strength": GRID, "target": target},
    "least_mse": {},
    "evidence": {},
    "learned_target": {},
}


@compiled
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("each", [False, True], ids=["one truth", "a truth for each"])
@pytest.mark.parametrize(("S", "A", "sets"), [(1, 1, 3), (2, 3, 9), (5, 2, 17), (10, 2, 8), (9, 4, 5)])
def test_the_kernel_finds_what_the_steps_find_one_after_the_other(case, each, S, A, sets):
    settings = {name: made(S, A) if callable(made) else made for name, made in CASES[case].items()}
    settings["regularizer"] = case.split(",")[0]
    table, truth = random_counts(S, S, A, batch=(sets,)), world(S, S, A, (sets,) if each else ())
    found = sweep(table, truth.reward, 0.9, truth=truth, engine="numba", **settings)
    policy, tied, expected = step_by_step(table, truth.reward, 0.9, truth, **settings)
    assert found.ties.dtype != bool  # it was the kernel
    np.testing.assert_array_equal(found.policy, policy)
    np.testing.assert_array_equal(found.tied, tied)
    np.testing.assert_allclose(found.loss, expected, atol=1e-12)
    optimal = solve(truth.transition, truth.reward, truth.discount, engine="numpy").values
    np.testing.assert_allclose(found.optimal, np.broadcast_to(optimal, (sets, S)), atol=1e-12)


@compiled
def test_ties_occur_and_are_taken_equally_often():
    """Many pairs were never tried, so that under a strong prior their actions look the same."""
    table, truth = random_counts(3, 4, 3, batch=(40,)), world(3, 4, 3)
    found = sweep(table, truth.reward, 0.9, truth=truth, engine="numba", regularizer="uniform_prior", strength=GRID)
    assert (found.tied.sum(axis=-1) > 1).any()
    first = evaluate(truth.transition, truth.reward, 0.95, found.policy)
    lowest = (found.optimal[:, None] - first).mean(axis=-1)
    assert not np.allclose(lowest, found.loss)
    chances = found.tied / found.tied.sum(axis=-1, keepdims=True)
    again = (found.optimal[:, None] - evaluate(truth.transition, truth.reward, 0.95, chances)).mean(axis=-1)
    np.testing.assert_allclose(found.loss, again, atol=1e-12)


@compiled
@pytest.mark.parametrize("engine", ["numba", "numpy"])
def test_losses_are_those_of_plain_loops(engine):
    """Uniform priors: posterior means, the best of all policies in them, ties taken alike, and valued in the truth."""
    S, A, gamma = 3, 2, 0.9
    table, truth = random_counts(8, S, A, batch=(6,)), world(9, S, A)
    T, R = truth.transition.array, truth.reward
    found = sweep(table, R, gamma, truth=truth, engine=engine, regularizer="uniform_prior", strength=[0.2, 0.7])
    best = naive.exact_value_of_policy(T, R, 0.95, naive.best_policy_by_enumeration(T, R, 0.95))
    for d, counts in enumerate(table.transitions):
        for e, strength in enumerate((0.2, 0.7)):
            magnitude = strength / (1 - strength) * counts.sum() / (S * A)
            weight = [[naive.dirichlet_weight(c.sum(), np.full(S, magnitude / S)) for c in rows] for rows in counts]
            model = naive.mix(naive.mle(counts), np.array(weight), np.full(S, 1 / S)), R, gamma
            values = naive.exact_value_of_policy(*model, naive.best_policy_by_enumeration(*model))
            q = R + gamma * (model[0] @ values)
            chance = np.isclose(q, q.max(axis=1, keepdims=True), rtol=0, atol=1e-9)
            chance = chance / chance.sum(axis=1, keepdims=True)
            followed, earned = np.einsum("sa,san->sn", chance, T)[:, None], (chance * R).sum(axis=1, keepdims=True)
            worth = naive.exact_value_of_policy(followed, earned, 0.95, np.zeros(S, dtype=int))
            assert found.loss[d, e] == pytest.approx(np.mean(best - worth), abs=1e-9)


@compiled
def test_rewards_discounts_and_starts_go_where_they_belong():
    S, A, sets = 5, 3, 11
    table, truth = random_counts(4, S, A, batch=(sets,)), world(5, S, A)
    reward = np.random.default_rng(6).normal(size=(sets, S, A))  # plans are made with other rewards than the truth's
    start, discounts = np.array([0.5, 0.25, 0.25, 0, 0]), np.array([0.0, 0.5, 0.9, 0.97, 0.2])
    settings = {"regularizer": "uniform_prior", "strength": GRID}
    found = sweep(table, reward, discounts, truth=truth, start=start, engine="numba", **settings)
    policy, _, expected = step_by_step(table, reward, discounts, truth, start, **settings)
    np.testing.assert_array_equal(found.policy, policy)
    np.testing.assert_allclose(found.loss, expected, atol=1e-12)
    assert (np.ptp(found.loss, axis=1) > 0).any()


@compiled
def test_data_sets_may_have_several_axes_and_strengths_of_their_own():
    table, truth = random_counts(2, 4, 2, batch=(3, 5)), world(2, 4, 2, (3, 5))
    strength = np.random.default_rng(1).random((3, 5, 4))
    settings = {"regularizer": "uniform_prior", "strength": strength}
    found = sweep(table, truth.reward, 0.9, truth=truth, engine="numba", **settings)
    assert found.loss.shape == (3, 5, 4)
    np.testing.assert_allclose(found.loss, step_by_step(table, truth.reward, 0.9, truth, **settings)[2], atol=1e-12)


@compiled
def test_neither_threads_nor_neighbors_change_a_bit():
    table, truth = random_counts(7, 6, 2, batch=(200,)), world(7, 6, 2, (200,))
    how = {"engine": "numba", "regularizer": "uniform_prior", "strength": GRID}
    one, two = (sweep(table, truth.reward, 0.9, truth=truth, threads=n, **how) for n in (1, 2))
    np.testing.assert_array_equal(one.loss, two.loss)
    np.testing.assert_array_equal(one.ties, two.ties)
    for part in (slice(0, 1), slice(3, 14)):
        alone = MDP(Rows(truth.transition.array[part]), truth.reward[part], truth.discount)
        some = sweep(Counts(table.transitions[part]), alone.reward, 0.9, truth=alone, **how)
        np.testing.assert_array_equal(some.loss, one.loss[part])


def test_without_a_strength_there_is_one_column():
    table, truth = random_counts(1, 4, 2, batch=(3,)), world(1, 4, 2)
    assert sweep(table, truth.reward, 0.9, truth=truth, regularizer="least_mse").loss.shape == (3, 1)
    assert sweep(table.transitions[0], truth.reward, 0.9, truth=truth, regularizer="none").loss.shape == (1,)


@pytest.mark.parametrize("kind", ["endings", "sparse", "sparse truth", "many states", "numpy", "next to 1"])
def test_what_the_kernel_cannot_do_is_done_step_by_step(kind):
    S = 40 if kind == "many states" else 5
    table, truth = random_counts(3, S, 2, ended=kind == "endings"), world(4, S, 2)
    settings, discount = {"regularizer": "uniform_prior", "strength": GRID}, 1 - 1e-9 if kind == "next to 1" else 0.9
    given = table
    if kind == "sparse":
        given = Counts(sp.csr_array(table.transitions.reshape(-1, S)), n_actions=2)
    if kind == "sparse truth":
        truth = MDP(sp.csr_array(truth.transition.array.reshape(-1, S)), truth.reward, truth.discount)
    found = sweep(given, truth.reward, discount, truth=truth, engine="numpy" if kind == "numpy" else "auto", **settings)
    assert found.ties.dtype == bool
    dense = MDP(Rows(truth.transition.dense()), truth.reward, truth.discount)
    policy, tied, expected = step_by_step(table, truth.reward, discount, dense, **settings)
    np.testing.assert_array_equal(found.policy, policy)
    np.testing.assert_array_equal(found.tied, tied)
    np.testing.assert_allclose(found.loss, expected, atol=1e-9)


def test_a_loss_without_ties_is_that_of_the_policy():
    table, model = random_counts(5, 5, 2, batch=(4,)), random_model(6, 5, 2)
    truth = MDP(Rows(model.transition), model.reward, model.discount)
    found = sweep(table, model.reward, 0.9, truth=truth, regularizer="discount", strength=[0.1, 0.4])
    assert (found.tied.sum(axis=-1) == 1).all()
    np.testing.assert_allclose(found.loss, loss(*model, found.policy), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reward": np.zeros((4, 3))}, "4 states x 2 actions"),
        ({"truth": world(1, 5, 2)}, "the truth has 5 x 2"),
        ({"truth": world(1, 4, 2, (7,))}, "do not broadcast"),
        ({"truth": world(1, 4, 2, (2, 3))}, "one for each"),
        ({"start": np.eye(4)}, "all data sets alike"),
        ({"strength": [0.5, 1.5]}, "strength"),
        ({"reward": np.full((4, 2), 1e307)}, "beyond what numbers can hold"),
    ],
)
def test_what_does_not_fit_is_said(change, words):
    given = {"reward": np.zeros((4, 2)), "truth": world(1, 4, 2), "strength": 0.5} | change
    with pytest.raises(InputError, match=words):
        sweep(random_counts(1, 4, 2, batch=(3,)), given.pop("reward"), 0.9, regularizer="uniform_prior", **given)


@compiled
@pytest.mark.parametrize("case", ["discount", "uniform_prior", "uniform_prior, magnitudes", "uniform_blend"])
def test_a_plan_by_the_kernel_is_the_plan_in_the_model_written_out(case):
    settings = {"regularizer": case.split(",")[0], **CASES[case]}
    table, reward = random_counts(9, 6, 3, batch=(13,)).spread(), np.random.default_rng(0).normal(size=(13, 1, 6, 3))
    one, other = (plan(table, reward, 0.95, engine=engine, **settings) for engine in ("numba", "numpy"))
    np.testing.assert_array_equal(one.policy, other.policy)
    np.testing.assert_array_equal(one.tied, other.tied)
    np.testing.assert_array_equal(one.untried, other.untried)
    np.testing.assert_allclose(one.values, other.values, atol=1e-11)
    np.testing.assert_allclose(one.action_values, other.action_values, atol=1e-11)
    assert (one.bound < 1e-9).all()
    assert one.converged.all()
    np.testing.assert_array_equal(one.problem.model.dense(), other.problem.model.dense())


def test_weights_of_a_prior_are_written_out_when_somebody_looks():
    table = random_counts(2, 4, 2, batch=(3,))
    found = plan(table, np.zeros((4, 2)), 0.9, regularizer="uniform_prior", magnitude=2.0)
    np.testing.assert_array_equal(found.problem.model.weight, dirichlet(table.visits, 2.0))
