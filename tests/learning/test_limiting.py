"""Limits: in a ward with a known truth the advice keeps them, at prices that the frontier tells, and chances follow."""

from dataclasses import replace

import numpy as np
import pytest

import certeq
from certeq import MDP, InputError, evaluate, sampling
from certeq.base.display import number
from certeq.learning.case import Case, Data
from certeq.learning.learned import learn
from certeq.learning.limiting import constrained, cost_case
from certeq.planners.constrained import Constrained, frontier, keep
from certeq.questions.asking import Asking
from certeq.questions.episodes import behavior
from certeq.questions.findings import Findings
from certeq.questions.frontier import ASKED, understated
from certeq.questions.sure import net, sentences
from certeq.report import checklist, learned_page, tell
from certeq.report.style import to_png

GAMMA = 0.9
# A ward: well, ill, very ill. Drugs help, the stronger the more, and are given in units: 0, 1 or 3.
HELPS = (0.1, 0.4, 0.8)
UNITS = np.tile([0.0, 1.0, 3.0], (3, 1))


def ward() -> MDP:
    rows = np.zeros((3, 3, 3))
    for s in range(3):
        for a, helps in enumerate(HELPS):
            better, worse = max(s - 1, 0), min(s + 1, 2)
            rows[s, a, better] += helps
            rows[s, a, worse] += (1 - helps) * 0.6
            rows[s, a, s] += (1 - helps) * 0.4
    return MDP(rows, np.array([[0.0], [-1.0], [-3.0]]) * np.ones(3), GAMMA, start=[0.2, 0.4, 0.4])


def logged(episodes: int, rng: int) -> certeq.Batch:
    batch = sampling.trajectories(ward(), episodes, 12, rng=rng)
    return replace(batch, beside={"units": UNITS[0][batch.action]})


def true_frontier():
    truth = ward()
    return frontier(Constrained(truth.transition, truth.reward, UNITS[None], GAMMA, truth.start))


def test_in_a_ward_with_a_known_truth_the_advice_keeps_the_limit_and_earns_what_it_allows() -> None:
    truth, best = ward(), true_frontier()
    batch = logged(3000, rng=1)
    found = certeq.frontier(learn(batch, discount=GAMMA))
    assert found.costs[-1] == pytest.approx(best[-1].costs[0], rel=0.05)
    for limit in (4.0, 8.0, 15.0):
        learned = learn(batch, discount=GAMMA, limit=f"units<={limit}")
        policy = learned.policy.actions
        spent = evaluate(truth.transition, UNITS, GAMMA, policy) @ truth.start
        earned = evaluate(truth.transition, truth.reward, GAMMA, policy) @ truth.start
        assert spent <= limit * 1.03
        at_most = np.interp(limit, [c.costs[0] for c in best], [c.value for c in best])
        corners = [c.value for c in best if c.costs[0] <= limit]
        assert max(corners) - 0.3 <= earned <= at_most + 0.1
        assert found.value_at(limit) == pytest.approx(at_most, rel=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_learned_at_the_price_is_the_corner_that_keeps_the_limit(seed: int) -> None:
    batch = logged(60, rng=seed)
    for limit in (3, 7, 12):
        learned = learn(batch, discount=GAMMA, limit=f"units<={limit}")
        kept = learned.limited.kept
        assert (learned.policy.actions == kept.corner.policy).all()
        told = certeq.frontier(learned)
        assert told.advice == pytest.approx((kept.corner.costs[0], kept.corner.value))
        assert told.advice[0] <= limit + 1e-9
        assert told.value_at(limit) == pytest.approx(kept.value, abs=1e-8)
        assert (told.policy_at(limit) == learned.policy.actions).all()


def test_a_limit_that_does_not_bind_leaves_rewards_as_they_are() -> None:
    batch = logged(60, rng=0)
    free = learn(batch, discount=GAMMA, limit="units <= 1000")
    assert "keeps units<=1000 without being charged for it" in free.summary.decisions[0]
    assert free.rules.limit == ("units<=1000",)
    assert (free.policy.actions == learn(batch, discount=GAMMA, reward_pool="none").policy.actions).all()


def test_values_net_of_a_charge_are_called_so_and_the_gain_without_it_is_told_beside_them() -> None:
    learned = certeq.learn(logged(60, rng=1), discount=GAMMA, limit="units<=4", draws=40)
    case, told = learned.limited.case, ASKED.ask(Asking(learned, 40, 0, 0.0, None, {}))
    found = Findings(learned, {"posterior": learned.answers["posterior"], "frontier": told}, {})
    policies = {"advice": learned.policy.actions, "done": behavior(learned.counts)}
    drawn = certeq.questions.posterior.posterior(
        case.model, case.table, GAMMA, policies, rewards=case.rewards, batch=case.data.batch, case=case, draws=40
    )
    assert told.gain.mean == pytest.approx((drawn.values[0] - drawn.values[1]).mean())
    words = " ".join(sentences(found))
    assert "net of the charge" in words
    assert f"a gain of {number(told.gain.mean)}" in words
    short, first = dict(tell.in_short(found, 0, 0)), " ".join(tell.worth(found))
    assert "net of the charge" in short["sure"]
    assert "net of the charge" in first
    assert f"a gain of {number(told.gain.mean)}" in first
    unsure = int((learned.policy.chance < 0.8).sum())  # one action is advised all the same, and not called clear
    assert unsure
    assert learned.summary.clear == 3 - unsure
    assert short["policy"] == f"One action is clearly best in {3 - unsure} of 3 states with a choice"
    free = certeq.learn(logged(60, rng=1), discount=GAMMA, limit="units<=400", draws=8)
    assert net(Findings(free, {}, {})) == ""


def test_advice_that_was_chosen_since_it_keeps_a_limit_uses_more_elsewhere_and_by_how_much_is_added() -> None:
    batch, names = logged(20, rng=5), ("units<=8",)
    case = learn(batch, discount=GAMMA, limit=names).limited.case
    there, apart = constrained(case, ["units"]), []
    for random in np.random.default_rng(3).spawn(10):  # the twin: episode by episode
        drawn = random.integers(20, size=20)
        rows = np.concatenate([np.flatnonzero(batch.episode == np.unique(batch.episode)[e]) for e in np.sort(drawn)])
        again = constrained(Case(Data.of_rows(batch.take(rows)), case.rules), ["units"])
        chosen = keep(replace(again, start=there.start), np.array([8.0])).corner
        used = evaluate(there.model, there.costs[0], GAMMA, chosen.policy) @ there.start
        apart.append(used - chosen.costs[0])
    assert understated(case, draws=10, rng=3) == pytest.approx([max(np.mean(apart), 0)])


def test_a_horizon_keeps_limits_too() -> None:
    learned = learn(logged(60, rng=0), discount=1.0, horizon=4, limit="units<=3")
    assert learned.policy.actions.shape == (4, 3)
    told = certeq.frontier(learned)
    assert told.advice[0] <= 3 + 1e-9
    problem = constrained(learned.limited.case, ["units"])
    assert problem.worth(learned.policy.actions)[1] == pytest.approx(told.advice[0])


@pytest.mark.slow
def test_chances_that_limits_are_kept_are_of_the_same_models() -> None:
    batch = logged(100, rng=3)
    batch = replace(batch, beside={**batch.beside, "half": 0.5 * batch.beside["units"]})
    learned = learn(batch, discount=GAMMA, limit=("units<=8", "half<=4"))
    found = certeq.examine(learned, draws=40)
    told = both = found.frontier
    assert told.costs[1] == pytest.approx(np.array(told.costs[0]) / 2)
    assert told.kept[0] == told.kept[1] == told.all_kept
    assert told.costs[0].low < told.frontiers[0].advice[0] < told.costs[0].high
    loose = learn(batch, discount=GAMMA, limit="units<=8")
    policy = loose.policy.actions  # by hand, in models drawn anew
    case = cost_case(loose.limited.case, "units")
    drawn = certeq.questions.posterior.posterior(
        case.model, case.table, GAMMA, {"advice": policy}, rewards=case.rewards, batch=case.data.batch, case=case,
        draws=40,
    )  # fmt: skip
    told = certeq.examine(loose, draws=40).frontier
    more = understated(loose.limited.case)[0]
    assert told.kept == ((drawn.values[0] + more <= 8).mean(),)
    assert told.costs[0].mean == pytest.approx(drawn.values[0].mean())
    assert told.costs[0].high == pytest.approx(np.quantile(drawn.values[0], 0.95, method="weibull") + more)
    page = learned_page.render(found)
    assert any("By the model, units<=8 is kept with a chance of " in each for each in sentences(found))
    assert "Value against cost" in page
    assert 'id="frontier-1"' in page
    assert "half<=4 is kept by the model" in checklist.write(found).replace("\\", "").replace("&lt;", "<")
    assert to_png(certeq.pictures.frontier(both.frontiers[0]))
    assert certeq.examine(loose, draws=0).frontier.kept == ()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"limit": "units<12"}, r"written COLUMN<=NUMBER, such as dose<=12; got 'units<12'"),
        ({"limit": "units>=12"}, "For a least amount, limit a column of minus it"),
        ({"limit": "units<=many"}, "written COLUMN<=NUMBER"),
        ({"limit": "<=3"}, "written COLUMN<=NUMBER"),
        ({"limit": ("units<=3", "units<=4")}, "two limits of 'units'"),
        ({"limit": "unit<=3"}, "'unit'.*Did you mean 'units'"),
        ({"limit": "units<=-1"}, "No policy keeps the limit units<=-1: the least that the model allows is 0"),
        ({"limit": "units<=3", "risk": 0.05}, "leave one of them out"),
        ({"limit": "units<=3", "reward_pool": "near"}, "With a limit rewards are not pooled"),
        ({"limit": "units<=3", "regularizer": "discount", "planning_discount": 0.5}, "costs would come out too low"),
        ({"limit": "units<=3", "reward": np.zeros((3, 3))}, "not a table of known rewards"),
    ],
)
def test_limits_that_cannot_be_are_refused_in_words(said, words) -> None:
    with pytest.raises(InputError, match=words):
        learn(logged(40, rng=0), **({"discount": GAMMA} | said))


def test_a_column_must_have_been_read_to_be_limited() -> None:
    plain = replace(logged(40, rng=0), beside={})
    with pytest.raises(InputError, match=r"beside= \(--beside\)"):
        learn(plain, limit="units<=3")
    with pytest.raises(InputError, match=r"beside= \(--beside\)"):
        certeq.frontier(learn(plain))
    table = {"state": [0, 1], "action": [0, 1], "reward": [1, 2], "next_state": [1, 0], "dose": [1.0, None]}
    with pytest.raises(InputError, match="'dose' is missing, but must be a finite number"):
        certeq.read(table, beside="dose")
    with pytest.raises(InputError, match="no column 'doses' to be the column to add up"):
        certeq.read(table, beside="doses")


def test_a_dose_may_be_both_the_action_and_what_is_added_up() -> None:
    table = {"state": [0, 1, 0], "dose": [0, 1, 1], "reward": [1, 2, 0], "next_state": [1, 0, 1]}
    batch = certeq.read(table, beside="dose")
    assert batch.action_names == ("0", "1")
    assert batch.beside["dose"].tolist() == [0, 1, 1]
