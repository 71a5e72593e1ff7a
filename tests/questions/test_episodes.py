"""How episodes begin and go on, and who chose the actions."""

import numpy as np
import pytest
from hypothesis import assume, given

from certeq import Batch, InputError, environment, sampling, tally
from certeq.data.order import episodes
from certeq.questions.episodes import behavior, check_whole, starts, watched
from strategies import SEEDS, counts, random_counts


def logged(order=None, **columns):
    """Two episodes: 0 -> 1 -> 2 (cut there) and 2 -> 0 -> end, in the given order of rows."""
    rows = {
        "state": [0, 1, 2, 0],
        "action": [0, 1, 0, 1],
        "next_state": [1, 2, 0, -1],
        "episode": [7, 7, 3, 3],
        "time": [0, 1, 0, 1],
    } | columns
    at = np.arange(4) if order is None else np.array(order)
    taken = {name: None if column is None else np.array(column)[at] for name, column in rows.items()}
    return Batch(**taken, n_states=3, n_actions=2, reward=np.arange(4.0)[at])


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
def test_rows_are_put_in_order_of_episode_and_time(order):
    batch = logged(order)
    found = episodes(batch)
    np.testing.assert_array_equal(batch.state[found.row], [2, 0, 0, 1])
    np.testing.assert_array_equal(found.number, [0, 0, 1, 1])
    np.testing.assert_array_equal(found.step, [0, 1, 0, 1])
    np.testing.assert_array_equal(found.length, [2, 2])
    np.testing.assert_array_equal(found.begin, [0, 2])
    np.testing.assert_array_equal(found.last, [1, 3])
    check_whole(batch, found)


def test_without_a_time_rows_are_taken_as_they_stand():
    batch = logged([2, 0, 3, 1], time=None)
    np.testing.assert_array_equal(batch.state[episodes(batch).row], [2, 0, 0, 1])


@given(SEEDS)
def test_simulated_episodes_are_whole_however_the_rows_are_shuffled(seed):
    batch = sampling.trajectories(environment("river_swim"), 4, 5, random_length=True, rng=seed)
    assume(len(batch))
    mixed = np.random.default_rng(seed).permutation(len(batch))
    columns = {name: getattr(batch, name)[mixed] for name in ("state", "action", "next_state", "episode", "time")}
    shuffled = Batch(**columns, n_states=6, n_actions=2)
    check_whole(shuffled, episodes(shuffled))
    np.testing.assert_array_equal(shuffled.state[episodes(shuffled).row], batch.state)
    first = batch.state[batch.time == 0]
    np.testing.assert_allclose(starts(shuffled), np.bincount(first, minlength=6) / len(first))


BROKEN = {
    "a next state that is not the next row's": (
        {"next_state": [2, 2, 0, -1]},
        r"Row 0 leads to state '2', but .* row 1, .* Gaps in all: 1",
    ),
    "an episode that goes on after its end": (
        {"next_state": [-1, 2, 0, -1]},
        "Row 0 ends the episode, but the next row",
    ),
    "a step that is missing": ({"time": [0, 2, 0, 1]}, r"Rows 0 and 1 have times 0 and 2"),
    "two rows at one time": ({"time": [0, 0, 0, 0]}, r"Rows 2 and 3 have times 0 and 0"),
}


@pytest.mark.parametrize(("columns", "says"), BROKEN.values(), ids=BROKEN)
def test_episodes_with_gaps_are_refused_by_row(columns, says):
    batch = logged(**columns)
    with pytest.raises(InputError, match=says):
        check_whole(batch, episodes(batch))


def test_rows_that_are_in_no_episode_are_refused():
    with pytest.raises(InputError, match="not in episodes"):
        episodes(logged(episode=None))
    with pytest.raises(InputError, match="one data set"):
        episodes(Batch([0], [0], [0], 1, 1, episode=[0], data_set=[0], n_data_sets=1))
    with pytest.raises(InputError, match="no rows"):
        episodes(Batch([], [], [], 1, 1, episode=[]))


def test_episodes_begin_where_their_first_rows_are():
    np.testing.assert_allclose(starts(logged()), [0.5, 0, 0.5])
    np.testing.assert_allclose(starts(logged(episode=None)), [0.5, 0.25, 0.25])
    np.testing.assert_allclose(starts(Batch([], [], [], 4, 1)), 0.25)


@given(counts())
def test_the_behavior_is_how_often_each_action_was_taken(table):
    found = behavior(table)
    for s in range(table.n_states):
        total = table.visits[s].sum()
        wanted = table.visits[s] / total if total else np.full(table.n_actions, 1 / table.n_actions)
        np.testing.assert_allclose(found[s], wanted)


def test_smoothing_adds_rows_to_each_state():
    table = tally([0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0], n_states=3, n_actions=2)
    np.testing.assert_allclose(behavior(table, smoothing=1.0), [[2.5 / 4, 1.5 / 4], [0.5 / 2, 1.5 / 2], [0.5, 0.5]])
    with pytest.raises(InputError, match="smoothing"):
        behavior(random_counts(0, 2, 2), smoothing=-1.0)


def cut(lengths, ends):
    """Episodes of such lengths in one state; some end after their last row, the others are watched no longer."""
    number = np.repeat(np.arange(len(lengths)), lengths)
    last = np.cumsum(lengths) - 1
    after = np.zeros(len(number), dtype=int)
    after[last[np.array(ends)]] = -1
    return Batch(np.zeros_like(after), np.zeros_like(after), after, 1, 1, episode=number)


def test_values_are_of_what_was_watched_where_much_of_the_time_was_not():
    never = [False] * 4
    assert watched(cut([3, 5, 9, 20], never), 0.99) == 5  # half of them for no longer
    assert watched(cut([3, 5, 9, 20], never), 0.1) is None  # nothing much counts later
    assert watched(cut([3, 5, 9, 20], [True] * 4), 0.99) is None  # all of them ended
    assert watched(cut([3, 5, 9, 20], [True, False, True, False]), 0.99) == 5
    assert watched(cut([3] * 40, [True] * 39 + [False]), 0.99) is None  # one that was cut off is little
    assert watched(cut([3, 5, 9, 20], never), 1.0) == 5
    assert watched(Batch([0], [0], [0], 1, 1), 0.99) is None
    assert watched(None, 0.99) is None
