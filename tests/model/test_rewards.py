"""Rewards from the rows: plain means, means pooled by empirical Bayes, and means by next state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import Batch, InputError, environment, sampling
from certeq.data.sums import add_up
from certeq.model.rewards import POOLS, arrival_means, estimate, means
from strategies import SEEDS

each_pool = pytest.mark.parametrize("pool", POOLS)


def made_of(rows, S=2, A=2):
    """A batch of (state, action, reward) whose next states do not matter."""
    state, action, reward = zip(*rows, strict=True)
    return Batch(state, action, np.zeros(len(rows), int), S, A, reward=np.array(reward, float))


SIZES = st.just(0.0) | st.floats(1e-6, 3)


def drawn(seed, *, spread=1.0, noise=1.0, S=4, A=3, n=60):
    """Rows whose pairs have means of the given spread, seen through noise; some pairs stay untried."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(S, size=n), rng.integers(A, size=n)
    means = spread * rng.standard_normal((S, A))
    return Batch(
        state,
        action,
        rng.integers(-1, S, size=n),
        S,
        A,
        reward=means[state, action] + noise * rng.standard_normal(n),
    )


def literal_pooled(batch, pool):
    """Empirical Bayes by the book, one pair at a time: one-way analysis of variance, then shrinkage."""
    pairs = {}
    for s, a, r in zip(batch.state.tolist(), batch.action.tolist(), batch.reward.tolist(), strict=True):
        pairs.setdefault((s, a), []).append(r)
    own = {pair: sum(rows) / len(rows) for pair, rows in pairs.items()}
    residual = sum((r - own[pair]) ** 2 for pair, rows in pairs.items() for r in rows)
    spare = len(batch) - len(pairs)
    within = residual / spare if spare else 0.0
    groups = {}
    for s, a in pairs:
        groups.setdefault(s if pool == "state" else None, []).append((s, a))
    scatter = free = size = 0.0
    center = {}
    for key, members in groups.items():
        rows = [r for pair in members for r in pairs[pair]]
        center[key] = sum(rows) / len(rows)
        scatter += sum(len(pairs[pair]) * (own[pair] - center[key]) ** 2 for pair in members)
        free += len(members) - 1
        size += len(rows) - sum(len(pairs[pair]) ** 2 for pair in members) / len(rows)
    between = max(0.0, (scatter - within * free) / size) if size else 0.0
    pooled = {}
    for s, a in pairs:
        noise = within / len(pairs[s, a])
        keep = between / (between + noise) if between + noise > 0 else 1.0
        pooled[s, a] = keep * own[s, a] + (1 - keep) * center[s if pool == "state" else None]
    return pooled, within, between


@each_pool
def test_without_noise_each_pair_earns_the_mean_of_its_rows(pool):
    found = estimate(made_of([(0, 0, 1), (0, 0, 1), (0, 1, 4), (1, 0, -2), (1, 1, 7)]), pool=pool)
    np.testing.assert_allclose(found.mean, [[1, 4], [-2, 7]])
    np.testing.assert_allclose(found.raw, found.mean)
    assert found.within == 0


def test_unpooled_noisy_rows_are_averaged():
    found = estimate(made_of([(0, 0, 1), (0, 0, 2), (0, 0, 6), (1, 1, 5)]))
    assert found.mean[0, 0] == pytest.approx(3)
    assert found.visits.tolist() == [[3, 0], [0, 1]]
    assert np.isnan(found.raw[0, 1])
    assert found.within == pytest.approx(7)  # 14 over two spare rows


@pytest.mark.parametrize("pool", ["none", "state"])
def test_an_untried_action_is_expected_to_earn_what_its_state_does(pool):
    found = estimate(made_of([(0, 0, 1), (0, 1, 2), (0, 1, 3), (1, 0, 10)], S=3, A=3), pool=pool)
    assert found.mean[0, 2] == pytest.approx(2)
    np.testing.assert_allclose(found.mean[1], 10)
    np.testing.assert_allclose(found.mean[2], 4, err_msg="nothing was tried there, so the mean of all rows")


@given(SEEDS, st.sampled_from(["state", "overall"]), SIZES, SIZES, st.integers(1, 80))
def test_pooling_is_empirical_bayes_by_the_book(seed, pool, spread, noise, n):
    batch = drawn(seed, spread=spread, noise=noise, n=n)
    found = estimate(batch, pool=pool)
    pooled, within, between = literal_pooled(batch, pool)
    assert found.within == pytest.approx(within, abs=1e-9)
    assert found.between == pytest.approx(between, abs=1e-9)
    for pair, mean in pooled.items():
        assert found.mean[pair] == pytest.approx(mean, abs=1e-6)


@given(SEEDS, st.sampled_from(["state", "overall"]))
def test_rewards_without_noise_are_not_pulled_anywhere(seed, pool):
    found = estimate(drawn(seed, noise=0.0), pool=pool)
    seen = found.visits > 0
    np.testing.assert_allclose(found.mean[seen], found.raw[seen], atol=1e-9)


def test_rewards_that_are_all_noise_are_pulled_all_the_way():
    rng = np.random.default_rng(5)
    pair = np.repeat(np.arange(100), 20)
    reward = 100 * rng.standard_normal(len(pair)) + 3
    batch = Batch(pair // 2, pair % 2, np.zeros_like(pair), 50, 2, reward=reward)
    for pool in ("state", "overall"):
        found = estimate(batch, pool=pool)
        state = reward.reshape(50, 2, 20).mean(axis=(1, 2))[:, None]
        center = state if pool == "state" else reward.mean()
        assert np.abs(found.mean - center).max() < 0.3 * np.abs(found.raw - center).max()


def test_a_pair_with_more_rows_keeps_more_of_its_own_mean():
    rng = np.random.default_rng(0)
    rows = [(0, 0, 1 + rng.standard_normal()) for _ in range(200)]
    rows += [(0, 1, 1 + rng.standard_normal()) for _ in range(2)]
    rows += [(1, a, -1 + rng.standard_normal()) for a in (0, 1) for _ in range(50)]
    found = estimate(made_of(rows), pool="overall")
    kept = (found.mean - np.mean([r for _, _, r in rows])) / (found.raw - np.mean([r for _, _, r in rows]))
    assert 0 < kept[0, 1] < kept[1, 0] < kept[0, 0] < 1


@pytest.mark.parametrize("pool", ["none", "state", "overall"])
@given(SEEDS, SIZES, SIZES)
def test_a_pooled_mean_lies_between_the_pairs_own_and_what_it_is_pulled_toward(pool, seed, spread, noise):
    batch = drawn(seed, spread=spread, noise=noise)
    found = estimate(batch, pool=pool)
    state = np.array([np.mean(batch.reward[batch.state == s]) for s in range(4)])[:, None]
    center = np.broadcast_to(batch.reward.mean() if pool == "overall" else state, found.mean.shape)
    seen = found.visits > 0
    low, high = np.minimum(found.raw, center)[seen], np.maximum(found.raw, center)[seen]
    assert (found.mean[seen] >= low - 1e-9).all()
    assert (found.mean[seen] <= high + 1e-9).all()


@each_pool
@given(SEEDS)
def test_the_order_of_rows_does_not_matter(pool, seed):
    batch = drawn(seed)
    order = np.random.default_rng(seed).permutation(len(batch))
    shuffled = Batch(batch.state[order], batch.action[order], batch.next_state[order], 4, 3, reward=batch.reward[order])
    one, other = (estimate(rows, pool=pool, by_next_state=True) for rows in (batch, shuffled))
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)
    np.testing.assert_allclose(one.arrival, other.arrival, atol=1e-9)


def test_an_untried_pair_earns_the_mean_of_its_state_or_pooled_overall_that_of_everything():
    batch = Batch([0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 1, 0], n_states=2, n_actions=2, reward=[0.0, 2, 4, 10])
    untried = {pool: float(estimate(batch, pool=pool).mean[0, 1]) for pool in ("none", "state", "overall")}
    assert untried == {"none": 1.0, "state": 1.0, "overall": 4.0}


@pytest.mark.parametrize("pool", ["state", "overall"])
@pytest.mark.parametrize("offset", [2.0**20, 2.0**27, 2.0**32])
def test_an_amount_added_to_every_reward_is_added_to_every_mean(pool, offset):
    """Incomes, blood counts, time stamps: the spread matters, not where zero is."""
    rng = np.random.default_rng(1)
    rows = [(s, a, (2 * s + a) + rng.integers(-8, 9) / 8) for s in range(2) for a in range(2) for _ in range(5)]
    plain = estimate(made_of(rows), pool=pool)
    moved = estimate(made_of([(s, a, r + offset) for s, a, r in rows]), pool=pool)
    assert moved.within == pytest.approx(plain.within, rel=1e-3)
    np.testing.assert_allclose(moved.mean - offset, plain.mean, atol=1e-4)


def test_rewards_by_next_state_have_one_entry_for_each_arrival_and_one_for_endings():
    batch = Batch([0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [1, 1, -1, 0, -1], 3, 2, reward=np.array([1.0, 3, 7, 5, 9]))
    found = estimate(batch, by_next_state=True)
    np.testing.assert_allclose(found.arrival, [5, 2, 5, 8])  # no one arrives in state 2: the overall mean
    assert estimate(batch).arrival is None


def test_rows_without_rewards_and_several_data_sets_and_unknown_pools_are_refused():
    bare = Batch([0], [0], [0], 1, 1)
    with pytest.raises(InputError, match=r"no rewards\. Name the reward column"):
        estimate(bare)
    several = sampling.trajectories(environment("loop"), 2, 2, data_sets=2, rng=0)
    with pytest.raises(InputError, match="one data set at a time"):
        estimate(several)
    with pytest.raises(InputError, match="Did you mean 'state'"):
        estimate(made_of([(0, 0, 1)]), pool="states")


@each_pool
def test_one_row_is_an_estimate(pool):
    found = estimate(made_of([(1, 0, 4)]), pool=pool)
    np.testing.assert_allclose(found.mean, 4)


# ---- sums, from which rewards are estimated again without the rows ----


@given(SEEDS, st.sampled_from(POOLS), st.integers(0, 3))
def test_rows_added_to_the_sums_are_as_good_as_rows_in_the_batch(seed, pool, source):
    batch, times = drawn(seed, n=30), np.array([0, 1, 5])
    row = np.full(3, source)
    arrival = np.where(batch.next_state[row] < 0, 4, batch.next_state[row])
    state, action = np.array([1, 0, 3]), np.array([2, 1, 0])
    added = add_up(batch).add(state, action, arrival, batch.reward[row], times)
    for i in range(3):
        more = np.append(np.arange(30), np.full(times[i], source))
        longer = Batch(
            np.append(batch.state, np.full(times[i], state[i])),
            np.append(batch.action, np.full(times[i], action[i])),
            batch.next_state[more],
            4,
            3,
            reward=batch.reward[more],
        )
        expected = estimate(longer, pool=pool, by_next_state=True)
        np.testing.assert_allclose(means(added, pool)[i], expected.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(means(added[i], pool), expected.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(arrival_means(added)[i], expected.arrival, rtol=1e-9, atol=1e-9)


@given(SEEDS, st.sampled_from(POOLS))
def test_a_row_that_counts_several_times_is_as_good_as_several_rows(seed, pool):
    batch = drawn(seed, n=20)
    times = np.random.default_rng(seed).integers(0, 3, size=20)
    times[0] = 2
    rows = np.repeat(np.arange(20), times)
    several = Batch(batch.state[rows], batch.action[rows], batch.next_state[rows], 4, 3, reward=batch.reward[rows])
    found, expected = add_up(batch, times), estimate(several, pool=pool, by_next_state=True)
    np.testing.assert_array_equal(found.visits, expected.visits)
    np.testing.assert_allclose(means(found, pool), expected.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(arrival_means(found), expected.arrival, rtol=1e-9, atol=1e-9)
