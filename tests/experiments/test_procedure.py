"""Algorithms 1 and 2: the batched procedure against the printed loops, and what its results may depend on."""

import json
from dataclasses import replace

import numpy as np
import pytest

import naive
from certeq import evaluate, sampling, tally
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.experiments import procedure
from certeq.experiments.figures.study import METHODS
from certeq.experiments.procedure import method
from certeq.experiments.shards import seed_of
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds import ENVIRONMENTS, loop, random_chain, stay_or_leave
from certeq.worlds.tumor import tumor_bins, tumor_trials

DATA_SETS, S, A = 12, 4, 2
UNIFORM = np.full(S, 1 / S)
EXPERT = np.random.default_rng(0).dirichlet(np.ones(S), size=(S, A))
STRENGTHS = (0.0, 0.3, 0.8, 0.99)


@pytest.fixture(scope="module")
def truth():
    """A small random world for each data set, so that the twins can try every policy."""
    return random_chain(n_states=S, n_actions=A, successors=3, size=DATA_SETS, discount=0.95, rng=1)


@pytest.fixture(scope="module")
def counts(truth):
    counts = tally(sampling.uniform_pairs(truth, 16, rng=2))
    assert (counts.visits == 0).any()
    return counts


def each_pair(function):
    return np.array([[function(s, a) for a in range(A)] for s in range(S)])


def prior_mean(table, strength, target):
    """Posterior means under a prior of magnitude ε / (1 - ε) times the mean visits; the target for an unseen pair.

    A prior of no magnitude says nothing: then an unseen pair is uniform, as in the MLE.
    """
    magnitude = strength / (1 - strength) * table.sum() / (S * A)
    if strength == 0:
        return naive.mle(table)
    return np.array(
        [
            [
                naive.posterior_mean(table[s, a], magnitude * target[s, a]) if table[s, a].any() else target[s, a]
                for a in range(A)
            ]
            for s in range(S)
        ]
    )


# For each method: (counts, true rows, rewards, discount, strength) -> (rows, rewards, discount) of the printed plan.
PRINTED = {
    "discount": (method("discount"), lambda c, T, R, g, e: (naive.mle(c), R, (1 - e) * g)),
    "uniform prior": (
        method("uniform_prior"),
        lambda c, T, R, g, e: (prior_mean(c, e, np.broadcast_to(UNIFORM, (S, A, S))), R, g),
    ),
    "expert": (
        method("expert_prior", target=EXPERT.tolist()),
        lambda c, T, R, g, e: (prior_mean(c, e, EXPERT), R, g),
    ),
    "epsilon-greedy": (
        method("epsilon_greedy"),
        lambda c, T, R, g, e: (
            naive.epsilon_greedy_transition(naive.mle(c), e),
            naive.epsilon_greedy_reward(R, e),
            g,
        ),
    ),
}


def specific(weight):
    return lambda c, T, R, g, e: (
        naive.mix(naive.mle(c), each_pair(lambda s, a: weight(c[s, a], T[s, a])), UNIFORM),
        R,
        g,
    )


def specific_greedy(c, T, R, g, e):
    star = each_pair(lambda s, a: naive.epsilon_greedy_star_posterior(c[s], 0.25, a))
    return naive.epsilon_greedy_transition(naive.mle(c), star), naive.epsilon_greedy_reward(R, star), g


WITHOUT_STRENGTH = {
    "posterior": (
        method("least_mse", pseudo_count=0.25),
        specific(lambda c, T: naive.posterior_epsilon_star(c, 0.25, UNIFORM)),
    ),
    "mle": (
        method("least_mse", plug_in="mle"),
        specific(lambda c, T: naive.epsilon_star(c / max(c.sum(), 1), UNIFORM, c.sum())),
    ),
    "oracle": (method("oracle"), specific(lambda c, T: naive.epsilon_star(T, UNIFORM, c.sum()))),
    "specific epsilon-greedy": (method("least_mse_epsilon_greedy", pseudo_count=0.25), specific_greedy),
}


def even_loss(T, R, gamma, model):
    """Loss of the policy that takes each best action of a model equally often, by trying every policy."""
    rows, reward, discount = model
    best = naive.exact_value_of_policy(*model, naive.best_policy_by_enumeration(*model))
    q = reward + discount * (rows @ best)
    chance = np.isclose(q, q.max(axis=1, keepdims=True), rtol=0, atol=1e-9)
    chance = chance / chance.sum(axis=1, keepdims=True)
    followed = np.einsum("sa,san->sn", chance, T)[:, None]
    earned = (chance * R).sum(axis=1, keepdims=True)
    optimal = naive.exact_value_of_policy(T, R, gamma, naive.best_policy_by_enumeration(T, R, gamma))
    return np.mean(optimal - naive.exact_value_of_policy(followed, earned, gamma, np.zeros(len(T), dtype=int)))


@pytest.mark.parametrize("name", [*PRINTED, *WITHOUT_STRENGTH])
def test_losses_are_those_of_the_printed_loops(truth, counts, name):
    chosen, printed = (PRINTED | WITHOUT_STRENGTH)[name]
    grid = STRENGTHS if name in PRINTED else (np.nan,)
    columns = procedure.losses(truth, counts, {name: chosen}, STRENGTHS)
    assert set(columns["method"]) == {name}
    np.testing.assert_array_equal(columns["data_set"], np.repeat(np.arange(DATA_SETS), len(grid)))
    np.testing.assert_array_equal(columns["strength"], np.tile(grid, DATA_SETS))
    expected = []
    for d in range(DATA_SETS):
        T, R = truth.transition.array[d], truth.reward[d]
        for strength in grid:
            model = printed(counts.transitions[d], T, R, truth.discount, strength)
            expected.append(even_loss(T, R, truth.discount, model))
    np.testing.assert_allclose(columns["loss"], expected, atol=1e-8)
    assert max(expected) > 0.01  # there was something to lose


@pytest.mark.parametrize("name", PRINTED)
def test_at_strength_zero_every_method_is_the_mle(truth, counts, name):
    plain = procedure.losses(truth, counts, {"none": method("none")})["loss"]
    found = procedure.losses(truth, counts, {name: PRINTED[name][0]}, (0.0, 0.3))["loss"].reshape(-1, 2)
    np.testing.assert_array_equal(found[:, 0], plain)
    assert (found[:, 1] != plain).any()


@pytest.mark.slow
def test_a_tie_is_valued_as_the_policy_that_takes_each_best_action_equally_often():
    """Loop with a handful of rows: most pairs were never tried, and their actions look the same."""
    truth = loop()
    counts = procedure.draw_counts(truth, {"kind": "tuples", "size": 12}, 15, 3)
    spread = Counts(counts.transitions[:, None])
    tied = procedure.policies(truth, spread, method("none"), np.array([np.nan]))
    assert (tied == 0.5).any()
    found = procedure.losses(truth, counts, {"none": method("none")})["loss"]
    T, R, gamma = truth.transition.array, truth.reward, truth.discount
    expected = [even_loss(T, R, gamma, (naive.mle(table), R, gamma)) for table in counts.transitions]
    np.testing.assert_allclose(found, expected, atol=1e-8)
    first = [naive.loss(T, R, gamma, tied[d, 0].argmax(axis=-1)) for d in range(15)]  # what the first action costs
    assert not np.allclose(first, found)


@pytest.mark.parametrize("world", ["river_swim", "loop", "stay_or_leave"])
def test_the_names_of_actions_and_states_decide_nothing(world):
    """The same rows under other names lose the same, with every method of the study."""
    truth = procedure.draw_truth(world, {}, 20, 1)
    counts = procedure.draw_counts(truth, {"kind": "trajectories", "episodes": 2, "length": 19}, 20, 2)
    random = np.random.default_rng(3)
    s, a = random.permutation(truth.n_states), np.arange(truth.n_actions)[::-1]
    rows = truth.transition.array[np.ix_(s, a, s)]
    other = MDP(Rows(rows), truth.reward[np.ix_(s, a)], truth.discount)
    where = counts.positions and replace(counts.positions, places=counts.positions.places[s])
    again = Counts(counts.transitions[:, s][:, :, a][..., s], positions=where)
    here, there = (procedure.losses(*given, METHODS)["loss"] for given in ((truth, counts), (other, again)))
    np.testing.assert_allclose(there, here, rtol=1e-7, atol=1e-9)


def left_out_error(table, strength):
    """Squared error of predicting each row from all others, one by one."""
    total = 0.0
    magnitude = strength / (1 - strength) * table.sum() / (S * A)
    for s, a, i in np.ndindex(S, A, S):
        rest = table[s, a].copy()
        rest[i] -= 1
        empty = magnitude + rest.sum() == 0
        for _ in range(table[s, a, i]):
            p = UNIFORM if empty else naive.posterior_mean(rest, magnitude * UNIFORM)
            total += ((p - np.eye(S)[i]) ** 2).sum()
    return total


def test_cross_validation_takes_the_strength_that_predicts_left_out_rows_best(counts):
    found = procedure.cross_validate(counts, STRENGTHS)
    for d, table in enumerate(counts.transitions):
        errors = [left_out_error(table, strength) for strength in STRENGTHS]
        assert errors[STRENGTHS.index(found[d])] == pytest.approx(min(errors))
    assert len(set(found)) > 1


def test_a_cross_validated_prior_is_the_prior_at_that_strength(truth, counts):
    found = procedure.losses(truth, counts, {"cv": method("cross_validation")})["loss"]
    swept = procedure.losses(truth, counts, {"prior": method("uniform_prior")})["loss"].reshape(DATA_SETS, -1)
    at = [procedure.STRENGTHS.index(each) for each in procedure.cross_validate(counts, procedure.STRENGTHS)]
    np.testing.assert_allclose(found, swept[np.arange(DATA_SETS), at], atol=1e-12)


def test_a_start_weights_the_states(truth, counts):
    chosen = {"discount": method("discount")}
    one = [procedure.losses(truth, counts, chosen, STRENGTHS, start=np.eye(S)[s])["loss"] for s in range(S)]
    np.testing.assert_allclose(np.mean(one, axis=0), procedure.losses(truth, counts, chosen, STRENGTHS)["loss"])


def chains():
    truth = random_chain(size=40, rng=3)
    return truth, tally(sampling.uniform_pairs(truth, 80, rng=4))


def medium():
    """Forty states, too many for the small planner, and one truth for all data sets."""
    random = np.random.default_rng(5)
    truth = MDP(Rows(random.dirichlet(np.full(40, 0.05), size=(40, 2))), random.random((40, 2)), 0.97)
    return truth, tally(sampling.uniform_pairs(truth, 200, data_sets=9, rng=6))


ALL = {
    "discount": method("discount"),
    "uniform prior": method("uniform_prior"),
    "specific": method("least_mse"),
    "epsilon-greedy": method("epsilon_greedy"),
    "oracle": method("oracle"),
}


@pytest.mark.parametrize("case", [chains, medium])
def test_losses_of_a_data_set_do_not_depend_on_its_neighbors(case):
    truth, counts = case()
    whole = procedure.losses(truth, counts, ALL)
    for part in (slice(0, 1), slice(1, 4), slice(4, None)):
        alone = truth
        if truth.transition.batch:
            alone = MDP(Rows(truth.transition.array[part]), truth.reward[part], truth.discount)
        some = procedure.losses(alone, Counts(counts.transitions[part]), ALL)
        chosen = np.isin(whole["data_set"], np.arange(len(counts.transitions))[part])
        np.testing.assert_array_equal(some["loss"], whole["loss"][chosen])  # to the last bit


@pytest.mark.parametrize("case", [chains, medium])
def test_losses_do_not_depend_on_the_number_of_threads(case, monkeypatch):
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("CERTEQ_THREADS", threads)
        found.append(procedure.losses(*case(), ALL)["loss"])
    np.testing.assert_array_equal(*found)


def test_values_are_those_of_the_public_evaluation():
    random = np.random.default_rng(8)
    each = MDP(Rows(random.dirichlet(np.full(40, 0.05), size=(5, 40, 2))), random.random((5, 40, 2)), 0.97)
    for truth, D in ((chains()[0], 40), (medium()[0], 9), (each, 5)):
        policy = np.random.default_rng(7).dirichlet([0.5, 0.5], size=(D, 3, truth.n_states))
        policy[:, 1] = policy[:, 1].round()  # a deterministic one
        policy[:, 2] = policy[:, 0]
        found = procedure.values(truth, policy)
        rows = np.broadcast_to(truth.transition.array, (D, *truth.transition.array.shape[-3:]))
        reward = np.broadcast_to(truth.reward, (D, *truth.reward.shape[-2:]))
        np.testing.assert_allclose(found, evaluate(rows[:, None], reward[:, None], truth.discount, policy), rtol=1e-8)
        np.testing.assert_array_equal(found[:, 2], found[:, 0])  # equal policies, equal values


@pytest.mark.parametrize("n_states", [10, 40])
def test_where_nothing_can_be_lost_the_loss_is_zero(n_states):
    """Actions that do the same differ by rounding only, which must not look like a difference between methods."""
    truth = stay_or_leave(kappa=0.4, lam=0.5, n_states=n_states)
    counts = tally(sampling.uniform_pairs(truth, 80, data_sets=20, rng=8))
    assert (procedure.losses(truth, counts, ALL)["loss"] == 0).all()


def test_experiments_refuse_worlds_that_end():
    truth = random_chain(rng=1)
    ended = Counts(np.ones((1, 10, 2, 10), dtype=int), np.ones((1, 10, 2), dtype=int))
    with pytest.raises(InputError, match="no episode ends"):
        procedure.losses(truth, ended, ALL)


@pytest.mark.parametrize(
    ("regime", "visits"),
    [
        ({"kind": "tuples", "size": 30}, 30),
        ({"kind": "equal", "each": 3}, 60),
        ({"kind": "trajectories", "episodes": 2, "length": 7}, 14),
    ],
)
def test_regimes_draw_as_many_transitions_as_they_say(regime, visits):
    counts = procedure.draw_counts(random_chain(rng=1), regime, 5, 2)
    assert counts.batch == (5,)
    assert (counts.visits.sum(axis=(1, 2)) == visits).all()
    assert (counts.visits == 3).all() == (regime["kind"] == "equal")


def test_trials_are_those_of_the_simulator_in_its_own_bins():
    world = {"process_noise": 0.1, "treatment_probability": 0.3, "episodes": 500}
    truth = procedure.draw_truth("tumor", {**world, "dose_penalty": 2.0}, 3, 0)
    found = procedure.draw_counts(truth, {"kind": "trials", "patients": 7, "world": world}, 3, 9)
    settings = {"process_noise": 0.1, "treatment_probability": 0.3}
    batch = tumor_trials(3, patients=7, edges=tumor_bins(**world), rng=9, **settings)
    np.testing.assert_array_equal(found.transitions, tally(batch).transitions)
    assert truth.n_states == 256


def test_an_unknown_regime_is_named():
    with pytest.raises(InputError, match=r"'tuple'.*tuples"):
        procedure.draw_counts(random_chain(rng=1), {"kind": "tuple"}, 1, 0)


@pytest.mark.parametrize("world", ["random_chain", "loop"])
def test_alignment_is_distance_and_least_error_pair_by_pair(world):
    truth = procedure.draw_truth(world, {}, 3, 1)
    counts = procedure.draw_counts(truth, {"kind": "tuples", "size": 60}, 3, 2)
    N = truth.n_states
    found = procedure.alignment(truth, counts)
    grid = np.linspace(0, 1, 2001)
    for d in range(3):
        T = truth.transition.array[d] if truth.transition.batch else truth.transition.array
        T_mle, c = naive.mle(counts.transitions[d]), 60 / (2 * N)
        expected = dict.fromkeys(found, 0.0)
        for s, a in np.ndindex(N, 2):
            expected["to_uniform"] += sum((T[s, a] - 1 / N) ** 2) / (2 * N)
            expected["to_average"] += sum((T[s, a] - T[s].mean(axis=0)) ** 2) / (2 * N)
            expected["to_estimate"] += sum((T[s, a] - T_mle[s].mean(axis=0)) ** 2) / (2 * N)
            uniform = naive.row_mse(T[s, a], np.full(N, 1 / N), c, naive.epsilon_star(T[s, a], np.full(N, 1 / N), c))
            greedy = naive.epsilon_greedy_mse(T[s], [c, c], a, naive.epsilon_greedy_star(T[s], [c, c], a))
            expected["error_uniform"] += uniform / (2 * N)
            expected["error_average"] += greedy / (2 * N)
            if s == 0 == d:
                assert greedy <= min(naive.epsilon_greedy_mse(T[s], [c, c], a, e) for e in grid) + 1e-12
        for name, value in expected.items():
            assert found[name][d] == pytest.approx(value, abs=1e-10), name
    assert (found["to_average"] <= found["to_uniform"]).all()


CELL = {
    "panel": "chain",
    "environment": "random_chain",
    "settings": {},
    "regime": {"kind": "tuples", "size": 60},
    "methods": {"specific": {"regularizer": "least_mse", "settings": {"pseudo_count": 0.25}}},
    "data_sets": 5,
}


def test_a_cell_is_a_function_of_what_it_says_and_the_seed():
    first, again = (procedure.run_cell(json.loads(json.dumps(CELL)), seed_of(CELL, 3)) for _ in range(2))
    other = procedure.run_cell(CELL, seed_of(CELL, 4))
    np.testing.assert_array_equal(first["loss"], again["loss"])
    assert set(first["panel"]) == {"chain"}
    assert (first["loss"] != other["loss"]).any()


def test_a_weighted_cell_uses_the_start_of_the_truth():
    cell = {**CELL, "environment": "river_swim"}
    plain, weighted = (procedure.run_cell({**cell, "weighted": on}, 5)["loss"] for on in (False, True))
    assert (plain != weighted).any()  # River Swim starts in state 0


@pytest.mark.parametrize("many", [True, False])
def test_a_new_random_world_is_drawn_by_the_seed(monkeypatch, many):
    def one(*, discount=0.9, rng=None):
        return random_chain(discount=discount, rng=rng)

    monkeypatch.setitem(ENVIRONMENTS, "new", random_chain if many else one)
    first, same, other = (procedure.draw_truth("new", {}, 3, seed) for seed in (1, 1, 2))
    assert first.batch == ((3,) if many else ())
    np.testing.assert_array_equal(first.reward, same.reward)
    assert (first.reward != other.reward).any()
