"""Fragility: so many contrary rows, when they are really added, overturn the advice, and one fewer do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certeq import Batch, InputError, fragility, path
from certeq.learning.learned import learn
from certeq.questions.fragility import _fewest, _rows
from logbook import logged, with_copies
from strategies import SEEDS, as_sparse

WAYS = (
    {"discount": 0.9},
    {"discount": 0.9, "regularizer": "none", "unvisited": "zero"},
    {"discount": 0.5, "regularizer": "uniform_prior", "strength": 0.4, "reward_pool": "state"},
    {"discount": 0.9, "reward_by": "next_state"},
    {"discount": 0.9, "reward": [[1, 0.9], [0, 0.1], [0.5, 0.5]]},
    {"discount": 0.9, "horizon": 3},
)


def worth(learned, batch):
    """What each row says an outcome is worth, one row at a time."""
    plan, gamma = learned.plan, learned.summary.settings["discount"]
    ahead = plan.values if plan.values.ndim == 1 else plan.values[1]
    known = learned.rewards is None
    return [
        (0 if known else r) + (0 if s < 0 else gamma * ahead[s])
        for r, s in zip(batch.reward, batch.next_state, strict=True)
    ]


def extreme(learned, batch, state, outcomes, pick):
    """Number of the row with the worst or best outcome."""
    values = worth(learned, batch)
    rows = [i for i in range(len(batch)) if outcomes == "anywhere" or batch.state[i] == state]
    return pick(rows or range(len(batch)), key=lambda i: values[i])


@settings(max_examples=10)
@given(SEEDS, st.sampled_from(["state", "anywhere"]), st.sampled_from(WAYS))
def test_the_advice_changes_with_so_many_rows_and_not_with_one_fewer(seed, outcomes, way):
    batch = logged(seed, episodes=6)
    learned = learn(batch, min_share=0, **way)
    found = fragility(learned, outcomes=outcomes, cap=40, along=path(learned, points=5, tolerance=0.1))
    advice = np.atleast_2d(learned.policy.actions)[0]
    for s in np.flatnonzero(found.asked):
        for number, action, pick in (
            (found.against[s], advice[s], min),
            (found.favor[s], found.runner_up[s], max),
        ):
            source = extreme(learned, batch, s, outcomes, pick)
            for times in {number - 1, number} if number <= 40 else {40}:
                again = learn(with_copies(batch, s, action, source, times), min_share=0, **way).policy.actions
                changed = np.atleast_2d(again)[0][s] != advice[s]
                assert changed == (times == number)


def bandit():
    """Action 0 was followed by reward 1 four times, action 1 by 0 and by 1: means 1 and 1/2."""
    return Batch([0] * 6, [0, 0, 0, 0, 1, 1], [0] * 6, 1, 2, reward=np.array([1, 1, 1, 1, 0, 1.0]))


def test_in_a_bandit_the_number_is_that_of_the_means():
    """4 / (4 + k) falls below 1/2 after the tie at k = 4; (1 + k) / (2 + k) never exceeds 1."""
    found = fragility(learn(bandit(), discount=0.0))
    assert found.against.tolist() == [5]
    assert found.favor.tolist() == [10_001]
    assert found.observations.tolist() == [5]
    assert found.line(0) == "5 bad outcomes of '0' or more than 10,000 good outcomes of '1' would change this."
    assert fragility(learn(bandit(), discount=0.0), cap=4).line(0).startswith("more than 4 bad outcomes")


def test_contrary_rows_do_not_make_the_rival_an_avoided_action():
    """8 / (9 + k) falls below 1/2 at k = 8, when action 1 would be tried less than a fifth as often as action 0."""
    rows = Batch([0] * 11, [0] * 9 + [1] * 2, [0] * 11, 1, 2, reward=np.array([1.0] * 8 + [0] + [0.5] * 2))
    learned = learn(rows, discount=0.0, regularizer="none", reward_pool="none")
    assert learned.rules.min_share == 0.2
    assert fragility(learned).against.tolist() == [8]


def test_outcomes_of_other_states_count_only_if_asked_for():
    rows = bandit()
    elsewhere = Batch(
        [*rows.state, 1], [*rows.action, 0], [*rows.next_state, 1], 2, 2, reward=np.array([*rows.reward, -94.0])
    )
    learned = learn(elsewhere, discount=0.0)
    assert fragility(learned).against.tolist() == [5, 0]
    assert fragility(learned, outcomes="anywhere").against.tolist() == [1, 0]


def test_strengths_are_those_of_the_path():
    learned = learn(logged(2), discount=0.9)
    along = path(learned, "strength")
    found = fragility(learned)
    np.testing.assert_array_equal(found.strength, along.first_departure(along.policies[0]))
    np.testing.assert_array_equal(found.learned_strength, along.first_departure(learned.policy.actions))


def test_where_there_is_no_choice_nothing_is_asked():
    batch = Batch([0, 1, 1], [0, 0, 1], [1, 0, 0], 3, 2, reward=np.array([0, 1.0, 0]))
    found = fragility(learn(batch, discount=0.5))
    assert found.asked.tolist() == [False, True, False]
    assert found.line(0) == "Nothing else can be advised here."
    only = fragility(learn(Batch([0, 1], [0, 0], [1, 0], 2, 1, reward=np.zeros(2)), discount=0.5))
    assert "In no state could anything else" in only.lines()[0]


def test_some_states_alone_have_the_numbers_they_have_among_all():
    learned = learn(logged(8, episodes=20), discount=0.9)
    every = fragility(learned)
    asked = np.flatnonzero(every.asked)
    one = fragility(learned, states=[asked[-1], asked[-1]])
    assert np.flatnonzero(one.asked).tolist() == [asked[-1]]
    assert (one.against[asked[-1]], one.favor[asked[-1]]) == (every.against[asked[-1]], every.favor[asked[-1]])
    assert f"of 1 state asked about (there is a choice in {len(asked)})" in one.lines()[0]
    assert one.line(asked[0]) == "This state was not asked about."
    assert fragility(learned, states=[]).lines() == [f"No state was asked about; in {len(asked)} there is a choice."]


def test_sparse_counts_have_the_numbers_of_dense_ones():
    batch = logged(8, episodes=20)
    learned = learn(batch, discount=0.9)
    case, found = learned.case, fragility(learned, cap=200)
    s = int(np.flatnonzero(found.asked)[0])
    source = np.array([extreme(learned, batch, s, "state", min)])
    rows = _rows(batch, np.array([s]), found.advice[[s]], source)
    sparse = case.given(as_sparse(case.data.counts), case.data.reward)
    assert _fewest(sparse, rows, found.advice, 200).tolist() == [found.against[s]]


def test_words_and_files_tell_what_it_takes():
    found = fragility(learn(bandit(), discount=0.0))
    assert (
        "One contrary observation would change the advice in 0 of 1 state where there is a choice" in found.lines()[0]
    )
    written = found.to_json()
    assert (written["against"], written["favor"], written["cap"]) == ([5], [None], 10_000)
    sturdy = fragility(learn(bandit(), discount=0.0), cap=4)
    assert "In 1 state it takes more than 4 contrary observations." in sturdy.lines()


def test_what_cannot_be_asked_is_refused_in_words():
    learned = learn(bandit(), discount=0.0)
    for asked, says in (
        ({"outcomes": "nowhere"}, "no place for outcomes named 'nowhere'"),
        ({"states": [1]}, "numbers from 0 to 0; got 1"),
        ({"cap": 0}, "cap must be at least 1"),
    ):
        with pytest.raises(InputError, match=says):
            fragility(learned, **asked)
