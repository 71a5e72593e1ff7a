"""A case is how advice was made: made again from the same data it is the same advice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logbook import logged

from certeq import Batch, Counts, InputError, learn, tally
from certeq.learning.case import case_of, case_of_counts
from strategies import SEEDS, as_sparse

WAYS = (
    {},
    {"regularizer": "none"},
    {"regularizer": "discount", "planning_discount": 0.5},
    {"regularizer": "uniform_prior", "magnitude": np.inf},
    {"regularizer": "expert_prior", "strength": 0.3, "target": np.full((1, 1, 3), 1 / 3)},
    {"regularizer": "epsilon_greedy", "strength": 0.4},
    {"regularizer": "least_mse_epsilon_greedy"},
    {"regularizer": "evidence", "structures": ("pair",), "groups": {"mine": [[0, 1], [0, 1], [1, 1]]}},
    {"regularizer": "value_aware"},
    {"unvisited": "zero", "min_visits": 4},
    {"unvisited": "average", "regularizer": "epsilon_greedy", "strength": 0.4},
    {"horizon": 3},
    {"reward_pool": "state"},
    {"reward_pool": "overall", "discount": 0.0},
    {"reward_by": "next_state"},
    {"reward_by": "next_state", "regularizer": "discount", "strength": 0.2},
    {"reward": [[1, 0], [0, 2], [0, 0]], "regularizer": "epsilon_greedy", "strength": 0.4},
)


@pytest.mark.parametrize("way", WAYS, ids=str)
@given(SEEDS)
def test_the_case_of_a_learned_policy_advises_what_was_learned(way, seed):
    learned = learn(logged(seed), **way)
    advice = case_of(learned).advise()
    np.testing.assert_array_equal(advice.policy, np.atleast_2d(learned.policy.actions)[0])
    np.testing.assert_allclose(advice.values, np.atleast_2d(learned.plan.values)[0], rtol=1e-9, atol=1e-9)
    expected = learned.policy.action_values.reshape(-1, 3, 2)[0]
    np.testing.assert_allclose(advice.action_values, expected, rtol=1e-9, atol=1e-9)


@given(SEEDS, st.sampled_from(WAYS))
def test_several_data_sets_are_advised_on_as_each_by_itself(seed, way):
    batches = [logged(seed + i, ends=False) for i in range(3)]
    cases = [case_of(learn(batch, **way)) for batch in batches]
    together = replace(
        cases[0],
        counts=Counts(np.stack([case.counts.transitions for case in cases])),
        reward=cases[0].reward if "reward" in way else _stacked([case.reward for case in cases]),
    ).advise()
    for i, case in enumerate(cases):
        one = replace(case, reward=together_size(case.reward, cases[0].reward)).advise()
        np.testing.assert_array_equal(together.policy[i], one.policy)
        np.testing.assert_allclose(together.values[i], one.values, rtol=1e-9, atol=1e-9)


def together_size(sums, first):
    """Sums in the units of others."""
    if isinstance(sums, np.ndarray):
        return sums
    scale = sums.size / first.size
    return replace(
        sums, size=first.size, total=sums.total * scale, arrived=sums.arrived * scale, scatter=sums.scatter * scale**2
    )


def _stacked(sums):
    equal = [together_size(one, sums[0]) for one in sums]
    parts = ("visits", "total", "scatter", "arrivals", "arrived")
    return replace(sums[0], **{name: np.stack([getattr(one, name) for one in equal]) for name in parts})


def test_sparse_counts_are_advised_on_as_dense_ones():
    case = case_of(learn(logged(3)))
    sparse = replace(case, counts=as_sparse(case.counts)).advise()
    np.testing.assert_array_equal(sparse.policy, case.advise().policy)


def test_counts_need_rewards_of_their_shape():
    counts = np.ones((2, 2, 2), dtype=int)
    with pytest.raises(InputError, match="give reward="):
        case_of_counts(counts, None, 0.9)
    with pytest.raises(InputError, match=r"shape \(2, 2\)"):
        case_of_counts(counts, [1, 2], 0.9)
    with pytest.raises(InputError, match="one data set"):
        case_of_counts(counts[None], np.ones((2, 2)), 0.9)


def test_what_is_no_learned_policy_is_refused():
    batch = logged(0)
    for other in (batch, tally(batch), None):
        with pytest.raises(InputError, match=r"what certeq\.learn returned"):
            case_of(other)


def test_names_come_along():
    plain = logged(0)
    named = Batch(
        plain.state, plain.action, plain.next_state, 3, 2,
        reward=plain.reward, state_names=("a", "b", "c"), action_names=("x", "y"),
    )  # fmt: skip
    assert case_of(learn(named)).state_names == ("a", "b", "c")
    assert case_of_counts(tally(plain), np.zeros((3, 2)), 0.9).action_names == ("0", "1")
