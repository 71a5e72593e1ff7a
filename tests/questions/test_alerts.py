"""Alerts come from all that was found; what was not asked is open; the box says what was checked."""

import re

import numpy as np
import pytest

import certeq
from certeq.learning.learned import SAME
from certeq.questions.alerts import MARKOV, PEOPLE, alerts, checked, unasked
from certeq.questions.examine import all_questions, examine
from certeq.report.learned_page import render

CALM = "calls for a warning"


def coin(n=400, seed=0, gain=0.0):
    """One state, two actions that earn the same but for a gain; every episode ends at once."""
    action = np.tile([0, 1], n // 2)
    reward = np.repeat(np.random.default_rng(seed).normal(size=n // 2), 2) + gain * action
    zeros = np.zeros(n, dtype=int)
    return certeq.Batch(zeros, action, zeros - 1, 1, 2, reward=reward, episode=np.arange(n), time=zeros)


def test_no_clear_action_is_an_alert():
    found = examine(certeq.learn(coin()), draws=200)
    assert any("In 1 of 1 state with a choice no action is best with a chance of" in alert for alert in alerts(found))
    assert CALM not in render(found)


def test_where_every_reward_is_the_same_that_is_all_there_is_to_say():
    random = np.random.default_rng(0)
    state, action = random.integers(5, size=(2, 600))
    rows = certeq.Batch(
        state, action % 2, np.roll(state, -1), 5, 2, reward=np.full(600, 3.1), episode=np.arange(600) // 20,
        time=np.arange(600) % 20,
    )  # fmt: skip
    found = examine(certeq.learn(rows), draws=60)
    assert alerts(found) == [SAME]
    assert found.learned.summary.clear == 0
    page = render(found)
    assert "Nothing to choose: every reward is the same" in page
    for untold in ("clearly best", "is better", " worth less", "e−"):
        assert untold not in re.sub("<script.*?</script>|<style.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert [gap.better for gap in [found.posterior.difference("the advice", "what was recorded")]] == [0.5]


def test_a_tie_is_not_called_clear():
    state, action = np.arange(400) // 100, np.arange(400) % 2
    reward = np.where(state == 0, 1.0, action)  # where one goes and what one earns is the same in the first state
    found = examine(certeq.learn(certeq.Batch(state, action, state, 4, 2, reward=reward), min_share=0), draws=60)
    assert found.unclear == 4 - found.learned.summary.clear >= 1


def test_a_clear_case_has_no_alert_and_says_what_was_checked_and_what_was_not():
    found = examine(certeq.learn(coin(gain=3.0)), draws=200)
    assert alerts(found) == []
    assert "how sure each action is" in checked(found)
    assert set(unasked(found)) == {MARKOV, PEOPLE}  # the rows never were a table with states to check
    page = render(found)
    assert "Not checked, and so still open" in page
    assert CALM not in page


@pytest.mark.parametrize("name", ["posterior", "off_policy", "collect"])
def test_what_was_not_asked_is_open_and_not_clear(name):
    found = examine(certeq.learn(coin(gain=3.0)), draws=0)
    assert all_questions()["posterior"].asks in unasked(found)
    assert all_questions()[name].asks in {**unasked(found), **dict.fromkeys(checked(found))}
    assert CALM not in render(found)
    assert "No draws from the posterior were asked for." in render(found)


def test_few_effective_episodes_are_an_alert():
    random = np.random.default_rng(1)
    n = 60
    action = (random.random(n) < 0.05).astype(int)  # the better action was almost never taken
    zeros = np.zeros(n, dtype=int)
    rows = certeq.Batch(zeros, action, zeros - 1, 1, 2, reward=5.0 * action, episode=np.arange(n), time=zeros)
    found = examine(certeq.learn(rows, min_share=0), draws=100)
    assert found.off_policy.effective_size < 10
    assert any("The episodes alone cannot confirm the advice" in alert for alert in alerts(found))


@pytest.mark.parametrize("well", [True, False])
def test_keeping_to_what_people_did_is_an_alert(well):
    """Habits differ by state. Well: a quarter left them, to their harm but in five states. Else: hardly anybody did."""
    state, case = np.repeat(np.arange(30), 12), np.arange(360) % 12
    bold = case < (3 if well else 1)
    reward = np.where(bold, np.where(state < 5, 1.1, -2.0), 1.0) if well else bold * 1.0
    rows = certeq.Batch(state, (state + bold) % 2, np.full(360, -1), 30, 2, reward=reward)
    found = examine(certeq.learn(rows, discount=0.9, regularizer="none", reward_pool="none"), draws=0)
    told = [alert for alert in alerts(found) if "keeps to what people did" in alert]
    assert found.avoided.well == well
    assert [f"In {5 if well else 30} of 30 states" in alert for alert in told] == [True]
    assert ("turned out better than the rest" in told[0]) == well
    assert ("was seldom tried" in told[0]) != well


def test_states_that_are_not_markov_are_an_alert():
    random = np.random.default_rng(2)
    x = np.zeros(2001, dtype=int)
    for t in range(2, 2001):  # where one goes depends on where one was before
        x[t] = x[t - 2] if random.random() < 0.9 else random.integers(0, 3)
    rows = {"episode": np.ones(2001, int), "time": np.arange(2001), "state": x, "action": random.integers(0, 2, 2001)}
    learned = certeq.learn(certeq.read(rows | {"reward": random.normal(size=2001)}, ends="never"))
    assert learned.summary.markov is False
    assert any("not quite Markov" in alert for alert in learned.summary.alerts)


def test_every_question_says_what_it_asks():
    assert all(question.asks for question in all_questions().values())
