"""What people avoided is not advised, unless somebody asks for the plain plan."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import Batch, InputError, learn
from certeq.data.counts import Counts
from certeq.model.habits import APART, LEANS, OWN, ROWS, shares
from certeq.model.unvisited import CONVENTIONS, fill
from certeq.questions.avoided import avoided
from strategies import SEEDS, as_sparse


def ward():
    """In state 0 a risky action was tried once, and went well; the usual one was tried 20 times, and paid half."""
    state = np.zeros(21, dtype=int)
    action = np.array([1] + [0] * 20)
    return Batch(
        state, action, np.full(21, -1), 2, 2, reward=np.array([1.0] + [0.5] * 20), action_names=("usual", "bold")
    )


def test_an_action_that_was_hardly_tried_is_advised_only_by_the_plain_plan():
    assert learn(ward()).policy.actions[0] == 0
    assert learn(ward(), min_share=0).policy.actions[0] == 1
    assert learn(ward(), min_share=0.01).policy.actions[0] == 1  # a share that is reached


def test_where_the_advice_keeps_to_what_was_done_is_told_with_the_support():
    found = avoided(learn(ward()))
    assert (found.kept_out, found.differs.tolist()) == (1, [0])
    assert "it would be bold (tried 1 time) instead of usual (tried 20 times)" in found.lines()[-1]
    assert found.to_json()["plain"] == ["bold", None]
    same = avoided(learn(ward(), min_share=0))
    assert same.kept_out == 0
    assert same.differs.tolist() == []


@given(SEEDS, st.floats(0, 1), st.sampled_from(sorted(CONVENTIONS)))
def test_the_share_is_of_the_likeliest_action_of_the_same_state(seed, share, convention):
    counts = Counts(np.random.default_rng(seed).poisson(0.7, size=(4, 3, 4)))
    filled = fill(counts, convention, 1, share)
    likely = naive.habits(counts.visits.tolist(), LEANS, ROWS, APART, OWN)
    for s in range(4):
        most = max(counts.visits[s])
        for a in range(3):
            tried, enough = counts.visits[s, a], likely[s, a] - share * max(likely[s])
            if abs(enough) > 1e-6:  # a share that is just reached is asked for below
                expected = enough > 0 and (convention != "exclude" or tried > 0 or most == 0)
                assert filled.allowed[s, a] == expected
    np.testing.assert_array_equal(fill(as_sparse(counts), convention, 1, share).allowed, filled.allowed)


def test_a_share_that_is_just_reached_is_enough():
    counts = Counts(np.random.default_rng(0).poisson(3, size=(4, 3, 4)))
    likely = shares(counts.visits)
    least = likely.min(axis=-1) / likely.max(axis=-1)
    assert fill(counts, "target", 1, float(least[0])).allowed[0].all()
    assert not fill(counts, "target", 1, float(least[0]) + 1e-6).allowed[0].all()


def test_what_the_usual_turned_out_to_be_worth_is_told():
    rng = np.random.default_rng(0)
    state = rng.integers(20, size=600)
    action = np.where(rng.random(600) < 0.7, state % 2, rng.integers(2, size=600))  # a habit that differs by state
    batch = Batch(state, action, np.full(600, -1), 20, 2, reward=(action == state % 2) + 0.1 * rng.normal(size=600))
    found = avoided(learn(batch, discount=0.9, draws=0))
    assert found.habits > 2
    assert "less than 0.5 times as likely" in found.lines()[0]
    assert "What people usually did seems to have turned out better than the rest" in found.lines()[1]
    assert found.to_json()["habits"] == found.habits
    idle = avoided(learn(replace(batch, reward=rng.normal(size=600)), discount=0.9, draws=0))
    assert abs(idle.habits) < 1
    assert idle.kept_out > 0
    assert "less than 0.5 times as likely" in idle.lines()[0]
    assert "weaker proof is enough" in idle.lines()[1]
    turned = avoided(learn(replace(batch, reward=-batch.reward), discount=0.9, draws=0))
    assert turned.habits < 0


def test_a_share_beyond_all_is_refused():
    assert learn(ward(), min_share=1).policy.actions[0] == 0
    with pytest.raises(InputError, match="min_share must lie between 0 and 1"):
        learn(ward(), min_share=1.5)
