"""Which way is better is said, and asked for where a name suggests the other way."""

import numpy as np
import polars as pl
import pytest

from certeq import learn
from certeq.base.errors import InputError
from certeq.data.check import check
from certeq.data.counting import Tallied, count
from certeq.data.reading import read
from certeq.data.reading.roles import bad_sounding
from certeq.data.request import Request

# in state A, x costs 3 and y costs 1; both lead to B, from where all leads back
ROWS = {
    "state": list("AABB") * 5,
    "action": list("xyxy") * 5,
    "bill": [3.0, 1.0, 2.0, 2.0] * 5,
    "next_state": list("BBAA") * 5,
}


def named(name):
    return {name if column == "bill" else column: values for column, values in ROWS.items()}


@pytest.mark.parametrize(
    "name", ["cost", "died", "death", "loss", "penalty", "readmission", "30_day_readmissions", "totalCost"]
)
def test_a_reward_that_sounds_like_harm_is_asked_about(name):
    with pytest.raises(InputError, match=rf"'{name}' sounds like.*--cost {name}\).*--maximize"):
        read(named(name), reward=name)
    assert read(named(name), cost=name).reward.max() == -1
    assert read(named(name), reward=name, minimize=False).reward.max() == 3


HARMS = """mort mort_28d hospital_mort hospMort28 ICUMortality DEATH_EVENT hospital_expire_flag deceased expired
    bleeding stroke symptoms sofa waiting waitTime price bill readmit no_of_deaths avoidable_deaths late fees charged"""
OTHERS = """amortized billboard billion related filled later latent feed install skilled plate mortgage harmony
    hospitality survived alive no_death uptime savings cost_savings survived_stroke delayed_reward alive_at_discharge
    pain_relief mortality_reduced symptoms_improved"""


@pytest.mark.parametrize("name", HARMS.split())
def test_every_name_with_a_word_for_harm_or_cost_sounds_like_one(name):
    assert bad_sounding(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_words_within_other_words_and_words_for_the_opposite_do_not(name):
    assert not bad_sounding(name)


def test_of_several_harms_and_of_what_may_be_a_measurement_a_person_chooses():
    table = named("deaths") | {"cost": ROWS["bill"]}
    assert check(named("deaths")).request == Request(cost="deaths")
    assert [check(each).request for each in (table, named("sofa"))] == [None, None]
    assert "--cost deaths" in check(table).refused[0]
    assert "--cost sofa" in check(named("sofa")).refused[0]


@pytest.mark.parametrize("name", ["reward", "benefit", "score", "neg_cost", "costume", "deaths_avoided", "lossless"])
def test_other_names_are_not(name):
    assert not bad_sounding(name)
    assert read(named(name), reward=name).reward.max() == 3


def test_less_of_a_cost_is_advised():
    more = learn(read(ROWS, reward="bill", minimize=False), discount=0.5)
    less = learn(read(ROWS, cost="bill"), discount=0.5)
    assert [more.policy.action_names[a] for a in more.policy.actions[:1]] == ["x"]
    assert [less.policy.action_names[a] for a in less.policy.actions[:1]] == ["y"]
    assert more.summary.goal == "Larger 'bill' is better."
    assert less.summary.goal == "Smaller 'bill' is better: rewards are minus it."
    same = learn(read(ROWS, reward="bill", minimize=True), discount=0.5)
    assert np.array_equal(same.plan.values, less.plan.values)


def test_zero_stays_zero():
    free = ROWS | {"bill": [0.0] * 20}
    assert not np.signbit(read(free, cost="bill").reward).any()


def test_contradictions_are_refused():
    with pytest.raises(InputError, match="cost= says both what counts and which way; leave reward= out"):
        read(ROWS, cost="bill", reward="bill")
    with pytest.raises(InputError, match="leave minimize= out"):
        read(ROWS, cost="bill", minimize=False)
    with pytest.raises(InputError, match="minimize= is about the reward column, and there is none"):
        read(ROWS, reward=False, minimize=True)


def test_a_table_with_a_cost_and_no_reward_is_told_the_way():
    with pytest.raises(InputError, match=r"which column is the reward.*--cost cost\)"):
        read(named("cost"))


def test_counts_know_which_way_too(tmp_path):
    pl.DataFrame(ROWS).write_parquet(tmp_path / "rows.parquet")
    counted = count(tmp_path / "rows.parquet", cost="bill")
    counted.save(tmp_path / "counts.npz")
    back = Tallied.load(tmp_path / "counts.npz")
    here, there = learn(read(ROWS, cost="bill")), learn(back)
    assert there.summary.goal == here.summary.goal == "Smaller 'bill' is better: rewards are minus it."
    assert np.array_equal(there.plan.values, here.plan.values)


def test_known_rewards_are_larger_the_better():
    batch = read(ROWS, reward=False)
    assert learn(batch, reward=np.zeros((2, 2))).summary.goal == "Larger rewards are better."
