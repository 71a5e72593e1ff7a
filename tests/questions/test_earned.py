"""Earned: what the model says of what people earned, and how many rows a value rests on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certeq
import naive
from certeq import Batch
from certeq.questions import sparse_draws
from certeq.questions.earned import overstated, resting
from certeq.questions.posterior import posterior
from logbook import logged, taken
from strategies import SEEDS, random_rows

GAMMA = 0.9


def stepping(chain, gain):
    return lambda values: gain + GAMMA * chain @ values


def listed(batch):
    return list(zip(batch.episode, batch.state, batch.action, batch.reward, batch.next_state, strict=True))


@given(SEEDS, st.integers(1, 7), st.booleans())
def test_what_people_earned_is_followed_by_hand(seed, decisions, ends):
    batch = logged(seed, episodes=6, ends=ends)
    rng = np.random.default_rng(seed)
    chain, gain = random_rows(rng, (3, 3), ends=ends), rng.normal(size=3) + 0.5
    found = overstated(batch, batch.reward, stepping(chain, gain), GAMMA, decisions)
    assert found == pytest.approx(naive.overstated(listed(batch), chain.tolist(), gain.tolist(), GAMMA, decisions))


def test_what_sections_tell_is_scaled_up_to_the_time_that_an_episode_takes():
    """Of one long episode and of the same rows in fifteen, a model says as much too much for each decision."""
    n, gamma = 900, 0.99
    rng = np.random.default_rng(0)
    rows = {"state": np.zeros(n, dtype=int), "action": np.zeros(n, dtype=int), "next_state": np.zeros(n, dtype=int)}
    pays = 0.001 * rng.normal(size=n)

    def found(length):
        batch = Batch(**rows, n_states=1, n_actions=1, reward=pays, episode=np.arange(n) // length)
        return overstated(batch, pays, lambda values: 0.1 + gamma * values, gamma, None)

    assert found(900) == pytest.approx(0.1 * (1 - gamma**200) / (1 - gamma), rel=0.02)
    assert found(60) == pytest.approx(0.1 * (1 - gamma**60) / (1 - gamma), rel=0.02)


@given(SEEDS)
def test_what_a_value_rests_on_is_counted_by_hand(seed):
    batch = logged(seed, episodes=10)
    rng = np.random.default_rng(seed)
    often, values = rng.random((3, 2)), rng.normal(size=3)
    found = resting(batch, batch.reward, often, values, GAMMA)
    assert found == pytest.approx(naive.resting(listed(batch), often.tolist(), values.tolist(), GAMMA))
    assert 1 <= found <= len(batch)


@given(SEEDS, st.floats(1e-3, 1e3))
def test_names_order_and_units_do_not_matter(seed, unit):
    batch = replace(logged(seed, episodes=12), time=None)
    batch = replace(batch, time=np.arange(len(batch)))
    rng = np.random.default_rng(seed)
    often, values = rng.random((3, 2)), rng.normal(size=3)
    chain, gain = random_rows(rng, (3, 3)), rng.normal(size=3)
    order, states = rng.permutation(len(batch)), rng.permutation(3)
    other = replace(taken(batch, order), time=batch.time[order])
    to, back = np.append(states, -1), np.argsort(states)
    renamed = replace(other, state=to[other.state], next_state=to[other.next_state], action=1 - other.action)
    plain = resting(batch, batch.reward, often, values, GAMMA)
    paid = unit * renamed.reward
    assert resting(renamed, paid, often[back][:, ::-1], unit * values[back], GAMMA) == pytest.approx(plain)
    told = overstated(batch, batch.reward, stepping(chain, gain), GAMMA, 4)
    again = overstated(renamed, paid, stepping(chain[np.ix_(back, back)], unit * gain[back]), GAMMA, 4)
    assert again == pytest.approx(unit * told)


def test_rows_that_are_all_alike_leave_no_doubt():
    batch = logged(1, noise=0.0, ends=False)
    batch = replace(batch, next_state=np.zeros_like(batch.state))
    assert resting(batch, np.ones(len(batch)), np.ones((3, 2)), np.array([0.1, 0.7, 1.3]), GAMMA) == 0.0


def test_rows_without_episodes_tell_nothing_of_what_was_earned():
    batch = replace(logged(1), episode=None)
    assert overstated(batch, batch.reward, stepping(np.eye(3), np.ones(3)), GAMMA, 5) == 0.0


def test_what_the_model_says_too_much_is_asked_of_cells_only(monkeypatch):
    """Numbers that are cut leave out where in its cell a row was; labels leave nothing out."""
    rng = np.random.default_rng(2)
    rows = {"who": np.repeat(np.arange(60), 8), "when": np.tile(np.arange(8), 60)}
    table = rows | {"x": rng.normal(size=480), "act": rng.integers(2, size=480), "pay": rng.normal(size=480)}
    table["pay"] -= 0.5 * (table["when"] == 0)  # the first decision pays less than those that are like it
    named = {"episode": "who", "time": "when", "action": "act", "reward": "pay", "ends": "never"}
    for read, exact in (
        (certeq.read(table, state=["x"], bins=3, **named), False),
        (certeq.read(table | {"x": np.where(table["x"] > 0, "up", "down")}, state=["x"], **named), True),
    ):
        learned = certeq.learn(read, discount=0.9)
        policies, usual = {"advice": learned.policy.actions}, {"draws": 40, "rng": 1, "watched": 8}
        given = {"rewards": learned.rewards, "batch": read, "case": learned.case, **usual}
        found = posterior(learned.model, learned.table, 0.9, policies, **given)
        assert read.recipe.cut is not exact
        assert found.exact is exact
        assert found.rests > 1
        assert (found.overstated > 0) is not exact
        with monkeypatch.context() as patched:
            patched.setattr(sparse_draws, "WRITTEN", 0)  # as models are drawn that are too large to be written out
            large = posterior(learned.model, learned.table, 0.9, policies, **given)
        assert (large.overstated, large.history) == pytest.approx((found.overstated, found.history))
