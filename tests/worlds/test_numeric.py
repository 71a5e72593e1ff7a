"""Worlds of numbers: points obey the rules, logs are cells of them, and values are those of a plain loop."""

import numpy as np
import pytest

from certeq import InputError, tally
from certeq.worlds.numeric import (
    SIMULATORS,
    cell_of,
    erring,
    log_points,
    luck,
    numeric_log,
    numeric_table,
    numeric_value,
    simulator,
    value_points,
)

each_world = pytest.mark.parametrize("name", SIMULATORS)


@each_world
def test_points_stay_in_the_square_and_rewards_are_finite(name):
    world, random = simulator(name), np.random.default_rng(1)
    for action in range(len(world.actions)):
        after, paid = world.step(random.random((500, 2)), np.full(500, action), luck(500, random))
        assert ((after >= 0) & (after <= 1)).all()
        assert np.isfinite(paid).all()
        assert paid.shape == (500,)


def test_nobody_sails_through_the_wall():
    random = np.random.default_rng(2)
    west = np.stack([random.uniform(0.3, 0.5, 500), random.uniform(0, 0.7, 500)], axis=1)
    after, _ = simulator("harbor").step(west, np.full(500, 2), luck(500, random))
    assert (after[:, 0] < 0.5).all()
    north = np.stack([np.full(500, 0.49), np.full(500, 0.95)], axis=1)
    after, _ = simulator("harbor").step(north, np.full(500, 2), luck(500, random))
    assert (after[:, 0] > 0.5).mean() > 0.9


def test_a_repair_leads_to_little_wear_and_doses_to_tolerance():
    random = np.random.default_rng(3)
    points, noise = random.random((300, 2)), luck(300, random)
    assert (simulator("machine").step(points, np.full(300, 2), noise)[0][:, 0] < 0.35).all()
    none, high = (simulator("dose").step(points, np.full(300, a), noise)[0] for a in (0, 2))
    assert (high[:, 1] >= none[:, 1]).all()
    assert (high[:, 0] <= none[:, 0]).all()


@each_world
def test_a_log_has_the_cells_of_its_points(name):
    batch = numeric_log(name, 3, 5, cells=4, data_sets=2, rng=1)
    counts = tally(batch)
    assert counts.batch == (2,)
    assert counts.visits.sum(axis=(1, 2)).tolist() == [15, 15]
    going_on = batch.time[1:] > 0
    np.testing.assert_array_equal(batch.state[1:][going_on], batch.next_state[:-1][going_on])
    assert batch.positions.places.tolist() == [[i, j] for i in range(4) for j in range(4)]


@each_world
def test_values_are_those_of_a_plain_loop(name):
    world = simulator(name)
    S, A = 9, len(world.actions)
    policy = np.random.default_rng(4).dirichlet(np.ones(A), size=(2, S))
    found = numeric_value(name, policy, points=6, steps=4, rng=5)
    for p in range(2):
        random = np.random.default_rng(5)
        at, worth = world.start(6, random), np.zeros(6)
        for t in range(4):
            level, chance, noise = np.cumsum(policy[p], axis=1), random.random((6, 1)), luck(6, random)
            for i in range(6):
                action = min(int(np.searchsorted(level[cell_of(at[i], 3)], chance[i, 0], side="right")), A - 1)
                then, paid = world.step(at[i], np.array(action), noise[i])
                worth[i] += world.discount**t * float(paid)
                at[i] = then
        assert found[p] == pytest.approx(worth.mean())


def test_a_table_has_distributions_and_names_the_actions():
    table = numeric_table("machine", 5)
    np.testing.assert_allclose(table.transition.dense().sum(axis=-1), 1)
    assert table.action_names == ("slow", "fast", "repair")


def test_what_does_not_fit_is_refused_in_words():
    with pytest.raises(InputError, match="world of numbers"):
        simulator("harbour")
    with pytest.raises(InputError, match=r"\(\.\.\., cells², 3\)"):
        numeric_value("dose", np.ones((8, 3)))


@each_world
def test_a_table_of_points_says_what_each_step_made_of_them(name):
    world = simulator(name)
    table = log_points(world, lambda points: (points[:, 0] > 0.5).astype(int), 7, np.random.default_rng(4), length=5)
    assert list(table) == ["episode", "time", *world.columns, "action", "reward"]
    columns = {key: part.reshape(7, 5) for key, part in table.items()}
    np.testing.assert_array_equal(columns["episode"][:, 0], np.arange(7))
    np.testing.assert_array_equal(columns["time"][0], np.arange(5))
    np.testing.assert_array_equal(columns["action"], columns[world.columns[0]] > 0.5)
    random = np.random.default_rng(4)
    at = random.random((7, 2))
    for t in range(5):
        np.testing.assert_array_equal(at, np.stack([columns[key][:, t] for key in world.columns], axis=1))
        at, paid = world.step(at, columns["action"][:, t].astype(int), luck(7, random))
        np.testing.assert_array_equal(paid, columns["reward"][:, t])


def test_who_errs_takes_any_action_in_a_share_of_the_decisions():
    act = erring(lambda points: np.zeros(len(points), dtype=int), 0.3, 4, np.random.default_rng(1))
    often = np.bincount(act(np.zeros((40_000, 2))), minlength=4) / 40_000
    np.testing.assert_allclose(often, [0.775, 0.075, 0.075, 0.075], atol=0.01)


@each_world
def test_points_are_worth_what_cells_of_them_are(name):
    world, random = simulator(name), np.random.default_rng(5)
    found = value_points(world, lambda points: np.ones(len(points), dtype=int), world.start(4000, random), 30, random)
    every = np.tile(np.eye(len(world.actions))[1], (4, 1))
    assert found == pytest.approx(float(numeric_value(name, every, points=4000, steps=30, rng=6)), rel=0.1, abs=0.05)
