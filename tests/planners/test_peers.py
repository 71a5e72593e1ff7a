"""Other people's planners find the same values: QuantEcon's DiscreteDP and pymdptoolbox.

QuantEcon compiles itself when it is first imported. Two processes that do so at once leave a cache that makes every
later import abort, so only tests of this file import it, and one worker runs them all.
"""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from gymnasium.envs.toy_text import CliffWalkingEnv, FrozenLakeEnv, TaxiEnv
from mdptoolbox.mdp import PolicyIteration

from certeq import SparseRows, solve
from certeq.planners import PLANNERS
from certeq.worlds.table import from_table
from planned import both, plans_if_able
from strategies import random_model

GAMMA = 0.9
GAMES = {
    "FrozenLake": FrozenLakeEnv,
    "FrozenLake 8 x 8": lambda: FrozenLakeEnv(map_name="8x8"),
    "CliffWalking": CliffWalkingEnv,
    "Taxi": TaxiEnv,
}


def with_terminal_state(T, R):
    """What the peers need: ending as a last state that loops to itself without reward."""
    S, A, _ = T.shape
    full, pay = np.zeros((S + 1, A, S + 1)), np.zeros((S + 1, A))
    full[:S, :, :S], full[:S, :, S], full[S, :, S], pay[:S] = T, 1 - T.sum(axis=-1), 1, R
    full[np.abs(full) < 1e-15] = 0
    return full, pay


def quantecon_plan(T, R):
    from quantecon.markov import DiscreteDP

    result = DiscreteDP(R, T, GAMMA).solve(method="policy_iteration")
    return result.v[:-1], result.sigma[:-1]


def mdptoolbox_plan(T, R):
    found = PolicyIteration(np.swapaxes(T, 0, 1), R, GAMMA, max_iter=1000)
    found.run()
    return np.array(found.V)[:-1], np.array(found.policy)[:-1]


def random_problem(S, A, seed):
    return random_model(seed, S, A, ends=True)[:2]


@cache
def game(name):
    table = from_table(GAMES[name](), discount=GAMMA)
    return table.transition.dense(), table.reward


PROBLEMS = {
    **{f"random {S} x {A}": (random_problem, (S, A, S)) for S, A in [(2, 2), (10, 3), (40, 4)]},
    **{name: (game, (name,)) for name in GAMES},
}


@pytest.mark.parametrize("peer", [pytest.param(quantecon_plan, marks=pytest.mark.slow), mdptoolbox_plan])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_peer_finds_the_same_values_and_a_policy_that_is_best_here_too(peer, problem):
    make, arguments = PROBLEMS[problem]
    T, R = make(*arguments)
    values, policy = peer(*with_terminal_state(T, R))
    found = solve(T, R, GAMMA)
    scale = np.abs(values).max()
    np.testing.assert_allclose(found.values, values, atol=1e-9 * scale)
    assert found.tied[np.arange(len(T)), policy].all()


@pytest.mark.slow
def test_a_peer_finds_the_same_plan_of_many_states():
    from quantecon.markov import DiscreteDP

    S, A, K, rng = 2000, 3, 5, np.random.default_rng(0)
    columns = (np.arange(S * A)[:, None] // A + rng.integers(-20, 21, size=(S * A, K))) % S
    chances, starts = rng.dirichlet(np.ones(K), size=S * A), np.arange(0, S * A * K + 1, K)
    matrix = sp.csr_array((chances.ravel(), columns.ravel(), starts), shape=(S * A, S))
    reward, (states, actions) = rng.random((S, A)), np.divmod(np.arange(S * A), A)
    peer = DiscreteDP(reward.ravel(), sp.csr_matrix(matrix), 0.99, states, actions)
    theirs = peer.solve(method="modified_policy_iteration", epsilon=1e-8)
    ours = solve(SparseRows(matrix, S, A), reward, 0.99, engine="numba")
    np.testing.assert_array_equal(ours.policy, theirs.sigma)
    np.testing.assert_allclose(ours.values, theirs.v, atol=2e-8)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_all_of_our_own_planners_agree_there(problem):
    make, arguments = PROBLEMS[problem]
    T, R = make(*arguments)
    exact = solve(T, R, GAMMA, engine="numpy")
    scale = np.abs(exact.values).max()
    here = [planner for planner in PLANNERS if planner.device == "cpu"]
    found = [plan for planner in here for plan in plans_if_able(planner, both(T), R, GAMMA)]
    assert len(found) > len(here)
    for plan in found:
        np.testing.assert_allclose(plan.values, exact.values, atol=1.1e-9 * scale)
        assert exact.tied[np.arange(len(T)), plan.policy].all()
