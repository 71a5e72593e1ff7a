"""Draws of whole models from the posterior: transition rows and rewards, block by block.

Rows. The regularizer that gave the advice says what is believed of rows (`certeq.regularizers.shrinkage.Belief`): one
law, or several with their chances. For each model a law is drawn, then the prior magnitudes M from their own posterior
under it; the row of a pair with counts c over N outcomes (the states, and ending where the data or the law have it) is
Dirichlet(c + M·q). So the mean of the drawn rows is the row that was planned with, and how strong the prior should be,
and toward what, is part of what is not known. A regularizer that comes from no prior (none at all, discounting,
averaging over actions) leaves it to `certeq.model.evidence`, toward the uniform row. Where a convention stands for
pairs with too few visits, it does in every draw.

Rewards. Known rewards are what they are; estimated ones are drawn as `certeq.questions.reward_posterior` tells. Where
rows ended, what going on pays and what ending pays are drawn apart, within what was seen, and a pair earns either by
the chances of its drawn row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from certeq.base.arrays import Floats, Integers, Rng, floats, generator, whole
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.learning.equivalence import Model
from certeq.model import targets
from certeq.model.kernel import MASS_TOLERANCE, Kernel
from certeq.model.rewards import Rewards
from certeq.questions.reward_posterior import ByOutcome, RewardPosterior, outcome_posteriors, reward_posterior
from certeq.regularizers.shrinkage import Belief, by_evidence

Law: TypeAlias = Floats | RewardPosterior | ByOutcome

LARGEST = 16_000_000  # numbers in one drawn model, an eighth of a gigabyte; drawing takes a few times that
BLOCK = 2_000_000  # numbers drawn together
FEW = 20_000  # numbers that NumPy draws: below it nobody should wait for a compiler


@dataclass(frozen=True)
class Draws:
    """Models to be drawn, in blocks, each from a seed of its own: the same in any order, and on any thread."""

    counts: Integers  # (S, A, N)
    priors: tuple[Floats, ...]  # (S or 1, A or 1, N) each: q under each belief
    belief: Integers  # (draws,): which belief a draw takes for true
    magnitude: Floats  # (draws, S, A): M
    held: Floats | None  # (S, A, N): rows that a convention stands for, NaN elsewhere
    reward: Law  # known (S, A); or the law of pairs (S, A), of arrivals (S + 1, 1), or of going on and of ending (S, A)
    together: int  # draws in a block; the last may have fewer
    seeds: Integers  # (blocks, 4)

    @property
    def blocks(self) -> range:
        """Numbers of the blocks."""
        return range(len(self.seeds))

    @property
    def predicted(self) -> Floats:
        """Chance of each outcome of the pair's next row, ``(S, A, N)``, given the beliefs and magnitudes drawn."""
        total = self.counts.sum(axis=-1) + self.magnitude  # (draws, S, A)
        row = self.counts * (1 / total).mean(axis=0)[..., None]
        for b, prior in enumerate(self.priors):
            taken = self.belief == b
            row = row + prior * ((self.magnitude[taken] / total[taken]).sum(axis=0) / len(total))[..., None]
        return np.asarray(row)

    def block(self, number: int) -> tuple[Floats, Floats]:
        """Rows ``(k, S, A, S)`` and rewards ``(k, S, A)`` of one block."""
        return self.by_outcome(number)[:2]

    def by_outcome(self, number: int) -> tuple[Floats, Floats, Floats | None]:
        """The same, and what is paid with each outcome, ``(k, S, A, N)``; None where that is the pair's reward."""
        random = np.random.default_rng(self.seeds[number])
        own = slice(number * self.together, (number + 1) * self.together)
        magnitude, belief = self.magnitude[own], self.belief[own]
        alpha = np.empty((len(magnitude), *self.counts.shape))
        for b, prior in enumerate(self.priors):
            alpha[belief == b] = magnitude[belief == b, ..., None] * prior
        alpha += self.counts
        outcomes = draw_rows(alpha, random)
        if self.held is not None:
            outcomes = np.where(np.isnan(self.held), outcomes, self.held)
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
    ``target`` is another mean of the prior than the regularizer's own, and the data say how strong; one that was made
    from the rows is taken as known beforehand, and its draws differ less than they should.
    """
    counts = model.counts
    if counts.batch:
        raise InputError("A posterior is of one data set; these counts have leading axes. Take them one by one.")
    pull = targets.uniform(counts) if target is None else target
    beliefs = (model.shrinkage.beliefs if target is None else ()) or (by_evidence(counts, pull),)
    table, priors = _outcomes(counts, [each.target for each in beliefs])
    size = whole("draws", draws, 1)
    law = reward_law(counts, reward, rewards, batch)
    random = generator(rng)
    belief, magnitude = draw_beliefs(beliefs, size, random)
    together = max(1, BLOCK // table.size)
    seeds = random.integers(2**32, size=(-(-size // together), 4))
    return Draws(table, priors, belief, magnitude, _held(model, table.shape), law, together, seeds)


def check_writable(counts: Counts) -> None:
    """Raise if a model of these counts is too large to be written out, which every drawn model is."""
    S, A = counts.n_states, counts.n_actions
    if S * A * S > LARGEST:
        raise InputError(
            f"A model of {S:,} states and {A:,} actions has {S * A * S:,} numbers, and models of more than {LARGEST:,} "
            "are not drawn by the hundred. Use fewer states (coarser bins), or judge the policy by off-policy "
            "evaluation, which draws none."
        )


def draw_rows(alpha: Floats, random: np.random.Generator) -> Floats:
    """Draw Dirichlet rows with these parameters, ``(..., N)``; outcomes with parameter 0 have no chance.

    A row is a set of gamma variates over their sum. Where the parameters are so small that all of them round to zero,
    one outcome has all the mass: which one is a draw by the parameters. Many numbers are drawn by a compiled kernel.
    """
    if alpha.size > FEW:
        from certeq.base.random import words
        from certeq.model import gammas

        out, flat = np.empty(alpha.shape), np.ascontiguousarray(alpha).reshape(-1, alpha.shape[-1])
        gammas.draw(flat, words(random, 1)[0], out.reshape(flat.shape))
        return out
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


def reward_law(counts: Counts, reward: Any, rewards: Rewards | None, batch: Batch | None) -> Law:
    """What is known of the rewards: a table, or laws to draw them from."""
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
        return outcome_posteriors(*rewards.kinds, batch)
    return reward_posterior(rewards, batch)


def draw_beliefs(beliefs: Sequence[Belief], size: int, random: np.random.Generator) -> tuple[Integers, Floats]:
    """Which belief each draw takes for true, and its magnitudes, ``(draws, S, A)``."""
    chance = np.array([float(each.chance) for each in beliefs])
    which = random.choice(len(beliefs), size=size, p=chance / chance.sum())
    parts = [(which == b, belief.magnitudes) for b, belief in enumerate(beliefs) if (which == b).any()]
    drawn = [(taken, draw(int(taken.sum()), rng=random)) for taken, draw in parts]
    magnitude = np.empty((size, *drawn[0][1].shape[1:]))
    for taken, found in drawn:
        magnitude[taken] = found
    return which, magnitude


def _held(model: Model, shape: tuple[int, ...]) -> Floats | None:
    """Rows that a convention stands for, over all outcomes; NaN elsewhere."""
    if not model.held.any():
        return None
    rows, ending = model.data.dense(), 1 - model.data.mass()
    full = rows if shape[-1] == rows.shape[-1] else np.concatenate([rows, ending[..., None]], axis=-1)
    return np.where(model.held[..., None], full, np.nan)


def _outcomes(counts: Counts, means: Sequence[Kernel]) -> tuple[Integers, tuple[Floats, ...]]:
    """Counts ``(S, A, N)`` and prior means ``(S or 1, A or 1, N)`` over the outcomes; where ending is one, the last."""
    check_writable(counts)
    S, A = counts.n_states, counts.n_actions
    table = counts.written_out.transitions
    parts = [(mean.dense(), np.maximum(1 - mean.mass(), 0.0)) for mean in means]
    if counts.ended is None and max(ending.max() for _, ending in parts) <= MASS_TOLERANCE:
        return table, tuple(rows for rows, _ in parts)
    ended = np.zeros((S, A), dtype=np.int64) if counts.ended is None else counts.ended
    priors = tuple(np.concatenate([rows, ending[..., None]], axis=-1) for rows, ending in parts)
    return np.concatenate([table, ended[..., None]], axis=-1), priors
