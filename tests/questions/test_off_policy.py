"""Off-policy estimates: closed forms, literal twins, other libraries' numbers, and what is said of them."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from certeq import Batch, InputError, environment, evaluate, sampling, tally
from certeq.base.texts import json_text
from certeq.model.frequencies import mle
from certeq.questions import estimators, fitted
from certeq.questions.episodes import behavior as frequencies
from certeq.questions.estimators import METHODS, effective_size, estimates
from certeq.questions.log import read_log
from certeq.questions.off_policy import FEW, off_policy
from strategies import SEEDS

POLICY = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
BEHAVIOR = np.array([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8]])
Q = np.array([[1.0, 0.5], [-0.5, 2.0], [0.25, 0.75]])


def as_batch(trajectories, S=3, A=2):
    """Trajectories, each a list of (state, action, reward) and where that led (-1: it ended), as a shuffled batch."""
    rows = []
    for number, (steps, end) in enumerate(trajectories):
        states = [s for s, _, _ in steps] + [end]
        rows += [(s, a, r, states[t + 1], number, t) for t, (s, a, r) in enumerate(steps)]
    mixed = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    state, action, reward, following, episode, time = zip(*mixed, strict=True)
    return Batch(state, action, following, S, A, reward=np.array(reward, float), episode=episode, time=time)


def random_trajectories(seed, S=3, A=2, E=6, longest=4):
    """Some end, some are cut; not all are equally long, and not every pair is tried."""
    rng = np.random.default_rng(seed)
    usual = rng.dirichlet(np.full(A, 0.7), size=S)
    made = []
    for _ in range(E):
        steps, s = [], rng.integers(S)
        for _ in range(rng.integers(1, longest + 1)):
            steps.append((int(s), int(rng.choice(A, p=usual[s])), float(rng.normal())))
            s = rng.integers(S)
        made.append((steps, -1 if rng.random() < 0.5 else int(s)))
    return made


def literal(trajectories, policy, b, gamma, V, Qs):
    """Every estimator by its definition, one sum at a time; V and Qs are the critic's."""
    E, longest = len(trajectories), max(len(steps) for steps, _ in trajectories)
    rho = [[1.0] for _ in trajectories]
    for i, (steps, _) in enumerate(trajectories):
        for s, a, _ in steps:
            rho[i].append(rho[i][-1] * policy[s][a] / b[s][a])
    at = [[r[min(t + 1, len(r) - 1)] for r in rho] for t in range(longest)]  # weights of all episodes at step t
    pdis = wpdis = wis = 0.0
    dr = wdr = sum(V[steps[0][0]] for steps, _ in trajectories) / E
    for i, (steps, end) in enumerate(trajectories):
        total = 0.0
        for t, (s, a, r) in enumerate(steps):
            after = steps[t + 1][0] if t + 1 < len(steps) else end
            surprise = r + gamma * (0 if after < 0 else V[after]) - Qs[s][a]
            pdis += gamma**t * at[t][i] * r / E
            dr += gamma**t * at[t][i] * surprise / E
            wpdis += gamma**t * at[t][i] * r / sum(at[t]) if sum(at[t]) else np.nan
            wdr += gamma**t * at[t][i] * surprise / sum(at[t]) if sum(at[t]) else 0
            total += gamma**t * r
        wis += total * rho[i][-1]
    last = sum(r[-1] for r in rho)
    return {"pdis": pdis, "wpdis": wpdis, "wis": wis / last if last else np.nan, "dr": dr, "wdr": wdr}


def once(batch, policy, gamma, **more):
    """All estimates, without intervals."""
    log = read_log(batch, policy, gamma, **more)
    return {name: float(each[0]) for name, each in estimates(log, np.ones((1, len(log.length)), int)).items()}


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.booleans())
def test_estimates_are_what_their_definitions_say(seed, known, certain):
    rng = np.random.default_rng(seed)
    made = random_trajectories(seed)
    batch = as_batch(made)
    policy = np.eye(2)[rng.integers(2, size=3)] if certain else rng.dirichlet(np.ones(2), size=3)
    b = np.array([[0.3, 0.7]] * 3) if known else frequencies(tally(batch))
    found = once(batch, policy, 0.8, behavior=b if known else None, action_values=Q)
    expected = literal(made, policy, b, 0.8, (policy * Q).sum(axis=1), Q)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, nan_ok=True, rel=1e-9, abs=1e-9), name


@settings(max_examples=40)
@given(SEEDS)
def test_without_given_action_values_doubly_robust_goes_by_the_fitted_ones(seed):
    made = random_trajectories(seed)
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), size=3)
    V, Qs = literal_fqe(made, policy, 0.8)
    found = once(as_batch(made), policy, 0.8, behavior=BEHAVIOR)
    expected = literal(made, policy, BEHAVIOR, 0.8, V, Qs)
    assert found["dr"] == pytest.approx(expected["dr"], rel=1e-7, abs=1e-7)
    assert found["wdr"] == pytest.approx(expected["wdr"], rel=1e-7, abs=1e-7)
    begins = [V[steps[0][0]] for steps, _ in made]
    assert found["fqe"] == pytest.approx(np.mean(begins), rel=1e-7, abs=1e-7)


def literal_fqe(trajectories, policy, gamma, S=3, A=2, sweeps=120):
    """Fitted Q evaluation as an algorithm: fit a mean to each pair, again and again, with the stated fallbacks."""
    rows = []
    for steps, end in trajectories:
        states = [s for s, _, _ in steps] + [end]
        rows += [(s, a, r, states[t + 1]) for t, (s, a, r) in enumerate(steps)]
    V = [0.0] * S
    for _ in range(sweeps):
        target = [r + gamma * (0 if after < 0 else V[after]) for _, _, r, after in rows]
        Qs = [[0.0] * A for _ in range(S)]
        new = [None] * S
        for s in range(S):
            mine = [y for (state, _, _, _), y in zip(rows, target, strict=True) if state == s]
            for a in range(A):
                own = [y for (state, action, _, _), y in zip(rows, target, strict=True) if (state, action) == (s, a)]
                Qs[s][a] = np.mean(own) if own else np.mean(mine) if mine else 0.0
            if mine:
                new[s] = sum(policy[s][a] * Qs[s][a] for a in range(A))
        average = np.mean([new[s] for s, _, _, _ in rows])
        V = [average if v is None else v for v in new]
    return V, Qs


@pytest.mark.parametrize("horizon", [None, 3])
def test_fitted_q_evaluation_is_the_exact_value_in_the_mdp_of_the_rows(horizon):
    truth = environment("random_chain", n_states=4, successors=3, rng=1)
    batch = sampling.trajectories(truth, 40, 3, rng=2)
    table = tally(batch)
    assert (table.visits > 0).all()
    policy = np.random.default_rng(3).dirichlet(np.ones(2), size=4)
    rows, reward = mle(table).dense(), truth.reward
    if horizon is None:
        values = evaluate(rows, reward, 0.9, policy)
    else:
        values = np.zeros(4)
        for _ in range(horizon):
            values = (policy * (reward + 0.9 * rows @ values)).sum(axis=1)
    first = batch.state[batch.time == 0]
    assert once(batch, policy, 0.9, horizon=horizon)["fqe"] == pytest.approx(values[first].mean(), rel=1e-9)


def exact_world():
    """Probabilities in quarters, so that a data set can hold every trajectory in exact proportion."""
    quarter = Fraction(1, 4)
    T = {(0, 0): (2, 1, 1), (0, 1): (1, 2, 1), (1, 0): (0, 3, 1), (1, 1): (2, 0, 2)}  # to 0, to 1, ends; in quarters
    b = {(0, 0): 1, (0, 1): 3, (1, 0): 2, (1, 1): 2}
    R = {(0, 0): 1.0, (0, 1): -1.0, (1, 0): 0.5, (1, 1): 2.0}
    return T, b, R, quarter


def every_trajectory(length):
    """All trajectories of so many steps (or fewer, where they end), with 2·16^length times their probability."""
    T, b, R, _ = exact_world()
    going = [([], start, 16**length) for start in (0, 1)]
    done = []
    for _ in range(length):
        grown = []
        for (steps, s, weight), a in itertools.product(going, (0, 1)):
            for after, share in zip((0, 1, -1), T[s, a], strict=True):
                if share:
                    entry = ([*steps, (s, a, R[s, a])], after, weight * b[s, a] * share // 16)
                    (done if after < 0 else grown).append(entry)
        going = grown
    everything = done + going
    batch = as_batch([(steps, end) for steps, end, _ in everything], S=2)
    return batch, np.array([weight for _, _, weight in everything])


def true_values(policy, gamma, horizon=None):
    T, _, R, quarter = exact_world()
    rows = np.array([[[float(n * quarter) for n in T[s, a][:2]] for a in (0, 1)] for s in (0, 1)])
    reward = np.array([[R[s, a] for a in (0, 1)] for s in (0, 1)])
    chain, gain = (policy[:, :, None] * rows).sum(axis=1), (policy * reward).sum(axis=1)
    if horizon is None:
        return naive.exact_value_of_policy(chain[:, None], gain[:, None], gamma, [0, 0])
    values = np.zeros(2)
    for _ in range(horizon):
        values = gain + gamma * chain @ values
    return values


TARGET = np.array([[0.8, 0.2], [0.35, 0.65]])


@pytest.mark.parametrize("given", [True, False], ids=["given behavior", "estimated behavior"])
@pytest.mark.parametrize("horizon", [1, 3])
def test_on_every_trajectory_in_proportion_all_estimators_are_exact(horizon, given):
    """Unbiasedness of pdis and dr, consistency of the others, and fitted Q evaluation, in one closed form."""
    batch, weight = every_trajectory(3)
    b = np.array([[0.25, 0.75], [0.5, 0.5]]) if given else None
    log = read_log(batch, TARGET, 0.9, behavior=b, horizon=horizon)
    found = estimates(log, weight[None])
    exact = true_values(TARGET, 0.9, horizon).mean()
    for name in METHODS:
        assert found[name][0] == pytest.approx(exact, rel=1e-9), name


def test_doubly_robust_is_exact_with_any_action_values_if_the_behavior_is_right():
    batch, weight = every_trajectory(3)
    b, wrong = np.array([[0.25, 0.75], [0.5, 0.5]]), np.random.default_rng(0).normal(size=(3, 2, 2))
    log = read_log(batch, TARGET, 0.9, behavior=b, horizon=3, action_values=wrong)
    assert estimates(log, weight[None])["dr"][0] == pytest.approx(true_values(TARGET, 0.9, 3).mean(), rel=1e-9)


def test_doubly_robust_is_exact_with_any_behavior_if_the_action_values_are_right():
    """Also beyond the end of watching, where it goes on with the values."""
    batch, weight = every_trajectory(3)
    T, _, R, quarter = exact_world()
    V = true_values(TARGET, 0.9)
    right = np.array([[R[s, a] + 0.9 * float(quarter) * (np.array(T[s, a][:2]) @ V) for a in (0, 1)] for s in (0, 1)])
    wrong = np.array([[0.5, 0.5], [0.9, 0.1]])
    found = estimates(read_log(batch, TARGET, 0.9, behavior=wrong, action_values=right), weight[None])
    for name in ("dr", "wdr", "fqe"):
        assert found[name][0] == pytest.approx(V.mean(), rel=1e-9)
    watched = true_values(TARGET, 0.9, 3).mean()
    right_b = np.array([[0.25, 0.75], [0.5, 0.5]])
    found = estimates(read_log(batch, TARGET, 0.9, behavior=right_b), weight[None])
    for name in ("pdis", "wpdis", "wis"):
        assert found[name][0] == pytest.approx(watched, rel=1e-9)  # importance sampling is of the watched part


def test_a_policy_that_changes_with_time_is_followed_through_time():
    batch, weight = every_trajectory(3)
    policy = np.random.default_rng(4).dirichlet(np.ones(2), size=(3, 2))
    T, _, R, quarter = exact_world()
    rows = np.array([[[float(n * quarter) for n in T[s, a][:2]] for a in (0, 1)] for s in (0, 1)])
    reward = np.array([[R[s, a] for a in (0, 1)] for s in (0, 1)])
    values = np.zeros(2)
    for t in (2, 1, 0):
        values = (policy[t] * (reward + 0.9 * rows @ values)).sum(axis=1)
    found = estimates(read_log(batch, policy, 0.9, horizon=3), weight[None])
    for name in METHODS:
        assert found[name][0] == pytest.approx(values.mean(), rel=1e-9), name


# The same trajectories were given to offline_rl_ope 7.0.0 (ISEstimator and DREstimator with EmpiricalMeanDenom,
# WeightedEmpiricalMeanDenom, PassWeightDenom, PiTWeightDenom), and their first decisions to obp 0.4.1 (IPW, SNIPW, DR,
# SNDR). offline_rl_ope has float32 discounts; all episodes are equally long, since it drops those that are over.
STATES = [
    [2, 1, 2, 2],
    [1, 2, 2, 0],
    [0, 0, 0, 2],
    [2, 0, 1, 2],
    [0, 2, 0, 1],
    [2, 0, 1, 0],
    [2, 0, 2, 1],
    [1, 1, 1, 1],
]
ACTIONS = [
    [1, 1, 1, 1],
    [1, 1, 0, 1],
    [0, 0, 1, 0],
    [1, 1, 0, 0],
    [0, 0, 0, 1],
    [1, 0, 1, 1],
    [1, 1, 0, 1],
    [0, 0, 0, 0],
]
REWARDS = [
    [-1.0, -0.4, 1.1, -0.4], [0.1, -1.0, 1.5, -0.5], [-0.2, 1.6, 0.5, 1.5], [0.9, 1.2, -0.7, 0.6],
    [0.5, 1.6, 0.1, 0.8], [-0.8, 0.2, 0.0, -0.5], [1.4, 0.1, 1.9, 0.8], [0.8, 0.9, 1.0, -0.5],
]  # fmt: skip
OFFLINE_RL_OPE = {
    "pdis": 2.5250868842521097,
    "wpdis": 2.0080236826119346,
    "wis": 2.320925406195609,
    "dr": 1.7079808901052749,
    "wdr": 1.614278559844248,
}
OBP = {"pdis": 0.1728125, "wpdis": 0.184333333333333, "wis": 0.184333333333333, "dr": 0.0509375, "wdr": 0.001}


def shared_batch(length=4):
    paths = zip(STATES, ACTIONS, REWARDS, strict=True)
    return as_batch([(list(zip(*(column[:length] for column in path), strict=True)), -1) for path in paths])


@pytest.mark.parametrize("name", OFFLINE_RL_OPE)
def test_offline_rl_ope_finds_the_same_numbers(name):
    found = once(shared_batch(), POLICY, 0.9, behavior=BEHAVIOR, action_values=Q)
    assert found[name] == pytest.approx(OFFLINE_RL_OPE[name], rel=1e-6)


@pytest.mark.parametrize("name", OBP)
def test_obp_finds_the_same_numbers_for_one_decision(name):
    found = once(shared_batch(1), POLICY, 0.9, behavior=BEHAVIOR, action_values=Q)
    assert found[name] == pytest.approx(OBP[name], rel=1e-9)


def test_the_policy_that_made_the_data_is_worth_what_it_earned():
    batch = as_batch([(steps, -1) for steps, _ in random_trajectories(3)])
    returns = np.bincount(batch.episode, 0.8**batch.time * batch.reward)
    found = once(batch, BEHAVIOR, 0.8, behavior=BEHAVIOR)
    for name in ("pdis", "wpdis", "wis"):
        assert found[name] == pytest.approx(returns.mean())
    assert effective_size(read_log(batch, BEHAVIOR, 0.8, behavior=BEHAVIOR)) == pytest.approx(len(returns))


def test_the_effective_size_counts_even_weights():
    batch = as_batch([([(0, 0, 1.0)], -1)] * 3 + [([(0, 1, 1.0)], -1)] * 5)
    log = read_log(batch, [0, 0, 0], 0.9, behavior=np.full((3, 2), 0.5))
    assert effective_size(log) == pytest.approx(3)  # three episodes with equal weights, five with none
    uneven = read_log(batch, np.array([[0.8, 0.2]] * 3), 0.9, behavior=np.full((3, 2), 0.5))
    weights = np.array([1.6] * 3 + [0.4] * 5)
    assert effective_size(uneven) == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([None, 2]))
def test_an_episode_that_counts_twice_is_an_episode_that_is_there_twice(seed, horizon):
    """The bootstrap never makes the drawn data sets; this does."""
    rng = np.random.default_rng(seed)
    made, policy = random_trajectories(seed), rng.dirichlet(np.ones(2), size=3)
    times = rng.multinomial(len(made), np.full(len(made), 1 / len(made)))
    repeated = [each for each, n in zip(made, times, strict=True) for _ in range(n)]
    weighed = estimates(read_log(as_batch(made), policy, 0.9, horizon=horizon), times[None])
    for name, value in once(as_batch(repeated), policy, 0.9, horizon=horizon).items():
        assert weighed[name][0] == pytest.approx(value, nan_ok=True, rel=1e-8, abs=1e-8), name


def test_intervals_are_the_middle_of_estimates_on_episodes_drawn_again():
    batch = as_batch(random_trajectories(11, E=20))
    found = off_policy(batch, POLICY, 0.9, bootstrap=60, level=0.5, rng=3)
    times = np.random.default_rng(3).multinomial(20, np.full(20, 0.05), size=60)
    again = estimates(read_log(batch, POLICY, 0.9), times)
    for each in found.estimates:
        assert (each.low, each.high) == tuple(np.quantile(again[each.name], [0.25, 0.75], method="weibull"))
        assert each.low <= each.high
    assert found == off_policy(batch, POLICY, 0.9, bootstrap=60, level=0.5, rng=3)


def test_results_do_not_depend_on_how_many_are_solved_together_or_how(monkeypatch):
    made = random_trajectories(12, E=15)
    log = read_log(as_batch(made), POLICY, 0.9)
    times = np.random.default_rng(0).multinomial(15, np.full(15, 1 / 15), size=12)
    plain = estimates(log, times)
    for module, name, value in ((estimators, "BLOCK", 1), (fitted, "DENSE", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            other = estimates(log, times)
        for key in METHODS:
            np.testing.assert_allclose(other[key], plain[key], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dense", [500, 0])
def test_without_discounting_a_chain_that_never_ends_has_no_fitted_value(dense, monkeypatch):
    monkeypatch.setattr(fitted, "DENSE", dense)
    ends = as_batch([([(0, 0, 1.0), (1, 0, 1.0)], -1), ([(0, 0, 1.0), (1, 0, 1.0)], 0)])
    found = once(ends, [0, 0, 0], 1.0)
    assert found["fqe"] == pytest.approx(4)  # every second step an end by the toss of a coin
    circle = as_batch([([(0, 0, 1.0), (1, 0, 1.0)], 0)] * 3)
    said = off_policy(circle, [0, 0, 0], 1.0, bootstrap=5)
    assert np.isnan(said["fqe"].value)
    assert "never lead to an end" in said["fqe"].note
    assert not said["fqe"].trusted
    assert said["pdis"].value == pytest.approx(2)
    assert off_policy(circle, [0, 0, 0], 1.0, horizon=6, bootstrap=5)["fqe"].value == pytest.approx(6)


def test_long_episodes_with_large_ratios_do_not_overflow():
    steps = [(0, 0, 1.0)] * 2000
    batch = as_batch([(steps, -1), (steps, -1)])
    log = read_log(batch, [0, 0, 0], 0.9, behavior=np.array([[0.1, 0.9]] * 3))
    found = estimates(log, np.ones((1, 2), int))
    assert all(np.isfinite(each).all() for each in found.values())
    assert found["wis"][0] == pytest.approx(10)
    assert effective_size(log) == pytest.approx(2)


def test_how_much_was_not_watched_is_told():
    cut = as_batch([([(0, 0, 1.0)] * 2, 1), ([(0, 0, 1.0)] * 3, -1)])
    assert read_log(cut, [0, 0, 0], 0.5).unwatched == pytest.approx(0.5**2 / 2)
    assert read_log(cut, [0, 0, 0], 0.5, horizon=3).unwatched == pytest.approx((0.25 - 0.125) / (1 - 0.125) / 2)
    assert read_log(cut, [0, 0, 0], 1.0, horizon=4).unwatched == pytest.approx(0.5 / 2)
    assert read_log(cut, [0, 0, 0], 0.5, horizon=2).unwatched == 0
    assert read_log(cut, [0, 0, 0], 1.0).unwatched == pytest.approx(0.5)


def many(n=60, follow=0.5, length=1, end=-1):
    """Episodes in one state, with reward 1 for action 0 and 0 for action 1."""
    rng = np.random.default_rng(0)
    action = (rng.random((n, length)) >= follow).astype(int)
    return as_batch([([(0, int(a), 1.0 - a + 0.01 * rng.normal()) for a in line], end) for line in action], S=1)


def test_a_good_case_is_trusted_and_agrees():
    found = off_policy(many(), [0], 0.9, model_value=(1.0, 0.98, 1.02), bootstrap=200)
    assert found.trust
    assert all(each.trusted for each in found.estimates)
    assert "agrees with per-decision importance sampling" in found.verdict
    assert "enough to go by" in found.verdict
    assert found.behavior == "estimated"


def test_too_few_episodes_in_effect_are_not_to_be_trusted():
    found = off_policy(many(length=6), [0], 0.9, model_value=5.0, bootstrap=50)
    assert found.effective_size < FEW
    assert not found.trust
    assert "Do not trust" in found.verdict
    for name in ("pdis", "wpdis", "wis", "dr", "wdr"):
        assert "do not trust this" in found[name].note
        assert not found[name].trusted
    assert found["fqe"].trusted
    assert found["fqe"].effective_size is None


def test_disagreement_is_told_with_its_direction():
    promises = off_policy(many(), [0], 0.9, model_value=2.0, bootstrap=100)
    assert not promises.trust
    assert set(promises.apart) == set(METHODS)
    assert "promises more than the episodes show" in promises.verdict
    flatters = off_policy(many(), [0], 0.9, model_value=(0.5, 0.4, 0.6), bootstrap=100)
    assert "flatter" in flatters.verdict
    assert off_policy(many(), [0], 0.9, bootstrap=10).apart == ()


def test_what_was_only_partly_watched_is_not_held_against_the_model():
    found = off_policy(many(120, length=2, end=0), [0], 0.9, model_value=10.0, bootstrap=50)
    assert found.unwatched == pytest.approx(0.81)
    for name in ("pdis", "wpdis", "wis"):
        assert "the watched part only" in found[name].note
        assert not found[name].trusted
    assert found["dr"].trusted
    assert "81% of the time that counts" in found.verdict


def test_actions_that_nobody_took_are_told():
    found = off_policy(many(follow=1.0), [1], 0.9, model_value=0.0, bootstrap=20)
    assert found.untried == 1
    assert "nobody took" in found.verdict
    assert not found.trust
    assert np.isnan(found["wis"].value)
    assert "no episode follows the policy" in found["wis"].note
    assert "No estimate can be compared with" in found.verdict


def test_nothing_is_trusted_where_the_policy_rests_on_a_few_rows():
    """One state, an action that was taken four times in a hundred episodes of one decision."""
    action, zeros = np.repeat([0, 1], [96, 4]), np.zeros(100, dtype=int)
    batch = Batch(zeros, action, zeros - 1, 1, 2, reward=1.0 * action, episode=np.arange(100), time=zeros)
    seldom, usual = (off_policy(batch, [a], 0.9, bootstrap=20) for a in (1, 0))
    assert (seldom.thin, seldom.untried, usual.thin) == (1.0, 0.0, 0.0)
    assert not any(each.trusted for each in seldom.estimates)
    assert not seldom.trust
    assert "taken fewer than 5 times" in seldom.verdict
    assert usual["fqe"].trusted


def test_one_episode_has_no_interval():
    found = off_policy(many(1), [0], 0.9, bootstrap=5)
    assert np.isnan(found["fqe"].low)
    assert "one episode" in found["fqe"].note


def test_draws_without_a_value_are_left_out_and_counted():
    batch = as_batch([([(0, 0, 1.0)], -1)] + [([(0, 1, 0.0)], -1)] * 2, S=1)
    found = off_policy(batch, [0], 0.9, bootstrap=200)
    assert found["wis"].value == pytest.approx(1)
    assert "of 200 draws, which are left out" in found["wis"].note


def test_json_has_plain_values_and_the_words():
    found = off_policy(many(follow=1.0), [1], 0.9, bootstrap=5, model_value=1.0)
    said = json.loads(json_text(found.to_json()))
    assert [each["name"] for each in said["estimates"]] == list(METHODS)
    assert said["estimates"][2]["value"] is None
    assert said["estimates"][5]["words"] == "fitted Q evaluation"
    assert said["verdict"] == found.verdict
    assert said["model"] == [1.0, 1.0, 1.0]


def test_chances_of_each_row_are_a_behavior_too():
    batch = shared_batch()
    by_row = off_policy(batch, POLICY, 0.9, behavior=BEHAVIOR[batch.state, batch.action], bootstrap=20)
    by_state = off_policy(batch, POLICY, 0.9, behavior=BEHAVIOR, bootstrap=20)
    assert by_row == by_state
    assert by_row.behavior == "given"


def test_smoothing_pulls_the_estimated_behavior_toward_even_chances():
    batch = as_batch([([(0, 0, 1.0)], -1)] * 3 + [([(0, 1, 0.0)], -1)])
    found = once(batch, [0, 0, 0], 0.9, smoothing=4.0)
    assert found["pdis"] == pytest.approx(3 / 4 / ((3 + 2) / (4 + 4)))


def test_known_rewards_replace_those_of_the_rows():
    table = np.arange(6.0).reshape(3, 2)
    batch = shared_batch()
    found = once(batch, POLICY, 0.9, behavior=BEHAVIOR, reward=table)
    paths = zip(STATES, ACTIONS, strict=True)
    made = [([(s, a, table[s, a]) for s, a in zip(*path, strict=True)], -1) for path in paths]
    assert found == pytest.approx(once(as_batch(made), POLICY, 0.9, behavior=BEHAVIOR))


GOOD = [([(0, 0, 1.0), (1, 1, 0.5)], -1)]
BAD = {
    "no episodes": ({"batch": Batch([0], [0], [0], 3, 2, reward=[1.0])}, "not in episodes"),
    "no rewards": ({"batch": Batch([0], [0], [0], 3, 2, episode=[0])}, "The rows have no rewards"),
    "a gap": ({"batch": Batch([0, 1], [0, 0], [2, 0], 3, 2, reward=[1.0, 1.0], episode=[0, 0])}, "Row 0 leads to"),
    "a behavior that could not have": (
        {"behavior": np.array([[0, 1.0]] * 3)},
        r"Row .: action '0' was taken in state '0'",
    ),
    "a behavior of wrong shape": ({"behavior": np.ones((3, 1))}, "shape"),
    "a row's chance of 0": ({"behavior": [0.5, 0.0]}, r"Row 1: action .* gives it no chance"),
    "chances for other rows": ({"behavior": [0.5, 0.5, 0.5]}, r"\(2,\) of the logged action of each row"),
    "several discounts": ({"discount": [0.5, 0.9]}, "one discount"),
    "rewards of wrong shape": ({"reward": np.ones((2, 2))}, "Known rewards need the shape"),
    "values of wrong shape": ({"action_values": np.ones((2, 2))}, r"action_values need the shape \(3, 2\)"),
    "values without a time": ({"action_values": np.ones((3, 2)), "horizon": 2}, r"need the shape \(2, 3, 2\)"),
    "negative smoothing": ({"smoothing": -1.0}, "smoothing"),
    "a level that is none": ({"level": 90}, "between 0 and 1"),
    "no draws": ({"bootstrap": 0}, "bootstrap must be"),
    "a model value that is none": ({"model_value": (1.0, 2.0)}, "mean, low and high"),
    "a policy of wrong shape": ({"policy": [0, 1]}, "one action number for each of 3 states"),
}


@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused(change, says):
    given = {"batch": as_batch(GOOD), "policy": [0, 1, 0], "discount": 0.9, "bootstrap": 2} | change
    with pytest.raises(InputError, match=says):
        off_policy(**given)


@pytest.mark.parametrize("horizon", [None, 4])
@pytest.mark.parametrize("seed", range(4))
def test_time_in_pairs_is_what_walking_through_the_rows_gives(seed, horizon):
    """The twin walks step by step: rows of a pair alike, an untried one as its state's rows, a new state as all."""
    trajectories, gamma = random_trajectories(seed, S=4, E=3), 0.8
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), size=4)
    log = read_log(as_batch(trajectories, S=4), policy, gamma, horizon=horizon)
    rows = [(s, a, n, over) for s, a, n, over in zip(log.state, log.action, log.next_state, log.ended, strict=True)]
    now = {}  # chance of being in a state; None stands for one without rows
    for i in log.first:
        now[log.state[i]] = now.get(log.state[i], 0) + 1 / len(log.first)
    time, unseen, total = np.zeros((4, 2)), 0.0, 0.0
    for t in range(horizon or 200):
        following = {}
        for state, chance in now.items():
            here = [row for row in rows if row[0] == state] or rows
            total += gamma**t * chance
            unseen += gamma**t * chance if state is None else 0.0
            for each in here:  # a state without rows is any row's state
                s = each[0]
                own = [row for row in rows if row[0] == s]
                for a in range(2):
                    part = chance / len(here) * policy[s, a]
                    time[s, a] += gamma**t * part if state is not None else 0.0
                    like = [row for row in own if row[1] == a] or own
                    for _, _, after, over in like:
                        place = after if any(row[0] == after for row in rows) else None
                        if not over:
                            following[place] = following.get(place, 0.0) + part / len(like)
        now = following
    often, elsewhere = fitted.occupied(log)
    np.testing.assert_allclose(often, time / total, atol=1e-9)
    assert elsewhere == pytest.approx(unseen / total, abs=1e-9)


def test_what_few_tried_is_weighed_by_where_the_policy_goes():
    """State 1 is seldom seen, and all that the policy does is to go and stay there, on three rows."""
    rare = [([(0, 1, 0.0)] + [(1, 0, 1.0)] * 3, -1)]
    often = [([(0, 0, 0.0)] * 10, -1)] * 40 + [([(0, 1, 0.0)], -1)] * 5
    found = off_policy(as_batch(rare + often, S=2), [1, 0], 0.99, horizon=10, bootstrap=20)
    assert found.thin == pytest.approx(_time_in_state_1(10))
    assert found.thin > 0.05
    assert not found["fqe"].trusted


def _time_in_state_1(horizon):
    """From state 0 one row of six leads to state 1, from there two of three back to it; the others end."""
    first, second = 1.0, 0.0
    total = there = 0.0
    for t in range(horizon):
        total, there = total + 0.99**t * (first + second), there + 0.99**t * second
        first, second = 0.0, first / 6 + second * 2 / 3
    return there / total
