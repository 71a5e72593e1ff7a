"""Intervals and chances for a policy that was chosen from the same data, held against a truth.

One data set at a time, as a user would have it: learn with the usual rules, ask how sure that is, and see what the
policy is worth in truth. A trial is rows together with somebody who knows what policies are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Rng, generator
from certeq.data.batch import Batch
from certeq.data.reading import read
from certeq.experiments.figures.numeric import best_policy
from certeq.experiments.procedure import draw_batch, draw_truth
from certeq.learning.learned import learn
from certeq.model.mdp import MDP
from certeq.planners import solve
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.chains import follow, read_policy, value_decisions
from certeq.questions.episodes import behavior, watched
from certeq.questions.exact import evaluate
from certeq.questions.findings import Findings
from certeq.questions.outer import outer
from certeq.questions.posterior import best_in, posterior
from certeq.questions.returns import returns
from certeq.questions.sure import doubt, printed, withheld
from certeq.worlds import examples
from certeq.worlds.messy import KNOWING, MESSY
from certeq.worlds.numeric import (
    SIMULATORS,
    Act,
    cell_of,
    erring,
    log_points,
    numeric_log,
    numeric_value,
    value_points,
)
from certeq.worlds.table import from_table, log_table

PRINTED, CREDIBLE, OUTER = "printed", "credible", "outer"
INTERVALS = (PRINTED, CREDIBLE, OUTER)
BEST, BETTER, FITS = "best action", "better than the behavior", "model fits"
BINS = 10  # of a claimed chance
ROUNDING = 1e-9
POINTS = 600  # that value a policy in a simulator


@dataclass(frozen=True)
class Trial:
    """Rows, and the truth behind them."""

    batch: Batch
    reward: Floats | None  # (S, A) where rewards are known
    discount: float
    start: Floats | None  # (S,); None where it is that of the episodes
    value: Callable[[Any, int | None], float]  # what so many decisions, or all, of a policy (S, A) are truly worth
    world: MDP | None = None  # where the truth is a table
    done: Callable[[int | None], float] | None = None  # what people get, where they act on more than the states hold
    tables: bool = False  # whether ``value`` applies a `Policy` to tables, in place of the probabilities of its states


def run_cell(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """All lines of one chunk of data sets, from a plain description."""
    random = generator(rng)
    lines: list[dict[str, Any]] = []
    for d, trial in enumerate(TRIALS[cell["kind"]](cell, random)):
        found = judge(trial, np.random.default_rng(random.integers(2**63)), cell["draws"])
        lines += [{"data_set": d, "rows": len(trial.batch), **line} for line in found]
    labels = {name: np.full(len(lines), cell[name]) for name in ("panel", "world", "size")}
    return labels | {name: np.array([line[name] for line in lines]) for name in lines[0]}


def judge(trial: Trial, random: np.random.Generator, draws: int) -> Iterator[dict[str, Any]]:
    """Lines of one data set: its intervals, its chances, and whether its model was found to fit."""
    learned = learn(trial.batch, reward=trial.reward, discount=trial.discount)
    S, A = learned.counts.visits.shape
    advice, done = read_policy(ADVICE, learned.policy.actions, S, A)[0], behavior(learned.counts)
    found = posterior(
        learned.model, learned.table, trial.discount, {ADVICE: learned.policy.actions, RECORDED: done},
        rewards=learned.rewards, batch=trial.batch, case=learned.case, draws=draws, rng=random, start=trial.start,
        watched=watched(trial.batch, trial.discount),
    )  # fmt: skip
    found = replace(found, once=not learned.summary.people)
    worth = trial.value(learned.policy if trial.tables else advice, found.watched)
    before = trial.value(done, found.watched) if trial.done is None else trial.done(found.watched)
    _, low, high = found.interval(ADVICE)
    usual: dict[str, Any] = {"start": trial.start, "watched": found.watched, "draws": draws, "rng": random}
    wide = outer(learned.case, learned.policy.actions, credible=(low, high), **usual)
    followed = returns(learned)
    shown = printed(found, wide, followed)
    ends = shown.interval(ADVICE)
    told = {PRINTED: (ends.low, ends.high), CREDIBLE: (low, high), OUTER: (wide.low, wide.high)}
    for kind, (low, high) in told.items():
        yield _line(kind, states=S, low=low, high=high, truth=worth, covered=float(holds(low, high, worth)))
    if not withheld(Findings(learned, {"posterior": shown, "returns": followed}, {})):
        better = shown.difference(ADVICE, RECORDED).better
        right = float(worth > before + ROUNDING * max(1.0, abs(before)))
        yield _line(BETTER, bin=min(int(better * BINS), BINS - 1), states=1, claimed=better, right=right)
    doubted = doubt(found, followed) or learned.summary.people
    if followed.agrees is not None or doubted:
        yield _line(FITS, states=1, right=float(not doubted))
    if trial.world is not None:
        world, choice = trial.world, learned.policy.runner_up()[0] >= 0
        tied = best_in(learned.model, world.transition.dense(), world.reward, trial.discount)
        yield from _how_sure(np.where(choice, found.advised_best, np.nan), tied, learned.policy.actions)


def holds(low: float, high: float, truth: float) -> bool:
    """Whether an interval holds the truth, but for rounding: a truth of 0 does not miss a low end of 1e-17."""
    rounding = ROUNDING * max(1.0, abs(low), abs(high), abs(truth))
    return bool(low - rounding <= truth <= high + rounding)


def _how_sure(claimed: Floats, tied: Booleans, policy: Any) -> Iterator[dict[str, Any]]:
    """In states with one best action: told chances that the advice is it, and how often it is, by bins."""
    clear = (tied.sum(axis=-1) == 1) & np.isfinite(claimed)
    right = np.take_along_axis(tied, np.maximum(policy, 0)[:, None], axis=-1)[:, 0]
    place = np.minimum((np.where(clear, claimed, 0.0) * BINS).astype(int), BINS - 1)
    for k in np.unique(place[clear]):
        here = clear & (place == k)
        mean = {"claimed": float(claimed[here].mean()), "right": float(right[here].mean())}
        yield _line(BEST, bin=int(k), states=int(here.sum()), **mean)


def _line(kind: str, **measured: Any) -> dict[str, Any]:
    """A line of the table, with NaN for what it does not measure."""
    nothing = dict.fromkeys(("low", "high", "truth", "covered", "claimed", "right"), np.nan)
    return {"kind": kind, "bin": -1, "states": 0} | nothing | measured


# ---- trials ----


def _worlds(cell: Mapping[str, Any], random: np.random.Generator) -> Iterator[Trial]:
    """Worlds of the catalogue; rewards are known unless there is noise on them."""
    D, noise = cell["data_sets"], cell.get("reward_noise")
    truth = draw_truth(cell["environment"], cell["settings"], D, random)
    batch = draw_batch(truth, cell["regime"], D, random)
    if noise is not None and batch.reward is not None:
        batch = replace(batch, reward=batch.reward + noise * random.standard_normal(len(batch)))
    for d in range(D):
        world, rows = _world(truth, d), _data_set(batch, d)
        yield _known(world, rows, world.reward if noise is None else None)


def _tables(cell: Mapping[str, Any], random: np.random.Generator) -> Iterator[Trial]:
    """Gymnasium's tables, logged by people who deviate from the best so often; rewards are those of the rows."""
    import gymnasium

    table = gymnasium.make(cell["environment"], is_slippery=True)
    world = from_table(table, discount=cell["discount"])
    chance = np.full(world.reward.shape, cell["deviations"] / world.n_actions)
    best = solve(world.transition, world.reward, world.discount).policy
    chance[np.arange(world.n_states), best] += 1 - cell["deviations"]
    for _ in range(cell["data_sets"]):
        rows = log_table(table, cell["size"], cell["length"], behavior=chance, rng=random)
        yield _known(world, rows, None)


def _numeric(cell: Mapping[str, Any], random: np.random.Generator) -> Iterator[Trial]:
    """Worlds of numbers, cut into cells; valued in the simulator."""
    name, side = cell["environment"], cell["cells"]
    world = SIMULATORS[name]
    all_of_them = int(np.ceil(np.log(0.01) / np.log(world.discount)))
    where = cell_of(world.start(200_000, np.random.default_rng(0)), side)
    start = np.bincount(where, minlength=side**2) / len(where)
    for _ in range(cell["data_sets"]):
        seed = int(random.integers(2**32))
        rows = numeric_log(name, cell["size"], cells=side, rng=random)

        def value(policy: Floats, decisions: int | None, seed: int = seed) -> float:
            return float(numeric_value(name, policy, points=POINTS, steps=decisions or all_of_them, rng=seed))

        yield Trial(rows, None, world.discount, start, value)


def _bundled(cell: Mapping[str, Any], random: np.random.Generator) -> Iterator[Trial]:
    """Trials of the bundled design, read as anybody would; treated as recorded in states that were never seen."""
    import polars as pl

    for _ in range(cell["data_sets"]):
        rows = read(pl.DataFrame(examples.tumor_columns(random)))
        seed = int(random.integers(2**32))

        def value(policy: Floats, decisions: int | None, rows: Batch = rows, seed: int = seed) -> float:
            assert rows.recipe is not None
            recipe, dose = rows.recipe, np.append(policy[:, rows.action_names.index("TMZ")], examples.TREATED)

            def treat(measured: dict[str, Floats]) -> Floats:
                return np.asarray(dose[recipe.encode(measured)])

            return examples.tumor_value(treat, decisions or 500, rng=seed)

        yield Trial(rows, None, 0.99, None, value)


def _raw(cell: Mapping[str, Any], random: np.random.Generator) -> Iterator[Trial]:
    """Worlds of numbers, logged by people who err so often, and read as anybody would; at random where nothing is said.

    Values are from where episodes begin.
    """
    world, name = SIMULATORS[cell["environment"]], cell["environment"]
    best = best_policy(name).argmax(axis=-1)
    side, all_of_them = round(len(best) ** 0.5), int(np.ceil(np.log(0.01) / np.log(world.discount)))
    for _ in range(cell["data_sets"]):
        people = erring(lambda points: best[cell_of(points, side)], cell["errors"], len(world.actions), random)
        table, seed = log_points(world, people, cell["size"], random), int(random.integers(2**32))
        named: dict[str, Any] = {name: name for name in ("action", "reward", "episode", "time")}
        rows = read(table, state=list(world.columns), ends="never", **named)

        def worth(act: Act, decisions: int | None, seed: int = seed) -> float:
            luck = np.random.default_rng(seed)
            return value_points(world, act, luck.random((POINTS, 2)), decisions or all_of_them, luck)

        def value(policy: Floats, decisions: int | None, rows: Batch = rows, worth: Any = worth) -> float:
            assert rows.recipe is not None
            recipe, coin = rows.recipe, np.random.default_rng(0)
            level = np.cumsum(np.vstack([policy, np.full(rows.n_actions, 1 / rows.n_actions)]), axis=1)[:, :-1]
            names = np.array(rows.action_names, dtype=np.int64)

            def act(points: Floats) -> Any:
                at = recipe.encode(dict(zip(world.columns, points.T, strict=True)))
                return names[(coin.random((len(points), 1)) >= level[at]).sum(axis=1)]

            return float(worth(act, decisions))

        def done(decisions: int | None, people: Act = people, worth: Any = worth) -> float:
            return float(worth(people, decisions))

        yield Trial(rows, None, world.discount, None, value, done=done)


def _messy(cell: Mapping[str, Any], random: np.random.Generator) -> Iterator[Trial]:
    """Messy tables of so many cases, read with the words that somebody would say."""
    world = (MESSY | KNOWING)[cell["environment"]]

    def value(policy: Any, decisions: int | None) -> float:
        return replace(world, length=min(decisions or world.length, world.length)).value(policy)

    for _ in range(cell["data_sets"]):
        rows = read(world.table(int(random.integers(2**32)), cell["size"]), **world.said)
        yield Trial(rows, None, world.discount, None, value, done=partial(value, None), tables=True)


TRIALS: dict[str, Callable[..., Iterator[Trial]]] = {
    "world": _worlds,
    "table": _tables,
    "numeric": _numeric,
    "bundled": _bundled,
    "raw": _raw,
    "messy": _messy,
}


def _known(world: MDP, rows: Batch, reward: Floats | None) -> Trial:
    """A trial whose truth is a table."""
    start = np.full(world.n_states, 1 / world.n_states) if world.start is None else world.start

    def value(policy: Floats, decisions: int | None) -> float:
        if decisions is None:
            return float(start @ evaluate(world.transition, world.reward, world.discount, policy))
        chain = follow(world.transition.dense()[None], world.reward[None], policy)
        return float(start @ value_decisions(*chain, float(world.discount), decisions)[0])

    return Trial(rows, reward, float(world.discount), start, value, world)


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
    return Batch(n_states=batch.n_states, n_actions=batch.n_actions, positions=batch.positions, **taken)
