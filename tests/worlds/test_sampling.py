import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certeq import sampling
from certeq.base.errors import InputError
from certeq.data.batch import ENDED
from certeq.model.kernel import Mixture, Rows, SparseRows
from certeq.model.mdp import MDP
from certeq.worlds import loop, random_chain, river_swim, stay_or_leave

SAMPLERS = {
    "uniform_pairs": lambda mdp, **k: sampling.uniform_pairs(mdp, 40, **k),
    "equal_pairs": lambda mdp, **k: sampling.equal_pairs(mdp, 3, **k),
    "trajectories": lambda mdp, **k: sampling.trajectories(mdp, 6, 8, **k),
}
ENDING = MDP(np.array([[[0.5, 0.2], [0, 0]], [[0.1, 0.8], [0.3, 0.7]]]), np.array([[1.0, 2.0], [3.0, 4.0]]), 0.9)


def sparse(mdp):
    S, A = mdp.n_states, mdp.n_actions
    return MDP(SparseRows(sp.csr_array(mdp.transition.dense().reshape(S * A, S)), S, A), mdp.reward, mdp.discount)


def frequencies(batch, mdp):
    """Share of each next state, with the end as a last column, (S, A, S + 1), and the visits, (S, A)."""
    S, A = mdp.n_states, mdp.n_actions
    counts = np.zeros((S, A, S + 1))
    np.add.at(counts, (batch.state, batch.action, batch.next_state), 1)  # ENDED is -1, the last column
    visits = counts.sum(axis=-1)
    return counts / np.maximum(visits, 1)[..., None], visits


def assert_follows(batch, mdp):
    """Every frequency within five standard errors of the truth, and never where the truth is 0."""
    T = mdp.transition.dense()
    truth = np.concatenate([T, 1 - T.sum(axis=-1, keepdims=True)], axis=-1)
    truth[np.abs(truth) < 1e-12] = 0
    seen, visits = frequencies(batch, mdp)
    assert (seen[truth == 0] == 0).all()
    error = np.sqrt(truth * (1 - truth) / np.maximum(visits, 1)[..., None])
    assert (np.abs(seen - truth)[visits > 0] <= 5 * error[visits > 0] + 1e-12).all()


def columns(batch):
    names = ("state", "action", "next_state", "reward", "episode", "time", "data_set")
    return {name: getattr(batch, name) for name in names if getattr(batch, name) is not None}


def assert_same(one, other):
    assert columns(one).keys() == columns(other).keys()
    for name, values in columns(one).items():
        np.testing.assert_array_equal(values, columns(other)[name])


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("mdp", [river_swim(), loop(), stay_or_leave(), random_chain(rng=0), ENDING])
def test_next_states_follow_the_truth(sample, mdp):
    assert_follows(sample(mdp, data_sets=800, rng=0), mdp)


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
def test_sparse_worlds_give_the_same_rows_as_dense_ones(sample):
    for mdp in (river_swim(), random_chain(rng=0), ENDING):
        at = {"start": mdp.start} if sample is SAMPLERS["trajectories"] else {}
        one, other = (sample(m, data_sets=50, rng=1, **at) for m in (mdp, sparse(mdp)))
        same = one.next_state == other.next_state if len(one) == len(other) else np.zeros(1)
        assert same.mean() > 0.999  # a running sum over fewer entries may round differently
        assert_follows(other, mdp)


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("data_sets", [None, 5])
def test_the_same_seed_gives_the_same_rows(sample, data_sets):
    mdp = random_chain(rng=0)
    one, same, other = (sample(mdp, data_sets=data_sets, rng=seed) for seed in (7, 7, 8))
    assert_same(one, same)
    assert (one.next_state != other.next_state).any()


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
def test_rewards_and_names_are_the_worlds_own(sample):
    mdp = river_swim()
    batch = sample(mdp, rng=0)
    np.testing.assert_array_equal(batch.reward, mdp.reward[batch.state, batch.action])
    assert (batch.state_names, batch.action_names) == (mdp.state_names, mdp.action_names)
    assert batch.data_set is None
    assert batch.n_data_sets is None


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("data_sets", [None, 3])
def test_data_set_d_of_a_batch_is_drawn_from_world_d(sample, data_sets):
    worlds = random_chain(size=3, rng=0)
    batch = sample(worlds, data_sets=data_sets, rng=0)
    assert batch.n_data_sets == 3
    place = (batch.data_set, batch.state, batch.action)
    assert (worlds.transition.array[(*place, batch.next_state)] > 0).all()
    np.testing.assert_array_equal(batch.reward, worlds.reward[place])
    np.testing.assert_array_equal(np.unique(batch.data_set), [0, 1, 2])


def test_each_world_of_a_batch_keeps_its_own_frequencies():
    worlds = random_chain(size=2, rng=0)
    batch = sampling.uniform_pairs(worlds, 20_000, rng=0)
    for d in range(2):
        mine = batch.data_set == d
        rows = type(batch)(batch.state[mine], batch.action[mine], batch.next_state[mine], n_states=10, n_actions=2)
        assert_follows(rows, MDP(worlds.transition.array[d], worlds.reward[d], 0.9))


def test_worlds_may_share_their_transitions_and_differ_in_reward():
    T = river_swim().transition
    worlds = MDP(T, np.arange(24.0).reshape(2, 6, 2), 0.9)
    batch = sampling.uniform_pairs(worlds, 30, rng=0)
    np.testing.assert_array_equal(batch.reward, worlds.reward[batch.data_set, batch.state, batch.action])


def test_uniform_pairs_are_uniform():
    batch = sampling.uniform_pairs(river_swim(), 24, data_sets=1000, rng=0)
    assert len(batch) == 24_000
    np.testing.assert_array_equal(np.bincount(batch.data_set), 24)
    visits = np.bincount(batch.state * 2 + batch.action, minlength=12)
    chi_square = ((visits - 2000) ** 2 / 2000).sum()
    assert chi_square < 31.3  # 99.9% point at 11 degrees of freedom


def test_equal_pairs_are_equal():
    batch = sampling.equal_pairs(random_chain(rng=0), 4, data_sets=3, rng=0)
    visits = np.zeros((3, 10, 2), dtype=int)
    np.add.at(visits, (batch.data_set, batch.state, batch.action), 1)
    assert (visits == 4).all()


@given(
    episodes=st.integers(0, 5),
    length=st.integers(0, 7),
    data_sets=st.none() | st.integers(0, 4),
    random_length=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_trajectories_are_linked_whole_and_no_longer_than_allowed(episodes, length, data_sets, random_length, seed):
    batch = sampling.trajectories(ENDING, episodes, length, random_length=random_length, data_sets=data_sets, rng=seed)
    seen = list(dict.fromkeys(batch.episode.tolist()))
    assert seen == sorted(seen)
    assert len(seen) <= episodes * (1 if data_sets is None else data_sets)
    for e in seen:
        rows = np.flatnonzero(batch.episode == e)
        assert (np.diff(rows) == 1).all()
        assert len(rows) <= length
        np.testing.assert_array_equal(batch.time[rows], np.arange(len(rows)))
        np.testing.assert_array_equal(batch.next_state[rows][:-1], batch.state[rows][1:])
        assert (batch.next_state[rows][:-1] != ENDED).all()
        if not random_length and len(rows) < length:
            assert batch.next_state[rows][-1] == ENDED
        if data_sets is not None:
            assert (batch.data_set[rows] == e // episodes).all()


def test_episodes_of_a_world_without_end_have_the_full_length():
    batch = sampling.trajectories(river_swim(), 5, 19, data_sets=10, rng=0)
    np.testing.assert_array_equal(np.bincount(batch.episode), [19] * 50)
    np.testing.assert_array_equal(np.bincount(batch.data_set), [95] * 10)
    assert (batch.state[batch.time == 0] == 0).all()  # the river's own start


def test_random_lengths_are_uniform_from_none_to_the_longest():
    batch = sampling.trajectories(river_swim(), 3100, 30, random_length=True, rng=0)
    lengths = np.bincount(batch.episode, minlength=3100)
    times = np.bincount(lengths, minlength=31)
    assert len(times) == 31
    assert ((times - 100) ** 2 / 100).sum() < 59.7  # 99.9% point at 30 degrees of freedom


def test_a_deterministic_behavior_takes_its_actions():
    policy = [0, 1, 1, 0, 1, 0]
    batch = sampling.trajectories(river_swim(), 20, 30, behavior=policy, rng=0)
    np.testing.assert_array_equal(batch.action, np.array(policy)[batch.state])


def test_a_random_behavior_takes_its_probabilities():
    behavior = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [1, 0], [0, 1], [0.3, 0.7]])
    batch = sampling.trajectories(river_swim(), 400, 20, behavior=behavior, start=np.full(6, 1 / 6), data_sets=5, rng=0)
    visits = np.bincount(batch.state, minlength=6)
    share = np.bincount(batch.state, batch.action, minlength=6) / visits
    error = np.sqrt(behavior[:, 1] * behavior[:, 0] / visits)
    assert (np.abs(share - behavior[:, 1]) <= 5 * error).all()


def test_without_a_behavior_actions_are_uniform():
    batch = sampling.trajectories(random_chain(n_actions=3, rng=0), 1000, 10, rng=0)
    np.testing.assert_allclose(np.bincount(batch.action) / len(batch), 1 / 3, atol=0.02)


def test_start_replaces_the_worlds_own():
    batch = sampling.trajectories(river_swim(), 5000, 1, start=[0.5, 0, 0, 0.25, 0.25, 0], rng=0)
    share = np.bincount(batch.state, minlength=6) / 5000
    assert set(np.flatnonzero(share)) == {0, 3, 4}
    np.testing.assert_allclose(share, [0.5, 0, 0, 0.25, 0.25, 0], atol=0.03)


def test_a_row_without_mass_ends_every_episode():
    batch = sampling.trajectories(ENDING, 50, 9, behavior=[1, 1], start=[1, 0], rng=0)
    assert len(batch) == 50
    assert batch.ended.all()


@given(seed=st.integers(0, 2**32), rows=st.integers(1, 30), S=st.integers(1, 9))
def test_only_possible_next_states_are_drawn(seed, rows, S):
    random = np.random.default_rng(seed)
    array = random.random((rows, S, 1, S)) * (random.random((rows, S, 1, S)) < 0.4)
    array /= np.maximum(array.sum(axis=-1, keepdims=True), 1) * random.choice([1, 2], size=(rows, S, 1, 1))
    world, state = random.integers(rows, size=200), random.integers(S, size=200)
    action = np.zeros(200, dtype=np.int64)
    drawn = sampling.draw(Rows(array), state, action, world=world, rng=random)
    on = drawn != ENDED
    assert (array[world[on], state[on], 0, drawn[on]] > 0).all()
    assert (array.sum(axis=-1)[world[~on], state[~on], 0] < 1).all()


class Always(np.random.Generator):
    """Draws nothing but one number, where rounding is most tempted."""

    def __init__(self, number):
        super().__init__(np.random.PCG64(0))
        self.number = number

    def random(self, size=None):
        return np.full(size, self.number)


@pytest.mark.parametrize(("number", "expected"), [(0.0, 1), (np.nextafter(1, 0), 10)])
@pytest.mark.parametrize("tenth", [0.1, 0.1 * (1 - 1e-10), 0.1 * (1 + 1e-10)])
def test_rounding_neither_ends_an_episode_nor_invents_a_next_state(number, expected, tenth):
    worlds = 1000  # many rows, so that the running sum is coarse; the first and last next states are impossible
    array = np.broadcast_to(np.array([0.0] + [tenth] * 10 + [0.0]), (worlds, 12, 1, 12))
    world, state = np.divmod(np.arange(worlds * 12), 12)
    drawn = sampling.draw(Rows(array), state, np.zeros_like(state), world=world, rng=Always(number))
    np.testing.assert_array_equal(drawn, expected)


def test_a_mixture_is_drawn_from_as_the_rows_it_stands_for():
    data = random_chain(rng=0).transition
    weight = np.random.default_rng(1).random((10, 2))
    for target in (Rows(np.full((1, 1, 10), 0.1)), Rows(np.zeros((1, 1, 10))), Rows(data.array.mean(1, keepdims=True))):
        mixture = Mixture(data, weight, target)
        batch = sampling.equal_pairs(MDP(mixture, np.zeros((10, 2)), 0.9), 3000, rng=0)
        assert_follows(batch, MDP(mixture.dense(), np.zeros((10, 2)), 0.9))


def test_a_large_sparse_world_is_sampled_without_being_written_out():
    S = 200_000  # dense, its rows would take 600 GB
    random = np.random.default_rng(0)
    then = random.integers(S, size=(2 * S, 3))
    matrix = sp.csr_array((np.full(6 * S, 0.3), then.ravel(), np.arange(0, 6 * S + 1, 3)), shape=(2 * S, S))
    world = MDP(SparseRows(matrix, S, 2), np.zeros((S, 2)), 0.99)
    batch = sampling.uniform_pairs(world, 20_000, rng=0)
    on = ~batch.ended
    assert (then[batch.state * 2 + batch.action] == batch.next_state[:, None]).any(axis=1)[on].all()
    assert batch.ended.mean() == pytest.approx(0.1, abs=0.011)
    assert len(sampling.trajectories(world, 100, 10, rng=0)) > 100


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
def test_no_data_sets_are_no_rows(sample):
    batch = sample(river_swim(), data_sets=0, rng=0)
    assert len(batch) == 0
    assert batch.n_data_sets == 0


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (lambda: sampling.uniform_pairs(ENDING, -1), "size must be at least 0; got -1"),
        (lambda: sampling.uniform_pairs(ENDING, 2.5), "size must be a whole number"),
        (lambda: sampling.equal_pairs(ENDING, "four"), "each must be a whole number"),
        (lambda: sampling.trajectories(ENDING, -1, 3), "episodes must be"),
        (lambda: sampling.trajectories(ENDING, 3, -1), "length must be"),
        (lambda: sampling.uniform_pairs(ENDING, 3, data_sets=-2), "data_sets must be"),
        (lambda: sampling.uniform_pairs(random_chain(size=3), 3, data_sets=2), "data_sets is 2, but .* 3 MDPs"),
        (lambda: sampling.uniform_pairs(random_chain(size=(3, 2)), 3), "one leading axis"),
        (lambda: sampling.trajectories(ENDING, 3, 3, behavior=[[0.5, 0.5], [0.5, 0.6]]), "behavior: state 1"),
        (lambda: sampling.trajectories(ENDING, 3, 3, behavior=[[1.5, -0.5], [1, 0]]), "behavior: state 0"),
        (lambda: sampling.trajectories(ENDING, 3, 3, behavior=[0, 2]), "behavior: state 1 has the action 2"),
        (lambda: sampling.trajectories(ENDING, 3, 3, behavior=[0, 0.5]), "behavior: state 1 has the action 0.5"),
        (lambda: sampling.trajectories(ENDING, 3, 3, behavior=[0, 1, 1]), r"behavior needs the shape \(2, 2\)"),
        (lambda: sampling.trajectories(ENDING, 3, 3, start=[1.0]), "start needs one probability for each"),
        (lambda: sampling.trajectories(ENDING, 3, 3, start=[0.5, 0.6]), "sum is 1.1"),
        (lambda: sampling.trajectories(ENDING, 3, 3, start=[1.5, -0.5]), "none below 0"),
    ],
)
def test_bad_input_is_named(sample, message):
    with pytest.raises(InputError, match=message):
        sample()
