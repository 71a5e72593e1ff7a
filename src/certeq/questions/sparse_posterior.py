"""The posterior of a policy's value in models that are never written out, one drawn model at a time.

It is what `certeq.questions.posterior` tells, with the same law of rows and rewards (`certeq.questions.sparse_draws`)
and the same data drawn again; only the arithmetic is that of large models. Values are sought as differences from those
in the fitted model, and only as precisely as a difference between models needs to be known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from certeq.base import matrices as sp
from certeq.base.arrays import Booleans, Floats, Rng, generator
from certeq.base.errors import InputError
from certeq.base.threads import default_threads
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.data.look import FEW
from certeq.data.sums import Sums
from certeq.learning.case import Case
from certeq.learning.equivalence import Model
from certeq.model.kernel import Kernel, Mixture, SparseRows
from certeq.model.rewards import Rewards
from certeq.model.rewards import estimate as rewards_of
from certeq.planners import solve, sparse
from certeq.planners.backup import policy_operator, tied
from certeq.planners.episodic import check_ends
from certeq.planners.problem import Problem
from certeq.questions import again
from certeq.questions.chains import LASTING
from certeq.questions.credible import LEVEL, Posterior, chances, leads
from certeq.questions.earned import overstated
from certeq.questions.episodes import behavior
from certeq.questions.exact import evaluate
from certeq.questions.followed import shortfall
from certeq.questions.posterior import KEPT, REMEDY, advised_best
from certeq.questions.sparse_draws import draw_sparsely, unwritten

EACH, SETS = 2, 20  # models from one data set drawn again, at least; and data sets, before more come from each
JUDGED = 10  # data sets, evenly chosen, whose own advice tells what choosing flatters
PRECISE = 1e-5  # of the largest difference from the fitted model: how far the values of a drawn model may be off
PLANNED = 1e-7  # the same of the best policy, whose actions are to be told apart
PASSES = 500  # at most to find it: without a discount, a bound may be far
LONELY = 1_000_000  # pairs, above which data sets are done one at a time, to spare memory
LARGEST = 40_000_000  # values of states that are kept; of more, only those under the start


@dataclass(frozen=True)
class LeanPosterior(Posterior):
    """A posterior of so many states and draws that values of single states were not kept."""

    worth: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (P, draws): under the start of each draw

    @cached_property
    def values(self) -> Floats:
        """Value of each policy in each draw, under its start, ``(P, draws)``."""
        return self.worth

    def states(self, name: str, level: float = LEVEL) -> Floats:
        """Refuse to tell values of single states."""
        raise InputError("Of so many states and draws, only values under the start are kept.")


class FoundInSet(NamedTuple):
    """What was found in the models of one data set."""

    worth: Floats  # (P, k): value of each policy, under the start of the data set unless it is known
    states: Floats  # (P, k, S), or (P, k, 0) where they are not kept
    ahead: list[Any]  # (k, S, A) for each decision of a horizon, or once for all: leads of the actions, or their signs
    start: Floats | None  # (S,): where the episodes begin, where the data were drawn again
    flattery: float | None  # how much more the advice of the data set promises there than in the fitted model


class DrawnSet(NamedTuple):
    """A data set to draw models from."""

    model: Model
    known: Floats | None  # (S, A): rewards, where they are known
    rewards: Rewards | None  # how they were estimated, where they were
    batch: Batch | None  # the rows, where they are at hand
    size: int  # how many models
    random: np.random.Generator
    case: Case | None = None  # of the data set, where its own advice is asked for
    start: Floats | None = None  # (S,): where its episodes begin


@dataclass(frozen=True)
class SparseJob:
    """What is done with every drawn model."""

    policies: list[Floats]  # each (1 or H, S, A)
    model: Model  # the fitted one
    reward: Floats  # (S, A): as its plan sees it
    discount: float
    horizon: int | None
    watched: int | None  # decisions that count for values, where a plan is for all
    first: Floats  # (S,): where episodes begin
    known: bool  # whether that is known, and not drawn again
    compares: bool = False  # whether it is asked which action is best
    exactly: bool = True  # whether leads are kept, or only their signs
    keeps: bool = False  # whether values of single states are

    @cached_property
    def wanted(self) -> Booleans:
        """Pairs whose rows matter, ``(S, A)``."""
        taken = np.any([(policy > 0).any(axis=0) for policy in self.policies], axis=0)
        return np.asarray(taken | self.model.allowed if self.compares else taken)

    def value(self, rows: Kernel, reward: Floats, policy: Floats, near: Floats | None = None) -> Floats:
        """Value of a policy ``(1 or H, S, A)`` in a model, ``(S,)``, of as many decisions as count."""
        over = self.horizon or self.watched
        if over is None:
            return value_forever(rows, reward, self.discount, policy[0], near)
        value, step = np.zeros(len(reward)), _step(rows, reward, self.discount, policy[-1])
        for t in reversed(range(over)):
            if len(policy) > 1:
                step = _step(rows, reward, self.discount, policy[t % len(policy)])
            value = step(value)
        return value

    @cached_property
    def claimed(self) -> list[Floats]:
        """Value of each policy in the fitted model, ``(S,)``."""
        return [self.value(self.model.transition, self.reward, policy) for policy in self.policies]

    @cached_property
    def planned(self) -> Floats:
        """Values of the best policy in the fitted model, ``(S,)``."""
        return solve(self.model.transition, self.reward, self.discount, allowed=self.model.allowed).values

    @cached_property
    def _average(self) -> Any:
        """What averages the lines of all actions in states without advice, ``(S * A, S * A)``."""
        S, A = self.model.allowed.shape
        alone = np.repeat(~self.model.stranded, A).astype(np.float64)
        every = sp.kron(sp.eye_array(S), np.full((A, A), 1 / A), format="csr")
        return sp.diags_array(alone) + sp.diags_array(1 - alone) @ every

    def ahead(self, rows: Kernel, reward: Floats) -> list[Floats]:
        """How far each action is ahead of the best other one, ``(S, A)``, for each decision of a horizon, or once."""
        model, gamma = self.model, self.discount
        if self.horizon is not None:
            value, found = np.zeros(len(reward)), []
            for _ in range(self.horizon):
                q = reward + gamma * rows.expect(value)
                q = np.where(model.stranded[:, None], q.mean(axis=-1, keepdims=True), q)
                q = np.where(model.allowed, q, -np.inf)
                value = q.max(axis=-1)
                found.append(leads(q, tied(q)))
            return found[::-1]
        if model.stranded.any():
            reward = np.where(model.stranded[:, None], reward.mean(axis=-1, keepdims=True), reward)
            assert isinstance(rows, Mixture)  # no convention stands for rows where some states are without advice
            assert isinstance(rows.data, SparseRows)
            lines = SparseRows(self._average @ rows.data.matrix, *model.allowed.shape)
            rows = Mixture(lines, rows.weight, rows.target)
        if gamma == 1:
            check_ends(Problem(rows, reward, np.asarray(gamma), model.allowed), remedy=REMEDY)
        more = reward + gamma * rows.expect(self.planned) - self.planned[:, None]  # in a state, all less by the same
        able = sparse.able(Problem(rows, more, np.asarray(gamma), model.allowed))
        method = "inexact_policy_iteration" if able else "auto"  # also where it is small: there are many
        how: dict[str, Any] = {"tolerance": PLANNED, "max_iterations": PASSES, "threads": 1, "method": method}
        plan = solve(rows, more, gamma, allowed=model.allowed, **how)
        off = np.minimum(plan.error, PLANNED * np.abs(plan.values).max())
        return [leads(plan.action_values, tied(plan.action_values, off))]

    def flattery(self, other: Case) -> float:
        """How much more the advice of a case promises there than in the fitted model, which had no say in it."""
        advised, A = other.advise(), self.model.allowed.shape[1]
        policy = advised.policy[:, None]
        taken = np.where(policy < 0, 1 / A, np.arange(A) == policy)[None]
        here = self.value(other.model.transition, other.model.reward(other.table), taken, advised.values)
        return float((here - self.value(self.model.transition, self.reward, taken, advised.values)) @ self.first)

    def __call__(self, source: DrawnSet) -> FoundInSet:
        """Do with all models of one data set what is to be done."""
        drawn = draw_sparsely(
            source.model, source.known, source.size, rewards=source.rewards, batch=source.batch, wanted=self.wanted,
            averaged=self.model.stranded, rng=source.random,
        )  # fmt: skip
        values, ahead = [], list[list[Any]]()
        for number in range(source.size):
            model = drawn.draw(number)
            pairs = zip(self.policies, self.claimed, strict=True)
            values.append(np.stack([self.value(*model, policy, near) for policy, near in pairs]))
            if self.compares:
                found = self.ahead(*model)
                ahead.append([each if self.exactly else np.sign(each).astype(np.int8) for each in found])
        states = np.stack(values, axis=1)  # (P, k, S)
        start = self.first if self.known or source.start is None else source.start
        flattery = None if source.case is None else self.flattery(source.case)
        leading = [np.stack(each) for each in zip(*ahead, strict=True)]
        return FoundInSet(states @ start, states if self.keeps else states[..., :0], leading, source.start, flattery)


def value_forever(rows: Kernel, reward: Floats, discount: float, policy: Floats, near: Floats | None = None) -> Floats:
    """Value of a policy ``(S, A)`` in a sparse model, ``(S,)``; more roughly where it is ``near`` something."""
    base = np.zeros(len(reward)) if near is None else near
    more = reward if near is None else reward + discount * rows.expect(base) - base[:, None]
    problem = Problem(rows, np.asarray(more), np.asarray(discount), np.ones(reward.shape, dtype=bool))
    if discount == 1:
        check_ends(problem._replace(allowed=policy > 0), remedy=REMEDY)
    if sparse.able(problem):  # also where it is small: there are many
        return base + sparse.evaluate(problem, policy, 1, sparse.TOLERANCE if near is None else PRECISE)
    return base + evaluate(rows, more, discount, policy)


def _step(rows: Kernel, reward: Floats, discount: float, policy: Floats) -> Callable[[Floats], Floats]:
    """What one more decision under a policy makes of values."""
    if (policy.max(axis=-1) == 1).all():
        taken = policy.argmax(axis=-1)
        gain, ahead = reward[np.arange(len(taken)), taken], policy_operator(rows, taken)
        return lambda values: gain + discount * ahead(values)
    return lambda values: np.asarray((policy * (reward + discount * rows.expect(values))).sum(axis=-1))


def thinly(model: Model, policy: Floats, start: Floats, lasting: float) -> float:
    """Share of a policy's decisions that are for pairs with few rows, where so much of the time goes on."""
    thin = np.where(model.counts.visits < FEW, 1.0, 0.0)
    few, every = (value_forever(model.transition, each, lasting, policy) @ start for each in (thin, np.ones_like(thin)))
    return float(few / every)


def each_of(draws: int) -> int:
    """How many models come from one data set drawn again: more where there are data sets enough."""
    return int(np.clip(draws // SETS, EACH, again.EACH))


def each_drawn(counts: Counts, draws: int) -> int:
    """The same of any model, also of one that is written out."""
    return each_of(draws) if unwritten(counts) else again.EACH


def _again(case: Case, batch: Batch, size: int, random: np.random.Generator, judged: bool) -> DrawnSet:
    """A data set of as many episodes, drawn again, and what is learned from it; its own advice where it is judged."""
    other, often = again.drawn_again(case, batch, [random])
    if not judged:
        other = replace(other, usual=case.model.allowed)  # nobody asks what it would allow
    own, reward, start = other if judged else None, other.data.reward, again.starts_again(batch, often)[0]
    if not isinstance(reward, Sums):
        return DrawnSet(other.model, reward, None, None, size, random, own, start)
    told = rewards_of(reward, by_next_state=case.rules.reward_by == "next_state")
    return DrawnSet(other.model, None, told, again.taken(batch, often[0]), size, random, own, start)


def _sources(case: Case | None, given: DrawnSet, rng: Rng, compares: bool) -> list[Callable[[], DrawnSet]]:
    """What makes the data sets: drawing again, where there are rows; otherwise all models are from the one given."""
    batch, each, draws = None if case is None else case.data.batch, each_of(given.size), given.size
    sizes = [min(each, draws - at) for at in range(0, draws, each)]
    parts = enumerate(zip(sizes, generator(rng).spawn(len(sizes)), strict=True))
    if case is None or batch is None:
        return [partial(given._replace, size=size, random=seed) for _, (size, seed) in parts]
    every = max(1, len(sizes) // JUDGED)
    return [partial(_again, case, batch, *part, judged=compares and i % every == 0) for i, part in parts]


def _done(job: SparseJob, sources: list[Callable[[], DrawnSet]], threads: int | None) -> Iterator[FoundInSet]:
    """Do all data sets, several at a time, and give the results in order; when one fails, the rest is not begun."""
    _ = job.claimed, job.wanted, job.compares and job.horizon is None and job.planned  # once for all threads
    many = threads or max(2, default_threads())  # the one plans while the other does what only Python does
    many = many if job.wanted.size <= LONELY else 1
    pool, open_ones = ThreadPoolExecutor(many), deque[Future[FoundInSet]]()
    try:
        for source in sources:
            open_ones.append(pool.submit(lambda make: job(make()), source))
            if len(open_ones) > 2 * many:
                yield open_ones.popleft().result()
        while open_ones:
            yield open_ones.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def sparse_posterior(
    model: Model,
    table: Floats,
    discount: float,
    policies: Mapping[str, Any],
    read: list[Floats],
    *,
    rewards: Rewards | None,
    batch: Batch | None,
    case: Case | None,
    draws: int,
    rng: Rng,
    first: Floats,
    known: bool,
    horizon: int | None,
    watched: int | None,
    threads: int | None,
) -> Posterior:
    """Value policies in models drawn from the posterior: `certeq.questions.posterior.posterior` for large models."""
    S, A = model.allowed.shape
    few = (horizon or 1) * draws * S * A <= KEPT
    keeps = (len(read) + 1) * draws * S <= LARGEST
    job = SparseJob(read, model, model.reward(table), discount, horizon, watched, first, known, True, few, keeps)
    given = DrawnSet(model, table if rewards is None else None, rewards, batch, draws, generator(rng))
    found = list(_done(job, _sources(case, given, rng, True), threads))
    begun = [np.tile(one.start, (one.worth.shape[1], 1)) for one in found if one.start is not None] if keeps else []
    flattery = [one.flattery for one in found if one.flattery is not None]
    each = each_of(draws) if flattery else 1
    by_decision = zip(*(one.ahead for one in found), strict=True)
    best = np.array([chances(np.concatenate(ahead), each if few else 1) for ahead in by_decision])
    chance = advised_best(next(iter(policies.values())), read[0], best)
    told: dict[str, Any] = {
        "names": tuple(map(str, policies)),
        "state_values": np.concatenate([one.states for one in found], axis=1),
        "start": first,
        "claimed": np.array([values @ first for values in job.claimed]),
        "best": best if horizon else best[0],
        "advised_best": chance if horizon else chance[0],
        "thin": thinly(model, read[0][0], first, min(discount, 1 - 1 / (horizon or watched or LASTING))),
        "each": each,
        "starts": np.concatenate(begun) if begun and not known else None,
        "watched": watched,
        "flattery": max(0.0, float(np.mean(flattery))) if flattery else 0.0,
        **({} if case is None or horizon is not None else _rows_tell(job, case)),
    }
    return Posterior(**told) if keeps else LeanPosterior(**told, worth=np.concatenate([one.worth for one in found], 1))


def sparse_values(
    case: Case, read: list[Floats], first: Floats, *, known: bool, draws: int, rng: Rng, watched: int | None
) -> Floats:
    """Values of policies in models drawn from all that a case leaves open, ``(P, draws)``."""
    model, rules = case.model, case.rules
    job = SparseJob(read, model, model.reward(case.table), rules.discount, rules.horizon, watched, first, known)
    known_reward = case.table if case.rewards is None else None
    given = DrawnSet(model, known_reward, case.rewards, case.data.batch, draws, generator(rng))
    return np.concatenate([one.worth for one in _done(job, _sources(case, given, rng, False), None)], axis=1)


def _rows_tell(job: SparseJob, case: Case) -> dict[str, Any]:
    """What a posterior is told by the rows of a case in the order in which they came; nothing without them."""
    batch, policy, gamma = case.data.batch, job.policies[0], job.discount
    if batch is None:
        return {}
    known = case.rewards is None or batch.reward is None
    paid = case.table[batch.state, batch.action] if known else np.asarray(batch.reward)
    values = value_forever(job.model.transition, job.reward, gamma, policy[0])
    further = float(job.value(job.model.transition, np.ones_like(job.reward), policy) @ job.first) - 1
    told = {"history": shortfall(batch, paid, policy[0] == 1, values, gamma) * max(further, 0.0)}
    if batch.recipe is None or not batch.recipe.cut:
        return told
    step = _step(job.model.transition, job.reward, gamma, behavior(case.data.counts))
    return told | {"overstated": overstated(batch, paid, step, gamma, job.watched)}
