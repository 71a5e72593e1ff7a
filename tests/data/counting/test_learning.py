"""A policy learned from counts is the one learned from the rows that were counted."""

import numpy as np
import polars as pl
import pytest
from counted import ROLES, in_memory, rows

from certeq import InputError, learn
from certeq.data.counting import Tallied, count


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"regularizer": "uniform_prior", "strength": 0.3, "unvisited": "target"},
        {"regularizer": "discount", "planning_discount": 0.5, "reward_by": "next_state"},
        {"reward_pool": "state", "min_visits": 5},
        {"reward_pool": "overall", "horizon": 4, "discount": 1.0},
    ],
)
def test_counts_teach_what_the_rows_teach(parquet, settings):
    path = parquet(rows())
    batch, _, _ = in_memory(path, **ROLES)
    mine, yours = (learn(it, **settings, draws=0) for it in (count(path, **ROLES, piece_rows=150), batch))
    assert np.array_equal(mine.plan.policy, yours.plan.policy)
    np.testing.assert_allclose(mine.plan.values, yours.plan.values, rtol=1e-9)
    np.testing.assert_allclose(mine.table, yours.table, rtol=1e-9)
    np.testing.assert_allclose([mine.rewards.within], [yours.rewards.within], rtol=1e-9)
    assert mine.policy.recipe == yours.policy.recipe
    assert mine.policy.action_names == yours.policy.action_names
    assert mine.policy.data == yours.policy.data
    for name in ("rows", "states", "actions", "pairs_seen", "endings", "dropped", "alerts", "settings", "advised"):
        assert getattr(mine.summary, name) == getattr(yours.summary, name)
    assert mine.summary.episodes is None
    assert mine.summary.seen == ()
    new, step = {"ward": ["A", "C"], "stage": [3, 0]}, settings.get("horizon") and 1
    assert mine.policy.act(new, step=step) == yours.policy.act(new, step=step)


def test_saved_counts_teach_the_same(parquet, tmp_path):
    tallied = count(parquet(rows()), **ROLES)
    tallied.save(tmp_path / "counts.npz")
    before, after = learn(tallied), learn(Tallied.load(tmp_path / "counts.npz"))
    assert before.policy.to_json() == after.policy.to_json()


def test_known_rewards_take_the_place_of_rewards_that_were_not_counted(parquet):
    tallied = count(parquet(rows()), **ROLES | {"reward": False})
    with pytest.raises(InputError, match="The rows have no rewards"):
        learn(tallied)
    known = np.random.default_rng(0).random((tallied.counts.n_states, tallied.counts.n_actions))
    assert np.array_equal(learn(tallied, reward=known).table, known)


def test_rewards_that_are_all_the_same_are_pointed_out(parquet):
    frame = rows().with_columns(reward=pl.lit(2.0))
    tallied = count(parquet(frame), **ROLES)
    assert tallied.endings  # where there are fewer decisions, 2 for each is less
    assert not any("Every reward is the same" in alert for alert in learn(tallied).summary.alerts)
    tallied = count(parquet(frame.with_columns(reward=pl.lit(0.0)), "zero.parquet"), **ROLES)
    assert any("Every reward is the same" in alert for alert in learn(tallied).summary.alerts)


def test_something_else_is_not_taken_for_counts():
    with pytest.raises(InputError, match="learn takes a Batch"):
        learn(3)
