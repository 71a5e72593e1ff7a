"""Magnitudes learned from the data: against scipy's Dirichlet-multinomial and brute-force averages."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial

from certeq import Counts, InputError, environment, sampling, tally
from certeq.model.dirichlet import log_rising
from certeq.model.evidence import ODDS, POINTS, SPREAD, STRUCTURES, draw_magnitudes, learn_magnitudes
from certeq.model.kernel import Mixture, Rows
from strategies import SEEDS, as_sparse, counts, element, random_counts


def full(table):
    """Counts over all outcomes, ending last."""
    return table.transitions if table.ended is None else np.append(table.transitions, table.ended[..., None], axis=-1)


def row_likelihood(row, mean, magnitude):
    """Log probability of one particular order of the outcomes, from scipy's probability of the counts."""
    if row.sum() == 0:
        return 0.0
    orders = gammaln(row.sum() + 1) - gammaln(row + 1).sum()
    return dirichlet_multinomial.logpmf(row, magnitude * mean, row.sum()) - orders


def brute_force(table, group_of):
    """Weights and log evidence of one structure, magnitude by magnitude and pair by pair."""
    rows = full(table)
    S, A, N = rows.shape
    steps = np.linspace(-8, 8, POINTS)
    grid = N / 2 * np.exp(steps)
    prior = np.exp(-0.5 * (steps / SPREAD) ** 2)
    prior /= prior.sum()
    weight, evidence = np.ones((S, A)), 0.0
    for group in sorted({group_of(s, a) for s in range(S) for a in range(A)}):
        pairs = [(s, a) for s in range(S) for a in range(A) if group_of(s, a) == group]
        total = np.array([sum(row_likelihood(rows[p], np.full(N, 1 / N), M) for p in pairs) for M in grid])
        joint = np.exp(total - total.max()) * prior
        evidence += np.log(joint.sum()) + total.max()
        for s, a in pairs:
            c = rows[s, a].sum()
            if c:
                weight[s, a] = (joint / joint.sum() * grid / (grid + c)).sum()
    return weight, evidence


GROUPS = {"all": lambda s, a: 0, "action": lambda s, a: a, "state": lambda s, a: s, "pair": lambda s, a: (s, a)}


@pytest.mark.parametrize("structure", STRUCTURES)
@given(table=counts(S=st.integers(1, 3), A=st.integers(1, 2)))
def test_one_structure_is_the_brute_force_average(structure, table):
    found = learn_magnitudes(table, structures=[structure], odds=1.0)
    weight, evidence = brute_force(table, GROUPS[structure])
    np.testing.assert_allclose(found.weight, weight, atol=1e-10)
    np.testing.assert_allclose(found.log_evidence, [evidence], atol=1e-9)


@given(table=counts(S=st.integers(1, 3), A=st.integers(1, 2)))
def test_structures_are_averaged_by_their_evidence_and_prior_odds(table):
    found = learn_magnitudes(table)
    parts = [brute_force(table, GROUPS[name]) for name in STRUCTURES]
    evidence = np.array([e for _, e in parts]) + np.log([ODDS, 1, 1, 1])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    np.testing.assert_allclose(found.probability, share, atol=1e-9)
    np.testing.assert_allclose(found.weight, sum(p * w for p, (w, _) in zip(share, parts, strict=True)), atol=1e-9)


@pytest.mark.parametrize("x", [1e-12, 1e-3, 0.7, 3.0, 1e3, 1e8, 1e12])
@pytest.mark.parametrize("c", [0, 1, 2, 16, 17, 64, 1000, 10**6, 10**9])
def test_rising_factorials_are_right_from_tiny_to_huge(x, c):
    with mpmath.workdps(60):
        exact = mpmath.loggamma(mpmath.mpf(x) + c) - mpmath.loggamma(mpmath.mpf(x))
        assert abs(log_rising(x, float(c)) - exact) <= 1e-13 * max(1, abs(exact))


def test_a_billion_visits_over_a_million_outcomes_are_weighed():
    table = Counts(np.array([[[10**9, 0]], [[3, 10**9]]]))
    found = learn_magnitudes(table)
    assert np.isfinite(found.log_evidence).all()
    assert (found.weight < 1e-3).all()


@given(seed=SEEDS, S=st.integers(2, 5), A=st.integers(1, 3))
def test_renaming_states_and_actions_renames_the_weights(seed, S, A):
    table = random_counts(seed, S, A)
    rng = np.random.default_rng(seed)
    s, a = rng.permutation(S), rng.permutation(A)
    renamed = Counts(table.transitions[s][:, a][:, :, s])
    np.testing.assert_allclose(learn_magnitudes(renamed).weight, learn_magnitudes(table).weight[s][:, a], atol=1e-12)


@given(table=counts(ended=st.just(False)))
def test_a_target_may_exclude_outcomes_without_changing_anything_else(table):
    """An outcome that neither the data nor the target know is as if it were not there."""
    S = table.n_states
    mean = np.full((1, 1, S), 1 / S)
    wider = np.zeros((S + 1, table.n_actions, S + 1), dtype=int)
    wider[:S, :, :S] = table.transitions
    excluded = np.append(mean, np.zeros((1, 1, 1)), axis=-1)
    one = learn_magnitudes(table, Rows(mean), structures=["pair"], spread=1e3)
    two = learn_magnitudes(Counts(wider), Rows(excluded), structures=["pair"], spread=1e3)
    grid = np.log(two.grid[0] / one.grid[0])
    assert grid == pytest.approx(np.log((S + 1) / S))  # the grids differ by the count of outcomes alone
    np.testing.assert_allclose(one.weight, two.weight[:S], atol=0.05)


def test_a_row_that_the_target_rules_out_keeps_its_data():
    never = Rows(np.array([[[1.0, 0.0]]]))
    found = learn_magnitudes(Counts(np.array([[[0, 3]], [[5, 0]]])), never)
    assert found.weight[0, 0] == 0
    assert 0 < found.weight[1, 0] < 1


def test_batches_are_weighed_one_by_one_whatever_the_threads():
    table = random_counts(5, 4, 2, batch=(130,), ended=True)
    whole = learn_magnitudes(table, threads=2)
    np.testing.assert_array_equal(whole.weight, learn_magnitudes(table, threads=1).weight)
    for d in range(0, 130, 40):
        np.testing.assert_array_equal(whole.weight[d], learn_magnitudes(element(table, d)).weight)


@given(table=counts())
def test_sparse_counts_get_the_weights_of_dense_ones(table):
    np.testing.assert_allclose(learn_magnitudes(as_sparse(table)).weight, learn_magnitudes(table).weight, atol=1e-14)


def test_one_group_of_the_users_is_the_structure_all():
    table = random_counts(9, 3, 2)
    own = learn_magnitudes(table, structures=[], groups={"mine": np.zeros((3, 2))}, odds=1.0)
    np.testing.assert_array_equal(own.weight, learn_magnitudes(table, structures=["all"], odds=1.0).weight)


def test_river_swim_is_seen_to_differ_by_action():
    """Going left is certain, going right is not: with enough rows the evidence says so, and pulls only on the right."""
    river = environment("river_swim")
    table = tally(sampling.uniform_pairs(river, 400, rng=3))
    found = learn_magnitudes(table)
    assert found.structures[int(found.probability.argmax())] == "action"
    assert found.magnitude[:, 0].max() < 0.1 * found.magnitude[:, 1].min()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"structures": ["stat"]}, "no pooling structure named 'stat'. Did you mean 'state'"),
        ({"structures": []}, "at least one structure"),
        ({"groups": {"mine": [1, 2, 3]}}, "'mine'"),
        ({"odds": 0}, "odds must be a positive number"),
        ({"points": 1}, "points must be at least 2"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        learn_magnitudes(random_counts(1, 2, 2), **settings)


@given(table=counts(S=st.integers(1, 3), A=st.integers(1, 2)))
def test_drawn_magnitudes_average_to_the_weights(table):
    """Monte Carlo: the mean of M/(M + c) over draws of M is the weight, to its standard error."""
    drawn = draw_magnitudes(table, 2000, rng=1)
    share = drawn / (drawn + table.visits)
    error = share.std(axis=0) / np.sqrt(2000) + 1e-12
    assert (np.abs(share.mean(axis=0) - learn_magnitudes(table).weight) < 5 * error).all()


def test_draws_depend_on_the_seed_alone_and_share_magnitudes_within_a_group():
    table = random_counts(3, 4, 2)
    one = draw_magnitudes(table, 50, rng=7, structures=["action"])
    np.testing.assert_array_equal(one, draw_magnitudes(table, 50, rng=7, structures=["action"]))
    assert (one == one[:, :1]).all()
    assert (one[:, 0, 0] != one[:, 0, 1]).any()


def test_a_large_data_set_is_read_in_blocks_without_changing_the_weights(monkeypatch):
    table = as_sparse(random_counts(11, 40, 2, ended=True))
    whole = learn_magnitudes(table, groups={"halves": (np.arange(40) < 20)[:, None]})
    monkeypatch.setattr("certeq.model.evidence.BLOCK", 3)
    parts = learn_magnitudes(table, groups={"halves": (np.arange(40) < 20)[:, None]}, threads=1)
    np.testing.assert_allclose(parts.weight, whole.weight, atol=1e-13)
    np.testing.assert_allclose(parts.log_evidence, whole.log_evidence, rtol=1e-13)
    many = learn_magnitudes(table, groups={"halves": (np.arange(40) < 20)[:, None]}, threads=5)
    np.testing.assert_array_equal(many.weight, parts.weight)


@given(seed=SEEDS)
def test_each_data_set_may_have_its_own_target(seed):
    table = random_counts(seed, 3, 2, batch=(4,), ended=True)
    rows = np.random.default_rng(seed).dirichlet(np.ones(4), size=(4, 3, 1))[..., :3]
    together = learn_magnitudes(table, Rows(rows))
    for d in range(4):
        np.testing.assert_allclose(together.weight[d], learn_magnitudes(element(table, d), Rows(rows[d])).weight)


@given(seed=SEEDS, share=st.sampled_from([0.0, 1e-300, 1e-6, 0.5, 1.0]))
def test_a_target_that_is_a_mixture_is_the_written_out_one(seed, share):
    table = random_counts(seed, 3, 2, ended=True)
    mix = Mixture(Rows(np.eye(3)[:, None]), np.full((3, 1), share), Rows(np.full((1, 1, 3), 0.25)))
    np.testing.assert_allclose(learn_magnitudes(table, mix).weight, learn_magnitudes(table, Rows(mix.dense())).weight)
