"""An MDP is checked when it is born."""

import numpy as np
import pytest

from certeq import MDP, InputError
from strategies import random_model

T, R, _ = random_model(0, 3, 2)


def test_what_is_not_said_is_uniform_or_a_number():
    mdp = MDP(T, R, 0.9)
    assert (mdp.n_states, mdp.n_actions, mdp.batch, mdp.discount) == (3, 2, (), 0.9)
    np.testing.assert_allclose(mdp.start, 1 / 3)
    assert mdp.state_names == ("0", "1", "2")
    assert mdp.action_names == ("0", "1")


def test_leading_axes_of_either_part_make_a_batch():
    assert MDP(np.stack([T, T]), R, 0.9).batch == (2,)
    assert MDP(T, np.stack([R, R, R]), 0.9).batch == (3,)
    assert MDP(np.stack([T, T])[:, None], np.stack([R, R, R]), 0.9).batch == (2, 3)


BAD = {
    "bad row": ({"transition": 2 * T}, "state 0, action 0 sums to 2"),
    "shared rows": ({"transition": T[:1]}, "needs a row for each of its 3 states"),
    "NaN reward": ({"reward": np.where(R[1, 1] == R, np.nan, R)}, r"reward\[1, 1\] is nan"),
    "reward by state": ({"reward": R[:, 0]}, r"need the shape \(..., 3, 2\); got \(3,\)"),
    "discount": ({"discount": 1.01}, r"discount must lie between 0 and 1; discount is 1\.01"),
    "several discounts": ({"discount": [0.5, 0.9]}, "discount"),
    "start of wrong size": ({"start": [0.5, 0.5]}, r"start distribution needs 3 probabilities"),
    "start that does not add up": ({"start": [0.5, 0.5, 0.5]}, r"sum 1\.5"),
    "negative start": ({"start": [-0.5, 0.5, 1]}, r"start\[0\] is -0\.5"),
    "names": ({"state_names": ("a", "b")}, "state_names needs 3 different names"),
    "batches that do not fit": ({"transition": np.stack([T, T]), "reward": np.stack([R, R, R])}, r"\(2,\).*\(3,\)"),
}


@pytest.mark.parametrize(("wrong", "says"), BAD.values(), ids=BAD)
def test_bad_parts_are_named(wrong, says):
    with pytest.raises(InputError, match=says):
        MDP(**{"transition": T, "reward": R, "discount": 0.9} | wrong)
