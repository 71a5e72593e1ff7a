"""Intervals for the value of a policy that was chosen from the same data, held against a truth.

One data set at a time: learn, ask the posterior, draw the episodes again, and see what the policy is worth in truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Rng, generator, middle
from certeq.data.batch import Batch
from certeq.data.counts import tally
from certeq.data.sums import add_up
from certeq.experiments.procedure import draw_batch, draw_truth
from certeq.learning.equivalence import estimate
from certeq.model.mdp import MDP
from certeq.model.rewards import estimate as estimate_rewards
from certeq.model.rewards import means
from certeq.planners import Plan, solve
from certeq.questions.bootstrap import count_again
from certeq.questions.episodes import episodes
from certeq.questions.exact import evaluate
from certeq.questions.posterior import LEVEL, posterior

CREDIBLE, AGAIN, KEPT = "credible", "bootstrap", "bootstrap, policy kept"
INTERVALS = (CREDIBLE, AGAIN, KEPT)
BEST = "best action"
BINS = 10  # of the claimed probability that the advised action is best
ROUNDING = 1e-9
ROOM = 8_000_000  # numbers in the counts that are planned with together


def run_cell(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """All lines of one chunk of data sets, from a plain description."""
    random = generator(rng)
    truth = draw_truth(cell["environment"], cell["settings"], cell["data_sets"], random)
    batch = draw_batch(truth, cell["regime"], cell["data_sets"], random)
    noise = cell.get("reward_noise")
    if noise is not None and batch.reward is not None:
        batch = replace(batch, reward=batch.reward + noise * random.standard_normal(len(batch)))
    lines = []
    for d, seed in enumerate(random.spawn(cell["data_sets"])):
        world, rows = _world(truth, d), _data_set(batch, d)
        found = judge(world, rows, seed, noise is None, cell["draws"], cell["replicates"])
        lines += [{"data_set": d, "rows": len(rows), **line} for line in found]
    labels = {name: np.full(len(lines), cell[name]) for name in ("panel", "world", "size")}
    return labels | {name: np.array([line[name] for line in lines]) for name in lines[0]}


def judge(
    truth: MDP, batch: Batch, random: np.random.Generator, known: bool, draws: int, replicates: int
) -> Iterator[dict[str, Any]]:
    """Lines of one data set: its intervals, and how sure of its advice it was in each state."""
    gamma, start = truth.discount, truth.start
    rewards = None if known else estimate_rewards(batch)
    reward = truth.reward if rewards is None else rewards.mean
    model = estimate(tally(batch), gamma)
    policy = solve(model.transition, reward, gamma).policy
    found = posterior(
        model, reward, gamma, {"advised": policy}, rewards=rewards, batch=batch, draws=draws, rng=random, start=start
    )
    true_plan = solve(truth.transition, truth.reward, gamma)
    worth = float(start @ evaluate(truth.transition, truth.reward, gamma, policy))
    claims, kept = draw_again(batch, reward if known else None, gamma, policy, start, replicates, random)
    drawn = {CREDIBLE: found.values[0], AGAIN: claims, KEPT: kept}
    for kind, values in drawn.items():
        low, high = middle(values, LEVEL)
        yield _line(kind, low=low, high=high, truth=worth, covered=float(holds(low, high, worth)))
    yield from _how_sure(found.advised_best, true_plan, policy)


def draw_again(
    batch: Batch,
    reward: Floats | None,
    discount: float,
    policy: Any,
    start: Floats,
    replicates: int,
    random: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Values from episodes drawn again: what each claims for its own best policy, and for the one that was chosen."""
    order = episodes(batch)
    member, E, cells = np.empty(len(batch), dtype=np.int64), len(order.length), batch.n_states**2 * batch.n_actions
    member[order.row] = order.number
    times = random.multinomial(E, np.full(E, 1 / E), size=replicates)[:, member]
    claims, kept = [], []
    for part in np.array_split(times, -(-replicates * cells // ROOM)):
        model = estimate(count_again(batch, part, tally(batch)), discount)
        table = np.stack([means(add_up(batch, often)) for often in part]) if reward is None else reward
        claims.append(solve(model.transition, table, discount).values @ start)
        kept.append(evaluate(model.transition, table, discount, policy) @ start)
    return np.concatenate(claims), np.concatenate(kept)


def holds(low: float, high: float, truth: float) -> bool:
    """Whether an interval holds the truth, but for rounding: a truth of 0 does not miss a low end of 1e-17."""
    rounding = ROUNDING * max(1.0, abs(low), abs(high), abs(truth))
    return bool(low - rounding <= truth <= high + rounding)


def _how_sure(claimed: Floats, plan: Plan, policy: Any) -> Iterator[dict[str, Any]]:
    """In states with one best action: claimed probabilities that the advice is it, and how often it is, by bins."""
    clear = plan.tied.sum(axis=-1) == 1
    right = np.take_along_axis(plan.tied, policy[:, None], axis=-1)[:, 0]
    place = np.minimum((claimed * BINS).astype(int), BINS - 1)
    for k in np.unique(place[clear]):
        here = clear & (place == k)
        mean = {"claimed": float(claimed[here].mean()), "right": float(right[here].mean())}
        yield _line(BEST, bin=int(k), states=int(here.sum()), **mean)


def _line(kind: str, **measured: Any) -> dict[str, Any]:
    """A line of the table, with NaN for what it does not measure."""
    nothing = dict.fromkeys(("low", "high", "truth", "covered", "claimed", "right"), np.nan)
    return {"kind": kind, "bin": -1, "states": 0} | nothing | measured


def _world(truth: MDP, number: int) -> MDP:
    """The truth of one data set."""
    if not truth.batch:
        return truth
    return replace(truth, transition=truth.transition.dense()[number], reward=truth.reward[number])


def _data_set(batch: Batch, number: int) -> Batch:
    """Rows of one data set."""
    rows = batch.data_set == number
    columns = ("state", "action", "next_state", "reward", "episode", "time")
    taken: dict[str, Any] = {name: getattr(batch, name)[rows] for name in columns}
    return Batch(n_states=batch.n_states, n_actions=batch.n_actions, **taken)
