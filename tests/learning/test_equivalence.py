"""From counts to a plan: every step is the one named, and the parts can be inspected."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import Counts, InputError, plan, shrink, solve
from certeq.learning.equivalence import estimate
from certeq.model.unvisited import CONVENTIONS
from certeq.regularizers import DEFAULT
from strategies import SEEDS, as_sparse, counts, random_counts

LEARNED = {"uniform_prior": {"strength": 0.4}, "least_mse": {}}
CONSTANT = {"discount": {"strength": 0.4}, "uniform_blend": {"strength": 0.4}}


def rewards_for(table, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=table.visits.shape[-2:])


@given(counts(ended=st.just(False)), SEEDS)
def test_without_regularization_it_plans_in_the_frequencies(table, seed):
    R = rewards_for(table, seed)
    found = plan(table, R, 0.9, regularizer="none")
    expected = solve(naive.mle(table.transitions), R, 0.9)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
    np.testing.assert_array_equal(found.policy, expected.policy)


@pytest.mark.parametrize("regularizer", [*LEARNED, *CONSTANT])
@pytest.mark.parametrize("unvisited", CONVENTIONS)
@given(table=counts(), min_visits=st.integers(1, 3))
def test_a_convention_replaces_a_learned_weight_and_lies_beneath_a_constant_one(
    regularizer, unvisited, table, min_visits
):
    settings = (LEARNED | CONSTANT)[regularizer]
    model = estimate(table, 0.9, regularizer=regularizer, unvisited=unvisited, min_visits=min_visits, **settings)
    rows = np.broadcast_to(model.transition.dense(), table.transitions.shape)
    data = np.broadcast_to(model.data.dense(), rows.shape)
    target = np.broadcast_to(model.shrinkage.target.dense(), rows.shape)
    weight = shrink(table, regularizer, **settings).weight[..., None]
    thin = table.visits < min_visits
    if regularizer in LEARNED:
        weight = np.where(thin[..., None], 1.0 if unvisited == "target" else 0.0, weight)
    np.testing.assert_allclose(rows, (1 - weight) * data + weight * target, atol=1e-14)
    np.testing.assert_array_equal(model.shrinkage.weight[..., None], weight)


@given(counts(), SEEDS)
def test_excluded_actions_are_never_advised_and_a_state_without_any_gets_no_advice(table, seed):
    R = rewards_for(table, seed)
    found = plan(table, R, 0.9, regularizer="uniform_prior", strength=0.3, unvisited="exclude")
    advised = found.policy >= 0
    np.testing.assert_array_equal(advised, (table.visits > 0).any(axis=-1))
    states = np.flatnonzero(advised)
    assert (table.visits[states, found.policy[states]] > 0).all()


def test_a_state_without_advice_counts_as_a_random_action_and_then_anywhere():
    table, R = np.array([[[3, 1], [0, 4]], [[0, 0], [0, 0]]]), np.array([[0.0, 1.0], [2.0, 4.0]])
    found = plan(table, R, 0.5, regularizer="none", unvisited="exclude")
    assert found.policy.tolist() == [1, -1]
    written = solve([[[0.75, 0.25], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]], [[0, 1], [3, 3]], 0.5)
    np.testing.assert_allclose(found.values, written.values)


def test_the_thresholds_of_min_visits_apply_to_advice():
    table = np.array([[[3, 0], [0, 1]], [[1, 1], [1, 1]]])
    R = np.array([[0.0, 9.0], [0.0, 1.0]])
    assert plan(table, R, 0.5, regularizer="none", unvisited="exclude").policy.tolist() == [1, 1]
    assert plan(table, R, 0.5, regularizer="none", unvisited="exclude", min_visits=2).policy.tolist() == [0, 1]
    assert plan(table, R, 0.5, regularizer="none", unvisited="exclude", min_visits=9).policy.tolist() == [-1, -1]


def test_the_default_lets_the_data_choose_target_and_strength():
    table = random_counts(2, 4, 3)
    R = rewards_for(table)
    assert DEFAULT == "learned_target"
    np.testing.assert_array_equal(plan(table, R, 0.9).values, plan(table, R, 0.9, regularizer=DEFAULT).values)


@pytest.mark.parametrize("form", ["list", "array", "Counts", "floats", "sparse", "sparse Counts"])
def test_counts_may_come_in_any_form(form):
    table = replace(random_counts(3, 4, 2), positions=None)  # which an array cannot have
    flat = table.transitions.reshape(8, 4)
    forms = {
        "list": table.transitions.tolist(),
        "array": table.transitions,
        "Counts": table,
        "floats": table.transitions.astype(float),
        "sparse": sp.csr_array(flat),
        "sparse Counts": as_sparse(table),
    }
    R = rewards_for(table)
    expected = plan(Counts(table.transitions), R, 0.9)
    np.testing.assert_allclose(plan(forms[form], R, 0.9).values, expected.values, atol=2e-9)


def test_rewards_and_discounts_broadcast_with_data_sets_and_strengths():
    table = random_counts(4, 3, 2, batch=(4, 1, 1))
    R = np.random.default_rng(5).random((2, 1, 3, 2))
    found = plan(table, R, np.array([0.5, 0.8, 0.9]), regularizer="uniform_prior", strength=[0.1, 0.5, 0.9])
    assert found.policy.shape == (4, 2, 3, 3)
    for d, r, e in np.ndindex(4, 2, 3):
        alone = plan(
            table.transitions[d, 0, 0],
            R[r, 0],
            [0.5, 0.8, 0.9][e],
            regularizer="uniform_prior",
            strength=[0.1, 0.5, 0.9][e],
        )
        np.testing.assert_allclose(found.values[d, r, e], alone.values, atol=1e-12)


@pytest.mark.parametrize("method", ["policy_iteration", "value_iteration", "modified_policy_iteration"])
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_the_way_to_plan_is_passed_on(method, engine):
    table = random_counts(6, 4, 2)
    found = plan(table, rewards_for(table), 0.9, method=method, engine=engine, tolerance=1e-6)
    assert found.method == method
    np.testing.assert_allclose(found.values, plan(table, rewards_for(table), 0.9).values, atol=2e-5)
    hurried = plan(table, rewards_for(table), 0.99, method="value_iteration", max_iterations=2)
    assert hurried.outcome.startswith("stopped early")


def test_without_discounting_data_that_end_can_be_planned_with():
    table = Counts([[[0, 3]], [[0, 0]]], [[1], [4]])
    found = plan(table, [[1.0], [1.0]], 1.0, regularizer="none")
    np.testing.assert_allclose(found.values, [1 + 3 / 4, 1])
    blend = plan(table, [[1.0], [1.0]], 1.0, regularizer="uniform_prior", strength=0.5)
    assert np.isfinite(blend.values).all()


def test_no_data_at_all_leave_only_the_target():
    nothing = np.zeros((3, 2, 3), dtype=int)
    R = rewards_for(Counts(nothing))
    for name, settings in LEARNED.items():
        found = plan(nothing, R, 0.9, regularizer=name, **settings)
        np.testing.assert_allclose(found.values, solve(np.full((3, 2, 3), 1 / 3), R, 0.9).values, atol=1e-12)
        assert found.policy.tolist() == R.argmax(axis=1).tolist()


BAD = {
    "counts": ({"counts": [[[1, -1]], [[1, 1]]]}, "state 0, action 0, next state 1 has -1"),
    "reward shape": ({"reward": [0, 1]}, r"Rewards need the shape \(..., 2, 1\), as the counts; got \(2,\)"),
    "NaN reward": ({"reward": [[0], [np.nan]]}, r"reward\[1, 0\] is nan"),
    "discount": ({"discount": 1.2}, "discount must lie between 0 and 1"),
    "regularizer": ({"regularizer": "least_mze"}, "Did you mean 'least_mse'"),
    "setting": ({"structure": ["all"]}, r"'learned_target' has no setting 'structure'\. Did you mean 'structures'"),
    "convention": ({"unvisited": "zeros"}, "Did you mean 'zero'"),
    "min_visits": ({"min_visits": 0}, "min_visits must be"),
    "method": ({"method": "value"}, "Did you mean 'value_iteration'"),
    "engine": ({"engine": "numby"}, "Did you mean 'numpy'"),
    "strengths that do not fit the data sets": (
        {"counts": np.ones((2, 2, 1, 2), dtype=int), "regularizer": "uniform_blend", "strength": [0.1, 0.2, 0.3]},
        r"\(3,\).*\(2,\)|\(2,\).*\(3,\)",
    ),
    "magnitudes that do not fit the data sets": (
        {"counts": np.ones((2, 2, 1, 2), dtype=int), "regularizer": "uniform_prior", "magnitude": [1, 2, 3]},
        r"\(3,\).*\(2,\)|\(2,\).*\(3,\)",
    ),
    "rewards that do not fit the data sets": (
        {"counts": np.ones((2, 2, 1, 2), dtype=int), "reward": np.ones((3, 2, 1))},
        "leading axes do not broadcast",
    ),
    "endless": ({"discount": 1.0}, "stay forever among the states 0, 1"),
}


@pytest.mark.parametrize(("wrong", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_named(wrong, says):
    right = {"counts": [[[1, 1]], [[1, 1]]], "reward": [[0], [1]], "discount": 0.9}
    with pytest.raises(InputError, match=says):
        plan(**(right | wrong))
