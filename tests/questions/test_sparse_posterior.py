"""Posteriors of models that are not written out: what is found in them is what is found in models that are."""

from dataclasses import replace

import numpy as np
import pytest

from certeq import Batch, InputError, Rows, solve
from certeq.learning.case import Case
from certeq.learning.learned import learn
from certeq.planners.backup import tied
from certeq.questions import outer as outer_module
from certeq.questions import sparse_draws, sparse_posterior
from certeq.questions.credible import leads
from certeq.questions.episodes import behavior, watched
from certeq.questions.exact import evaluate
from certeq.questions.outer import outer
from certeq.questions.posterior import decided_thinly, drawn_values, posterior
from certeq.questions.sparse_draws import draw_sparsely
from certeq.questions.sparse_posterior import LeanPosterior, SparseJob, each_of, value_forever
from strategies import as_sparse

S, A, DRAWS = 25, 3, 480


def wards(seed=0, S=S, A=A, patients=40, length=12, ends=0.08):
    """Episodes of people who mostly do the same, in states that lead to a few others; what ends an episode pays."""
    rng = np.random.default_rng(seed)
    led, usual = rng.integers(S, size=(S, 6)), rng.dirichlet(np.ones(A), size=S)
    rows = []
    for patient in range(patients):
        s = int(rng.integers(S))
        for _ in range(length):
            a = int(rng.choice(A, p=usual[s]))
            over = rng.random() < ends
            to = -1 if over else int(led[s, (rng.geometric(0.5) + a) % 6])
            pays = float(rng.random() < 0.5 + 0.3 * np.sin(s + a)) if over else 0.1 * rng.normal()
            rows.append((s, a, to, pays, patient))
            if over:
                break
            s = to
    state, action, after, reward, episode = map(np.array, zip(*rows, strict=True))
    return Batch(state, action, after, S, A, reward=reward, episode=episode)


def asked(batch, monkeypatch, *, sparsely, draws=DRAWS, **rules):
    """A case whose models are written out, or are not, and the posterior of its advice and of what was done."""
    learned = learn(batch, **rules)
    case = learned.case
    if sparsely:
        monkeypatch.setattr(sparse_draws, "WRITTEN", 0)
        case = Case(replace(case.data, counts=as_sparse(case.data.counts)), case.rules)
    policies = {"advice": learned.policy.actions, "done": behavior(case.data.counts)}
    found = posterior(
        case.model, case.table, case.rules.discount, policies, rewards=case.rewards, batch=batch, case=case,
        draws=draws, rng=0, horizon=case.rules.horizon, watched=watched(batch, case.rules.discount),
    )  # fmt: skip
    return case, found


WAYS = {
    "watched": {},
    "forever": {"discount": 0.8},
    "no discount": {"discount": 1.0},
    "horizon": {"horizon": 4},
    "by next state": {"discount": 0.8, "reward_by": "next_state"},
    "few advised": {"discount": 0.8, "min_visits": 4},
    "convention": {"discount": 0.8, "unvisited": "self_loop", "regularizer": "uniform_prior", "magnitude": 3.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_intervals_and_chances_are_those_of_models_that_are_written_out(way, monkeypatch):
    batch = wards()
    case, dense = asked(batch, monkeypatch, sparsely=False, **WAYS[way])
    other, sparse = asked(batch, monkeypatch, sparsely=True, **WAYS[way])
    np.testing.assert_allclose(sparse.claimed, dense.claimed, rtol=1e-6)
    assert sparse.flattery == pytest.approx(dense.flattery, abs=0.3 * dense.flattery + 1e-9)  # of fewer data sets
    assert sparse.history == pytest.approx(dense.history, rel=1e-4, abs=1e-9)
    assert sparse.thin == pytest.approx(dense.thin, rel=1e-6)
    np.testing.assert_array_equal(sparse.starts, dense.starts)  # the very data sets
    assert (sparse.exact, sparse.rests) == (False, 0.0)  # of large models both spreads are kept
    plain = [replace(each, flattery=0.0, exact=False, rests=0.0) for each in (dense, sparse)]
    for name in dense.names:
        one, two = (each.interval(name) for each in plain)
        wide = one.high - one.low
        assert abs(one.mean - two.mean) < 0.04 * wide
        assert abs(one.low - two.low) < 0.1 * wide
        assert abs(one.high - two.high) < 0.1 * wide
    one, two = (each.difference("advice", "done") for each in plain)
    assert abs(one.better - two.better) < 0.08
    assert np.abs(dense.best - sparse.best).mean() < 0.02
    if case.rules.discount < 1 or case.rules.horizon:
        ends = plain[0].interval("advice")
        how = {"credible": (ends.low, ends.high), "watched": dense.watched, "draws": 300, "rng": 1}
        actions = learn(batch, **WAYS[way]).policy.actions
        monkeypatch.setattr(outer_module, "NAMED", 0.1)  # so that pairs are named, and none by a hair
        monkeypatch.setattr(sparse_draws, "WRITTEN", 10**12)
        wide = outer(case, actions, **how)
        monkeypatch.setattr(sparse_draws, "WRITTEN", 0)
        also = outer(other, actions, **how)
        assert abs(wide.low - also.low) < 0.06 * (wide.high - wide.low)
        assert abs(wide.high - also.high) < 0.06 * (wide.high - wide.low)
        assert abs(wide.thin[0].share - also.thin[0].share) < 0.05
        if way != "by next state":  # there several pairs are alike
            assert wide.thin[0][:2] == also.thin[0][:2]


def test_what_makes_an_outer_interval_wide_is_named_in_sparse_models_too(monkeypatch):
    """One thin pair on the way of everybody."""
    n = 60
    state, action = np.tile([0, 1], n), np.tile([0, 0], n)
    after = np.tile([1, 0], n)
    reward = np.tile([0.0, 1.0], n)
    state[-1], after[-2] = 2, 2
    episode = np.arange(2 * n) // 2
    batch = Batch(state, action, after, 3, 1, reward=reward, episode=episode)
    learned = learn(batch, discount=0.9)
    monkeypatch.setattr(sparse_draws, "WRITTEN", 10**12)
    dense = outer(learned.case, learned.policy.actions, credible=(4.9, 5.0), rng=0)
    monkeypatch.setattr(sparse_draws, "WRITTEN", 0)
    case = Case(replace(learned.case.data, counts=as_sparse(learned.case.data.counts)), learned.case.rules)
    sparse = outer(case, learned.policy.actions, credible=(4.9, 5.0), rng=0)
    assert [each[:3] for each in sparse.thin] == [each[:3] for each in dense.thin]
    assert sparse.thin
    np.testing.assert_allclose([sparse.low, sparse.high], [dense.low, dense.high], rtol=0.1)


def a_model(discount=0.8, **rules):
    learned = learn(wards(), discount=discount, **rules)
    counts = as_sparse(learned.case.data.counts)
    case = Case(replace(learned.case.data, counts=counts), learned.case.rules)
    drawn = draw_sparsely(case.model, np.random.default_rng(0).normal(size=(S, A)), 2, rng=1,
                          averaged=case.model.stranded)  # fmt: skip
    rows, reward = drawn.draw(0)
    policies = [np.eye(A)[np.maximum(learned.policy.actions, 0)][None], behavior(counts)[None]]
    first = np.full(S, 1 / S)
    job = SparseJob(
        policies, case.model, case.model.reward(case.table), discount, case.rules.horizon, None, first, True
    )
    return case, job, rows, reward


@pytest.mark.parametrize("near", [False, True])
def test_each_policy_is_worth_what_it_is_worth_in_the_model_written_out(near):
    _, job, rows, reward = a_model()
    for policy, claimed in zip(job.policies, job.claimed, strict=True):
        exact = evaluate(Rows(rows.dense()), reward, job.discount, policy[0])
        found = value_forever(rows, reward, job.discount, policy[0], claimed if near else None)
        np.testing.assert_allclose(found, exact, atol=1e-4)
        some = replace(job, watched=7).value(rows, reward, policy)
        value = np.zeros(S)
        for _ in range(7):
            value = (policy[0] * (reward + job.discount * rows.dense() @ value)).sum(axis=-1)
        np.testing.assert_allclose(some, value, atol=1e-9)


@pytest.mark.parametrize("rules", [{}, {"min_visits": 5}], ids=["all advised", "some without advice"])
def test_actions_lead_as_in_the_model_written_out(rules):
    _, job, rows, reward = a_model(**rules)
    silent = job.model.stranded
    assert silent.any() == bool(rules)
    (found,) = job.ahead(rows, reward)
    full = rows.dense()
    full[silent] = full[silent].mean(axis=1, keepdims=True)
    gain = np.where(silent[:, None], reward.mean(axis=1, keepdims=True), reward)
    plan = solve(Rows(full), gain, job.discount, allowed=job.model.allowed)
    wanted = leads(plan.action_values, plan.tied)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    (step,) = replace(job, horizon=1).ahead(rows, reward)
    q = np.where(job.model.allowed, gain, -np.inf)
    np.testing.assert_allclose(step, leads(q, tied(q)))


def test_the_share_of_decisions_for_thin_pairs_is_that_of_the_written_model(monkeypatch):
    case, job, _, _ = a_model()
    how = (job.policies[0][0], job.first, 0.8, None)
    monkeypatch.setattr(sparse_draws, "WRITTEN", 10**12)
    dense = decided_thinly(case.model, *how)
    monkeypatch.setattr(sparse_draws, "WRITTEN", 0)
    assert decided_thinly(case.model, *how) == pytest.approx(dense, rel=1e-6)
    assert 0 < dense < 1


def test_the_result_does_not_depend_on_threads_and_one_seed_is_one_result(monkeypatch):
    batch = wards(patients=15)
    case, first = asked(batch, monkeypatch, sparsely=True, draws=7, discount=0.8)
    policies = {"advice": first.best.argmax(axis=1), "done": behavior(case.data.counts)}
    how = {"rewards": case.rewards, "batch": batch, "case": case, "draws": 7, "rng": 4}
    found = [posterior(case.model, case.table, 0.8, policies, threads=threads, **how) for threads in (1, 3)]
    np.testing.assert_array_equal(found[0].state_values, found[1].state_values)
    np.testing.assert_array_equal(found[0].best, found[1].best)
    assert found[0].draws == 7


def test_renaming_states_in_order_and_reordering_episodes_change_nothing(monkeypatch):
    batch = wards(patients=15)
    _, found = asked(batch, monkeypatch, sparsely=True, draws=6, discount=0.8)
    named = replace(batch, state_names=tuple(f"ward {s:03d}" for s in range(S)))
    _, again = asked(named, monkeypatch, sparsely=True, draws=6, discount=0.8)
    np.testing.assert_array_equal(found.values, again.values)
    order = np.argsort(np.random.default_rng(0).permutation(15)[batch.episode], kind="stable")
    columns = ("state", "action", "next_state", "reward", "episode")
    mixed = replace(batch, **{name: getattr(batch, name)[order] for name in columns})
    _, other = asked(mixed, monkeypatch, sparsely=True, draws=6, discount=0.8)
    np.testing.assert_allclose(found.values, other.values, rtol=1e-6)


def test_of_very_many_states_only_values_under_the_start_are_kept(monkeypatch):
    batch = wards(patients=15)
    _, found = asked(batch, monkeypatch, sparsely=True, draws=6, discount=0.8)
    monkeypatch.setattr(sparse_posterior, "LARGEST", 0)
    monkeypatch.setattr(sparse_posterior, "KEPT", 0)
    _, lean = asked(batch, monkeypatch, sparsely=True, draws=6, discount=0.8)
    assert isinstance(lean, LeanPosterior)
    assert lean.draws == found.draws == 6
    np.testing.assert_allclose(lean.values, found.values)
    assert lean.interval("advice") == pytest.approx(found.interval("advice"))
    assert replace(lean, doubt=(1.0, 1.0)).interval("advice").low == pytest.approx(found.interval("advice").low - 1)
    assert ((lean.best >= 0) & (lean.best <= 1)).all()
    assert lean.state_values.size == 0
    with pytest.raises(InputError, match="only values under the start"):
        lean.states("advice")


def test_counts_alone_are_drawn_from_and_say_so(monkeypatch):
    case, _, _, _ = a_model()
    monkeypatch.setattr(sparse_draws, "WRITTEN", 0)
    bare = Case(replace(case.data, batch=None), case.rules)
    policies = {"advice": behavior(case.data.counts)}
    found = posterior(bare.model, bare.table, 0.8, policies, rewards=bare.rewards, case=bare, draws=5)
    assert not found.again
    assert found.draws == 5
    assert found.starts is None
    with_start = posterior(bare.model, bare.table, 0.8, policies, draws=5, start=np.eye(S)[3])  # rewards are known
    np.testing.assert_allclose(with_start.values[0], with_start.state_values[0, :, 3])


def test_a_start_that_is_said_is_not_drawn(monkeypatch):
    batch = wards(patients=15)
    case, _ = asked(batch, monkeypatch, sparsely=True, draws=4, discount=0.8)
    policies = {"advice": behavior(case.data.counts)}
    how = {"rewards": case.rewards, "batch": batch, "case": case, "draws": 4, "start": np.eye(S)[3]}
    found = posterior(case.model, case.table, 0.8, policies, **how)
    assert found.starts is None
    np.testing.assert_allclose(found.values[0], found.state_values[0, :, 3])


def test_values_of_further_policies_come_from_the_same_models(monkeypatch):
    batch = wards(patients=15)
    case, found = asked(batch, monkeypatch, sparsely=True, draws=8, discount=0.8)
    over = watched(batch, 0.8)
    advice = learn(batch, discount=0.8).policy.actions
    values = drawn_values(case, [advice, behavior(case.data.counts)], draws=8, rng=0, watched=over)
    assert values.shape == (2, 8)
    np.testing.assert_allclose(values[1], found.values[1], rtol=0.5)  # other pairs are asked for: not the same numbers
    np.testing.assert_allclose(values.mean(axis=1), found.values.mean(axis=1), atol=2 * found.values.std())


def test_without_discounting_episodes_must_end_in_every_draw(monkeypatch):
    state = np.arange(12) % 3
    batch = Batch(state, state % 2, (state + 1) % 3, 3, 2, reward=np.ones(12), episode=np.arange(12) // 4)
    learned = learn(batch, discount=0.5)
    case = Case(replace(learned.case.data, counts=as_sparse(learned.case.data.counts)), learned.case.rules)
    monkeypatch.setattr(sparse_draws, "WRITTEN", 0)
    with pytest.raises(InputError, match="sure to end"):
        posterior(case.model, case.table, 1.0, {"advice": np.zeros(3, int)}, draws=2)


@pytest.mark.parametrize(("draws", "each"), [(1, 2), (40, 2), (60, 3), (80, 4), (400, 4)])
def test_more_models_come_from_a_data_set_only_where_there_are_data_sets_enough(draws, each, monkeypatch):
    monkeypatch.setattr("certeq.questions.again.EACH", 4)
    assert each_of(draws) == each


@pytest.mark.slow
def test_intervals_hold_the_truth_of_a_sparse_world(monkeypatch):
    """Both policies' values in a ring of which each pair leads to three states: in nine of ten data sets, about."""
    ring, sets, gamma = 100, 20, 0.9
    rng = np.random.default_rng(7)
    world = np.zeros((ring, 2, ring))
    for s, a in np.ndindex(ring, 2):
        world[s, a, (s + np.array([[1, 2, -1], [-1, 3, 0]][a])) % ring] = 0.9 * rng.dirichlet([4, 2, 1])
    pay = np.sin(6 * np.pi * np.arange(ring) / ring)[:, None] + 0.3 * rng.normal(size=(ring, 2))
    held = []
    for seed in range(sets):
        batch = followed(world, pay, np.random.default_rng([99, seed]))
        case, found = asked(batch, monkeypatch, sparsely=True, draws=40, discount=gamma)
        for name, policy in (("advice", case.advise().policy), ("done", behavior(case.data.counts))):
            truth, ends = evaluate(Rows(world), pay, gamma, policy).mean(), found.interval(name)
            held.append((name, ends.low <= truth <= ends.high))
        assert found.watched is None
    assert sum(inside for name, inside in held if name == "advice") >= 0.8 * sets
    assert sum(inside for name, inside in held if name == "done") >= 0.75 * sets


def followed(world, pay, rng, episodes=120):
    """Episodes of random actions until they end."""
    rows, ring = [], len(world)
    for episode in range(episodes):
        s = int(rng.integers(ring))
        while s >= 0:
            a = int(rng.integers(2))
            to = int((rng.random() > np.cumsum(world[s, a])).sum())
            rows.append((s, a, to if to < ring else -1, pay[s, a] + 0.3 * rng.normal(), episode))
            s = rows[-1][2]
    state, action, after, reward, episode = map(np.array, zip(*rows, strict=True))
    return Batch(state, action, after, ring, 2, reward=reward, episode=episode)
