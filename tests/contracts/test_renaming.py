"""Names decide nothing: renaming states and actions, and shuffling rows, changes names and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from test_regularizers import GAMMA, SHARED, each, few, settings_for, weights_of

from certeq import Batch, Counts, plan, shrink, solve, tally
from certeq.planners import METHODS
from strategies import SEEDS, random_counts, random_model

SIZES = st.tuples(st.integers(2, 5), st.integers(2, 3))
DENSE = [method for method in METHODS if method != "inexact_policy_iteration"]  # which has a test of its own
PLANNERS = [(method, engine) for method in DENSE for engine in ("numpy", "auto")] + [("policy_iteration", "numba")]


class Renaming:
    """New numbers for states and actions: ``state[i]`` is the old number of what is now i."""

    def __init__(self, seed, S, A):
        random = np.random.default_rng([seed, 1])
        self.state, self.action = random.permutation(S), random.permutation(A)

    def pairs(self, table):
        """A table ``(..., S, A)`` under the new names."""
        return np.take(np.take(table, self.state, axis=-2), self.action, axis=-1)

    def rows(self, table):
        """A table ``(..., S, A, S)`` under the new names."""
        renamed = np.take(np.take(table, self.state, axis=-3), self.action, axis=-2)
        return np.take(renamed, self.state, axis=-1)

    def counts(self, table):
        ended = None if table.ended is None else self.pairs(table.ended)
        where = table.positions and replace(table.positions, places=table.positions.places[self.state])
        return Counts(self.rows(table.transitions), ended, positions=where)


def simple_rewards(seed, S, A):
    """Rewards that are often the same, so that there are ties."""
    return np.random.default_rng([seed, 2]).integers(0, 2, size=(S, A)).astype(float)


def fitted(settings, goal, S):
    """The settings with a shared target, or row, of the right size: always to the state ``goal``."""
    row = np.eye(S)[goal]
    sized = {"target": row[None, None], "expert": row[None, None], "row": row}
    return settings | {name: sized[name] for name, value in settings.items() if value is SHARED}


def clear(plan):
    """Where it is beyond rounding which actions are best, ``(S, A)``."""
    return (plan.advantages > -1e-13) | (plan.advantages < -1e-7)


@each
@few
@given(data=st.data(), seed=SEEDS, size=SIZES, ended=st.booleans())
def test_weights_values_and_best_actions_only_change_their_names(name, data, seed, size, ended):
    settings, (S, A) = data.draw(settings_for(name)), size
    table, names = random_counts(seed, S, A, ended=ended), Renaming(seed, S, A)
    reward = simple_rewards(seed, S, A)
    here, there = (fitted(settings, goal, S) for goal in (0, int(np.argsort(names.state)[0])))
    weight = shrink(table, name, discount=GAMMA, **here).weight
    renamed = shrink(names.counts(table), name, discount=GAMMA, **there).weight
    np.testing.assert_allclose(renamed, names.pairs(weight), atol=1e-12)
    old = plan(table, reward, GAMMA, regularizer=name, **here)
    new = plan(names.counts(table), names.pairs(reward), GAMMA, regularizer=name, **there)
    np.testing.assert_allclose(new.values, old.values[names.state], atol=1e-9)
    told = names.pairs(clear(old))
    np.testing.assert_array_equal(new.tied[told], names.pairs(old.tied)[told])


@pytest.mark.parametrize(("method", "engine"), PLANNERS)
@few
@given(seed=SEEDS, size=SIZES, ends=st.booleans())
def test_planners_do_not_look_at_names(method, engine, seed, size, ends):
    S, A = size
    model, names = random_model(seed, S, A, ends=ends), Renaming(seed, S, A)
    reward = simple_rewards(seed, S, A)
    how = {"method": method, "engine": engine, "tolerance": 1e-10}
    old = solve(model.transition, reward, GAMMA, **how)
    new = solve(names.rows(model.transition), names.pairs(reward), GAMMA, **how)
    np.testing.assert_allclose(new.values, old.values[names.state], atol=1e-8)
    told = names.pairs(clear(old))
    np.testing.assert_array_equal(new.tied[told], names.pairs(old.tied)[told])


@given(seed=SEEDS, size=SIZES)
def test_the_large_planner_does_not_look_at_names(seed, size):
    S, A = size
    model, names = random_model(seed, S, A), Renaming(seed, S, A)
    reward = simple_rewards(seed, S, A)
    sparse = [sp.csr_array(rows.reshape(S * A, S)) for rows in (model.transition, names.rows(model.transition))]
    old, new = (
        solve(rows, table, GAMMA, method="inexact_policy_iteration", engine="numba", tolerance=1e-10)
        for rows, table in zip(sparse, (reward, names.pairs(reward)), strict=True)
    )
    np.testing.assert_allclose(new.values, old.values[names.state], atol=1e-8)
    told = names.pairs(clear(old))
    np.testing.assert_array_equal(new.tied[told], names.pairs(old.tied)[told])


@each
@few
@given(data=st.data(), seed=SEEDS)
def test_the_order_of_the_rows_does_not_matter(name, data, seed):
    settings = data.draw(settings_for(name))
    random, n = np.random.default_rng(seed), 40
    state, action, after = random.integers(4, size=n), random.integers(2, size=n), random.integers(-1, 4, size=n)
    orders = np.arange(n), random.permutation(n)
    one, other = (tally(Batch(state[i], action[i], after[i], 4, 2)) for i in orders)
    np.testing.assert_array_equal(weights_of(one, name, settings), weights_of(other, name, settings))
