"""The main figure: it runs, its verdicts follow the table, and its settings are the documented ones."""

import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import loss_by_strength as figure
from certeq.experiments.verdict import FAILS, HOLDS
from certeq.report.style import to_png

SMALL = {"data_sets": 60, "chunk": 40}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def with_losses(table, **losses):
    """The table with some methods' losses replaced, with a little spread; the name's spaces are underscores."""
    loss = pl.col("loss")
    for name, value in losses.items():
        spread = value + 0.001 * (pl.col("data_set") % 7)
        loss = pl.when(pl.col("method") == name.replace("_", " ")).then(spread).otherwise(loss)
    return table.with_columns(loss=loss)


def test_the_table_has_every_line(table):
    assert len(table) == len(figure.PANELS) * 60 * (2 * 12 + 3)
    assert table["loss"].min() >= 0
    assert table["loss"].is_finite().all()


def test_there_are_six_verdicts_for_each_panel(table):
    verdicts = figure.holds(table)
    assert len(verdicts) == 6 * len(figure.PANELS)
    assert all(v.claim.startswith(tuple(figure.PANELS)) for v in verdicts)
    assert not any(v.paper for v in verdicts)  # none of these settings is printed; see rows_per_pair


def test_verdicts_follow_the_table(table):
    good = with_losses(table, discount=3.0, uniform_prior=2.0).with_columns(
        loss=pl.when(pl.col("method").str.starts_with("specific")).then(1.9).otherwise("loss")
    )
    assert {v.outcome for v in figure.holds(good)} == {HOLDS}
    bad = with_losses(table, discount=2.0, uniform_prior=3.0).with_columns(
        loss=pl.when(pl.col("method").str.starts_with("specific")).then(9.0).otherwise("loss")
    )
    assert {v.outcome for v in figure.holds(bad)} == {FAILS}


def test_pseudo_counts_are_the_authors():
    used = {c["environment"]: c["methods"]["specific (posterior)"]["settings"] for c in figure.cells(SMALL)}
    assert used == {
        name: {"pseudo_count": a0} for name, a0 in (("random_chain", 0.5), ("river_swim", 0.25), ("loop", 0.25))
    }


def test_all_reward_variants_and_both_regimes_are_there():
    cells = figure.cells(SMALL)
    assert {c["settings"].get("rewards", "pair") for c in cells} == {"pair", "bonus", "state"}
    regimes = {(c["environment"], c["regime"]["kind"]) for c in cells}
    assert regimes == {(w, k) for w in ("random_chain", "river_swim", "loop") for k in ("tuples", "trajectories")}
    assert figure.SETTINGS["paper"]["data_sets"] >= 5000


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_table(table):
    picture = figure.draw(table)
    assert [axis.get_title() for axis in picture.axes if axis.get_visible()] == list(figure.PANELS)
    assert to_png(picture).startswith(b"\x89PNG")


def test_a_claim_that_is_true_by_theorem_holds_at_strength_zero(table):
    """Without regularization the two global methods are one."""
    none = table.filter(pl.col("strength") == 0).sort("panel", "cell", "data_set")
    parts = [none.filter(pl.col("method") == name)["loss"] for name in ("discount", "uniform prior")]
    assert (parts[0] == parts[1]).all()
