import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.data.batch import ENDED
from certeq.data.reading import rollout
from certeq.worlds import river_swim

gymnasium = pytest.importorskip("gymnasium")


class Counter(gymnasium.Env):
    """Counts up to five; a wrong action ends it at once."""

    observation_space = gymnasium.spaces.Dict(
        {"n": gymnasium.spaces.Discrete(6), "x": gymnasium.spaces.Box(0, 9, (2,))}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        return self.seen(), {}

    def seen(self):
        return {"n": self.n, "x": np.array([self.n, 0.5], dtype=np.float32)}

    def step(self, action):
        self.n += 1
        return self.seen(), float(action), action == 1, self.n == 5, {}


def test_rows_are_those_of_the_environment():
    batch = rollout(Counter(), lambda seen: int(seen["n"] == 2), episodes=2, bins={"obs_x_1": "edges:0"})
    assert batch.recipe.column_names == ("obs_n", "obs_x_0", "obs_x_1")
    assert batch.state.tolist() == [0, 1, 2] * 2
    assert batch.next_state.tolist() == [1, 2, ENDED] * 2
    assert batch.reward.tolist() == [0, 0, 1] * 2
    assert batch.episode.tolist() == [0] * 3 + [1] * 3
    assert batch.time.tolist() == [0, 1, 2] * 2


def test_the_last_transition_of_a_cut_episode_is_a_real_one():
    batch = rollout(Counter(), lambda _: 0, episodes=1, bins={"obs_x_1": "edges:0"})
    assert batch.next_state.tolist() == [1, 2, 3, 4, 5]
    short = rollout(Counter(), lambda _: 0, episodes=1, max_steps=2, bins={"obs_x_1": "edges:0"})
    assert short.next_state.tolist() == [1, 2]
    assert short.dropped == {}


def test_random_actions_follow_the_seed():
    name = "certeq.worlds.gym:certeq/RiverSwim-v0"
    one, two, other = (rollout(name, episodes=5, rng=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.action, two.action)
    np.testing.assert_array_equal(one.next_state, two.next_state)
    assert len(one) != len(other) or (one.action != other.action).any()
    assert set(one.state_names) <= {str(i) for i in range(river_swim().n_states)}


def test_what_cannot_be_done_is_said():
    with pytest.raises(InputError, match="does not know the environment 'Nothing-v0'"):
        rollout("Nothing-v0", episodes=1)
    with pytest.raises(InputError, match="episodes must be at least 1"):
        rollout(Counter(), episodes=0)
    with pytest.raises(InputError, match="is an amount and not a choice"):
        rollout("Pendulum-v1", episodes=1)
