"""Panels of cells, losses read back, and the judgments that several figures share."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp

from certeq.experiments import sweeps
from certeq.experiments.procedure import STRENGTHS, method
from certeq.experiments.sweeps import Panel
from certeq.experiments.verdict import FAILS, HOLDS, OPEN

METHODS = {"discount": method("discount"), "specific": method("least_mse")}
PANELS = {
    "one": Panel("loop", {"kind": "tuples", "size": 20}),
    "two": Panel(
        "tumor",
        {"kind": "trials"},
        {"months": 9},
        {"specific": method("least_mse", pseudo_count=0.1), "other": method("none")},
        weighted=True,
    ),
}


def test_cells_cover_every_data_set_once():
    cells = sweeps.cells_of(PANELS, METHODS, {"data_sets": 25, "chunk": 10})
    assert [(c["panel"], c["first"], c["data_sets"]) for c in cells] == [
        ("one", 0, 10), ("one", 10, 10), ("one", 20, 5), ("two", 0, 10), ("two", 10, 10), ("two", 20, 5),
    ]  # fmt: skip
    assert json.loads(json.dumps(cells)) == cells
    assert cells[0]["strengths"] == list(STRENGTHS)


def test_a_panel_may_settle_a_method_its_own_way():
    one, two = sweeps.cells_of(PANELS, METHODS, {"data_sets": 1, "chunk": 1})
    assert one["methods"]["specific"]["settings"] == {}
    assert two["methods"]["specific"]["settings"] == {"pseudo_count": 0.1}
    assert list(two["methods"]) == ["discount", "specific"]  # only in place of the figure's own
    assert (one["weighted"], two["weighted"]) == (False, True)


def table():
    """Two cells of two data sets; the loss tells where it belongs."""
    rows = [
        {"panel": "p", "method": name, "cell": c, "data_set": d, "strength": e, "loss": 100 * c + 10 * d + e}
        for c in range(2)
        for name, grid in (("swept", (0.0, 0.5, 0.9)), ("level", (np.nan,)))
        for d in range(2)
        for e in grid
    ]
    return pl.DataFrame(rows).with_columns(pl.col("loss").fill_nan(pl.col("cell") * 100 + pl.col("data_set") * 10))


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_losses_come_back_line_by_line_however_the_table_is_ordered(seed):
    given = table() if seed is None else table().sample(fraction=1, shuffle=True, seed=seed)
    expected = np.array([0, 10, 100, 110])[:, None] + [0, 0.5, 0.9]
    np.testing.assert_allclose(sweeps.losses_of(given, "p", "swept"), expected)
    np.testing.assert_allclose(sweeps.losses_of(given, "p", "level"), [[0], [10], [100], [110]])
    np.testing.assert_allclose(sweeps.strengths_of(given), [0, 0.5, 0.9])


def test_intervals_that_hold_together_are_bonferroni_intervals():
    x = np.random.default_rng(1).normal([0, 1, 2, 3], size=(30, 4))
    low, high = sweeps.together(x)
    for k in range(4):
        expected = ttest_1samp(x[:, k], 0).confidence_interval(1 - 0.05 / 4)
        assert (low[k], high[k]) == pytest.approx((expected.low, expected.high))


def curves(*means, n=200, seed=0):
    """Losses at three strengths above 0 and at 0, with noise that both methods share and some of their own."""
    random = np.random.default_rng(seed)
    shared = 5 + random.normal(size=(n, 1))
    return [shared + 0.2 * random.normal(size=(n, 4)) + np.array([0, *mean]) for mean in means]


@pytest.mark.parametrize(
    ("first", "average", "everywhere"),
    [
        ((-1, -1, -1), HOLDS, HOLDS),
        ((-3, -1, 1), HOLDS, FAILS),
        ((3, 1, 1), FAILS, FAILS),
        ((-1, -1, 0), HOLDS, OPEN),
        ((0, 0, 0), OPEN, OPEN),
    ],
)
def test_curves_are_judged_on_average_and_everywhere(first, average, everywhere):
    one, other = curves(first, (0, 0, 0))
    verdicts = sweeps.judge_curves("less", one, other)
    assert [v.outcome for v in verdicts] == [average, everywhere]


def test_equal_curves_do_not_lose_less():
    (one,) = curves((0, 0, 0))
    assert [v.outcome for v in sweeps.judge_curves("less", one, one)] == [FAILS, OPEN]


def test_strength_zero_takes_no_part():
    one, other = curves((-1, -1, -1), (0, 0, 0))
    one[:, 0] += 100
    assert [v.outcome for v in sweeps.judge_curves("less", one, other)] == [HOLDS, HOLDS]


def test_the_best_are_compared_at_strengths_of_their_own():
    one, other = curves((1, 1, -2), (-1, 1, 1))
    assert sweeps.best_strength(one) == 3
    assert sweeps.best_strength(other) == 1
    verdict = sweeps.judge_best("less", one, other)
    assert verdict.outcome == HOLDS
    assert verdict.interval.mean == pytest.approx(-1, abs=0.1)
    assert sweeps.judge_best("less", other, one).outcome == FAILS


@pytest.mark.parametrize(("more", "outcome"), [(0.1, HOLDS), (1, FAILS), (-1, HOLDS), (0.25, OPEN)])
def test_near_allows_for_five_percent(more, outcome):
    one, other = curves((more, more, more), (0, 0, 0))
    other = other + 5 - other.mean()  # mean 5, so that 0.25 are five percent
    one = one + 5 + more - one[:, 1].mean()
    assert sweeps.judge_near("near", one[:, 1], other[:, 1]).outcome == outcome


def test_a_picture_has_a_panel_for_each_and_a_line_for_every_method():
    both = pl.concat([table(), table().with_columns(panel=pl.lit("q"))])
    figure = sweeps.draw_panels(both, per_row=2, scale="log")
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in shown] == ["p", "q"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["swept", "level"]
    for axis in shown:
        assert len(axis.lines) == 2
        assert len(axis.collections) + len(axis.patches) >= 2  # the bands


def test_a_trend_compares_neighbors_in_the_amount_of_data_and_no_others():
    noise = 0.1 * np.sin(np.arange(50.0))
    levels = {
        "Loop, 1 trajectory": 3.0,
        "Loop, 3 trajectories": 1.0,
        "Loop, 15 trajectories": 2.0,
        "Loop, 3 skewed trajectories": 9.0,
        "tumor, 512 tuples": 1.0,
        "tumor, 2,560 tuples": 0.5,
    }
    found = sweeps.judge_trend("more data help", {panel: level + noise for panel, level in levels.items()})
    assert found.outcome == FAILS
    assert found.measured == "worse in 1 of 3 steps: Loop, 15 trajectories"
    assert sweeps.judge_trend("more data help", {}).outcome == OPEN
