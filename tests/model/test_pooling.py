"""Pooling along chains of groups: means, errors of rows left out, and who is near."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import Batch
from certeq.data.positions import Positions
from certeq.model import pooling
from certeq.model.rewards import estimate
from naive import left_out_error, pooled_reward, steps_apart
from strategies import SEEDS

PLACES = Positions([[0, 0], [0, 1], [1, 0], [2, 1], [np.nan, np.nan]], ("line", "label"))
NONE = [None if not ok else place for ok, place in zip(PLACES.placed, PLACES.places.tolist(), strict=True)]
S, A = 5, 2
ALL = {(s, a) for s in range(S) for a in range(A)}


def around(s, steps):
    return {o for o in range(S) if o == s or steps_apart(NONE, PLACES.axes, s, o) <= steps}


def groups(s, a, how):
    near = [around(s, step) for step in (1, 2)]
    if how == "states":
        return [{(s, a)}, {(s, b) for b in range(A)}, *({(o, b) for o in n for b in range(A)} for n in near), ALL]
    return [{(s, a)}, *({(o, a) for o in n} for n in near), {(o, a) for o in range(S)}, ALL]


def drawn(seed, n=30):
    rng = np.random.default_rng(seed)
    state, action, reward = rng.integers(S, size=n), rng.integers(A, size=n), rng.normal(1, 2, n)
    rows, total = np.zeros((S, A), dtype=np.int64), np.zeros((S, A))
    np.add.at(rows, (state, action), 1)
    np.add.at(total, (state, action), reward)
    return rows, total, list(zip(state.tolist(), action.tolist(), reward.tolist(), strict=True))


@pytest.mark.parametrize(("how", "chain"), [("states", pooling.through_states), ("actions", pooling.through_actions)])
@given(SEEDS, st.lists(st.sampled_from([0.0, 1e-20, 0.5, 4.0]), min_size=4, max_size=4), st.integers(1, 30))
def test_a_chain_is_followed_as_in_a_loop_over_rows(how, chain, seed, strengths, n):
    rows, total, listed = drawn(seed, n)
    found = pooling.blend(chain(rows, total, PLACES), strengths)
    for s, a in ALL:
        assert found[s, a] == pytest.approx(pooled_reward(listed, groups(s, a, how), strengths))


@pytest.mark.parametrize(("how", "chain"), [("states", pooling.through_states), ("actions", pooling.through_actions)])
@given(SEEDS, st.lists(st.sampled_from([0.0, 1e-20, 0.5, 4.0]), min_size=4, max_size=4), st.integers(2, 30))
def test_errors_of_rows_left_out_are_those_of_leaving_them_out(how, chain, seed, strengths, n):
    """Pairs have one row or two, and those with two scatter alike, as the formula takes them to."""
    rows, total, listed = drawn(seed, n)
    listed = [row for i, row in enumerate(listed) if sum(other[:2] == row[:2] for other in listed[:i]) < 2]
    own = {pair: [r for s, a, r in listed if (s, a) == pair] for pair in ALL}
    apart = {pair: (r[0] - r[1]) ** 2 / 2 for pair, r in own.items() if len(r) == 2}
    noise = np.mean(list(apart.values())) if apart else 0.0  # every pair is made to scatter like the average
    listed = [(s, a, r) for s, a, r in listed if (s, a) not in apart]
    for (s, a), rewards in own.items():
        if (s, a) in apart:
            listed += [(s, a, np.mean(rewards) + sign * np.sqrt(noise / 2)) for sign in (-1, 1)]
    rows, total = np.zeros((S, A), dtype=np.int64), np.zeros((S, A))
    for s, a, r in listed:
        rows[s, a] += 1
        total[s, a] += r
    if len(listed) < 2:
        return
    found = pooling.left_out(chain(rows, total, PLACES), strengths, np.asarray(noise))
    chains = {pair: groups(*pair, how) for pair in ALL}
    assert float(found) == pytest.approx(left_out_error(listed, chains, strengths))


@pytest.mark.parametrize("steps", [1, 2])
def test_neighborhoods_are_those_of_counting_steps(steps):
    axes = ("ring", "line", "label")
    places = [[r, c, k] for r in range(6) for c in range(3) for k in range(2) if (r + c + k) % 4]
    found = pooling.neighborhood(Positions(places, axes), steps).T
    everyone = range(len(places))
    for i in everyone:
        expected = [j for j in everyone if steps_apart(places, axes, i, j) <= steps]
        assert found[i].tolist() == expected + [len(places)] * (found.shape[1] - len(expected))


@pytest.mark.parametrize("chain", [pooling.through_states, pooling.through_actions])
@given(SEEDS, st.sampled_from([0.0, 0.3, 5.0]), st.integers(2, 60))
def test_strengths_are_sought_in_turn_each_given_the_other_twice(chain, seed, noise, n):
    rows, total, _ = drawn(seed, n)
    groups, noise = chain(rows, total, PLACES), np.asarray(noise)

    def error(inner, outer):
        return float(pooling.left_out(groups, [inner, *[outer] * (len(groups) - 2)], noise))

    inner, outer = float(noise > 0), 1.0
    for _ in range(2):
        least = np.inf
        for strength in pooling.STRENGTHS:
            if error(inner, strength) < least * pooling.SAME:
                outer, least = strength, error(inner, strength)
        least = np.inf
        for strength in pooling.STRENGTHS if noise else (0.0,):
            if error(strength, outer) < least * pooling.SAME:
                inner, least = strength, error(strength, outer)
    found = pooling.best(groups, noise)
    np.testing.assert_allclose(found.error, error(inner, outer), rtol=1e-12)
    np.testing.assert_allclose(found.mean, pooling.blend(groups, [inner, *[outer] * (len(groups) - 2)]))


@given(SEEDS)
def test_several_data_sets_are_pooled_as_each_by_itself(seed):
    (one, earned, _), (other, more, _) = drawn(seed), drawn(seed + 1, 60)
    rows, total, noise = np.stack([one, other]), np.stack([earned, more]), np.array([1.0, 3.0])
    together = pooling.best(pooling.through_states(rows, total, PLACES), noise)
    for i in range(2):
        alone = pooling.best(pooling.through_states(rows[i], total[i], PLACES), noise[i])
        np.testing.assert_allclose(together.mean[i], alone.mean)
        np.testing.assert_allclose(together.error[i], alone.error)


def smooth(seed, noise, n=600, by_action=False):
    """Rewards that rise along a line of twenty states, seen through noise."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(20, size=n), rng.integers(2, size=n)
    truth = np.sin(np.arange(20) / 4)[:, None] * ([1, -1] if by_action else [1, 1])
    reward = truth[state, action] + noise * rng.standard_normal(n)
    return Batch(state, action, np.roll(state, 1), 20, 2, reward=reward, positions=np.arange(20)), truth


@pytest.mark.parametrize("by_action", [False, True])
def test_neighbors_help_where_rewards_are_smooth_and_auto_finds_out(by_action):
    errors = dict.fromkeys(("none", "state", "overall", "near", "auto"), 0.0)
    for seed in range(5):
        batch, truth = smooth(seed, 1.0, n=120, by_action=by_action)
        for pool in errors:
            errors[pool] += ((estimate(batch, pool=pool).mean - truth) ** 2).mean()
    assert errors["near"] < 0.7 * min(errors["none"], errors["state"], errors["overall"])
    assert errors["auto"] < 1.1 * errors["near"]


def test_auto_says_what_it_took_and_takes_nothing_where_rows_of_a_pair_agree():
    assert estimate(smooth(0, 1.0, n=120)[0], pool="auto").pool == "near"
    found = estimate(smooth(0, 0.0)[0], pool="auto")
    seen = found.visits > 0
    np.testing.assert_allclose(found.mean[seen], found.raw[seen], rtol=1e-12)


@given(SEEDS)
def test_renaming_states_and_actions_changes_nothing(seed):
    batch, _ = smooth(seed, 0.5, n=100)
    rng = np.random.default_rng(seed)
    states, actions = rng.permutation(20), rng.permutation(2)
    renamed = Batch(
        states[batch.state], actions[batch.action], states[batch.next_state], 20, 2, reward=batch.reward,
        positions=np.argsort(states),
    )  # fmt: skip
    one, other = (estimate(rows, pool="auto") for rows in (batch, renamed))
    np.testing.assert_allclose(one.mean, other.mean[np.ix_(states, actions)], atol=1e-9)
