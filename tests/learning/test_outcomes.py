"""Rewards belong to their outcome: what is claimed stays within what the rewards allow."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive
from certeq import Batch, solve
from certeq.data.sums import add_up
from certeq.learning.learned import learn
from certeq.model.rewards import POOLS
from certeq.regularizers import REGULARIZERS
from strategies import SEEDS, as_sparse

SETTINGS = {"strength": 0.4}
WAYS = [
    (name, SETTINGS if name not in ("none", "evidence", "learned_target") and "least" not in name else {})
    for name in REGULARIZERS
    if name != "expert_prior"
]


def ward(seed, n=60, S=4, A=2, ends=0.3, **more):
    """Rows that pay 1 or 0 at the end and nothing before."""
    rng = np.random.default_rng(seed)
    ended = rng.random(n) < ends
    ended[0] = True
    return Batch(
        rng.integers(S, size=n),
        rng.integers(A, size=n),
        np.where(ended, -1, rng.integers(S, size=n)),
        S,
        A,
        reward=np.where(ended, rng.integers(0, 2, size=n), more.get("going", 0.0)),
        positions=np.arange(S),
    )


@pytest.mark.parametrize(("regularizer", "settings"), WAYS, ids=[name for name, _ in WAYS])
@given(SEEDS, st.sampled_from(POOLS), st.sampled_from(["exclude", "target", "zero", "average"]), st.integers(3, 60))
def test_no_chance_of_survival_beyond_one_is_claimed(regularizer, settings, seed, pool, unvisited, n):
    found = learn(
        ward(seed, n=n), discount=0.97, regularizer=regularizer, reward_pool=pool, unvisited=unvisited, **settings
    )
    warned = any("do not believe" in alert for alert in found.summary.alerts)
    if found.shrinkage.averages_actions and unvisited in ("zero", "average"):
        # what an untried action leads to is uniform in the average, and something else by itself: then it is said
        assert warned == (found.plan.values.max() > 1 + 1.5e-6)
        return
    assert found.plan.values.max() <= 1 + 1e-9
    assert found.plan.values.min() >= -1e-9
    assert not warned


@given(SEEDS, st.sampled_from(["pair", "next_state"]), st.sampled_from([-1.0, 0.5]), st.sampled_from([None, 3]))
@example(43006, "pair", 0.5, 3)  # going on twice and ending then pays most
def test_values_stay_within_what_the_rewards_allow(seed, by, going, horizon):
    found = learn(ward(seed, going=going), discount=0.9, reward_by=by, reward_pool="auto", horizon=horizon)
    least, most = found.case.possible
    assert found.plan.values.max() <= most + 1e-9
    assert found.plan.values.min() >= least - 1e-9
    steps = 10 * (1 - 0.9 ** (horizon or np.inf))
    ends = add_up(ward(seed, going=going)).span[1]
    late = [] if horizon is None else [sum(going * 0.9**t for t in range(2)) + 0.9**2 * end for end in ends]
    expected = (min(going, going * steps, *ends, *late), max(going, going * steps, *ends, *late))
    assert (least, most) == pytest.approx(expected)


@given(SEEDS, st.sampled_from(["evidence", "uniform_prior", "learned_target", "none", "discount"]))
def test_a_pair_earns_what_its_planned_outcomes_pay(seed, regularizer):
    batch = ward(seed, n=40, going=0.25)
    settings = SETTINGS if regularizer in ("uniform_prior", "discount") else {}
    found = learn(batch, regularizer=regularizer, reward_pool="none", discount=0.9, **settings)
    rows = list(
        zip(*(part.tolist() for part in (batch.state, batch.action, batch.next_state, batch.reward)), strict=True)
    )
    data, target = found.model.data.dense(), np.broadcast_to(found.shrinkage.target.dense(), (4, 2, 4))
    weight = np.zeros((4, 2)) if regularizer == "discount" else np.broadcast_to(found.shrinkage.weight, (4, 2))
    both = (add_up(batch).number > 0).all(axis=0)  # pairs whose own rows say what either outcome pays
    for s, a in zip(*np.nonzero(both), strict=True):
        expected = naive.outcome_reward(rows, data[s, a], weight[s, a], target[s, a], s, a)
        assert found.table[s, a] == pytest.approx(expected)


def test_who_was_treated_once_and_survived_does_not_survive_again_and_again():
    """The fault this is about: r = 1 was kept while the row was pulled toward going on."""
    batch = Batch([0, 0, 1, 1], [0, 1, 0, 1], [-1, 1, 0, -1], 2, 2, reward=[1, 0, 0, 0.0])
    found = learn(batch, discount=0.99, regularizer="uniform_prior", strength=0.9, reward_pool="none")
    sums = found.case.data.reward
    kept = found.model.reward(sums.total / np.maximum(sums.visits, 1))
    before = solve(found.model.transition, kept, 0.99, allowed=found.model.allowed)
    assert before.values.max() > 1.5
    assert found.plan.values.max() <= 1


def test_known_rewards_that_are_paid_again_are_pointed_out():
    batch = Batch([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, -1, 0], 2, 2, reward=[0, 0, 1, 0.0])
    known = np.array([[0.0, 0], [1, 0]])
    found = learn(batch, reward=known, discount=0.9, regularizer="uniform_prior", strength=0.8)
    assert found.plan.values.max() > 1
    (alert,) = (alert for alert in found.summary.alerts if "do not believe" in alert)
    assert "but the rewards allow 1 at most" in alert
    assert not any("do not believe" in alert for alert in learn(batch, discount=0.9).summary.alerts)


def test_nothing_changes_where_nothing_ended():
    batch = ward(3, ends=0.0)
    rows = batch.next_state >= 0
    on = Batch(batch.state[rows], batch.action[rows], batch.next_state[rows], 4, 2, reward=np.arange(59.0))
    found = learn(on, reward_pool="none", discount=0.9)
    assert found.case.by_outcome is None
    sums = found.case.data.reward
    seen = sums.visits > 0
    np.testing.assert_array_equal(found.table[seen], sums.size * (sums.total[seen] / sums.visits[seen]))


@pytest.mark.slow
@given(SEEDS)
def test_sparse_counts_pay_as_dense_ones_and_renamed_ones_too(seed):
    batch = ward(seed)
    case = learn(batch, regularizer="evidence", discount=0.9, reward_pool="auto").case
    sparse = case.given(as_sparse(case.data.counts), case.data.reward)
    np.testing.assert_allclose(sparse.table, case.table)
    order = np.random.default_rng(seed).permutation(4)
    following = np.where(batch.ended, -1, order[batch.next_state])
    renamed = Batch(order[batch.state], batch.action, following, 4, 2, reward=batch.reward, positions=np.argsort(order))
    other = learn(renamed, regularizer="evidence", discount=0.9, reward_pool="auto").case
    np.testing.assert_allclose(other.table[order], case.table, atol=1e-9)
