"""Which planner is taken: the one asked for, or the first that is able and pays; and what is said if there is none."""

import numpy as np
import pytest
import scipy.sparse as sp

from certeq import InputError, SparseRows, solve
from certeq.planners import METHODS, PLANNERS, compiled, sparse
from certeq.planners.catalogue import asked_for, choose
from certeq.planners.policy_iteration import policy_iteration
from certeq.planners.problem import read_problem
from certeq.planners.value_iteration import modified_policy_iteration, value_iteration
from planned import sparse_rows
from strategies import random_model

SMALL = np.full((2, 1, 2), 0.5)
LEAKY = np.array([[[0.0, 1.0]], [[0.0, 0.5]]])  # not every step may end


def many(S, copies):
    """A batch without a copy in memory."""
    return np.broadcast_to(np.full((S, 1, S), 1 / S), (copies, S, 1, S))


def chain(S):
    """Ten next states for each state."""
    after = (np.arange(S)[:, None] + np.arange(10)) % S
    return SparseRows(sp.csr_array((np.full(10 * S, 0.1), after.ravel(), np.arange(0, 10 * S + 1, 10))), S, 1)


def taken(model, discount=0.9, method="auto", engine="auto", device="cpu", scale=1.0):
    """The function that plans."""
    reward = np.full((model.shape[-1], 1), scale)
    return choose(asked_for(method, engine, device), read_problem(model, reward, discount, None)[0]).run


@pytest.mark.parametrize(
    ("model", "how", "expected"),
    [
        (SMALL, {}, policy_iteration),
        (many(10, 3_000), {}, policy_iteration),
        (many(10, 3_001), {}, compiled.plan_side_by_side),
        (many(32, 300), {}, compiled.plan_side_by_side),
        (many(33, 300), {}, compiled.plan_one_by_one),
        (many(10, 3_001), {"engine": "numpy"}, policy_iteration),
        (many(10, 3_001), {"method": "policy_iteration"}, compiled.plan_side_by_side),
        (many(10, 3_001), {"method": "value_iteration"}, value_iteration),
        (SMALL, {"engine": "numba"}, compiled.plan_side_by_side),
        (many(33, 1), {"engine": "numba"}, compiled.plan_one_by_one),
        (sparse_rows(SMALL), {}, modified_policy_iteration),
        (sparse_rows(SMALL), {"engine": "numba"}, sparse.plan),
        (sparse_rows(SMALL), {"method": "policy_iteration"}, policy_iteration),
        (sparse_rows(SMALL), {"method": "inexact_policy_iteration"}, sparse.plan),
        (chain(9_999), {}, modified_policy_iteration),
        (chain(10_000), {}, sparse.plan),
        (chain(10_000), {"engine": "numpy"}, modified_policy_iteration),
        (chain(10_000), {"method": "value_iteration"}, value_iteration),
        (chain(10_000), {"discount": 1.0}, modified_policy_iteration),
        (chain(10_000), {"scale": 1e30}, modified_policy_iteration),
    ],
)
def test_it_is_the_one_asked_for_or_the_first_that_is_able_and_pays(model, how, expected):
    assert taken(model, **how) is expected


def test_every_method_is_found_by_its_name():
    assert set(METHODS) == {planner.method for planner in PLANNERS}
    assert [each for each in PLANNERS if each.method == "policy_iteration"] == list(METHODS["policy_iteration"])


@pytest.mark.parametrize(
    "how",
    [
        {"method": "value_iteration", "engine": "numba"},
        {"method": "inexact_policy_iteration", "engine": "numpy"},
        {"method": "value_iteration", "device": "gpu"},
        {"engine": "numba", "device": "gpu"},
    ],
)
def test_what_nobody_does_is_refused_with_a_list_of_who_there_is(how):
    with pytest.raises(InputError) as refused:
        solve(*random_model(0, 3, 2), **how)
    for name, value in how.items():
        assert f"{name}={value!r}" in str(refused.value)
    for planner in PLANNERS:
        assert planner.name in str(refused.value)


@pytest.mark.parametrize(
    ("model", "discount", "how", "says"),
    [
        (SMALL, 0.9, {"method": "inexact_policy_iteration"}, "data are sparse.* dense model of 2 states and 1 action"),
        (sparse_rows(LEAKY), 1.0, {"engine": "numba"}, "every row may end the episode.* sparse model of 2 states"),
        (sparse_rows(SMALL), 0.9, {"method": "policy_iteration", "engine": "numba"}, "plans in dense models"),
    ],
)
def test_who_cannot_says_what_it_can_and_who_else_does(model, discount, how, says):
    with pytest.raises(InputError, match=says) as refused:
        solve(model, [[0.0], [1.0]], discount, **how)
    problem, _ = read_problem(model, [[0.0], [1.0]], discount, None)
    _, instead = str(refused.value).split("these plan in it: ")
    names, _ = instead.split(". Leave method,")
    assert set(names.split(", ")) == {each.name for each in PLANNERS if each.device == "cpu" and each.able(problem)}
