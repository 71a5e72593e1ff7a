"""Q-learning's learning curves."""

import numpy as np
import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import q_learning as figure
from certeq.experiments.verdict import FAILS, HOLDS
from certeq.report.style import to_png
from certeq.worlds import loop
from certeq.worlds.model_free import q_learning

SMALL = {"data_sets": 30, "chunk": 20, "episodes": 20, "every": 5}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def shown(table):
    return table.filter(pl.col("exploration") == figure.SHOWN)


def test_the_table_has_every_agent_and_point(table):
    assert len(table) == 3 * 3 * 30 * 4 * len(figure.EXPLORATIONS)
    assert table["episode"].unique().sort().to_list() == [5, 10, 15, 20]
    assert figure.curves_of(shown(table), "Loop", "specific").shape == (30, 4)


def test_the_curve_adds_up_to_what_the_agents_earned():
    cell = {**figure.cells(SMALL)[-1], "methods": {"specific": {"variant": "specific"}}}
    assert cell["life"]["exploration"] == figure.EXPLORATIONS[-1]
    columns = figure.work(cell, 3)
    assert cell["environment"] == "loop"
    random = np.random.default_rng(3)
    worlds = figure.renamed(loop(), cell["data_sets"], random)
    seed = int(random.integers(2**63))
    lived = q_learning(worlds, replications=cell["data_sets"], rng=seed, **cell["life"])
    earned = columns["reward"].reshape(cell["data_sets"], -1).sum(axis=1) * 5
    np.testing.assert_allclose(earned, lived.reward)


def test_all_methods_meet_the_same_worlds(table):
    """An agent that can do nothing wrong earns the same: the chains are the same for all methods."""
    chain = [figure.curves_of(shown(table), "random chain", name).mean(axis=1) for name in figure.METHODS]
    others = [np.corrcoef(chain[0], other)[0, 1] for other in chain[1:]]
    assert min(others) > 0.5


def test_each_agent_meets_the_same_actions_in_an_order_of_its_own():
    world, agents = loop(), 200
    met = figure.renamed(world, agents, np.random.default_rng(0))
    swapped = met.transition.array[:, 0, 0].argmax(axis=-1) == 5  # "b" leads to state 5, and comes first
    assert 60 < swapped.sum() < 140
    for flip in (False, True):
        order = [1, 0] if flip else [0, 1]
        rows = met.transition.array[swapped == flip]
        np.testing.assert_array_equal(rows, np.broadcast_to(world.transition.array[:, order], rows.shape))


def test_verdicts_follow_the_table(table):
    def with_specific(reward, loss):
        specific = pl.col("method") == "specific"
        spread = 0.001 * (pl.col("data_set") % 7)
        return table.with_columns(
            reward=pl.when(specific).then(reward).otherwise(2.0) + spread * specific,
            loss=pl.when(specific).then(loss).otherwise(2.0) + spread * specific,
        )

    better, worse = figure.holds(with_specific(3.0, 1.0)), figure.holds(with_specific(1.0, 3.0))
    expected = [HOLDS, HOLDS, FAILS, FAILS, HOLDS, HOLDS]  # River Swim, random chain, Loop
    assert [v.outcome for v in better] == expected
    assert [v.outcome for v in worse] == [FAILS if outcome == HOLDS else HOLDS for outcome in expected]
    assert all(v.measured.startswith(f"{v.outcome} from 0.05 to 0.4") for v in better)
    assert [bool(v.paper) for v in better] == [True, False] * 3  # of losses the paper says nothing


def test_a_cell_is_a_function_of_what_it_says_and_the_seed():
    cell = figure.cells(SMALL)[0]
    first, again, other = (figure.work(cell, shards.seed_of(cell, root)) for root in (0, 0, 1))
    np.testing.assert_array_equal(first["reward"], again["reward"])
    assert (first["reward"] != other["reward"]).any()


def test_the_picture_is_drawn_from_the_table(table):
    picture = figure.draw(table)
    assert [axis.get_title() for axis in picture.axes] == list(figure.WORLDS)
    assert to_png(picture).startswith(b"\x89PNG")
