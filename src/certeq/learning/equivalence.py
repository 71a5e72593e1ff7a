"""Certainty equivalence: from counts to a model, and from the model to a plan as if it were true.

`estimate` and `solve_model` are the two steps of every pipeline: a `Case` takes them for one data set and its rules,
`plan` for whole batches of data sets and settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, floats, together, whole, within
from certeq.base.errors import InputError
from certeq.data.counts import Counts, as_counts
from certeq.model import weights
from certeq.model.kernel import Kernel, Rows, is_sparse, one_of
from certeq.model.unvisited import fill
from certeq.planners import FinitePlan, Plan, compiled, solve, solve_finite
from certeq.planners.average import solve_average
from certeq.planners.certify import NEAR
from certeq.planners.compiled import counted
from certeq.planners.episodic import check_ends
from certeq.planners.problem import How, Problem, check_range
from certeq.planners.progress import Watch
from certeq.regularizers import DEFAULT, Shrinkage, shrink
from certeq.regularizers.shrinkage import WeightRule

REMEDY = "Mark the rows that end an episode in a column (done=, --done), set a horizon"


@dataclass(frozen=True)
class Model:
    """An estimated, regularized MDP without its rewards."""

    counts: Counts
    shrinkage: Shrinkage  # weight and target as they were used
    data: Kernel  # T_data, with a convention's rows where data are missing
    transition: Kernel  # T_plan
    allowed: Booleans  # (..., S, A): which actions the plan may choose
    stranded: Booleans  # (..., S): states where none may be advised
    held: Booleans  # (..., S, A): pairs whose row is a convention's, whatever the regularizer says

    def __getitem__(self, data_set: int | Booleans) -> Model:
        """The model of one data set of several, or of some of them."""
        pull = self.shrinkage
        beliefs = tuple(belief[data_set] for belief in pull.beliefs)
        target = one_of(pull.target, data_set)
        own = replace(pull, pull=pull.weight[data_set], target=target, details=None, beliefs=beliefs)
        data, plan = one_of(self.data, data_set), one_of(self.transition, data_set)
        told = (getattr(self, name)[data_set] for name in ("allowed", "stranded", "held"))
        return Model(self.counts[data_set], own, data, plan, *told)

    def reward(self, table: Floats) -> Floats:
        """Rewards ``(..., S, A)`` as the plan sees them.

        In a stranded state any action may be taken, so each earns the mean; a regularizer that averages actions
        averages what they earn as well.
        """
        if self.stranded.any():
            table = np.where(self.stranded[..., None], table.mean(axis=-1, keepdims=True), table)
        return self.shrinkage.mix_reward(table)

    @property
    def _leads(self) -> Kernel:
        """Rows that say what follows, where rewards belong to what follows.

        A zero target does not say where one arrives, and an ending that stands for a lower discount pays nothing; where
        actions are averaged, their rewards are averaged afterwards. Then these are the data rows alone.
        """
        says = self.shrinkage.target.mass().max() > 0 and not self.shrinkage.averages_actions
        return self.transition if says else self.data

    def on_arrival(self, arrival: Floats) -> Floats:
        """Rewards of each pair, ``(..., S, A)``, from those by next state, ``(..., S + 1)``; the last is an ending."""
        rows = self._leads
        return rows.expect(arrival[..., :-1]) + (1 - rows.mass()) * arrival[..., -1, None, None]

    def on_outcome(self, going: Floats, ending: Floats) -> Floats:
        """Rewards of each pair, ``(..., S, A)``, from what it earns when it goes on and when the episode ends."""
        mass = self._leads.mass()
        return np.asarray(mass * going + (1 - mass) * ending)


def estimate(
    counts: Counts | ArrayLike | Any,
    discount: ArrayLike | None = None,
    *,
    regularizer: str = DEFAULT,
    unvisited: str = "target",
    min_visits: int = 1,
    min_share: float = 0.0,
    **settings: Any,
) -> Model:
    """T_plan = (1 - w)·T_data + w·T_target, where a convention stands for the data of thin pairs."""
    table = as_counts(counts)
    shrinkage = shrink(table, regularizer, discount=discount, **settings)
    return mixed(shrinkage, table, unvisited=unvisited, min_visits=min_visits, min_share=min_share)


def mixed(shrinkage: Shrinkage, table: Counts, *, unvisited: str, min_visits: int, min_share: float) -> Model:
    """`estimate`, where weights and target are known.

    A learned weight at a thin pair speaks of missing data, so a convention that was asked for replaces it; a constant
    weight applies to every row alike.
    """
    filled = fill(table, unvisited, min_visits, float(within("min_share", min_share, 0, 1)))
    settled = unvisited == "target" and min_visits == 1  # the weight of a pair without visits is 1 as it is
    if shrinkage.learned and not settled and filled.thin.any():
        shrinkage = shrinkage.at(filled.thin, 1.0 if unvisited == "target" else 0.0)
    mix = shrinkage.mix(filled.rows)
    transition = Rows.trusted(mix.dense()) if table.batch and compiled.once(mix) else mix
    held = filled.thin if unvisited not in ("target", "exclude") else np.zeros_like(filled.thin)
    return Model(table, shrinkage, filled.rows, transition, filled.allowed, filled.stranded, held)


def solve_model(
    model: Model,
    table: Floats,
    discount: Floats | float,
    *,
    horizon: int | None = None,
    average: Floats | None = None,
    fade: Floats | None = None,
    names: Sequence[str] | None = None,
    **how: Any,
) -> Plan | FinitePlan:
    """Plan in a model whose pairs earn ``table``, forever or for some decisions; no advice in stranded states.

    ``average``, the distribution of first states, asks for the most reward per decision instead. ``fade`` ``(S, A, S)``
    is what the next value counts for, in place of the discount, where steps have a duration. ``names`` are the states',
    for the message that tells where a policy could go on forever at discount 1; ``how`` is what `certeq.solve` takes.
    """
    reward, transition = model.reward(table), model.transition
    if fade is not None:
        transition, discount = Rows.trusted(transition.dense() * fade), 1.0
    if horizon is not None:
        finite = solve_finite(transition, reward, discount, horizon, allowed=model.allowed)
        return finite.without_advice(model.stranded)
    if average is not None:
        found = solve_average(transition, reward, allowed=model.allowed, start=average, names=names)
        return found.without_advice(model.stranded)
    if names is not None:
        check_ends(Problem(transition, reward, np.asarray(discount), model.allowed), names, REMEDY)
    return solve(transition, reward, discount, allowed=model.allowed, **how).without_advice(model.stranded)


def plan(
    counts: Counts | ArrayLike | Any,
    reward: ArrayLike,
    discount: ArrayLike,
    *,
    regularizer: str = DEFAULT,
    unvisited: str = "target",
    min_visits: int = 1,
    min_share: float = 0.0,
    method: str = "auto",
    tolerance: float = 1e-9,
    max_iterations: int | None = None,
    engine: str = "auto",
    threads: int | None = None,
    **settings: Any,
) -> Plan:
    """Estimate the transitions, regularize them, and plan as if the result were true.

    Parameters
    ----------
    counts
        `Counts`, or an integer array ``(..., S, A, S)``, or a sparse matrix ``(S * A, S)``.
    reward, discount
        ``(..., S, A)`` and ``(...)``; they broadcast with the counts, as do the settings of the regularizer.
    regularizer, settings
        A name in ``REGULARIZERS`` and what it takes: ``strength`` ε, ``planning_discount``, ``magnitude``, ``target``,
        ``plug_in``, ``pseudo_count``.
    unvisited, min_visits
        What stands for a pair with fewer than ``min_visits`` visits: ``target``, ``uniform``, ``zero``, ``self_loop``,
        ``average`` or ``exclude``; see `certeq.model.unvisited`. Studies plan with the target, as the paper does, so
        an action may be chosen that was never tried: ``Plan.untried`` says where, and so does the plan when it is
        printed. `certeq.learn`, whose advice reaches people, excludes such actions.
    min_share
        Choose an action only if people were at least this share as likely to take it as the state's usual one, as far
        as all rows tell (`certeq.model.habits`). `certeq.learn` asks for a fifth, or for half where habits
        differ from state to state, and lets in what rows show to be better.
    method, tolerance, max_iterations, engine, threads
        As for `certeq.solve`.

    >>> from certeq import plan
    >>> counts = [[[4, 0], [1, 3]], [[1, 3], [4, 0]]]
    >>> plan(counts, [[0, 0], [1, 0]], 0.9, regularizer="uniform_prior", strength=0.2).policy
    array([1, 0])
    """
    gamma = within("discount", discount, 0, 1)
    rewards = floats("reward", reward)
    table = as_counts(counts)
    pairs = (table.n_states, table.n_actions)
    if rewards.shape[-2:] != pairs:
        raise InputError(f"Rewards need the shape (..., {pairs[0]}, {pairs[1]}), as the counts; got {rewards.shape}.")
    shrinkage = shrink(table, regularizer, discount=gamma, **settings)
    how: dict[str, Any] = {"unvisited": unvisited, "min_visits": min_visits, "min_share": min_share}
    usual = how == {"unvisited": "target", "min_visits": 1, "min_share": 0} and method in ("auto", "policy_iteration")
    quick = usual and isinstance(shrinkage.pull, WeightRule)
    work = unwritten(table, shrinkage, rewards, gamma, engine) if quick else None
    tried = partial(_tried, table, min_visits)
    if work is not None and tolerance > 0:
        limit = 1_000 if max_iterations is None else whole("max_iterations", max_iterations, 1)
        solution = counted.plan_counts(work, How(tolerance, limit, Watch(), threads))
        return Plan.of(solution, "policy_iteration", partial(_pose, shrinkage, table, rewards, gamma), tried)
    model = mixed(shrinkage, table, **how)
    planned = solve_model(
        model, rewards, gamma, method=method, tolerance=tolerance, max_iterations=max_iterations, engine=engine,
        threads=threads,
    )  # fmt: skip
    assert isinstance(planned, Plan)
    return replace(planned, tried=tried)


def unwritten(
    table: Counts, shrinkage: Shrinkage, reward: Floats, discount: Floats, engine: str
) -> counted.Counted | None:
    """What can be planned from counts in one kernel, if that is asked for or worth it.

    There a pair without visits has the regularizer's target or, where its weight is constant, the uniform row.
    """
    if is_sparse(shrinkage.target) or not able(table, discount, engine):
        return None
    S, rule = table.n_states, shrinkage.pull
    check_range(reward, discount)
    kind, amount = (rule.kind, rule.amount) if isinstance(rule, WeightRule) else (weights.GIVEN, rule)
    lead = amount.shape if isinstance(rule, WeightRule) else amount.shape[:-2]
    batch = together(
        counts=table.batch, strength=lead, target=shrinkage.target.batch, reward=reward.shape[:-2],
        discount=discount.shape,
    )  # fmt: skip
    if 0 in batch or not (engine == "numba" or compiled.worth(batch, S)):
        return None
    gain = shrinkage.mix_reward(reward)
    return counted.Counted(table.transitions, kind, amount, shrinkage.target.dense(), gain, discount)


def able(table: Counts, discount: Floats, engine: str) -> bool:
    """Whether the kernel that starts from counts can do such data sets, and is not ruled out."""
    small = not table.sparse and table.n_states <= compiled.SMALL and table.n_actions <= counted.BITS
    below = float(discount.max(initial=0)) < 1 - NEAR
    return small and below and table.ended is None and engine in ("auto", "numba")


def _pose(shrinkage: Shrinkage, table: Counts, reward: Floats, discount: Floats) -> Problem:
    model = mixed(shrinkage, table, unvisited="target", min_visits=1, min_share=0.0)
    return Problem(model.transition, model.reward(reward), discount, model.allowed)


def _tried(table: Counts, min_visits: int) -> Booleans:
    return np.asarray(table.visits >= min_visits)
