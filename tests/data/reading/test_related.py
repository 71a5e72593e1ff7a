"""Other rows in terms of a batch that was read before."""

import numpy as np
import pytest
from hypothesis import given

from certeq import InputError, environment, read, sampling
from certeq.data.batch import ENDED
from certeq.data.reading import UNRELATED, related
from strategies import SEEDS

LONG = {
    "episode": [1, 1, 1, 2, 2, 2],
    "time": [0, 1, 2, 0, 1, 2],
    "state": ["A", "B", "A", "B", "B", "C"],
    "action": ["x", "y", "x", "y", "x", "y"],
    "reward": [1, 2, 3, 4, 5, 6],
    "done": [0, 0, 1, 0, 0, 0],
}
EXPLICIT = {
    "state": ["A", "B", "C"],
    "action": ["x", "y", "x"],
    "reward": [1, 2, 3],
    "next_state": ["B", "C", None],
    "done": [0, 0, 1],
}


def agrees(source, batch, **told):
    for found, own in zip(related(source, batch, **told), (batch.state, batch.action, batch.next_state), strict=True):
        np.testing.assert_array_equal(found, own)


@pytest.mark.parametrize("source", [LONG, EXPLICIT])
def test_a_batch_is_related_to_itself(source):
    agrees(source, read(source))


@given(SEEDS)
def test_simulated_rows_with_bins_are_related_to_themselves(seed):
    rng = np.random.default_rng(seed)
    source = {
        "episode": np.repeat([0, 1], 20),
        "time": np.tile(np.arange(20), 2),
        "x": rng.standard_normal(40),
        "y": rng.integers(3, size=40),
        "action": rng.integers(2, size=40),
        "reward": rng.random(40),
    }
    agrees(source, read(source))


def test_unknown_states_and_actions_are_unrelated_and_endings_are_endings():
    batch = read(EXPLICIT)
    other = {
        "state": ["A", "Z", "A", "C"],
        "action": ["x", "x", "z", "y"],
        "reward": [0, 0, 0, 0],
        "next_state": ["Z", "A", "B", None],
        "done": [0, 0, 0, 1],
    }
    state, action, following = related(other, batch)
    assert state.tolist() == [0, UNRELATED, 0, 2]
    assert action.tolist() == [0, 0, UNRELATED, 1]
    assert following.tolist() == [UNRELATED, 0, 1, ENDED]


def test_bins_are_those_of_the_batch_not_of_the_other_rows():
    source = {
        "episode": [1] * 9,
        "time": range(9),
        "x": np.linspace(0, 1, 9) + 0.5,
        "action": ["a"] * 9,
        "reward": range(9),
    }
    batch = read(source)
    far = source | {"x": np.linspace(100, 200, 9)}
    state, _, following = related(far, batch)
    assert set(state) == set(following) == {batch.n_states - 1}


def test_columns_are_named_as_for_reading():
    renamed = {f"my {name}": column for name, column in LONG.items()}
    told = {role: f"my {role}" for role in LONG}
    agrees(renamed, read(renamed, **told), **told)
    with pytest.raises(InputError, match="which column is the action"):
        related(renamed, read(renamed, **told))


def test_a_batch_that_was_no_table_cannot_be_related_to():
    simulated = sampling.trajectories(environment("loop"), 2, 2, rng=0)
    with pytest.raises(InputError, match="only to a batch that was read from a table"):
        related(LONG, simulated)


def test_gaps_are_treated_as_told():
    batch = read(LONG)
    gap = {name: column[:3] for name, column in LONG.items()} | {"time": [0, 1, 5]}
    with pytest.raises(InputError, match="gap"):
        related(gap | {"time": [0, 1, 5, 6, 7], **{n: [*gap[n], *gap[n][:2]] for n in gap if n != "time"}}, batch)


def test_other_rows_need_no_rewards_when_that_is_said():
    batch = read(EXPLICIT)
    bare = {name: column for name, column in EXPLICIT.items() if name != "reward"}
    agrees(bare, batch, reward=False)
