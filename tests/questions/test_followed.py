"""Followed: advice that is followed twice in a row tells whether states leave something out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import naive
from certeq import Batch, environment, learn, sampling
from certeq.questions.episodes import starts
from certeq.questions.followed import FEWEST, shortfall
from certeq.questions.posterior import posterior
from logbook import logged, taken
from strategies import SEEDS

GAMMA = 0.9


def advice(seed, S=3, A=2):
    rng = np.random.default_rng(seed)
    return np.eye(A)[rng.integers(A, size=S)] == 1, rng.normal(size=S)


@given(SEEDS)
def test_it_is_what_following_every_episode_by_hand_finds(seed):
    batch = logged(seed, episodes=30)
    advised, values = advice(seed)
    found = shortfall(batch, batch.reward, advised, values, GAMMA)
    rows = list(zip(batch.episode, batch.state, batch.action, batch.reward, batch.next_state, strict=True))
    wanted = naive.shortfall(rows, advised.tolist(), values.tolist(), GAMMA)
    assert found == pytest.approx(wanted)


@given(SEEDS)
def test_names_and_the_order_of_rows_do_not_matter(seed):
    batch = replace(logged(seed, episodes=30), time=None)
    batch = replace(batch, time=np.arange(len(batch)))
    advised, values = advice(seed)
    plain = shortfall(batch, batch.reward, advised, values, GAMMA)
    rng = np.random.default_rng(seed)
    order, states = rng.permutation(len(batch)), rng.permutation(3)
    other = replace(taken(batch, order), time=batch.time[order])
    to = np.append(states, -1)
    renamed = replace(other, state=to[other.state], next_state=to[other.next_state], action=1 - other.action)
    back = np.argsort(states)
    found = shortfall(renamed, renamed.reward, advised[back][:, ::-1], values[back], GAMMA)
    assert found == pytest.approx(plain)


def test_too_few_rows_tell_nothing():
    batch = logged(1, episodes=2, length=3, ends=False)
    advised, values = np.ones((3, 2), dtype=bool), np.zeros(3)
    assert len(batch) - 2 < FEWEST
    assert shortfall(batch, np.arange(6.0), advised, values, GAMMA) == 0
    assert shortfall(replace(batch, episode=None), np.arange(6.0), advised, values, GAMMA) == 0


def tired(rng, episodes=400, length=12):
    """Pushing pays 1, but 0 right after a push, and the one state does not say which it was; resting pays 0.45."""
    push = rng.integers(2, size=(episodes, length))
    before = np.concatenate([np.zeros((episodes, 1), dtype=int), push[:, :-1]], axis=1)
    paid = np.where(push == 1, 1.0 - before, 0.45)
    who, when = np.divmod(np.arange(episodes * length), length)
    zero = np.zeros(episodes * length, dtype=int)
    return Batch(zero, push.ravel(), zero, 1, 2, reward=paid.ravel(), episode=who, time=when)


def test_what_only_shows_where_the_advice_is_followed_lowers_the_low_end():
    """As people act a push pays a half, and so it is advised; pushing all the time pays nothing after the first."""
    batch = tired(np.random.default_rng(3))
    learned = learn(batch, discount=GAMMA)
    assert learned.policy.actions.tolist() == [1]
    what = {"rewards": learned.rewards, "batch": batch, "case": learned.case, "draws": 80, "watched": 12}
    found = posterior(learned.model, learned.table, GAMMA, {"advice": learned.policy.actions}, **what)
    decisions = (1 - GAMMA**12) / (1 - GAMMA)
    assert found.mean("advice") == pytest.approx(0.55 * decisions, rel=0.1)
    assert found.history == pytest.approx(0.55 * (decisions - 1), rel=0.1)
    assert found.interval("advice").low < 1.0 < 0.9 * (found.interval("advice").low + found.history)
    assert found.too_much == found.flattery + found.history


def test_where_states_hold_what_matters_little_is_taken_off():
    truth, off = environment("random_chain", n_states=6, rng=1), []
    for seed in range(20):
        batch = sampling.trajectories(truth, 40, 15, rng=seed)
        learned = learn(batch, reward=truth.reward, discount=GAMMA)
        what = {"batch": batch, "case": learned.case, "draws": 8, "watched": 15, "start": starts(batch)}
        found = posterior(learned.model, truth.reward, GAMMA, {"advice": learned.policy.actions}, **what)
        off.append(found.history / found.mean("advice"))
    assert np.mean(off) < 0.01
