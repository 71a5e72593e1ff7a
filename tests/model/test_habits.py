"""How likely people were to take each action: against a literal twin, and by what it is for."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

import naive
from certeq.model import habits
from certeq.model.habits import APART, LEANS, MANY, OWN, ROWS, differ, shares
from strategies import SEEDS


def logged(rng, S, A, rows, errors):
    """A usual action in each state, left at random in a share of the decisions."""
    chances = np.full((S, A), errors / A)
    chances[np.arange(S), rng.integers(A, size=S)] += 1 - errors
    return np.array(
        [rng.multinomial(n, row) for n, row in zip(rng.integers(0, 2 * rows, size=S), chances, strict=True)]
    )


@settings(max_examples=15)
@example(290, 5, 4, 2, 0.3)  # two of the grid are as likely
@given(SEEDS, st.integers(1, 6), st.integers(2, 4), st.sampled_from([2, 5, 20]), st.sampled_from([0.0, 0.3, 1.0]))
def test_shares_are_those_of_the_twin(seed, S, A, rows, errors):
    visits = logged(np.random.default_rng(seed), S, A, rows, errors)
    if visits.sum(axis=1).max() < 2:
        np.testing.assert_array_equal(shares(visits), np.full((S, A), 1 / A))
        return
    np.testing.assert_allclose(shares(visits), naive.habits(visits.tolist(), LEANS, ROWS, APART, OWN), rtol=1e-9)


def test_one_slip_among_four_is_a_choice_only_where_people_often_choose_otherwise():
    rng = np.random.default_rng(0)
    competent, undecided = (logged(rng, 300, 3, 4, errors) for errors in (0.2, 1.0))
    competent[0] = undecided[0] = [3, 1, 0]
    slip, choice = (shares(each)[0] for each in (competent, undecided))
    assert slip[1] < 0.2 * slip[0]
    assert choice[1] > 0.5 * choice[0]
    assert competent[0, 1] >= 0.2 * competent[0, 0]  # which is what its own rows alone would say


def test_what_is_avoided_in_one_state_alone_is_seen_as_avoided():
    visits = np.random.default_rng(0).multinomial(20, [0.5, 0.5], size=100)
    visits[0] = [20, 1]
    found = shares(visits)
    assert found[0, 1] < 0.1
    assert (found[1:].min(axis=1) > 0.4).mean() > 0.9


def test_the_rows_of_the_state_have_the_say_in_the_end():
    visits = logged(np.random.default_rng(0), 50, 3, 4, 0.1)
    visits[0] = [60_000, 30_000, 10_000]
    np.testing.assert_allclose(shares(visits)[0], [0.6, 0.3, 0.1], atol=0.01)


@given(SEEDS, st.integers(1, 8), st.integers(2, 4))
def test_more_tries_are_never_less_likely_and_chances_add_up(seed, S, A):
    visits = np.random.default_rng(seed).choice([0, 1, 3, 10, 10 * MANY], size=(S, A))
    found = shares(visits)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for s, (one, other) in itertools.product(range(S), itertools.permutations(range(A), 2)):
        if visits[s, one] >= visits[s, other]:
            assert found[s, one] >= found[s, other] * (1 - 1e-9)


@given(SEEDS, st.permutations(range(5)), st.permutations(range(3)))
def test_renaming_changes_names_alone(seed, states, actions):
    visits = logged(np.random.default_rng(seed), 5, 3, 6, 0.4)
    other = visits[np.ix_(states, actions)]
    np.testing.assert_allclose(shares(other), shares(visits)[np.ix_(states, actions)], rtol=1e-12)
    assert differ(other) == differ(visits)


def test_several_data_sets_together_are_as_each_alone():
    rng = np.random.default_rng(0)
    several = np.array([[logged(rng, 6, 3, 5, errors) for errors in (0.1, 1.0)] for _ in range(2)])
    for i, j in np.ndindex(2, 2):
        np.testing.assert_array_equal(shares(several)[i, j], shares(several[i, j]))
        assert differ(several)[i, j] == differ(several[i, j])


def test_many_patterns_are_added_up_in_parts(monkeypatch):
    visits = logged(np.random.default_rng(0), 60, 3, 8, 0.4)
    whole = shares(visits)
    monkeypatch.setattr("certeq.model.habits.AT_ONCE", 200)
    habits._known.cache_clear()
    np.testing.assert_allclose(shares(visits), whole, rtol=1e-12)


def test_nothing_is_known_of_one_action_or_of_single_rows():
    np.testing.assert_array_equal(shares(np.array([[7], [0]])), [[1.0], [1.0]])
    np.testing.assert_array_equal(shares(np.array([[1, 0], [0, 1], [0, 0]])), np.full((3, 2), 0.5))
    assert not differ(np.array([[7], [3]]))
    assert not differ(np.zeros((2, 2), dtype=int))


def test_acting_alike_everywhere_is_told_from_acting_by_state():
    """Pearson's statistic is SciPy's, and its mean is that of every way to shuffle the actions."""
    rng = np.random.default_rng(1)
    alike = [rng.multinomial(10, [0.7, 0.2, 0.1], size=40) for _ in range(200)]
    assert np.mean([differ(each) for each in alike]) < 0.06
    assert all(differ(logged(rng, 40, 3, 10, 0.6)) for _ in range(20))
    table = np.array([[2, 1], [1, 1], [0, 2]])
    state, action = np.repeat(range(3), table.sum(axis=1)), np.repeat(np.tile([0, 1], 3), table.ravel())

    def statistic(order):
        return chi2_contingency(np.histogram2d(state, order, bins=(3, 2))[0], correction=False).statistic

    shuffled = np.mean([statistic(order) for order in itertools.permutations(action)])
    assert shuffled == pytest.approx(2 * 7 / 6)


@pytest.mark.parametrize("rows", [1, 12])
def test_the_border_lies_two_deviations_beyond_chance(rows):
    """Of two states that act as differently as can be, with few rows each, nobody can tell; with many, anybody can."""
    table = np.array([[rows, 0], [0, rows]])
    beyond = 2 * rows - (2 * rows) / (2 * rows - 1)  # the statistic is the number of rows
    assert differ(table) == (beyond > 2 * np.sqrt(2))
