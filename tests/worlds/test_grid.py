import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.worlds import grid

SHIFTS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


@given(width=st.integers(1, 5), height=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_a_move_reaches_its_tile_with_the_reliability_of_its_state(width, height, seed):
    mdp = grid(width=width, height=height, rng=seed)
    T = mdp.transition.array
    assert T.shape == (width * height, 4, width * height)
    np.testing.assert_allclose(T.sum(axis=-1), 1, atol=1e-12)
    assert ((T > 0).sum(axis=-1) <= 2).all()
    for s in range(width * height):
        row, column = divmod(s, width)
        success = set()
        for a, name in enumerate(mdp.action_names):
            r, c = row + SHIFTS[name][0], column + SHIFTS[name][1]
            inside = 0 <= r < height and 0 <= c < width
            aim = r * width + c if inside else s
            if T[s, a, aim] < 1:  # otherwise the stray tile happened to be the aim
                success.add(round(T[s, a, aim], 12))
        assert len(success) <= 1


def test_stray_tiles_belong_to_the_pair_and_cover_the_floor():
    T = grid(size=500, rng=0).transition.array
    strays = T[:, 5, 0].copy()  # a tile inside, going north to tile 1
    strays[:, 1] = 0
    assert (strays.sum(axis=0) > 0).sum() == 15


def test_one_tile_pays_one_and_the_rest_little():
    reward = grid(size=300, rng=0).reward
    assert (reward == reward[..., :1]).all()
    assert ((reward[..., 0] == 1).sum(axis=-1) == 1).all()
    small = reward[reward < 1]
    assert small.min() >= -0.5
    assert small.max() <= 0.5
    assert len(np.unique((reward[..., 0] == 1).argmax(axis=-1))) == 16


def test_size_gives_leading_axes():
    mdp = grid(width=3, height=2, size=(2, 5), rng=0)
    assert mdp.batch == (2, 5)
    assert mdp.state_names == ("r0c0", "r0c1", "r0c2", "r1c0", "r1c1", "r1c2")


@pytest.mark.parametrize("setting", ["width", "height"])
def test_a_bad_setting_is_named(setting):
    with pytest.raises(InputError, match=f"{setting} must be at least 1; got 0"):
        grid(**{setting: 0})
