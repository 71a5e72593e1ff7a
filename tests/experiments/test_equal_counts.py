"""With equal counts the two methods choose the same policies: exactly, not on average."""

import numpy as np
import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import equal_counts
from certeq.experiments.procedure import STRENGTHS, draw_counts, draw_truth

SETTINGS = {"data_sets": 60, "chunk": 25}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(equal_counts.work, equal_counts.cells(SETTINGS), tmp_path_factory.mktemp("equal_counts"), seed=2)


def test_all_of_it_holds(table):
    assert [verdict.outcome for verdict in equal_counts.holds(table)] == ["holds"] * 3


def test_the_table_has_a_line_for_each_data_set_and_strength(table):
    assert len(table) == 60 * 12
    assert table["data_set"].to_list() == np.repeat(np.arange(60), 12).tolist()
    assert table["strength"].to_list() == list(STRENGTHS) * 60


def test_every_pair_was_seen_four_times():
    truth = draw_truth("random_chain", {}, 3, 0)
    assert (draw_counts(truth, {"kind": "equal", "each": 4}, 3, 0).visits == 4).all()


def test_the_paper_profile_is_at_the_papers_scale():
    assert sum(cell["data_sets"] for cell in equal_counts.cells(equal_counts.SETTINGS["paper"])) == 10_000


def test_one_loss_that_differs_is_seen(table):
    losses = table["discount"].to_numpy().copy()
    losses[100] += 1e-6
    loss = equal_counts.holds(table.with_columns(pl.Series("discount", losses)))[1]
    assert loss.outcome == "does not hold"
    assert "1e-06" in loss.measured


def test_one_policy_that_differs_is_seen(table):
    same = table["same_policy"].to_numpy().copy()
    same[7] = False
    policies = equal_counts.holds(table.with_columns(pl.Series("same_policy", same)))[0]
    assert policies.outcome == "does not hold"
    assert policies.measured.startswith("719 of 720")


def test_both_curves_are_drawn_with_bands(table):
    axis = equal_counts.draw(table).axes[0]
    first, second = (line.get_ydata() for line in axis.lines)
    np.testing.assert_array_equal(first, second)
    assert len(axis.collections) == 2
