"""How sure, in words: what undoes the rest comes first, and no chance is told where it would rest on too little."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import certeq
from certeq.questions.alerts import alerts
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.credible import credible
from certeq.questions.examine import examine
from certeq.questions.returns import Returns, Stretch
from certeq.questions.sure import EPISODES, HANGS, THIN, chance, doubt, printed, sentences, to_json, withheld
from certeq.report.tell import worth
from certeq.worlds.numeric import SIMULATORS, erring, log_points
from logbook import logged

UNFIT = Returns((Stretch(8, False, -3.0, 1.0),), 60)


@pytest.fixture(scope="module")
def found():
    return examine(certeq.learn(logged(7, episodes=60), discount=0.9), draws=80)


def with_part(found, **parts):
    return replace(found, found={**found.found, **parts})


def test_both_intervals_are_told_with_what_they_believe(found):
    credible, *between, outer = list(sentences(found))
    assert credible.startswith("If rows are alike in the way the model believes")
    assert outer.startswith("Whatever the unseen rows are like")
    assert "with a chance of" in credible
    written = to_json(found)
    assert written["words"] == [credible, *between, outer]
    assert written["better"] == found.posterior.difference(ADVICE, RECORDED).better
    low, high = written["credible"][ADVICE]["low"], written["credible"][ADVICE]["high"]
    assert written["outer"]["low"] <= low <= high <= written["outer"]["high"]


def test_advice_that_is_likely_worse_is_the_first_thing_said(found):
    values = found.posterior.state_values.copy()
    values[0] = values[1] - 1
    claimed = found.posterior.claimed.copy()
    claimed[0] = (values[0] @ found.posterior.start).mean()
    worse = with_part(found, posterior=replace(found.posterior, state_values=values, claimed=claimed))
    assert chance(worse) == 0
    assert alerts(worse)[0].startswith("The advice is more likely worse than what was recorded")
    assert not any("more likely worse" in alert for alert in alerts(found))


def test_a_model_that_does_not_fit_is_said_before_anything_else(found):
    doubtful = with_part(found, returns=UNFIT)
    assert alerts(doubtful)[0].startswith(
        "The model does not fit, so no interval of its own can be trusted: over 8 decisions people earned 3"
    )
    assert chance(doubtful) is None
    assert "is not given: over many decisions" in next(sentences(doubtful))


def test_values_are_told_of_the_time_that_was_watched(found):
    forever = with_part(found, posterior=replace(found.posterior, watched=None))
    assert "over 6 decisions" not in " ".join(sentences(forever))
    assert not any("planned for ever" in alert for alert in alerts(forever))
    short = with_part(found, posterior=replace(found.posterior, watched=6))
    assert "following the advice over 6 decisions is worth" in next(sentences(short))
    assert any("watched for 6 decisions" in alert and "--horizon 6" in alert for alert in alerts(short))
    assert to_json(short)["decisions"] == 6


def test_what_flatters_the_advice_counts_in_its_low_end_and_its_chance(found):
    """In full where states are cells; beside what is not known anyway, by its square, where they are as recorded."""
    for exact, least in ((False, 1.5), (True, 0.0)):
        plain, flattered = (replace(found.posterior, flattery=much, exact=exact) for much in (0.0, 1.5))
        low, high = (plain.interval(ADVICE)[i] for i in (1, 2))
        lower, same = flattered.interval(ADVICE)[1:]
        assert same == high
        assert low - lower == pytest.approx(flattered.lowered)
        assert least - 1e-9 <= low - lower <= 1.5 + 1e-9
        assert low - lower > 0
        assert flattered.interval(RECORDED) == plain.interval(RECORDED)
        there, back = flattered.difference(ADVICE, RECORDED), flattered.difference(RECORDED, ADVICE)
        assert there.better <= plain.difference(ADVICE, RECORDED).better
        assert (back.mean, back.low, back.high, back.better) == (-there.mean, -there.high, -there.low, 1 - there.better)
        told = list(sentences(with_part(found, posterior=flattered)))
        assert any("lower than the models alone" in said and "looks 1.5 too good" in said for said in told)


def test_an_advice_that_is_surely_better_has_an_interval_above_0(found):
    """The chance and the interval of a difference are of the same draws: 95% is where the low end is 0."""
    for much, exact in product((0.0, 0.3, 0.6, 1.0, 1.5), (True, False)):
        made = replace(found.posterior, flattery=much, history=much / 3, exact=exact)
        gain = made.difference(ADVICE, RECORDED)
        if gain.better != pytest.approx(0.95, abs=0.02):
            assert (gain.low > 0) == (gain.better > 0.95)


def test_what_states_leave_out_is_taken_off_as_well(found):
    plain, forgetful = (replace(found.posterior, flattery=1.0, history=much) for much in (0.0, 2.0))
    assert forgetful.interval(ADVICE).low == pytest.approx(plain.interval(ADVICE).low - 2.0)
    assert forgetful.difference(ADVICE, RECORDED).better <= plain.difference(ADVICE, RECORDED).better
    told = with_part(found, posterior=forgetful)
    assert any("low end is another 2 lower because of what the states leave out" in said for said in sentences(told))
    assert to_json(told)["history"] == 2.0
    alone = with_part(found, posterior=replace(forgetful, flattery=0.0))
    assert any("low end is 2 lower because of what" in said for said in sentences(alone))


def test_what_the_model_says_too_much_of_people_is_taken_off_and_told(found):
    plain, much = (replace(found.posterior, exact=False, overstated=much) for much in (0.0, 2.0))
    assert much.interval(ADVICE).low == pytest.approx(plain.interval(ADVICE).low - 2.0)
    assert much.difference(ADVICE, RECORDED).better <= plain.difference(ADVICE, RECORDED).better
    told = list(sentences(with_part(found, posterior=replace(much, history=2.0))))
    assert any("low end is 2 lower because of what the states leave out" in said for said in told)
    assert any("low end is another 2 lower because the model, acted in as people acted" in said for said in told)


def test_no_chance_is_told_where_the_advised_pairs_are_thin(found):
    thin = with_part(found, posterior=replace(found.posterior, thin=THIN + 0.1))
    assert chance(thin) is None
    assert "How likely the advice is better is not given: 35%" in next(sentences(thin))
    assert any(alert.startswith("How likely the advice beats") for alert in alerts(thin))
    assert to_json(thin)["better"] is None


def test_thin_decisions_are_weighed_by_how_often_the_model_leads_to_them(found):
    learned, policy = found.learned, found.learned.policy.actions
    rows, gamma = learned.model.transition.dense(), 0.9
    S, A = learned.counts.visits.shape
    often, now = np.zeros((S, A)), found.posterior.start.copy()
    for _ in range(400):
        after = np.zeros(S)
        for s in range(S):
            for a in range(A):
                share = now[s] * (policy[s] == a if policy[s] >= 0 else 1 / A)
                often[s, a] += share
                after += gamma * share * rows[s, a]
        now = after
    assert found.posterior.thin == pytest.approx(often[learned.counts.visits < 5].sum() / often.sum())


def test_without_draws_there_is_nothing_to_tell():
    found = examine(certeq.learn(logged(7), discount=0.9), draws=0)
    assert list(sentences(found)) == []
    assert "No draws" in to_json(found)["missing"]


def test_where_the_model_is_in_doubt_the_outer_interval_is_given(found):
    wide = printed(found.posterior, found.outer, UNFIT)
    low, high = wide.interval(ADVICE)[1:]
    assert (low, high) == (pytest.approx(found.outer.low), pytest.approx(found.outer.high))
    assert wide.interval(RECORDED) == found.posterior.interval(RECORDED)
    plain, more = (each.difference(ADVICE, RECORDED) for each in (found.posterior, wide))
    back = wide.difference(RECORDED, ADVICE)
    assert (more.low, more.high) == (
        pytest.approx(plain.low - wide.doubt[0]),
        pytest.approx(plain.high + wide.doubt[1]),
    )
    assert (back.low, back.high) == (pytest.approx(-more.high), pytest.approx(-more.low))
    assert more.better == plain.better
    astray = with_part(found, posterior=replace(wide, claimed=found.posterior.claimed + 100.0))
    told = list(sentences(astray))
    assert any("since models drawn from the data disagree" in line for line in told)
    assert not any(line.startswith("Whatever the unseen rows are like") for line in told)
    assert chance(astray) is None
    assert "claims" in alerts(astray)[0]


def test_a_claim_within_what_drawn_models_say_is_not_astray(found):
    value = credible(found.posterior.values[0], lower=found.posterior.too_much)
    for claimed, astray in (
        (value.low, False),
        (value.high, False),
        (value.high + 1e-3, True),
        (value.low - 1e-3, True),
    ):
        moved = replace(found.posterior, claimed=np.array([claimed, *found.posterior.claimed[1:]]))
        assert moved.astray == astray
        assert bool(doubt(moved, None)) == astray
    assert doubt(found.posterior, UNFIT)


def test_where_people_knew_more_nothing_is_taken_to_be_counted_twice_and_no_chance_is_told():
    learned = certeq.learn(logged(7, episodes=60), discount=0.9)
    knew = replace(learned, summary=replace(learned.summary, people="People acted on more than the states hold."))
    plain, told = examine(learned, draws=80), examine(knew, draws=80)
    one, other = plain.posterior.interval(ADVICE), told.posterior.interval(ADVICE)
    assert other.low < one.low < one.high < other.high
    assert told.posterior.kept == 1 > plain.posterior.kept
    assert told.posterior.rests == plain.posterior.rests
    assert chance(told) is None
    assert withheld(told) == "people acted on more than the states hold"
    assert any("None of these intervals allows for what people saw" in line for line in sentences(told))
    for lines in ([*sentences(told)], [*worth(told)]):
        assert not any("Whatever the unseen rows are like" in line for line in lines)
    assert [*worth(told)][-1] == "No interval on this page allows for that: the advice may be worth far less, or more."
    assert told.outer.low <= other.low < other.high <= told.outer.high
    unfit = printed(told.posterior, told.outer, UNFIT)
    assert unfit.interval(ADVICE)[1:] == pytest.approx((told.outer.low, told.outer.high))


def test_no_chance_is_told_of_advice_that_is_what_was_done(found):
    values = found.posterior.state_values.copy()
    values[0] = values[1]
    same = with_part(
        found, posterior=replace(found.posterior, state_values=values, claimed=values[:, :, 0].mean(axis=1))
    )
    assert withheld(same) == "it is what was done"
    assert chance(same) is None


def test_no_chance_is_told_that_hangs_on_what_is_taken_off(found):
    gain = np.median(found.posterior.values[0] - found.posterior.values[1])
    assert gain > 0
    bare = found.posterior.bare(RECORDED)
    for much in np.linspace(0.0, 2.0, 9) * gain:
        lowered = with_part(found, posterior=replace(found.posterior, exact=False, flattery=much, overstated=0.0))
        better = lowered.posterior.difference(ADVICE, RECORDED).better
        assert lowered.posterior.bare(RECORDED) == bare
        assert (chance(lowered) is None) == (bare - better > HANGS)
    assert "the models alone say" in next(sentences(lowered))
    assert any("is not given: the models alone say" in alert for alert in alerts(lowered))


def read_numbers(episodes, length, bins):
    world, random = SIMULATORS["machine"], np.random.default_rng(3)
    act = erring(lambda points: np.zeros(len(points), dtype=int), 1.0, len(world.actions), random)
    named = {name: name for name in ("action", "reward", "episode", "time")}
    table = log_points(world, act, episodes, random, length=length)
    return certeq.read(table, state=list(world.columns), ends="never", bins=bins, **named)


def test_cells_cut_from_numbers_take_more_episodes_and_rows_for_a_chance():
    few, some, short = (read_numbers(*size) for size in ((EPISODES - 1, 8, 2), (EPISODES, 8, 2), (EPISODES, 4, 3)))
    found = [examine(certeq.learn(batch, discount=0.9), draws=80) for batch in (few, some, short)]
    reasons = [withheld(with_part(each, posterior=replace(each.posterior, thin=0.0))) for each in found]
    assert reasons[0] == "states are cut from numbers, and there are fewer than 30 episodes"
    assert "cut from numbers" not in reasons[1]
    assert reasons[2] == "states are cut from numbers, and there are fewer than 15 rows for each of them"
