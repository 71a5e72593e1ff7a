"""The prior that a planning discount implies, against the closed form of the caption's numbers."""

import numpy as np
import polars as pl
import pytest

import naive
from certeq.experiments import shards
from certeq.experiments.figures import implied_prior


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(implied_prior.work, implied_prior.cells({}), tmp_path_factory.mktemp("implied_prior"))


def test_all_of_it_holds(table):
    assert [verdict.outcome for verdict in implied_prior.holds(table)] == ["holds"] * 4


def test_the_papers_curve_is_the_literal_formula(table):
    curve = table.filter((pl.col("visits") == 20) & (pl.col("planning_discount") > 0))
    assert len(curve) == 99
    for line in curve.iter_rows(named=True):
        lower = line["planning_discount"]
        assert line["alpha"] == pytest.approx(2 * (0.99 - lower) / lower, abs=1e-12)
        assert line["alpha"] == pytest.approx(naive.implied_magnitude(20, 0.99, lower) / 10, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "which"),
    [
        (pl.col("alpha") * 1.001, 0),
        (pl.col("alpha").reverse(), 1),
        (pl.col("alpha") * 20 / pl.col("visits"), 2),
        (pl.col("alpha").replace(np.inf, 1e9), 3),
    ],
)
def test_another_curve_does_not_hold(table, change, which):
    verdicts = implied_prior.holds(table.with_columns(change.alias("alpha")))
    assert verdicts[which].outcome == "does not hold"


def test_infinity_is_said_and_not_drawn(table):
    axis = implied_prior.draw(table).axes[0]
    for line in axis.lines:
        assert np.isfinite(line.get_ydata()).all()
        assert (line.get_ydata() > 0).all()
    assert any("infinite" in text.get_text() for text in axis.texts)
