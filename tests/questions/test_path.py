"""The path: constant advice between knots, and each knot where the planner's advice flips."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

import naive
from certeq import Batch, InputError, path
from certeq.learning.learned import learn
from certeq.model.frequencies import mle
from certeq.questions.path import _meetings, follow
from logbook import logged
from strategies import SEEDS, as_sparse

STOP, GO = 0, 1


def chain(rows, S, A=2):
    """A batch of (state, action, next state, reward)."""
    state, action, after, reward = zip(*rows, strict=True)
    return Batch(state, action, after, S, A, reward=np.array(reward, float))


def stop_or_go():
    """Stop for 1, or go on for 0.4: worth 0.4 / (1 - γ_p), so going on is better above γ_p = 0.6."""
    return chain([(0, STOP, -1, 1.0), (0, GO, 0, 0.4)], 1)


def two_flips(window):
    """Q_a - Q_b = (γ_p - 1/2)² - window² in state 0: b is better only within the window around 1/2."""
    a, b = 0, 1
    rows = [(0, a, 1, 0.25 - window**2), (1, a, 2, 0), (2, a, -1, 1), (0, b, 2, 0)]
    return chain([*rows, (1, b, 2, -0.1), (2, b, -1, -0.1)], 3)


def test_a_breakpoint_is_where_the_values_cross():
    found = path(learn(stop_or_go(), discount=0.9), "planning_discount")
    (point,) = found.breakpoints
    assert point.value == pytest.approx(0.6, abs=1e-9)
    assert point[1:] == (0, STOP, GO)
    assert found.policy_at(0.6 - 1e-9).tolist() == [STOP]
    assert found.policy_at(0.6 + 1e-9).tolist() == [GO]


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-10])
def test_closing_in_takes_fewer_plans_than_halving_and_keeps_the_tolerance(tolerance):
    found = path(learn(stop_or_go(), discount=0.9), "planning_discount", points=10, tolerance=tolerance)
    halvings = np.ceil(np.log2(0.1 / tolerance))
    assert found.plans - 10 < halvings or tolerance == 1e-3
    assert abs(found.knots - 0.6) <= tolerance / 2


@pytest.mark.slow
@given(SEEDS, st.sampled_from(["strength", "planning_discount"]), st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_advice_at_any_value_is_what_is_planned_there(seed, along, shares):
    learned = learn(logged(seed), discount=0.9)
    found = path(learned, along)
    for value in np.array(shares) * found.high:
        if len(found.knots) and np.abs(found.knots - value).min() < 1e-6:
            continue
        expected = learned.case.under(found.regularizer, **{along: value}).advise().policy
        assert found.policy_at(value).tolist() == expected.tolist()


def test_breakpoints_are_roots_of_the_gap_between_the_two_actions():
    """An outside root finder and slow literal planning, where a state's advice changes once."""
    found = []
    given(SEEDS)(lambda seed: found.extend(roots_at_breakpoints(seed)))()
    assert len(found) > 5


def roots_at_breakpoints(seed):
    """See that each breakpoint is a root, as exactly as ties allow; which there were.

    Actions closer than 1e-10 of the spread of all values are tied, so the flatter a gap, the further aside it flips.
    """
    batch = logged(seed, ends=False)
    learned = learn(batch, discount=0.9, unvisited="target")
    found = path(learned, "planning_discount")
    for point in found.breakpoints:
        others = [p.value for p in found.breakpoints if p.state == point.state and p is not point]
        if any(abs(value - point.value) < 1e-3 for value in others):
            continue

        def gap(gp, point=point):
            rows = mle(learned.model.counts).array.copy()
            rows[learned.counts.visits == 0] = 1 / 3
            _, q = _literal_q(rows, learned.table, gp)
            return q[point.state][point.before] - q[point.state][point.after]

        low, high = max(point.value - 1e-4, 0), min(point.value + 1e-4, 0.9)
        if gap(low) * gap(high) < 0:
            slope = abs(gap(high) - gap(low)) / (high - low)
            aside = 2e-10 * np.ptp(learned.plan.action_values) / slope
            assert point.value == pytest.approx(brentq(gap, low, high, xtol=1e-13), abs=1e-8 + aside)
            yield point


def _literal_q(T, R, gamma):
    policy = naive.best_policy_by_enumeration(T, R, gamma)
    values = naive.exact_value_of_policy(T, R, gamma, policy).astype(float)
    return values, R + gamma * (T @ values)


@pytest.mark.parametrize("window", [0.02, 3e-3, 3e-4])
def test_two_flips_between_neighbors_of_the_grid_are_found(window):
    learned = learn(two_flips(window), discount=0.99, regularizer="none")
    coarse = path(learned, "planning_discount", points=6)
    grid = np.linspace(0, 0.99, 6)
    assert all(coarse.policy_at(value)[0] == 0 for value in grid), "the grid alone would see nothing"
    here = [point for point in coarse.breakpoints if point.state == 0]
    tie = 2e-10 / (2 * window)  # actions are tied within 1e-10 of the spread of values, and the gap has this slope
    assert [point.value for point in here] == pytest.approx([0.5 - window, 0.5 + window], abs=tie)
    assert [(point.before, point.after) for point in here] == [(0, 1), (1, 0)]


def test_only_dips_below_zero_are_looked_into():
    values = np.linspace(0, 1, 6)
    policies = np.zeros((6, 1), dtype=int)
    dip = (values - 0.5) ** 2
    for lead, found in ((dip + 0.1, 0), (dip - 1e-4, 1), (values + 0.1, 0)):
        meetings = _meetings(values, policies, np.stack([0 * lead, lead], axis=-1)[:, None], 1e-5)
        assert len(meetings) == found
        assert all(0.4 < value < 0.6 for value in meetings)
    lead = np.stack([0 * dip, dip - 1e-4], axis=-1)[:, None]
    assert len(_meetings(values, policies, lead, 0.5)) == 0, "the interval is narrow enough"


@pytest.mark.slow
@given(SEEDS)
def test_departures_are_the_first_and_last_places_with_other_advice(seed):
    found = path(learn(logged(seed), discount=0.9), "strength", points=17)
    edges = np.concatenate([[0], found.knots, [1]])
    for policy in (found.policies[0], found.advice):
        first, last = found.first_departure(policy), found.last_departure(policy)
        for s, advised in enumerate(policy):
            other = [k for k in range(len(found.policies)) if found.policies[k, s] != advised]
            assert (np.isnan(first[s]), np.isnan(last[s])) == (not other, not other)
            if other:
                assert (first[s], last[s]) == (edges[other[0]], edges[other[-1] + 1])


def test_another_regularizer_keeps_its_target():
    target = np.tile(np.eye(3)[0], (1, 1, 1))
    learned = learn(logged(4), discount=0.9, regularizer="expert_prior", target=target, strength=0.5)
    found = path(learned, "strength", regularizer="expert_prior")
    assert found.policy_at(0.5).tolist() == learned.policy.actions.tolist()
    assert path(learned, "planning_discount", regularizer="expert_prior").regularizer == "expert_prior"


def test_a_horizon_and_sparse_counts_have_paths_too():
    learned = learn(logged(6), discount=0.9, horizon=3)
    found = path(learned, "planning_discount")
    for value in (0.0, 0.35, 0.9):
        again = learn(logged(6), discount=0.9, horizon=3, regularizer="discount", planning_discount=value)
        assert found.policy_at(value).tolist() == again.policy.actions[0].tolist()
    case = learn(logged(6), discount=0.9).case
    dense = follow(case, "strength", points=9, tolerance=1e-4)
    sparse = follow(case.given(as_sparse(case.data.counts), case.data.reward), "strength", points=9, tolerance=1e-4)
    np.testing.assert_allclose(sparse.knots, dense.knots, atol=1e-4)
    assert sparse.policies.tolist() == dense.policies.tolist()


def test_words_and_files_tell_the_breakpoints():
    found = path(learn(stop_or_go(), discount=0.9), "planning_discount")
    assert "advice changes 1 time, in 1 of 1 state" in found.lines()[0]
    assert "a planning discount of 0.6" in found.lines()[-1]
    (point,) = found.to_json()["breakpoints"]
    assert point == {"value": pytest.approx(0.6), "state": "0", "before": "0", "after": "1"}


def test_what_has_no_path_is_refused_in_words():
    learned = learn(stop_or_go(), discount=0.9)
    for asked, says in (
        ({"along": "epsilon"}, "no path named 'epsilon'"),
        ({"regularizer": "evidence"}, "'evidence' has no strength"),
        ({"points": 1}, "points must be at least 2"),
        ({"tolerance": 0.0}, "tolerance must be a positive number"),
    ):
        with pytest.raises(InputError, match=says):
            path(learned, **asked)
    with pytest.raises(InputError, match=r"between 0 and 0\.9"):
        path(learned, "planning_discount").policy_at(1.0)
