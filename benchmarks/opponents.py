"""Methods of others for advice from a log, each written from its paper, and what all of them may know.

- *SPIBB* (Laroche, Trichelair and Tachet des Combes 2019), both kinds: pairs with fewer rows than the constant are left
  to the behavior (b), or at most as often as it takes them (≤b); the best plan for the rest.
- *soft SPIBB* (Nadjahi, Laroche and Tachet des Combes 2019), the approximate one: a plan may move away from the
  behavior as far as the constant pays for, an action with n rows costing 1/√n for its share.
- *LCB* (Rashidinejad and others 2021): value iteration whose rewards are lower by the constant times the span of values
  over √n.
- *DUIPI* (Hans, Duell and Udluft 2011): policy iteration on Q less the constant times its standard deviation, which is
  carried from rows to values pair by pair.
- *WSU* (Steimle, Kaufman and Denton 2021): one policy for several models, here 30 draws from the posterior under a
  uniform prior of the constant's mass; backward in time, each state takes the action with the best mean over the
  models, each of which has values of its own. The paper's horizons are finite; here it goes back until nothing changes.
- *CADP* (Su and Petrik 2023): begins there, and weighs the models in each state by how often their runs come there,
  for as long as the mean value over the models rises. The paper does so for each moment of a finite horizon, here
  discounted visits take the moments' place.

They estimate rewards and behavior from the rows and act at random in states that were never seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from certeq.data.batch import Batch

ROUNDS = 60
SAME = 1e-9  # of the largest value: what no round improved is not improved any more, only other actions are as good
MODELS = 30  # of WSU and CADP
SPARSE = 0.03  # of a matrix: with fewer non-zeros it is solved as a sparse one


class Known(NamedTuple):
    """What a method may know: the fitted model and the behavior."""

    rows: sp.csr_array  # (S * A, S), nothing where a pair was never tried
    reward: np.ndarray  # (S, A)
    visits: np.ndarray  # (S, A)
    done: np.ndarray  # (S, A): the behavior
    discount: float
    start: np.ndarray  # (S,): shares of first states

    def ahead(self, state: np.ndarray, rows: sp.csr_array | None = None) -> np.ndarray:
        """What is expected of the next state, ``(S, A)``."""
        return np.asarray((self.rows if rows is None else rows) @ state).reshape(self.reward.shape)


def known(batch: Batch, discount: float) -> Known:
    """Frequencies, mean rewards and shares of actions."""
    S, A = batch.n_states, batch.n_actions
    pair = batch.state * A + batch.action
    visits = np.bincount(pair, minlength=S * A)
    paid = np.bincount(pair, batch.reward, minlength=S * A) / np.maximum(visits, 1)
    on = ~batch.ended
    rows = sp.csr_array((1 / visits[pair[on]], (pair[on], batch.next_state[on])), shape=(S * A, S))
    visits = visits.reshape(S, A)
    tried = visits.sum(axis=1, keepdims=True)
    done = np.where(tried > 0, visits / np.maximum(tried, 1), 1 / A)
    return Known(rows, paid.reshape(S, A), visits, done, discount, batch.starts)


def follow(policy: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """Advice as probabilities; without advice, what was done most, and a random action where nothing was."""
    chosen = np.where(policy >= 0, policy, visits.argmax(axis=1))
    chances = np.eye(visits.shape[1])[chosen]
    chances[visits.sum(axis=1) == 0] = 1 / visits.shape[1]
    return chances


def worth(rows: sp.csr_array, reward: np.ndarray, policy: np.ndarray, discount: float) -> np.ndarray:
    """Value of a policy ``(S, A)`` in each state, of rows ``(S * A, S)``."""
    S, A = policy.shape
    state, action = np.nonzero(policy)
    mix = sp.csr_array((policy[state, action], (state, state * A + action)), shape=(S, S * A))
    system = sp.eye_array(S) - discount * (mix @ rows)
    paid = (policy * reward).sum(axis=1)
    if system.nnz < SPARSE * S * S:
        return np.asarray(spsolve(system.tocsc(), paid))
    return np.linalg.solve(system.toarray(), paid)


def value(given: Known, policy: np.ndarray) -> np.ndarray:
    """Q of a policy ``(S, A)`` in the fitted model."""
    state = worth(given.rows, given.reward, policy, given.discount)
    return np.asarray(given.reward + given.discount * given.ahead(state))


def improved(given: Known, step: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Policy iteration from the behavior, with another way to improve."""
    policy, before = given.done, np.full_like(given.reward, -np.inf)
    for _ in range(ROUNDS):
        q = value(given, policy)
        better = step(q)
        if np.allclose(better, policy) or np.abs(q - before).max() <= SAME * np.abs(q).max():
            return better
        policy, before = better, q
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
        policy, state, left = given.done.copy(), np.arange(len(q)), np.full(len(q), budget)
        for bad in np.argsort(q, axis=1).T:  # from the worst action of each state on
            gain = (q - q[state, bad][:, None]) / (cost + cost[state, bad][:, None])
            good = gain.argmax(axis=1)
            price = cost[state, bad] + cost[state, good]
            moved = np.where(gain[state, good] > 0, np.minimum(policy[state, bad], left / price), 0.0)
            policy[state, bad] -= moved
            policy[state, good] += moved
            left -= moved * price
        return np.maximum(policy, 0.0) / np.maximum(policy, 0.0).sum(axis=1, keepdims=True)

    return improved(given, step)


def lcb(given: Known, times: float) -> np.ndarray:
    """Value iteration with rewards that are lower where rows are few; untried actions are worth the least possible."""
    tried = given.visits > 0
    low, high = given.reward[tried].min(), given.reward[tried].max()
    span = (max(high, 0.0) - min(low, 0.0)) / (1 - given.discount)
    worst = min(low, 0.0) / (1 - given.discount)
    paid = given.reward - times * span * (1 - given.discount) / np.sqrt(np.maximum(given.visits, 1))
    state = np.zeros(len(given.reward))
    q = np.zeros_like(paid)
    for _ in range(5000):
        q = np.where(tried, np.maximum(paid + given.discount * given.ahead(state), worst), worst)
        ahead = q.max(axis=1)
        if np.abs(ahead - state).max() < 1e-9 * (1 + np.abs(state).max()):
            break
        state = ahead
    return _complete(greedy(q, tried), given)


def duipi(given: Known, times: float) -> np.ndarray:
    """Q less so many standard deviations, carried on from rows and rewards as if pairs were independent."""
    n = np.maximum(given.visits, 1)
    tried = given.visits > 0
    rows, squared = given.rows, given.rows.power(2)
    of_rows = sp.diags_array(1 / (n.ravel() + 1)) @ (rows - squared)
    of_reward = np.where(tried, np.var(given.reward[tried]), 0.0) / n
    q, variance = np.zeros_like(given.reward), np.zeros_like(given.reward)
    policy, gamma = given.done, given.discount
    for _ in range(400):
        state, spread = (policy * q).sum(axis=1), (policy**2 * variance).sum(axis=1)
        new = given.reward + gamma * given.ahead(state)
        variance = gamma**2 * (given.ahead(spread, squared) + given.ahead(state**2, of_rows)) + of_reward
        policy = _complete(greedy(new - times * np.sqrt(variance), tried), given)
        if np.abs(new - q).max() < 1e-7 * (1 + np.abs(q).max()):
            break
        q = new
    return policy


def models(given: Known, mass: float) -> np.ndarray:
    """Draws from the posterior of all rows, ``(models, S, A, S)``; what is missing in a row ends."""
    S, A = given.reward.shape
    counts = given.rows.toarray().reshape(S, A, S) * given.visits[..., None]
    ends = given.visits - counts.sum(axis=-1)
    often = np.concatenate([counts, np.maximum(ends, 0)[..., None]], axis=-1) + mass / (S + 1)
    drawn = np.random.default_rng(0).standard_gamma(often, size=(MODELS, *often.shape))
    return np.asarray((drawn / np.maximum(drawn.sum(axis=-1, keepdims=True), 1e-300))[..., :S])


def wsu(given: Known, mass: float, drawn: np.ndarray | None = None) -> np.ndarray:
    """Backward in time with the best mean over models, until no model's values change."""
    drawn = models(given, mass) if drawn is None else drawn
    state, policy = np.zeros((len(drawn), len(given.reward))), given.done
    for _ in range(2000):
        q = given.reward + given.discount * (drawn @ state[:, None, :, None])[..., 0]
        policy = _complete(greedy(q.mean(axis=0), given.visits > 0), given)
        now = (policy * q).sum(axis=-1)
        if np.abs(now - state).max() < 1e-6 * (1 + np.abs(now).max()):
            break
        state = now
    return policy


def cadp(given: Known, mass: float) -> np.ndarray:
    """From the policy of WSU, weigh models by their discounted visits, while the mean value rises."""
    drawn = models(given, mass)
    best, highest, policy = given.done, -np.inf, wsu(given, mass, drawn)
    for _ in range(ROUNDS):
        moves = np.eye(len(policy)) - given.discount * np.einsum("sa,msat->mst", policy, drawn)
        state = np.linalg.solve(moves, (policy * given.reward).sum(axis=1)[:, None])[..., 0]
        reached = float(np.mean(state @ given.start))
        if reached <= highest + SAME * abs(highest):
            break
        best, highest = policy, reached
        often = np.linalg.solve(moves.swapaxes(1, 2), given.start[:, None])[..., 0]
        q = given.reward + given.discount * (drawn @ state[:, None, :, None])[..., 0]
        policy = _complete(greedy((often[..., None] * q).mean(axis=0), given.visits > 0), given)
    return best


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
    "WSU": (wsu, (1, 10)),
    "CADP": (cadp, (1, 10)),
}


def able(S: int, A: int) -> tuple[str, ...]:
    """Who takes part in a world of this size: WSU and CADP write out all rows of all models."""
    return tuple(name for name, (method, _) in OPPONENTS.items() if method not in (wsu, cadp) or S * S * A <= 100_000)


def check(given: Known) -> None:
    """At the ends of their constants methods are the behavior, or the plain plan."""
    for method, end in ((spibb, np.inf), (spibb_at_most, np.inf), (soft_spibb, 0.0)):
        assert np.allclose(method(given, end), given.done), method
    tried = given.visits > 0
    best = value(given, improved(given, lambda q: _complete(greedy(q, tried), given)))
    for method in (lcb, duipi):
        own = value(given, method(given, 0.0))
        assert np.allclose(np.where(tried, own, 0).max(axis=1), np.where(tried, best, 0).max(axis=1), atol=1e-4), method
    sure = given._replace(visits=given.visits * 10**9)  # all models are the fitted one
    for method in (wsu, cadp):
        own = value(sure, method(sure, 1.0))
        assert np.allclose(np.where(tried, own, 0).max(axis=1), np.where(tried, best, 0).max(axis=1), rtol=1e-3), method
    drawn = models(given, 1.0)
    first, last = (_mean_worth(given, drawn, policy) for policy in (wsu(given, 1.0), cadp(given, 1.0)))
    assert last >= first - SAME * abs(first)


def _mean_worth(given: Known, drawn: np.ndarray, policy: np.ndarray) -> float:
    S, A = policy.shape
    each = [worth(sp.csr_array(rows.reshape(S * A, S)), given.reward, policy, given.discount) for rows in drawn]
    return float(np.mean(each @ given.start))
