"""Draws of whole models that are never written out: of each row what was seen, a few outcomes more, and its target.

The law is that of `certeq.questions.draws`. With counts c, n in all, magnitude M and prior mean q, a row is

    Dirichlet(c + M·q) = (1 - B)·Dirichlet(c) + B·R,    B ~ Beta(M, n),    R ~ Dirichlet(M·q)

The first part has no outcomes but those that were seen. R is made of sticks (Sethuraman 1994), which are broken off
until little of the row is left; of a large M each is tiny, and none is:

    R = V·δ(i) + (1 - V)·R',    V ~ Beta(1, M),    i ~ q,    R' ~ R

What is left stands for itself by k ≤ M + 1 outcomes and the target, which is applied and not written out:

    R' ≈ (1 - √(k/(M + 1)))·q + Σ_j δ(i_j)/√(k·(M + 1)),    i_j ~ q

That has the mean of R', q, and its covariance, (diag(q) - q·qᵀ)/(M + 1). So drawn rows have the means and covariances
of their Dirichlet laws, exactly; only what is beyond these is approximate, in a part of the row that is small, or a sum
of many. Ending is an outcome apart, with a gamma variate of its own, and has the very law that it should have. In a
state without advice, where the rows of all actions are averaged, nothing is left to the target. Targets that are known
only by what they do to values (`certeq.model.kernel.Operator`) stand at their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Booleans, Floats, Integers, Rng, generator
from certeq.data.batch import Batch
from certeq.data.counts import DENSE_LIMIT, Counts
from certeq.learning.equivalence import Model
from certeq.model import targets
from certeq.model.kernel import Kernel, Mixture, Operator, Rows, SparseRows, parts
from certeq.model.rewards import Rewards
from certeq.questions.draws import Law, draw_beliefs, reward_law
from certeq.questions.reward_posterior import ByOutcome
from certeq.regularizers.shrinkage import by_evidence

WRITTEN = (
    DENSE_LIMIT  # numbers in the rows of a model: where there are more, and counts are sparse, none is written out
)
LEFT = 0.05  # part of a row of which no more sticks are broken off
SMOOTH = 8.0  # magnitude from which on none is
OUTCOMES = 4  # k, where no sticks are broken off
AVERAGED = 32  # the most outcomes of a row of which nothing is left to the target


def unwritten(counts: Counts) -> bool:
    """Whether models of these counts are too large to be written out again and again."""
    return counts.sparse and counts.n_states**2 * counts.n_actions > WRITTEN


@dataclass(frozen=True)
class SparseDraws:
    """Models to be drawn one at a time, each from a seed of its own: the same in any order, and on any thread."""

    model: Model
    targets: tuple[PriorMean, ...]  # under each belief
    belief: Integers  # (draws,): which one a draw takes for true
    magnitude: Floats  # (draws, S, A): M
    reward: Law
    seeds: Integers  # (draws, 4)
    wanted: Booleans  # (S, A): pairs whose rows matter; those of others stay nearer to their mean
    averaged: Booleans  # (S,): states in which the rows of all actions will be averaged

    def draw(self, number: int) -> tuple[Kernel, Floats]:
        """Rows and rewards ``(S, A)`` of one model."""
        random = np.random.default_rng(self.seeds[number])
        rows: Kernel = self._rows(self.magnitude[number], self.targets[self.belief[number]], random)
        if self.model.held.any():
            rows = Mixture(rows, self.model.held.astype(np.float64), self.model.data)
        return rows, self._rewards(rows, random)

    @cached_property
    def _pair(self) -> Integers:
        """The pair of each outcome that was seen."""
        often = np.diff(self.model.counts.transitions.indptr)
        return np.repeat(np.arange(len(often)), often)

    def _rows(self, magnitude: Floats, target: PriorMean, random: np.random.Generator) -> Mixture:
        counts = self.model.counts
        S, A = counts.n_states, counts.n_actions
        M = (magnitude * target.goes_on).ravel()
        ended = (magnitude * (1 - target.goes_on) + (0 if counts.ended is None else counts.ended)).ravel()
        seen, unseen = random.standard_gamma(counts.transitions.data), random.standard_gamma(M)
        total = np.bincount(self._pair, seen, minlength=S * A) + unseen + random.standard_gamma(ended)
        lost = total == 0  # all rounds to zero, and so there is one outcome
        unseen = np.where(lost, random.random(len(M)) * (M + ended) < M, unseen)
        total = np.where(lost, 1.0, total)
        pair, outcome, chance = self._pair, counts.transitions.indices, seen / total[self._pair]
        left = unseen / total
        if target.chooser is not None:
            more, much, left = _break_up(left, M, self.wanted.ravel(), np.repeat(self.averaged, A), random)
            pair, outcome = np.append(pair, more), np.append(outcome, target.chooser.draw(more, random))
            chance = np.append(chance, much)
        chance /= np.where(left < 1, 1 - left, 1.0)[pair]
        matrix = sp.coo_array((chance, (pair, outcome)), shape=(S * A, S)).tocsr()
        return Mixture(SparseRows(matrix, S, A), left.reshape(S, A), target.rows)

    def _rewards(self, rows: Kernel, random: np.random.Generator) -> Floats:
        if isinstance(self.reward, np.ndarray):
            return self.reward
        if isinstance(self.reward, ByOutcome):
            (going,), (ending,) = (law.draw(1, random) for law in self.reward)
            mass = rows.mass()
            return np.asarray(mass * going + (1 - mass) * ending)
        (mean,) = self.reward.draw(1, random)
        if mean.shape == self.wanted.shape:
            return np.asarray(mean)
        arrival = mean[:, 0]
        return np.asarray(rows.expect(arrival[:-1]) + (1 - rows.mass()) * arrival[-1])


def _break_up(
    left: Floats, M: Floats, wanted: Booleans, averaged: Booleans, random: np.random.Generator
) -> tuple[Integers, Floats, Floats]:
    """Break the unseen part of each row up: pairs, how much of their rows each outcome has, and what is left."""
    pair, much, left = list[Integers](), list[Floats](), left.copy()
    breaking = np.flatnonzero(wanted & (M < SMOOTH) & (left > LEFT))
    while len(breaking):
        stick = 1 - random.random(len(breaking)) ** (1 / M[breaking])  # Beta(1, M)
        pair.append(breaking)
        much.append(left[breaking] * stick)
        left[breaking] *= 1 - stick
        breaking = breaking[left[breaking] > LEFT]
    most = np.where(averaged, AVERAGED, np.where(M < SMOOTH, 1, OUTCOMES))
    k = np.where(wanted & (left > 0), np.minimum(most, np.floor(M) + 1), 0)
    share = np.where(averaged, 1.0, np.sqrt(k / (M + 1)))
    at = np.repeat(np.arange(len(k)), k.astype(np.int64))
    pair.append(at)
    much.append((left * share)[at] / k[at])
    return np.concatenate(pair), np.concatenate(much), np.where(k > 0, left * (1 - share), left)


class PriorMean(NamedTuple):
    """What rows are drawn toward."""

    rows: Kernel  # given that the episode goes on
    goes_on: Floats  # (S or 1, A or 1): the chance of that
    chooser: Chooser | None  # of outcomes; None where rows are only applied

    @classmethod
    def of(cls, kernel: Kernel, actions: int) -> PriorMean:
        """Take ending out of the rows of a kernel, which is an outcome apart."""
        leaves = parts(kernel)
        if any(isinstance(leaf, Operator) for _, leaf in leaves):
            return cls(kernel, np.ones((1, 1)), None)
        total = np.zeros((1, 1))
        rows: Kernel | None = None
        for weight, leaf in leaves:
            mass, whole = leaf.mass(), _whole(leaf)
            total = total + weight * mass
            share = np.divide(weight * mass, total, out=np.zeros(total.shape), where=total > 0)
            rows = whole if rows is None else Mixture(rows, share, whole)
        assert rows is not None
        return cls(rows, np.minimum(total, 1.0), Chooser(rows, actions))


def _whole(leaf: Rows | SparseRows | Operator) -> Rows | SparseRows:
    """Rows over their sums."""
    assert not isinstance(leaf, Operator)
    mass = leaf.mass()
    scale = 1 / np.where(mass > 0, mass, 1.0)
    if isinstance(leaf, Rows):
        return Rows.trusted(leaf.array * scale[..., None])
    matrix = leaf.matrix
    lines = sp.csr_array(
        (matrix.data * np.repeat(scale.ravel(), np.diff(matrix.indptr)), matrix.indices, matrix.indptr), matrix.shape
    )
    return SparseRows(lines, leaf.s_axis, leaf.a_axis)


class Chooser:
    """Outcomes drawn from the rows of a kernel that is not written out, and in which nothing ends."""

    def __init__(self, kernel: Kernel, actions: int) -> None:
        leaves = parts(kernel)
        shape = np.broadcast_shapes(*(weight.shape for weight, _ in leaves))
        self.level = np.cumsum([np.broadcast_to(weight, shape) for weight, _ in leaves], axis=0)
        self.leaves, self.actions = [_LeafChooser(leaf) for _, leaf in leaves], actions

    def draw(self, pair: Integers, random: np.random.Generator) -> Integers:
        """An outcome of each of some pairs, numbered s·A + a."""
        state, action = np.divmod(pair, self.actions)
        s_axis, a_axis = self.level.shape[1:]
        level = self.level[:, state * (s_axis > 1), action * (a_axis > 1)]
        which = (random.random(len(pair)) * level[-1] >= level[:-1]).sum(axis=0)
        u, led = random.random(len(pair)), np.empty(len(pair), dtype=np.int64)
        for i, leaf in enumerate(self.leaves):
            at = np.flatnonzero(which == i)
            led[at] = leaf.draw(state[at], action[at], u[at])
        return led


class _LeafChooser:
    """The same of rows that are mixed with nothing."""

    def __init__(self, rows: Rows | SparseRows | Operator) -> None:
        assert not isinstance(rows, Operator)
        self.s_axis, self.a_axis, S = rows.shape
        if isinstance(rows, SparseRows):
            self.begin, self.outcome, chance = rows.matrix.indptr, rows.matrix.indices, rows.matrix.data
        else:
            self.begin = np.arange(0, S * self.s_axis * self.a_axis + 1, S)
            self.outcome, chance = np.tile(np.arange(S), self.s_axis * self.a_axis), rows.array.ravel()
        self.level = np.append(0.0, np.cumsum(chance))

    def draw(self, state: Integers, action: Integers, u: Floats) -> Any:
        line = state * (self.s_axis > 1) * self.a_axis + action * (self.a_axis > 1)
        low, last = self.begin[line], self.begin[line + 1] - 1
        at = np.searchsorted(self.level, self.level[low] + u, side="right") - 1
        return self.outcome[np.clip(at, low, last)]


def draw_sparsely(
    model: Model,
    reward: Any,
    draws: int,
    *,
    rewards: Rewards | None = None,
    batch: Batch | None = None,
    wanted: Booleans | None = None,
    averaged: Booleans | None = None,
    rng: Rng = None,
) -> SparseDraws:
    """Prepare draws from the posterior of what sparse counts were drawn from; see `certeq.questions.draws`."""
    counts, random = model.counts, generator(rng)
    beliefs = model.shrinkage.beliefs or (by_evidence(counts, targets.uniform(counts)),)
    law = reward_law(counts, reward, rewards, batch)
    belief, magnitude = draw_beliefs(beliefs, draws, random)
    means = tuple(PriorMean.of(each.target, counts.n_actions) for each in beliefs)
    every = np.ones((counts.n_states, counts.n_actions), dtype=bool) if wanted is None else wanted
    some = np.zeros(counts.n_states, dtype=bool) if averaged is None else averaged
    seeds = random.integers(2**32, size=(draws, 4))
    return SparseDraws(model, means, belief, magnitude, law, seeds, every, some)
