import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.worlds import loop


def test_without_slips_the_two_loops_are_walked_for_certain():
    T = loop(slip=0).transition.array
    assert set(np.unique(T)) == {0, 1}
    near, far = [0], [0]
    for path, action in ((near, 0), (far, 1)):
        while len(path) == 1 or path[-1] != 0:
            path.append(int(T[path[-1], action].argmax()))
    assert near == [0, 1, 2, 3, 4, 0]
    assert far == [0, 5, 6, 7, 8, 0]
    assert (T[5:, 0, 0] == 1).all()  # a falls back from the far loop
    np.testing.assert_array_equal(T[1:5, 0], T[1:5, 1])


def test_rewards_attach_to_leaving_the_last_state_of_a_loop():
    reward = loop().reward
    np.testing.assert_array_equal(reward, np.repeat([[0], [0], [0], [0], [1], [0], [0], [0], [2]], 2, axis=1))


def test_it_starts_at_the_crossing():
    np.testing.assert_array_equal(loop().start, np.eye(9)[0])


def test_known_values_with_the_papers_slips(optimal_values):
    best, policy = optimal_values(loop())
    expected = [21.295, 21.426, 21.642, 21.861, 22.082, 21.538, 21.909, 22.409, 23.082]
    np.testing.assert_allclose(best, expected, atol=6e-4)
    assert (policy[[0, 5, 6, 7]] == 1).all()


def test_known_value_without_slips(optimal_values):
    best, _ = optimal_values(loop(slip=0))
    assert best[0] == pytest.approx(2 * 0.99**4 / (1 - 0.99**5))
    assert best[0] == pytest.approx(39.2, abs=5e-5)


def test_half_a_slip_takes_the_intended_action_three_times_in_four():
    T = loop(slip=0.5).transition.array
    assert T[0, 0, 1] == pytest.approx(0.75)
    assert T[0, 0, 5] == pytest.approx(0.25)


@given(slip=st.floats(0, 1))
def test_slips_keep_the_mass(slip):
    np.testing.assert_allclose(loop(slip=slip).transition.mass(), 1, atol=1e-12)


def test_always_slipping_makes_the_actions_the_same():
    T = loop(slip=1).transition.array
    np.testing.assert_array_equal(T[:, 0], T[:, 1])


@pytest.mark.parametrize("slip", [-0.1, 1.5, float("nan"), "much", [0.1, 0.2]])
def test_a_bad_slip_is_named(slip):
    with pytest.raises(InputError, match="slip"):
        loop(slip=slip)
