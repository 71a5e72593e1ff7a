"""Case: data and rules, and the only way from them to advice: estimate, regularize, plan.

`certeq.learn` makes a case; every question asks a case again, with other data (a resample, rows added) or other rules.
Counts and sums of rewards may have a leading axis, as may the settings of the regularizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Booleans, Floats, Integers, floats, names
from certeq.base.errors import InputError
from certeq.data.batch import Batch, Carried
from certeq.data.counting.tallied import Tallied
from certeq.data.counts import Counts, as_counts, count_again, tally
from certeq.data.recipes import Recipe
from certeq.data.sums import Sums, add_up, check_size
from certeq.learning.elapsed import UNALIKE, fading
from certeq.learning.equivalence import Model, mixed, solve_model
from certeq.learning.proven import SURE, bold, careful, prove, scatter
from certeq.learning.rules import Rules
from certeq.learning.shown import shown
from certeq.model.habits import shares
from certeq.model.rewards import Rewards, arrival_means, means, outcome_means
from certeq.model.rewards import estimate as rewards_of
from certeq.planners import FinitePlan, Plan
from certeq.regularizers import Shrinkage, shrink

DEPENDS = {  # what takes long to work out -> the rules that it goes by
    "shrinkage": {"regularizer", "settings", "discount"},
    "by_pair": {"reward_by", "reward_pool"},
    "rewards": {"reward_by", "reward_pool"},
    "shown": {"discount", "horizon", "average", "unvisited", "min_visits", "min_share"},  # asked once for all settings
}


class Advised(NamedTuple):
    """What is advised, at the first decision where there is a horizon; leading axes as the case has them."""

    policy: Integers  # (..., S), -1 for no advice
    values: Floats  # (..., S)
    action_values: Floats  # (..., S, A), minus infinity where an action may not be advised


@dataclass(frozen=True)
class Data:
    """What advice is made from: counts, what was earned, what things are called, and where all that came from."""

    counts: Counts
    reward: Floats | Sums | None  # known, (S, A); or what was earned, added up; None where nobody knows
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    recipe: Recipe | None = None  # columns -> states
    batch: Batch | None = None  # the rows themselves, where they are at hand
    size: int = 0  # transitions
    endings: int = 0  # of them, that ended an episode
    dropped: Mapping[str, int] = field(default_factory=dict)  # why rows were left out -> how many
    goal: str = ""  # which way is better, in words
    decisions: tuple[str, ...] = ()  # what was decided while reading and changes the advice; told first
    notes: tuple[str, ...] = ()  # what was guessed or decided while reading
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # least and largest number of each column
    carried: Carried | None = None  # columns in which last values were taken for missing ones
    fingerprint: str | None = None  # SHA-256 of the file

    def __post_init__(self) -> None:
        S, A = self.counts.n_states, self.counts.n_actions
        object.__setattr__(self, "state_names", names("state", self.state_names, S))
        object.__setattr__(self, "action_names", names("action", self.action_names, A))
        if self.reward is not None and not isinstance(self.reward, Sums):
            known = floats("reward", self.reward)
            if known.shape[-2:] != (S, A):
                raise InputError(f"Known rewards need the shape {(S, A)}; got {known.shape}.")
            object.__setattr__(self, "reward", known)
        told = self.reward.span if isinstance(self.reward, Sums) else self.reward
        if told is not None:
            check_size(float(np.abs(told).max(initial=0, where=np.isfinite(told))))

    @classmethod
    def of(cls, source: Batch | Tallied | Counts | ArrayLike, reward: ArrayLike | None = None, **more: Any) -> Data:
        """Take in rows, counts of rows, or bare counts, with known rewards where they are known."""
        if isinstance(source, Batch):
            return cls.of_rows(source, reward)
        if isinstance(source, Tallied):
            return cls.of_counts(source, reward)
        table = as_counts(source)
        if table.batch:
            raise InputError(f"This asks about one data set; the counts have the leading axes {table.batch}.")
        if reward is None:
            raise InputError("Counts do not tell what was earned: give reward=, a table of one number for each pair.")
        return cls(table, floats("reward", reward), **more)

    @classmethod
    def of_rows(cls, batch: Batch, reward: ArrayLike | None = None) -> Data:
        """Take in rows: one data set."""
        if batch.data_set is not None:
            raise InputError("learn takes one data set; this batch holds several.")
        if len(batch) == 0:
            raise InputError("There are no transitions to learn from.")
        return cls(
            counts=tally(batch),
            reward=_earned(None if batch.reward is None else add_up(batch), reward),
            state_names=batch.state_names,
            action_names=batch.action_names,
            recipe=batch.recipe_or_numbers,
            batch=batch,
            size=len(batch),
            endings=int(batch.ended.sum()),
            dropped=batch.dropped,
            goal="" if reward is not None else batch.goal,
            decisions=batch.decisions,
            notes=batch.notes,
            ranges=batch.ranges,
            carried=batch.carried,
            fingerprint=batch.fingerprint,
        )

    @classmethod
    def of_counts(cls, tallied: Tallied, reward: ArrayLike | None = None) -> Data:
        """Take in rows that were counted elsewhere."""
        return cls(
            counts=tallied.counts,
            reward=_earned(tallied.rewards, reward),
            state_names=tallied.state_names,
            action_names=tallied.action_names,
            recipe=tallied.recipe,
            size=len(tallied),
            endings=tallied.endings,
            dropped=tallied.dropped,
            goal="" if reward is not None else tallied.goal,
            notes=tallied.notes,
            fingerprint=tallied.fingerprint,
        )

    @property
    def known_rewards(self) -> bool:
        """Whether rewards were given rather than estimated."""
        return isinstance(self.reward, np.ndarray)

    @property
    def alike(self) -> bool:
        """Whether rewards were estimated, and every one of them is the same."""
        return isinstance(self.reward, Sums) and bool(self.reward.span[:, 0].min() == self.reward.span[:, 1].max())

    def rows(self, why: str) -> Batch:
        """The rows; where there are only counts of them, an error that says why rows are needed."""
        if self.batch is None:
            raise InputError(f"{why}, and here there are only counts of rows. Learn from the rows to see it.")
        return self.batch

    def bare(self) -> Data:
        """Counts and rewards alone: all that a pipeline needs, and all that workers are sent."""
        return Data(self.counts, self.reward)


def _earned(sums: Sums | None, known: ArrayLike | None) -> Floats | Sums:
    """What is known of the rewards."""
    if known is not None:
        return floats("reward", known)
    if sums is None:
        raise InputError("The rows have no rewards. Name the reward column, or give a known reward table.")
    return sums


@dataclass(frozen=True)
class Case:
    """Data and rules: the only place where counts become a model and a model becomes a plan."""

    data: Data
    rules: Rules = field(default_factory=Rules)
    usual: Booleans | None = None  # (S, A): what may be advised, where made-up rows have no say in that
    verdict: float | None = None  # what is `shown`, where other rows have no say in that

    @cached_property
    def by_pair(self) -> Floats:
        """Rewards of each pair ``(..., S, A)`` as the rows of the pair say, pooled if that was asked for."""
        earned = self.data.reward
        if isinstance(earned, Sums):
            return means(earned, self._pool, self.data.counts.positions)
        assert earned is not None
        return earned

    @cached_property
    def by_outcome(self) -> tuple[Floats, Floats] | None:
        """What each pair earns when it goes on, and when the episode ends, ``(..., S, A)`` each.

        None where rewards are known, or go by next state, or nothing ended: then a pair earns what it earns.
        """
        rules, counts, earned = self.rules, self.data.counts, self.data.reward
        if not isinstance(earned, Sums) or rules.reward_by == "next_state" or counts.ended is None:
            return None
        if counts.batch or self.rewards is None or self.rewards.kinds is None:
            going, ending = outcome_means(earned, self._pool, counts.positions)
        else:
            going, ending = (kind.mean for kind in self.rewards.kinds)  # of one data set, known already
        if rules.unvisited == "zero":  # an ending that a convention made up pays nothing
            ending = np.where(counts.visits < rules.min_visits, going, ending)
        return going, ending

    @property
    def _pool(self) -> str:
        return "none" if self.rules.reward_by == "next_state" else self.rules.reward_pool

    @cached_property
    def rewards(self) -> Rewards | None:
        """How rewards were estimated, with what is needed to say how sure they are; None where they are known."""
        rules, earned = self.rules, self.data.reward
        if not isinstance(earned, Sums):
            return None
        places = self.data.counts.positions
        return rewards_of(earned, pool=self._pool, by_next_state=rules.reward_by == "next_state", positions=places)

    @cached_property
    def shrinkage(self) -> Shrinkage:
        """Weights and target, before a convention has its say."""
        rules = self.rules
        return shrink(self.data.counts, rules.regularizer, discount=rules.discount, **rules.settings)

    @cached_property
    def model(self) -> Model:
        """The estimated and regularized transitions, with the actions that may be advised."""
        if self.usual is not None:
            return replace(self._fitted, allowed=self._fitted.allowed & self.usual)
        if not self._asks_people:
            return self._fitted
        return bold(self._proven, self.rules.min_visits) if self.shown > SURE else self._proven

    @cached_property
    def shown(self) -> float:
        """How many standard errors better what people seldom did turned out, over all states; 0 where nobody can tell.

        Only rows in episodes tell, of plans forever with a discount below 1; with very many states nobody asks.
        """
        data, rules = self.data, self.rules
        if self.verdict is not None:
            return self.verdict
        asked = self.usual is None and self._asks_people and rules.horizon is None and rules.discount < 1
        single = np.ndim(self.shrinkage.weight) == 2 and not data.counts.sparse
        if not asked or not single or data.batch is None or data.batch.episode is None:
            return 0.0
        if (bold(self._proven, rules.min_visits).allowed == self._proven.allowed).all():
            return 0.0
        chance = shares(data.counts.visits)
        rows = np.einsum("sa,sat->st", chance, self._proven.transition.dense())
        earned = (chance * self._proven.reward(self.table)).sum(axis=1)
        values = np.linalg.solve(np.eye(len(rows)) - rules.discount * rows, earned)
        known = self.by_pair[data.batch.state, data.batch.action] if self.rewards is None else data.batch.reward
        return shown(data.batch, np.asarray(known), values, rules.discount, self._both)

    def _both(self, often: Integers) -> tuple[Integers, Integers]:
        """What is advised where each row counts so often: of what is usual or proven, and of what has a few rows."""
        data, rules, rows = self.data, self.rules, self.data.rows("Plans are made of some of the rows")
        reward = add_up(rows, often) if isinstance(data.reward, Sums) else data.reward
        case = Case(Data(count_again(rows, often, data.counts), reward), rules, verdict=0.0)
        model = bold(case.model, rules.min_visits)
        return case.plan().policy, solve_model(model, case.table, rules.discount).policy

    @cached_property
    def _proven(self) -> Model:
        rules, earned = self.rules, self.data.reward
        noise = scatter(earned) if isinstance(earned, Sums) else 0.0
        model, told = self._careful
        return prove(model, self.table, self._paid, noise, rules.discount, rules.horizon, rules.min_visits, told)

    @property
    def habits(self) -> Floats | float:
        """How many standard errors better what people usually did turned out than the rest; NaN where nobody asks."""
        return self._careful[1] if self.usual is None and self._asks_people else np.nan

    @property
    def _asks_people(self) -> bool:
        rules = self.rules
        return bool(rules.min_share) and self.data.reward is not None and not rules.average and self.fade is None

    @property
    def _paid(self) -> tuple[Floats, Floats]:
        return self.by_outcome or (self.table, self.table)

    @cached_property
    def _careful(self) -> tuple[Model, Floats]:
        return careful(self._fitted, self.table, self._paid, self.rules.discount, self.rules.horizon)

    @cached_property
    def _fitted(self) -> Model:
        rules = self.rules
        return mixed(
            self.shrinkage,
            self.data.counts,
            unvisited=rules.unvisited,
            min_visits=rules.min_visits,
            min_share=rules.min_share if self.usual is None else 0.0,
        )

    @cached_property
    def table(self) -> Floats:
        """Rewards of each pair ``(..., S, A)``, before the regularizer and states without advice have their say."""
        if isinstance(self.data.reward, Sums) and self.rules.reward_by == "next_state":
            return self._fitted.on_arrival(arrival_means(self.data.reward))
        return self.by_pair if self.by_outcome is None else self._fitted.on_outcome(*self.by_outcome)

    @property
    def start(self) -> Floats:
        """Distribution of the first state, ``(S,)``: that of the episodes, or of the states in all rows."""
        if self.data.batch is not None:
            return self.data.batch.starts
        visits = self.data.counts.visits.sum(axis=-1)
        return visits / visits.sum() if visits.any() else np.full(len(visits), 1 / len(visits))

    @property
    def peculiar(self) -> str:
        """Why questions that add up rewards step by step, discounted, cannot be asked; empty where they can."""
        if self.rules.average:
            why = "It adds up discounted rewards; this policy is for the average."
            return f"{why} To see it, learn without average= (--average)."
        if self.fade is not None:
            return UNALIKE
        return ""

    @cached_property
    def fade(self) -> Floats | None:
        """What the next value counts for, ``(S, A, S)``, where steps have a duration; None where all count alike."""
        batch = self.data.batch
        return None if batch is None or batch.duration is None else fading(batch, self.rules.discount)

    @cached_property
    def possible(self) -> tuple[float, float]:
        """The least and the greatest value that rewards like these allow, whatever the transitions.

        Going on for ever, or for all decisions of a horizon, pays at most the greatest reward of going on each time;
        an ending pays its own, at once or at last. Where rewards are known by pair, those of pairs that ever went on,
        and that ever ended.
        """
        if self.rules.average:  # values are relative
            return -np.inf, np.inf
        earned, counts, H = self.data.reward, self.data.counts, self.rules.horizon
        gamma = self.rules.discount if self.fade is None else float(self.fade.max())
        steps = float(H if H is not None else np.inf) if gamma == 1 else (1 - gamma ** (H or np.inf)) / (1 - gamma)
        if isinstance(earned, Sums):
            (low, high), (last_low, last_high) = earned.span.tolist()
        else:
            ended = np.zeros_like(counts.visits) if counts.ended is None else counts.ended
            kinds = (self.by_pair[..., (counts.visits > ended) | (counts.visits == 0)], self.by_pair[..., ended > 0])
            (low, high), (last_low, last_high) = ((one.min(initial=np.inf), one.max(initial=-np.inf)) for one in kinds)
        if not high >= low:  # nothing went on
            low = high = 0.0
        most = [high, last_high, high * steps if high else 0.0]
        least = [low, last_low, low * steps if low else 0.0]
        if H is not None:  # to go on until the last decision and end there may be worth more than either alone
            before = float(H - 1) if gamma == 1 else (1 - gamma ** (H - 1)) / (1 - gamma)
            most.append(high * before + gamma ** (H - 1) * last_high)
            least.append(low * before + gamma ** (H - 1) * last_low)
        return float(min(least)), float(max(most))

    def plan(self, **how: Any) -> Plan | FinitePlan:
        """Plan, forever with what `certeq.solve` takes; of tied actions the best supported one is advised."""
        rules, names = self.rules, self.data.state_names
        start = self.start if rules.average else None
        found = solve_model(
            self.model, self.table, rules.discount, horizon=rules.horizon, average=start, fade=self.fade, names=names,
            **how,
        )  # fmt: skip
        return found.supported(self.data.counts.visits)

    def action_values(self, plan: Plan | FinitePlan) -> Floats:
        """Q of a plan, where tied actions are alike to the last digit; minus infinity in states without advice."""
        q = np.where(plan.tied, plan.action_values.max(axis=-1, keepdims=True), plan.action_values)
        return np.where(self.model.stranded[..., None], -np.inf, q)

    def advise(self, **how: Any) -> Advised:
        """Plan, and read off the advice."""
        plan = self.plan(**how)
        parts = plan.policy, plan.values, self.action_values(plan)
        return Advised(*(part[0] for part in parts)) if isinstance(plan, FinitePlan) else Advised(*parts)

    def under(self, regularizer: str, **settings: Any) -> Case:
        """The same case with another regularizer."""
        return self.ruled(regularizer=regularizer, settings=settings)

    def ruled(self, **changes: Any) -> Case:
        """The same case with other rules; what these do not change is not worked out again."""
        other = Case(self.data, replace(self.rules, **changes))
        known = {name: self.__dict__[name] for name, by in DEPENDS.items() if name in self.__dict__}
        other.__dict__.update({name: value for name, value in known.items() if not DEPENDS[name] & changes.keys()})
        return other

    def given(self, counts: Counts, reward: Floats | Sums | None) -> Case:
        """The same rules for other counts and rewards of the same states and actions."""
        return Case(replace(self.data, counts=counts, reward=reward), self.rules, self.usual, self.shown)

    def supposing(self, counts: Counts, reward: Floats | Sums | None) -> Case:
        """The same rules with made-up rows added, which do not change what counts as avoided."""
        held = self.model.allowed if self.usual is None else self.usual
        return replace(self.given(counts, reward), usual=held)
