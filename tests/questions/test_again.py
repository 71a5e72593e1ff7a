"""Data drawn again: each draw is what learning from the drawn episodes gives, and models come from its posterior."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from certeq import Batch
from certeq.data.order import unit_of
from certeq.learning.learned import learn
from certeq.questions.again import EACH, count_again, draw_bagged, drawn_again, starts_again
from certeq.questions.draws import draw_models
from certeq.questions.episodes import starts
from certeq.questions.posterior import posterior
from logbook import logged, taken
from strategies import SEEDS, all_outcomes, as_sparse

WAYS = (
    {"discount": 0.9},
    {"discount": 0.9, "regularizer": "evidence", "reward_pool": "state"},
    {"discount": 0.9, "reward_by": "next_state", "regularizer": "uniform_prior", "magnitude": 2.0},
    {"discount": 0.9, "reward": [[1, 0.9], [0, 0.1], [0.5, 0.5]]},
)


def drawn_rows(batch, seed):
    """Rows of the episodes that are drawn, written out as the module promises."""
    random = np.random.default_rng(seed)
    if batch.episode is None:
        return random.integers(len(batch), size=len(batch))
    names = np.unique(batch.episode)
    return np.concatenate(
        [np.flatnonzero(batch.episode == names[i]) for i in random.integers(len(names), size=len(names))]
    )


@pytest.mark.parametrize("way", WAYS, ids=str)
@settings(max_examples=10)
@given(SEEDS)
def test_a_case_drawn_again_is_what_the_drawn_episodes_make(way, seed):
    batch = logged(seed)
    learned = learn(batch, **way)
    others = [np.random.default_rng(other) for other in (seed + 1, seed, seed + 2)]
    case, often = drawn_again(learned.case, batch, others)
    rows = taken(batch, np.repeat(np.arange(len(batch)), often[1]))
    again = taken(batch, drawn_rows(batch, seed))
    assert sorted(zip(rows.state, rows.action, rows.next_state, strict=True)) == sorted(
        zip(again.state, again.action, again.next_state, strict=True)
    )
    if batch.ended.any() != again.ended.any():
        return  # the outcomes would no longer be those of the data
    wanted = learn(again, **way).case
    np.testing.assert_allclose(case.model.transition.dense()[1], wanted.model.transition.dense(), atol=1e-12)
    np.testing.assert_array_equal(case.model.allowed[1], wanted.model.allowed)
    np.testing.assert_allclose(case.table[1] if case.table.ndim > 2 else case.table, wanted.table, atol=1e-9)


def test_rows_are_drawn_where_there_are_no_episodes():
    batch = replace(logged(3, ends=False), episode=None)
    case, _ = drawn_again(learn(batch, discount=0.9).case, batch, [np.random.default_rng(5)])
    wanted = learn(taken(batch, drawn_rows(batch, 5)), discount=0.9)
    np.testing.assert_array_equal(case.data.counts.transitions[0], wanted.counts.transitions)


def test_one_long_episode_is_drawn_again_by_its_sections():
    batch = logged(3, episodes=1, length=300, ends=False)
    learned = learn(batch, discount=0.9)
    _, often = drawn_again(learned.case, batch, np.random.default_rng(5).spawn(2))
    assert (often[0] != often[1]).any()
    np.testing.assert_array_equal(
        starts_again(batch, often), [starts(batch)] * 2
    )  # that a first row is not drawn is no matter
    unit = unit_of(batch)
    for times in often:
        assert times.sum() == pytest.approx(len(batch), abs=len(batch) / 4)
        assert all(len(set(times[unit == k])) == 1 for k in np.unique(unit))


@given(SEEDS)
def test_counting_again_is_counting_the_drawn_rows(seed):
    batch = logged(seed)
    like = learn(batch).counts
    often = np.random.default_rng(seed).integers(3, size=len(batch))
    wanted = np.zeros(all_outcomes(like).shape, dtype=int)
    for s, a, n, times in zip(batch.state, batch.action, batch.next_state, often, strict=True):
        wanted[s, a, n] += times  # ending is -1, the last outcome
    np.testing.assert_array_equal(all_outcomes(count_again(batch, often, like)), wanted)
    sparse = count_again(batch, often, as_sparse(like))
    assert sparse.sparse
    np.testing.assert_array_equal(sparse.visits, wanted.sum(axis=-1))


def test_so_many_models_are_drawn_from_as_many_data_sets_as_that_takes():
    learned = learn(logged(4), discount=0.9)
    parts = [part for bag in draw_bagged(learned.case, 2 * EACH + 3, rng=1) for part in bag.draws]
    assert [len(part.magnitude) for part in parts] == [EACH, EACH, 3]
    assert any((one.counts != parts[0].counts).any() for one in parts[1:])
    assert all(part.counts.sum() > 0 for part in parts)


def test_values_are_those_of_the_models_drawn_so_and_spread_more_than_one_posterior():
    batch = logged(4, episodes=30)
    learned = learn(batch, discount=0.9)
    told = {"rewards": learned.rewards, "batch": batch, "draws": 400, "rng": 2}
    what = (learned.model, learned.table, 0.9, {"advice": learned.policy.actions})
    alone, bagged = posterior(*what, **told), posterior(*what, **told, case=learned.case)
    first = next(draw_bagged(learned.case, 400, rng=2)).draws[0].block(0)
    state = np.arange(batch.n_states)
    advice = np.maximum(learned.policy.actions, 0)
    chain, gain = first[0][0, state, advice], first[1][0, state, advice]
    if (learned.policy.actions >= 0).all():
        value = np.linalg.solve(np.eye(batch.n_states) - 0.9 * chain, gain)
        np.testing.assert_allclose(bagged.state_values[0, 0], value)
    assert bagged.draws == 400
    assert bagged.values.std() > 1.1 * alone.values.std()
    np.testing.assert_array_equal(bagged.values, posterior(*what, **told, case=learned.case, threads=1).values)


@pytest.mark.parametrize("told", [{"watched": 3}, {"watched": 12}, {"horizon": 4}, {}], ids=str)
def test_flattery_is_what_advice_promises_too_much_where_it_was_chosen(told):
    """In each data set drawn again, what is advised there is worth more there than in the model of the data."""
    batch = logged(4, episodes=30)
    learned = learn(batch, discount=0.9, horizon=told.get("horizon"))
    found = posterior(
        learned.model, learned.table, 0.9, {"advice": learned.policy.actions},
        rewards=learned.rewards, batch=batch, case=learned.case, draws=3 * EACH, rng=2, **told,
    )  # fmt: skip
    start, apart = starts(batch), []
    for seed in np.random.default_rng(2).spawn(3):
        other = learn(taken(batch, drawn_rows(batch, seed)), discount=0.9, horizon=told.get("horizon")).case
        advice, worth = np.atleast_2d(other.advise().policy), []
        for model, table in ((other.model, other.table), (learned.model, learned.table)):
            value = np.zeros(batch.n_states)
            rows, reward = model.transition.dense(), model.reward(table)
            for t in reversed(range(told.get("horizon") or told.get("watched") or 500)):
                q = reward + 0.9 * rows @ value
                here = advice[t % len(advice)]
                value = np.where(here < 0, q.mean(axis=1), q[np.arange(len(q)), here])
            worth.append(start @ value)
        apart.append(worth[0] - worth[1])
    assert found.flattery == pytest.approx(max(0.0, np.mean(apart)), abs=1e-9)
    assert found.flattery > 0
    assert found.watched == told.get("watched")


def test_counts_alone_are_not_drawn_again():
    learned = learn(logged(4), discount=0.9)
    case = replace(learned.case, data=replace(learned.case.data, batch=None))
    (((only,), other, begun),) = draw_bagged(case, 30, rng=np.random.default_rng(1))
    assert other is None
    assert begun is None
    wanted = draw_models(learned.model, learned.table, 30, rewards=learned.rewards, rng=1)
    np.testing.assert_array_equal(only.block(0)[0], wanted.block(0)[0])


@given(SEEDS)
def test_who_comes_first_is_drawn_with_the_episodes(seed):
    batch = logged(seed)
    shuffled = taken(batch, np.random.default_rng(seed).permutation(len(batch)))
    for rows in (batch, replace(shuffled, episode=None)):
        often = drawn_again(learn(rows, discount=0.9).case, rows, np.random.default_rng(seed).spawn(3))[1]
        for begun, times in zip(starts_again(rows, often), often, strict=True):
            wanted = np.zeros(rows.n_states)
            for i in range(len(rows)):
                episode = None if rows.episode is None else rows.episode[i]
                if episode is None or not (rows.episode[:i] == episode).any():
                    wanted[rows.state[i]] += times[i]
            np.testing.assert_allclose(begun, wanted / wanted.sum())


def test_a_start_that_is_said_is_taken_as_known_and_one_that_is_not_makes_values_less_sure():
    """Two rooms that nobody leaves, one of which pays: what it is worth to come is where one comes in."""
    room, who = np.repeat([0, 1], [40, 60]), np.repeat(np.arange(20), 5)
    batch = Batch(room, np.zeros(100, dtype=int), room, 2, 1, reward=room, episode=who)
    learned = learn(batch, discount=0.9, reward=[[0.0], [1.0]], regularizer="none")
    what = (learned.model, learned.table, 0.9, {"advice": learned.policy.actions})
    told = {"batch": batch, "case": learned.case, "draws": 2000, "rng": 2}
    said, drawn = posterior(*what, **told, start=starts(batch)), posterior(*what, **told)
    np.testing.assert_array_equal(said.state_values, drawn.state_values)
    assert said.starts is None
    bags = np.concatenate([bag.starts for bag in draw_bagged(learned.case, 2000, rng=2)])
    np.testing.assert_allclose(drawn.values[0], [v @ b for v, b in zip(said.state_values[0], bags, strict=True)])
    np.testing.assert_allclose(bags.mean(axis=0), [0.4, 0.6], atol=0.05)
    assert bags[:, 1].std() == pytest.approx(np.sqrt(0.4 * 0.6 / 20), rel=0.25)
    assert drawn.values.std() > 1.5 * said.values.std()
