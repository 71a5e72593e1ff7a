"""Exact evaluation: the value of a policy and what it loses, against literal twins, for every shape of argument."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import InputError, Mixture, Rows, evaluate, loss, solve
from certeq.planners import compiled
from strategies import SEEDS, models, random_model, random_rows

SMALL = {"S": st.integers(1, 4), "A": st.integers(1, 3), "ends": st.booleans()}


def random_policy(seed, S, A, batch=()):
    return np.random.default_rng(seed).integers(A, size=(*batch, S))


@given(models(**SMALL), SEEDS)
def test_a_deterministic_policy_is_worth_what_elimination_finds(world, seed):
    policy = random_policy(seed, *world.reward.shape)
    expected = naive.exact_value_of_policy(*world, policy)
    np.testing.assert_allclose(evaluate(*world, policy), expected, atol=1e-10)


@given(models(**SMALL | {"discount": st.floats(0, 0.9)}), SEEDS)
def test_a_deterministic_policy_is_worth_what_repeated_backups_find(world, seed):
    policy = random_policy(seed, *world.reward.shape)
    np.testing.assert_allclose(evaluate(*world, policy), naive.value_of_policy(*world, policy, 300), atol=1e-9)


@given(models(**SMALL), SEEDS)
def test_a_stochastic_policy_is_worth_what_its_average_model_is(world, seed):
    T, R, gamma = world
    policy = np.random.default_rng(seed).dirichlet(np.ones(R.shape[1]), size=len(R))
    rows, gain = (policy[:, :, None] * T).sum(axis=1), (policy * R).sum(axis=1)
    expected = np.linalg.solve(np.eye(len(R)) - gamma * rows, gain)
    np.testing.assert_allclose(evaluate(T, R, gamma, policy), expected, atol=1e-10)


@given(models(**SMALL), SEEDS)
def test_no_advice_means_any_action_at_random(world, seed):
    S, A = world.reward.shape
    policy = np.random.default_rng(seed).integers(-1, A, size=S)
    mixed = np.where(policy[:, None] < 0, 1 / A, np.eye(A)[policy])
    np.testing.assert_allclose(evaluate(*world, policy), evaluate(*world, mixed), atol=1e-12)


@given(models(**SMALL), SEEDS)
def test_certain_probabilities_are_the_deterministic_policy(world, seed):
    S, A = world.reward.shape
    policy = random_policy(seed, S, A)
    np.testing.assert_allclose(evaluate(*world, np.eye(A)[policy]), evaluate(*world, policy), atol=1e-12)


@given(models(S=st.integers(1, 3), A=st.integers(1, 3), ends=st.booleans()), SEEDS)
def test_the_loss_is_the_mean_distance_to_the_best_policy(world, seed):
    policy = random_policy(seed, *world.reward.shape)
    assert loss(*world, policy) == pytest.approx(naive.loss(*world, policy), abs=1e-10)
    assert loss(*world, solve(*world).policy) == pytest.approx(0, abs=1e-10)


@given(models(**SMALL), SEEDS)
def test_with_a_start_the_loss_is_weighted_by_it(world, seed):
    rng = np.random.default_rng(seed)
    S, A = world.reward.shape
    policy, start = random_policy(seed, S, A), rng.dirichlet(np.ones(S))
    lost = solve(*world).values - evaluate(*world, policy)
    assert loss(*world, policy, start=start) == pytest.approx(start @ lost, abs=1e-12)
    first = loss(*world, policy, start=np.eye(S))  # one loss for each state to start in
    np.testing.assert_allclose(first, lost, atol=1e-12)


BATCHES = [
    ((), (5,)),
    ((5,), ()),
    ((5,), (5,)),
    ((3, 1), (1, 4)),
    ((3,), (2, 3)),
    ((), (2, 3)),
    ((2, 3), (3,)),
    ((1, 3), (4, 1, 3)),
]


@pytest.mark.parametrize("forced", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize(("world", "policies"), BATCHES)
def test_worlds_and_policies_broadcast(world, policies, forced, monkeypatch):
    monkeypatch.setattr(compiled, "WORTH", 0 if forced else np.inf)
    S, A = 4, 3
    T, R, _ = random_model(0, S, A, batch=world, ends=True)
    gamma = np.random.default_rng(1).choice([0.0, 0.5, 0.9], size=world)
    policy = random_policy(2, S, A, policies)
    batch = np.broadcast_shapes(world, policies)
    values, lost = evaluate(T, R, gamma, policy), loss(T, R, gamma, policy)
    assert values.shape == (*batch, S)
    assert lost.shape == batch
    full = (
        np.broadcast_to(T, (*batch, S, A, S)),
        np.broadcast_to(R, (*batch, S, A)),
        np.broadcast_to(gamma, batch),
        np.broadcast_to(policy, (*batch, S)),
    )
    for index in np.ndindex(batch):
        expected = naive.exact_value_of_policy(*(part[index] for part in full))
        np.testing.assert_allclose(values[index], expected, atol=1e-12)
        assert lost[index] == pytest.approx(naive.loss(*(part[index] for part in full)), abs=1e-10)


@pytest.mark.parametrize("policies", [(3, 1), (2, 3)])
def test_stochastic_policies_broadcast(policies):
    T, R, gamma = random_model(3, 4, 2, batch=(3,))
    policy = np.random.default_rng(4).dirichlet(np.ones(2), size=(*policies, 4))
    values = evaluate(T, R, gamma, policy)
    batch = np.broadcast_shapes((3,), policies)
    assert values.shape == (*batch, 4)
    for index in np.ndindex(batch):
        alone = evaluate(T[index[-1]], R[index[-1]], gamma, np.broadcast_to(policy, (*batch, 4, 2))[index])
        np.testing.assert_allclose(values[index], alone, atol=1e-12)


def test_a_large_batch_takes_the_compiled_way_and_agrees(monkeypatch):
    world, policy = random_model(5, 10, 2, batch=(3100,)), random_policy(6, 10, 2, (3100,))
    assert compiled.worth((3100,), 10)
    fast = evaluate(*world, policy)
    monkeypatch.setattr(compiled, "WORTH", np.inf)
    np.testing.assert_allclose(fast, evaluate(*world, policy), rtol=1e-12, atol=1e-12)


def test_a_mixture_is_evaluated_as_what_it_is():
    rng = np.random.default_rng(7)
    T, R, gamma = random_model(7, 5, 2)
    target, weight = random_rows(rng, (1, 1, 5)), rng.random((5, 2))
    written = naive.mix(T, weight, target)
    for policy in (random_policy(8, 5, 2), rng.dirichlet(np.ones(2), size=5)):
        mixed = evaluate(Mixture(Rows(T), weight, Rows(target)), R, gamma, policy)
        np.testing.assert_allclose(mixed, evaluate(written, R, gamma, policy), atol=1e-12)


def test_a_mixture_is_evaluated_as_what_it_is_by_the_compiled_way_too(monkeypatch):
    monkeypatch.setattr(compiled, "WORTH", 0)
    test_a_mixture_is_evaluated_as_what_it_is()


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
def test_sparse_models_are_evaluated_as_dense_ones(discount):
    T, R, _ = random_model(9, 6, 3)
    policy = random_policy(10, 6, 3)
    sparse = evaluate(sp.csr_array(T.reshape(18, 6)), R, discount, policy)
    np.testing.assert_allclose(sparse, evaluate(T, R, discount, policy), rtol=1e-10, atol=1e-10)


def test_without_discounting_the_time_to_the_end_is_what_is_counted():
    T = np.array([[[0.5, 0.25]], [[0.0, 0.75]]])
    np.testing.assert_allclose(evaluate(T, np.ones((2, 1)), 1.0, [0, 0]), [4, 4])  # ends with chance 1/4 each step
    with pytest.raises(InputError, match=r"stay forever among the states 1\."):
        evaluate(np.array([[[0.5, 0.25]], [[0.0, 1.0]]]), np.ones((2, 1)), 1.0, [0, 0])


BAD = {
    "an action that is not there": ([0, 3, 1], r"State 1: the policy has action 3; actions are 0 to 1"),
    "an action below no advice": ([0, -2, 1], r"State 1: the policy has action -2"),
    "too few states": ([0, 1], "one action number for each of 3 states"),
    "fractions of actions": ([0.0, 0.5, 1.0], r"\(3,\) whole action numbers or \(3, 2\) probabilities"),
    "probabilities that do not add up": ([[0.5, 0.5], [0.5, 0.4], [1, 0]], r"State 1: .* sum to 0\.9"),
    "a negative probability": ([[0.5, 0.5], [1.5, -0.5], [1, 0]], r"policy\[1, 0\] is 1\.5"),
    "NaN": ([[0.5, 0.5], [np.nan, 0.5], [1, 0]], r"policy\[1, 0\] is nan"),
    "a table of wrong shape": ([[1.0], [1.0], [1.0]], r"got shape \(3, 1\)"),
}


@pytest.mark.parametrize(("policy", "says"), BAD.values(), ids=BAD)
def test_a_bad_policy_is_refused_by_place(policy, says):
    world = random_model(0, 3, 2)
    for judge in (evaluate, loss):
        with pytest.raises(InputError, match=says):
            judge(*world, policy)


@pytest.mark.parametrize("start", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.5, -0.5, 0], [np.nan, 0.5, 0.5]])
def test_a_bad_start_is_refused(start):
    with pytest.raises(InputError, match="start"):
        loss(*random_model(0, 3, 2), [0, 0, 0], start=start)


@pytest.mark.parametrize("count", [20, 4000])
def test_bad_rows_are_named_in_small_and_in_large_batches(count):
    T, R, gamma = random_model(1, 9, 2, batch=(count,))
    T[17, 3, 1] = 0.2
    with pytest.raises(InputError, match=r"state 3, action 1 of batch element \[17\] sums to 1\.8"):
        evaluate(T, R, gamma, np.zeros((count, 9), dtype=int))
