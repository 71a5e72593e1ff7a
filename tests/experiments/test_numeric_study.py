"""The study of worlds of numbers: what is measured, and what the verdicts say of it."""

import numpy as np
import polars as pl
import pytest

from certeq import Batch
from certeq.experiments.figures import numeric
from certeq.experiments.verdict import FAILS, HOLDS
from certeq.model.rewards import estimate


def test_every_cell_is_worked_on_alike_and_no_method_is_left_out():
    listed = numeric.cells({"data_sets": 2, "chunk": 2, "points": 5})
    assert len({cell["panel"] for cell in listed}) == len(listed) == 3 * 2 * 3 * 4
    cell = next(each for each in listed if each["rewards"] == numeric.ESTIMATED and each["world"] == "dose")
    found, again = (numeric.work(cell, np.random.default_rng(1)) for _ in range(2))
    assert set(found["method"]) == {*numeric.METHODS, numeric.FLOOR}
    np.testing.assert_array_equal(found["loss"], again["loss"])


@pytest.mark.parametrize("pool", ["none", "auto"])
def test_rewards_are_estimated_data_set_by_data_set_as_learn_does(pool):
    log = numeric.numeric_log("dose", 3, 30, cells=3, data_sets=2, rng=3)
    found = numeric.estimated(log, 2, pool)
    for d in range(2):
        of = log.data_set == d
        one = Batch(log.state[of], log.action[of], log.next_state[of], 9, 3, reward=log.reward[of])
        np.testing.assert_allclose(found[d], estimate(one, pool=pool, positions=log.positions).mean, rtol=1e-12)


def made_up(ours):
    """Losses by which the learned target has a ratio of its own in every cell, and improves with data or does not."""
    rows = []
    for cell in numeric.cells({"data_sets": 3, "chunk": 3, "points": 1}):
        for name in (*numeric.METHODS, numeric.FLOOR):
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
    assert "worse in 54 of 54 steps" in bad[-1].measured
    assert len(numeric.draw(good).axes) == 18
