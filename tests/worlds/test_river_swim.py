import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.worlds import river_swim

LEFT, RIGHT = 0, 1


def test_the_papers_river_is_osbands():
    mdp = river_swim()
    T = mdp.transition.array
    assert mdp.action_names == ("left", "right")
    np.testing.assert_array_equal(T[:, LEFT], np.eye(6)[[0, 0, 1, 2, 3, 4]])
    np.testing.assert_allclose(T[0, RIGHT], [0.4, 0.6, 0, 0, 0, 0])
    np.testing.assert_allclose(T[2, RIGHT], [0, 0.05, 0.6, 0.35, 0, 0])
    np.testing.assert_allclose(T[5, RIGHT], [0, 0, 0, 0, 0.4, 0.6])
    assert mdp.reward[0, LEFT] == 0.005
    assert mdp.reward[5, RIGHT] == 1
    assert (mdp.reward > 0).sum() == 2
    np.testing.assert_array_equal(mdp.start, np.eye(6)[0])


@pytest.mark.parametrize(
    ("discount", "values"),
    [
        (0.99, [37.855, 38.492, 39.694, 41.011, 42.383, 43.802]),
        (0.95, [4.669, 5.079, 5.901, 6.906, 8.088, 9.473]),
    ],
)
def test_known_values(optimal_values, discount, values):
    best, policy = optimal_values(river_swim(discount=discount))
    np.testing.assert_allclose(best, values, atol=6e-4)
    assert (policy == RIGHT).all()


def test_a_short_sight_stays_at_the_bank(optimal_values):
    best, policy = optimal_values(river_swim(discount=0.4995))
    np.testing.assert_allclose(best, [0.00999, 0.00650, 0.02460, 0.09763, 0.38757, 1.53853], atol=6e-6)
    np.testing.assert_array_equal(policy, [LEFT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT])


def test_the_older_river_is_strehls():
    mdp = river_swim(variant="strehl")
    T = mdp.transition.array
    np.testing.assert_allclose(T[0, RIGHT], [0.7, 0.3, 0, 0, 0, 0])
    np.testing.assert_allclose(T[2, RIGHT], [0, 0.1, 0.6, 0.3, 0, 0])
    np.testing.assert_allclose(T[5, RIGHT], [0, 0, 0, 0, 0.7, 0.3])
    assert (mdp.reward[0, LEFT], mdp.reward[5, RIGHT]) == (5, 10_000)
    np.testing.assert_array_equal(mdp.start, [0, 0.5, 0.5, 0, 0, 0])


@given(variant=st.sampled_from(["osband", "strehl"]), n_states=st.integers(3, 40))
def test_a_river_of_any_length_keeps_its_mass_and_moves_by_at_most_one(variant, n_states):
    T = river_swim(variant=variant, n_states=n_states).transition.array
    np.testing.assert_allclose(T.sum(axis=-1), 1, atol=1e-12)
    s, _, then = np.nonzero(T)
    assert (np.abs(s - then) <= 1).all()


def test_the_shortest_rivers():
    T = river_swim(n_states=2).transition.array
    np.testing.assert_allclose(T[:, RIGHT], [[0.4, 0.6], [0.4, 0.6]])
    with pytest.raises(InputError, match="n_states must be at least 2; got 1"):
        river_swim(n_states=1)
    with pytest.raises(InputError, match="n_states must be at least 3; got 2"):
        river_swim(variant="strehl", n_states=2)


def test_an_unknown_variant_is_named():
    with pytest.raises(InputError, match=r"variant must be one of 'osband', 'strehl'; got 'ozband'\. Did you mean"):
        river_swim(variant="ozband")
