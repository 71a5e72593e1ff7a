"""Groups: a world in which the advice helps most and harms some, with a known truth; counting against a slow twin."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

import certeq
from certeq.learning.learned import learn
from certeq.questions.groups import Groups, groups
from certeq.report.learned_page import render

GAMMA = 0.5
TRUTH = {"old": 1.0, "young": -1.0}  # what "new" earns more than "usual"


def world(seed=0, episodes=(90, 30), length=8, tiny=0):
    """Two actions at random; "new" earns 1 more than "usual" for the old, and 1 less for the young, who are fewer."""
    rng = np.random.default_rng(seed)
    rows = {name: [] for name in ("who", "t", "ward", "age", "action", "reward")}
    ages = ["old"] * episodes[0] + ["young"] * episodes[1] + ["middle"] * tiny
    for who, age in enumerate(ages):
        for t in range(length):
            action = rng.choice(["new", "usual"])
            effect = {"old": 1, "young": -1, "middle": 0}[age] * (action == "new")
            line = (who, t, rng.choice(["A", "B"]), age, action, effect + 0.3 * rng.normal())
            for name, value in zip(rows, line, strict=True):
                rows[name].append(value)
    return rows


def learned(table, **said):
    how = {"by": "age"} | said
    return learn(certeq.read(table, episode="who", time="t", ends="never", **how), discount=GAMMA, min_chance=0)


def true_gain(batch, name):
    """What "new" earns more than what was done in a group as often as it was done there, from where episodes began.

    Wards follow one another at random: V(s) = r(s) + GAMMA/(1 - GAMMA) times the mean of r.
    """
    mine = batch.group == batch.group_names.index(name)
    state, usual = batch.state[mine], batch.action_names.index("usual")
    lost = np.array([(batch.action[mine][state == s] == usual).mean() for s in (0, 1)])
    begin = np.bincount(state[batch.time[mine] == 0], minlength=2) / (batch.time[mine] == 0).sum()
    return TRUTH[name] * (begin @ lost + GAMMA / (1 - GAMMA) * lost.mean())


def test_groups_are_no_states_unless_asked():
    table = world()
    batch = certeq.read(table, episode="who", time="t", by="age", ends="never")
    assert batch.recipe.column_names == ("ward",)
    assert (batch.by, batch.group_names) == ("age", ("old", "young"))
    assert len(batch.take(batch.group == 1)) == 30 * 7
    both = certeq.read(table, episode="who", time="t", by="age", state=["ward", "age"], ends="never")
    assert both.recipe.column_names == ("ward", "age")
    assert np.array_equal(both.group, batch.group)


def test_the_advice_that_helps_most_and_harms_some_is_found_out():
    case = learned(world())
    assert case.policy.act({"ward": ["A", "B"]}) == ["new", "new"]
    found = groups(case, draws=200)
    old, young = found["old"], found["young"]
    for group in (old, young):
        assert group.gain.low < true_gain(case.batch, group.name) < group.gain.high
        assert group.gain.high - group.gain.low < 1
    assert young.apart.low < TRUTH["young"] - TRUTH["old"] < young.apart.high < 0
    assert (old.gain.better, young.gain.better) == (1, 0)
    (alert,) = found.alerts()
    assert "'young'" in alert
    assert "more likely worse" in alert
    assert any("'young' gains" in line and "less from the advice than 'old'" in line for line in found.lines())


@pytest.mark.slow
def test_intervals_of_groups_hold_the_truth_about_nine_times_out_of_ten():
    held = {"old": 0, "young": 0, "apart": 0}
    for seed in range(60):
        case = learned(world(seed, episodes=(40, 20)))
        found = groups(case, draws=100, rng=seed)
        gains = {name: true_gain(case.batch, name) for name in TRUTH}
        for name, truth in gains.items():
            held[name] += found[name].gain.low < truth < found[name].gain.high
        low, high = found["young"].apart[1:]
        held["apart"] += low < gains["young"] - gains["old"] < high
    assert min(held.values()) > 47, held  # 47 or fewer of 60 would happen once in a hundred times


def test_counting_is_what_a_slow_twin_counts():
    table = world(seed=3, tiny=2)
    case = learned(table)
    found = groups(case, draws=0)
    advice = dict(zip("AB", case.policy.act({"ward": ["A", "B"]}), strict=True))
    lines = [line for line in zip(*table.values(), strict=True) if line[1] < 7]  # the last row has no next state
    for age in ("old", "young", "middle"):
        mine = [line for line in lines if line[3] == age]
        tried = {w: sum(line[2] == w and line[4] == advice[w] for line in mine) for w in "AB"}
        group = found[age]
        assert group.rows == len(mine)
        assert group.episodes == len({line[0] for line in mine})
        assert group.supported == pytest.approx(np.mean([tried[line[2]] >= 5 for line in mine]))
        assert group.agreement[0] == pytest.approx(np.mean([line[4] == advice[line[2]] for line in mine]))
        assert group.agreement[1] < group.agreement[0] < group.agreement[2]
        assert group.gain is None
    assert [group.little for group in found.groups] == [False, False, True]
    assert "1 group has little support: 'middle'" in found.alerts()[0]
    more = found["young"].agrees_more
    assert more[0] == pytest.approx(found["young"].agreement[0] - found["old"].agreement[0])


def test_agreement_of_single_rows_has_wilsons_interval_and_that_of_episodes_is_wider():
    from certeq.questions.groups import _agreement

    same = np.array([True] * 30 + [False] * 10)
    wilson = binomtest(30, 40).proportion_ci(0.9, method="wilson")
    assert _agreement(same, np.arange(40)) == pytest.approx((0.75, *wilson), abs=2e-3)
    assert _agreement(same, np.arange(40) // 10)[2] - 0.75 > wilson.high - 0.75
    assert _agreement(np.ones(40, dtype=bool), np.arange(40) // 4)[1] == pytest.approx(
        binomtest(10, 10).proportion_ci(0.9, method="wilson").low
    )


def test_an_episode_belongs_to_the_group_of_its_first_row_and_missing_is_a_group():
    table = world(episodes=(12, 12))
    table["age"][3], table["age"][8 * 23] = "young", None
    batch = certeq.read(table, episode="who", time="t", by="age", ends="never")
    assert batch.group_names == ("old", "young", "missing")
    assert np.bincount(batch.group).tolist() == [12 * 7, 11 * 7, 7]
    assert any("'age' changes within 2 episodes" in note for note in batch.notes)


def test_numbers_are_cut_and_bad_columns_are_refused_in_words():
    table = world(episodes=(10, 10)) | {"years": list(np.repeat(np.arange(20) * 1.5, 8))}
    table["years"][0] = 77.7
    told = {"episode": "who", "time": "t", "ends": "never", "state": "ward"}
    with pytest.raises(certeq.InputError, match=r"'years' has 21 different values.*--bins years=quantile:3"):
        certeq.read(table, by="years", **told)
    cut = certeq.read(table, by="years", bins={"years": "quantile:2"}, **told)
    assert len(cut.group_names) == 2
    with pytest.raises(certeq.InputError, match="no column 'sex' to be the group"):
        certeq.read(table, by="sex", **told)
    with pytest.raises(certeq.InputError, match="by is one column"):
        certeq.read(table, by=["age", "ward"], **told)
    with pytest.raises(certeq.InputError, match=r"No groups were named.*--by"):
        groups(learned(world(), by=None))


@pytest.mark.slow
def test_the_report_has_a_block_only_where_groups_were_named_and_hides_small_ones():
    found = certeq.examine(learned(world(tiny=1)), draws=40)
    assert isinstance(found.groups, Groups)
    page = render(found)
    assert "Group by group" in page
    assert ">young<" in page
    hidden = render(found, suppress_below=10)
    row = hidden.split(">middle<")[1].split("</tr>")[0]
    assert "&lt;10" in row
    assert "%" not in row
    without = certeq.examine(learned(world(), by=None), draws=0)
    assert without.groups is None
    assert "groups" not in without.missing
    assert "Group by group" not in render(without)


def test_groups_with_a_horizon_are_advised_by_the_decision():
    batch = certeq.read(world(), episode="who", time="t", by="age", ends="never")
    found = groups(learn(batch, discount=1.0, horizon=3, min_chance=0), draws=60)
    assert found["old"].supported == 1  # rows after the third decision do not count against it
    assert found["old"].gain.low < 1.5 < found["old"].gain.high  # three decisions, half a reward each
    assert found["young"].gain.high < 0


def test_of_a_group_with_little_support_no_value_is_told_and_no_difference():
    found = groups(learned(world(tiny=1)), draws=40)
    tiny = found["middle"]
    assert tiny.little
    assert (tiny.value, tiny.gain, tiny.apart) == (None, None, None)
    assert not any("'middle' gains" in line for line in found.lines())
    assert found["young"].apart is not None
    assert any("'young' gains" in line for line in found.lines())
    few = groups(learned(world(episodes=(5, 4))), draws=40)
    assert all(group.value is None and group.apart is None for group in few.groups)
    assert not any("No group clearly" in line for line in few.lines())


def test_a_group_may_be_what_was_done_or_who_it_was_and_does_not_take_these_columns_away():
    table = world(episodes=(3, 2))
    batch = certeq.read(table, episode="who", time="t", state="ward", by="action", ends="never")
    assert (batch.action_names, batch.group_names) == (("new", "usual"), ("new", "usual"))
    renamed = {"patient": table["who"], "visit_date": table["t"], **{n: table[n] for n in ("ward", "action", "reward")}}
    each = certeq.read(renamed, state="ward", by="patient", ends="never")
    assert len(each.group_names) == len(np.unique(each.episode)) == 5
    assert each.time.tolist() == [0, 1, 2, 3, 4, 5, 6] * 5


def test_what_groups_gain_is_not_told_where_people_acted_on_more_than_the_states_hold():
    plain = learned(world())
    knew = replace(plain, summary=replace(plain.summary, people="People acted on more than the states hold."))
    told, untold = groups(plain, draws=40), groups(knew, draws=40)
    assert all(group.gain is not None for group in told.groups)
    assert all(group.gain is None is group.apart and group.value is not None for group in untold.groups)
    assert not any("gains" in line and "not given" not in line for line in untold.lines())
    assert untold.lines()[-1] == "What a group gains is not given: people acted on more than the states hold."
    assert untold.alerts() == []
