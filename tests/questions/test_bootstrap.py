"""The bootstrap: each replicate is what learning from the drawn episodes gives, wherever it runs."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import Batch, InputError, bootstrap
from certeq.learning.learned import learn
from certeq.questions import bootstrap as room
from certeq.questions.bootstrap import count_again
from logbook import logged, taken
from strategies import SEEDS, all_outcomes, as_sparse

WAYS = (
    {"discount": 0.9},
    {"discount": 0.9, "regularizer": "discount", "planning_discount": 0.6, "unvisited": "uniform"},
    {"discount": 0.9, "reward_pool": "state", "regularizer": "none"},
    {"discount": 0.9, "reward_by": "next_state", "regularizer": "uniform_prior", "magnitude": 2.0},
    {"discount": 0.9, "reward": [[1, 0.9], [0, 0.1], [0.5, 0.5]]},
    {"discount": 0.9, "horizon": 2},
)


def draws(units, replicates, seed):
    """The units that each replicate draws, written out as the module promises."""
    seeds = np.random.default_rng(seed).integers(2**32, size=(replicates, 4))
    return [np.random.default_rng(one).integers(units, size=units) for one in seeds]


@given(SEEDS, st.sampled_from(WAYS))
def test_a_replicate_is_what_is_learned_from_the_drawn_episodes(seed, way):
    batch = logged(seed)
    found = bootstrap(learn(batch, **way), 4, rng=seed)
    for policy, values, drawn in zip(found.policies, found.values, draws(8, 4, seed), strict=True):
        rows = np.concatenate([np.flatnonzero(batch.episode == episode) for episode in drawn])
        again = taken(batch, rows)
        if batch.ended.any() != again.ended.any():
            continue  # the outcomes would no longer be those of the data
        learned = learn(again, **way)
        assert policy.tolist() == np.atleast_2d(learned.policy.actions)[0].tolist()
        np.testing.assert_allclose(values, np.atleast_2d(learned.plan.values)[0], rtol=1e-9, atol=1e-9)


def test_rows_are_drawn_where_there_are_no_episodes():
    batch = replace(logged(3, ends=False), episode=None)
    found = bootstrap(learn(batch, discount=0.9), 5, rng=1)
    assert (found.unit, found.units) == ("row", len(batch))
    for policy, rows in zip(found.policies, draws(len(batch), 5, 1), strict=True):
        assert policy.tolist() == learn(taken(batch, rows), discount=0.9).policy.actions.tolist()


@given(SEEDS)
def test_counting_again_is_counting_the_drawn_rows(seed):
    batch = logged(seed)
    like = learn(batch).counts
    times = np.random.default_rng(seed).integers(0, 4, size=(3, len(batch)))
    found = count_again(batch, times, like)
    for often, table in zip(times, all_outcomes(found), strict=True):
        expected = np.zeros(table.shape, dtype=int)
        for s, a, n, k in zip(batch.state, batch.action, batch.next_state, often, strict=True):
            expected[s, a, n] += k  # ending, -1, is the last outcome
        np.testing.assert_array_equal(table, expected)
    sparse = count_again(batch, times[:1], as_sparse(like))
    np.testing.assert_array_equal(sparse.transitions.toarray().reshape(3, 2, 3), found.transitions[0])
    assert (sparse.ended is None) == (found.ended is None) == (not batch.ended.any())
    if sparse.ended is not None:
        np.testing.assert_array_equal(sparse.ended, found.ended[0])


def test_the_result_does_not_depend_on_where_it_runs(monkeypatch):
    learned = learn(logged(5, episodes=20), discount=0.9)
    monkeypatch.setattr(room, "ROOM", 7 * 18)  # seven replicates to a block
    here = bootstrap(learned, 30, rng=2)
    with ThreadPoolExecutor(3) as pool:
        there = bootstrap(learned, 30, rng=2, executor=pool)
    np.testing.assert_array_equal(here.policies, there.policies)
    np.testing.assert_array_equal(here.values, there.values)
    monkeypatch.undo()
    np.testing.assert_array_equal(bootstrap(learned, 30, rng=2).policies, here.policies)


def test_what_is_sent_to_workers_can_be_sent_and_carries_no_names():
    sent = []

    class Executor:
        def map(self, work, *columns):
            jobs = list(zip(*columns, strict=False))
            sent.extend(pickle.loads(pickle.dumps((work, jobs))))
            return [work(*job) for job in jobs]

    plain = logged(5)
    named = Batch(
        plain.state, plain.action, plain.next_state, 3, 2,
        reward=plain.reward, episode=plain.episode, state_names=("Ann", "Bob", "Cy"),
    )  # fmt: skip
    bootstrap(learn(named, discount=0.9), 3, executor=Executor())
    work, [_] = sent
    case, batch, *_ = work.args
    assert batch.state_names == case.data.state_names == ("0", "1", "2")
    assert b"Bob" not in pickle.dumps(sent)


def test_replicates_are_shared_out_in_the_same_blocks_whoever_works():
    sizes = []

    class Executor:
        def map(self, work, *columns):
            jobs = list(zip(*columns, strict=False))
            sizes.append([len(seeds) for *_, seeds in jobs])
            return [work(*job) for job in jobs]

    learned = learn(logged(5), discount=0.9)
    for replicates in (5, 200, 1000):
        bootstrap(learned, replicates, executor=Executor())
    assert sizes == [[5], [8] * 25, [32] * 31 + [8]]


def test_shares_and_intervals_are_those_of_the_replicates():
    found = bootstrap(learn(logged(7), discount=0.9), 60, rng=0)
    shares = found.shares
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for s in range(3):
        for a in (0, 1, -1):
            assert shares[s, a] == np.mean([policy[s] == a for policy in found.policies])
        if found.advice[s] >= 0:
            assert found.same[s] == shares[s, found.advice[s]]
    totals = sorted(float(values @ found.start) for values in found.values)
    low, high = found.interval(0.9)
    assert sum(low <= total <= high for total in totals) == 54
    np.testing.assert_allclose(
        found.state_intervals(0.5)[:, 0], np.quantile(found.values, 0.25, axis=0, method="weibull")
    )


def test_with_one_episode_every_replicate_is_the_data():
    found = bootstrap(learn(logged(1, episodes=1), discount=0.9), 5)
    assert (found.policies == found.advice).all()
    assert np.ptp(found.values, axis=0).max() == 0
    np.testing.assert_allclose(found.values[0], found.claimed, rtol=1e-9)


def test_words_and_files_tell_the_spread():
    found = bootstrap(learn(logged(7), discount=0.9), 10)
    assert found.lines()[0].startswith("With 8 episodes drawn anew 10 times, the advice is the same in at least 90%")
    written = found.to_json()
    assert written["interval"]["low"] <= written["interval"]["high"]
    assert np.shape(written["shares"]) == (3, 3)


def test_what_cannot_be_drawn_is_refused_in_words():
    learned = learn(replace(logged(3), episode=None), discount=0.9)
    with pytest.raises(InputError, match="rows are what can be drawn"):
        bootstrap(learned, unit="episode")
    with pytest.raises(InputError, match="no unit to draw named 'patient'"):
        bootstrap(learned, unit="patient")
    with pytest.raises(InputError, match="level of an interval"):
        bootstrap(learned, 3).interval(1)


def test_a_replicate_that_cannot_end_says_that_it_was_a_replicate():
    """One episode stays and one ends, so together they end; the first one twice does not."""
    batch = Batch([0, 0], [0, 0], [0, -1], 1, 1, reward=np.ones(2), episode=np.array([0, 1]))
    with pytest.raises(InputError, match=r"^In a data set drawn anew: With discount 1"):
        bootstrap(learn(batch, discount=1.0, regularizer="none"), 20)


def test_stopped_half_way_it_goes_on_with_what_is_missing_to_the_same_bits(monkeypatch, tmp_path):
    learned = learn(logged(5, episodes=20), discount=0.9)
    monkeypatch.setattr(room, "ROOM", 7 * 18)  # seven replicates to a block
    whole, again, seen = bootstrap(learned, 30, rng=2), room._learn_again, []

    def stop(*given):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(len(given[-1]))
        return again(*given)

    monkeypatch.setattr(room, "_learn_again", stop)
    with pytest.raises(KeyboardInterrupt):
        bootstrap(learned, 30, rng=2, resume=tmp_path / "kept")
    assert len(list((tmp_path / "kept").glob("kept-*.npz"))) == 3
    seen[:] = seen[:1]  # two more may be done
    found = bootstrap(learned, 30, rng=2, resume=tmp_path / "kept")
    assert seen == [7, 7, 2]
    for name in ("policies", "values", "claimed"):
        assert getattr(found, name).tobytes() == getattr(whole, name).tobytes()
    third = bootstrap(learned, 30, rng=2, resume=tmp_path / "kept")  # in which a fourth would be stopped
    assert third.values.tobytes() == whole.values.tobytes()


@pytest.mark.parametrize(
    "other",
    [{"discount": 0.8}, {"regularizer": "none"}, {"min_visits": 2}, {"reward_pool": "state"}, {"rng": 3}],
    ids=str,
)
def test_what_was_kept_of_other_settings_or_seeds_is_not_taken(tmp_path, other):
    batch, seed = logged(5, episodes=20), other.pop("rng", 2)
    bootstrap(learn(batch, discount=0.9), 5, rng=2, resume=tmp_path)
    learned = learn(batch, **({"discount": 0.9} | other))
    found, right = bootstrap(learned, 5, rng=seed, resume=tmp_path), bootstrap(learned, 5, rng=seed)
    assert found.values.tobytes() == right.values.tobytes()
    assert len(list(tmp_path.iterdir())) == 2
    other_rows = learn(logged(6, episodes=20), discount=0.9)
    bootstrap(other_rows, 5, rng=2, resume=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
