"""Epsilon-greedy regularization on the tabular worlds."""

import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import epsilon_greedy as figure
from certeq.experiments.verdict import FAILS, HOLDS
from certeq.report.style import to_png

SMALL = {"data_sets": 40, "chunk": 40}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def test_the_table_has_every_line_and_how_far_the_targets_are(table):
    assert len(table) == len(figure.PANELS) * 40 * (3 * 12 + 2)
    assert set(figure.VALUES) <= set(table.columns)
    assert (table["to_average"] <= table["to_uniform"] + 1e-12).all()  # the mean is the closest point


def test_the_closer_matrix_decides_who_should_win(table):
    """Random rows are nearer to uniform than to a noisy average of two; in Loop the actions are nearly the same."""
    claims = [v.claim for v in figure.holds(table)]
    assert len(claims) == 2 * len(figure.PANELS)
    assert all("uniform" in c.split(",")[1 if "specific" not in c else 2] for c in claims if c.startswith("random"))
    assert all("epsilon-greedy, whose" in c for c in claims if c.startswith("Loop"))


@pytest.mark.parametrize(("greedy", "loop", "chain"), [(1.0, HOLDS, FAILS), (3.0, FAILS, HOLDS)])
def test_verdicts_follow_the_table(table, greedy, loop, chain):
    loss = pl.when(pl.col("method").str.ends_with("epsilon-greedy")).then(greedy).otherwise(2.0)
    made = table.with_columns(loss=loss + 0.001 * (pl.col("data_set") % 7))
    outcomes = {v.claim: v.outcome for v in figure.holds(made)}
    assert {o for claim, o in outcomes.items() if claim.startswith("Loop")} == {loop}
    assert {o for claim, o in outcomes.items() if claim.startswith("random")} == {chain}


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_table(table):
    picture = figure.draw(table)
    assert [axis.get_title() for axis in picture.axes] == list(figure.PANELS)
    assert to_png(picture).startswith(b"\x89PNG")
