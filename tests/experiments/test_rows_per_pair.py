"""Claims along the rows for each pair: strips follow the table."""

import polars as pl
import pytest

from certeq.experiments import shards
from certeq.experiments.figures import rows_per_pair as figure
from certeq.experiments.verdict import FAILS, HOLDS, PART
from certeq.report.style import to_png
from certeq.worlds import environment


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    cells = figure.cells({"data_sets": 20, "chunk": 20})
    return shards.run(figure.work, cells, tmp_path_factory.mktemp("shards"))


@pytest.mark.slow
def test_data_sets_have_as_many_rows_as_they_say(table):
    for world, pairs in figure.WORLDS.values():
        truth = environment(world)
        assert truth.n_states * truth.n_actions == pairs
    sizes = {c["panel"]: c["regime"]["size"] for c in figure.cells(figure.SETTINGS["smoke"])}
    assert sizes["River Swim, 3 per pair"] == 36
    assert len(sizes) == len(figure.WORLDS) * len(figure.ROWS)
    assert table["panel"].n_unique() == len(sizes)


def made(table, few):
    """The uniform prior and ε* of small pseudo-counts win where there are at most ``few`` rows, and lose elsewhere."""
    rows = pl.col("panel").str.extract(r", (\d+) per pair").cast(pl.Int64)
    wins = (pl.col("method") == "uniform prior") | pl.col("method").is_in(["ε* (0.05)", "ε* (0.1)"])
    loses = pl.col("method").is_in(["ε* (0.5)", "ε* (1)", "ε* (0.25)"])
    level = pl.when(wins & (rows <= few)).then(1.0).when(wins | loses).then(3.0).otherwise(2.0)
    return table.with_columns(loss=level + 0.001 * (pl.col("data_set") % 7) * (pl.col("method") != "discount"))


def test_a_strip_tells_from_how_many_to_how_many_rows_a_claim_holds(table):
    verdicts = {v.claim: v for v in figure.holds(made(table, 3))}
    assert len(verdicts) == 5 * len(figure.WORLDS)
    for claim, verdict in verdicts.items():
        assert verdict.outcome == PART, claim
        if "specific" not in claim:
            assert verdict.measured == "holds from 1 to 3, does not hold from 4 to 20 rows per pair"
    near = verdicts["Loop: the specific weight beats the best discount"]
    assert "pseudo-count 0.1: holds from 1 to 3, does not hold from 4 to 20" in near.measured
    assert "pseudo-count 0.25: does not hold from 1 to 20" in near.measured


def test_only_the_stricter_reading_is_ours(table):
    ours = [v.claim for v in figure.holds(table) if not v.paper]
    assert len(ours) == len(figure.WORLDS)
    assert all("at no strength" in claim for claim in ours)


@pytest.mark.parametrize(("few", "outcome"), [(20, HOLDS), (0, FAILS)])
def test_all_or_none(table, few, outcome):
    verdicts = [v for v in figure.holds(made(table, few)) if "specific" not in v.claim]
    assert {v.outcome for v in verdicts} == {outcome}


@pytest.mark.slow
def test_the_picture_has_a_sign_for_each_claim_and_number_of_rows(table):
    picture = figure.draw(table)
    signs = (3 + 2 * len(figure.PSEUDO_COUNTS)) * len(figure.ROWS)
    for axis, world in zip(picture.axes, figure.WORLDS, strict=True):
        assert axis.get_title() == world
        assert len(axis.lines) == signs + 2
    assert to_png(picture).startswith(b"\x89PNG")
