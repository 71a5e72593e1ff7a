"""The main job: rows in, a policy out, with everything that was decided on the way."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

import certeq
from certeq.base.arrays import ArrayLike, Floats, floats, within
from certeq.base.display import harmless, number
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.binning import binning_report
from certeq.data.counts import Counts, tally
from certeq.data.recipes import Recipe
from certeq.data.sums import Sums, add_up
from certeq.learning.equivalence import Model, estimate
from certeq.learning.policy import Policy
from certeq.model.rewards import Rewards
from certeq.model.rewards import estimate as rewards_of
from certeq.planners import FinitePlan, Plan, Progress, solve, solve_finite
from certeq.planners.episodic import check_ends
from certeq.planners.problem import Problem
from certeq.regularizers import DEFAULT, Shrinkage

if TYPE_CHECKING:
    from certeq.data.counting import Tallied

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
class Advised:
    """Everything that was found out, from rows or from counts of them."""

    model: Model
    rewards: Rewards | None  # None when the rewards were known
    reward: Floats  # (S, A), as the plan saw it
    plan: Plan | FinitePlan
    policy: Policy
    summary: Summary
    table: Floats  # (S, A), rewards before the regularizer and the states without advice had their say
    sums: Sums | None  # what the rewards were estimated from; None when they were known

    @property
    def counts(self) -> Counts:
        """Transition counts."""
        return self.model.counts

    @property
    def rows(self) -> Batch | None:
        """The rows, where they are still at hand."""
        return None

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.policy.state_names

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions."""
        return self.policy.action_names

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped the planner, and the plan is what it had by then."""
        return isinstance(self.plan, Plan) and self.plan.interrupted

    def _repr_html_(self) -> str:
        found = self.summary
        tried = f"{found.rows:,} transitions, {found.pairs_seen:,} of {found.pairs:,} pairs tried."
        return f"<div><p>{escape(harmless(' '.join((tried, *found.alerts))))}</p>{self.policy._repr_html_()}</div>"

    @property
    def shrinkage(self) -> Shrinkage:
        """Weights and target that were used."""
        return self.model.shrinkage


@dataclass(frozen=True)
class Learned(Advised):
    """Everything `learn` found out, and the rows it was found in."""

    batch: Batch

    @property
    def rows(self) -> Batch:
        """The rows."""
        return self.batch

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states, as the rows have them."""
        return self.batch.state_names


@dataclass(frozen=True)
class _Facts:
    """What learning needs to know of the rows, whether they are here or were counted elsewhere."""

    counts: Counts
    earned: Batch | Sums | None  # what rewards are estimated from
    alike: bool  # whether every reward is the same
    recipe: Recipe
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    rows: int
    endings: int
    dropped: Mapping[str, int]
    notes: tuple[str, ...]
    fingerprint: str | None
    batch: Batch | None = None  # the rows themselves


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
    progress: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
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
    progress, on_interrupt
        Who is told how planning goes on, and what Ctrl-C does to it: see `certeq.solve`.
    """
    if not isinstance(batch, Batch):
        raise InputError(f"learn takes a Batch, as certeq.read makes one of a table; got {type(batch).__name__}.")
    if batch.data_set is not None:
        raise InputError("learn takes one data set; this batch holds several.")
    if len(batch) == 0:
        raise InputError("There are no transitions to learn from.")
    facts = _Facts(
        tally(batch),
        None if batch.reward is None else batch,
        batch.reward is not None and bool(np.ptp(batch.reward) == 0),
        batch.recipe_or_numbers,
        batch.state_names,
        batch.action_names,
        len(batch),
        int(batch.ended.sum()),
        batch.dropped,
        batch.notes,
        batch.fingerprint,
        batch,
    )
    how = {"regularizer": regularizer, "unvisited": unvisited, "min_visits": min_visits, "horizon": horizon}
    watch = {"progress": progress, "on_interrupt": on_interrupt}
    found = _learn(facts, discount, reward, reward_by, reward_pool, settings=settings, watch=watch, **how)
    return Learned(**{field.name: getattr(found, field.name) for field in fields(found)}, batch=batch)


def learn_counts(
    tallied: Tallied,
    *,
    discount: float = 0.99,
    regularizer: str = DEFAULT,
    unvisited: str = "exclude",
    min_visits: int = 1,
    reward: ArrayLike | None = None,
    reward_by: str = "pair",
    reward_pool: str = "none",
    horizon: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
    **settings: Any,
) -> Advised:
    """Learn a policy from counts of rows, as `certeq.data.counting` makes them; otherwise as `learn`.

    What only the rows can tell is missing: how many episodes there were, and whether the states look Markov.
    """
    from certeq.data.counting import Tallied

    if not isinstance(tallied, Tallied):
        raise InputError(f"learn_counts takes what certeq count made; got {type(tallied).__name__}.")
    facts = _Facts(
        tallied.counts,
        tallied.rewards,
        tallied.reward_range is not None and tallied.reward_range[0] == tallied.reward_range[1],
        tallied.recipe,
        tallied.state_names,
        tallied.action_names,
        len(tallied),
        tallied.endings,
        tallied.dropped,
        tallied.notes,
        tallied.fingerprint,
    )
    how = {"regularizer": regularizer, "unvisited": unvisited, "min_visits": min_visits, "horizon": horizon}
    watch = {"progress": progress, "on_interrupt": on_interrupt}
    return _learn(facts, discount, reward, reward_by, reward_pool, settings=settings, watch=watch, **how)


def _learn(
    facts: _Facts,
    discount: float,
    reward: ArrayLike | None,
    reward_by: str,
    reward_pool: str,
    *,
    regularizer: Any,
    unvisited: Any,
    min_visits: Any,
    horizon: Any,
    settings: Mapping[str, Any],
    watch: Mapping[str, Any],
) -> Advised:
    gamma = within("discount", discount, 0, 1)
    if gamma.ndim:
        raise InputError(f"learn takes one discount; got an array of shape {gamma.shape}.")
    sums = _sums(facts) if reward is None else None
    rewards, by_pair = _rewards(facts.counts, sums, reward, reward_by, reward_pool)
    rules: dict[str, Any] = {"unvisited": unvisited, "min_visits": min_visits, "reward": by_pair}
    model = estimate(facts.counts, gamma, regularizer=regularizer, **rules, **settings)
    table = by_pair if rewards is None or rewards.arrival is None else arrival_table(rewards.arrival, model)
    seen = model.reward(table)
    plan = _plan(model, seen, gamma, horizon, facts.state_names, watch)
    chosen = {
        "discount": float(gamma),
        "regularizer": regularizer,
        **{name: _plain(value) for name, value in settings.items()},
        "unvisited": unvisited,
        "min_visits": min_visits,
        "reward": "known" if reward is not None else f"by {reward_by}, pooled: {reward_pool}",
        "horizon": horizon,
    }
    source = {"rows": facts.rows, "fingerprint": facts.fingerprint}
    q = np.where(model.stranded[:, None], -np.inf, plan.action_values)
    visits = model.counts.visits
    policy = Policy(facts.recipe, facts.action_names, plan.policy, visits, q, chosen, source)
    summary = _summarize(facts, model, plan, policy, chosen)
    return Advised(model, rewards, seen, plan, policy, summary, table, sums)


def _plan(
    model: Model,
    reward: Floats,
    discount: Floats,
    horizon: int | None,
    names: tuple[str, ...],
    watch: Mapping[str, Any],
) -> Plan | FinitePlan:
    plan: Plan | FinitePlan
    if horizon is None:
        problem = Problem(model.transition, reward, discount, model.allowed)
        check_ends(problem, names, "Mark the rows that end an episode in a column (done=, --done), set a horizon")
        plan = solve(model.transition, reward, discount, allowed=model.allowed, **watch)
    else:
        plan = solve_finite(model.transition, reward, discount, horizon, allowed=model.allowed)
    return plan.without_advice(model.stranded)


def _sums(facts: _Facts) -> Sums:
    """What was earned, added up."""
    if facts.earned is None:
        raise InputError("The rows have no rewards. Name the reward column, or give a known reward table.")
    return facts.earned if isinstance(facts.earned, Sums) else add_up(facts.earned)


def _rewards(
    counts: Counts, sums: Sums | None, known: ArrayLike | None, by: str, pool: str
) -> tuple[Rewards | None, Floats]:
    """Rewards of each pair, ``(S, A)``: known ones, or estimates from the pair's own rows."""
    if sums is None:
        assert known is not None
        table = floats("reward", known)
        pairs = (counts.n_states, counts.n_actions)
        if table.shape != pairs:
            raise InputError(f"Known rewards need the shape {pairs}; got {table.shape}.")
        return None, table
    if by not in ("pair", "next_state"):
        raise InputError(f"reward_by is 'pair' or 'next_state'; got {by!r}.")
    if by == "next_state" and pool != "none":
        raise InputError("reward_pool pools rewards by pair; with reward_by='next_state' leave it at 'none'.")
    rewards = rewards_of(sums, pool=pool, by_next_state=by == "next_state")
    return rewards, rewards.mean


def arrival_table(arrival: Floats, model: Model) -> Floats:
    """Rewards of each pair, ``(..., S, A)``, from those by next state, ``(..., S + 1)``."""
    # a zero target does not say where one arrives, so rewards by next state then follow the data rows alone
    rows = model.transition if model.shrinkage.target.mass().max() > 0 else model.data
    return rows.expect(arrival[..., :-1]) + (1 - rows.mass()) * arrival[..., -1, None, None]


def _summarize(facts: _Facts, model: Model, plan: Plan | FinitePlan, policy: Policy, chosen: dict[str, Any]) -> Summary:
    counts, batch = model.counts, facts.batch
    episodes = None if batch is None or batch.episode is None else len(np.unique(batch.episode))
    return Summary(
        rows=facts.rows,
        episodes=episodes,
        states=counts.n_states,
        actions=counts.n_actions,
        pairs_seen=int((counts.visits > 0).sum()),
        pairs=counts.n_states * counts.n_actions,
        endings=facts.endings,
        dropped=dict(facts.dropped),
        notes=tuple(facts.notes),
        alerts=tuple(_alerts(facts, model, plan, policy, chosen)),
        settings=chosen,
        advised=int((np.atleast_2d(policy.actions)[0] >= 0).sum()),
        mean_value=float(np.atleast_2d(plan.values)[0].mean()),
        binning=_binning(batch),
    )


def _binning(batch: Batch | None) -> tuple[str, ...]:
    """Report on the binning of a table that was read; with very many rows without the Markov check."""
    if batch is None or batch.recipe is None:
        return ()
    return tuple(binning_report(batch, permutations=200 if len(batch) <= MARKOV_ROWS else 0).lines())


def _alerts(
    facts: _Facts, model: Model, plan: Plan | FinitePlan, policy: Policy, chosen: Mapping[str, Any]
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
        alerts.append(f"Action {facts.action_names[rare[0]]!r} was tried in one state only.")
    ties = (np.atleast_3d(plan.tied.T).T[0].sum(axis=-1) > 1) & (first >= 0)
    if ties.any():
        alerts.append(f"In {int(ties.sum())} of {S} states the best actions are tied; the first of them is advised.")
    if chosen["reward"] != "known" and facts.alike:
        alerts.append("Every reward is the same, so no action can be better than another.")
    if isinstance(plan, Plan) and plan.outcome != "optimal":
        alerts.append(f"Planning {plan.outcome.removesuffix('; see bound')}. {_worth(plan)}")
    return alerts


def _worth(plan: Plan) -> str:
    """What a plan is certified to be worth, in words."""
    return (
        f"Its values are within {number(float(plan.bound.max()))} of the best possible ones in this model, and in no "
        f"state does following the advice lose more than {number(float(plan.loss_bound.max()))}."
    )


def _plain(value: Any) -> Any:
    """Settings as JSON knows them."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return np.asarray(value).tolist() if not isinstance(value, str | int | float | bool | None) else value
