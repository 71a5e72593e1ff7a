"""The heat map's numbers are those of the authors, and a wrong table is not talked into a verdict."""

import numpy as np
import polars as pl
import pytest

import naive
from certeq.experiments import shards
from certeq.experiments.figures import heat_map

MAP = naive.VECTORS["heat_map"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(heat_map.work, heat_map.cells({}), tmp_path_factory.mktemp("heat_map"))


def outcomes(table):
    return [verdict.outcome for verdict in heat_map.holds(table)]


def test_all_of_it_holds(table):
    assert outcomes(table) == ["holds"] * 6


def test_the_values_are_those_of_exact_evaluation(table):
    T, R = naive.river_swim()
    for method, row, gamma in (
        (heat_map.LOWER, 0, 0.999),
        (heat_map.UNIFORM, 1 / 6, 0.999),
        (heat_map.AUTHORS, 0.1, 0.999),
    ):
        mixed = 0.5 * T + 0.5 * row
        values = naive.exact_value_of_policy(mixed, R, gamma, MAP["optimal_policy"])
        np.testing.assert_allclose(heat_map._values(table, method), values, rtol=1e-9)


def test_the_printed_values_are_those_of_the_vectors():
    for method, key in (
        (heat_map.LOWER, "lower_discount"),
        (heat_map.UNIFORM, "uniform_blend"),
        (heat_map.AUTHORS, "authors_blend"),
    ):
        np.testing.assert_array_equal(heat_map.PRINTED[method][0], MAP[f"value_{key}"])


def test_another_policy_value_or_advantage_does_not_hold(table):
    here = (pl.col("method") == heat_map.UNIFORM) & (pl.col("state") == 2)
    flipped = table.with_columns(pl.when(here).then(~pl.col("advised")).otherwise(pl.col("advised")).alias("advised"))
    assert outcomes(flipped)[0] == "does not hold"
    moved = table.with_columns(pl.when(here).then(pl.col("value") + 0.01).otherwise(pl.col("value")).alias("value"))
    assert outcomes(moved)[4] == "does not hold"
    bent = table.with_columns(
        pl.when(here).then(pl.col("advantage") * 2).otherwise(pl.col("advantage")).alias("advantage")
    )
    assert outcomes(bent)[2] == "does not hold"


def test_the_picture_shows_every_value_and_an_arrow_for_each(table):
    axis = heat_map.draw(table).axes[0]
    texts = [text.get_text() for text in axis.texts if text.get_text()]
    assert len(texts) == 18
    assert "171.9" in texts
    arrows = [text for text in axis.texts if not text.get_text()]
    leftward = [arrow for arrow in arrows if arrow.xy[0] < arrow.xyann[0]]
    assert (len(arrows), len(leftward)) == (18, 3)  # left in the leftmost state of each
