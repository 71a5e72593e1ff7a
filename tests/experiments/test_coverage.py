"""Coverage: intervals and chances are held against the truth as they should be, and verdicts follow the table."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from certeq import environment, evaluate, plan, sampling, solve, tally
from certeq.experiments import shards
from certeq.experiments.figures import coverage as figure
from certeq.experiments.intervals import AGAIN, BEST, CREDIBLE, INTERVALS, KEPT, draw_again, judge
from certeq.experiments.verdict import FAILS, HOLDS, OPEN
from certeq.learning.equivalence import estimate
from certeq.model.rewards import estimate as rewards_of
from certeq.questions.posterior import posterior
from certeq.report.style import to_png

pytestmark = pytest.mark.slow

SMALL = {
    "data_sets": 3, "chunk": 2, "tumor": 1, "tumor_chunk": 1, "episodes": 300, "draws": 20, "replicates": 8,
    "tumor_draws": 20, "tumor_replicates": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


@pytest.fixture(scope="module")
def river():
    truth = environment("river_swim")
    batch = sampling.trajectories(truth, 6, 19, start=np.full(6, 1 / 6), rng=5)
    return truth, batch


def test_every_data_set_of_every_panel_has_its_intervals(table):
    lines = table.filter(pl.col("kind") != BEST).group_by("panel", "kind").len()
    sets = {panel: 1 if panel.startswith("tumor") else 3 for panel in table["panel"].unique()}
    assert len(sets) == len(figure.EPISODES) * len(figure.WORLDS) + len(figure.PATIENTS)
    assert len(lines) == len(sets) * len(INTERVALS)
    assert all(row["len"] == sets[row["panel"]] for row in lines.to_dicts())
    assert (table.filter(pl.col("kind") != BEST)["low"] <= table.filter(pl.col("kind") != BEST)["high"]).all()


def test_the_worlds_are_all_those_asked_for_and_the_paper_has_enough_data_sets():
    cells = figure.cells(figure.SETTINGS["paper"])
    assert {c["environment"] for c in cells} == {"random_chain", "river_swim", "loop", "stay_or_leave", "grid", "tumor"}
    sets = {}
    for cell in cells:
        sets[cell["panel"]] = sets.get(cell["panel"], 0) + cell["data_sets"]
    assert min(sets.values()) >= 500


def test_random_worlds_are_new_for_each_data_set(table):
    for world in ("random chain", "grid"):
        part = table.filter((pl.col("world") == world) & (pl.col("kind") == CREDIBLE) & (pl.col("size") == 30))
        assert part["truth"].n_unique() == 3


def test_lines_say_what_was_chosen_and_what_it_is_worth(river):
    truth, batch = river
    lines = list(judge(truth, batch, np.random.default_rng(7), True, 50, 10))
    advice = plan(tally(batch), truth.reward, truth.discount)
    worth = truth.start @ evaluate(truth.transition, truth.reward, truth.discount, advice.policy)
    found = posterior(
        estimate(tally(batch)),
        truth.reward,
        truth.discount,
        {"advised": advice.policy},
        draws=50,
        rng=np.random.default_rng(7),
        start=truth.start,
    )
    credible = next(line for line in lines if line["kind"] == CREDIBLE)
    assert credible["truth"] == pytest.approx(worth)
    assert (credible["low"], credible["high"]) == found.interval("advised")[1:]
    assert credible["covered"] == (credible["low"] <= worth <= credible["high"])
    best = solve(truth.transition, truth.reward, truth.discount).policy
    sure = [line for line in lines if line["kind"] == BEST]
    assert sum(line["states"] for line in sure) == 6
    total = sum(line["states"] * line["right"] for line in sure)
    assert total == pytest.approx((advice.policy == best).sum())
    claimed = sum(line["states"] * line["claimed"] for line in sure)
    assert claimed == pytest.approx(found.advised_best.sum())


def test_states_where_nothing_is_better_are_left_out():
    truth = environment("loop")
    batch = sampling.trajectories(truth, 5, 19, rng=1)
    lines = judge(truth, batch, np.random.default_rng(0), True, 10, 2)
    assert (
        sum(line["states"] for line in lines if line["kind"] == BEST) == 4
    )  # 0, 5, 6 and 7: elsewhere actions are one


@pytest.mark.parametrize("known", [True, False])
def test_drawing_episodes_again_is_learning_from_a_batch_that_has_them(river, known):
    """Each replicate against the batch that it stands for, learned from scratch."""
    truth, clean = river
    noise = np.random.default_rng(1).standard_normal(len(clean))
    batch = replace(clean, reward=clean.reward + (0 if known else 0.3) * noise)
    advice = plan(tally(batch), truth.reward, truth.discount).policy
    reward = truth.reward if known else None
    found = draw_again(batch, reward, truth.discount, advice, truth.start, 4, np.random.default_rng(2))
    times = np.random.default_rng(2).multinomial(6, np.full(6, 1 / 6), size=4)
    for b, often in enumerate(times):
        at = np.concatenate([np.flatnonzero(batch.episode == e) for e in np.repeat(np.arange(6), often)])
        columns = {name: getattr(batch, name)[at] for name in ("state", "action", "next_state", "reward", "episode")}
        again = replace(batch, time=None, **columns)
        table = truth.reward if known else rewards_of(again).mean
        model = estimate(tally(again), truth.discount)
        claim = truth.start @ solve(model.transition, table, truth.discount).values
        kept = truth.start @ evaluate(model.transition, table, truth.discount, advice)
        assert found[0][b] == pytest.approx(claim, rel=1e-9)
        assert found[1][b] == pytest.approx(kept, rel=1e-9)


def test_a_coverage_has_its_exact_binomial_interval():
    for hits, n in ((0, 7), (7, 7), (450, 500), (3, 9)):
        part = pl.DataFrame({"covered": [1.0] * hits + [0.0] * (n - hits)})
        found, oracle = figure.coverage(part), binomtest(hits, n).proportion_ci(0.95, "exact")
        np.testing.assert_allclose([found.mean, found.low, found.high], [hits / n, oracle.low, oracle.high])


def made(covered, right, panels=("here",), sets=400):
    """A table in which a share of intervals covers, and advice claimed to be best with 0.7 is so with ``right``."""
    lines = []
    for panel in panels:
        for d in range(sets):
            base = {
                "panel": panel,
                "world": panel,
                "size": 3,
                "cell": 0,
                "data_set": d,
                "rows": 9,
                "bin": -1,
                "states": 0,
            }
            nothing = dict.fromkeys(("claimed", "right"), np.nan)
            hit = float(d < covered * sets)
            ends = {"low": 0.0, "high": 1.0, "truth": 0.5 if hit else -1.0, "covered": hit}
            lines += [base | nothing | ends | {"kind": kind} for kind in INTERVALS]
            chance = {"claimed": 0.7, "right": float(d % 20 < right * 20), "bin": 7, "states": 1}
            lines.append(base | dict.fromkeys(ends, np.nan) | chance | {"kind": BEST})
    return pl.DataFrame(lines)


@pytest.mark.parametrize(("covered", "right", "outcome"), [(0.9, 0.7, HOLDS), (0.7, 0.4, FAILS), (0.87, 0.75, OPEN)])
def test_verdicts_follow_the_table(covered, right, outcome):
    verdicts = {verdict.claim: verdict for verdict in figure.holds(made(covered, right))}
    for kind in INTERVALS:
        verdict = verdicts[f"here: {kind} intervals hold the truth in 90%"]
        assert verdict.outcome == outcome
        assert verdict.interval.mean == pytest.approx(covered)
    assert verdicts["here: the advised action is best as often as claimed"].outcome == outcome
    assert verdicts["credible: nowhere too low a coverage"].outcome == (FAILS if outcome == FAILS else HOLDS)


def test_a_shortfall_is_said_in_numbers_and_in_its_direction():
    verdict = next(v for v in figure.holds(made(0.7, 0.7)) if v.claim.startswith("here: credible"))
    assert "0.200 too low" in verdict.measured
    assert "below 30.0% of the intervals and above 0.0%" in verdict.note


def test_reliability_is_told_by_bins():
    verdict = next(v for v in figure.holds(made(0.9, 1.0)) if "as often as claimed" in v.claim)
    assert "0.70 -> 1.00 (400)" in verdict.note
    assert verdict.interval.mean == pytest.approx(0.3)


def test_a_chunk_more_or_less_changes_no_other_data_set(tmp_path):
    few = [cell for cell in figure.cells(SMALL | {"data_sets": 2}) if cell["panel"] == "Loop, 3 episodes"]
    more = [cell for cell in figure.cells(SMALL) if cell["panel"] == "Loop, 3 episodes"]
    tables = [shards.run(figure.work, cells, tmp_path / str(len(cells))) for cells in (few, more)]
    same = tables[1].filter(pl.col("cell") == 0)
    assert tables[0].equals(same)


def test_the_picture_is_drawn_from_the_table(table):
    picture = figure.draw(table)
    titles = [axis.get_title() for axis in picture.axes if axis.get_visible()]
    assert titles == [*figure.WORLDS, "tumor", "advice is best"]
    assert to_png(picture).startswith(b"\x89PNG")


def test_both_kinds_of_bootstrap_are_there(table):
    values = {kind: table.filter(pl.col("kind") == kind)["high"].to_numpy() for kind in (AGAIN, KEPT)}
    assert (values[AGAIN] >= values[KEPT] - 1e-9).mean() > 0.9  # its own best policy is worth at least as much
