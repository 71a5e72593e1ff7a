"""The posterior of values: draws are valued and solved right, and what is said of them follows from the draws."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naive
from certeq import Batch, Counts, InputError, environment, evaluate, sampling, solve, solve_finite, tally
from certeq.base.arrays import middle
from certeq.base.texts import json_text
from certeq.learning.equivalence import estimate
from certeq.model.rewards import estimate as rewards_of
from certeq.planners import compiled
from certeq.questions import draws
from certeq.questions.credible import Posterior
from certeq.questions.draws import draw_models
from certeq.questions.episodes import behavior, starts
from certeq.questions.posterior import posterior
from strategies import SEEDS, counts, random_counts

GAMMA = 0.9
SMALL = {"S": st.integers(1, 3), "A": st.integers(1, 3)}


def world(seed=0, S=4, A=2, *, ended=True, **settings):
    """A fitted model, known rewards, and two policies: one with gaps, one at random."""
    rng = np.random.default_rng(seed)
    model = estimate(random_counts(seed, S, A, ended=ended), GAMMA, **settings)
    reward = rng.uniform(-1, 1, (S, A))
    return model, reward, {"advised": rng.integers(-1, A, size=S), "other": rng.dirichlet(np.ones(A), size=S)}


def drawn(model, reward, size, rng=0, **more):
    """All models that `posterior` values, one after another."""
    made = draw_models(model, reward, size, rng=rng, **more)
    parts = [made.block(b) for b in made.blocks]
    return (np.concatenate(each) for each in zip(*parts, strict=True))


def value(T, R, gamma, policy):
    """Value of an (S, A) policy, from the model it makes."""
    rows, gain = (policy[:, :, None] * T).sum(axis=1), (policy * R).sum(axis=1)
    return naive.exact_value_of_policy(rows[:, None], gain[:, None], gamma, np.zeros(len(T), int))


def probabilities(policy, A):
    policy = np.asarray(policy)
    return np.where(policy[:, None] < 0, 1 / A, np.arange(A) == policy[:, None]) if policy.ndim == 1 else policy


@settings(max_examples=25)
@given(SEEDS, counts(**SMALL))
def test_each_policy_is_valued_in_each_drawn_model(seed, table):
    S, A = table.n_states, table.n_actions
    rng = np.random.default_rng(seed)
    model, reward = estimate(table, GAMMA), rng.uniform(-1, 1, (S, A))
    policies = {"one": rng.integers(-1, A, size=S), "two": rng.dirichlet(np.ones(A), size=S)}
    start = rng.dirichlet(np.ones(S))
    found = posterior(model, reward, GAMMA, policies, draws=4, rng=seed, start=start)
    rows, rewards = drawn(model, reward, 4, seed)
    for p, policy in enumerate(policies.values()):
        for d in range(4):
            expected = value(rows[d], rewards[d], GAMMA, probabilities(policy, A))
            np.testing.assert_allclose(found.state_values[p, d], expected, atol=1e-9)
            assert found.values[p, d] == pytest.approx(start @ expected, abs=1e-9)


@settings(max_examples=25)
@given(SEEDS, counts(**SMALL))
def test_an_action_is_best_as_often_as_enumeration_says(seed, table):
    S, A = table.n_states, table.n_actions
    model, reward = estimate(table, GAMMA), np.random.default_rng(seed).uniform(-1, 1, (S, A))
    advised = np.zeros(S, dtype=int)
    found = posterior(model, reward, GAMMA, {"advised": advised}, draws=5, rng=seed)
    rows, rewards = drawn(model, reward, 5, seed)
    often = np.zeros((S, A))
    for T, R in zip(rows, rewards, strict=True):
        values = [naive.exact_value_of_policy(T, R, GAMMA, p) for p in itertools.product(range(A), repeat=S)]
        q = R + GAMMA * T @ np.max(values, axis=0)
        often += q >= q.max(axis=1, keepdims=True) - 1e-9
    np.testing.assert_allclose(found.best, often / 5)
    np.testing.assert_allclose(found.advised_best, often[:, 0] / 5)


def test_the_posterior_of_one_pair_has_its_exact_law():
    """Stay or end: V = 1 / (1 - γp), p from a mixture of Beta laws, weighed by scipy's beta-binomial likelihood."""
    stay, end = 12, 3
    table = Counts([[[stay]]], [[end]])
    found = posterior(estimate(table, regularizer="evidence"), np.ones((1, 1)), GAMMA, {"only": [0]}, draws=4000, rng=1)
    steps = np.linspace(-8, 8, 33)
    M = np.exp(steps)  # around N / 2 = 1
    weight = np.exp(-0.5 * (steps / 2.5) ** 2) * stats.betabinom.pmf(stay, stay + end, M / 2, M / 2)
    weight /= weight.sum()

    def chance_below(v):
        p = np.clip((1 - 1 / np.asarray(v)[..., None]) / GAMMA, 0, 1)
        return (weight * stats.beta.cdf(p, stay + M / 2, end + M / 2)).sum(axis=-1)

    assert stats.kstest(found.values[0], chance_below).pvalue > 1e-3
    low, high = found.interval("only")[1:]
    assert chance_below(low) == pytest.approx(0.05, abs=0.015)
    assert chance_below(high) == pytest.approx(0.95, abs=0.015)


def test_with_much_data_the_posterior_closes_in_on_the_truth():
    truth = environment("river_swim")
    table = tally(sampling.equal_pairs(truth, 100_000, rng=0))
    plan = solve(truth.transition, truth.reward, 0.9)
    found = posterior(estimate(table), truth.reward, 0.9, {"best": plan.policy}, draws=200, start=truth.start)
    exact = truth.start @ plan.values
    mean, low, high = found.interval("best")
    assert low < exact < high
    assert high - low < 0.05 * exact
    assert mean == pytest.approx(exact, rel=0.02)
    assert (found.advised_best > 0.99).all()
    assert len(found.undecided()) == 0


def test_the_claimed_value_is_that_of_the_fitted_model_and_optimism_what_it_is_above_the_posterior():
    model, reward, policies = world(1)
    start = np.array([0.4, 0.3, 0.2, 0.1])
    found = posterior(model, reward, GAMMA, policies, draws=50, start=start)
    for p, policy in enumerate(policies.values()):
        claimed = start @ evaluate(model.transition, model.reward(reward), GAMMA, policy)
        assert found.claimed[p] == pytest.approx(claimed, abs=1e-9)
        assert found.optimism[p] == pytest.approx(claimed - found.values[p].mean(), abs=1e-9)


def test_a_plan_made_by_averaging_actions_claims_what_it_saw():
    model, reward, policies = world(2, regularizer="epsilon_greedy", strength=0.4)
    found = posterior(model, reward, GAMMA, policies, draws=3, start=np.full(4, 0.25))
    seen = model.shrinkage.mix_reward(reward)
    assert np.abs(seen - reward).max() > 0.01
    expected = evaluate(model.transition, seen, GAMMA, policies["advised"]).mean()
    assert found.claimed[0] == pytest.approx(expected, abs=1e-9)


def test_differences_are_taken_model_by_model():
    found = posterior(*world(3)[:2], GAMMA, world(3)[2], draws=80)
    apart = found.values[0] - found.values[1]
    d = found.difference("advised", "other", level=0.5)
    assert d.mean == pytest.approx(apart.mean())
    assert (d.low, d.high) == tuple(np.quantile(apart, [0.25, 0.75], method="weibull"))
    assert d.better == (apart > 0).mean()
    back = found.difference("other", "advised", level=0.5)
    np.testing.assert_allclose(back, [-d.mean, -d.high, -d.low, 1 - d.better])
    assert found.difference("other", "other") == (0, 0, 0, 0.5)


@pytest.mark.parametrize("ways", [(1, 3), (1, 2)])
def test_the_result_does_not_depend_on_threads(ways, monkeypatch):
    monkeypatch.setattr(draws, "BLOCK", 400)
    results = [posterior(*world(4)[:2], GAMMA, world(4)[2], draws=60, threads=t) for t in ways]
    np.testing.assert_array_equal(*(r.state_values for r in results))
    np.testing.assert_array_equal(*(r.best for r in results))


def test_compiled_and_plain_values_agree(monkeypatch):
    results = []
    for worth in (0, np.inf):
        monkeypatch.setattr(compiled, "WORTH", worth)
        results.append(posterior(*world(5, S=6)[:2], GAMMA, world(5, S=6)[2], draws=40))
    np.testing.assert_allclose(*(r.state_values for r in results), atol=1e-9)
    np.testing.assert_array_equal(*(r.best for r in results))


def test_one_seed_one_result():
    model, reward, policies = world(6)
    first, second, third = (posterior(model, reward, GAMMA, policies, draws=20, rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.values, second.values)
    assert (first.values != third.values).all()


@pytest.mark.parametrize("horizon", [1, 4])
def test_with_a_horizon_values_and_best_actions_come_from_backward_induction(horizon):
    model, reward, _ = world(7)
    plan = solve_finite(model.transition, model.reward(reward), GAMMA, horizon)
    rng = np.random.default_rng(1)
    policies = {
        "plan": plan.policy,
        "fixed": np.array([0, 1, -1, 0]),
        "changing": rng.dirichlet(np.ones(2), size=(horizon, 4)),
    }
    found = posterior(model, reward, GAMMA, policies, draws=6, horizon=horizon, start=np.full(4, 0.25))
    rows, rewards = drawn(model, reward, 6)
    often = np.zeros((horizon, 4, 2))
    for d, (T, R) in enumerate(zip(rows, rewards, strict=True)):
        values, best = np.zeros((3, 4)), np.zeros(4)
        for t in reversed(range(horizon)):
            q = R + GAMMA * T @ best
            best = q.max(axis=1)
            often[t] += q >= best[:, None] - 1e-9
            at = (plan.policy[t], policies["fixed"], policies["changing"][t])
            values = np.stack(
                [(probabilities(p, 2) * (R + GAMMA * T @ v)).sum(axis=1) for p, v in zip(at, values, strict=True)]
            )
        np.testing.assert_allclose(found.state_values[:, d], values, atol=1e-12)
    np.testing.assert_allclose(found.best, often / 6)
    np.testing.assert_allclose(found.advised_best, np.take_along_axis(often / 6, plan.policy[..., None], -1)[..., 0])
    assert found.claimed[0] == pytest.approx(plan.values[0].mean())
    json_text(found.to_json())


def test_a_long_horizon_is_as_good_as_none():
    model, reward, policies = world(8)
    found = [posterior(model, reward, 0.5, policies, draws=10, horizon=h) for h in (None, 60)]
    np.testing.assert_allclose(found[0].state_values, found[1].state_values, atol=1e-12)
    np.testing.assert_allclose(found[0].best, found[1].best[0])


def test_only_what_may_be_advised_can_be_best():
    """State 0 has one action without rows, state 2 none with any."""
    table = tally([0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [1, 2, 0, 0, 2], n_states=3, n_actions=2)
    reward = np.array([[0.0, 9.0], [0.0, 0.1], [0.0, 1.0]])
    model = estimate(table, unvisited="exclude")
    plan = solve(model.transition, model.reward(reward), GAMMA, allowed=model.allowed).without_advice(model.stranded)
    for horizon in (None, 50):
        found = posterior(model, reward, GAMMA, {"advised": plan.policy}, draws=30, horizon=horizon)
        best, advised = (found.best, found.advised_best) if horizon is None else (found.best[0], found.advised_best[0])
        np.testing.assert_array_equal(best[0], [1, 0])
        np.testing.assert_array_equal(best[2], [0.5, 0.5])  # any action: all the same
        assert np.isnan(advised[2])
        assert advised[0] == 1
        assert 2 not in found.undecided()
    rows, rewards = drawn(model, reward, 30)
    rows[:, 2], rewards = rows[:, 2].mean(axis=1, keepdims=True), rewards.copy()
    rewards[:, 2] = 0.5
    solved = solve(rows, rewards, GAMMA, allowed=np.array([[True, False], [True, True], [True, True]]))
    share = (solved.tied / solved.tied.sum(axis=-1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(posterior(model, reward, GAMMA, {"advised": plan.policy}, draws=30).best, share)


def test_undecided_states_come_least_sure_first():
    chance = np.array([0.9, 0.3, np.nan, 0.79, 0.8])
    found = Posterior(("a",), np.zeros((1, 2, 5)), np.full(5, 0.2), np.zeros(1), np.zeros((5, 2)), chance)
    np.testing.assert_array_equal(found.undecided(), [1, 3])
    np.testing.assert_array_equal(found.undecided(0.5), [1])
    np.testing.assert_array_equal(found.undecided(1.0), [1, 3, 4, 0])


def test_an_interval_of_few_draws_holds_one_more_as_often_as_it_says():
    drawn = np.random.default_rng(0).random((20_000, 60))
    low, high = middle(drawn[:, 1:], 0.9)
    held = (low <= drawn[:, 0]) & (drawn[:, 0] <= high)
    assert abs(held.mean() - 0.9) < 0.006  # the usual rule has 0.873


def test_state_values_have_intervals_of_their_own():
    found = posterior(*world(9)[:2], GAMMA, world(9)[2], draws=40)
    mean, low, high = found.states("other", level=0.8)
    values = found.state_values[1]
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose([low, high], np.quantile(values, [0.1, 0.9], axis=0, method="weibull"))


def test_the_start_is_where_episodes_begin_unless_said():
    truth = environment("river_swim")
    batch = sampling.trajectories(truth, 6, 5, start=np.array([0.5, 0.5, 0, 0, 0, 0]), rng=0)
    model = estimate(tally(batch))
    policies = {"behavior": behavior(model.counts)}
    by_batch, by_rows, said = (
        posterior(model, truth.reward, GAMMA, policies, draws=2, **more)
        for more in ({"batch": batch}, {}, {"start": np.eye(6)[3]})
    )
    np.testing.assert_allclose(by_batch.start, starts(batch))
    np.testing.assert_allclose(by_rows.start, np.bincount(batch.state, minlength=6) / len(batch))
    np.testing.assert_array_equal(said.values, said.state_values[..., 3])


def test_estimated_rewards_widen_the_posterior():
    rng = np.random.default_rng(0)
    state, action = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    following = np.where(rng.random(40) < 0.1, -1, rng.integers(2, size=40))
    reward = state + 2 * rng.standard_normal(40)
    batch = Batch(state, action, following, 2, 2, reward=reward)
    model, rewards = estimate(tally(batch)), rewards_of(batch)
    known = posterior(model, rewards.mean, GAMMA, {"a": [0, 0]}, batch=batch)
    drawn = posterior(model, rewards.mean, GAMMA, {"a": [0, 0]}, rewards=rewards, batch=batch)
    arrived = rewards_of(batch, by_next_state=True)
    by_arrival = posterior(model, rewards.mean, GAMMA, {"a": [0, 0]}, rewards=arrived, batch=batch)
    widths = [found.interval("a").high - found.interval("a").low for found in (known, drawn, by_arrival)]
    assert widths[1] > 1.5 * widths[0]
    assert widths[2] > 1.5 * widths[0]


def test_without_discounting_episodes_must_end_in_every_draw():
    ending = Counts([[[5, 3], [2, 2]], [[3, 1], [0, 4]]], [[4, 2], [6, 3]])
    found = posterior(estimate(ending), np.ones((2, 2)), 1.0, {"a": [0, 1]}, draws=100)
    assert np.isfinite(found.values).all()
    rows, _ = drawn(estimate(ending), np.ones((2, 2)), 100)
    expected = [value(T, np.ones((2, 2)), 1.0, probabilities([0, 1], 2)) for T in rows]
    np.testing.assert_allclose(found.state_values[0], expected, rtol=1e-8)
    endless = Counts(ending.transitions)
    with pytest.raises(InputError, match=r"stay forever among the states 0, 1.*set a horizon"):
        posterior(estimate(endless), np.ones((2, 2)), 1.0, {"a": [0, 1]}, draws=10)
    assert posterior(estimate(endless), np.ones((2, 2)), 1.0, {"a": [0, 1]}, draws=5, horizon=7).mean("a") == 7


def test_json_says_everything_in_plain_values():
    model, reward, policies = world(10)
    found = posterior(model, reward, GAMMA, policies | {"third": [0, 0, 0, 0]}, draws=30)
    said = json.loads(json_text(found.to_json(level=0.5)))
    assert list(said["policies"]) == ["advised", "other", "third"]
    assert said["policies"]["other"]["low"] == found.interval("other", 0.5).low
    assert [(d["first"], d["second"]) for d in said["differences"]] == [
        ("advised", "other"), ("advised", "third"), ("other", "third"),
    ]  # fmt: skip
    assert said["differences"][1]["better"] == found.difference("advised", "third").better
    assert [chance is None for chance in said["advised_best"]] == [action < 0 for action in policies["advised"]]
    assert said["undecided"] == found.undecided().tolist()
    assert said["draws"] == 30


BAD = {
    "no policies": ({"policies": {}}, "at least one policy"),
    "an unknown action": ({"policies": {"a": [0, 5, 0, 0]}}, "State 1: the policy has action 5"),
    "a horizon that is missing": ({"policies": {"a": np.zeros((3, 4), int)}}, "give it as horizon="),
    "another horizon": ({"policies": {"a": np.zeros((3, 4), int)}, "horizon": 2}, "the horizon is 2"),
    "a start that does not sum to one": ({"start": [0.5, 0, 0, 0]}, "start needs 4 probabilities"),
    "several discounts": ({"discount": [0.5, 0.9]}, "one discount"),
    "no draws": ({"draws": 0}, "draws must be"),
    "rewards of wrong shape": ({"reward": [[1.0, 2.0]]}, r"Rewards need the shape \(4, 2\)"),
}


@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused(change, says):
    model, reward, policies = world(0)
    given = {"reward": reward, "discount": GAMMA, "policies": policies} | change
    with pytest.raises(InputError, match=says):
        posterior(model, **given)


def test_unknown_names_and_levels_are_refused():
    found = posterior(*world(0)[:2], GAMMA, world(0)[2], draws=2)
    with pytest.raises(InputError, match=r"no policy named 'advise'. Did you mean 'advised'"):
        found.mean("advise")
    with pytest.raises(InputError, match="between 0 and 1"):
        found.interval("advised", level=90)
