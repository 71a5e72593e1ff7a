"""A case is how advice was made: made again from the same data it is the same advice."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certeq import Batch, Counts, InputError, plan, tally
from certeq.data.sums import Sums
from certeq.learning.case import Data
from certeq.learning.learned import asked, learn
from logbook import logged
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
    {"regularizer": "learned_target"},
    {"unvisited": "zero", "min_visits": 4},
    {"unvisited": "average", "regularizer": "epsilon_greedy", "strength": 0.4},
    {"horizon": 3},
    {"reward_pool": "state"},
    {"reward_pool": "overall", "discount": 0.0},
    {"reward_by": "next_state"},
    {"reward_by": "next_state", "regularizer": "discount", "strength": 0.2},
    {"reward": [[1, 0], [0, 2], [0, 0]], "regularizer": "epsilon_greedy", "strength": 0.4},
)


@given(SEEDS, st.sampled_from(WAYS))
def test_the_case_of_a_learned_policy_advises_what_was_learned(seed, way):
    learned = learn(logged(seed), **way)
    advice = learned.case.advise()
    np.testing.assert_array_equal(advice.policy, np.atleast_2d(learned.policy.actions)[0])
    np.testing.assert_array_equal(advice.values, np.atleast_2d(learned.plan.values)[0])
    np.testing.assert_array_equal(advice.action_values, learned.policy.action_values.reshape(-1, 3, 2)[0])


@given(SEEDS, st.sampled_from(WAYS))
def test_several_data_sets_are_advised_on_as_each_by_itself(seed, way):
    cases = [learn(logged(seed + i, ends=False), **way).case for i in range(3)]
    earned = [case.data.reward for case in cases]
    counts = Counts(np.stack([case.data.counts.transitions for case in cases]))
    together = cases[0].given(counts, earned[0] if "reward" in way else _stacked(earned)).advise()
    for i, case in enumerate(cases):
        one = case.given(case.data.counts, together_size(earned[i], earned[0])).advise()
        np.testing.assert_array_equal(together.policy[i], one.policy)
        np.testing.assert_allclose(together.values[i], one.values, rtol=1e-9, atol=1e-9)


def together_size(sums, first):
    """Sums in the units of others."""
    if isinstance(sums, np.ndarray):
        return sums
    return sums.in_units(first.size)


def _stacked(sums):
    return Sums.stack([together_size(one, sums[0]) for one in sums])


def test_sparse_counts_are_advised_on_as_dense_ones():
    case = learn(logged(3)).case
    sparse = case.given(as_sparse(case.data.counts), case.data.reward).advise()
    np.testing.assert_array_equal(sparse.policy, case.advise().policy)


@given(SEEDS, st.sampled_from(["none", "discount", "uniform_prior", "evidence"]))
@example(232, "none")  # with a share, a case asks for more where habits differ
def test_the_batched_face_plans_what_a_case_plans(seed, regularizer):
    reward, settings = np.arange(6.0).reshape(3, 2), {} if regularizer in ("none", "evidence") else {"strength": 0.3}
    learned = learn(logged(seed), reward=reward, regularizer=regularizer, discount=0.9, min_share=0.0, **settings)
    found = plan(learned.counts, reward, 0.9, regularizer=regularizer, unvisited="exclude", **settings)
    np.testing.assert_array_equal(found.policy, learned.policy.actions)
    np.testing.assert_array_equal(found.values, learned.plan.values)


def test_counts_need_rewards_of_their_shape():
    counts = np.ones((2, 2, 2), dtype=int)
    assert Data.of(counts, np.ones((2, 2))).known_rewards
    with pytest.raises(InputError, match="give reward="):
        Data.of(counts)
    with pytest.raises(InputError, match=r"shape \(2, 2\)"):
        Data.of(counts, [1, 2])
    with pytest.raises(InputError, match="one data set"):
        Data.of(counts[None], np.ones((2, 2)))


def test_what_is_no_learned_policy_is_refused():
    batch = logged(0)
    assert asked(learn(batch)).data.batch is batch
    for other in (batch, tally(batch), None):
        with pytest.raises(InputError, match=r"what certeq\.learn returned"):
            asked(other)


def test_names_come_along():
    plain = logged(0)
    named = Batch(
        plain.state, plain.action, plain.next_state, 3, 2,
        reward=plain.reward, state_names=("a", "b", "c"), action_names=("x", "y"),
    )  # fmt: skip
    assert learn(named).case.data.state_names == ("a", "b", "c")
    assert learn(named).case.data.bare().state_names == Data.of(tally(plain), np.zeros((3, 2))).state_names
    assert Data.of(tally(plain), np.zeros((3, 2))).action_names == ("0", "1")
