import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.model.mdp import MDP
from certeq.worlds import ENVIRONMENTS, environment


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_world_is_one_named_mdp_that_never_ends(name):
    mdp = environment(name)
    assert isinstance(mdp, MDP)
    assert mdp.batch == ()
    assert mdp.discount == 0.99
    assert len(set(mdp.state_names)) == mdp.n_states
    assert len(set(mdp.action_names)) == mdp.n_actions
    assert mdp.start.sum() == pytest.approx(1)
    np.testing.assert_allclose(mdp.transition.mass(), 1, atol=1e-12)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@given(discount=st.floats(0, 1))
def test_every_world_takes_a_discount(name, discount):
    assert environment(name, discount=discount).discount == discount


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_world_refuses_a_bad_discount_by_name(name):
    with pytest.raises(InputError, match="discount"):
        environment(name, discount=1.1)


@pytest.mark.parametrize("name", ["random_chain", "grid"])
def test_random_worlds_repeat_with_their_seed(name):
    one, same, other = (environment(name, rng=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.transition.array, same.transition.array)
    np.testing.assert_array_equal(one.reward, same.reward)
    assert (one.reward != other.reward).any()


def test_settings_are_passed_on():
    assert environment("river_swim", n_states=9).n_states == 9


def test_an_unknown_world_is_answered_with_the_nearest_name():
    with pytest.raises(InputError, match="Did you mean 'river_swim'"):
        environment("riverswim")


def test_an_unknown_setting_is_answered_with_the_nearest_name():
    with pytest.raises(InputError, match=r"setting of river_swim named 'n_state'. Did you mean 'n_states'"):
        environment("river_swim", n_state=9)
