"""Coverage: intervals and chances are held against the truth as they should be, and verdicts follow the table."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from certeq import environment, learn, sampling, solve
from certeq.experiments import shards
from certeq.experiments.figures import coverage as figure
from certeq.experiments.intervals import BEST, BETTER, CREDIBLE, FITS, INTERVALS, OUTER, TRIALS, _known, holds, judge
from certeq.experiments.verdict import FAILS, HOLDS, OPEN
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.episodes import behavior
from certeq.questions.posterior import posterior
from certeq.questions.returns import returns
from certeq.report.style import to_png

pytestmark = pytest.mark.slow

SMALL = {"data_sets": 3, "chunk": 2, "tumor": 1, "tumor_chunk": 1, "bundled": 1, "raw": 1, "messy": 1}
SMALL |= {"episodes": 300, "draws": 16}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return shards.run(figure.work, figure.cells(SMALL), tmp_path_factory.mktemp("shards"))


def test_every_data_set_of_every_panel_has_its_intervals(table):
    lines = table.filter(pl.col("kind").is_in(INTERVALS)).group_by("panel", "kind").len()
    few = ("tumor", "the bundled")
    sets = {
        panel: 1 if panel.startswith(few) or ", raw," in panel or "messy" in panel else 3
        for panel in table["panel"].unique()
    }
    logs = sum(len(each) for _, _, each in figure.TABLES.values())
    tumors = len(figure.PATIENTS) + 1  # and the bundled trial
    raw = len(figure.NUMBERS) * len(figure.PEOPLE) * len(figure.LOGS) + 2 * len(figure.MESSY | figure.KNOWING)
    assert len(sets) == len(figure.RUNS) * len(figure.WORLDS) + logs + len(figure.NUMBERS) + raw + tumors
    assert len(lines) == len(sets) * len(INTERVALS)
    assert all(row["len"] == sets[row["panel"]] for row in lines.to_dicts())
    parts = {kind: table.filter(pl.col("kind") == kind) for kind in INTERVALS}
    assert (parts[OUTER]["low"] <= parts[CREDIBLE]["low"]).all()
    assert (parts[CREDIBLE]["low"] <= parts[CREDIBLE]["high"]).all()
    assert (parts[CREDIBLE]["high"] <= parts[OUTER]["high"]).all()


def test_the_worlds_are_all_those_asked_for_and_the_paper_has_enough_data_sets():
    cells = figure.cells(figure.SETTINGS["paper"])
    wanted = {"random_chain", "river_swim", "loop", "stay_or_leave", "grid", "tumor", "harbor", "machine", "dose"}
    assert {c["environment"] for c in cells} == wanted | {
        "CliffWalking-v1",
        "FrozenLake-v1",
        "bundled",
        *figure.MESSY,
        *figure.KNOWING,
    }
    sets = {}
    for cell in cells:
        sets[cell["panel"]] = sets.get(cell["panel"], 0) + cell["data_sets"]
    assert min(n for panel, n in sets.items() if "tumor" not in panel) >= 100


def test_random_worlds_are_new_for_each_data_set(table):
    for world in ("random chain", "grid"):
        part = table.filter((pl.col("world") == world) & (pl.col("kind") == CREDIBLE) & (pl.col("size") == 30))
        assert part["truth"].n_unique() == 3


def test_lines_say_what_was_chosen_and_what_it_is_worth():
    truth = environment("river_swim")
    batch = sampling.trajectories(truth, 12, 19, start=np.full(6, 1 / 6), rng=5)
    lines = list(judge(_known(truth, batch, truth.reward), np.random.default_rng(7), 40))
    learned = learn(batch, reward=truth.reward, discount=float(truth.discount))
    done, policy = behavior(learned.counts), learned.policy.actions
    assert (policy >= 0).all()
    chances, true = (np.eye(2)[policy], done), []
    for each in chances:
        value = np.zeros(6)
        for _ in range(19):  # as long as was watched
            value = (each * (truth.reward + truth.discount * truth.transition.dense() @ value)).sum(axis=1)
        true.append(truth.start @ value)
    found = posterior(
        learned.model, truth.reward, truth.discount, {ADVICE: policy, RECORDED: done}, batch=batch, case=learned.case,
        draws=40, rng=np.random.default_rng(7), start=truth.start, watched=19,
    )  # fmt: skip
    credible = next(line for line in lines if line["kind"] == CREDIBLE)
    assert credible["truth"] == pytest.approx(true[0])
    assert (credible["low"], credible["high"]) == found.interval(ADVICE)[1:]
    assert credible["covered"] == holds(credible["low"], credible["high"], true[0])
    better = next(line for line in lines if line["kind"] == BETTER)
    assert better["claimed"] == found.difference(ADVICE, RECORDED).better
    assert better["right"] == (true[0] > true[1])
    fits = next(line for line in lines if line["kind"] == FITS)
    assert fits["right"] == returns(learned).agrees
    may = learned.model.allowed
    best = solve(truth.transition, truth.reward, truth.discount, allowed=may).policy
    sure, choice = [line for line in lines if line["kind"] == BEST], may.sum(axis=1) > 1
    assert 0 < choice.sum() < 6  # where one action alone may be advised, no chance is told
    assert sum(line["states"] for line in sure) == choice.sum()
    assert sum(line["states"] * line["right"] for line in sure) == pytest.approx((policy == best)[choice].sum())
    assert sum(line["states"] * line["claimed"] for line in sure) == pytest.approx(found.advised_best[choice].sum())


def test_states_where_nothing_is_better_are_left_out():
    truth = environment("loop")
    batch = sampling.trajectories(truth, 12, 19, start=np.full(9, 1 / 9), rng=1)
    lines = judge(_known(truth, batch, truth.reward), np.random.default_rng(0), 10)
    # 0, 5, 6 and 7: elsewhere actions are one
    assert sum(line["states"] for line in lines if line["kind"] == BEST) == 4


def test_people_who_left_raw_numbers_get_what_they_get_in_the_simulator():
    """Whoever never errs acts on the points themselves, which no policy of cells can copy."""
    cell = {"environment": "dose", "errors": 0.0, "size": 30, "data_sets": 2}
    for trial in TRIALS["raw"](cell, np.random.default_rng(4)):
        S, A = trial.batch.n_states, trial.batch.n_actions
        assert trial.start is None
        assert trial.batch.recipe is not None
        worst = min(trial.value(np.tile(np.eye(A)[a], (S, 1)), 10) for a in range(A))
        coin = trial.value(np.full((S, A), 1 / A), 10)
        assert worst < coin < trial.done(10)
        assert trial.done(10) == trial.done(10)


def test_coverage_is_told_apart_where_nothing_speaks_against_the_model():
    table = made(0.7, 0.7)
    fits = table.filter(pl.col("kind") == CREDIBLE).with_columns(kind=pl.lit(FITS), right=pl.col("covered"))
    found = {verdict.claim: verdict for verdict in figure.holds(pl.concat([table, fits]))}
    assert found[figure.SAID[CREDIBLE]].outcome == FAILS
    assert found[figure.SAID[FITS]].outcome == HOLDS
    assert found["here: model fits"].note.startswith("There, credible intervals held in 1 ")


def test_a_truth_of_zero_does_not_miss_a_low_end_that_is_rounding():
    assert holds(1e-17, 2.0, 0.0)
    assert holds(-1.0, 1e6, 1e6 + 1e-5)
    assert not holds(1e-3, 2.0, 0.0)


def test_a_competent_log_of_a_table_has_its_rewards_by_outcome():
    cell = next(c for c in figure.cells(SMALL) if c["environment"] == "FrozenLake-v1")
    trial = next(TRIALS["table"](cell, np.random.default_rng(1)))
    assert trial.reward is None
    assert set(np.unique(trial.batch.reward)) == {0.0, 1.0}
    assert (trial.batch.reward[~trial.batch.ended] == 0).all()


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
                "states": 3,
            }
            nothing = dict.fromkeys(("claimed", "right"), np.nan)
            hit = float(d < covered * sets)
            ends = {"low": 0.0, "high": 1.0, "truth": 0.5 if hit else -1.0, "covered": hit}
            lines += [base | nothing | ends | {"kind": kind} for kind in INTERVALS]
            chance = {"claimed": 0.7, "right": float(d % 20 < right * 20), "bin": 7, "states": 1}
            lines.append(base | dict.fromkeys(ends, np.nan) | chance | {"kind": BEST})
    return pl.DataFrame(lines)


@pytest.mark.parametrize(("covered", "outcome"), [(0.9, HOLDS), (0.7, FAILS), (0.86, OPEN)])
def test_verdicts_follow_the_table(covered, outcome):
    verdicts = {verdict.claim: verdict for verdict in figure.holds(made(covered, 0.7))}
    for kind in INTERVALS:
        verdict = verdicts[f"here: {kind} intervals hold the truth in 90%"]
        assert verdict.outcome == outcome
        assert verdict.interval.mean == pytest.approx(covered)
        assert verdicts[figure.SAID[kind]].outcome == (FAILS if outcome == FAILS else HOLDS)


@pytest.mark.parametrize(("right", "outcome"), [(0.95, HOLDS), (0.8, FAILS)])
def test_of_what_is_said_to_be_sure_enough_must_be_true(right, outcome):
    table = made(0.9, right).with_columns(bin=pl.when(pl.col("bin") == 7).then(9).otherwise(pl.col("bin")))
    verdict = next(v for v in figure.holds(table) if v.claim == "here: best action as often as claimed")
    assert verdict.outcome == outcome
    assert f"true {right:.3f}" in verdict.measured
    unsure = next(v for v in figure.holds(made(0.9, right)) if v.claim == "here: best action as often as claimed")
    assert unsure.outcome == OPEN


@pytest.mark.parametrize(("right", "outcome"), [(0.7, HOLDS), (0.6, FAILS), (0.85, FAILS)])
def test_chances_that_are_far_from_how_often_they_are_true_are_told(right, outcome):
    table = made(0.9, right)
    error, luck = figure.calibration(table.filter(pl.col("kind") == BEST))
    assert error == pytest.approx(abs(right - 0.7))
    sets = table["data_set"].n_unique() * table["panel"].n_unique()
    tossed = np.random.default_rng(0).binomial(sets, 0.7, size=20_000) / sets
    assert luck == pytest.approx(np.abs(tossed - 0.7).mean(), rel=0.05)
    verdicts = {verdict.claim: verdict for verdict in figure.holds(table)}
    assert verdicts[figure.NEAR[BEST]].outcome == outcome
    assert f"calibration error {error:.3f}" in verdicts["here: best action as often as claimed"].measured


def test_intervals_that_are_surely_too_wide_are_told_where_rows_are_many():
    for covered, rows, outcome in ((0.9, 40, HOLDS), (0.96, 40, HOLDS), (0.99, 40, FAILS), (0.99, 9, HOLDS)):
        table = made(covered, 0.7, panels=("here", "there")).with_columns(rows=pl.lit(rows))
        verdicts = {verdict.claim: verdict for verdict in figure.holds(table)}
        assert verdicts[figure.NARROW].outcome == outcome


def test_over_all_panels_each_counts_the_same_however_often_something_was_said():
    bold, modest = made(0.9, 0.6, panels=("bold",), sets=400), made(0.9, 0.8, panels=("modest",), sets=40)
    verdicts = {verdict.claim: verdict for verdict in figure.holds(pl.concat([bold, modest]))}
    assert verdicts[figure.NEAR[BEST]].outcome == FAILS
    assert verdicts[figure.ALL[BEST]].outcome == HOLDS
    assert verdicts[figure.ALL[BEST]].measured.startswith("0.000, of which 0.000 too bold: 0.70 -> 0.70 (100%)")
    alone = {verdict.claim: verdict for verdict in figure.holds(bold)}[figure.ALL[BEST]]
    assert alone.outcome == FAILS
    assert alone.measured.startswith("0.100, of which 0.100 too bold")
    assert figure.ALL[BETTER] not in verdicts  # nothing of the kind was said


def test_the_shortest_intervals_that_would_have_held_are_those_that_do():
    rng = np.random.default_rng(0)
    low, high = -rng.random(500), rng.random(500) + 1
    truth = 3 * rng.normal(size=500)
    factor = figure.shortest(low, high, truth)
    middle, half = (low + high) / 2, (high - low) / 2
    assert np.mean(np.abs(truth - middle) <= factor * half + 1e-9) == pytest.approx(0.9, abs=0.003)


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
    left, right = picture.axes
    assert [label.get_text() for label in left.get_yticklabels()] == table["panel"].unique(
        maintain_order=True
    ).to_list()
    assert {text.get_text() for text in right.get_legend().get_texts()} == {BEST, BETTER}
    assert to_png(picture).startswith(b"\x89PNG")
