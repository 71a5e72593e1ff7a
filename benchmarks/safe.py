"""Advice that is never confidently worse, beside the methods of others for it; see decision 15.

``uv run --extra gym --group bench python -m benchmarks.safe SEED DATA_SETS`` prints, for each world and behavior of
`benchmarks.avoided`, how much of the way from the behavior to the optimum each method goes: its mean over data sets,
the mean of the worst twentieth of them, and the share in which it is worth less than the behavior. All methods get the
same rows, estimate rewards and behavior from them, and act at random in states that were never seen.

Each opponent is written from its paper, with several constants:

- *SPIBB* (Laroche, Trichelair and Tachet des Combes 2019), both kinds: pairs with fewer rows than the constant are left
  to the behavior (b), or at most as often as it takes them (≤b); the best plan for the rest.
- *soft SPIBB* (Nadjahi, Laroche and Tachet des Combes 2019), the approximate one: a plan may move away from the
  behavior as far as the constant pays for, an action with n rows costing 1/√n for its share.
- *LCB* (Rashidinejad and others 2021): value iteration whose rewards are lower by the constant times the span of values
  over √n.
- *DUIPI* (Hans, Duell and Udluft 2011): policy iteration on Q less the constant times its standard deviation, which is
  carried from rows to values pair by pair.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import certeq
from benchmarks.avoided import _follow, settings
from certeq.learning.case import Case, Data
from certeq.learning.rules import Rules
from certeq.questions.episodes import behavior as recorded

ROUNDS = 60
WORST = 0.05


class Known(NamedTuple):
    """What a method may know: the fitted model and the behavior."""

    rows: np.ndarray  # (S, A, S), nothing where a pair was never tried
    reward: np.ndarray  # (S, A)
    visits: np.ndarray  # (S, A)
    done: np.ndarray  # (S, A): the behavior
    discount: float


def known(case: Case) -> Known:
    """Frequencies, mean rewards and shares of actions."""
    counts = case.data.counts
    table, visits = np.asarray(counts.transitions, dtype=float), counts.visits
    rewards = case.rewards
    reward = np.where(visits > 0, 0.0 if rewards is None else rewards.raw, 0.0)
    rows = table / np.maximum(visits, 1)[..., None]
    return Known(rows, reward, visits, recorded(counts), float(case.rules.discount))


def value(given: Known, policy: np.ndarray) -> np.ndarray:
    """Q of a policy ``(S, A)`` in the fitted model."""
    chain = np.einsum("sa,san->sn", policy, given.rows)
    state = np.linalg.solve(np.eye(len(chain)) - given.discount * chain, (policy * given.reward).sum(axis=1))
    return np.asarray(given.reward + given.discount * given.rows @ state)


def improved(given: Known, step: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Policy iteration from the behavior, with another way to improve."""
    policy = given.done
    for _ in range(ROUNDS):
        better = step(value(given, policy))
        if np.allclose(better, policy):
            return better
        policy = better
    return policy


def greedy(q: np.ndarray, may: np.ndarray) -> np.ndarray:
    """All on the best action that is allowed; nothing in states without one."""
    best = np.where(may, q, -np.inf).argmax(axis=1)
    return np.eye(q.shape[1])[best] * may.any(axis=1)[:, None]


def spibb(given: Known, least: float) -> np.ndarray:
    """Pairs with few rows as often as the behavior has them; the rest on the best of the others."""
    few = given.visits < least
    kept = given.done * few
    return improved(given, lambda q: _complete(kept + (1 - kept.sum(axis=1))[:, None] * greedy(q, ~few), given))


def spibb_at_most(given: Known, least: float) -> np.ndarray:
    """Pairs with few rows at most as often as the behavior has them: fill up from the best action on."""
    few = given.visits < least

    def step(q: np.ndarray) -> np.ndarray:
        policy, left = np.zeros_like(q), np.ones(len(q))
        for rank in np.argsort(-q, axis=1).T:
            state = np.arange(len(q))
            room = np.where(few[state, rank], given.done[state, rank], 1.0)
            policy[state, rank] = np.minimum(room, left)
            left = left - policy[state, rank]
        return _complete(policy, given)

    return improved(given, step)


def soft_spibb(given: Known, budget: float) -> np.ndarray:
    """Move mass from bad actions to better ones, as far as the budget of each state goes."""
    cost = 1 / np.sqrt(np.maximum(given.visits, 1e-6))

    def step(q: np.ndarray) -> np.ndarray:
        policy = given.done.copy()
        for s in range(len(q)):
            left = budget
            for bad in np.argsort(q[s]):
                gain = (q[s] - q[s, bad]) / (cost[s] + cost[s, bad])
                good = int(gain.argmax())
                if gain[good] <= 0 or policy[s, bad] == 0:
                    continue
                moved = min(policy[s, bad], left / (cost[s, bad] + cost[s, good]))
                policy[s, bad] -= moved
                policy[s, good] += moved
                left -= moved * (cost[s, bad] + cost[s, good])
        return np.maximum(policy, 0.0) / np.maximum(policy, 0.0).sum(axis=1, keepdims=True)

    return improved(given, step)


def lcb(given: Known, times: float) -> np.ndarray:
    """Value iteration with rewards that are lower where rows are few; untried actions are worth the least possible."""
    tried = given.visits > 0
    low, high = given.reward[tried].min(), given.reward[tried].max()
    span = (max(high, 0.0) - min(low, 0.0)) / (1 - given.discount)
    worst = min(low, 0.0) / (1 - given.discount)
    paid = given.reward - times * span * (1 - given.discount) / np.sqrt(np.maximum(given.visits, 1))
    state = np.zeros(len(given.rows))
    q = np.zeros_like(paid)
    for _ in range(5000):
        q = np.where(tried, np.maximum(paid + given.discount * given.rows @ state, worst), worst)
        ahead = q.max(axis=1)
        if np.abs(ahead - state).max() < 1e-9 * (1 + np.abs(state).max()):
            break
        state = ahead
    return _complete(greedy(q, tried), given)


def duipi(given: Known, times: float) -> np.ndarray:
    """Q less so many standard deviations, carried on from rows and rewards as if pairs were independent."""
    n = np.maximum(given.visits, 1)[..., None]
    tried = given.visits > 0
    of_rows = given.rows * (1 - given.rows) / (n + 1)
    of_reward = np.where(tried, np.var(given.reward[tried]), 0.0) / n[..., 0]
    q, variance = np.zeros_like(given.reward), np.zeros_like(given.reward)
    policy = given.done
    for _ in range(400):
        state, spread = (policy * q).sum(axis=1), (policy**2 * variance).sum(axis=1)
        new = given.reward + given.discount * given.rows @ state
        variance = (given.discount * given.rows) ** 2 @ spread + of_rows @ (given.discount * state) ** 2 + of_reward
        policy = _complete(greedy(new - times * np.sqrt(variance), tried), given)
        if np.abs(new - q).max() < 1e-7 * (1 + np.abs(q).max()):
            break
        q = new
    return policy


def _complete(policy: np.ndarray, given: Known) -> np.ndarray:
    """What is left over goes to the behavior."""
    left = np.maximum(1 - policy.sum(axis=1, keepdims=True), 0.0)
    whole = policy + left * given.done
    return np.asarray(whole / whole.sum(axis=1, keepdims=True))


OPPONENTS: dict[str, tuple[Callable[[Known, float], np.ndarray], tuple[float, ...]]] = {
    "SPIBB b": (spibb, (3, 10, 30)),
    "SPIBB ≤b": (spibb_at_most, (3, 10, 30)),
    "soft SPIBB": (soft_spibb, (0.2, 0.5, 1.0, 2.0)),
    "LCB": (lcb, (0.1, 0.3, 1.0)),
    "DUIPI": (duipi, (0.5, 1.0, 2.0)),
}


def plans(data: Data, discount: float) -> dict[str, np.ndarray]:
    """What each method does, as probabilities ``(S, A)``."""
    rules = Rules(discount=discount)
    found = {"default": _follow(Case(data, rules)), "no regularizer": _follow(Case(data, rules).under("none"))}
    found["plain"] = _follow(Case(data, Rules(discount=discount, regularizer="none", min_share=0)))
    given = known(Case(data, rules))
    for name, (method, constants) in OPPONENTS.items():
        found |= {f"{name} {constant:g}": method(given, constant) for constant in constants}
    return found


def check(given: Known) -> None:
    """At the ends of their constants methods are the behavior, or the plain plan."""
    for method, end in ((spibb, np.inf), (spibb_at_most, np.inf), (soft_spibb, 0.0)):
        assert np.allclose(method(given, end), given.done), method
    tried = given.visits > 0
    best = value(given, improved(given, lambda q: _complete(greedy(q, tried), given)))
    for method in (lcb, duipi):
        own = value(given, method(given, 0.0))
        assert np.allclose(np.where(tried, own, 0).max(axis=1), np.where(tried, best, 0).max(axis=1), atol=1e-4), method


def main(seed: int, data_sets: int) -> None:
    """Print the table."""
    print("world deviations episodes: method, mean, worst 5 %, share worse than the behavior")
    for each in settings():
        world, S, A = each.world, each.world.n_states, each.world.n_actions
        truth = world.transition, world.reward, world.discount
        best = certeq.solve(*truth)
        behavior = np.full((S, A), each.deviations / A)
        behavior[np.arange(S), best.policy] += 1 - each.deviations
        start = np.full(S, 1 / S) if world.start is None else world.start
        low, high = float(start @ certeq.evaluate(*truth, behavior)), float(start @ best.values)
        rng = np.random.default_rng([seed, len(each.name), each.episodes, int(each.deviations * 10)])
        found: dict[str, list[float]] = {}
        for d in range(data_sets):
            rows = certeq.sampling.trajectories(
                world, episodes=each.episodes, length=each.length, behavior=behavior, rng=rng
            )
            data = Data.of(rows)
            if d == 0:
                check(known(Case(data, Rules(discount=world.discount))))
            for name, policy in plans(data, float(world.discount)).items():
                worth = float(start @ certeq.evaluate(*truth, policy))
                found.setdefault(name, []).append((worth - low) / (high - low))
        print(f"\n{each.name}, {each.deviations:.0%} deviations, {each.episodes} episodes")
        for name, gains in found.items():
            way = np.sort(gains)
            worst = way[: max(1, int(WORST * len(way)))].mean()
            print(f"  {name:16s} {way.mean():7.3f} {worst:8.3f} {np.mean(way < -1e-9):6.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
