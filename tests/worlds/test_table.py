import copy

import gymnasium
import numpy as np
import pytest

from certeq.base.errors import InputError
from certeq.model.kernel import Rows, SparseRows
from certeq.worlds import from_table, table
from certeq.worlds.table import log_table

TWO_STATES = {
    0: {0: [(0.25, 0, 4.0, False), (0.25, 0, 0.0, False), (0.5, 1, 2.0, False)], 1: [(1.0, 1, 1.0, True)]},
    1: {0: [(1.0, 1, 0.0, False)], 1: [(0.5, 0, 1.0, True), (0.5, 0, 3.0, False)]},
}


def test_repeated_next_states_add_up_rewards_average_and_what_terminates_is_missing_mass():
    mdp = from_table(TWO_STATES, discount=0.9)
    np.testing.assert_allclose(mdp.transition.dense(), [[[0.5, 0.5], [0, 0]], [[0, 1], [0.5, 0]]])
    np.testing.assert_allclose(mdp.reward, [[2, 1], [0, 2]])
    assert mdp.discount == 0.9
    np.testing.assert_allclose(mdp.start, 0.5)


def test_lists_are_read_like_dicts():
    listed = [[TWO_STATES[s][a] for a in (0, 1)] for s in (0, 1)]
    half = [TWO_STATES[0], TWO_STATES[1]]
    for other in (listed, half):
        np.testing.assert_array_equal(from_table(other).transition.dense(), from_table(TWO_STATES).transition.dense())


def test_start_can_be_given():
    np.testing.assert_array_equal(from_table(TWO_STATES, start=[0, 1]).start, [0, 1])


def literal(P):
    """The table, entry by entry."""
    S, A = len(P), len(P[0])
    T, R = np.zeros((S, A, S)), np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            for p, then, r, terminated in P[s][a]:
                R[s, a] += p * r
                if not terminated:
                    T[s, a, then] += p
    return T, R


@pytest.mark.parametrize("name", ["FrozenLake", "CliffWalking", "Taxi"])
def test_toy_text_environments_are_read(name):
    env = gymnasium.make(max(known for known in gymnasium.registry if known.startswith(f"{name}-v")))
    mdp = from_table(env)
    T, R = literal(env.unwrapped.P)
    np.testing.assert_allclose(mdp.transition.dense(), T, atol=1e-12)
    np.testing.assert_allclose(mdp.reward, R, atol=1e-12)
    np.testing.assert_array_equal(mdp.start, env.unwrapped.initial_state_distrib)
    np.testing.assert_array_equal(from_table(env.unwrapped.P).reward, mdp.reward)


def test_frozen_lake_on_slippery_ice_has_its_known_value(optimal_values):
    best, _ = optimal_values(from_table(gymnasium.make("FrozenLake-v1"), discount=0.99))
    assert best[0] == pytest.approx(0.542, abs=5e-4)


def test_large_tables_stay_sparse(monkeypatch):
    assert isinstance(from_table(TWO_STATES).transition, Rows)
    monkeypatch.setattr(table, "DENSE_LIMIT", 7)  # the table has 2 * 2 * 2 entries
    kept = from_table(TWO_STATES)
    assert isinstance(kept.transition, SparseRows)
    np.testing.assert_allclose(kept.transition.dense(), [[[0.5, 0.5], [0, 0]], [[0, 1], [0.5, 0]]])


def test_a_big_world_is_read_without_being_written_out():
    S = 2000
    ring = {s: {a: [(1.0, (s + 1 + a) % S, 0.0, False)] for a in (0, 1)} for s in range(S)}
    kernel = from_table(ring).transition
    assert isinstance(kernel, SparseRows)
    assert kernel.matrix.nnz == 2 * S


def test_rounding_in_the_table_is_forgiven_and_scaled_away():
    P = [[[(0.3333333, 0, 3.0, False)] * 3]]
    mdp = from_table(P)
    assert mdp.transition.mass()[0, 0] == pytest.approx(1, abs=1e-12)
    assert mdp.reward[0, 0] == pytest.approx(3, abs=1e-12)


def changed(s, a, outcomes):
    P = copy.deepcopy(TWO_STATES)
    P[s][a] = outcomes
    return P


@pytest.mark.parametrize(
    ("P", "message"),
    [
        (changed(1, 0, [(0.9, 0, 0, False)]), "State 1, action 0: the probabilities sum to 0.9; expected 1"),
        (changed(1, 0, [(1.5, 0, 0, False), (-0.5, 1, 0, False)]), "State 1, action 0: the probability -0.5"),
        (changed(0, 1, [(float("nan"), 0, 0, False)]), "State 0, action 1: the probability nan"),
        (changed(0, 1, [(1.0, 2, 0, False)]), r"State 0, action 1: the next state 2 is not in 0\.\.1"),
        (changed(0, 1, [(1.0, -1, 0, True)]), "State 0, action 1: the next state -1"),
        (changed(0, 1, [(1.0, 1, float("inf"), False)]), "State 0, action 1: the reward inf is not finite"),
        (changed(0, 1, [(1.0, 1.5, 0, False)]), "State 0, action 1: an outcome is .* whole number as next_state"),
        (changed(0, 1, [(1.0, 1, 0)]), "State 0, action 1: an outcome is"),
        (changed(0, 1, []), "State 0, action 1: expected a list of outcomes"),
        (changed(0, 1, [("all", 1, 0, False)]), "not a number"),
        ({0: TWO_STATES[0], 1: {0: TWO_STATES[1][0]}}, "State 1 has 1 actions, but state 0 has 2"),
        ({0: TWO_STATES[0], 1: {0: TWO_STATES[1][0], 2: TWO_STATES[1][1]}}, "State 1 lacks action 1"),
        ({0: TWO_STATES[0], 2: TWO_STATES[1]}, "P lacks state 1"),
        ({}, "P has no states"),
        ([{}], "State 0 has no actions"),
        (7, "P must be a dict or a list"),
    ],
)
def test_a_bad_table_is_told_where_it_is_bad(P, message):
    with pytest.raises(InputError, match=message):
        from_table(P)


def test_an_environment_without_a_table_is_refused():
    with pytest.raises(InputError, match="no transition table"):
        from_table(gymnasium.make("CartPole-v1"))


def test_a_start_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="start"):
        from_table(TWO_STATES, start=[1.0])


def test_a_log_of_a_table_has_the_chances_and_the_pay_of_its_outcomes():
    table = {
        0: {0: [(0.25, 1, 5.0, False), (0.75, 0, -1.0, False)], 1: [(1.0, 1, 2.0, True)]},
        1: {0: [(0.5, 0, 1.0, False), (0.5, 0, 3.0, True)], 1: [(1.0, 1, 0.0, False)]},
    }
    behavior = np.array([[0.9, 0.1], [0.6, 0.4]])
    log = log_table(table, 4000, 6, behavior=behavior, start=[1.0, 0.0], rng=1)
    for s, a in np.ndindex(2, 2):
        here = (log.state == s) & (log.action == a)
        taken = here.sum() / (log.state == s).sum()
        assert abs(taken - behavior[s, a]) < 0.02
        for chance, then, pay, ends in table[s][a]:
            same = here & (log.next_state == (-1 if ends else then)) & (log.reward == pay)
            assert abs(same.sum() / here.sum() - chance) < 0.03
    assert (log.state[log.time == 0] == 0).all()
    assert log.time.max() <= 5
    follows = np.flatnonzero(log.episode[1:] == log.episode[:-1])
    np.testing.assert_array_equal(log.state[follows + 1], log.next_state[follows])
