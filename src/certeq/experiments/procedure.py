"""Algorithms 1 and 2, once: draw data sets from a truth, regularize, plan, and measure the loss in the truth.

Everything is batched: all data sets of a chunk times all strengths go through the planners in one call. A table has
one line for each (data set, method, strength); methods without a strength have NaN there. Because every method sees
the same data sets, differences between methods can be taken pair by pair.

Names decide nothing: where a plan has several best actions, what is valued is the policy that takes each of them
equally often. (The code published with the paper's follow-up takes the first, which in River Swim and Loop is the wrong
one.) At strength 0 nothing is regularized, so there every method is the MLE, with uniform rows for pairs without data.

Plans and values always come from the compiled code, one data set after the other, whatever the size of a chunk: the
losses of some data sets are, to the last bit, what they are among many others, and on any number of threads. (The
public ``evaluate`` solves large models by LAPACK, whose last digits depend on its threads, and which is slower here.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Rng, generator
from certeq.base.errors import InputError, unknown
from certeq.data.batch import Batch
from certeq.data.counts import Counts, tally
from certeq.learning.equivalence import plan
from certeq.model import targets, weights
from certeq.model.kernel import Mixture, Rows
from certeq.model.mdp import MDP
from certeq.model.moments import true_action_moments, true_moments
from certeq.model.unvisited import fill
from certeq.planners import solve
from certeq.questions.sweep import even, sweep, values
from certeq.regularizers import settings_of as regularizer_settings
from certeq.worlds import environment, sampling, settings_of
from certeq.worlds.tumor import tumor_bins, tumor_trials

STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # the authors' x axis
ENGINE = "numba"  # always the same, so that results do not depend on the size of a chunk
TOLERANCE = 1e-9  # of values, relative to the largest: small models are solved better than that, larger ones to it
ORACLE, VALIDATED = "oracle", "cross_validation"  # methods that are no regularizers of the catalogue


@dataclass(frozen=True)
class Method:
    """A regularizer with its settings, as one line of a figure.

    ``regularizer`` is a name in REGULARIZERS, or ``oracle``: ε* computed from the truth, or ``cross_validation``: the
    uniform prior at the strength that predicts left-out rows best.
    """

    regularizer: str
    settings: Mapping[str, Any]

    @property
    def has_strength(self) -> bool:
        """Whether the method is swept over strengths."""
        known = self.regularizer not in (ORACLE, VALIDATED)
        return known and "strength" in regularizer_settings(self.regularizer)


def method(regularizer: str, **settings: Any) -> Method:
    """Write a method."""
    return Method(regularizer, settings)


def draw_truth(world: str, settings: Mapping[str, Any], data_sets: int, rng: Rng) -> MDP:
    """The truth: one MDP for all data sets, or a new one for each where the environment is random."""
    given = {"size": data_sets, "rng": rng}  # to a world that leaves them open
    drawn = {name: given[name] for name, unsaid in settings_of(world).items() if name in given and unsaid is None}
    return environment(world, **(drawn | dict(settings)))


def draw_counts(truth: MDP, regime: Mapping[str, Any], data_sets: int, rng: Rng) -> Counts:
    """Counts ``(data sets, S, A, S)`` under a data regime; see `draw_batch`."""
    return tally(draw_batch(truth, regime, data_sets, rng))


def draw_batch(truth: MDP, regime: Mapping[str, Any], data_sets: int, rng: Rng) -> Batch:
    """Rows of so many data sets under a data regime.

    ``{"kind": "tuples", "size": n}``: iid uniform pairs; ``{"kind": "equal", "each": k}``: exactly k per pair;
    ``{"kind": "trajectories", "episodes": e, "length": l}`` with an optional behavior, from uniform starts;
    ``{"kind": "trials", "patients": n, "world": {...}}``: patients of the tumor simulator, followed for random times,
    with an optional treatment probability.
    """
    kind, rest = regime["kind"], {key: value for key, value in regime.items() if key != "kind"}
    if kind == "tuples":
        batch = sampling.uniform_pairs(truth, rest["size"], data_sets=data_sets, rng=rng)
    elif kind == "equal":
        batch = sampling.equal_pairs(truth, rest["each"], data_sets=data_sets, rng=rng)
    elif kind == "trajectories":
        start = np.full(truth.n_states, 1 / truth.n_states)
        batch = sampling.trajectories(truth, data_sets=data_sets, start=start, rng=rng, **rest)
    elif kind == "trials":
        edges = tumor_bins(**rest["world"])
        patients = {key: value for key, value in rest.pop("world").items() if key not in ("episodes", "rng")}
        batch = tumor_trials(data_sets, edges=edges, rng=rng, **patients, **rest)
    else:
        raise unknown("data regime", kind, ("tuples", "equal", "trajectories", "trials"))
    return batch


def rename_actions(truth: MDP, counts: Counts, rng: Rng) -> tuple[MDP, Counts]:
    """Shuffle the names of the actions in each data set and its truth: where ties go to the first, nobody profits."""
    D, A = counts.transitions.shape[0], truth.n_actions
    order = generator(rng).permuted(np.tile(np.arange(A), (D, 1)), axis=1)

    def renamed(table: Any, axis: int) -> Any:
        index = order.reshape(D, *(A if i == axis else 1 for i in range(1, table.ndim)))
        return np.take_along_axis(table, index, axis=axis)

    rows = np.broadcast_to(truth.transition.dense(), (D, *truth.transition.shape[-3:]))
    reward = np.broadcast_to(truth.reward, (D, *truth.reward.shape[-2:]))
    shuffled = MDP(Rows.trusted(renamed(rows, 2)), renamed(reward, 2), truth.discount, start=truth.start)
    return shuffled, replace(counts, transitions=renamed(counts.transitions, 2))


def losses(
    truth: MDP,
    counts: Counts,
    methods: Mapping[str, Method],
    strengths: Sequence[float] = STRENGTHS,
    start: Floats | None = None,
    reward: Floats | None = None,
) -> dict[str, Any]:
    """Loss of each method on each data set: columns ``data_set, method, strength, loss``.

    A loss is the mean over states of V* - V^π in the truth; with ``start``, the mean under that distribution. Plans are
    made with the true rewards, or with the given ones, ``(data sets, S, A)``.
    """
    if counts.ended is not None:
        raise InputError("These experiments are for worlds where no episode ends; some of the given ones did.")
    columns: dict[str, list[Any]] = {"data_set": [], "method": [], "strength": [], "loss": []}
    for name, chosen in methods.items():
        grid = np.asarray(strengths, dtype=np.float64) if chosen.has_strength else np.array([np.nan])
        loss = swept(truth, counts, chosen, grid, start, reward)
        D, E = loss.shape
        columns["data_set"].append(np.repeat(np.arange(D), E))
        columns["method"].append(np.full(D * E, name))
        columns["strength"].append(np.tile(grid, D))
        columns["loss"].append(loss.ravel())
    return {key: np.concatenate(parts) for key, parts in columns.items()}


def swept(
    truth: MDP, counts: Counts, chosen: Method, grid: Floats, start: Floats | None = None, reward: Floats | None = None
) -> Floats:
    """Loss of a method, ``(data sets, strengths)``; what is no more than rounding is no loss."""
    loss = np.empty((*counts.batch, len(grid)))
    reward = truth.reward if reward is None else reward
    if chosen.regularizer == ORACLE:
        plans = solve(oracle(truth, counts.spread()), _along(reward), truth.discount, engine=ENGINE)
        optimal = solve(truth.transition, truth.reward, truth.discount, engine=ENGINE).values
        lost = optimal[..., None, :] - values(truth, even(plans.tied))
        loss[:] = lost.mean(axis=-1) if start is None else (lost * start).sum(axis=-1)
    else:
        for where, regularizer, settings in parts(counts.spread(), chosen, grid):
            asked: dict[str, Any] = {"regularizer": regularizer, "start": start, "engine": ENGINE, **settings}
            found = sweep(counts, reward, truth.discount, truth=truth, **asked)
            loss[:, where], optimal = found.loss, found.optimal
    rounding = TOLERANCE * np.abs(optimal).max(axis=-1, keepdims=True)
    return np.where(loss > rounding, loss, 0.0)


def estimated_rewards(truth: MDP, counts: Counts, noise: float, rng: Rng) -> Floats:
    """Mean rewards of noisy rows, ``(data sets, S, A)``; a pair without rows gets the mean of its state, or of all."""
    visits = counts.visits
    error = noise / np.sqrt(np.maximum(visits, 1)) * generator(rng).standard_normal(visits.shape)
    seen = np.where(visits > 0, truth.reward + error, np.nan)
    weight = np.where(visits > 0, visits, 0)
    total = np.nansum(seen * weight, axis=-1, keepdims=True)
    overall = total.sum(axis=-2, keepdims=True) / np.maximum(weight.sum(axis=(-2, -1), keepdims=True), 1)
    tried = weight.sum(axis=-1, keepdims=True)
    state = np.where(tried > 0, total / np.maximum(tried, 1), overall)
    return np.asarray(np.where(visits > 0, seen, state))


def policies(truth: MDP, counts: Counts, chosen: Method, grid: Floats, reward: Floats | None = None) -> Floats:
    """What a method advises, ``(data sets, strengths, S, A)``: each of the best actions with the same chance.

    The counts have an axis of length 1 for the strengths.
    """
    reward = _along(truth.reward if reward is None else reward)
    if chosen.regularizer == ORACLE:
        return even(solve(oracle(truth, counts), reward, truth.discount, engine=ENGINE).tied)
    advice = np.empty((*counts.batch[:1], len(grid), truth.n_states, truth.n_actions))
    for where, regularizer, settings in parts(counts, chosen, grid):
        found = plan(counts, reward, truth.discount, regularizer=regularizer, engine=ENGINE, **settings)
        advice[:, where] = even(found.tied)
    return advice


def _along(reward: Floats) -> Floats:
    return reward if reward.ndim == 2 else reward[:, None]


def parts(counts: Counts, chosen: Method, grid: Floats) -> Iterator[tuple[Booleans, str, dict[str, Any]]]:
    """Which strengths of the grid are planned with which regularizer, and its settings."""
    every, settings = np.ones(len(grid), dtype=bool), dict(chosen.settings)
    if chosen.regularizer == VALIDATED:
        yield every, "uniform_prior", {"strength": cross_validate(counts, STRENGTHS)}
    elif not chosen.has_strength:
        yield every, chosen.regularizer, settings
    else:
        if (grid == 0).any():
            yield grid == 0, "none", {}
        if (grid > 0).any():
            yield grid > 0, chosen.regularizer, {"strength": grid[grid > 0], **settings}


def cross_validate(counts: Counts, strengths: Sequence[float]) -> Floats:
    """For each data set ``(...)``, the strength of a uniform prior that predicts each row best from all others.

    By squared error, in closed form. Leaving out one of the c_i rows that went to i, of c in all, the others predict
    p_j = (c_j - [i = j] + a) / m with a = M/N and m = c - 1 + M, and are off by Σ p_j² - 2p_i + 1. A row that was its
    pair's only one is predicted uniformly.
    """
    N, c, square = counts.n_outcomes, counts.visits.astype(np.float64), counts.square_sum  # (..., S, A)
    off = []
    for strength in strengths:
        M = weights.magnitude(counts.mean_visits, strength)[..., None, None]
        a, m = M / N, np.where(c - 1 + M > 0, c - 1 + M, 1)
        squares = c * (square + 2 * a * c + N * a**2) - 2 * (square + a * c) + c  # Σ_i c_i Σ_j (m p_j)²
        error = squares / m**2 - 2 * (square - c + a * c) / m + c
        alone = (c == 1) & (M == 0)
        off.append(np.where(c > 0, np.where(alone, 1 - 1 / N, error), 0.0).sum(axis=(-2, -1)))
    return np.asarray(np.asarray(strengths)[np.argmin(off, axis=0)])


def oracle(truth: MDP, counts: Counts) -> Mixture:
    """The model whose weights toward the uniform row have the least error given the true rows: what ε* aims at."""
    rows = truth.transition.dense()
    if rows.ndim == 4:  # a truth for each data set, whatever the strength
        rows = rows[:, None]
    weight = weights.least_mse(true_moments(counts.visits, rows, np.full(truth.n_states, 1 / truth.n_states)))
    return Mixture(fill(counts, "target").rows, weight, targets.uniform(counts))


def alignment(truth: MDP, counts: Counts) -> dict[str, Floats]:
    """How well the uniform row and the average of a state's actions suit the truth, for each data set.

    First, squared distances from the true rows, averaged over the pairs: ``to_uniform``; ``to_average``, to the true
    average; ``to_estimate``, to the average estimated from the data, which is what epsilon-greedy regularization pulls
    toward. The true average is never farther than the uniform row: nothing is closer to the rows of a state than their
    mean. Second, the least mean squared error (Eq. 4) that each allows, with the best weight for every pair and as many
    visits as there are on average: ``error_uniform``, ``error_average``.
    """
    rows, visits = truth.transition.dense(), counts.mean_visits[:, None, None]
    uniform = np.full(truth.n_states, 1 / truth.n_states)
    sought = {
        "to_uniform": uniform,
        "to_average": rows.mean(axis=-2, keepdims=True),
        "to_estimate": targets.action_average(counts).dense(),
    }
    away = {name: ((rows - target) ** 2).sum(axis=-1) for name, target in sought.items()}
    alone = true_moments(np.broadcast_to(visits, (*counts.batch, *rows.shape[-3:-1])), rows, uniform)
    state = true_action_moments(alone.visits, rows)
    away["error_uniform"] = weights.mse(alone, weights.least_mse(alone))
    away["error_average"] = weights.action_average_mse(state, weights.least_mse_action_average(state))
    return {name: np.broadcast_to(each.mean(axis=(-2, -1)), counts.batch) for name, each in away.items()}


def run_cell(cell: Mapping[str, Any], rng: Rng) -> dict[str, Any]:
    """One chunk of Algorithm 1 and 2, from a plain description, so that any worker can run it."""
    random = generator(rng)
    truth = draw_truth(cell["environment"], cell.get("settings", {}), cell["data_sets"], random)
    counts = draw_counts(truth, cell["regime"], cell["data_sets"], random)
    if cell.get("shuffled", False):
        truth, counts = rename_actions(truth, counts, random)
    methods = {name: Method(m["regularizer"], m.get("settings", {})) for name, m in cell["methods"].items()}
    start = truth.start if cell.get("weighted", False) else None
    noise = cell.get("reward_noise")
    reward = None if noise is None else estimated_rewards(truth, counts, noise, random)
    columns = losses(truth, counts, methods, cell.get("strengths", STRENGTHS), start, reward)
    if cell.get("alignment", False):
        at = columns["data_set"]
        columns |= {name: distance[at] for name, distance in alignment(truth, counts).items()}
    return {"panel": np.full(len(columns["loss"]), cell.get("panel", "")), **columns}
