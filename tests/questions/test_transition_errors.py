"""Regularizers by the error of their rows: Eq. 4 and the appendix, pair by pair, and what a simulation finds."""

import numpy as np
import pytest
from hypothesis import given

import naive
from certeq import InputError, sampling, tally, transition_mse
from certeq.experiments.procedure import draw_counts
from certeq.worlds import random_chain, stay_or_leave
from strategies import SEEDS, as_sparse, random_counts, random_rows

FOUR = {
    "none": {},
    "uniform_blend": {"strength": 0.4},
    "uniform_prior": {"strength": 0.4},
    "least_mse": {"plug_in": "mle"},
    "epsilon_greedy": {"strength": 0.4},
}


@given(seed=SEEDS)
def test_with_known_rows_it_is_the_printed_error_pair_by_pair(seed):
    table = random_counts(seed, 4, 2)
    T = random_rows(np.random.default_rng([seed, 1]), (4, 2, 4))
    found = transition_mse(table, FOUR, rows=T)
    mean, uniform = table.visits.mean(), np.full(4, 0.25)
    for s, a in np.ndindex(4, 2):
        c = table.visits[s, a]
        if c == 0:
            continue
        prior = 0.4 / 0.6 * mean
        weight = {
            "none": 0.0,
            "uniform_blend": 0.4,
            "uniform_prior": prior / (c + prior),
            "least_mse": naive.epsilon_star(table.transitions[s, a] / c, uniform, c),
        }
        for name, eps in weight.items():
            assert found[name][s, a] == pytest.approx(naive.row_mse(T[s, a], uniform, c, eps), abs=1e-12)
        if (table.visits[s] > 0).all():
            greedy = naive.epsilon_greedy_mse(T[s], table.visits[s], a, 0.4)
            assert found["epsilon_greedy"][s, a] == pytest.approx(greedy, abs=1e-12)


def test_it_is_what_a_simulation_finds():
    truth = random_chain(n_states=5, n_actions=2, successors=3, rng=1)
    T = truth.transition.array
    table = tally(sampling.equal_pairs(truth, 6, data_sets=20_000, rng=2))
    found = transition_mse(table, {"uniform_blend": {"strength": 0.3}}, rows=T)["uniform_blend"][0]
    rows = 0.7 * table.transitions / 6 + 0.3 / 5
    np.testing.assert_allclose(((rows - T) ** 2).sum(axis=-1).mean(axis=0), found, rtol=0.03)


def test_it_names_the_regularizer_that_suits_the_world():
    """On the controlled ring: the uniform row where leaving is random, the action average where actions are alike."""
    worlds = ((stay_or_leave(kappa=0, lam=0), "uniform_blend"), (stay_or_leave(kappa=1, lam=0.5), "epsilon_greedy"))
    for world, better in worlds:
        counts = draw_counts(world, {"kind": "equal", "each": 4}, 50, 3)
        rivals = {name: {"strength": 0.5} for name in ("uniform_blend", "epsilon_greedy")}
        for how in ({"rows": world.transition.array}, {"plug_in": "unbiased"}):  # the truth, and what the data say
            error = {name: float(each.mean()) for name, each in transition_mse(counts, rivals, **how).items()}
            assert min(error, key=error.get) == better


@given(seed=SEEDS)
def test_sparse_counts_and_endings_are_treated_alike(seed):
    table = random_counts(seed, 4, 2, ended=True)
    dense, sparse = (transition_mse(each, FOUR) for each in (table, as_sparse(table)))
    tried = table.visits > 0
    for name in FOUR:
        np.testing.assert_allclose(sparse[name][tried], dense[name][tried], atol=1e-12)


def test_learned_targets_count_as_given():
    table = random_counts(5, 4, 2)
    found = transition_mse(table, {"learned_target": {}, "discount": {"strength": 0.5}}, discount=0.9)
    for each in found.values():
        assert each.shape == (4, 2)
        assert (each[table.visits > 0] >= 0).all()


def test_rows_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"True rows need the shape \(..., 3, 2, 3\)"):
        transition_mse(random_counts(1, 3, 2), {"none": {}}, rows=np.eye(3))
