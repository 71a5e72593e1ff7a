"""The laws that every regularizer of the catalogue obeys. A new one needs a line in EXAMPLES and then gets them all."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from certeq import REGULARIZERS, Batch, Counts, InputError, plan, shrink, tally
from certeq.learning.equivalence import estimate
from certeq.regularizers import needs_of, settings_of
from strategies import SEEDS, WEIGHTS, as_sparse, counts, element, random_counts, random_rows

GAMMA = 0.9
STRENGTHS = [{"strength": WEIGHTS}, {"planning_discount": st.floats(0, GAMMA)}]
MAGNITUDES = [*STRENGTHS, {"magnitude": st.floats(0, 100) | st.just(np.inf)}]
PLUG_INS = [
    {},
    {"plug_in": "mle"},
    {"plug_in": "unbiased"},
    {"plug_in": "posterior", "pseudo_count": st.floats(0.1, 9)},
]
SHARED = "a shared row"  # stands for a target that fits any counts: always to state 0
EXAMPLES = {  # settings of each regularizer, of which the laws draw; a value may be drawn as well
    "none": [{}],
    "discount": STRENGTHS,
    "uniform_blend": [*STRENGTHS, {"strength": WEIGHTS, "row": SHARED}],
    "uniform_prior": MAGNITUDES,
    "expert_prior": [{"target": SHARED, **settings} for settings in MAGNITUDES],
    "epsilon_greedy": STRENGTHS,
    "least_mse": [*PLUG_INS, *({"target": SHARED, **settings} for settings in PLUG_INS)],
    "least_mse_epsilon_greedy": PLUG_INS,
    "evidence": [
        {},
        {"structures": ["all"]},
        {"target": SHARED},
        {"odds": st.floats(0.1, 10)},
    ],
    "learned_target": [{}, {"expert": SHARED}, {"structures": ["action"], "odds": 1.0, "plain_odds": 1e-3}],
}
each = pytest.mark.parametrize("name", REGULARIZERS)
compiled = {"learned_target": pytest.mark.slow}  # its sparse kernels
each_sparse = pytest.mark.parametrize("name", [pytest.param(n, marks=compiled.get(n, ())) for n in REGULARIZERS])
few = hypothesis_settings(max_examples=15)  # for each regularizer and law


def test_every_regularizer_has_an_example():
    assert set(EXAMPLES) == set(REGULARIZERS), "give the new regularizer a line in EXAMPLES"


def settings_for(name):
    """Draws of the settings of a regularizer."""
    return st.one_of(
        st.fixed_dictionaries(
            {key: v if isinstance(v, st.SearchStrategy) else st.just(v) for key, v in example.items()}
        )
        for example in EXAMPLES[name]
    )


def fitted(settings, table):
    """The settings with a target, or a row, of the right size."""
    first = np.eye(table.n_states)[0]
    sized = {"target": first[None, None], "expert": first[None, None], "row": first}
    return settings | {name: sized[name] for name, value in settings.items() if value is SHARED}


def weights_of(table, name, settings):
    return shrink(table, name, discount=GAMMA, **fitted(settings, table)).weight


def model_of(table, name, settings):
    return estimate(table, GAMMA, regularizer=name, **fitted(settings, table))


def plan_of(table, name, settings, reward, **how):
    return plan(table, reward, GAMMA, regularizer=name, **fitted(settings, table), **how)


def rewards_for(table, seed):
    return np.random.default_rng(seed).uniform(-1, 1, size=table.visits.shape[-2:])


@each
@few
@given(data=st.data(), table=counts())
def test_weights_are_shares_one_for_each_pair(name, data, table):
    settings = data.draw(settings_for(name))
    weight = weights_of(table, name, settings)
    assert weight.shape == table.visits.shape
    assert (weight >= 0).all()
    assert (weight <= 1).all()


@each
@few
@given(data=st.data(), table=counts())
def test_rows_of_the_model_are_distributions_that_may_lack_mass(name, data, table):
    settings = data.draw(settings_for(name))
    rows = np.broadcast_to(model_of(table, name, settings).transition.dense(), table.transitions.shape)
    assert (rows >= 0).all()
    assert (rows.sum(axis=-1) <= 1 + 1e-12).all()


@each
@few
@given(data=st.data(), table=counts())
def test_without_visits_a_learned_weight_is_1_and_a_constant_one_is_what_it_is(name, data, table):
    settings = data.draw(settings_for(name))
    found = shrink(table, name, discount=GAMMA, **fitted(settings, table))
    if found.learned:
        assert (found.weight[table.unvisited] == 1).all()
    else:
        assert np.ptp(found.weight) == 0


@each
@few
@given(data=st.data(), table=counts())
def test_without_visits_the_row_does_not_pretend_to_be_data(name, data, table):
    """It is the target where the weight is learned, and the blend of uniform row and target where it is constant."""
    settings = data.draw(settings_for(name))
    found = model_of(table, name, settings)
    rows = np.broadcast_to(found.transition.dense(), table.transitions.shape)
    target = np.broadcast_to(found.shrinkage.target.dense(), table.transitions.shape)
    weight = found.shrinkage.weight[..., None]
    expected = (1 - weight) / table.n_outcomes + weight * target
    np.testing.assert_allclose(rows[table.unvisited], expected[table.unvisited], atol=1e-15)


@each_sparse
@few
@given(data=st.data(), table=counts(), seed=SEEDS)
def test_sparse_counts_have_the_weights_and_expectations_of_dense_ones(name, data, table, seed):
    settings = data.draw(settings_for(name))
    np.testing.assert_allclose(
        weights_of(as_sparse(table), name, settings),
        weights_of(table, name, settings),
        atol=1e-12,
    )
    values = np.random.default_rng(seed).normal(size=table.n_states)
    dense, sparse = model_of(table, name, settings).transition, model_of(as_sparse(table), name, settings).transition
    full = np.zeros(table.visits.shape)
    np.testing.assert_allclose(sparse.expect(values) + full, dense.expect(values) + full, atol=1e-12)
    np.testing.assert_allclose(sparse.mass() + full, dense.mass() + full, atol=1e-12)


@each_sparse
@few
@given(data=st.data(), table=counts(), seed=SEEDS)
def test_sparse_counts_lead_to_the_plan_of_dense_ones(name, data, table, seed):
    settings, reward = data.draw(settings_for(name)), rewards_for(table, seed)
    dense, sparse = (plan_of(t, name, settings, reward) for t in (table, as_sparse(table)))
    np.testing.assert_array_equal(sparse.policy, dense.policy)
    np.testing.assert_allclose(sparse.values, dense.values, atol=1.1e-9 * np.abs(dense.values).max())


@each
@few
@given(data=st.data(), seed=SEEDS, ended=st.booleans())
def test_a_batch_is_a_loop(name, data, seed, ended):
    settings = data.draw(settings_for(name))
    table = random_counts(seed, 4, 3, batch=(2, 2), ended=ended)
    reward = rewards_for(table, seed)
    together = plan_of(table, name, settings, reward)
    weight = weights_of(table, name, settings)
    assert together.policy.shape == (2, 2, 4)
    for index in np.ndindex(2, 2):
        alone = plan_of(element(table, index), name, settings, reward)
        np.testing.assert_allclose(weight[index], weights_of(element(table, index), name, settings), atol=1e-15)
        np.testing.assert_array_equal(together.policy[index], alone.policy)
        np.testing.assert_allclose(together.values[index], alone.values, atol=1e-12)


GLOBAL = [(name, how) for name in REGULARIZERS for how in ("strength", "planning_discount", "magnitude")]


@pytest.mark.parametrize(("name", "how"), [(name, how) for name, how in GLOBAL if how in settings_of(name)])
def test_settings_broadcast_against_data_sets(name, how):
    table = random_counts(5, 4, 2, batch=(3, 1), ended=True)
    reward, levels = rewards_for(table, 6), np.array([0.0, 0.2, 0.8])
    target = {"target": SHARED} if "target" in settings_of(name) else {}
    together = plan_of(table, name, target | {how: levels}, reward)
    assert together.policy.shape == (3, 3, 4)
    for d, e in np.ndindex(3, 3):
        alone = plan_of(element(table, (d, 0)), name, target | {how: levels[e]}, reward)
        np.testing.assert_allclose(together.values[d, e], alone.values, atol=1e-12)


@each
@few
@given(data=st.data(), seed=SEEDS)
def test_the_counts_are_left_as_they_were(name, data, seed):
    settings = data.draw(settings_for(name))
    table = random_counts(seed, 4, 3, ended=True)
    before = table.transitions.copy(), table.ended.copy()
    for part in (table.transitions, table.ended):
        part.flags.writeable = False
    sparse = as_sparse(table)
    for one in (table, sparse):
        plan_of(one, name, settings, rewards_for(table, seed))
    np.testing.assert_array_equal(table.transitions, before[0])
    np.testing.assert_array_equal(table.ended, before[1])
    np.testing.assert_array_equal(sparse.transitions.toarray().reshape(4, 3, 4), before[0])


@each
@few
@given(data=st.data(), table=counts(), seed=SEEDS)
def test_renaming_states_and_actions_renames_the_plan(name, data, table, seed):
    settings = data.draw(settings_for(name))
    rng = np.random.default_rng(seed)
    states, actions = rng.permutation(table.n_states), rng.permutation(table.n_actions)
    ended = None if table.ended is None else table.ended[states][:, actions]
    where = None if table.positions is None else table.positions.places[states]
    renamed = Counts(table.transitions[states][:, actions][:, :, states], ended, positions=where)
    settings, other = fitted(settings, table), settings
    for expert in ("target", "expert", "row"):
        if other.get(expert) is SHARED:
            other = settings | {expert: settings[expert][..., states]}
    reward = rewards_for(table, seed)
    one, two = (
        plan_of(table, name, settings, reward),
        plan_of(renamed, name, other, reward[states][:, actions]),
    )
    weight = weights_of(table, name, settings)[states][:, actions]
    np.testing.assert_allclose(weights_of(renamed, name, other), weight, atol=1e-12)
    np.testing.assert_allclose(two.action_values, one.action_values[states][:, actions], atol=1e-10)


@each
@few
@given(data=st.data(), seed=SEEDS)
def test_the_order_of_the_rows_does_not_matter(name, data, seed):
    settings = data.draw(settings_for(name))
    rng = np.random.default_rng(seed)
    n = 40
    state, action, after = rng.integers(4, size=n), rng.integers(2, size=n), rng.integers(-1, 4, size=n)
    mixed = rng.permutation(n)
    one, two = (tally(Batch(state[i], action[i], after[i], 4, 2)) for i in (np.arange(n), mixed))
    np.testing.assert_array_equal(weights_of(one, name, settings), weights_of(two, name, settings))


@pytest.mark.parametrize("name", REGULARIZERS)
def test_an_unknown_setting_is_refused_with_the_nearest_name(name):
    table = random_counts(0, 3, 2)
    known = settings_of(name)
    with pytest.raises(InputError, match=f"{name!r} has no setting 'zzz'"):
        shrink(table, name, zzz=1)
    for setting in known:
        with pytest.raises(InputError, match=f"Did you mean '{setting}'"):
            shrink(table, name, **{setting + "s": 1})


@pytest.mark.parametrize("name", [name for name in REGULARIZERS if "strength" in settings_of(name)])
def test_a_strength_is_said_once_and_lies_in_the_unit_interval(name):
    table = random_counts(0, 3, 2)
    extra = fitted({"target": SHARED}, table) if "target" in settings_of(name) else {}
    for wrong in ({}, {"strength": 0.5, "planning_discount": 0.5}):
        with pytest.raises(InputError, match=f"{name} needs (either|one of) strength="):
            shrink(table, name, discount=GAMMA, **extra, **wrong)
    for value in (-0.1, 1.1, np.nan, [0.5, 2]):
        with pytest.raises(InputError, match=r"strength(\[1\])? "):
            shrink(table, name, discount=GAMMA, **extra, strength=value)
    with pytest.raises(InputError, match="planning_discount= also needs discount="):
        shrink(table, name, **extra, planning_discount=0.5)
    with pytest.raises(InputError, match="may not exceed"):
        shrink(table, name, discount=GAMMA, **extra, planning_discount=0.95)


@pytest.mark.parametrize("name", [name for name in REGULARIZERS if "magnitude" in settings_of(name)])
def test_a_magnitude_replaces_a_strength_and_is_not_negative(name):
    table = random_counts(0, 3, 2)
    extra = fitted({"target": SHARED}, table) if "target" in settings_of(name) else {}
    with pytest.raises(InputError, match=f"{name} takes one of"):
        shrink(table, name, **extra, magnitude=1, strength=0.5)
    with pytest.raises(InputError, match=r"magnitude is not negative; got -1"):
        shrink(table, name, **extra, magnitude=-1)
    np.testing.assert_array_equal(shrink(table, name, **extra, magnitude=np.inf).weight, 1)


@pytest.mark.parametrize("name", [name for name in REGULARIZERS if "plug_in" in settings_of(name)])
def test_an_unknown_plug_in_or_a_useless_pseudo_count_is_refused(name):
    table = random_counts(0, 3, 2)
    with pytest.raises(InputError, match="Did you mean 'posterior'"):
        shrink(table, name, plug_in="posteriors")
    for value in (0, -1, np.nan, np.inf):
        with pytest.raises(InputError, match="pseudo_count must be a positive number"):
            shrink(table, name, pseudo_count=value)


def test_an_unknown_regularizer_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match=r"no regularizer named 'uniform_priors'. Did you mean 'uniform_prior'"):
        shrink(random_counts(0, 3, 2), "uniform_priors")


@pytest.mark.parametrize("form", ["dense", "sparse", "by state", "by action"])
@pytest.mark.parametrize("name", ["expert_prior", "least_mse"])
@few
@given(seed=SEEDS, ended=st.booleans())
def test_a_target_may_come_in_any_form_that_says_the_same(name, form, seed, ended):
    rng = np.random.default_rng(seed)
    S, A = 4, 3
    shape = {"by state": (S, 1, S), "by action": (1, A, S)}.get(form, (S, A, S))
    target = random_rows(rng, shape, ends=ended)
    full = np.broadcast_to(target, (S, A, S))
    table = random_counts(seed, S, A, ended=ended)
    settings = {"strength": 0.4} if name == "expert_prior" else {}
    given_target = sp.csr_array(full.reshape(S * A, S)) if form == "sparse" else target
    one, two = (
        estimate(table, regularizer=name, target=t, **settings).transition.dense() for t in (given_target, full)
    )
    np.testing.assert_allclose(one, two, atol=1e-15)


def test_what_only_the_user_can_give_is_asked_for_by_name():
    assert {name: needs_of(name) for name in REGULARIZERS if needs_of(name)} == {"expert_prior": ("target",)}
    with pytest.raises(InputError, match="'expert_prior' needs target="):
        shrink(random_counts(0, 3, 2), "expert_prior", strength=0.3)
