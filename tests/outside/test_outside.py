"""The comparisons with worlds and methods of others: small runs, and what is known about them for certain."""

import importlib.util
import json

import numpy as np
import pytest
from benchmarks import opponents
from benchmarks.outside import __main__ as command
from benchmarks.outside import contest, icu_sepsis, off_policy, spibb_suite, spibb_worlds

import certeq

sepsis = pytest.mark.skipif(
    importlib.util.find_spec("icu_sepsis") is None, reason="icu-sepsis is not installed: uv run --group outside pytest"
)
scope = pytest.mark.skipif(
    importlib.util.find_spec("scope_rl") is None, reason="SCOPE-RL is not installed: see benchmarks/outside/deep.txt"
)


@pytest.fixture(scope="module")
def river():
    return spibb_suite.world("wet chicken", np.random.default_rng(0))


def test_an_opponent_at_the_end_of_its_constant_is_the_behavior_or_the_plain_plan(river):
    opponents.check(opponents.known(river.log(500, np.random.default_rng(1)), 0.95))


def test_a_policy_is_worth_in_sparse_rows_what_it_is_worth_in_the_truth(river):
    truth, policy = river.truth, river.behavior
    exact = truth.start @ certeq.evaluate(truth.transition, truth.reward, truth.discount, policy)
    assert river.worth(policy) == pytest.approx((exact,))


def test_the_wet_chicken_is_the_published_one(river):
    assert len(spibb_suite.published(river)) == 2


@pytest.mark.parametrize("name", spibb_worlds.WORLDS)
def test_rebuilt_worlds_are_worlds_and_pay_on_average_what_their_logs_pay(name):
    rng = np.random.default_rng(3)
    tables = spibb_worlds.WORLDS[name](rng)
    S, A = tables.reward.shape
    assert tables.rows.min() >= 0
    assert tables.rows.sum(axis=-1).max() <= 1 + 1e-9
    truth = certeq.MDP(certeq.Rows(tables.rows), tables.reward, 0.95, start=np.eye(S)[tables.first])
    log = spibb_suite._logbook(name, tables, truth, np.full((S, A), 1 / A))(4000, rng)
    expected = tables.reward[log.state, log.action]
    error = (log.reward - expected).std() / np.sqrt(len(log))
    assert abs(log.reward.mean() - expected.mean()) <= 5 * error + 1e-12


def test_a_baseline_is_worth_its_share_of_the_way_from_random_to_the_optimum():
    tables = spibb_worlds.gridworld(np.random.default_rng(0))
    policy = spibb_worlds.baseline(tables, 0.6, np.random.default_rng(0))
    values = [
        certeq.evaluate(certeq.Rows(tables.rows), tables.reward, 0.95, each)[tables.first]
        for each in (np.full((25, 4), 0.25), policy)
    ]
    best = certeq.solve(certeq.Rows(tables.rows), tables.reward, 0.95).values[tables.first]
    assert (values[1] - values[0]) / (best - values[0]) == pytest.approx(0.6, abs=0.03)


def test_constants_are_chosen_on_other_data_sets_and_only_the_chosen_one_is_judged(river):
    good, bad = np.eye(5)[np.full(25, 2)], np.eye(5)[np.zeros(25, dtype=int)]
    seen = []

    def always(policy):
        return lambda batch, given: seen.append(batch.state.tobytes()) or policy

    who = [contest.Entry("method", "bad", always(bad)), contest.Entry("method", "good", always(good))]
    held = contest.hold(river, 50, 5, (2, 3), who, lambda words: None)
    (judged,) = held["judged"]
    assert judged["constant"] == max(("good", good), ("bad", bad), key=lambda pair: river.worth(pair[1]))[0]
    assert len(judged["values"]) == 3
    assert not set(seen[:4]) & set(seen[4:])


def test_the_worst_of_many_is_a_mean_and_a_standard_error_that_of_the_mean():
    found = contest.score([4.0, 1.0, 2.0, 3.0], behavior=2.0, worst=0.5)
    assert (found.mean, found.worst, found.below) == (2.5, 1.5, 0.25)
    assert found.error == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gymnasium_tables", "spibb_suite", pytest.param("icu_sepsis", marks=sepsis)])
def test_a_contest_runs_and_keeps_what_it_found(tmp_path, name):
    command.main([name, "--profile", "smoke", "--seed", "3", "--out", str(tmp_path)])
    kept = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert kept["seed"] == 3
    for held in kept["held"]:
        for judged in held["judged"]:
            values = np.array(judged["values"])
            assert (values <= np.array(held["landmarks"]["optimum"]) + 1e-5).all(), judged["method"]


@sepsis
@pytest.mark.slow
def test_icu_sepsis_has_the_published_values():
    assert len(icu_sepsis.published(icu_sepsis.world().landmarks())) == 3


def test_values_of_many_decisions_are_those_of_endless_ones(river):
    truth = river.truth
    q = off_policy.backward(river.rows, truth.reward, river.behavior, truth.discount, 400)
    assert truth.start @ (river.behavior * q[0]).sum(axis=1) == pytest.approx(river.worth(river.behavior)[0])


def test_episodes_of_one_length_hold_every_row_once():
    world = spibb_suite.world("gridworld", np.random.default_rng(0))
    tables = spibb_worlds.gridworld(np.random.default_rng(0))
    log = spibb_suite.log_episodes(tables, world.truth, world.behavior, 30, 25, np.random.default_rng(1))
    made = off_policy.rectangle(log, world, world.behavior, 25)
    assert made.there.sum() == len(log)
    assert made.reward.sum() == log.reward.sum()
    assert (made.ratio == 1).all()


@scope
@pytest.mark.slow
def test_the_same_estimator_says_the_same_in_three_libraries():
    world = spibb_suite.world("gridworld", np.random.default_rng(0))
    tables = spibb_worlds.gridworld(np.random.default_rng(0))
    log = spibb_suite.log_episodes(tables, world.truth, world.behavior, 50, 30, np.random.default_rng(1))
    made = off_policy.rectangle(log, world, (world.behavior + np.eye(4)[1]) / 2, 30)
    ours = dict(off_policy.ours(log, made, 0))
    others = dict(off_policy.scope(made, 0)) | dict(off_policy.offline(made))
    given = "certeq, {}, behavior given"
    for mine, names in (
        ("per-decision importance sampling", ("SCOPE-RL, per decision", "offline-rl-ope, per decision")),
        ("weighted importance sampling", ("SCOPE-RL, self-normalized trajectory-wise",)),
    ):
        for name in names:
            assert others[name][0] == pytest.approx(ours[given.format(mine)][0], rel=1e-4), name
