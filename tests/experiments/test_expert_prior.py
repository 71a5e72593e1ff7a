"""The expert's prior on River Swim."""

import numpy as np
import polars as pl
import pytest

from certeq import shrink
from certeq.experiments import procedure, shards
from certeq.experiments.figures import expert_prior as figure
from certeq.experiments.sweeps import losses_of
from certeq.experiments.verdict import FAILS, HOLDS, PART
from certeq.report.style import to_png
from certeq.worlds import river_swim

SMALL = {"data_sets": 80, "chunk": 80}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def test_the_prior_moves_one_state_and_stops_at_the_ends():
    assert figure.LEFT_RIGHT.shape == (6, 2, 6)
    after = figure.LEFT_RIGHT.argmax(axis=-1)
    assert after.tolist() == [[0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 5]]
    np.testing.assert_array_equal(figure.LEFT_RIGHT.max(axis=-1), 1)


def test_it_weighs_as_much_as_the_uniform_prior():
    counts = procedure.draw_counts(river_swim(), {"kind": "tuples", "size": 95}, 4, 1)
    for strength in (0.1, 0.9):
        expert = shrink(counts, "expert_prior", strength=strength, target=figure.LEFT_RIGHT)
        np.testing.assert_array_equal(expert.weight, shrink(counts, "uniform_prior", strength=strength).weight)


def test_the_claim_holds_already_in_a_small_run(table):
    verdicts = figure.holds(table)
    assert len(verdicts) == 12
    assert {v.outcome for v in verdicts} <= {HOLDS, PART}
    assert sum(bool(v.paper) for v in verdicts) == 4
    assert all("rows per pair" in v.measured for v in verdicts if v.paper)


def test_at_strength_zero_it_is_the_mle(table):
    """A prior of no magnitude says nothing, also of pairs without data."""
    for panel in figure.PANELS:
        expert, other = (losses_of(table, panel, name)[:, 0] for name in (figure.EXPERT, "discount"))
        np.testing.assert_array_equal(expert, other)


def test_it_fails_where_the_expert_is_wrong(table):
    swapped = table.with_columns(
        method=pl.col("method").replace({figure.EXPERT: "discount", "discount": figure.EXPERT})
    )
    outcomes = {v.claim: v.outcome for v in figure.holds(swapped)}
    assert all(
        outcome == FAILS for claim, outcome in outcomes.items() if "than the discount" in claim and "no" not in claim
    )
    assert any("than the discount" in claim for claim in outcomes)


def test_the_picture_is_drawn_from_the_table(table):
    picture = figure.draw(table)
    assert [axis.get_title() for axis in picture.axes] == list(figure.PANELS)
    assert to_png(picture).startswith(b"\x89PNG")
