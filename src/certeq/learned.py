"""The main job: rows in, a policy out, with everything that was decided on the way."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import certeq
from certeq.arrays import ArrayLike, Floats, floats, within
from certeq.batch import Batch
from certeq.binning import binning_report
from certeq.certainty import Model, estimate
from certeq.counts import Counts, tally
from certeq.errors import InputError
from certeq.planners import FinitePlan, Plan, solve, solve_finite
from certeq.planners.episodic import check_ends
from certeq.planners.problem import Problem
from certeq.policy import Policy
from certeq.regularizers import DEFAULT, Shrinkage
from certeq.rewards import Rewards
from certeq.rewards import estimate as rewards_of

MARKOV_ROWS = 100_000  # up to here it is checked how Markov the states look
FEW = 5  # visits below which an advised action is pointed out


@dataclass(frozen=True)
class Summary:
    """What was read, learned and noticed, in numbers and in words."""

    rows: int
    episodes: int | None
    states: int
    actions: int
    pairs_seen: int
    pairs: int
    endings: int
    dropped: Mapping[str, int]
    notes: tuple[str, ...]
    alerts: tuple[str, ...]
    settings: Mapping[str, Any]
    advised: int
    mean_value: float
    binning: tuple[str, ...] = ()  # what the states do to the rows, in words

    def to_json(self) -> dict[str, Any]:
        """Write the summary as plain values, with the versions that made it."""
        versions = {"certeq": certeq.__version__, "python": platform.python_version(), "numpy": np.__version__}
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain |= {"dropped": dict(self.dropped), "settings": dict(self.settings)}
        return {"format": "certeq-summary", "version": 1, "versions": versions} | plain


@dataclass(frozen=True)
class Learned:
    """Everything `learn` found out."""

    batch: Batch
    model: Model
    rewards: Rewards | None  # None when the rewards were known
    reward: Floats  # (S, A), as the plan saw it
    plan: Plan | FinitePlan
    policy: Policy
    summary: Summary

    @property
    def counts(self) -> Counts:
        """Transition counts."""
        return self.model.counts

    @property
    def shrinkage(self) -> Shrinkage:
        """Weights and target that were used."""
        return self.model.shrinkage


def learn(
    batch: Batch,
    *,
    discount: float = 0.99,
    regularizer: str = DEFAULT,
    unvisited: str = "exclude",
    min_visits: int = 1,
    reward: ArrayLike | None = None,
    reward_by: str = "pair",
    reward_pool: str = "none",
    horizon: int | None = None,
    **settings: Any,
) -> Learned:
    """Learn a policy from a batch of rows.

    Parameters
    ----------
    batch
        What `certeq.read` or `certeq.sampling` returned: one data set.
    discount
        How much a reward one step later is worth; 1 if every episode is sure to end.
    regularizer, settings
        A name in ``REGULARIZERS`` and its settings.
    unvisited, min_visits
        What stands for pairs with fewer than ``min_visits`` visits; by default they are never advised.
    reward
        Known rewards ``(S, A)``; estimated from the rows unless given.
    reward_by, reward_pool
        Estimate rewards by ``pair`` or by ``next_state``, pooled toward ``none``, ``state`` or ``overall``.
    horizon
        Plan for this many decisions instead of for ever: the advice then depends on how many were made.
    """
    if not isinstance(batch, Batch):
        raise InputError(f"learn takes a Batch, as certeq.read makes one of a table; got {type(batch).__name__}.")
    if batch.data_set is not None:
        raise InputError("learn takes one data set; this batch holds several.")
    if len(batch) == 0:
        raise InputError("There are no transitions to learn from.")
    gamma = within("discount", discount, 0, 1)
    if gamma.ndim:
        raise InputError(f"learn takes one discount; got an array of shape {gamma.shape}.")
    model = estimate(
        tally(batch), gamma, regularizer=regularizer, unvisited=unvisited, min_visits=min_visits, **settings
    )
    rewards, table = _rewards(batch, reward, reward_by, reward_pool, model)
    seen = model.reward(table)
    plan = _plan(model, seen, gamma, horizon, batch.state_names)
    chosen = {
        "discount": float(gamma),
        "regularizer": regularizer,
        **{name: _plain(value) for name, value in settings.items()},
        "unvisited": unvisited,
        "min_visits": min_visits,
        "reward": "known" if reward is not None else f"by {reward_by}, pooled: {reward_pool}",
        "horizon": horizon,
    }
    source = {"rows": len(batch), "fingerprint": batch.fingerprint}
    q = np.where(model.stranded[:, None], -np.inf, plan.action_values)
    visits = model.counts.visits
    policy = Policy(batch.recipe_or_numbers, batch.action_names, plan.policy, visits, q, chosen, source)
    summary = _summarize(batch, model, plan, policy, chosen)
    return Learned(batch, model, rewards, seen, plan, policy, summary)


def _plan(
    model: Model, reward: Floats, discount: Floats, horizon: int | None, names: tuple[str, ...]
) -> Plan | FinitePlan:
    plan: Plan | FinitePlan
    if horizon is None:
        problem = Problem(model.transition, reward, discount, model.allowed)
        check_ends(problem, names, "Mark the rows that end an episode in a column (done=, --done), set a horizon")
        plan = solve(model.transition, reward, discount, allowed=model.allowed)
    else:
        plan = solve_finite(model.transition, reward, discount, horizon, allowed=model.allowed)
    return plan.without_advice(model.stranded)


def _rewards(batch: Batch, known: ArrayLike | None, by: str, pool: str, model: Model) -> tuple[Rewards | None, Floats]:
    """Rewards of each pair, ``(S, A)``: known ones, or estimates."""
    if known is not None:
        table = floats("reward", known)
        if table.shape != (batch.n_states, batch.n_actions):
            raise InputError(f"Known rewards need the shape ({batch.n_states}, {batch.n_actions}); got {table.shape}.")
        return None, table
    if by not in ("pair", "next_state"):
        raise InputError(f"reward_by is 'pair' or 'next_state'; got {by!r}.")
    if by == "next_state" and pool != "none":
        raise InputError("reward_pool pools rewards by pair; with reward_by='next_state' leave it at 'none'.")
    rewards = rewards_of(batch, pool=pool, by_next_state=by == "next_state")
    if rewards.arrival is None:
        return rewards, rewards.mean
    # a zero target does not say where one arrives, so rewards by next state then follow the data rows alone
    rows = model.transition if model.shrinkage.target.mass().max() > 0 else model.data
    *arrival, end = rewards.arrival
    return rewards, rows.expect(np.array(arrival)) + (1 - rows.mass()) * end


def _summarize(batch: Batch, model: Model, plan: Plan | FinitePlan, policy: Policy, chosen: dict[str, Any]) -> Summary:
    counts = model.counts
    episodes = None if batch.episode is None else len(np.unique(batch.episode))
    return Summary(
        rows=len(batch),
        episodes=episodes,
        states=counts.n_states,
        actions=counts.n_actions,
        pairs_seen=int((counts.visits > 0).sum()),
        pairs=counts.n_states * counts.n_actions,
        endings=int(batch.ended.sum()),
        dropped=dict(batch.dropped),
        notes=tuple(batch.notes),
        alerts=tuple(_alerts(batch, model, plan, policy, chosen)),
        settings=chosen,
        advised=int((np.atleast_2d(policy.actions)[0] >= 0).sum()),
        mean_value=float(np.atleast_2d(plan.values)[0].mean()),
        binning=_binning(batch),
    )


def _binning(batch: Batch) -> tuple[str, ...]:
    """Report on the binning of a table that was read; with very many rows without the Markov check."""
    if batch.recipe is None:
        return ()
    return tuple(binning_report(batch, permutations=200 if len(batch) <= MARKOV_ROWS else 0).lines())


def _alerts(
    batch: Batch, model: Model, plan: Plan | FinitePlan, policy: Policy, chosen: Mapping[str, Any]
) -> list[str]:
    """What a careful person would want to be told."""
    alerts = []
    counts, stranded = model.counts, model.stranded
    S = counts.n_states
    first = np.atleast_2d(policy.actions)[0]
    support = np.where(first >= 0, counts.visits[np.arange(S), np.maximum(first, 0)], 0)
    thin = (first >= 0) & (support < FEW)
    tried = (counts.visits > 0).sum(axis=1)
    if stranded.any():
        number = f"{int(stranded.sum())} of {S}"
        alerts.append(f"States with no action that was tried often enough, and so without advice: {number}.")
    if thin.any():
        alerts.append(f"In {int(thin.sum())} of {S} states the advised action was tried fewer than {FEW} times.")
    if (tried == 1).any():
        alerts.append(f"In {int((tried == 1).sum())} of {S} states only one action was ever tried: nothing to compare.")
    rare = np.flatnonzero((counts.visits > 0).sum(axis=0) == 1)
    if len(rare) and S > 1:
        alerts.append(f"Action {batch.action_names[rare[0]]!r} was tried in one state only.")
    ties = (np.atleast_3d(plan.tied.T).T[0].sum(axis=-1) > 1) & (first >= 0)
    if ties.any():
        alerts.append(f"In {int(ties.sum())} of {S} states the best actions are tied; the first of them is advised.")
    if chosen["reward"] != "known" and batch.reward is not None and np.ptp(batch.reward) == 0:
        alerts.append("Every reward is the same, so no action can be better than another.")
    if isinstance(plan, Plan) and plan.outcome != "optimal":
        alerts.append(f"Planning {plan.outcome}.")
    return alerts


def _plain(value: Any) -> Any:
    """Settings as JSON knows them."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return np.asarray(value).tolist() if not isinstance(value, str | int | float | bool | None) else value
