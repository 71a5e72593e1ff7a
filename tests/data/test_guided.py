"""Whether people acted on more than the states hold: the statistic, its calibration, and what a report makes of it."""

from collections import Counter
from itertools import permutations
from math import erfc, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

import certeq
from certeq.data.guided import FEW, chi_square_above, guided, rising, strongest, telling
from certeq.questions import sure
from certeq.questions.alerts import PEOPLE, alerts, checked
from certeq.report.tell import worth


def pearson(state, place, action):
    """The sum of Pearson's statistics over states, from its definition, each times its rows; constants left out."""
    total = 0.0
    for s in set(state):
        rows = [(h, a) for z, h, a in zip(state, place, action, strict=True) if z == s]
        of_place, of_action = Counter(h for h, _ in rows), Counter(a for _, a in rows)
        total += len(rows) * sum(c * (c - 1) / (of_place[h] * of_action[a]) for (h, a), c in Counter(rows).items())
    return total


def shuffled(state, place, action):
    """The statistic of every way to deal the actions of each state to its rows."""
    groups = [[i for i, z in enumerate(state) if z == s] for s in sorted(set(state))]
    ways = [list(action)]
    for rows in groups:
        dealt = [dict(zip(rows, order, strict=True)) for order in permutations([action[i] for i in rows])]
        ways = [[way.get(i, one[i]) for i in range(len(action))] for one in ways for way in dealt]
    return [pearson(state, place, one) for one in ways]


@settings(max_examples=30, deadline=None)
@example(357805)  # the same however it is shuffled, but for rounding
@given(st.integers(0, 10**6))
def test_mean_and_variance_are_those_of_all_shuffles(seed):
    """The p value is that of the chi-squared tail at the exact standard score; both are undone here."""
    from scipy.stats import chi2

    random = np.random.default_rng(seed)
    state = np.array([0, 0, 0, 0, 0, 7, 7, 7])
    place, action = random.integers(3, size=8), random.integers(3, size=8)
    share, p = telling(state, place, action)
    values = np.array(shuffled(state, place, action))
    freedom = sum((len({*place[state == s]}) - 1) * (len({*action[state == s]}) - 1) for s in (0, 7))
    if not freedom or values.std() < 1e-9:
        assert (share, p) == (0.0, 1.0)
        return
    score = (pearson(state, place, action) - values.mean()) / values.std()
    assert p == pytest.approx(chi2.sf(max(freedom + score * np.sqrt(2 * freedom), 0.0), freedom), rel=1e-6)


def test_the_share_is_what_a_guess_by_shares_gains_and_nothing_on_average_by_chance():
    state, place = np.zeros(8, dtype=int), np.repeat([0, 1], 4)
    assert telling(state, place, place)[0] == pytest.approx(1 - 1 / 7)  # all of it, less what chance would remove
    random = np.random.default_rng(0)
    shares = [telling(np.repeat(np.arange(40), 5), random.integers(2, size=200), random.integers(3, size=200))[0]
              for _ in range(200)]  # fmt: skip
    assert np.mean(shares) < 0.02  # of which those below 0 were cut off


@pytest.mark.parametrize(("n", "states", "odds"), [(380, 20, (1, 1, 1)), (380, 120, (1, 1, 1)), (1000, 30, (95, 5))])
def test_a_coin_is_seldom_taken_for_people_who_saw_more(n, states, odds):
    random, chances = np.random.default_rng(1), np.array(odds) / sum(odds)
    found = []
    for _ in range(300):
        state, x = random.integers(states, size=n), random.exponential(size=n)
        mean = np.bincount(state, x, states) / np.maximum(np.bincount(state, minlength=states), 1)
        found.append(telling(state, (x > mean[state]).astype(int), random.choice(len(odds), size=n, p=chances))[1])
    assert np.mean(np.array(found) <= 0.05) <= 0.08


def clinic(seed=0, n=600, errs=0.2):
    """People treat above a pressure of 0.8, which two cells cannot tell; treating helps there and harms elsewhere."""
    random = np.random.default_rng(seed)
    x = random.random(n)
    act = np.where(random.random(n) < errs, random.integers(2, size=n), x > 0.8)
    paid = np.where(x > 0.8, 2.0 * act, -1.0 * act) - x + 0.1 * random.standard_normal(n)
    names = np.array(["wait", "treat"])
    single = {"patient": np.arange(n), "day": np.zeros(n, dtype=int)}
    return single | {"pressure": x, "age": random.integers(20, 80, size=n), "action": names[act], "reward": paid}


def read(table, bins=2, **more):
    who = {"episode": "patient", "time": "day"}
    return certeq.read(table, state=["pressure", "age"], bins=bins, ends="always", **who, **more)


def test_people_who_saw_more_than_the_cells_are_noticed_and_no_chance_is_told():
    batch = read(clinic())
    told = strongest(guided(batch))
    assert (told.column, told.used) == ("pressure", True)
    findings = certeq.examine(certeq.learn(batch), draws=100)
    assert alerts(findings)[0].startswith(
        "People acted on more than the states hold: within a state 'pressure' removes"
    )
    assert sum("People acted" in alert for alert in alerts(findings)) == 1
    assert sure.chance(findings) is None
    assert "people acted on more than the states hold" in " ".join(worth(findings))
    assert "None of these intervals allows" in " ".join(sure.sentences(findings))
    assert PEOPLE in checked(findings)


def test_cells_that_hold_what_people_saw_and_coins_raise_no_alert():
    for table, bins in ((clinic(), {"pressure": "edges:0.8", "age": 2}), (clinic(errs=1.0), 2)):
        batch = read(table, bins)
        assert [each.column for each in guided(batch)] == ["pressure", "age"]
        assert strongest(guided(batch)) is None
        assert any(
            "people acted on nothing but the state (tested: pressure, age)" in line
            for line in certeq.learn(batch, draws=0).summary.seen
        )


def test_a_column_that_was_left_out_is_named_as_such():
    random = np.random.default_rng(3)
    n = 2000
    x, ward = random.random(n), random.choice(["north", "south"], size=n)
    act = np.where(random.random(n) < 0.2, random.integers(2, size=n), ward == "north")
    single = {"patient": np.arange(n), "day": np.zeros(n, dtype=int)}
    table = single | {"x": x, "ward": ward, "action": act, "reward": x + act * x}
    batch = certeq.read(table, episode="patient", time="day", ends="always")
    assert "ward" in batch.chosen.unused
    told = strongest(guided(batch))
    assert (told.column, told.used) == ("ward", False)
    assert "'ward', which is not part of them, removes" in certeq.learn(batch, draws=0).summary.alerts[0]


def school(seed, noise=0.1, students=40, habit=0.0):
    """Teachers know a pupil's skill and mostly help as it needs; the log has a score of it, with noise."""
    random = np.random.default_rng(seed)
    rows = []
    for student in range(students):
        skill, before = random.random(), None
        for lesson in range(20):
            score = skill + noise * random.normal()
            best = int(skill > 0.35) + int(skill > 0.7)
            does = before if before is not None and random.random() < habit else best
            does = does if random.random() < 0.85 else int(random.integers(3))
            gain = (0.05 if does == best else -0.01) + 0.03 * random.normal()
            rows.append((student, lesson, round(float(score), 2), "abc"[does], float(gain)))
            skill, before = float(np.clip(skill + gain - 0.02, 0, 1)), does
    return dict(zip(("student", "lesson", "score", "help", "gain"), map(list, zip(*rows, strict=True)), strict=True))


def read_school(table, way):
    named = {"state": "score", "action": "help", "reward": "gain", "episode": "student", "time": "lesson"}
    return certeq.read(table, ends="never", bins={"score": way}, **named)


@pytest.mark.parametrize("seed", range(4))
def test_people_who_remembered_more_than_a_noisy_value_tells_are_noticed(seed):
    batch = read_school(school(seed), "quantile:8")
    found = [each for each in guided(batch) if each.before]
    assert [each.column for each in found] == ["score"]
    told = strongest(guided(batch))
    assert told is not None
    alert = certeq.learn(batch, draws=0).summary.alerts[0]
    assert "People acted on more than the states hold" in alert
    if told.before:
        assert "what 'score' was one row before removes" in alert
        assert "Add a column with what 'score' was before" in alert


def test_no_chance_is_told_of_advice_for_people_who_remembered():
    batch = read_school(school(1), "labels")
    assert strongest(guided(batch)).before
    findings = certeq.examine(certeq.learn(batch), draws=100)
    assert sure.chance(findings) is None
    assert "None of these intervals allows" in " ".join(sure.sentences(findings))


def test_habits_that_go_on_raise_no_alert_where_states_hold_what_matters():
    """What was before tells the action, since people go on with what they do; but it does not tell what follows."""
    noticed = [strongest(guided(read_school(school(seed, noise=0.0, habit=0.5), "labels"))) for seed in range(30)]
    assert sum(found is not None for found in noticed) <= 6


def test_a_single_episode_first_rows_and_what_never_changes_have_no_history():
    table = school(0) | {"age": [int(student) % 5 for student in school(0)["student"]]}
    batch = certeq.read(table, action="help", reward="gain", episode="student", time="lesson", ends="never")
    assert [*batch.history] == ["score"]
    first = batch.time == 0
    assert (batch.history["score"][first, 0] == -1).all()
    assert (batch.history["score"][~first] >= 0).all()
    assert not [each for each in guided(batch.take(np.arange(FEW - 1))) if each.before]


@given(st.integers(0, 10**6))
def test_rising_together_is_held_against_all_shuffles(seed):
    random = np.random.default_rng(seed)
    group, one, other = np.array([0, 0, 0, 0, 3, 3, 3]), random.integers(4, size=7), random.integers(3, size=7)
    means = np.array([one[group == g].mean() for g in group])
    found = [
        sum((x - m) * y for x, m, y in zip(one, means, [*(other[:4][list(p)]), *(other[4:][list(q)])], strict=True))
        for p in permutations(range(4))
        for q in permutations(range(3))
    ]
    spread, seen = np.std(found), sum((one - means) * other)
    assert np.mean(found) == pytest.approx(0, abs=1e-12)
    expected = 1.0 if spread < 1e-12 else erfc(abs(seen) / spread / sqrt(2))
    assert rising(group, one, other) == pytest.approx(expected)
    assert rising(group, 5 - one, other) == pytest.approx(expected)


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_neither_names_nor_the_order_of_rows_matter_to_what_was_before(seed):
    table, random = school(7, students=20), np.random.default_rng(seed)
    order = random.permutation(len(table["score"]))
    other = {name: [column[i] for i in order] for name, column in table.items()}
    other["help"] = [{"a": "z", "b": "m", "c": "k"}[one] for one in other["help"]]
    for bins in ("quantile:4", "labels"):
        one, two = (guided(read_school(each, bins)) for each in (table, other))
        assert [(a.column, a.before, a.rows) for a in one] == [(b.column, b.before, b.rows) for b in two]
        for a, b in zip(one, two, strict=True):
            assert (a.share, a.p_value) == pytest.approx((b.share, b.p_value), rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_neither_names_nor_the_order_of_rows_matter(seed):
    random = np.random.default_rng(seed)
    table, order = clinic(seed=5, n=150), random.permutation(150)
    other = {name: column[order] for name, column in table.items()}
    other["action"] = np.where(other["action"] == "wait", "b", "a")
    one, two = (guided(read(each)) for each in (table, other))
    for a, b in zip(one, two, strict=True):
        assert (a.column, a.rows) == (b.column, b.rows)
        assert (a.share, a.p_value) == pytest.approx((b.share, b.p_value), rel=1e-9)


def test_missing_values_few_rows_and_taken_rows():
    table = clinic(n=300)
    table["age"] = np.where(np.arange(300) % 7 == 0, np.nan, table["age"])
    batch = read(table, missing="category")
    assert {name: len(place) for name, place in batch.within.items()} == {"pressure": 300, "age": 300}
    some = batch.take(np.arange(150))
    assert all(len(place) == 150 for place in some.within.values())
    assert guided(batch.take(np.arange(99))) == ()
    assert len(guided(some)) == 2


@given(st.integers(1, 5000), st.floats(0, 20))
def test_the_tail_of_chi_square_is_what_scipy_says(freedom, far):
    x = freedom * far
    expected = chdtrc(freedom, x)
    assert chi_square_above(float(freedom), x) == pytest.approx(expected, rel=1e-9, abs=1e-300)
