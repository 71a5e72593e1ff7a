"""The controlled world: a grid of two knobs."""

import numpy as np
import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import controlled as figure
from certeq.experiments.verdict import FAILS, HOLDS, OPEN
from certeq.report.style import to_png

SMALL = {"data_sets": 30, "chunk": 30}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def made(table, advantage):
    """The table where epsilon-greedy loses less, by error's sign times ``advantage``, in each setting but λ = .5."""
    better = (pl.col("error_uniform") - pl.col("error_average")).sign() * advantage
    greedy = pl.col("method").str.ends_with("epsilon-greedy")
    loss = 5 - pl.when(greedy & (pl.col("lam") < 0.5)).then(better).otherwise(0.0)
    return table.with_columns(loss=loss + 0.001 * (pl.col("data_set") % 3) * greedy)


@pytest.mark.slow
def test_the_grid_is_whole(table):
    assert table.select("kappa", "lam").unique().height == len(figure.KAPPAS) * len(figure.LAMBDAS)
    assert len(table) == 36 * 30 * (2 * 12 + 2)
    assert (table.filter(pl.col("lam") == 0.5)["loss"] == 0).all()


def test_by_distance_the_action_average_is_always_the_better_aligned(table):
    assert (figure._advantage(table, *figure.READINGS["by distance"]) >= 0).all()
    by_error = figure._advantage(table, *figure.READINGS["by error"])
    assert (by_error < 0).any()  # by error either may be
    assert (by_error > 0).any()


@pytest.mark.parametrize(("advantage", "outcome"), [(1.0, HOLDS), (-1.0, FAILS), (0.0, OPEN)])
def test_verdicts_follow_the_table(table, advantage, outcome):
    altered = made(table, advantage)
    if advantage == 0:
        altered = altered.with_columns(loss=pl.lit(5.0))
    verdicts = {v.claim: v.outcome for v in figure.holds(altered)}
    assert len(verdicts) == 2 + 4
    assert {o for claim, o in verdicts.items() if "by error" in claim} == {outcome}


@pytest.mark.parametrize(("slope", "outcome"), [(1.0, HOLDS), (-1.0, FAILS)])
def test_the_trend_in_kappa_is_that_of_a_straight_line(table, slope, outcome):
    """Epsilon-greedy gains ``slope`` on the uniform prior from κ = 0 to κ = 1, and passes it at κ = .5."""
    greedy = pl.col("method").str.ends_with("epsilon-greedy")
    loss = 5 - pl.when(greedy).then(slope * (pl.col("kappa") - 0.5)).otherwise(0.0)
    noise = 0.01 * (pl.col("data_set") % 7 - 3) * greedy
    verdicts = figure.holds(table.with_columns(loss=loss + noise))
    trends = [v for v in verdicts if v.claim.startswith("as κ rises")]
    assert [bool(v.paper) for v in trends] == [True, False]  # the figure's own words, and specific weights beyond them
    for verdict in trends:
        assert verdict.outcome == outcome
        assert verdict.interval.mean == pytest.approx(-slope, abs=0.02)
        parts = ("holds from 0 to 0.4", "does not hold from 0.6 to 1")
        where = parts if slope > 0 else ("does not hold from 0 to 0.4", "holds from 0.6 to 1")
        assert all(part in verdict.note for part in where)


@pytest.mark.slow
def test_the_interval_of_the_trend_is_that_of_independent_settings():
    """By simulation: means of settings that are independent of one another, at κ = 0 to 1 and two values of λ."""
    random, found = np.random.default_rng(4), []
    rows = [(k, lam) for k in figure.KAPPAS for lam in (0.0, 0.1)]
    for _ in range(200):
        gaps = random.normal(size=(20, len(rows)))
        parts = [
            {"panel": f"κ = {k:g}, λ = {lam:g}", "kappa": k, "lam": lam, "method": name, "cell": 0, "data_set": d,
             "strength": np.nan, "loss": gaps[d, i] if name == "specific, uniform" else 0.0}
            for i, (k, lam) in enumerate(rows) for name in figure.PAIRS["with specific weights"] for d in range(20)
        ]  # fmt: skip
        verdict = figure._in_kappa(pl.DataFrame(parts), "", figure.PAIRS["with specific weights"], "")
        found.append(verdict.interval.low <= 0 <= verdict.interval.high)
    assert np.mean(found) == pytest.approx(0.95, abs=0.05)


def test_winners_are_those_of_paired_differences():
    uniform, greedy = figure._wins(np.random.default_rng(2).normal([-2, 0, 2], size=(200, 3)))
    assert uniform.tolist() == [True, False, False]
    assert greedy.tolist() == [False, False, True]


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_table(table):
    picture = figure.draw(table)
    assert sum(len(axis.texts) for axis in picture.axes) == 3 * 36
    assert to_png(picture).startswith(b"\x89PNG")
