"""The diagrams are drawn from the worlds, and the worlds are as described."""

import numpy as np
import polars as pl
import pytest

import naive
from certeq.experiments import shards
from certeq.experiments.figures import diagrams


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(diagrams.work, diagrams.cells({}), tmp_path_factory.mktemp("diagrams"))


def test_both_worlds_are_as_described(table):
    assert [verdict.outcome for verdict in diagrams.holds(table)] == ["holds", "holds"]


@pytest.mark.parametrize(("name", "actions"), [("river_swim", ("left", "right")), ("loop", ("a", "b"))])
def test_the_description_is_that_of_the_twins(name, actions):
    T, R = getattr(naive, name)()
    described = {pair: row for pair, row in diagrams.described().items() if pair[0] == name}
    assert len(described) == T.shape[0] * T.shape[1]
    for (_, state, action), (pays, chances) in described.items():
        row = np.zeros(len(T))
        row[list(chances)] = list(chances.values())
        np.testing.assert_allclose(row, T[state, actions.index(action)], atol=1e-15)
        assert pays == R[state, actions.index(action)]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.with_columns(pl.col("probability") * 0.999),
        lambda table: table.with_columns(pl.col("reward") + 0.001),
        lambda table: table.filter(pl.col("state") != 3),
        lambda table: pl.concat([table, table.filter(pl.col("state") == 3).with_columns(state=pl.lit(9))]),
    ],
    ids=["probability", "reward", "a state less", "a state more"],
)
def test_a_changed_world_does_not_hold(table, change):
    changed = change(table.with_columns(pl.col("state").cast(pl.Int32)))
    assert [verdict.outcome for verdict in diagrams.holds(changed)] == ["does not hold"] * 2


def test_the_pictures_have_a_node_for_each_state_and_an_arrow_for_each_way(table):
    from matplotlib.patches import Circle, FancyArrowPatch

    river, loop = diagrams.draw(table).axes
    count = lambda axis, kind: sum(isinstance(patch, kind) for patch in axis.patches)  # noqa: E731
    assert (count(river, Circle), count(loop, Circle)) == (6, 9)
    swim = table.filter(pl.col("environment") == "river_swim")
    assert count(river, FancyArrowPatch) == len(swim)
    ways = table.filter(pl.col("environment") == "loop").select("state", "next_state").n_unique()
    assert count(loop, FancyArrowPatch) == ways == 13
    said = [text.get_text() for text in (*river.texts, *loop.texts)]
    assert {"left pays 0.005", "right pays 1", "leaving pays 1", "leaving pays 2", ".35", "a .25, b .75"} <= set(said)
