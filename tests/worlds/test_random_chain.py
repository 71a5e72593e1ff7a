import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.worlds import random_chain


@given(data=st.data(), n_states=st.integers(1, 12), n_actions=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_every_row_has_exactly_the_successors_asked_for(data, n_states, n_actions, seed):
    k = data.draw(st.integers(1, n_states))
    mdp = random_chain(n_states=n_states, n_actions=n_actions, successors=k, rng=seed)
    rows = mdp.transition.array
    assert rows.shape == (n_states, n_actions, n_states)
    assert ((rows > 0).sum(axis=-1) == k).all()
    np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-12)


def test_the_papers_world_has_10_states_2_actions_and_5_successors():
    rows = random_chain(rng=0).transition.array
    assert rows.shape == (10, 2, 10)
    assert ((rows > 0).sum(axis=-1) == 5).all()


@pytest.mark.parametrize(("size", "axes"), [(None, ()), (7, (7,)), ((3, 4), (3, 4))])
def test_size_gives_leading_axes(size, axes):
    mdp = random_chain(size=size, rng=0)
    assert mdp.batch == axes
    assert mdp.transition.shape == (*axes, 10, 2, 10)
    assert mdp.reward.shape == (*axes, 10, 2)


def test_successors_are_chosen_uniformly():
    share = (random_chain(size=2000, rng=0).transition.array > 0).mean(axis=(0, 1, 2))
    np.testing.assert_allclose(share, 0.5, atol=4 * np.sqrt(0.25 / 40_000))


def test_the_worlds_of_a_batch_differ():
    rows = random_chain(size=50, rng=0).transition.array
    assert len({row.tobytes() for row in rows}) == 50


def test_pair_rewards_are_uniform_on_the_unit_interval():
    reward = random_chain(size=2000, rng=0).reward
    assert reward.min() >= 0
    assert reward.max() <= 1
    assert reward.mean() == pytest.approx(0.5, abs=0.01)
    assert reward.var() == pytest.approx(1 / 12, abs=0.005)
    assert (reward[..., 0] != reward[..., 1]).all()


def test_the_bonus_is_one_more_for_action_0_in_state_0():
    plain, bonus = (random_chain(size=5, rewards=r, rng=0).reward for r in ("pair", "bonus"))
    extra = np.zeros((10, 2))
    extra[0, 0] = 1
    np.testing.assert_allclose(bonus - plain, np.broadcast_to(extra, (5, 10, 2)), atol=1e-12)


def test_state_rewards_do_not_depend_on_the_action():
    reward = random_chain(n_actions=3, rewards="state", size=5, rng=0).reward
    assert (reward == reward[..., :1]).all()
    assert len(np.unique(reward)) == 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_states": 0}, "n_states must be at least 1; got 0"),
        ({"n_states": 2.5}, "n_states must be a whole number"),
        ({"n_actions": 0}, "n_actions"),
        ({"successors": 11}, "successors must be between 1 and 10; got 11"),
        ({"rewards": "pairs"}, "rewards must be one of .* Did you mean 'pair'"),
        ({"size": (3, 0)}, "size must be at least 1"),
        ({"size": "many"}, "size must be a whole number"),
    ],
)
def test_a_bad_setting_is_named(settings, message):
    with pytest.raises(InputError, match=message):
        random_chain(**settings)
