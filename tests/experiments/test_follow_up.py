"""The follow-up's conventions: its planner, its left/right prior, and how its numbers are compared."""

import numpy as np
import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import follow_up as figure
from certeq.experiments.procedure import draw_counts
from certeq.experiments.verdict import FAILS, HOLDS
from certeq.model.mdp import MDP
from certeq.report.style import to_png
from certeq.worlds import river_swim
from strategies import random_model

SMALL = {"data_sets": 30, "chunk": 20, "tables": 2, "tumor": 3, "episodes": 500}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def published(T, R, gamma, start, theta):
    """Value iteration, then the greedy policy, one after the other as in the notebooks."""
    V, delta = start, 10.0
    while delta > theta:
        v = V
        V = (R + gamma * T @ V).max(axis=1)
        delta = np.abs(v - V).max()
    return (R + gamma * T @ V).argmax(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_the_planner_that_stops_early_is_the_published_one(tolerance):
    random, E = np.random.default_rng(1), 3
    model = random_model(2, 4, 2, batch=(5, E))
    start, reward = random.random((5, E, 4)), model.reward[0, 0]
    discount = np.array([0.3, 0.9, 0.99])
    policy = np.empty((5, E, 4), dtype=np.int64)
    figure.stop_early(model.transition, reward, discount, start.copy(), tolerance, policy)
    for d, e in np.ndindex(5, E):
        expected = published(model.transition[d, e], reward, discount[e], start[d, e], tolerance)
        np.testing.assert_array_equal(policy[d, e], expected)


def test_the_left_right_prior_wraps_around_and_weighs_a_sixth():
    after = figure.LEFT_RIGHT.argmax(axis=-1)
    assert after.tolist() == [[5, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 0]]
    truth = river_swim()
    counts = draw_counts(truth, {"kind": "tuples", "size": 30}, 4, 1)
    found = {name: (model, grid) for name, model, _, grid in figure.models(truth, counts, 0.25)}
    model, grid = found[figure.EXPERT]
    strength = grid[5]
    magnitude = strength / (1 - strength) * counts.mean_visits[:, None, None] / 6
    np.testing.assert_allclose(model.weight[:, 5], magnitude / (counts.visits + magnitude))
    assert (model.weight[:, 0] == 0).all()  # at strength 0 it says nothing
    uniform, _ = found[figure.UNIFORM]
    np.testing.assert_allclose(uniform.weight[:, 5], 6 * magnitude / (counts.visits + 6 * magnitude))


def test_ties_go_to_the_first_action_or_to_all():
    world = MDP(np.full((2, 3, 2), 0.5), np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]]), 0.9)
    model, discount = world.transition, np.array([0.9])
    rows = type(model)(model.array[None, None])
    shared, first = (
        figure.advised(p, rows, world, discount, np.random.default_rng(0)) for p in (figure.EVEN, figure.FIRST)
    )
    assert shared[0, 0].tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert first[0, 0].tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.slow
def test_every_number_of_theirs_gets_a_verdict(table):
    verdicts = figure.holds(table)
    assert len(verdicts) == figure.NUMBERS + len(figure.STOPPED)
    assert not any(v.paper for v in verdicts)
    assert table.filter(pl.col("panel") == figure.TUMOR)["cell"].n_unique() == SMALL["tables"]


@pytest.mark.slow
def test_a_number_is_matched_if_another_run_would_give_it(table):
    """With losses that scatter around theirs it is, and beside them it is not."""
    theirs = {(panel, name): value for panel, case in figure.CASES.items() for name, value in case.theirs.items()}
    noise = 0.01 * (pl.col("data_set") % 7 - 3) + 0.01 * (pl.col("cell") % 2)

    def shifted(by):
        level = pl.lit(50.0)
        for (panel, name), value in theirs.items():
            strength = pl.col("strength").is_nan() | (pl.col("strength") == (0.0 if name == figure.MLE else 0.5))
            method = figure.DISCOUNT if name == figure.MLE else name
            here = (pl.col("panel") == panel) & (pl.col("method") == method) & strength
            level = pl.when(here).then(value + by).otherwise(level)
        level = pl.when(pl.col("panel") == figure.TUMOR).then(level + 1000 * (level == 50)).otherwise(level)
        return [v.outcome for v in figure.holds(table.with_columns(loss=level + noise))[: figure.NUMBERS]]

    assert set(shifted(0.0)) == {HOLDS}
    assert set(shifted(-30.0)) == {FAILS}


def test_the_picture_shows_each_case_and_what_stopping_early_does(table):
    picture = figure.draw(table)
    shown = [axis.get_title() for axis in picture.axes if axis.get_visible()]
    assert shown == [*figure.CASES, "River Swim, stopped early"]
    assert to_png(picture).startswith(b"\x89PNG")
