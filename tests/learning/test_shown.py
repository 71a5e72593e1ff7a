"""What people seldom did is let in where all states together show that it turned out better."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from certeq import Batch, learn
from certeq.data.order import episodes
from certeq.learning import shown
from certeq.learning.case import Case, Data
from certeq.learning.proven import SURE
from certeq.learning.rules import Rules
from certeq.questions.avoided import avoided
from strategies import SEEDS

STATES = 40


def shop(seed=0, better=0.5, people=300, length=12):
    """Visits to 40 states at random. In each people usually do the same thing; one other pays this much more."""
    rng = np.random.default_rng(seed)
    state = rng.integers(STATES, size=(people, length + 1))
    usual = state[:, :-1] % 3
    action = np.where(rng.random((people, length)) < 0.25, rng.integers(3, size=(people, length)), usual)
    reward = better * (action == (usual + 1) % 3) - (action == (usual + 2) % 3) + rng.normal(size=(people, length))
    return Batch(
        state[:, :-1].ravel(), action.ravel(), state[:, 1:].ravel(), STATES, 3, reward=reward.ravel(),
        episode=np.repeat(np.arange(people), length), time=np.tile(np.arange(length), people),
    )  # fmt: skip


def case_of(batch):
    return Case(Data.of(batch), Rules(discount=0.8))


def bold_share(case):
    """In how many states the advice is what pays more."""
    return np.mean(case.advise().policy == (np.arange(STATES) % 3 + 1) % 3)


def test_what_all_states_show_together_is_advised_though_none_proves_it_alone():
    case = case_of(shop())
    assert case.shown > SURE
    alone = replace(case, verdict=0.0)
    assert bold_share(alone) < 0.2
    assert bold_share(case) > 0.4


@pytest.mark.parametrize("better", [0.0, -0.5])
def test_what_turned_out_no_better_is_not(better):
    found = [case_of(shop(seed, better)).shown for seed in range(3)]
    assert max(found) < SURE


def test_nothing_is_shown_where_people_acted_on_more_than_the_states_hold():
    batch = shop()
    saw = (batch.action != batch.state % 3).astype(np.int64)  # what only people knew, and acted on
    assert case_of(replace(batch, within={"saw": saw})).shown == 0
    assert case_of(replace(batch, within={"noise": np.arange(len(batch)) % 2})).shown > SURE


def test_nobody_is_asked_without_episodes_or_for_a_horizon_or_for_the_plain_plan():
    batch = shop()
    assert case_of(replace(batch, episode=None, time=None)).shown == 0
    for rules in (Rules(discount=0.8, horizon=3), Rules(discount=0.8, min_share=0.0)):
        assert Case(Data.of(batch), rules).shown == 0
    few = batch.take(batch.episode < shown.EPISODES - 1)
    assert case_of(few).shown == 0


def test_other_rows_keep_the_verdict():
    case = case_of(shop())
    again = case.given(case.data.counts, case.data.reward)
    assert again.shown == case.shown
    np.testing.assert_array_equal(again.model.allowed, case.model.allowed)


def test_the_report_says_why():
    found = avoided(learn(shop(), discount=0.8, draws=0))
    assert found.bold
    assert "it turned out better than what they usually did, over all states together" in found.lines()[0]
    assert found.to_json()["shown"] == found.shown
    assert not avoided(learn(shop(better=0.0), discount=0.8, draws=0)).bold


@settings(max_examples=30)
@given(SEEDS, st.integers(1, 6), st.floats(0, 1))
def test_rows_are_worth_what_followed_and_what_lies_beyond(seed, ahead, discount):
    rng = np.random.default_rng(seed)
    n, S = 30, 4
    episode = np.sort(rng.integers(6, size=n))
    then = np.where(rng.random(n) < 0.2, -1, rng.integers(S, size=n))
    paid, values, order = rng.normal(size=n), rng.normal(size=S), rng.permutation(n)
    columns = (rng.integers(S, size=n), np.zeros(n, dtype=int), then, episode, np.arange(n))
    state, action, after, who, when = (column[order] for column in columns)
    batch = Batch(state, action, after, S, 1, reward=paid[order], episode=who, time=when)
    found = shown.worth(batch, episodes(batch), paid[order], values, discount, ahead)
    expected = [
        x
        for one in np.unique(episode)
        for x in naive.worth_ahead(
            list(zip(paid[episode == one], then[episode == one], strict=True)), values, discount, ahead
        )
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=30)
@given(SEEDS)
def test_standard_errors_are_those_of_a_literal_twin(seed):
    rng = np.random.default_rng(seed)
    n = 400
    kind, state, episode, worth = (
        rng.integers(3, size=n),
        rng.integers(9, size=n),
        rng.integers(20, size=n),
        rng.normal(size=n),
    )
    found = shown.apart(worth, state, kind == 0, kind == 1, episode)
    words = np.array(["bold", "usual", "other"])[kind]
    assert found == pytest.approx(naive.bolder(list(zip(episode, state, words, worth, strict=True))), rel=1e-9)


@pytest.mark.parametrize("more", [0, 1])
def test_a_few_rows_show_nothing(more):
    n = shown.FEWEST - 1 + more
    bold = np.arange(2 * n) % 2 == 0
    worth = bold + 0.1 * np.random.default_rng(0).normal(size=2 * n)
    assert (shown.apart(worth, np.zeros(2 * n, dtype=int), bold, ~bold, np.arange(2 * n)) > SURE) == bool(more)


@settings(max_examples=5)
@given(SEEDS)
def test_renaming_and_reordering_change_nothing(seed):
    batch, rng = shop(3), np.random.default_rng(seed)
    states, actions, order = rng.permutation(STATES), rng.permutation(3), rng.permutation(len(batch))
    people = rng.permutation(400)[batch.episode]
    other = Batch(
        states[batch.state][order], actions[batch.action][order], states[batch.next_state][order], STATES, 3,
        reward=batch.reward[order], episode=people[order], time=batch.time[order],
    )  # fmt: skip
    one, two = case_of(batch), case_of(other)
    assert two.shown == pytest.approx(one.shown, rel=1e-9)
    np.testing.assert_array_equal(one.model.allowed, two.model.allowed[np.ix_(states, actions)])
