"""The outer interval: nothing that the rows seen do not exclude is worth less, or more."""

from itertools import product

import numpy as np
import pytest

from certeq import Batch, InputError, learn
from certeq.learning.case import Case, Data
from certeq.learning.rules import Rules
from certeq.questions.outer import Extreme, Outer, _Block, outer
from logbook import logged


def random_block(rng, k=3, S=3, A=2, ends=True):
    full = rng.dirichlet(np.ones(S + ends), size=(k, S, A))
    return _Block(full[..., :S], rng.normal(size=(k, S, A)), rng.random((k, S, A)) * 0.6)


def every_choice(block, i, policy, gamma, pays, ends):
    """Values of all ways in which the unseen parts may lead somewhere, each pair its own, one for each model."""
    rows, reward, part = (each[i] for each in block)
    S = len(rows)
    state = np.arange(S)
    rows, reward, part = rows[state, policy], reward[state, policy], part[state, policy]
    outcomes = range(S + 1) if ends else range(S)
    for choice in product(outcomes, repeat=S):
        to, paid = rows * (1 - part)[:, None], (1 - part) * reward
        for s, j in enumerate(choice):
            if j < S:
                to[s, j] += part[s]
            paid[s] += part[s] * (reward[s] if pays is None else pays[0] if j < S else pays[1])
        yield np.linalg.solve(np.eye(S) - gamma * to, paid)


@pytest.mark.parametrize("pays", [None, (-0.5, -2.0), (1.5, 0.3)], ids=str)
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("side", [0, 1])
def test_ends_are_the_least_and_the_most_of_all_that_is_possible(pays, ends, side):
    block, policy = random_block(np.random.default_rng(1), ends=ends), np.array([0, 1, 0])
    found = Extreme(np.eye(2)[policy][None], 0.9, None, side, pays, ends).values(block)
    for i in range(3):
        worst = (np.min, np.max)[side](list(every_choice(block, i, policy, 0.9, pays, ends)), axis=0)
        np.testing.assert_allclose(found[i], worst, atol=1e-9)


@pytest.mark.parametrize("side", [0, 1])
def test_many_decisions_are_worth_what_all_are(side):
    block, policy = random_block(np.random.default_rng(2)), np.eye(2)[[0, 1, 0]][None]
    forever, long = (Extreme(policy, 0.7, horizon, side, (0.5, -1.0), True).values(block) for horizon in (None, 80))
    np.testing.assert_allclose(forever, long, atol=1e-8)


def test_it_holds_the_credible_interval_and_shrinks_with_rows():
    batch = logged(4, episodes=30)
    learned = learn(batch, discount=0.9)
    found = outer(learned.case, learned.policy.actions, credible=(-0.1, 0.1), draws=60)
    assert found.low <= -0.1
    assert found.high >= 0.1
    counts, known, rules = learned.counts, learned.case.by_pair, Rules(discount=0.9)
    plenty = type(counts)(counts.transitions * 400, counts.ended * 400)
    few, narrow = (
        outer(Case(Data(table, known), rules), learned.policy.actions, credible=(0.0, 0.0), draws=60)
        for table in (counts, plenty)
    )
    assert narrow.high - narrow.low < (few.high - few.low) / 3


def test_the_pair_that_nobody_saw_is_named_with_the_rows_it_needs():
    counts = np.zeros((3, 1, 3), dtype=int)
    counts[0, 0, 1], counts[1, 0, 0], counts[2, 0, 2] = 2, 2000, 2000
    case = Case(Data.of(counts, [[0.0], [1.0], [-3.0]], state_names=("busy", "calm", "bad")), Rules(discount=0.9))
    found = outer(case, [0, 0, 0], credible=(4.0, 4.5), start=[1.0, 0.0, 0.0], draws=400)
    assert found.low < 0 < found.high
    (only,) = found.thin
    assert (only.state, only.rows) == ("busy", 2)
    assert only.share > 0.9
    wide = (found.high - found.low - 0.5) / 0.5
    assert only.needed == pytest.approx(2.5 * (wide - 1), abs=1)
    assert "(2 rows" in found.lines()[-1]
    assert f"With about {only.needed} more rows of each" in found.lines()[-1]
    assert found.to_json()["wide_because_of"][0]["state"] == "busy"


def test_who_comes_first_is_drawn_again_unless_it_is_said():
    room = np.repeat([0, 1], [4000, 6000])
    batch = Batch(room, 0 * room, room, 2, 1, reward=room, episode=np.repeat(np.arange(20), 500))
    case = learn(batch, discount=0.5, reward=[[0.0], [1.0]]).case
    said, drawn = (outer(case, [0, 0], credible=(1.2, 1.2), start=start, draws=400) for start in ([0.4, 0.6], None))
    assert said.high - said.low < 0.02
    assert drawn.high - drawn.low == pytest.approx(2 * 2 * 1.64 * np.sqrt(0.4 * 0.6 / 20), rel=0.2)


def test_words_say_when_it_is_not_wide_and_when_many_pairs_are_thin():
    assert "not much wider" in Outer(0.0, 1.5, (0.0, 1.0), 10, 0.9, ()).lines()[-1]
    assert "there are few rows" in Outer(0.0, 9.0, (0.0, 1.0), 10, 0.9, ()).lines()[-1]


def test_without_a_bound_there_is_no_interval():
    learned = learn(logged(4), discount=1.0, horizon=3)
    assert np.isfinite(outer(learned.case, learned.policy.actions, credible=(0.0, 0.0), draws=5).low)
    with pytest.raises(InputError, match="set a horizon"):
        outer(learned.case.ruled(horizon=None), learned.policy.first.actions, credible=(0.0, 0.0))
