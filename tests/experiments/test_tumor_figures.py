"""The tumor simulator's two figures."""

import numpy as np
import polars as pl
import pytest

from certeq import evaluate, solve
from certeq.experiments import shards
from certeq.experiments.figures import tumor, tumor_sweep
from certeq.experiments.sweeps import losses_of, panels_of
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, PART, Verdict
from certeq.report.style import to_png
from certeq.worlds import tumor as tumor_table

pytestmark = pytest.mark.slow

SMALL = {"data_sets": 12, "chunk": 8, "episodes": 2000}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(tumor.work, tumor.cells(SMALL), tmp_path_factory.mktemp("shards"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    cells = tumor_sweep.cells({"data_sets": 3, "chunk": 3, "episodes": 300})
    return shards.run(tumor_sweep.work, cells, tmp_path_factory.mktemp("shards"))


def made(discount, uniform, specific, mle, n=50):
    """A table in which each method has these losses at strengths 0, .5 and .9, with a little spread."""
    swept = {"discount": discount, "uniform prior": uniform}
    levels = {"specific (posterior)": (specific,), "specific (MLE)": (mle,), "oracle": (1.0,)}
    grid = {1: (np.nan,), 3: (0.0, 0.5, 0.9)}
    rows = [
        {"panel": "p", "method": name, "data_set": d, "strength": e, "loss": value + 0.01 * (d % 5)}
        for name, losses in (swept | levels).items()
        for d in range(n)
        for e, value in zip(grid[len(losses)], losses, strict=True)
    ]
    return pl.DataFrame(rows)


def test_a_small_run_gives_every_line_and_verdict(table):
    assert len(table) == 3 * 12 * (2 * 12 + 3)
    verdicts = tumor.holds(table)
    assert len(verdicts) == 3 * 6
    assert {v.claim.split(":")[0] for v in verdicts if v.paper} == {tumor.PRINTED}  # only the printed reward is theirs
    assert sum(bool(v.paper) for v in verdicts) == 4
    assert table["loss"].min() >= 0


def test_data_come_from_the_simulator_with_the_settings_of_the_truth():
    panel = tumor.tumor_panel(1000, process_noise=0.1, dose_penalty=2.0, penalty_on="dose", rewards="miscredited")
    reward = {"dose_penalty": 2.0, "penalty_on": "dose", "rewards": "miscredited"}
    assert panel.settings == {"process_noise": 0.1, "episodes": 1000, **reward}
    assert panel.regime == {"kind": "trials", "patients": 50, "world": {"process_noise": 0.1, "episodes": 1000}}
    assert panel.weighted


def test_full_strength_is_the_plan_that_ignores_the_future(table):
    """At ε = .99 the discount is .0099: the myopic plan, the same from every data set."""
    for panel, form in tumor.FORMS.items():
        truth = tumor_table(episodes=2000, **form)
        best = solve(truth.transition, truth.reward, truth.discount).values
        myopic = evaluate(truth.transition, truth.reward, truth.discount, truth.reward.argmax(axis=1))
        last = losses_of(table, panel, "discount")[:, -1]
        np.testing.assert_allclose(last.mean(), truth.start @ (best - myopic), rtol=0.1)


@pytest.mark.parametrize(
    ("losses", "outcomes"),
    [
        (((9, 2, 2), (9, 2, 2), 2.0, 2.0), [HOLDS, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS]),
        (((9, 2, 2), (9, 4, 2), 2.0, 9.0), [HOLDS, FAILS, HOLDS, HOLDS, HOLDS, FAILS]),
        (((9, 3, 2), (9, 3, 3), 2.5, 1.0), [FAILS, FAILS, HOLDS, HOLDS, FAILS, HOLDS]),
        (((3, 2, 2), (2, 2, 2), 2.0, 2.0), [HOLDS, HOLDS, HOLDS, FAILS, HOLDS, HOLDS]),
    ],
)
def test_verdicts_follow_the_table(losses, outcomes):
    assert [v.outcome for v in tumor.holds(made(*losses))] == outcomes


def test_similar_is_two_sided_and_may_be_open():
    random = np.random.default_rng(1)
    base = 10 + random.normal(size=100)
    assert tumor.similar("", base, base + 0.5, "").outcome == HOLDS
    assert tumor.similar("", base, base + 2, "").outcome == FAILS
    assert tumor.similar("", base + 2, base, "").outcome == FAILS
    assert tumor.similar("", base, base + 1 + 5 * random.normal(size=100), "").outcome == OPEN


def test_the_picture_is_drawn_from_the_table(table):
    picture = tumor.draw(table)
    assert [axis.get_title() for axis in picture.axes] == list(tumor.FORMS)
    assert picture.axes[0].get_yscale() == "log"
    assert to_png(picture).startswith(b"\x89PNG")


def test_the_sweep_moves_one_setting_at_a_time():
    cells = tumor_sweep.cells(tumor_sweep.SETTINGS["smoke"])
    moved = [{k: v for k, v in tumor_sweep.DEFAULT.items() if c["settings"][k] != v} for c in cells]
    assert sorted(map(len, moved)) == [0] + [1] * 16
    assert {name for each in moved for name in each} == set(tumor_sweep.GRID)
    for cell in cells:  # the data are simulated in the same world as the truth
        world = {**cell["regime"]["world"], "dose_penalty": cell["settings"]["dose_penalty"], "penalty_on": "dose"}
        assert world == cell["settings"]


def test_the_sweep_judges_all_settings_together(sweep):
    assert len(panels_of(sweep)) == 17
    verdicts = tumor_sweep.holds(sweep)
    assert len(verdicts) == 6
    assert all("of 17 settings" in v.measured for v in verdicts)


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [((HOLDS, HOLDS), HOLDS), ((HOLDS, OPEN), PART), ((HOLDS, FAILS), PART), ((OPEN, FAILS), FAILS)],
)
def test_a_claim_about_every_setting_needs_every_setting(outcomes, together):
    verdict = tumor_sweep._all({f"setting {i}": Verdict("claim", "", o) for i, o in enumerate(outcomes)})
    assert verdict.outcome == together
    assert ("setting 1" in verdict.measured) == (together != HOLDS)


def test_the_sweep_is_drawn_with_one_column_for_each_setting(sweep):
    picture = tumor_sweep.draw(sweep)
    labels = [axis.get_xlabel() for axis in picture.axes[len(tumor_sweep.GRID) :]]
    assert labels == list(tumor_sweep.LABELS.values())
    assert to_png(picture).startswith(b"\x89PNG")
