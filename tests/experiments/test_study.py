"""The study: every regularizer has a line, ratios are paired, and the verdicts follow the numbers."""

import numpy as np
import polars as pl
import pytest

from certeq import REGULARIZERS, environment
from certeq.experiments.figures import FIGURES, STUDIES, study
from certeq.experiments.procedure import draw_counts, estimated_rewards
from certeq.experiments.reproduce import chosen
from certeq.experiments.statistics import Interval, ratio
from certeq.experiments.verdict import FAILS, HOLDS, OPEN


def made_up(losses):
    """A table with one strength for the global methods and the given mean loss of each method in each cell."""
    rows = []
    for panel, by_method in losses.items():
        for name in study.METHODS:
            for d in range(50):
                noise = 0.01 * np.sin(7.0 * d)
                rows.append((panel, 0, d, name, 0.5, by_method.get(name, 1.0) + noise))
    names = ["panel", "cell", "data_set", "method", "strength", "loss"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_every_regularizer_takes_part_but_for_those_that_the_notes_name():
    there = {chosen.regularizer for chosen in study.METHODS.values()} | {"uniform_blend", "expert_prior"}
    assert set(REGULARIZERS) <= there
    assert "`uniform_blend`" in study.NOTES
    assert "`expert_prior`" in study.NOTES


def test_cells_cover_worlds_ways_of_collecting_and_sizes():
    cells = study.cells(study.SETTINGS["paper"])
    panels = {cell["panel"] for cell in cells}
    for world in (*study.WORLDS, "tumor"):
        for way in ("tuples", "skewed"):
            assert sum(world in panel and way in panel for panel in panels) >= 2
    assert any(panel.startswith("tumor") and "noisy" in panel for panel in panels)
    for panel in panels:
        assert sum(cell["data_sets"] for cell in cells if cell["panel"] == panel) >= 2000


def test_a_ratio_is_that_of_the_means_with_a_paired_interval():
    rng = np.random.default_rng(0)
    base = rng.gamma(2.0, size=4000)
    found = ratio(1.3 * base, base)
    assert found.mean == pytest.approx(1.3)
    assert found.high - found.low < 1e-12
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        b = rng.gamma(2.0, size=400)
        a = 0.8 * b + rng.normal(0.4, 1, size=400)
        found = ratio(a, b)
        covered += found.low <= 1.0 <= found.high  # E a / E b = (1.6 + 0.4) / 2
    assert 180 <= covered <= 199
    assert np.isnan(ratio([1.0], [0.0]).mean)


def test_verdicts_say_what_holds_and_what_does_not():
    river = "River Swim, 5 trajectories"
    table = made_up(
        {
            "good": {"learned target": 0.7, "ε* (posterior)": 0.9, "evidence": 0.8, "uniform prior (CV)": 0.95},
            "bad": {"learned target": 1.2, "ε* (posterior)": 1.3, "evidence": 1.5},
            "bad, skewed": {"learned target": 2.0},
            river: {"learned target": 0.1},
            "random chain, 20 tuples": {"evidence": 0.9, "learned target": 0.95},
        }
    )
    near, far, oracle, chain, paper, validated, rival, *cells = study.holds(table)
    assert (near.outcome, near.measured) == (FAILS, "3 of 4 cells")
    assert far.outcome == FAILS  # the fourth root of .7, 1.2, 2 and .1 is .64
    assert far.measured.startswith("0.64 (`evidence` 1.05)")
    assert (oracle.outcome, oracle.measured) == (FAILS, "2 of 4 cells")
    assert chain.outcome == FAILS
    assert chain.measured.startswith("ratio 1.05")
    assert paper.outcome == HOLDS
    assert (validated.outcome, validated.measured[:6]) == (FAILS, "1 of 5")  # ε* and cross-validation
    assert rival.outcome == HOLDS
    by_panel = {verdict.claim.split(":")[0]: verdict.outcome for verdict in cells}
    assert by_panel["bad"] == by_panel["bad, skewed"] == FAILS
    assert by_panel["good"] == by_panel[river] == by_panel["random chain, 20 tuples"] == HOLDS
    assert study._far({}).outcome == study._alike({}).outcome == OPEN
    study.draw(table)


def test_best_and_worst_cells_come_first():
    found = {name: Interval(mean, mean, mean) for name, mean in zip("abcde", [1.0, 0.2, 3.0, 0.9, 1.1], strict=True)}
    assert study.extremes(found) == ["b", "c", "d", "e", "a"]


def test_studies_are_done_only_when_asked_for_by_name():
    assert "study" in STUDIES
    assert chosen(()) == tuple(FIGURES)
    assert chosen(("study",)) == ("study",)


def test_estimated_rewards_have_the_spread_of_a_mean_and_stand_in_where_nothing_was_seen():
    truth = environment("river_swim")
    counts = draw_counts(truth, {"kind": "tuples", "size": 24}, 3000, 1)
    found = estimated_rewards(truth, counts, 0.1, 2)
    seen = counts.visits > 0
    error = (found - truth.reward)[seen] * np.sqrt(counts.visits[seen]) / 0.1
    assert abs(error.mean()) < 0.03
    assert error.std() == pytest.approx(1, abs=0.03)
    d, s, a = np.argwhere(~seen & seen[..., ::-1])[0]
    assert found[d, s, a] == pytest.approx(found[d, s, 1 - a])
