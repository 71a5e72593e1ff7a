"""Findings: all questions are asked, and what cannot be answered says why."""

import pkgutil
import sys
import types
from dataclasses import replace
from typing import NamedTuple

import jinja2
import numpy as np
import pytest

import certeq
from certeq.learning.learned import learn
from certeq.questions.asking import ADVICE, PLAIN, RECORDED, Question, affordable_draws
from certeq.questions.episodes import behavior, watched
from certeq.questions.examine import all_questions, examine
from certeq.questions.findings import Findings
from certeq.questions.posterior import posterior
from certeq.report import learned_page

PARTS = {
    "plain",
    "posterior",
    "off_policy",
    "audit",
    "path",
    "fragility",
    "conventions",
    "collect",
    "origin",
    "avoided",
    "outer",
    "returns",
    "frontier",
    "groups",
    "risk",
    "few_rules",
}


def test_every_question_is_asked_in_turn(walk):
    asked = []
    halves = {"group": walk.episode % 2, "group_names": ("even", "odd"), "by": "half"}
    walk = replace(walk, beside={"decisions": np.ones(len(walk))}, **halves)
    found = examine(learn(walk, risk=0.5), draws=40, notice=asked.append)
    assert sorted(asked) == sorted(question.doing for question in all_questions().values())
    assert set(all_questions()) == PARTS
    assert found.missing == {}
    assert all(getattr(found, part) is not None for part in PARTS)


def test_a_new_section_is_a_question_and_a_block(monkeypatch, walk):
    module = types.ModuleType("certeq.questions.busiest")

    class Busiest(NamedTuple):
        state: int

        def lines(self):
            return [f"Most decisions were made in state {self.state}."]

    def ask(asking):
        assert asking.found["audit"] is not None
        return Busiest(int(asking.learned.policy.visits.sum(axis=1).argmax()))

    module.ASKED = Question("busiest", ask, doing="Looking for the busiest state", after=("audit",))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    listed = [*pkgutil.iter_modules(certeq.questions.__path__), types.SimpleNamespace(name="busiest")]
    monkeypatch.setattr("certeq.questions.examine.pkgutil.iter_modules", lambda path: listed)
    all_questions.cache_clear()
    try:
        found = examine(certeq.learn(walk), draws=0)
        told = dict(learned_page._context(found, 0))["told"]
    finally:
        all_questions.cache_clear()
    assert found.busiest == (2,)
    block = "{% for line in told.busiest %}<p>{{ line }}</p>{% endfor %}"
    assert jinja2.Template(block).render(told=told) == "<p>Most decisions were made in state 2.</p>"


def test_the_parts_are_what_the_rooms_that_make_them_give(found, walk):
    learned = found.learned
    policies = {ADVICE: learned.policy.actions, RECORDED: behavior(learned.counts), PLAIN: found.plain}
    alone = posterior(
        learned.model,
        learned.table,
        0.99,
        policies,
        rewards=learned.rewards,
        batch=walk,
        case=learned.case,
        draws=80,
        rng=0,
        watched=watched(walk, 0.99),
    )
    np.testing.assert_array_equal(found.posterior.state_values, alone.state_values)
    np.testing.assert_array_equal(found.plain, learned.case.under("none").advise().policy)
    assert found.audit.planning_discount == 0.9
    assert found.off_policy.model == tuple(found.posterior.interval(ADVICE))


@pytest.mark.slow
@pytest.mark.parametrize(("discount", "audited"), [(0.99, 0.9), (0.9, 0.81), (0.5, 0.45)])
def test_a_discount_below_the_learned_one_is_audited(walk, discount, audited):
    found = examine(certeq.learn(walk, discount=discount), draws=0)
    assert found.audit.planning_discount == pytest.approx(audited)
    assert examine(found.learned, draws=0, planning_discount=0.2).audit.planning_discount == 0.2


def test_support_and_runner_up_are_those_of_the_policy(found):
    policy = found.learned.policy
    assert found.support.tolist() == [policy.visits[s, a] for s, a in enumerate(policy.actions)]
    runner, gap = policy.runner_up()
    np.testing.assert_array_equal(found.runner_up[0], runner)
    np.testing.assert_array_equal(found.runner_up[1], gap)


def test_where_nothing_is_advised_nothing_is_compared(walk):
    found = Findings(certeq.learn(walk, min_visits=1000))
    assert found.support.tolist() == [0] * 5
    assert np.isnan(found.now).all()
    assert np.isnan(found.later).all()


def test_without_episodes_there_is_no_second_opinion_and_it_is_said_why(walk):
    rows = certeq.Batch(walk.state, walk.action, walk.next_state, 5, 3, reward=walk.reward)
    found = examine(certeq.learn(rows), draws=20)
    assert "not in episodes" in found.missing["off_policy"]


def test_without_discounting_what_has_no_values_is_missing(walk):
    found = examine(certeq.learn(walk, discount=1.0, regularizer="uniform_prior", magnitude=2.0), draws=20)
    assert "sure to end" in found.missing["plain"]
    assert found.plain is None
    assert found.conventions is not None or "sure to end" in found.missing["conventions"]


def long_line(states):
    random = np.random.default_rng(0)
    state = random.integers(states, size=3000)
    following = np.clip(state + random.integers(-1, 2, size=3000), 0, states - 1)
    batch = certeq.Batch(state, state % 2, following, states, 2, reward=random.random(3000))
    return certeq.learn(batch, discount=0.9, draws=0)


def test_of_large_models_fewer_are_drawn_and_of_very_large_ones_none_unless_asked_for(monkeypatch):
    monkeypatch.setattr("certeq.questions.asking.DRAWS", 400)
    assert affordable_draws(long_line(50), None) == 400
    assert 100 < affordable_draws(long_line(500), None) < 400
    assert affordable_draws(long_line(500), 7) == 7
    large = long_line(1500)  # which is not written out
    assert large.counts.sparse
    assert 100 < affordable_draws(large, None) < 400
    monkeypatch.setattr("certeq.questions.asking.UNWRITTEN", 1000)
    assert affordable_draws(large, None) == 40
    monkeypatch.setattr("certeq.questions.asking.MOST", 5000)
    with pytest.raises(certeq.InputError, match=r"3,000 pairs .* 3,000 rows are more than the 5,000 .* --draws 40"):
        affordable_draws(large, None)
    assert affordable_draws(large, 7) == 7
    with pytest.raises(certeq.InputError, match="No draws"):
        affordable_draws(large, 0)


def test_as_many_states_are_asked_what_would_change_them_as_there_is_time_for(monkeypatch, walk):
    learned = certeq.learn(walk, min_share=0.0)
    everywhere = examine(learned, draws=0).fragility
    assert everywhere.asked.tolist() == [True] * 5
    monkeypatch.setattr("certeq.questions.fragility.MOST", 2)
    few = examine(learned, draws=0).fragility
    busiest = np.argsort(-learned.policy.visits.sum(axis=1))[:2]
    assert np.flatnonzero(few.asked).tolist() == sorted(busiest.tolist())
    np.testing.assert_array_equal(few.observations[busiest], everywhere.observations[busiest])
