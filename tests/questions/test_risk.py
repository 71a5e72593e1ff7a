"""Risk: how far to follow the advice, so that it is worse than what was done with no more than the chance accepted."""

import numpy as np
import pytest

import certeq
from certeq.learning.learned import learn
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.episodes import behavior
from certeq.questions.posterior import drawn_values, posterior
from certeq.questions.risk import Following, Risk, risk
from certeq.report.learned_page import render

GAMMA = 0.5


def world(seed=0, episodes=60, effects=(1.0, 0.0, 0.0, 0.0)):
    """Four wards in turn at random, two actions; only in some wards does "new" earn more. Noise is large."""
    rng = np.random.default_rng(seed)
    rows = {name: [] for name in ("who", "t", "ward", "action", "reward")}
    for who in range(episodes):
        for t in range(6):
            ward, new = int(rng.integers(4)), bool(rng.random() < 0.4)
            paid = effects[ward] * new + 1.5 * rng.normal()
            for name, value in zip(rows, (who, t, "ABCD"[ward], "new" if new else "usual", paid), strict=True):
                rows[name].append(value)
    return certeq.read(rows, episode="who", time="t", ends="never")


def asked(batch, accepted=0.05, draws=200, **rules):
    learned = learn(batch, discount=GAMMA, risk=accepted, **rules)
    how = {"rewards": learned.rewards, "batch": batch, "case": learned.case, "draws": draws}
    policies = {ADVICE: learned.policy.actions, RECORDED: behavior(learned.counts)}
    found = posterior(learned.model, learned.table, GAMMA, policies, horizon=learned.rules.horizon, **how)
    return learned, found, risk(learned, found, accepted, draws=draws)


def following(limit, gain, better, thin=0.0):
    from certeq.questions.credible import Difference

    return Following(limit, 1, Difference(gain, gain - 1, gain + 1, better), thin)


def test_what_gains_most_of_all_that_keeps_the_risk_is_chosen():
    steps = (following(1.0, 1, 1.0), following(0.9, 2, 0.96), following(0.8, 3, 0.94), following(0.5, 4, 0.99))
    assert Risk(0.05, 0.8, steps, 100).chosen == steps[1]
    assert Risk(0.10, 0.8, steps, 100).chosen == steps[2]
    assert Risk(0.10, 0.0, steps, 100).chosen == steps[3]
    assert Risk(0.0, 0.8, steps, 100).chosen == steps[0]
    assert Risk(0.05, 0.8, (steps[0], following(0.9, 2, 0.99, thin=0.5)), 100).chosen == steps[0]
    none = Risk(0.05, 0.8, (following(1.0, 1, 0.5), following(0.0, -1, 0.99)), 100)
    assert (none.chosen, none.min_chance) == (None, 1.0)
    assert "Do what was done" in none.lines()[1]


def test_what_keeps_the_risk_and_may_not_be_chosen_is_told():
    steps = (following(0.9, 2, 0.96), following(0.5, 4, 0.99))
    assert "with --min-chance 0.5, all of it could be followed" in Risk(0.05, 0.8, steps, 100).lines()[0]
    assert "--min-chance" not in Risk(0.05, 0.0, steps, 100).lines()[0]
    assert "--min-chance" not in Risk(0.005, 0.8, steps, 100).lines()[0]


def test_where_the_advice_is_what_was_done_there_is_no_risk():
    rows = {"state": [0, 1, 0, 1], "action": [0, 1, 0, 1], "reward": [0.0, 1, 2, 3], "next_state": [1, 0, 1, 0]}
    learned = certeq.learn(certeq.read(rows), risk=0.05, draws=40)
    found = learned.answers["risk"]
    assert (found.followed, found.min_chance, learned.policy.min_chance) == ((), 0.8, 0.8)
    assert "nothing to gain or to lose" in found.lines()[0]


def test_each_step_is_the_policy_that_apply_would_be_followed_by():
    learned, found, told = asked(world())
    policy = learned.with_chances(found.best).policy
    done = behavior(learned.counts)
    assert [each.min_chance for each in told.followed] == sorted((e.min_chance for e in told.followed), reverse=True)
    for each in told.followed:
        strict = policy.stricter(each.min_chance)
        mixed = done.copy()
        for s, ward in enumerate(learned.state_names):
            advice = strict.apply({"ward": [ward]})
            if not advice.open[0]:
                mixed[s] = np.arange(2) == advice.action[0]
        assert each.states == (mixed != done).any(axis=1).sum()
        values = drawn_values(learned.case, [done, mixed], draws=200, rng=0)
        gain = values[1] - values[0]
        assert each.gain.mean == pytest.approx(gain.mean())
        assert each.worse >= (gain < 0).mean() - 1e-12  # flattery makes it no smaller


def test_the_accepted_risk_raises_the_chance_from_which_an_action_stands_alone():
    batch = world(seed=2, effects=(1.5, 0.05, 0.0, -0.05))
    plain, careful = (certeq.learn(batch, discount=GAMMA, risk=each, draws=100) for each in (None, 0.02))
    assert plain.policy.min_chance == 0.8
    assert careful.policy.min_chance == careful.answers["risk"].min_chance >= 0.8
    assert careful.summary.settings["min_chance"] == careful.policy.min_chance
    assert np.array_equal(careful.policy.actions, plain.policy.actions)
    assert not (plain.policy.open & ~careful.policy.open).any()
    assert careful.summary.clear == int((~careful.policy.open).sum())


def test_without_drawn_models_the_risk_is_refused_in_words():
    with pytest.raises(certeq.InputError, match=r"The risk cannot be computed.*No draws.*--risk"):
        certeq.learn(world(), risk=0.05, draws=0)
    with pytest.raises(certeq.InputError, match=r"0.01 cannot be seen in 40 drawn models.*0\.025.*--draws"):
        certeq.learn(world(), risk=0.01, draws=40)
    for bad in (-0.1, 1.5, "much"):
        with pytest.raises(certeq.InputError, match="risk"):
            certeq.learn(world(), risk=bad, draws=0)


@pytest.mark.slow
def test_what_was_chosen_is_worse_in_the_truth_about_as_seldom_as_accepted():
    """Wards in which "new" is a little better or worse: the chosen policy's true gain is seldom below 0."""
    worse = often = 0
    for seed in range(80):
        rng = np.random.default_rng(1000 + seed)
        effects = rng.normal(0, 0.7, 4)
        learned, found, told = asked(world(seed, episodes=60, effects=effects), accepted=0.1, draws=100)
        if told.chosen is None:
            continue
        often += 1
        strict = learned.with_chances(found.best, min_chance=told.min_chance).policy
        done = behavior(learned.counts)
        new = learned.action_names.index("new")
        share = np.where(strict.open, done[:, new], strict.actions == new)
        effect = np.array([effects["ABCD".index(name)] for name in learned.state_names])
        gain = effect * (share - done[:, new])
        worse += found.start @ gain + GAMMA / (1 - GAMMA) * gain.mean() < 0
    assert often >= 30
    assert worse <= 0.1 * often + 2.33 * np.sqrt(0.09 * often)  # more would happen once in a hundred times


@pytest.mark.slow
def test_the_report_draws_the_trade_off_and_lists_departures_with_their_support():
    found = certeq.examine(certeq.learn(world(episodes=300), discount=GAMMA, risk=0.05, draws=60), draws=60)
    page, policy = render(found), found.learned.policy
    assert 'id="trade-off"' in page
    assert "Gain against risk" in page
    usual = policy.visits.argmax(axis=1)
    departs = (found.advised != usual) & ~policy.among[np.arange(len(usual)), usual]
    table = page.split('id="departures-table"')[1].split("</table>")[0]
    assert table.count("<tr") == 1 + departs.sum() > 1
    assert "Gain against risk" not in render(certeq.examine(certeq.learn(world(), discount=GAMMA, draws=0), draws=0))


def test_with_a_horizon_the_decisions_are_followed_one_by_one():
    learned, _, told = asked(world(), horizon=3)
    assert learned.policy.horizon == 3
    assert told.followed[-1].gain.mean > 0
