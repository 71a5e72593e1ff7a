"""Averages: against all policies one by one, a linear program, closed forms, and very patient discounts."""

import numpy as np
import pytest
from scipy.optimize import linprog

import certeq
import naive
from certeq import InputError, sampling, solve, solve_average
from certeq.learning.learned import learn
from certeq.model.mdp import MDP
from certeq.report import checklist, learned_page


def a_world(seed: int, S: int = 4, A: int = 2):
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(S, 0.5), size=(S, A)), random.normal(size=(S, A))


def best_by_program(rows, reward) -> float:
    """Max d·r over shares of the time d ≥ 0 with Σ_a d(s', a) = Σ d(s, a) T(s, a, s') and Σ d = 1."""
    S, A = reward.shape
    flow = np.repeat(np.eye(S), A, axis=1) - rows.reshape(S * A, S).T
    every, exact = np.ones((1, S * A)), {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return -linprog(-reward.ravel(), A_eq=np.vstack([flow, every]), b_eq=[*[0] * S, 1], options=exact).fun


@pytest.mark.parametrize("seed", range(8))
def test_the_average_is_the_best_of_all_policies_and_that_of_a_linear_program(seed: int) -> None:
    rows, reward = a_world(seed)
    plan = solve_average(rows, reward)
    assert plan.outcome == "optimal"
    assert plan.bound < 1e-10
    assert float(plan.gain) == pytest.approx(naive.best_average(rows, reward), abs=1e-9)
    assert float(plan.gain) == pytest.approx(best_by_program(rows, reward), abs=1e-8)
    patient = solve(rows, reward, 1 - 1e-7)  # (1 - γ) V goes to the average, V(s) - V(s') to h(s) - h(s')
    assert (patient.policy == plan.policy).all()
    assert 1e-7 * patient.values == pytest.approx(np.full(4, float(plan.gain)), abs=1e-5)
    assert patient.values - patient.values[0] == pytest.approx(plan.values - plan.values[0], abs=1e-5)


def test_a_policy_that_is_not_the_best_is_not_certified() -> None:
    rows, reward = a_world(0)
    plan = solve_average(rows, reward)
    worse = certeq.planners.average.AveragePlan(
        plan.policy, plan.values + np.eye(4)[0], plan.iterations, plan.residual, plan.converged, 0.0, "", plan.problem,
        gain=plan.gain,
    )  # fmt: skip
    assert worse.bound > 0.1
    assert not worse.precise


def test_batches_are_planned_one_by_one_and_a_cycle_has_an_average() -> None:
    worlds = [a_world(seed) for seed in range(3)]
    rows, reward = (np.stack(part) for part in zip(*worlds, strict=True))
    plan = solve_average(rows, reward)
    assert plan.gain == pytest.approx([float(solve_average(*one).gain) for one in worlds])
    round_trip = solve_average([[[0, 1]], [[1, 0]]], [[1.0], [3.0]])  # 0 -> 1 -> 0: it never settles, and averages 2
    assert float(round_trip.gain) == 2
    assert round_trip.values.tolist() == [-0.5, 0.5]


def test_an_ending_is_followed_by_the_next_beginning() -> None:
    """Wait (0 for each decision) or finish (1, and begin anew): finishing at once earns 1 per decision."""
    rows, reward = [[[1, 0], [0, 1]], [[0, 1], [0, 0]]], [[0, 0], [0, 1.0]]
    plan = solve_average(rows, reward, start=[1, 0])
    assert float(plan.gain) == 0.5
    assert plan.policy.tolist() == [1, 1]
    with pytest.raises(InputError, match="say where the next one begins, with start="):
        solve_average(rows, reward)
    with pytest.raises(InputError, match="start needs 2 probabilities"):
        solve_average(rows, reward, start=[1, 1])


def test_policies_that_settle_in_different_places_are_refused_by_name() -> None:
    rows = [[[1, 0, 0]], [[0.5, 0, 0.5]], [[0, 0, 1]]]
    with pytest.raises(InputError, match="settles either around the state 'a' or around 'c', and never leaves"):
        solve_average(rows, [[0], [0], [1.0]], names=("a", "b", "c"))


# ---- as a rule ----


def server() -> MDP:
    """A queue of up to 3; serve slowly for free, or fast for 1: each who waits costs 1 for each decision."""
    rows, reward = np.zeros((4, 2, 4)), np.zeros((4, 2))
    for s in range(4):
        for a, served in enumerate((0.3, 0.7)):
            reward[s, a] = -s - a
            for comes, chance in ((1, 0.5), (0, 0.5)):
                for gone, likely in ((1, served), (0, 1 - served)):
                    rows[s, a, np.clip(s + comes - gone, 0, 3)] += chance * likely
    return MDP(rows, reward, 0.9)


def test_learned_from_rows_it_is_what_the_truth_has() -> None:
    truth = server()
    batch = sampling.trajectories(truth, 200, 50, rng=0)
    learned = learn(batch, average=True)
    best = solve_average(truth.transition, truth.reward)
    assert (learned.policy.actions == best.policy).all()
    assert float(learned.plan.gain) == pytest.approx(float(best.gain), abs=0.1)
    assert "average" in repr(learned)
    assert "for the average" in learned.summary.decisions[0]
    assert "discount" not in learned.summary.settings


def test_what_adds_up_discounted_rewards_is_withheld_in_words() -> None:
    learned = learn(sampling.trajectories(server(), 20, 20, rng=0), average=True)
    found = certeq.examine(learned, draws=10)
    assert {"plain", "conventions", "avoided", "origin"} <= {
        name for name, part in found.found.items() if part is not None
    }
    for name in ("posterior", "off_policy", "audit", "path", "fragility", "collect", "outer", "returns"):
        assert "for the average" in found.missing[name]
    for ask in (certeq.audit, certeq.path, certeq.fragility, certeq.collect_next):
        with pytest.raises(InputError, match="for the average"):
            ask(learned, 0.5) if ask is certeq.audit else ask(learned)
    page = learned_page.render(found)
    assert "beyond the average" in page
    assert "the reward per decision in the long run" in checklist.write(found)
    assert "only where rewards are discounted" in page


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"horizon": 3}, "leave horizon= out"),
        ({"limit": "x<=3"}, "leave limit= out"),
        ({"regularizer": "discount", "planning_discount": 0.5}, "no discount to lower"),
    ],
)
def test_rules_that_do_not_go_with_an_average_are_refused(said, words) -> None:
    with pytest.raises(InputError, match=words):
        learn(sampling.trajectories(server(), 5, 5, rng=0), average=True, **said)
