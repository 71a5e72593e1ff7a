"""The audit of a planning discount: Eq. 3 for each pair, the plans it is compared with, and Theorem 1 on this data."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
from certeq import Counts, InputError, audit, learn, plan, tally
from logbook import logged
from strategies import SEEDS, counts

GAMMAS = st.floats(0.05, 0.99)
SHARES = st.sampled_from([0.0, 1.0]) | st.floats(0.01, 1)


def rewards_for(table, seed):
    return np.random.default_rng(seed).uniform(-1, 1, table.visits.shape)


@given(counts(), SEEDS, GAMMAS, SHARES)
def test_what_is_invented_is_equation_3_for_every_pair(table, seed, gamma, share):
    assume(table.visits.any())
    found = audit(table, share * gamma, discount=gamma, reward=rewards_for(table, seed))
    for pair, visits in np.ndenumerate(table.visits):
        expected = naive.implied_magnitude(int(visits), gamma, share * gamma)
        assert found.invented[pair] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_sentence_tells_the_best_and_the_least_observed_pair():
    seen = np.array([[[2140, 0], [3, 4]], [[0, 1], [9, 0]]])
    found = audit(seen, 0.9, discount=0.99, reward=[[0, 1], [1, 0]], state_names=("well", "ill"))
    assert (found.most, found.least, found.ratio) == ((0, 0), (1, 0), 2140)
    assert found.lines()[1] == (
        "Discounting at 0.9 treats your best-observed pair (state 'well', action '0', 2,140 visits) as if 214 uniform "
        "transitions had been added to it, and your least observed (state 'ill', action '0', 1 visit) as if 0.1: 2,140 "
        "times as many, where more is known (Eq. 3)."
    )


def test_a_discount_of_zero_is_said_to_be_infinite_and_not_shown_as_a_number():
    found = audit([[[5, 0], [0, 0]], [[1, 1], [2, 0]]], 0, discount=0.9, reward=[[0, 1], [1, 0]])
    assert found.invented[0].tolist() == [np.inf, 0]
    assert "infinitely many" in found.lines()[1]
    written = json.dumps(found.to_json(), allow_nan=False)
    assert "inf" not in written.replace("infinitely", "").lower()
    assert json.loads(written)["invented"] == [[None, 0], [None, None]]
    assert json.loads(written)["invented_evenly"] is None


def test_without_a_difference_nothing_is_said_to_be_added():
    found = audit([[[5, 0]], [[1, 1]]], 0.9, discount=0.9, reward=[[0], [1]])
    assert found.invented.tolist() == [[0], [0]]
    assert "nothing is added" in found.lines()[1]
    assert not any(len(other.differs) for other in found.plans)


@given(counts(), SEEDS, GAMMAS, st.floats(0.01, 1))
def test_the_same_amount_means_the_same_total_spread_evenly(table, seed, gamma, share):
    assume(table.visits.any())
    found = audit(table, share * gamma, discount=gamma, reward=rewards_for(table, seed))
    assert found.even * table.visits.size == pytest.approx(found.invented.sum(), rel=1e-9, abs=1e-9)


@given(SEEDS, st.integers(1, 9), GAMMAS, SHARES)
def test_with_equal_visits_spreading_evenly_changes_nothing(seed, each, gamma, share):
    rng = np.random.default_rng(seed)
    equal = rng.multinomial(each, rng.dirichlet(np.ones(4), size=(4, 2)))
    found = audit(equal, share * gamma, discount=gamma, reward=rng.random((4, 2)))
    assert found.ratio == 1
    assert found.plan("even").differs.tolist() == []


@given(counts(), SEEDS, GAMMAS, SHARES)
def test_every_plan_is_the_one_of_its_regularizer(table, seed, gamma, share):
    assume(table.visits.any())
    R, gp = rewards_for(table, seed), share * gamma
    found = audit(table, gp, discount=gamma, reward=R)
    expected = {
        "discount": plan(table, R, gamma, regularizer="discount", planning_discount=gp, unvisited="exclude"),
        "even": plan(table, R, gamma, regularizer="uniform_prior", planning_discount=gp, unvisited="exclude"),
        "learned_target": plan(table, R, gamma, regularizer="learned_target", unvisited="exclude"),
        "none": plan(table, R, gamma, regularizer="none", unvisited="exclude"),
    }
    for name, other in expected.items():
        assert found.plan(name).policy.tolist() == other.policy.tolist()
        apart = np.flatnonzero(other.policy != expected["discount"].policy)
        assert found.plan(name).differs.tolist() == apart.tolist()


@given(counts(ended=st.just(False), A=st.integers(2, 3)), SEEDS, st.floats(0.05, 0.95), st.integers(1, 6))
def test_the_shortcuts_are_zero_rows_and_a_bandit(table, seed, gamma, threshold):
    assume(table.visits.any())
    R = rewards_for(table, seed)
    found = audit(table, gamma / 2, discount=gamma, reward=R, threshold=threshold)
    plain = plan(table, R, gamma, regularizer="none", unvisited="exclude").policy
    for name, least in (("zero_rows", 1), ("threshold", threshold)):
        rows = table.transitions / np.maximum(table.visits, 1)[..., None]
        rows[table.visits < least] = 0
        values = naive.exact_value_of_policy(rows, R, gamma, found.plan(name).policy)
        best = naive.exact_value_of_policy(rows, R, gamma, naive.best_policy_by_enumeration(rows, R, gamma))
        np.testing.assert_allclose(values.astype(float), best.astype(float), atol=1e-9)
        assert found.plan(name).differs.tolist() == np.flatnonzero(found.plan(name).policy != plain).tolist()
    tried = np.where(table.visits > 0, R, -np.inf)
    expected = np.where((table.visits > 0).any(axis=1), tried.argmax(axis=1), -1)
    assert found.plan("bandit").policy.tolist() == expected.tolist()


def test_the_shortcuts_are_told_in_the_one_line_form():
    found = audit([[[5, 0], [0, 0]], [[1, 1], [2, 0]]], 0.5, discount=0.9, reward=[[0, 1], [1, 0]], threshold=3)
    told = " ".join(found.lines())
    assert "w = 1 for the 1 pair never tried, else 0, target: zeros" in told
    assert "w = 1 for 3 pairs, which throws 4 visits away, else 0, target: zeros" in told
    assert "w = 1 for every pair, infinitely many invented transitions, target: zeros" in told
    assert "1 pair was never tried" in told


@given(counts(ended=st.just(False)), SEEDS, GAMMAS, SHARES)
def test_where_nothing_ends_theorem_1_is_exact(table, seed, gamma, share):
    assume(table.visits.any())
    found = audit(table, share * gamma, discount=gamma, reward=rewards_for(table, seed))
    assert found.equivalence.exact
    assert found.equivalence.endings == 0
    assert found.equivalence.differs.tolist() == []
    assert "so Theorem 1 applies" in found.lines()[-1]


def test_where_episodes_end_it_is_computed_in_how_many_states_theorem_1_holds():
    """State 0: stop (reward 1, the end) or go on (reward 0.4). State 1: nothing to choose."""
    data = Counts([[[0, 0], [8, 0]], [[0, 3], [0, 3]]], [[8, 0], [0, 0]])
    found = audit(data, 0.495, discount=0.99, reward=[[1, 0.4], [0, 0]])
    assert found.equivalence.differs.tolist() == [0]
    assert (found.equivalence.endings, found.equivalence.exact) == (8, False)
    assert "8 observed transitions end an episode" in found.lines()[-1]
    assert "the same advice in 1 of 2 states. Not in 1 of 2 states: '0'." in found.lines()[-1]
    assert found.to_json()["theorem_1"] == {
        "endings": 8, "exact": False, "states": 2, "same": 1, "differs": ["0"],
    }  # fmt: skip


def test_rows_that_stand_for_missing_data_can_end_episodes_too():
    found = audit([[[5, 0], [0, 0]], [[1, 1], [2, 0]]], 0.5, discount=0.9, reward=[[0, 1], [1, 0]], unvisited="zero")
    assert not found.equivalence.exact
    assert "convention 'zero'" in found.lines()[-1]


@pytest.mark.parametrize("way", [{}, {"reward_by": "next_state"}, {"unvisited": "average"}, {"horizon": 2}], ids=str)
def test_a_batch_and_what_was_learned_from_it_are_audited_alike(way):
    batch = logged(5)
    from_batch = audit(batch, 0.5, discount=0.9, **way)
    from_learned = audit(learn(batch, discount=0.9, **way), 0.5)
    other = audit(learn(batch, discount=0.99, regularizer="uniform_prior", strength=0.2, **way), 0.5, discount=0.9)
    assert from_batch.to_json() == from_learned.to_json() == other.to_json()
    assert from_batch.visits.tolist() == tally(batch).visits.tolist()


def test_labels_are_short_in_words_and_whole_in_files():
    long = ("x" * 10_000, "y")
    found = audit([[[5, 0]], [[1, 1]]], 0.5, discount=0.9, reward=[[0], [1]], state_names=long)
    assert max(map(len, found.lines())) < 1000
    assert found.to_json()["states"] == list(long)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"planning_discount": 0.95}, "between 0 and 0.9"),
        ({"planning_discount": -0.1}, "between 0 and 0.9"),
        ({"reward": None}, "give reward="),
        ({"threshold": 0}, "threshold must be at least 1"),
        ({"horizn": 3}, "Did you mean 'horizon'"),
        ({"unvisited": "exlude"}, "Did you mean 'exclude'"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_words(given, says):
    asked = {"planning_discount": 0.5, "discount": 0.9, "reward": [[0], [1]]} | given
    with pytest.raises(InputError, match=says):
        audit([[[5, 0]], [[1, 1]]], **asked)


def test_no_data_and_settings_for_a_learned_policy_are_refused():
    with pytest.raises(InputError, match="no transitions to audit"):
        audit(np.zeros((2, 1, 2), dtype=int), 0.5, reward=[[0], [1]])
    with pytest.raises(InputError, match="brings its own settings; unvisited"):
        audit(learn(logged(0)), 0.5, unvisited="zero")
