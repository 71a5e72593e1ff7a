"""Draws of whole models from the posterior: transition rows and rewards, block by block.

Rows. Given its prior magnitude M and mean q, the row of a pair with counts c over N outcomes (the states, and ending
where the data or q have it) is Dirichlet(c + M·q). M is drawn first, from its own posterior
(`certeq.model.evidence`), so how strong the prior should be is part of what is not known.

Rewards. Known rewards are what they are; estimated ones are drawn as `certeq.questions.reward_posterior` tells. Where
rows ended, what going on pays and what ending pays are drawn apart, within what was seen, and a pair earns either by
the chances of its drawn row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, floats, generator, whole
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.learning.equivalence import Model
from certeq.model import targets
from certeq.model.evidence import draw_magnitudes
from certeq.model.kernel import MASS_TOLERANCE, Kernel
from certeq.model.rewards import Rewards
from certeq.questions.reward_posterior import ByOutcome, RewardPosterior, outcome_posteriors, reward_posterior
from certeq.regularizers.learned_target import CENTER, SPREAD, Believed

Law: TypeAlias = Floats | RewardPosterior | ByOutcome

LARGEST = 8_000_000  # numbers in one drawn model; more would take gigabytes and hours
BLOCK = 2_000_000  # numbers drawn together


@dataclass(frozen=True)
class Draws:
    """Models to be drawn, in blocks, each from a seed of its own: the same in any order, and on any thread."""

    counts: Integers  # (S, A, N)
    prior: Floats  # (S or 1, A or 1, N): q
    magnitude: Floats  # (draws, S, A): M
    reward: Law  # known (S, A); or the law of pairs (S, A), of arrivals (S + 1, 1), or of going on and of ending (S, A)
    together: int  # draws in a block; the last may have fewer
    seeds: Integers  # (blocks, 4)

    @property
    def blocks(self) -> range:
        """Numbers of the blocks."""
        return range(len(self.seeds))

    def block(self, number: int) -> tuple[Floats, Floats]:
        """Rows ``(k, S, A, S)`` and rewards ``(k, S, A)`` of one block."""
        return self.by_outcome(number)[:2]

    def by_outcome(self, number: int) -> tuple[Floats, Floats, Floats | None]:
        """The same, and what is paid with each outcome, ``(k, S, A, N)``; None where that is the pair's reward."""
        random = np.random.default_rng(self.seeds[number])
        magnitude = self.magnitude[number * self.together : (number + 1) * self.together]
        alpha = magnitude[..., None] * self.prior
        alpha += self.counts
        outcomes = draw_rows(alpha, random)
        rows = np.ascontiguousarray(outcomes[..., : len(self.counts)])
        if isinstance(self.reward, ByOutcome):
            going, ending = (law.draw(len(rows), random)[..., None] for law in self.reward)
            ends = outcomes[..., -1:]  # where rows ended, ending is the last outcome
            paid = np.where(np.arange(outcomes.shape[-1]) < len(self.counts), going, ending)
            return rows, np.asarray((1 - ends) * going + ends * ending)[..., 0], paid
        return rows, self._rewards(outcomes, random), None

    def _rewards(self, outcomes: Floats, random: np.random.Generator) -> Floats:
        k, S, A, N = outcomes.shape
        if isinstance(self.reward, np.ndarray):
            return np.broadcast_to(self.reward, (k, S, A))
        assert not isinstance(self.reward, ByOutcome)
        means = self.reward.draw(k, random)
        if means.shape[1:] == (S, A):
            return means
        return np.asarray((outcomes.reshape(k, S * A, N) @ means[:, :N]).reshape(k, S, A))


def draw_models(
    model: Model,
    reward: Any,
    draws: int,
    *,
    rewards: Rewards | None = None,
    batch: Batch | None = None,
    target: Kernel | None = None,
    rng: Rng = None,
) -> Draws:
    """Prepare draws from the posterior of what the counts of a model were drawn from.

    ``reward`` is the known table ``(S, A)``; where it was estimated, ``rewards`` says how, ``batch`` from which rows.
    ``target`` is the mean of the prior: unless given, what the model's regularizer pulls toward, if that is a prior for
    rows, and else the uniform row. (Discounting, and averaging over actions, pull elsewhere.) A target that was learned
    from the rows is judged with each pair's own rows left out, so that it is not trusted more than it deserves; another
    one that was made from the rows is taken as known beforehand, and its draws differ less than they should.
    """
    counts = model.counts
    if counts.batch:
        raise InputError("A posterior is of one data set; these counts have leading axes. Take them one by one.")
    pull = _prior_mean(model) if target is None else target
    table, prior = _outcomes(counts, pull)
    size = whole("draws", draws, 1)
    law = _reward_law(counts, reward, rewards, batch)
    random = generator(rng)
    magnitude = draw_magnitudes(counts, size, rng=random, target=pull, **(_believed(model) if target is None else {}))
    together = max(1, BLOCK // table.size)
    return Draws(table, prior, magnitude, law, together, random.integers(2**32, size=(-(-size // together), 4)))


def draw_rows(alpha: Floats, random: np.random.Generator) -> Floats:
    """Draw Dirichlet rows with these parameters, ``(..., N)``; outcomes with parameter 0 have no chance.

    A row is a set of gamma variates over their sum. Where the parameters are so small that all of them round to zero,
    one outcome has all the mass: which one is a draw by the parameters.
    """
    rows = random.standard_gamma(alpha)
    total = rows.sum(axis=-1, keepdims=True)
    lost = total[..., 0] == 0
    if lost.any():
        level = np.cumsum(alpha[lost], axis=-1)
        at = (random.random((len(level), 1)) * level[:, -1:] >= level).sum(axis=-1)
        rows[lost] = np.eye(alpha.shape[-1])[at]
        total[lost] = 1.0
    rows /= total
    return np.asarray(rows)


def _reward_law(counts: Counts, reward: Any, rewards: Rewards | None, batch: Batch | None) -> Law:
    pairs = (counts.n_states, counts.n_actions)
    if rewards is None:
        table = floats("reward", reward)
        if table.shape != pairs:
            raise InputError(f"Known rewards need the shape {pairs}; got {table.shape}.")
        return table
    if batch is None and rewards.arrival is not None:
        raise InputError(
            "The rewards were estimated by next state, and how sure they are only the rows can tell: give their batch "
            "as well, or estimate rewards by pair."
        )
    if rewards.arrival is None and rewards.kinds is not None:
        return outcome_posteriors(*rewards.kinds)
    return reward_posterior(rewards, batch)


def _prior_mean(model: Model) -> Kernel:
    """What the regularizer pulls toward, where that is meant as a prior for rows; else the uniform row."""
    shrinkage = model.shrinkage
    prior = shrinkage.learned and not shrinkage.averages_actions
    return shrinkage.target if prior else targets.uniform(model.counts)


def _believed(model: Model) -> dict[str, Any]:
    """How a learned target is judged, and how strong such targets are before any data."""
    details = model.shrinkage.details
    if not isinstance(details, Believed) or details.judged is None:
        return {}
    return {"judged": details.judged, "center": CENTER, "spread": SPREAD}


def _outcomes(counts: Counts, pull: Kernel) -> tuple[Integers, Floats]:
    """Counts ``(S, A, N)`` and prior mean ``(S or 1, A or 1, N)`` over the outcomes; where ending is one, the last."""
    S, A = counts.n_states, counts.n_actions
    if S * A * S > LARGEST:
        raise InputError(
            f"The rows of {S:,} states and {A:,} actions are {S * A * S:,} numbers, more than the {LARGEST:,} that can "
            "be drawn again and again. Use fewer states (coarser bins), or judge the policy by off-policy evaluation, "
            "which needs no draws of rows."
        )
    table = counts.transitions.toarray().reshape(S, A, S) if counts.sparse else counts.transitions
    rows, ending = pull.dense(), np.maximum(1 - pull.mass(), 0.0)
    if counts.ended is None and ending.max() <= MASS_TOLERANCE:
        return table, rows
    ended = np.zeros((S, A), dtype=np.int64) if counts.ended is None else counts.ended
    return np.concatenate([table, ended[..., None]], axis=-1), np.concatenate([rows, ending[..., None]], axis=-1)
