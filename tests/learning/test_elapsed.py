"""Elapsed time: a semi-Markov world with a known truth, weights by hand, Theorem 1 for unequal steps, and bad input."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

import certeq
import naive
from certeq import Batch, InputError, solve
from certeq.learning.elapsed import fading, share
from certeq.learning.learned import learn
from certeq.report import checklist, learned_page

GAMMA = 0.9
# A workshop: a machine runs (0) or is down (1). Down, a quick fix (0) takes a day or two and often fails; an overhaul
# (1) takes about eight days and holds. Running, one may go on (0) for about ten days, or check it (1) every day.
ROWS = np.array([[[0.7, 0.3], [0.95, 0.05]], [[0.3, 0.7], [0.98, 0.02]]])
MEAN_DAYS = np.array([[10.0, 1.0], [1.5, 8.0]])
REWARD = np.array([[10.0, 0.9], [0.0, 0.0]])


def true_fade(gamma: float = GAMMA):
    """E γ^Δt where Δt is geometric, 1, 2, ... days, with this mean: p γ / (1 - (1 - p) γ)."""
    p = 1 / MEAN_DAYS
    return p * gamma / (1 - (1 - p) * gamma)


def logged(n: int, rng: int) -> Batch:
    random = np.random.default_rng(rng)
    state, action, then, days = np.zeros((4, n), dtype=np.int64)
    s = 0
    for i in range(n):
        a = random.integers(2)
        state[i], action[i], days[i] = s, a, random.geometric(1 / MEAN_DAYS[s, a])
        s = then[i] = random.choice(2, p=ROWS[s, a])
    return Batch(
        state, action, then, 2, 2, reward=REWARD[state, action], episode=np.arange(n) // 100, time=np.arange(n) % 100,
        duration=days, unit="day",
    )  # fmt: skip


def test_in_a_semi_markov_world_time_is_what_the_truth_says_it_is() -> None:
    truth = solve(ROWS * true_fade()[..., None], REWARD, 1.0)
    batch = logged(20_000, rng=0)
    learned = learn(batch, discount=GAMMA)
    assert (learned.policy.actions == truth.policy).all()
    assert learned.plan.values == pytest.approx(truth.values, rel=0.05)
    as_steps = learn(replace(batch, duration=None), discount=GAMMA)  # as if each took a day
    assert (as_steps.policy.actions != truth.policy).any()
    assert learned.plan.outcome == "optimal"


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_sums_of_discounts_kept_for_each_outcome(seed: int) -> None:
    random = np.random.default_rng(seed)
    batch = logged(60, seed)
    batch = replace(batch, next_state=np.where(random.random(60) < 0.1, -1, batch.next_state), episode=None)
    learned = learn(batch, discount=GAMMA, regularizer="none", unvisited="zero", min_share=0.0)
    rows = list(zip(batch.state, batch.action, batch.next_state, batch.duration, strict=True))
    twin = naive.semi_markov_rows(rows, GAMMA, 2, 2)
    made = learned.model.transition.dense() * learned.case.fade
    assert made == pytest.approx(twin, abs=1e-12)
    assert (made.sum(axis=-1) < 1).all()
    assert learned.plan.values == pytest.approx(solve(twin, learned.reward, 1.0).values)
    # regularized, it is still the one line: data and target, each with what their outcomes count for
    other = learn(batch, discount=GAMMA, regularizer="uniform_blend", strength=0.3, unvisited="zero", min_share=0.0)
    fade, target = other.case.fade, other.shrinkage.target.dense()
    line = 0.7 * twin + 0.3 * target * fade
    assert other.model.transition.dense() * fade == pytest.approx(line, abs=1e-12)


def test_what_was_never_seen_takes_as_long_as_its_pair_or_as_everything() -> None:
    batch = Batch([0, 0, 1], [0, 0, 0], [1, 1, 0], 3, 2, reward=[0, 0, 0], duration=[1.0, 3.0, 2.0])
    fade = fading(batch, 0.5)
    assert fade[0, 0].tolist() == [0.3125, 0.3125, 0.3125]  # (1/2 + 1/8) / 2
    assert fade[1, 0].tolist() == [0.25, 0.25, 0.25]
    assert fade[2, 1] == pytest.approx(np.full(3, (0.5 + 0.125 + 0.25) / 3))


def test_steps_of_one_unit_change_nothing() -> None:
    batch = logged(300, rng=1)
    alike = learn(replace(batch, duration=np.ones(300)), discount=GAMMA)
    plain = learn(replace(batch, duration=None), discount=GAMMA)
    assert alike.plan.values == pytest.approx(plain.plan.values)
    assert alike.policy.action_values == pytest.approx(plain.policy.action_values)
    for horizon in (1, 5):
        one, other = (
            learn(replace(batch, duration=d), discount=GAMMA, horizon=horizon).plan.values for d in (None, np.ones(300))
        )
        assert one == pytest.approx(other)


def test_theorem_1_for_unequal_steps() -> None:
    """A lower discount is a weight toward ending: 1 - (γp/γ)^Δt, the same for all pairs only if steps are alike.

    Where they are, a uniform blend of that weight gives the same policy, as Theorem 1 says; where they are not, the
    long steps are trusted less than the short ones, and no single weight does the same.
    """
    random = np.random.default_rng(0)
    lower, S, A, differs = 0.6, 4, 3, 0
    for _ in range(40):
        rows, reward = random.dirichlet(np.ones(S), size=(S, A)), random.normal(size=(S, A))
        for lasted in (np.full((S, A), 2.0), random.integers(1, 12, size=(S, A)).astype(float)):
            weight = 1 - (lower / GAMMA) ** lasted
            fade = GAMMA ** lasted[..., None]
            low = solve(rows * lower ** lasted[..., None], reward, 1.0)
            ending = solve((1 - weight)[..., None] * rows * fade, reward, 1.0)
            assert ending.values == pytest.approx(low.values)
            one = float(weight.mean())
            blend = solve(((1 - one) * rows + one / S) * fade, reward, 1.0)
            if (lasted == 2).all():
                assert (blend.policy == low.policy).all()
            else:
                differs += bool((blend.policy != low.policy).any())
    assert differs > 10


def test_rewards_count_when_they_are_paid() -> None:
    lasted = np.array([0.5, 1.0, 7.0])
    assert share(lasted, GAMMA, "start").tolist() == [1, 1, 1]
    assert share(lasted, GAMMA, "end") == pytest.approx(GAMMA**lasted)
    fine = (np.arange(200_000) + 0.5) / 200_000
    by_hand = [(GAMMA ** (fine * d)).mean() for d in lasted]  # a little at each moment of the step
    assert share(lasted, GAMMA, "evenly") == pytest.approx(by_hand, rel=1e-6)
    assert share(lasted, 1.0, "evenly").tolist() == [1, 1, 1]
    batch = logged(200, rng=0)
    for paid in ("end", "evenly"):
        counted = batch.reward * share(batch.duration, GAMMA, paid)
        assert learn(batch, discount=GAMMA, paid=paid, reward_pool="none").table == pytest.approx(
            learn(replace(batch, reward=counted), discount=GAMMA, reward_pool="none").table
        )


# ---- reading ----

VISITS = {
    "patient": [1, 1, 1, 2, 2],
    "date": ["2024-01-01", "2024-01-03", "2024-02-01", "2024-01-01", "2024-01-02"],
    "state": ["a", "b", "a", "b", "a"],
    "action": ["x", "y", "x", "y", "x"],
    "reward": [1.0, 0.0, 1.0, 2.0, 0.0],
}


def test_dates_are_read_in_days_and_gaps_are_no_longer_refused() -> None:
    with pytest.raises(InputError, match=r"has a gap.*duration='times' \(--duration times\)"):
        certeq.read(VISITS, ends="never")
    batch = certeq.read(VISITS, ends="never", duration="times")
    assert batch.duration.tolist() == [2, 29, 1]
    assert batch.unit == "day"
    hours = VISITS | {"date": [datetime(2024, 1, 1) + timedelta(hours=h) for h in (0, 6, 12, 0, 36)]}
    assert certeq.read(hours, ends="never", duration="times").duration.tolist() == [0.25, 0.25, 1.5]
    numbers = VISITS | {"date": [0, 3, 10, 0, 1]}
    batch = certeq.read(numbers, time="date", ends="never", duration="times")
    assert (batch.duration.tolist(), batch.unit) == ([3, 7, 1], "unit of 'date'")
    assert "duration" not in learn(batch).policy.to_bytes().decode()


def test_a_column_of_durations_is_read_and_may_be_missing_at_the_end() -> None:
    table = VISITS | {"days": [2.0, 29.0, None, 1.0, None]}
    batch = certeq.read(table, duration="days", ends="always")
    assert batch.duration.tolist() == [2, 29, 0, 1, 0]
    shown = certeq.check(table, duration="days", ends="always")
    assert any("1 to 29 units of 'days' later, median 2" in line and "1 of 3 steps" in line for line in shown.lines())
    learned = learn(batch, discount=0.5)
    assert "the discount of 0.5 is for one unit of 'days'" in learned.summary.decisions[0]
    with pytest.raises(InputError, match="ended its episode, and its duration is missing"):
        learn(batch, discount=0.5, paid="end")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"duration": "day"}, "no column 'day' to be the duration.*Did you mean 'days'"),
        ({"duration": "days"}, "Row 1.*: the duration 'days' is 0, but must be a number above 0"),
        ({"duration": "blank"}, "the duration 'blank' is missing"),
        ({"duration": "times", "time": False}, r"there is no time column\. Name it with time="),
        ({"duration": "times", "next_state": "then"}, "rows hold their own next state"),
    ],
)
def test_durations_that_cannot_be_read_are_refused_in_words(said, words) -> None:
    more = {"days": [0.0, 1, 1, 1, 1], "blank": [None, 1, 1, 1, 1], "then": ["b", "a", "a", "a", "b"]}
    told = {"next_state": False, "time": "date"} | said
    with pytest.raises(InputError, match=words):
        certeq.read(VISITS | more, ends="never", state="state", **told)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"regularizer": "discount", "planning_discount": 0.5}, "say a lower discount= instead"),
        ({"average": True}, "an average is of decisions"),
        ({"limit": "x<=3"}, "a limit adds up by decisions"),
    ],
)
def test_rules_that_count_steps_are_refused_where_time_counts(said, words) -> None:
    with pytest.raises(InputError, match=words):
        learn(logged(50, rng=0), **({"discount": GAMMA} | said))


def test_paid_needs_durations_and_durations_must_be_later() -> None:
    with pytest.raises(InputError, match="is about steps that have a duration"):
        learn(replace(logged(50, rng=0), duration=None), paid="end")
    with pytest.raises(InputError, match="the next decision must come later"):
        replace(logged(5, rng=0), duration=[1, 1, 0, 1, 1])


def test_what_takes_steps_to_be_alike_is_withheld_in_words() -> None:
    batch = logged(200, rng=0)
    learned = learn(batch, discount=GAMMA)
    found = certeq.examine(learned, draws=10)
    for name in ("posterior", "off_policy", "audit", "path", "fragility", "collect", "outer", "returns"):
        assert "steps that are equally long" in found.missing[name]
    page = learned_page.render(found)
    assert "discounted by 0.9 for each day" in page
    assert "each day discounted by 0.9" in checklist.write(found)
    policy = learned.policy.actions
    asks = (
        lambda: certeq.audit(batch, 0.5, discount=GAMMA),
        lambda: certeq.collect_next(learned),
        lambda: certeq.questions.off_policy.off_policy(batch, policy, GAMMA),
        lambda: certeq.questions.posterior.posterior(learned.model, learned.table, GAMMA, {"a": policy}, batch=batch),
    )
    for ask in asks:
        with pytest.raises(InputError, match="steps that are equally long"):
            ask()
