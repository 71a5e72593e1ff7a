"""What to collect next: values by literal solving, gains by brute-force conjugate updating and in closed form."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import roots_jacobi
from scipy.stats import norm

import naive
from certeq import Batch, InputError, collect_next
from certeq.learning.learned import learn
from certeq.questions.collect import GROUPS, LASTING, _highest, _inverses, _look, _Models, weigh
from certeq.questions.draws import Draws
from logbook import logged
from strategies import SEEDS, random_rows


class Means(NamedTuple):
    """Mean rewards that are normal, each for itself."""

    center: np.ndarray  # (S, A)
    variance: np.ndarray  # (S, A)
    within: float  # variance of a row
    noisier: float = 1.0

    def draw(self, size, random):
        return self.center + np.sqrt(self.variance) * random.standard_normal((size, *self.center.shape))


def draws_of(counts, reward, magnitude, draws, *, seed=0):
    """Models drawn with one known magnitude and a uniform prior."""
    S, A, N = counts.shape
    known = np.full((draws, S, A), float(magnitude))
    seeds = np.random.default_rng(seed).integers(2**32, size=(4, 4))
    uniform, only = np.full((1, 1, N), 1 / N), np.zeros(draws, dtype=np.int64)
    return Draws(counts, (uniform,), only, known, None, reward, -(-draws // 4), seeds)


@given(SEEDS, st.booleans(), st.booleans(), st.floats(0, 0.95))
def test_values_after_an_observation_are_those_of_solving_anew(seed, ends, by_outcome, gamma):
    """Each policy with each action in each state, once the row of that pair has moved toward an outcome."""
    S, A, k = 3, 2, 2
    rng = np.random.default_rng(seed)
    rows, reward = random_rows(rng, (k, S, A, S), ends=ends), rng.normal(size=(k, S, A))
    policy, start, move = rng.integers(A, size=S), rng.dirichlet(np.ones(S)), rng.random((k, S, A))
    paid = rng.normal(size=(k, S, A, S + ends)) if by_outcome else None
    (inverse,) = _inverses(rows, policy[None], gamma)
    found = _look((rows, reward, paid), policy, inverse, gamma, start, move, S + ends)
    for i, s, a in product(range(k), range(S), range(A)):
        other = np.where(np.arange(S) == s, a, policy)
        assert found.before[i, s, a] == pytest.approx(value(rows[i], reward[i], gamma, other, start), abs=1e-9)
        for o in range(S + ends):
            moved, more = rows[i].copy(), reward[i].copy()
            if by_outcome:
                more[s, a] += move[i, s, a] * (paid[i, s, a, o] - more[s, a])
            then = more.copy()
            moved[s, a] = (1 - move[i, s, a]) * moved[s, a] + move[i, s, a] * (np.arange(S) == o)
            assert found.after[i, s, a, o] == pytest.approx(value(moved, more, gamma, other, start), abs=1e-9)
            more[s, a] += 1
            rise = value(moved, more, gamma, other, start) - value(moved, then, gamma, other, start)
            assert found.slope[i, s, a, o] == pytest.approx(rise, abs=1e-9)


@given(SEEDS, st.sampled_from([0.0, 0.5, 0.99, LASTING, 0.99999]))
def test_policies_that_differ_in_few_states_are_solved_for_as_each_by_itself(seed, gamma):
    S, A, k = 12, 3, 2
    rng = np.random.default_rng(seed)
    rows, usual = random_rows(rng, (k, S, A, S)), rng.integers(A, size=S)
    policies = [np.where(rng.random(S) < often, rng.integers(A, size=S), usual) for often in (0, 0.1, 0.3, 1)]
    for policy, found in zip(policies, _inverses(rows, np.array(policies), gamma), strict=True):
        expected = np.linalg.inv(np.eye(S) - gamma * rows[:, np.arange(S), policy])
        np.testing.assert_allclose(found, expected, rtol=1e-14 / (1 - gamma) + 1e-12, atol=1e-12 / (1 - gamma))


@given(SEEDS, st.integers(1, 9))
def test_lines_that_are_left_out_are_the_highest_nowhere(seed, policies):
    rng = np.random.default_rng(seed)
    after, shift = rng.normal(size=(2, policies, 3, 2, 4))
    parts = np.sort(rng.normal(size=5))
    kept = _highest(after, shift, parts)
    for part in parts:
        highest = (after + part * shift).max(axis=0)
        np.testing.assert_allclose((kept[0] + part * kept[1]).max(axis=0), highest, atol=1e-12)


def value(T, R, gamma, policy, start):
    return float(np.asarray(naive.exact_value_of_policy(T, R, gamma, policy), dtype=float) @ start)


def test_a_moved_draw_is_a_draw_of_the_updated_posterior():
    """Means and second moments of (1 - B)·row + B·e_o against Dirichlet(α + e_o), to 5 standard errors."""
    counts, n = np.array([[[3, 0], [1, 1]], [[0, 0], [2, 6]]]), 40_000
    drawn = draws_of(counts, np.zeros((2, 2)), 1.5, n)
    models = _Models(drawn, np.random.default_rng(1))
    rows = np.concatenate([part for _, part, *_ in models])
    for s, a, o in product(range(2), repeat=3):
        move = models.move[:, s, a]
        moved = (1 - move) * rows[:, s, a, 0] + move * (o == 0)
        alpha = counts[s, a] + 0.75 + np.eye(2)[o]
        total = alpha.sum()
        expected = alpha[0] / total, alpha[0] * (alpha[0] + 1) / (total * (total + 1))
        for power, moment in zip((1, 2), expected, strict=True):
            powers = moved**power
            assert abs(powers.mean() - moment) < 5 * powers.std() / np.sqrt(n)


def mean_value(alpha, reward, gamma, start, policy):
    """E[V] of a policy when each row has two outcomes, by Gauss-Jacobi quadrature over the Beta rows it uses."""
    S = len(policy)
    nodes, weights = zip(*(_beta(*alpha[s, policy[s]]) for s in range(S)), strict=True)
    chance = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, S)  # of outcome 0, for each row
    weight = np.prod(np.stack(np.meshgrid(*weights, indexing="ij"), axis=-1).reshape(-1, S), axis=1)
    rows = np.stack([chance, 1 - chance], axis=-1)[..., :S]  # with one state, outcome 1 is an ending
    gain = np.broadcast_to(reward[np.arange(S), policy][:, None], (len(rows), S, 1))
    return float(weight @ (np.linalg.solve(np.eye(S) - gamma * rows, gain)[..., 0] @ start))


def _beta(a, b, points=30):
    """Nodes and weights for Beta(a, b)."""
    x, w = roots_jacobi(points, b - 1, a - 1)
    return (x + 1) / 2, w / w.sum()


def brute_force(counts, reward, magnitude, gamma, start):
    """Update the posterior of each pair by each outcome, and take the best of all policies there are."""
    S, A, N = counts.shape

    def best(alpha):
        return max(mean_value(alpha, reward, gamma, start, policy) for policy in product(range(A), repeat=S))

    alpha = counts + magnitude / N
    gain = np.zeros((S, A))
    for s, a, o in product(range(S), range(A), range(N)):
        after = alpha.copy()
        after[s, a, o] += 1
        gain[s, a] += alpha[s, a, o] / alpha[s, a].sum() * best(after)
    return gain - best(alpha)


WORLDS = {  # counts, rewards
    "two states": ([[[2, 1], [0, 1]], [[1, 0], [3, 3]]], [[0.0, 0.2], [1.0, 0.7]]),
    "little data": ([[[0, 1], [1, 0]], [[0, 0], [1, 1]]], [[0.0, 0.3], [1.0, 0.8]]),
    "an ending": ([[[3, 2], [0, 1]]], [[1.0, 1.4]]),
    "three actions": ([[[1, 1], [2, 0], [0, 2]], [[4, 1], [1, 1], [0, 0]]], [[0.3, 0.0, 0.1], [0.9, 1.0, 0.8]]),
}


@pytest.mark.parametrize("world", WORLDS)
def test_gains_are_those_of_brute_force_conjugate_updating(world):
    counts, reward = map(np.array, WORLDS[world])
    S, A, _ = counts.shape
    start, gamma = np.array([0.7, 0.3] if S == 2 else [1.0]), 0.8
    drawn = draws_of(counts, reward, 1.0, 40_000)
    found = weigh(drawn, gamma, np.full(S, -1), np.ones((S, A), bool), start, np.random.default_rng(0))
    expected = brute_force(counts, reward, 1.0, gamma, start)
    assert expected.max() > 10 * found.error.max(), "there is something to find"
    assert (np.abs(found.gain - expected) < 4 * found.error + 1e-9).all()


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0])
def test_the_gain_of_an_observed_reward_is_the_knowledge_gradient(gap):
    """One state, no future: an observation moves the mean of an arm by Normal(0, τ²), τ² = v² / (v + σ²)."""
    v, noise = np.array([[0.5, 0.2]]), 0.8
    law = Means(np.array([[0.0, gap]]), v, noise)
    drawn = draws_of(np.ones((1, 2, 1), dtype=int), law, 1.0, 200_000)
    found = weigh(drawn, 0.0, np.array([1]), np.ones((1, 2), bool), np.ones(1), np.random.default_rng(0))
    tau = v / np.sqrt(v + noise)
    expected = tau * (norm.pdf(gap / tau) - gap / tau * norm.sf(gap / tau))
    assert (found.gain <= expected + 4 * found.error).all()
    np.testing.assert_allclose(found.gain, expected, rtol=0.03, atol=4 * found.error.max() + 1e-6)


def test_an_observed_reward_moves_a_mean_as_if_it_had_been_drawn():
    law = Means(np.zeros((1, 1)), np.full((1, 1), 1.25), 2.0)
    models = _Models(draws_of(np.ones((1, 1, 1), int), law, 1.0, 20), np.random.default_rng(0))
    assert models.chance.sum() == pytest.approx(1)
    assert models.parts @ models.chance == pytest.approx(0, abs=1e-12)
    assert models.parts**2 @ models.chance == pytest.approx(1, abs=0.01)
    rng = np.random.default_rng(0)
    mean = rng.normal(0, np.sqrt(1.25), 100_000)
    seen = mean + rng.normal(0, np.sqrt(2), 100_000)
    assert models.spread[0, 0] == pytest.approx(np.std(seen * np.cov(mean, seen)[0, 1] / np.var(seen)), rel=0.02)


def test_the_error_is_that_of_repeating_with_other_draws():
    rng = np.random.default_rng(5)
    counts, reward = rng.integers(0, 4, size=(3, 2, 3)), rng.normal(size=(3, 2))
    runs = [
        weigh(draws_of(counts, reward, 2.0, 200, seed=seed), 0.8, np.full(3, -1), np.ones((3, 2), bool), np.ones(3) / 3,
              np.random.default_rng(seed))
        for seed in range(60)
    ]  # fmt: skip
    spread = np.std([run.gain for run in runs], axis=0)
    told = np.mean([run.error for run in runs], axis=0)
    large = spread > 0.1 * spread.max()
    assert large.any()
    assert ((told / np.where(large, spread, 1))[large] > 0.6).all()
    assert ((told / np.where(large, spread, 1))[large] < 1.7).all()


@pytest.mark.slow
@given(SEEDS)
def test_all_pairs_are_ranked_and_no_observation_does_harm(seed):
    batch = logged(seed)
    found = collect_next(learn(batch, discount=0.9), draws=2 * GROUPS, rng=seed)
    assert sorted(zip(found.state.tolist(), found.action.tolist(), strict=True)) == list(product(range(3), range(2)))
    assert (np.diff(found.gain) <= 0).all()
    assert found.gain.min() >= 0
    np.testing.assert_array_equal(found.visits, learn(batch).counts.visits[found.state, found.action])
    again = collect_next(learn(batch, discount=0.9), draws=2 * GROUPS, rng=seed)
    np.testing.assert_array_equal(again.gain, found.gain)


def test_where_there_is_nothing_to_choose_there_is_nothing_to_gain():
    batch = Batch([0, 1, 1], [0, 0, 0], [1, 0, 1], 2, 1, reward=np.array([0.0, 1, 2]))
    found = collect_next(learn(batch, discount=0.9), draws=20)
    assert found.gain.tolist() == [0, 0]
    assert found.regret == pytest.approx(0, abs=1e-9)
    assert found.lines()[0].startswith("In no draw of the posterior would one more observation of any pair change")


def test_what_is_known_for_sure_need_not_be_collected():
    """Action 1 was tried once in state 0, action 0 ten thousand times: the former is what there is to learn about."""
    state, action = np.zeros(10_001, int), np.append(np.zeros(10_000, int), 1)
    reward = np.append(np.tile([0.0, 1.0], 5_000), 0.4)
    batch = Batch(state, action, np.full(10_001, -1), 1, 2, reward=reward, state_names=("there",))
    found = collect_next(learn(batch, discount=0.5), draws=400)
    assert (found.state[0], found.action[0]) == (0, 1)
    assert found.gain[0] > 20 * found.gain[1]
    assert found.lines()[1].startswith("1. '1' in state 'there' (1 visit so far)")
    assert found.to_json()["pairs"][0]["gain"] == found.gain[0]


def test_what_cannot_be_asked_is_refused_in_words():
    with pytest.raises(InputError, match="without a horizon"):
        collect_next(learn(logged(0), horizon=2))
    with pytest.raises(InputError, match="draws must be at least 20"):
        collect_next(learn(logged(0)), draws=3)
    with pytest.raises(InputError, match="probabilities that sum to 1"):
        collect_next(learn(logged(0)), start=[1, 1, 1])
