"""The study of worlds of numbers: what is measured, and what the verdicts say of it."""

import numpy as np
import polars as pl

from certeq.experiments.figures import numeric
from certeq.experiments.verdict import FAILS, HOLDS


def test_every_cell_is_worked_on_alike_and_no_method_is_left_out():
    listed = numeric.cells({"data_sets": 2, "chunk": 2, "points": 5})
    assert len({cell["panel"] for cell in listed}) == len(listed) == 3 * 2 * 2 * 4
    cell = next(each for each in listed if each["rewards"] == numeric.ESTIMATED and each["world"] == "dose")
    found, again = (numeric.work(cell, np.random.default_rng(1)) for _ in range(2))
    assert set(found["method"]) == set(numeric.METHODS)
    np.testing.assert_array_equal(found["loss"], again["loss"])


def test_mean_rewards_are_those_of_the_pair_its_state_or_all():
    log = numeric.numeric_log("dose", 2, 6, cells=3, data_sets=2, rng=3)
    found = numeric.mean_rewards(log, numeric.tally(log))
    for d, s, a in np.ndindex(found.shape):
        of = log.data_set == d
        by_state = of & (log.state == s)
        pair = by_state & (log.action == a)
        part = pair if pair.any() else by_state if by_state.any() else of
        assert np.isclose(found[d, s, a], log.reward[part].mean())


def made_up(ours):
    """Losses by which the learned target has a ratio of its own in every cell, and improves with data or does not."""
    rows = []
    for cell in numeric.cells({"data_sets": 3, "chunk": 3, "points": 1}):
        for name in numeric.METHODS:
            strengths = [0.0, 0.5] if name in ("discount", "uniform prior") else [float("nan")]
            for d in range(3):
                for strength in strengths:
                    level = ours(cell["episodes"]) if name == numeric.OURS else 1.0
                    rows.append((cell["panel"], d, name, strength, level + 0.001 * d))
    return pl.DataFrame(rows, schema=["panel", "data_set", "method", "strength", "loss"], orient="row")


def test_verdicts_follow_the_table_and_the_picture_shows_it():
    good = made_up(lambda episodes: 1 / episodes)
    assert {verdict.outcome for verdict in numeric.holds(good)} == {HOLDS}
    bad = numeric.holds(made_up(lambda episodes: 1 + episodes))
    assert {verdict.outcome for verdict in bad} == {FAILS}
    assert "worse in 36 of 36 steps" in bad[-1].measured
    assert len(numeric.draw(good).axes) == 12
