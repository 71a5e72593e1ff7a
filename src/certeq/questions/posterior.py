"""The posterior of a policy's value: what the data leave open, carried through to the number that matters.

Models are drawn from the posterior (`certeq.questions.draws`) and every policy is valued in every one of them, so
differences between policies are taken model by model. Each model is also solved: in how many of them is the advised
action the best one?

Where the rows are at hand, the data are drawn again as well, and a few models from the posterior of each
(`certeq.questions.again`): by measurement, only then do the intervals hold (docs/coverage.md). Who comes first is drawn
with them, unless the start is said.

The best policy of a draw is sought among those that could be advised: with the actions that the model allows, and any
action at random in a state where none may be advised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from certeq.base import places
from certeq.base.arrays import ArrayLike, Booleans, Floats, Rng, floats, whole, within
from certeq.base.errors import InputError
from certeq.base.threads import default_threads
from certeq.data.batch import Batch
from certeq.data.look import FEW
from certeq.learning.case import Case
from certeq.learning.elapsed import check_alike
from certeq.learning.equivalence import Model
from certeq.model.kernel import Kernel, Rows
from certeq.model.rewards import Rewards
from certeq.planners import Plan, compiled, solve
from certeq.planners.backup import tied
from certeq.planners.episodic import check_ends
from certeq.planners.problem import Problem
from certeq.questions import again
from certeq.questions.again import draw_bagged
from certeq.questions.asking import ADVICE, PLAIN, RECORDED, Asking, Question, affordable_draws
from certeq.questions.chains import LASTING, as_problem, follow, follow_each, read_policy, value_chains, value_decisions
from certeq.questions.credible import Posterior, chances, leads
from certeq.questions.draws import Draws, check_writable, draw_models
from certeq.questions.earned import overstated, resting
from certeq.questions.episodes import behavior, starts
from certeq.questions.episodes import watched as watched_for
from certeq.questions.followed import shortfall
from certeq.questions.sparse_draws import unwritten

TRAVELING = 64  # blocks that are on their way to an executor at a time
WAITING = 16  # blocks for each thread that may wait while others are prepared
CACHED = 500_000  # numbers in models that are done together, where they come a few at a time
KEPT = 25_000_000  # leads of actions in all draws; of more, only their signs
REMEDY = "Models drawn from the posterior must end as well: set a horizon"


def posterior(
    model: Model,
    reward: ArrayLike,
    discount: float,
    policies: Mapping[str, ArrayLike],
    *,
    rewards: Rewards | None = None,
    batch: Batch | None = None,
    case: Case | None = None,
    draws: int = 1000,
    rng: Rng = 0,
    start: ArrayLike | None = None,
    horizon: int | None = None,
    watched: int | None = None,
    target: Kernel | None = None,
    threads: int | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    executor: Executor | None = None,
) -> Posterior:
    """Value policies in models drawn from the posterior.

    Parameters
    ----------
    model, reward, discount
        The fitted model, and rewards ``(S, A)`` before the model averages any of them, which it claims values by.
    policies
        Name to policy: ``(S,)`` actions, -1 for any at random, or ``(S, A)`` probabilities; with a horizon H also
        ``(H, S)`` or ``(H, S, A)``. The first is the advised one.
    rewards, batch
        How the rewards were estimated, and from which rows (rewards by pair tell enough without them); without
        ``rewards`` the table is taken as known.
    case
        What the model came from. If it has rows, they are drawn again, and models from what is learned from each draw.
    draws, rng
        How many models, and the seed.
    start
        Distribution ``(S,)`` of the first state, taken as known; by default that of the episodes in the batch, drawn
        again with the data, and without a batch that of the states in all rows.
    horizon
        Value so many decisions instead of all; a plan with a horizon needs its own.
    watched
        Value so many decisions of plans without a horizon, as `certeq.questions.episodes.watched` tells; which action
        is best is still asked for all.
    target
        Mean of the prior of each row; see `certeq.questions.draws.draw_models`.
    threads, workers, scheduler, executor
        Where blocks of models are drawn and solved: on threads of this process (all processors by default), on local
        processes, on the Dask cluster of this address, or on an executor that is open already. The result does not
        depend on it. Only counts travel, and no rows. Models that are too large to be written out
        (`certeq.questions.sparse_posterior`) are drawn on threads wherever others would be.
    """
    if case is not None and case.peculiar:
        raise InputError(case.peculiar)
    check_alike(batch)
    counts = model.counts
    S, A = counts.n_states, counts.n_actions
    gamma = within("discount", discount, 0, 1)
    if gamma.ndim:
        raise InputError(f"A posterior is for one discount; got an array of shape {gamma.shape}.")
    if not policies:
        raise InputError("Give at least one policy to value: a name and its actions.")
    steps = None if horizon is None else whole("horizon", horizon, 1)
    read = [read_policy(name, policy, S, A, steps) for name, policy in policies.items()]
    table = floats("reward", reward)
    if table.shape != (S, A):
        raise InputError(f"Rewards need the shape ({S}, {A}); got {table.shape}.")
    size, first = whole("draws", draws, 1), start_of(model, batch, start)
    over = None if watched is None or steps is not None else whole("watched", watched, 1)
    if target is None and unwritten(counts):
        from certeq.questions.sparse_posterior import sparse_posterior

        return sparse_posterior(
            model, table, float(gamma), policies, read, rewards=rewards, batch=batch, case=case, draws=size, rng=rng,
            first=first, known=start is not None, horizon=steps, watched=over, threads=threads,
        )  # fmt: skip
    check_writable(counts)
    fitted, flattery = (model.transition.dense()[None], model.reward(table)[None]), list[float]()
    begun = list[Floats]()

    def bagged(case: Case) -> Iterator[Draws]:
        for bag in draw_bagged(case, size, rng=rng):
            yield from bag.draws
            if bag.case is not None and bag.starts is not None:
                flattery.extend(job.flattery(bag.case, *fitted) @ first)
                begun.append(bag.starts)

    sources: Iterable[Draws]
    if case is None or target is not None:
        sources = [draw_models(model, table, size, rewards=rewards, batch=batch, target=target, rng=rng)]
    else:
        sources = bagged(case)
    few = (steps or 1) * size * S * A <= KEPT
    job = _Job(read, gamma, steps, over, model.allowed, model.stranded, compiled.worth((size,), S), few)
    with places.pool(executor, workers, scheduler) as pool:
        found = _in_order(job, sources, threads) if pool is None else _elsewhere(job, sources, pool)
    claimed, each = job.values(*fitted)[:, 0] @ first, again.EACH if begun else 1
    by_decision = zip(*(ahead for _, ahead in found), strict=True)
    best = np.array([chances(np.concatenate(ahead), each if few else 1) for ahead in by_decision])
    chance = advised_best(next(iter(policies.values())), read[0], best)
    return Posterior(
        names=tuple(map(str, policies)),
        state_values=np.concatenate([values for values, _ in found], axis=1),
        start=first,
        claimed=np.asarray(claimed),
        best=best if steps else best[0],
        advised_best=chance if steps else chance[0],
        thin=decided_thinly(model, read[0][0], first, float(gamma), steps or over),
        each=each,
        starts=np.concatenate(begun) if begun and start is None else None,
        watched=over,
        flattery=max(0.0, float(np.mean(flattery))) if flattery else 0.0,
        **({} if case is None or steps is not None else job.rows_tell(case, *fitted, first)),
    )


def drawn_values(
    case: Case,
    policies: Iterable[ArrayLike],
    start: Floats | None = None,
    *,
    draws: int,
    rng: Rng,
    watched: int | None = None,
) -> Floats:
    """Values of policies in models drawn from all that a case leaves open, ``(P, draws)``; who comes first as well."""
    if case.peculiar:
        raise InputError(case.peculiar)
    rules, model = case.rules, case.model
    S, A = model.counts.n_states, model.counts.n_actions
    read = [read_policy("", policy, S, A, rules.horizon) for policy in policies]
    over = None if rules.horizon is not None else watched
    if unwritten(model.counts):
        from certeq.questions.sparse_posterior import sparse_values

        first = start_of(model, case.data.batch, start)
        return sparse_values(case, read, first, known=start is not None, draws=draws, rng=rng, watched=over)
    usual = np.asarray(rules.discount), rules.horizon, over, model.allowed, model.stranded, compiled.worth((draws,), S)
    job, found = _Job(read, *usual), list[Floats]()
    for bag in draw_bagged(case, draws, rng=rng):
        values = np.concatenate([job.values(*one.block(i)) for one in bag.draws for i in one.blocks], axis=1)
        begun = bag.starts if start is None else start
        found.append((values * (start_of(model, None, None) if begun is None else begun)).sum(axis=-1))
    return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class _Job:
    """What is done with every block of models."""

    policies: list[Floats]  # each (1 or H, S, A)
    discount: Floats
    horizon: int | None
    watched: int | None  # decisions that count for values, where a plan is for all
    allowed: Booleans  # (S, A)
    stranded: Booleans  # (S,)
    compiles: bool  # whether all draws together are worth compiled kernels
    exactly: bool = True  # whether leads are kept, or only their signs

    def __call__(self, rows: Floats, reward: Floats) -> tuple[Floats, Any]:
        """Value of each policy in each model, ``(P, k, S)``, and leads of the actions, ``(T, k, S, A)``."""
        if self.horizon is not None:
            return self._backward(rows, reward, self.horizon)
        return self.values(rows, reward), self._leads(rows, reward)[None]

    def values(self, rows: Floats, reward: Floats) -> Floats:
        """Value of each policy in each model, ``(P, k, S)``."""
        if self.horizon is not None:
            return self._backward(rows, reward, self.horizon)[0]
        return np.stack([self._followed(*follow(rows, reward, policy[0])) for policy in self.policies])

    def _followed(self, chain: Floats, gain: Floats) -> Floats:
        """Value of each chain, ``(k, S)``, of as many decisions as count."""
        over = self.horizon or self.watched
        if over is not None:
            return value_decisions(chain, gain, float(self.discount), over)
        if self.discount == 1:
            check_ends(as_problem(chain, gain, self.discount), remedy=REMEDY)
        return value_chains(chain, gain, self.discount, compiles=self.compiles)

    def flattery(self, other: Case, rows: Floats, reward: Floats) -> Floats:
        """How much more advice promises where it was chosen than in a model that had no say in it, ``(D, S)``."""
        S, A = self.allowed.shape
        advised = other.advise().policy.reshape(-1, S)
        own = other.model.transition.dense().reshape(-1, S, A, S)
        paid = np.broadcast_to(other.model.reward(other.table), (len(own), S, A))  # known rewards are all the same
        here, there = (self._followed(*follow_each(*model, advised)) for model in ((own, paid), (rows, reward)))
        return here - there

    def rows_tell(self, case: Case, rows: Floats, reward: Floats, start: Floats) -> dict[str, Any]:
        """What a posterior is told by the rows of a case in the order in which they came; nothing without them."""
        batch, policy, model = case.data.batch, self.policies[0][0], case.model
        if batch is None:
            return {}
        chain, gain = follow(rows, reward, policy)
        if self.discount == 1:
            check_ends(as_problem(chain, gain, self.discount), remedy=REMEDY)
        known = case.rewards is None or batch.reward is None
        paid = case.table[batch.state, batch.action] if known else np.asarray(batch.reward)
        values, gamma = value_chains(chain, gain, self.discount, compiles=False)[0], float(self.discount)
        further = float(self._followed(chain, np.ones_like(gain))[0] @ start) - 1
        often = how_often(model, policy, start, gamma, self.watched)
        told = {
            "exact": batch.recipe is None or not batch.recipe.cut,
            "history": shortfall(batch, paid, policy == 1, values, gamma) * max(further, 0.0),
            "rests": resting(batch, paid, often, values, gamma),
        }
        if told["exact"]:
            return told
        done, earned = (each[0] for each in follow(rows, reward, behavior(case.data.counts)))
        return told | {"overstated": overstated(batch, paid, lambda v: earned + gamma * done @ v, gamma, self.watched)}

    def _kept(self, lead: Floats) -> Any:
        return lead if self.exactly else np.sign(lead).astype(np.int8)

    def _leads(self, rows: Floats, reward: Floats) -> Any:
        """How far each action is ahead of the best other one in each model, ``(k, S, A)``."""
        plan = self._solved(rows, reward)
        return self._kept(leads(plan.action_values, plan.tied))

    def _solved(self, rows: Floats, reward: Floats) -> Plan:
        if self.stranded.any():
            reward = np.where(self.stranded[:, None], reward.mean(axis=-1, keepdims=True), reward)
            rows[:, self.stranded] = rows[:, self.stranded].mean(axis=-2, keepdims=True)  # nobody needs them any more
        problem = Problem(Rows.trusted(rows), reward, self.discount, self.allowed)
        check_ends(problem, remedy=REMEDY)
        engine = "numba" if self.compiles else "numpy"
        return solve(problem.model, reward, self.discount, allowed=self.allowed, engine=engine, threads=1)

    def _backward(self, rows: Floats, reward: Floats, horizon: int) -> tuple[Floats, Any]:
        """The same for so many decisions: all policies, and the best one, are followed back from the last at once."""
        k, S, A, _ = rows.shape
        flat, gain = rows.reshape(k, S * A, S), reward[..., None]
        values = np.zeros((k, S, len(self.policies) + 1))  # the best policy comes last
        ahead = [None] * horizon
        for t in reversed(range(horizon)):
            q = gain + self.discount * (flat @ values).reshape(k, S, A, -1)
            for i, policy in enumerate(self.policies):
                values[..., i] = (policy[t % len(policy)] * q[..., i]).sum(axis=-1)
            top = np.where(self.stranded[:, None], q[..., -1].mean(axis=-1, keepdims=True), q[..., -1])
            top = np.where(self.allowed, top, -np.inf)
            values[..., -1] = top.max(axis=-1)
            ahead[t] = self._kept(leads(top, tied(top)))
        return np.moveaxis(values[..., :-1], -1, 0), ahead


def best_in(model: Model, rows: Floats, reward: Floats, discount: float) -> Booleans:
    """Which actions are the best ones in a world ``(S, A, S)``, of those that the model allows, ``(S, A)``."""
    job = _Job([], np.asarray(discount), None, None, model.allowed, model.stranded, False)
    return np.asarray(job._solved(rows[None].copy(), reward[None]).tied[0])


def advised_best(advised: Any, policy: Floats, best: Floats) -> Floats:
    """Probability that the advised action is best, ``(T, S)``; a random one, as often as it takes the best."""
    array = np.asarray(advised)
    silent = (array < 0) if array.dtype.kind in "iu" else np.zeros(array.shape[:-1], dtype=bool)
    return np.asarray(np.where(silent, np.nan, (policy * best).sum(axis=-1)))


def decided_thinly(model: Model, policy: Floats, start: Floats, discount: float, horizon: int | None) -> float:
    """Share of a policy's decisions that are for pairs with few rows, as often as the fitted model leads to them."""
    if unwritten(model.counts):
        from certeq.questions.sparse_posterior import thinly

        return thinly(model, policy, start, min(discount, 1 - 1 / (horizon or LASTING)))
    often = how_often(model, policy, start, discount, horizon)
    return float(often[model.counts.visits < FEW].sum() / often.sum())


def how_often(model: Model, policy: Floats, start: Floats, discount: float, horizon: int | None) -> Floats:
    """How often the fitted model has a policy take each pair, discounted, ``(S, A)``."""
    lasting = min(discount, 1 - 1 / (horizon or LASTING))
    chain, _ = follow(model.transition.dense()[None], np.zeros((1, *policy.shape)), policy)
    return np.asarray(np.linalg.solve(np.eye(len(start)) - lasting * chain[0].T, start)[:, None] * policy)


def _in_order(job: _Job, sources: Iterable[Draws], threads: int | None) -> list[tuple[Floats, Floats]]:
    """Do all blocks, several at a time, and give the results in order; when one fails, the rest is not begun."""
    many, together = threads or default_threads(), _together(sources)
    if many == 1:
        return [_blocks(job, some) for some in together]
    pool, found, open_ones = ThreadPoolExecutor(many), list[tuple[Floats, Floats]](), deque[Future[Any]]()
    try:
        for some in together:
            open_ones.append(pool.submit(_blocks, job, some))
            while len(open_ones) > WAITING * many:  # each holds a whole table of counts
                found.append(open_ones.popleft().result())
        return found + [each.result() for each in open_ones]
    finally:
        pool.shutdown(cancel_futures=True)


def _elsewhere(job: _Job, sources: Iterable[Draws], pool: Executor) -> list[tuple[Floats, Floats]]:
    """Do all blocks on an executor; counts travel, and no rows."""
    found = list[tuple[Floats, Floats]]()
    for some in _some(sources, TRAVELING):
        found += pool.map(partial(_one_block, job), [_alone(*one) for one in some])
    return found


def _together(sources: Iterable[Draws]) -> Iterator[list[tuple[Draws, int]]]:
    """Blocks of all sources, small ones several at a time, as many as stay in the cache."""
    some, size = list[tuple[Draws, int]](), 0
    for drawn in sources:
        for number in drawn.blocks:
            some.append((drawn, number))
            size += drawn.counts.size * min(drawn.together, len(drawn.belief))
            if size >= CACHED:
                yield some
                some, size = [], 0
    if some:
        yield some


def _blocks(job: _Job, some: list[tuple[Draws, int]]) -> tuple[Floats, Floats]:
    """Do some blocks, as one."""
    drawn = zip(*(each.block(number) for each, number in some), strict=True)
    return job(*(np.concatenate(parts) if len(some) > 1 else parts[0] for parts in drawn))


def _some(sources: Iterable[Draws], many: int) -> Iterator[list[tuple[Draws, int]]]:
    """Blocks of all sources, so many at a time: each holds a whole table of counts."""
    blocks = ((drawn, number) for drawn in sources for number in drawn.blocks)
    while some := list(islice(blocks, many)):
        yield some


def _alone(drawn: Draws, number: int) -> Draws:
    """One block by itself, with no more than it needs: it may travel far."""
    own = slice(number * drawn.together, (number + 1) * drawn.together)
    return replace(drawn, magnitude=drawn.magnitude[own], belief=drawn.belief[own], seeds=drawn.seeds[[number]])


def _one_block(job: _Job, drawn: Draws) -> tuple[Floats, Floats]:
    return job(*drawn.block(0))


def start_of(model: Model, batch: Batch | None, start: ArrayLike | None) -> Floats:
    """Distribution of the first state, ``(S,)``."""
    S = model.counts.n_states
    if start is None:
        visits = model.counts.visits.sum(axis=-1)
        return starts(batch) if batch is not None else visits / visits.sum() if visits.any() else np.full(S, 1 / S)
    chance = within("start", start, 0, 1)
    if chance.shape != (S,) or abs(chance.sum() - 1) > 1e-9:
        raise InputError(f"start needs {S} probabilities that sum to 1; got {chance.shape}, sum {chance.sum():g}.")
    return chance


def _ask(asking: Asking) -> Posterior:
    learned, plain = asking.learned, asking.found.get("plain")
    policies: dict[str, Any] = {ADVICE: learned.policy.actions, RECORDED: behavior(learned.counts)}
    if learned.rules.regularizer != "none" and plain is not None:
        policies[PLAIN] = plain
    found = posterior(
        learned.model,
        learned.table,
        learned.rules.discount,
        policies,
        rewards=learned.rewards,
        batch=learned.batch,
        case=learned.case,
        draws=affordable_draws(learned, asking.draws),
        rng=asking.rng,
        horizon=learned.rules.horizon,
        watched=watched_for(learned.batch, learned.rules.discount),
        executor=asking.executor,
    )
    return replace(found, once=not learned.summary.people)


ASKED = Question(
    "posterior", _ask, doing="Drawing models from the posterior", asks="how sure each action is", after=("plain",)
)
