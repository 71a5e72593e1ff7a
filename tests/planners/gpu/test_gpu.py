"""Planning on a graphics processor says what the plain planner says.

The kernel of small.cu is tested twice by the same claims: compiled for the host, which shows that its algorithm is
right, and on a graphics processor, where there is one.
"""

import sys

import host_twin
import numpy as np
import pytest
from hypothesis import given, settings

from certeq import InputError, Mixture, Rows, SparseRows, evaluate, solve
from certeq.planners import gpu
from certeq.planners.gpu import device, planning
from certeq.planners.gpu.arguments import Found, line_up
from certeq.worlds import river_swim
from planned import no_device
from strategies import SEEDS, random_model, random_rows

on_device = pytest.mark.skipif(bool(no_device()), reason=no_device())
SIZES = [(1, 1), (4, 3), (10, 2), (32, 2)]
each_size = pytest.mark.parametrize(("S", "A"), SIZES)
needs_compiler = pytest.mark.skipif(not host_twin.COMPILER, reason="needs g++ or clang++")
ENGINES = [
    pytest.param(host_twin, id="host", marks=needs_compiler),
    pytest.param(planning, id="device", marks=on_device),
]
each_engine = pytest.mark.parametrize("engine", ENGINES)


def planned(engine, T, R, discount, *, allowed=None, pull=None, limit=1000):
    """What an engine finds, as NumPy arrays; None if it finds something wrong."""
    S, A = T.shape[-3:-1]
    mask = np.ones((S, A), dtype=bool) if allowed is None else allowed
    if engine is planning:
        cp = device.cupy()
        on_it = None if pull is None else tuple(map(cp.asarray, pull))
        found = planning.plan(cp.asarray(T), on_it, *map(cp.asarray, (R, discount, mask)), limit)
        return found and Found(*map(cp.asnumpy, found))
    weights, target = (np.zeros((0, 0)), np.zeros((0, 0, S))) if pull is None else pull
    batch, work = line_up(np, T, np.asarray(weights), target, R, np.asarray(discount, dtype=float), mask)
    found = engine.plan(work, limit)
    return found and Found(*(array.reshape((*batch, *array.shape[1:])) for array in found))


def agrees(engine, T, R, discount, *, pull=None, **settings):
    """Compare an engine with the plain planner, and give back the plain plan."""
    model = T if pull is None else Mixture(Rows(T), *pull[:1], Rows(pull[1]))
    plain = solve(model, R, discount, engine="numpy", **settings)
    found = planned(engine, T, R, discount, pull=pull, **settings)
    np.testing.assert_array_equal(found.policy, plain.policy)
    scale = np.abs(plain.values).max(axis=-1, keepdims=True) + 1e-300
    np.testing.assert_allclose(found.values / scale, plain.values / scale, atol=1e-10)
    assert (found.iterations <= 1000).all()
    assert (found.residual <= 1e-12 * scale[..., 0]).all()
    return plain


@each_engine
@each_size
@pytest.mark.parametrize("ends", [False, True])
def test_random_models_have_the_same_policies_and_values(engine, S, A, ends):
    for discount in (0.0, 0.5, 0.99, 0.999):
        agrees(engine, *random_model([S, A], S, A, batch=(7,), ends=ends, discount=discount))


@needs_compiler
@given(SEEDS)
@settings(max_examples=30)
def test_the_kernel_agrees_on_any_model(seed):
    T, R, _ = random_model(seed, 4, 3, batch=(20,), ends=bool(seed % 2))
    agrees(host_twin, T, R.round(seed % 3), np.random.default_rng(seed).choice([0.0, 0.3, 0.9, 0.999], size=20))


@each_engine
@each_size
def test_masks_and_ties_are_treated_alike(engine, S, A):
    T, R, gamma = random_model([S, A, 1], S, A, batch=(40,))
    T[:, :, -1], R[:, :, -1] = T[:, :, 0], R[:, :, 0]  # the last action is the first again
    allowed = np.random.default_rng(S).random((40, S, A)) < 0.6
    allowed[..., -1] |= ~allowed.any(axis=-1)
    plain = agrees(engine, T, R.round(1), gamma, allowed=allowed)
    assert A == 1 or (plain.tied.sum(axis=-1) > 1).any()


@each_engine
def test_actions_that_differ_by_less_than_a_tie_are_tied_and_others_are_not(engine):
    T = np.full((3, 4, 3, 4), 0.25)
    R = np.zeros((3, 4, 3))
    R[:, 0], R[:, 3] = -1, 1  # the spread of all action values is 2
    R[:, 1] = np.array([[0, 1, 1.5], [0, 300, 301], [3, 2, 0]]) * 1e-10
    plain = agrees(engine, T, R, 0.9)
    assert plain.policy[:, 1].tolist() == [0, 1, 0]


@each_engine
@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (4, 3)])
def test_mixtures_along_a_path_of_strengths(engine, shape):
    rng = np.random.default_rng(shape)
    T, R, _ = random_model([3, *shape], 4, 3, batch=(3, 1))
    target = random_rows(rng, (*shape, 4), ends=True)
    weight = np.linspace(0, 1, 5)[:, None, None] * rng.random((4, 3)) ** 0.1
    assert agrees(engine, T, R, 0.95, pull=(weight, target)).policy.shape == (3, 5, 4)


@each_engine
@each_size
def test_without_discounting_where_everything_ends(engine, S, A):
    T, R, _ = random_model([S, A, 2], S, A, batch=(5,))
    T[:, 0] *= 0.5
    T[:, 1:] = 0.9 * T[:, 1:] + 0.1 * np.eye(S)[0]
    agrees(engine, T, R, np.array([1.0, 0.5, 1.0, 1.0, 0.9]))


@each_engine
def test_long_narrow_rivers(engine):
    river = river_swim(n_states=10)
    agrees(engine, river.transition.array, river.reward, np.array([0.5, 0.9, 0.99, 0.9999]))


@each_engine
@pytest.mark.parametrize(
    ("t", "r", "g", "m"),
    [
        ((), (5,), (), ()),
        ((), (), (5,), ()),
        ((), (), (), (5,)),
        ((2, 1), (3,), (2, 3), ()),
        ((2, 3), (), (2, 1), (3,)),
        ((3,), (2, 1), (), (2, 3)),
    ],
)
def test_every_way_to_broadcast(engine, t, r, g, m):
    rng = np.random.default_rng(0)
    allowed = rng.random((*m, 4, 3)) < 0.8
    allowed[..., 0] |= ~allowed.any(axis=-1)
    T, R = random_rows(rng, (*t, 4, 3, 4)), rng.uniform(-1, 1, (*r, 4, 3))
    agrees(engine, T, R, rng.choice([0.0, 0.6, 0.95], size=g), allowed=allowed)


def broken(what):
    T, R, gamma = random_model(5, 4, 3, batch=(9,))
    discount, allowed = np.full(9, gamma), np.ones((9, 4, 3), dtype=bool)
    if what in ("row past one", "negative", "not a number", "infinite"):
        T[7, 2, 1] = 0.25
        T[7, 2, 1, 3] = {"row past one": 0.3, "negative": -0.1, "not a number": np.nan, "infinite": np.inf}[what]
    elif what == "reward":
        R[7, 2, 1] = np.nan
    elif what == "discount":
        discount[7] = 1.5
    elif what == "no action":
        allowed[7, 2] = False
    elif what == "endless":
        discount[7] = 1.0
    return T, R, discount, allowed


BROKEN = ["row past one", "negative", "not a number", "infinite", "reward", "discount", "no action", "endless"]


@each_engine
@pytest.mark.parametrize("what", BROKEN)
def test_one_fault_in_a_batch_is_noticed(engine, what):
    T, R, discount, allowed = broken("nothing")
    assert planned(engine, T, R, discount, allowed=allowed) is not None
    T, R, discount, allowed = broken(what)
    assert planned(engine, T, R, discount, allowed=allowed) is None


@each_engine
def test_a_row_past_one_by_a_rounding_error_is_no_fault(engine):
    found = planned(engine, np.array([[[1 + 1e-9]]]), np.array([[1.0]]), 0.5)
    np.testing.assert_allclose(found.values, 2, rtol=1e-8)


@each_engine
def test_stopping_early_leaves_an_honest_residual(engine):
    river = river_swim(n_states=32)
    T, R = river.transition.array, river.reward
    found = planned(engine, T, R, 0.9999, limit=1)
    backed_up = (R + 0.9999 * T @ found.values).max(axis=-1)
    assert found.iterations == 2
    assert found.residual == pytest.approx(np.abs(backed_up - found.values).max(), abs=1e-9)
    assert found.residual > 1e-6


@needs_compiler
def test_values_of_policies_are_exact_and_a_wrong_action_is_noticed():
    T, R, _ = random_model(6, 4, 3, batch=(8, 1), ends=True)
    policy, discount = np.random.default_rng(6).integers(3, size=(8, 5, 4)), np.linspace(0, 0.999, 5)
    everything = np.ones((8, 5, 4, 3), dtype=bool)
    _, work = line_up(np, T, np.zeros((0, 0)), np.zeros((0, 0, 4)), R, discount, everything)
    flat = policy.reshape(-1, 4)
    found = host_twin.value(work, flat).reshape(8, 5, 4)
    np.testing.assert_allclose(found, evaluate(T, R, discount, policy), rtol=1e-11, atol=1e-13)
    for wrong in (-1, 3):
        flat[5, 2] = wrong
        assert host_twin.value(work, flat) is None


def test_without_cupy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    device.cupy.cache_clear()
    with pytest.raises(InputError, match=r"device='gpu' needs CuPy.* Install certeq\[gpu\]"):
        solve(*random_model(0, 3, 2), device="gpu")
    device.cupy.cache_clear()


def test_what_the_device_does_not_do_is_refused_before_it_is_looked_for():
    world = random_model(0, 3, 2)
    with pytest.raises(InputError, match=r"no device named 'cuda'.*cpu, gpu"):
        solve(*world, device="cuda")
    with pytest.raises(InputError, match="method='value_iteration'"):
        solve(*world, device="gpu", method="value_iteration")
    with pytest.raises(InputError, match="engine='numba'"):
        solve(*world, device="gpu", engine="numba")
    with pytest.raises(InputError, match="max_iterations must be at least 1"):
        solve(*world, device="gpu", max_iterations=0)


# What follows needs a device.


def hard_models(rng, count, S, A):
    """Ties, absorbing states, endings, masks and discounts up to 1, all in one batch."""
    T = random_rows(rng, (count, S, A, S), ends=True)
    absorbing = rng.random((count, S)) < 0.1
    T = np.where(absorbing[..., None, None], np.eye(S)[:, None], T)
    discount = rng.choice([0.0, 0.5, 0.9, 0.99, 0.999, 1.0], size=count)
    T[discount == 1] *= 0.98
    R = rng.uniform(-1, 1, (count, S, A)).round(1)
    copied = rng.random((count, S)) < 0.1
    T[copied], R[copied] = T[copied][:, :1], R[copied][:, :1]  # all actions are the same
    allowed = rng.random((count, S, A)) < 0.8
    allowed[..., 0] |= ~allowed.any(axis=-1)
    return T, R, discount, allowed


@on_device
@pytest.mark.parametrize(
    ("S", "A", "count"),
    [
        (10, 2, 100_000),
        (1, 3, 5_000),
        (2, 2, 20_000),
        (7, 3, 20_000),
        (17, 2, 5_000),
        (32, 4, 2_000),
        (3, 60, 2_000),
        (32, 26, 200),
    ],
)
def test_a_hundred_thousand_hard_models_have_the_same_policies(S, A, count):
    T, R, discount, allowed = hard_models(np.random.default_rng([S, A]), count, S, A)
    plain = solve(T, R, discount, allowed=allowed, engine="numpy")
    found = solve(T, R, discount, allowed=allowed, device="gpu")
    np.testing.assert_array_equal(found.policy, plain.policy)
    scale = np.abs(plain.values).max(axis=-1, keepdims=True) + 1e-300
    np.testing.assert_allclose(found.values / scale, plain.values / scale, atol=1e-9)
    assert found.outcome == "optimal"
    assert A == 1 or (plain.tied.sum(axis=-1) > 1).any()


@on_device
def test_cupy_arrays_stay_and_get_brings_the_same_plan():
    cp = device.cupy()
    T, R, gamma = random_model(6, 6, 3, batch=(50,), ends=True)
    there = solve(cp.asarray(T), R, gamma, device="gpu")
    assert isinstance(there.policy, cp.ndarray)
    assert isinstance(there.values, cp.ndarray)
    copied, plain = solve(T, R, gamma, device="gpu"), solve(T, R, gamma)
    for found in (there.get(), copied):
        np.testing.assert_array_equal(found.policy, plain.policy)
        np.testing.assert_array_equal(found.tied, plain.tied)
        np.testing.assert_allclose(found.action_values, plain.action_values, rtol=1e-9)
        assert (found.bound < 1e-9).all()


@on_device
def test_mixtures_on_either_side():
    cp, rng = device.cupy(), np.random.default_rng(6)
    T, R, _ = random_model(6, 6, 2, batch=(30, 1))
    weight, target = rng.random((4, 1, 1)), random_rows(rng, (6, 1, 6))
    plain = solve(Mixture(Rows(T), weight, Rows(target)), R, 0.95)
    copied = solve(Mixture(Rows(T), weight, Rows(target)), R, 0.95, device="gpu")
    there = solve(gpu.DeviceMixture(cp.asarray(T), weight, target), cp.asarray(R), 0.95, device="gpu")
    half = solve(Mixture(Rows(T), weight, Rows(target)), cp.asarray(R), 0.95, device="gpu")
    for found in (copied, there.get(), half.get()):
        np.testing.assert_array_equal(found.policy, plain.policy)
        np.testing.assert_allclose(found.values, plain.values, rtol=1e-9)


@on_device
def test_a_plan_does_not_depend_on_its_neighbors():
    cp = device.cupy()
    T, R, discount, _ = hard_models(np.random.default_rng(8), 301, 10, 2)
    together = solve(cp.asarray(T), R, discount, device="gpu")
    for k in (0, 150, 300):
        alone = solve(cp.asarray(T[k]), R[k], discount[k], device="gpu")
        assert (together.policy[k] == alone.policy).all()
        assert (together.values[k] == alone.values).all()


@on_device
@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("stays", [False, True])
def test_the_words_are_those_of_the_host(what, stays):
    T, R, discount, allowed = broken(what)
    with pytest.raises(InputError) as host:
        solve(T, R, discount, allowed=allowed, engine="numpy")
    with pytest.raises(InputError) as there:
        solve(device.cupy().asarray(T) if stays else T, R, discount, allowed=allowed, device="gpu")
    assert str(there.value) == str(host.value)


@on_device
def test_shapes_that_do_not_fit_are_refused():
    cp = device.cupy()
    T, R, gamma = random_model(1, 4, 3, batch=(5,))
    for rows, reward, discount in ((T[0, 0], R, gamma), (T, R[..., :2], gamma), (T, R[:3], gamma), (T, R, np.ones(2))):
        with pytest.raises(InputError):
            solve(cp.asarray(rows), reward, discount, device="gpu")
    for reward in (R[0], cp.asarray(R[0])):
        with pytest.raises(InputError, match="dense"):
            solve(SparseRows(T[0].reshape(12, 4), 4, 3), reward, gamma, device="gpu")
    with pytest.raises(InputError, match="rows of one length"):
        gpu.DeviceMixture(T, 0.5, np.ones((1, 1, 3)) / 3)
    with pytest.raises(InputError, match="between 0 and 1"):
        gpu.DeviceMixture(T, 1.5, T)
    with pytest.raises(InputError, match="target"):
        gpu.DeviceMixture(T, 0.5, 2 * T)


@on_device
@pytest.mark.parametrize(("S", "A"), [(33, 2), (20, 200)])
def test_what_is_too_large_is_told_its_size(S, A):
    T, R, gamma = random_model(0, S, A)
    with pytest.raises(
        InputError, match=rf"of up to 32 states .* {S} states and {A} actions; .*policy_iteration \(numba\)"
    ):
        solve(T, R, gamma, device="gpu")
    with pytest.raises(InputError, match=f"these have {S} states and {A} actions.*device='cpu'"):
        solve(device.cupy().asarray(T), R, gamma, device="gpu")


@on_device
def test_an_empty_batch_has_an_empty_plan():
    cp = device.cupy()
    found = solve(cp.zeros((0, 10, 2, 10)), cp.zeros((10, 2)), 0.9, device="gpu")
    assert found.policy.shape == (0, 10)
    assert found.residual.shape == (0,)


@on_device
def test_policies_are_evaluated_on_the_device():
    T, R, _ = random_model(9, 10, 3, batch=(20, 1), ends=True)
    policy, discount = np.random.default_rng(9).integers(3, size=(20, 4, 10)), np.linspace(0, 0.99, 4)
    found = gpu.evaluate(T, R, discount, policy)
    np.testing.assert_allclose(found.get(), evaluate(T, R, discount, policy), rtol=1e-10, atol=1e-12)
    with pytest.raises(InputError, match="among 0 to 2"):
        gpu.evaluate(T, R, discount, policy + 1)
    with pytest.raises(InputError, match="got"):
        gpu.evaluate(T, R, discount, policy[..., 1:])


@on_device
def test_drawn_rows_have_the_moments_of_their_dirichlet():
    cp, n = device.cupy(), 400_000
    alpha = np.array([[0.3, 2.0, 0.0, 5.7], [40.0, 0.05, 1.0, 0.2]])
    rows = gpu.draw_rows(cp.broadcast_to(cp.asarray(alpha), (n, 2, 4)), rng=3)
    np.testing.assert_allclose(rows.sum(axis=-1).get(), 1, rtol=1e-12)
    assert (rows[:, 0, 2] == 0).all()
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    variance = mean * (1 - mean) / (total + 1)
    error = np.sqrt(variance / n)
    np.testing.assert_array_less(np.abs(rows.mean(axis=0).get() - mean), 5 * error + 1e-15)
    np.testing.assert_allclose(rows.var(axis=0).get(), variance, rtol=0.03)
    assert (rows == gpu.draw_rows(cp.broadcast_to(cp.asarray(alpha), (n, 2, 4)), rng=3)).all()
    assert (rows != gpu.draw_rows(cp.broadcast_to(cp.asarray(alpha), (n, 2, 4)), rng=4)).any()


@on_device
def test_parameters_too_small_for_gamma_variates_still_give_rows():
    cp = device.cupy()
    rows = gpu.draw_rows(cp.broadcast_to(cp.asarray([1e-4, 3e-4, 0.0]), (100_000, 3)), rng=5)
    np.testing.assert_allclose(rows.sum(axis=-1).get(), 1, rtol=1e-12)
    assert float(rows[:, 1].mean()) == pytest.approx(0.75, abs=0.01)
