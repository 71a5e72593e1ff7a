"""Intervals are Student's, differences are taken pair by pair, and a summary is what a loop would find."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from certeq.experiments.statistics import Interval, bands, difference, hindsight, interval, summarize


@pytest.mark.parametrize("n", [2, 5, 200])
def test_an_interval_is_that_of_the_t_distribution(n):
    x = np.random.default_rng(n).normal(3, 2, size=n)
    found = interval(x)
    expected = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.mean == pytest.approx(x.mean())


def test_an_interval_covers_the_mean_as_often_as_it_says():
    x = np.random.default_rng(1).exponential(size=(40, 4000))
    mean, half = bands(x)
    assert np.mean(np.abs(mean - 1) <= half) == pytest.approx(0.95, abs=0.03)


def test_one_value_alone_says_nothing():
    found = interval([4.0])
    assert (found.mean, found.low, found.high) == (4, -math.inf, math.inf)
    assert found.to_json() == {"mean": 4, "low": None, "high": None}


def test_a_paired_difference_is_narrower_than_two_intervals():
    rng = np.random.default_rng(2)
    common = rng.normal(0, 10, size=100)
    found = difference(common + rng.normal(1, 0.1, size=100), common)
    assert found.low < 1 < found.high
    assert found.high - found.low < 0.1


def test_an_interval_reads_well():
    assert str(Interval(-0.123456, -0.2, -0.05)) == "-0.1235 [-0.2, -0.05]"


def test_hindsight_takes_the_strength_with_the_least_mean_loss():
    np.testing.assert_array_equal(hindsight(np.array([[1.0, 0.5, 2], [1, 1, 0]])), [0.5, 1])


def test_a_summary_has_means_and_half_widths_for_each_combination():
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "panel": np.repeat(["a", "b"], 40),
            "strength": np.tile([0.1, np.nan], 40),
            "data_set": np.arange(80),
            "loss": rng.random(80),
            "same": rng.random(80) < 0.5,
            "cell": np.zeros(80, dtype=int),
        }
    )
    found = summarize(table, ("loss", "same"))
    assert found.columns == ["panel", "strength", "data_sets", "loss", "same", "loss_half", "same_half"]
    assert len(found) == 4
    for row in found.iter_rows(named=True):
        strength = pl.col("strength").is_nan() if math.isnan(row["strength"]) else pl.col("strength") == row["strength"]
        part = table.filter((pl.col("panel") == row["panel"]) & strength)
        for name in ("loss", "same"):
            mean, half = bands(part[name].to_numpy().astype(float))
            assert (row[name], row[f"{name}_half"]) == pytest.approx((float(mean), float(half)))
        assert row["data_sets"] == 20
