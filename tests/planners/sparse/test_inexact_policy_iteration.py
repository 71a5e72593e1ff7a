"""Large sparse models: inexact policy iteration says what exact policy iteration says, and how far it may be off."""

import _thread
import subprocess
import sys
import threading
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from certeq import Counts, InputError, Mixture, Rows, SparseRows, evaluate, plan, solve
from certeq.model.kernel import terms
from certeq.planners import sparse
from certeq.planners.problem import Problem
from certeq.planners.sparse.passes import AGAIN, PIECES, Passes, decompose
from certeq.questions.exact import value_bound
from planned import sparse_rows
from strategies import SEEDS, models, random_model, random_rows

pytestmark = pytest.mark.slow  # kernels are compiled

INEXACT = "inexact_policy_iteration"
DISCOUNTS = st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.999])
AXES = [(1, 1), (6, 1), (1, 3), (6, 3)]


def exact(T, R, gamma, **settings):
    return solve(T, R, gamma, method="policy_iteration", engine="numpy", **settings)


def agree(model, T, R, gamma, **settings):
    """Plan in a model that is T when written out, compare with exact planning, and check what the plan promises."""
    found, best = solve(model, R, gamma, engine="numba", **settings), exact(T, R, gamma, **settings)
    assert found.method == INEXACT
    assert found.outcome == "optimal"
    scale = max(np.abs(best.values).max(), 1e-9)
    rounding = 1e-13 * scale / (1 - min(gamma, 0.999))  # in what is compared with
    assert np.abs(found.values - best.values).max() <= found.bound + rounding
    assert found.bound <= 1e-9 * scale + rounding
    np.testing.assert_array_equal(found.policy, best.policy)
    lost = best.values - evaluate(T, R, gamma, found.policy)
    assert lost.max() <= found.loss_bound + rounding
    return found


@given(SEEDS, st.lists(st.tuples(st.sampled_from(AXES), st.sampled_from(AXES), st.booleans()), max_size=3), DISCOUNTS)
def test_mixtures_of_mixtures_are_planned_without_being_built(seed, nested, gamma):
    rng = np.random.default_rng(seed)
    T, R, _ = random_model(seed, 6, 3, ends=True)
    model = sparse_rows(T)
    for of_target, of_weight, dense in nested:
        rows, weight = random_rows(rng, (*of_target, 6)), rng.random(of_weight)
        T = (1 - weight[..., None]) * T + weight[..., None] * rows
        target = Rows(rows) if dense else sparse_rows(rows)
        model = Mixture(model, weight, Mixture(target, rng.random((6, 1)), target) if rng.random() < 0.5 else target)
    agree(model, T, R, gamma)


def test_equal_target_rows_become_one():
    T, _, _ = random_model(0, 6, 3)
    w, thin = np.random.default_rng(0).random((6, 3)), np.eye(6, 3)
    uniform = [Rows(np.full((1, 1, 6), 1 / 6)) for _ in range(2)]
    data, rest = decompose(Mixture(Mixture(sparse_rows(T), thin, uniform[0]), w, uniform[1]))
    assert len(rest) == 1
    np.testing.assert_allclose(rest[0][0], 1 - (1 - w) * (1 - thin))
    assert decompose(Mixture(data, np.zeros((6, 3)), uniform[0])) == (data, [])


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99])
def test_of_tied_actions_the_first_is_taken(gamma):
    for seed in range(10):
        T, R, _ = random_model(seed, 12, 2)
        T, R = np.repeat(T, 2, axis=1), np.repeat(R, 2, axis=1)  # actions 0 and 1 are alike, and 2 and 3
        found = agree(sparse_rows(T[:, ::-1]), T[:, ::-1], R[:, ::-1], gamma)
        assert (found.policy % 2 == 0).all()
        assert found.tied.sum(axis=-1).min() >= 2


def test_ties_between_different_rows_are_seen_as_ties():
    """States come in pairs that are alike, and action 1 swaps them: only rounding tells the actions apart."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        T, R = random_rows(rng, (20, 2, 20)), np.repeat(rng.random((20, 1)), 2, axis=1)
        T[1::2], R[1::2] = T[::2], R[::2]
        T[:, 1] = T[:, 0].reshape(20, 10, 2)[..., ::-1].reshape(20, 20)
        agree(sparse_rows(T), T, R, 0.97)
        assert (solve(sparse_rows(T), R, 0.97, engine="numba").policy == 0).all()


def test_without_discounting_it_plans_where_every_row_may_end():
    T, R, _ = random_model(1, 8, 3)
    found = agree(sparse_rows(0.9 * T), 0.9 * T, R, 1.0)
    assert found.method == INEXACT


def test_without_discounting_sweeps_take_over_where_only_some_rows_end():
    T, R, _ = random_model(2, 8, 3)
    T[:, :, 0] = 0.5
    T /= T.sum(axis=-1, keepdims=True)
    T[0] *= 0.5  # every state may go to the first, and from there it may end
    found = solve(sparse_rows(T), R, 1.0, engine="auto")
    assert found.method == "modified_policy_iteration"
    np.testing.assert_allclose(found.values, exact(T, R, 1.0).values, rtol=1e-8)


def garnet(S, A=3, K=5, seed=0, near=None):
    """Random successors, anywhere or at most ``near`` states away."""
    rng = np.random.default_rng(seed)
    after = rng.integers(S, size=(S * A, K)) if near is None else rng.integers(-near, near + 1, size=(S * A, K))
    columns = after if near is None else (np.repeat(np.arange(S), A)[:, None] + after) % S
    chances = rng.dirichlet(np.ones(K), size=S * A)
    matrix = sp.csr_array((chances.ravel(), columns.ravel(), np.arange(0, S * A * K + 1, K)), shape=(S * A, S))
    return SparseRows(matrix, S, A), rng.random((S, A))


def cycle(S, seed=0):
    """One long cycle, hardly ever left, to be walked either way: sweeps and Krylov methods both have a hard time."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(S)
    after = np.empty((S, 2), dtype=np.int64)
    after[order] = np.stack([np.roll(order, 1), np.roll(order, -1)], axis=1)
    columns = np.stack([after.ravel(), rng.integers(S, size=2 * S)], axis=1)
    chances = np.tile([1 - 1e-6, 1e-6], 2 * S)
    matrix = sp.csr_array((chances, columns.ravel(), np.arange(0, 4 * S + 1, 2)), shape=(2 * S, S))
    return SparseRows(matrix, S, 2), rng.random((S, 2))


WORLDS = {
    "mixing fast": garnet(200),
    "mixing slowly": garnet(200, near=3),
    "a cycle": cycle(60),
    "no chance": garnet(150, K=1),
}


@cache
def best_values(world, gamma):
    rows, reward = WORLDS[world]
    return exact(rows.dense(), reward, gamma).values


def check_promises(found, world, gamma):
    """Neither the values nor the policy are worse than the plan says."""
    rows, reward = WORLDS[world]
    best = best_values(world, gamma)
    assert np.abs(found.values - best).max() <= found.bound
    assert (best - evaluate(rows.dense(), reward, gamma, found.policy)).max() <= found.loss_bound


@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("world", WORLDS)
def test_worlds_that_mix_fast_or_slowly_or_never_are_solved(world, gamma):
    found = solve(*WORLDS[world], gamma, engine="numba")
    assert found.outcome == "optimal"
    assert found.bound <= 1.1e-9 * np.abs(found.values).max()
    check_promises(found, world, gamma)


def test_a_uniform_blend_plans_as_a_lower_discount_does():
    """Theorem 1, at a size where the blended rows could hardly be written out."""
    rows, reward = garnet(8_000, near=50)
    blend = Mixture(rows, np.array([[0.1]]), Rows(np.full((1, 1, 8_000), 1 / 8_000)))
    one, other = solve(blend, reward, 0.95), solve(rows, reward, 0.9 * 0.95)
    assert one.method == other.method == INEXACT
    np.testing.assert_array_equal(one.policy, other.policy)
    np.testing.assert_allclose(np.ptp(one.values - other.values), 0, atol=1e-7)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_plan_that_stopped_early_says_so_and_by_how_much_it_may_be_off(world, limit):
    found = solve(*WORLDS[world], 0.99, engine="numba", max_iterations=limit)
    assert found.outcome.startswith("stopped early: 1 of 1 plans reached the iteration limit")
    assert not found.converged
    assert found.iterations == limit
    check_promises(found, world, 0.99)


def test_no_tolerance_makes_it_go_on_forever():
    rows, reward = WORLDS["mixing slowly"]
    found = solve(rows, reward, 0.99, engine="numba", tolerance=1e-18)
    assert not found.converged
    assert found.iterations < 100
    assert found.bound <= 1e-11 * np.abs(found.values).max()


def test_tiny_chances_count_where_they_are_many_and_the_discount_is_close_to_one():
    """Two halves that hardly anything leaves: each of 300 entries to the other is lost beside one, all together not."""
    rng, half, many, tiny = np.random.default_rng(0), 400, 300, 1.1e-7
    rows = np.zeros((2 * half, 2, 2 * half))
    for s in range(2 * half):
        here, there = (half, 0) if s >= half else (0, half)
        for a in range(2):
            rows[s, a, there + rng.choice(half, many, replace=False)] = tiny
            rows[s, a, here + rng.choice(half, 3, replace=False)] = rng.dirichlet(np.ones(3)) * (1 - many * tiny)
    reward = rng.random((2 * half, 2)) + 0.3 * (np.arange(2 * half) < half)[:, None]
    found = solve(sparse_rows(rows), reward, 1 - 1e-6, engine="numba", tolerance=1e-8)
    assert found.converged
    assert found.iterations < 30


def test_an_action_is_not_passed_over_where_another_one_ends_more_often():
    """Values that all rise by the same are worth less to a row that may end: what is better changes all the same."""
    rng, S, entries = np.random.default_rng(0), 500, 5
    chance, place = rng.dirichlet(np.ones(entries), size=(S, 2)), rng.integers(S, size=(S, 2, entries))
    chance[:, 1] *= 0.3
    rows = np.zeros((S, 2, S))
    np.add.at(rows, (np.arange(S)[:, None, None], np.arange(2)[None, :, None], place), chance)
    found = agree(sparse_rows(rows), rows, np.tile([1.0, 1.5], (S, 1)), 0.95)
    np.testing.assert_allclose(found.values, 20.0)


def test_values_that_cancel_to_nothing_do_not_make_it_go_on_forever():
    reward = np.array([[1.0], [-1.0]])
    found = solve(sparse_rows(np.full((2, 1, 2), 0.5)), reward, 0.5, engine="numba")
    np.testing.assert_allclose(found.values, [1, -1])
    balanced = solve(sparse_rows(np.array([[[0.0, 1.0]], [[1.0, 0.0]]])), reward, 0.999, engine="numba")
    np.testing.assert_allclose(balanced.values, np.array([1, -1]) / 1.999, rtol=1e-9)


@given(SEEDS, st.booleans())
def test_sweeps_back_values_up_one_after_another(seed, mixed):
    rng = np.random.default_rng(seed)
    (T, R, _), target, by_action = random_model(rng, 11, 3), random_rows(rng, (11, 3, 11)), random_rows(rng, (1, 3, 11))
    model, near = sparse_rows(T), T
    if mixed:  # with other sparse rows, one row for each action, and one for all
        w, u = rng.random((2, 11, 3))
        lent = Mixture(sparse_rows(target), u, Rows(by_action))
        model = Mixture(model, w, Mixture(lent, np.full((1, 1), 0.25), Rows(np.full((1, 1, 11), 1 / 11))))
        near = (1 - w)[..., None] * T + (0.75 * w * (1 - u))[..., None] * target
    values, rest = rng.normal(size=11), (near, model.dense() - near, R, 0.9)
    found = Passes(Problem(model, R, np.asarray(0.9), np.ones((11, 3), dtype=bool))).sweep(values, AGAIN + 2)
    expected = seen_far = list(values)
    for i in range(AGAIN + 2):
        seen_far = expected if i % AGAIN == 0 else seen_far
        expected = naive.swept(*rest, expected, seen_far, PIECES, backward=i % 2 == 1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("world", WORLDS)
def test_threads_change_nothing(world):
    kind = {"mixing fast": garnet(9000), "mixing slowly": garnet(9000, near=30), "a cycle": cycle(9000)}
    rows, reward = kind.get(world, garnet(9000, K=1))
    mixed = Mixture(rows, np.random.default_rng(1).random(reward.shape) / 9, Rows(np.full((1, 1, 9000), 1 / 9000)))
    for model in (rows, mixed):
        plans = [solve(model, reward, 0.97, engine="numba", threads=threads) for threads in (1, 2, 3)]
        for other in plans[1:]:
            np.testing.assert_array_equal(plans[0].values, other.values)
            np.testing.assert_array_equal(plans[0].policy, other.policy)
            assert plans[0].residual == other.residual


def test_wide_indices_and_other_number_types_are_as_good():
    rows, reward = garnet(500)
    wide = rows.matrix.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    steps = sp.csr_array((np.ones(1500, dtype=np.int8), np.arange(1500) % 500, np.arange(1501)), shape=(1500, 500))
    np.testing.assert_array_equal(
        solve(SparseRows(wide, 500, 3), reward, 0.9, engine="numba").values,
        solve(rows, reward, 0.9, engine="numba").values,
    )
    found = solve(SparseRows(steps, 500, 3), reward, 0.9, engine="numba")
    np.testing.assert_allclose(found.values, exact(steps.toarray().reshape(500, 3, 500), reward, 0.9).values)


@pytest.mark.parametrize("scale", [1e-300, 1e-25, 1e-12, 1e12, 1e25])
def test_the_size_of_rewards_does_not_matter(scale):
    rows, reward = garnet(12_000)
    small, other = solve(rows, reward, 0.9), solve(rows, scale * reward, 0.9)
    np.testing.assert_array_equal(small.policy, other.policy)
    np.testing.assert_allclose(other.values / scale, small.values, rtol=1e-8)


METHODS = [INEXACT, "modified_policy_iteration", "value_iteration"]


@pytest.mark.parametrize("method", METHODS)
def test_progress_is_told_after_each_iteration(method):
    told = []
    found = solve(*WORLDS["mixing slowly"], 0.95, method=method, progress=told.append)
    assert [step.iteration for step in told] == list(range(1, int(found.iterations) + 1))
    assert told[-1].bound <= told[-1].goal
    assert all(step.bound > step.goal for step in told[:-1])
    assert all(step.residual <= step.bound * (1 + 1e-12) for step in told)
    times = [step.seconds for step in told]
    assert times == sorted(times)
    assert told[0].seconds_left is None
    assert told[-1].seconds_left == 0
    check_promises(found, "mixing slowly", 0.95)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("after", [1, 2])
def test_an_interrupted_plan_is_given_back_with_its_bound(method, after):
    world = WORLDS["mixing slowly"]

    def stop(step):
        if step.iteration == after:
            raise KeyboardInterrupt

    how = {"method": method, "progress": stop}
    with pytest.raises(KeyboardInterrupt):
        solve(*world, 0.99, **how)
    found = solve(*world, 0.99, **how, on_interrupt="return")
    assert found.outcome == f"stopped early: interrupted after {after} iterations; see bound"
    assert found.interrupted
    assert not found.converged
    check_promises(found, "mixing slowly", 0.99)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_in_the_middle_of_it_all_leaves_a_usable_plan(threads):
    rows, reward = cycle(6000)
    started = threading.Event()
    alarm = threading.Thread(target=lambda: (started.wait(), threading.Event().wait(0.05), _thread.interrupt_main()))
    alarm.start()
    found = solve(
        rows, reward, 1 - 1e-7, engine="numba", threads=threads, progress=lambda _: started.set(), on_interrupt="return"
    )
    alarm.join()
    assert "interrupted" in found.outcome
    assert np.abs(found.action_values.max(axis=-1) - found.values).max() <= found.residual * (1 + 1e-9) + 1e-7
    assert found.policy.min() >= 0


def test_an_unknown_way_to_be_interrupted_is_named():
    with pytest.raises(InputError, match="Did you mean 'return'"):
        solve([[[1.0]]], [[0.0]], 0.5, on_interrupt="returns")


@pytest.fixture
def always(monkeypatch):
    """Small models go the way of large ones."""
    monkeypatch.setattr(sparse, "WORTH", 0)


@pytest.mark.usefixtures("always")
@given(models(ends=st.booleans(), discount=DISCOUNTS), SEEDS)
def test_any_policy_is_evaluated_as_in_a_dense_model(world, seed):
    T, R, gamma = world
    S, A = R.shape
    rng = np.random.default_rng(seed)
    target, weight = random_rows(rng, (S, 1, S)), rng.random((S, A))
    mixed = naive.mix(T, weight, target)
    for policy in (rng.integers(A, size=S), rng.integers(-1, A, size=S), rng.dirichlet(np.ones(A), size=S)):
        for model, dense in ((sparse_rows(T), T), (Mixture(sparse_rows(T), weight, sparse_rows(target)), mixed)):
            values, expected = evaluate(model, R, gamma, policy), evaluate(dense, R, gamma, policy)
            np.testing.assert_allclose(values, expected, atol=1e-12 + 1e-10 * np.abs(expected).max())
            off = value_bound(model, R, gamma, policy, values + 0.25)
            assert off + 1e-9 >= np.abs(values + 0.25 - expected).max()


@pytest.mark.parametrize("world", ["mixing fast", "mixing slowly", "no chance"])
def test_a_stochastic_policy_is_worth_what_a_long_walk_earns(world):
    """Followed for ever: the same as 3,000 backups of the policy's average rows."""
    rows, reward = WORLDS[world]
    policy = np.random.default_rng(3).dirichlet(np.ones(3), size=len(reward))
    average = np.einsum("sa,san->sn", policy, rows.dense())
    walked = np.zeros(len(reward))
    for _ in range(3000):
        walked = (policy * reward).sum(axis=1) + 0.98 * average @ walked
    np.testing.assert_allclose(evaluate(rows, reward, 0.98, policy), walked, rtol=1e-9)


def test_policies_in_a_sparse_model_are_evaluated_one_by_one():
    rows, reward = garnet(50)
    policies = np.random.default_rng(4).integers(-1, 3, size=(2, 3, 50))
    values = evaluate(rows, reward, 0.9, policies)
    assert values.shape == (2, 3, 50)
    np.testing.assert_allclose(values, evaluate(rows.dense(), reward, 0.9, policies), rtol=1e-10)
    with pytest.raises(InputError, match=r"one reward and one discount at a time; got a batch \(2,\)"):
        evaluate(rows, reward, [0.5, 0.9], policies[0, 0])


def test_a_large_policy_is_evaluated_to_a_certified_precision():
    rows, reward = garnet(12_000, near=40)
    uniform = Mixture(rows, np.full((12_000, 3), 0.05), Rows(np.full((1, 1, 12_000), 1 / 12_000)))
    rng = np.random.default_rng(5)
    for policy in (rng.integers(-1, 3, size=12_000), rng.dirichlet(np.ones(3), size=12_000)):
        values = evaluate(uniform, reward, 0.99, policy)
        assert value_bound(uniform, reward, 0.99, policy, values) <= 1e-11 * np.abs(values).max()
        assert value_bound(uniform, reward, 0.99, policy, values + 1e-3) == pytest.approx(1e-3, rel=1e-6)


def test_where_there_is_no_advice_the_loss_counts_the_worst_action():
    T, R, _ = random_model(7, 5, 3)
    found = solve(T, R, 0.9).without_advice(np.arange(5) == 2)
    worst = found.policy.copy()
    worst[2] = found.action_values[2].argmin()
    lost = (solve(T, R, 0.9).values - evaluate(T, R, 0.9, worst)).max()
    assert 1e-3 < lost <= found.loss_bound + 1e-12


@pytest.mark.parametrize("regularizer", ["least_mse", "epsilon_greedy", "uniform_prior"])
def test_counts_are_planned_in_as_dense_ones_are(regularizer):
    rng = np.random.default_rng(8)
    S, A = 60, 3
    dense = rng.multinomial(rng.choice([0, 1, 3, 20], size=(S, A)), random_rows(rng, (S, A, S)))
    reward, settings = rng.random((S, A)), {} if regularizer == "least_mse" else {"strength": 0.3}
    counts = Counts(sp.csr_array(dense.reshape(S * A, S)), None, A)
    how = {"regularizer": regularizer, **settings}
    found = plan(counts, reward, 0.95, engine="numba", **how)
    assert found.method == INEXACT
    np.testing.assert_array_equal(found.policy, plan(dense, reward, 0.95, **how).policy)


MEMORY = """
import re, numpy as np, scipy.sparse as sp
from certeq import Mixture, Rows, SparseRows, solve

def peak():  # of this process alone: what getrusage says begins with the largest that its parent ever had
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

def model(S, A=4, K=10):
    rng, n = np.random.default_rng(0), S * A
    columns, chances = np.empty((n, K), np.int32), np.full((n, K), 1 / K)
    for start in range(0, n, 10_000):
        block = np.arange(start, min(n, start + 10_000))
        columns[block] = np.sort((block // A)[:, None] * 13 % S + rng.choice(97, (len(block), 1)) + np.arange(K)) % S
    matrix = sp.csr_array((chances.ravel(), columns.ravel(), np.arange(0, n * K + 1, K, dtype=np.int32)), shape=(n, S))
    return matrix, rng.random((S, A)), rng.random((S, A))

for S in (20_000, 150_000):  # the first one compiles
    matrix, reward, weight = model(S)
    csr = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    before = peak()
    plain = SparseRows(matrix, S, 4)
    for rows in (plain, Mixture(plain, weight, Rows(np.full((1, 1, S), 1 / S)))):
        assert solve(rows, reward, 0.9).method == "inexact_policy_iteration"
print((csr + peak() - before) / csr)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_planning_takes_less_than_two_and_a_half_times_the_memory_of_the_rows():
    ran = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert 1 <= float(ran.stdout) < 2.5


def test_roundings_are_counted_by_the_entries_of_a_row_and_long_sums_taken_in_pairs():
    S = 100_000
    rows, _ = garnet(S, A=1)
    shared = Rows(np.full((1, 1, S), 1 / S))
    assert terms(rows) <= 5
    assert terms(Mixture(rows, np.full((1, 1), 0.5), shared)) < 100
    values = np.random.default_rng(9).normal(size=S)
    true = sum(map(Fraction, values.tolist())) * Fraction(1 / S)
    assert abs(Fraction(float(shared.expect(values)[0, 0])) - true) <= terms(shared) * 2**-52 * np.abs(values).max()
