"""Posterior of mean rewards: what the rows leave open about what a pair earns.

The mean reward of a pair is μ(s, a) = m + b(s) + e(s, a): what is earned on the whole, what the state adds and what the
pair adds, with b ~ Normal(0, ω²) and e ~ Normal(0, τ²). A row earns Normal(μ, σ²·v(s, a)). That is one law for pairs
with many rows, whose own mean decides; for pairs with few, which are drawn toward their state and toward the whole; and
for pairs without rows, which are as uncertain as pairs differ. So a pair that only looks best by luck is not taken at
its word, even where the plan took it so.

Some pairs are less noisy than others: v(s, a) = (k + (c - 1)·s²(s, a)/s²) / (k + c - 1) or 1, whichever is less, with
s²(s, a) the variance of the pair's own c rows, where the rows are at hand; 1 where there are only counts. The less
alike the pairs are in this, the smaller k: the most likely one, were variances of pairs s²·k/χ²(k). So a pair that
always paid the same is taken at its word, though others pay by luck; and where noise is the same everywhere, so it is
in the law. None counts as noisier than all are together: where what pays is rare, pairs that paid vary most, and would
be held still more to those that never did.

Draws go down the line. With s² the pooled variance within pairs, which has d degrees of freedom:

    σ² = (d + 2)·s² / χ²(d + 2)        the 2 keeps the variance of Student's t finite when d = 1
    ω, τ                               from a grid, by the likelihood of the pairs' means at s², flat in ω and in τ
    m | σ, ω, τ;  b | m, σ, ω, τ;  μ | m + b, σ, τ      normal, in closed form, with a flat prior for m

If no pair has two rows, noise and differences between pairs cannot be told apart: the variance of all rewards then
stands for s². Rewards by next state have the same law, with arrivals for pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers
from certeq.data.batch import ENDED, Batch
from certeq.model.rewards import Rewards
from certeq.model.rewards import estimate as estimate_rewards

TRUST = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0])  # k: rows that all noise counts for in a pair's own
GRID = np.geomspace(0.02, 4, 20)  # of ω and τ, in standard deviations of all rewards
ENOUGH = 2000  # states to learn ω and τ from
NOTHING = 1e-70  # a spread below which rewards are all one: the largest of all is at least 1e-50


class Conditionals(NamedTuple):
    """Means and variances of each step of a draw, given those before it; leading axis k."""

    whole: Floats  # (k,): mean of m
    whole_variance: Floats  # (k,)
    state: Floats  # (k, S): mean of a state's pairs, each by its precision
    state_kept: Floats  # (k, S): how much of it m + b keeps; the rest is m
    state_variance: Floats  # (k, S)
    pair_kept: Floats  # (k, S, A): how much of its own mean a pair keeps; the rest is m + b
    pair_variance: Floats  # (k, S, A)


@dataclass(frozen=True)
class RewardPosterior:
    """What is needed to draw mean rewards, ``(S, A)``, or of arrivals, ``(S + 1, 1)``."""

    own: Floats  # mean of the pair's rows; 0 without rows
    visits: Integers
    within: float  # s²
    freedom: int  # d
    spreads: Floats  # (G, 2): ω² and τ²
    chance: Floats  # (G,)
    span: tuple[float, float] = (-np.inf, np.inf)  # draws beyond are held at its ends
    noisier: Floats | float = 1.0  # v: variance within a pair, relative to s²

    def draw(self, size: int, random: np.random.Generator) -> Floats:
        """Draw all means ``size`` times, ``(size, S, A)``."""
        noise = self.within * (self.freedom + 2) / random.chisquare(self.freedom + 2, size=size)
        at = random.choice(len(self.chance), size=size, p=self.chance)
        step = steps(self.own, self.visits, noise, *self.spreads[at].T, noisier=self.noisier)
        whole = (step.whole + np.sqrt(step.whole_variance) * random.standard_normal(size))[:, None]
        state = _normal(step.state_kept * step.state + (1 - step.state_kept) * whole, step.state_variance, random)
        mean = step.pair_kept * self.own + (1 - step.pair_kept) * state[..., None]
        return np.clip(_normal(mean, step.pair_variance, random), *self.span)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Posterior mean and variance of each μ, were σ² known to be s², ``(S, A)`` each."""
        noise = np.full(len(self.chance), self.within)
        step = steps(self.own, self.visits, noise, *self.spreads.T, noisier=self.noisier)
        rest = 1 - step.state_kept
        state = step.state_kept * step.state + rest * step.whole[:, None]
        spread = step.state_variance + rest**2 * step.whole_variance[:, None]
        mean = step.pair_kept * self.own + (1 - step.pair_kept) * state[..., None]
        inner = step.pair_variance + (1 - step.pair_kept) ** 2 * spread[..., None]
        center = np.tensordot(self.chance, mean, axes=1)
        return center, np.tensordot(self.chance, inner + (mean - center) ** 2, axes=1)

    @property
    def variance(self) -> Floats:
        """Posterior variance of each mean reward."""
        return self.moments[1]


def reward_posterior(rewards: Rewards, batch: Batch | None, rows: Booleans | None = None) -> RewardPosterior:
    """Read the posterior off the rows: of pairs, or of arrivals where rewards were estimated by next state.

    For pairs, the estimates tell all that is needed, and there may be no rows; where there are, which of them these
    are the rewards of may be said.
    """
    if rewards.arrival is not None:
        assert batch is not None
        arrived = np.where(batch.next_state == ENDED, batch.n_states, batch.next_state)
        nowhere = np.zeros_like(arrived)
        batch = Batch(arrived, nowhere, nowhere, batch.n_states + 1, 1, reward=batch.reward)
        rewards = estimate_rewards(batch)
    seen, own = rewards.visits, np.where(rewards.visits > 0, rewards.raw, 0.0)
    mean = (seen * own).sum() / seen.sum()
    between = float((seen * (own - mean) ** 2).sum() / seen.sum())
    freedom = int(np.maximum(seen - 1, 0).sum())
    within = rewards.within if freedom else between
    unit = np.sqrt(between + rewards.within)
    unit = unit if unit > NOTHING else 1e-9 * max(1.0, abs(mean))  # where all rewards are one, next to nothing
    omega, tau = np.meshgrid(unit * GRID, unit * GRID, indexing="ij", sparse=True)
    noisier = _noisier(own, seen, within, batch, rows)
    some = _some(seen)
    noise = noisier[some] if isinstance(noisier, np.ndarray) else noisier
    found = likelihood(own[some], seen[some], np.full((1, 1), within), omega**2, tau**2, noisier=noise)
    found = found + np.log(omega * tau)
    chance = np.exp(found - found.max()).ravel()
    spreads = np.stack(np.broadcast_arrays(omega**2, tau**2), axis=-1).reshape(-1, 2)
    return RewardPosterior(own, seen, within, freedom, spreads, chance / chance.sum(), noisier=noisier)


def _some(visits: Integers) -> slice | Integers:
    """States that tell how far apart rewards are: all, or of very many that were tried an even selection."""
    tried = np.flatnonzero(visits.any(axis=1))
    return tried[:: len(tried) // ENOUGH] if len(tried) > 2 * ENOUGH else slice(None)


def _noisier(
    own: Floats, visits: Integers, within: float, batch: Batch | None, rows: Booleans | None
) -> Floats | float:
    """Variance within each pair relative to that of all, ``(S, A)``; 1 where nobody can tell."""
    if batch is None or batch.reward is None or not within > 0:
        return 1.0
    taken = slice(None) if rows is None else rows
    pair = batch.state[taken] * batch.n_actions + batch.action[taken]
    apart = (batch.reward[taken] - own.ravel()[pair]) / np.sqrt(within)
    square: Floats = np.bincount(pair, apart**2, minlength=own.size).astype(np.float64).reshape(own.shape)
    freedom = np.maximum(visits - 1, 0)
    k = _trust(square[freedom > 0], freedom[freedom > 0])
    return 1.0 if k == TRUST[-1] else np.minimum((k + square) / (k + freedom), 1.0)


def _trust(square: Floats, freedom: Integers) -> float:
    """The most likely k, given squared distances within pairs in units of s², and their degrees of freedom."""
    k, (each, often) = TRUST[:, None], np.unique(freedom, return_counts=True)
    found = k / 2 * np.log(k) - (k + freedom) / 2 * np.log(k + square)
    beta = often @ np.array([_log_beta(int(one)) for one in each]).reshape(-1, len(TRUST))
    return float(TRUST[np.argmax(found.sum(axis=1) - beta)])


@cache
def _log_beta(freedom: int) -> list[float]:
    """log B(freedom / 2, k / 2) for each k."""
    return [lgamma(freedom / 2) + lgamma(k / 2) - lgamma((freedom + k) / 2) for k in TRUST.tolist()]


class ByOutcome(NamedTuple):
    """Laws of what going on and of what ending pays."""

    going: RewardPosterior
    ending: RewardPosterior


def outcome_posteriors(went_on: Rewards, ended: Rewards, batch: Batch | None = None) -> ByOutcome:
    """Posteriors of what going on and what ending pays, each within what was seen.

    Where nothing went on, going on pays nothing, as in the plan.
    """
    if went_on.visits.any():
        one = reward_posterior(went_on, batch, None if batch is None else ~batch.ended)
    else:
        none = np.zeros_like(went_on.mean)
        one = RewardPosterior(none, went_on.visits + 1, 0.0, 1, np.zeros((1, 2)) + 1e-300, np.ones(1))
    other = reward_posterior(ended, batch, None if batch is None else batch.ended)
    span = went_on.span if went_on.visits.any() else (0.0, 0.0)
    return ByOutcome(replace(one, span=span), replace(other, span=ended.span))


class _Means(NamedTuple):
    """Means of states and of the whole, with the variances that they come from; leading axes as the variances."""

    seen: Booleans  # (S, A)
    error: Floats  # (..., S, A): variance of a pair's own mean around its μ
    pair: Floats  # (..., S, A): and around m + b
    weight: Floats  # (..., S, A): 1 over that, of pairs with rows
    tried: Booleans  # (..., S)
    total: Floats  # (..., S): weights of a state's pairs; 1 where there are none
    state: Floats  # (..., S): mean of its pairs
    apart: Floats  # (..., S): variance of that around m
    pull: Floats  # (..., S): 1 over that, of states that were tried
    whole: Floats  # (...): mean of the states


def _means(own: Floats, visits: Integers, noise: Floats, omega: Floats, tau: Floats, noisier: Floats | float) -> _Means:
    seen, c = visits > 0, np.maximum(visits, 1)
    error = noise[..., None, None] * (noisier / c)
    pair = tau[..., None, None] + error
    weight = np.where(seen, 1 / pair, 0.0)
    total = weight.sum(axis=-1)
    tried = total > 0
    total = np.where(tried, total, 1.0)
    state = (weight * own).sum(axis=-1) / total
    apart = omega[..., None] + 1 / total
    pull = np.where(tried, 1 / apart, 0.0)
    whole = (pull * state).sum(axis=-1) / pull.sum(axis=-1)
    return _Means(seen, error, pair, weight, tried, total, state, apart, pull, whole)


def steps(
    own: Floats, visits: Integers, noise: Floats, omega: Floats, tau: Floats, *, noisier: Floats | float = 1.0
) -> Conditionals:
    """Take the law apart, for k values of the variances σ², ω² and τ², or for leading axes that broadcast."""
    found = _means(own, visits, noise, omega, tau, noisier)
    state_kept = np.where(found.tried, omega[..., None] / found.apart, 0.0)
    pair_kept = np.where(found.seen, tau[..., None, None] / found.pair, 0.0)
    return Conditionals(
        whole=found.whole,
        whole_variance=1 / found.pull.sum(axis=-1),
        state=found.state,
        state_kept=state_kept,
        state_variance=np.where(found.tried, state_kept / found.total, omega[..., None]),
        pair_kept=pair_kept,
        pair_variance=np.where(found.seen, pair_kept * found.error, tau[..., None, None]),
    )


def likelihood(
    own: Floats, visits: Integers, noise: Floats, omega: Floats, tau: Floats, *, noisier: Floats | float = 1.0
) -> Floats:
    """Log likelihood of the pairs' means, for each value of the variances as in `steps`."""
    found = _means(own, visits, noise, omega, tau, noisier)
    squares = (found.weight * (own - found.state[..., None]) ** 2).sum(axis=(-2, -1))
    squares = squares + (found.pull * (found.state - found.whole[..., None]) ** 2).sum(axis=-1)
    logs = np.where(found.seen, np.log(found.pair), 0.0).sum(axis=(-2, -1))
    logs = logs + np.where(found.tried, np.log(found.total * found.apart), 0.0).sum(axis=-1)
    return np.asarray(-0.5 * (squares + logs + np.log(found.pull.sum(axis=-1))))


def _normal(mean: Floats, variance: Floats, random: np.random.Generator) -> Floats:
    return np.asarray(mean + np.sqrt(variance) * random.standard_normal(mean.shape))
