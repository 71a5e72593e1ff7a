"""Case: how a piece of advice was made, so that it can be made again from other data or with other settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Integers, floats, names
from certeq.base.errors import InputError
from certeq.data.counts import Counts, as_counts
from certeq.data.sums import Sums
from certeq.learning.equivalence import Model, estimate
from certeq.learning.learned import Advised, arrival_table
from certeq.model.rewards import arrival_means, means
from certeq.planners import solve, solve_finite
from certeq.regularizers import DEFAULT

# what the settings of a policy hold besides those of its regularizer
GENERAL = ("discount", "regularizer", "unvisited", "min_visits", "reward", "horizon")


class Advice(NamedTuple):
    """What is advised, at the first decision where there is a horizon; leading axes as the case has them."""

    policy: Integers  # (..., S), -1 for no advice
    values: Floats  # (..., S)
    action_values: Floats  # (..., S, A), minus infinity where an action may not be advised


@dataclass(frozen=True)
class Case:
    """Counts, rewards and settings. Counts and sums of rewards may have a leading axis, as may the settings."""

    counts: Counts
    reward: Floats | Sums  # known, (S, A); or the sums that it is estimated from
    discount: float
    regularizer: str = DEFAULT
    settings: Mapping[str, Any] = field(default_factory=dict)
    unvisited: str = "exclude"
    min_visits: int = 1
    horizon: int | None = None
    reward_pool: str = "none"
    reward_by_next_state: bool = False
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        S, A = self.counts.n_states, self.counts.n_actions
        object.__setattr__(self, "state_names", names("state", self.state_names, S))
        object.__setattr__(self, "action_names", names("action", self.action_names, A))

    def model(self) -> Model:
        """Estimate and regularize the transitions."""
        rules: dict[str, Any] = {"unvisited": self.unvisited, "min_visits": self.min_visits, "reward": self._by_pair()}
        return estimate(self.counts, self.discount, regularizer=self.regularizer, **rules, **self.settings)

    def table(self, model: Model) -> Floats:
        """Rewards of each pair ``(..., S, A)``, before the regularizer has its say."""
        if isinstance(self.reward, Sums) and self.reward_by_next_state:
            return arrival_table(arrival_means(self.reward), model)
        return self._by_pair()

    def _by_pair(self) -> Floats:
        return means(self.reward, self.reward_pool) if isinstance(self.reward, Sums) else self.reward

    def advise(self, engine: str = "auto") -> Advice:
        """Estimate, regularize and plan; for ever with an engine of `certeq.solve`."""
        model = self.model()
        problem = (model.transition, model.reward(self.table(model)), self.discount)
        if self.horizon is None:
            plan = solve(*problem, allowed=model.allowed, engine=engine)
            policy, values, q = plan.policy, plan.values, plan.action_values
        else:
            finite = solve_finite(*problem, self.horizon, allowed=model.allowed)
            policy, values, q = finite.policy[0], finite.values[0], finite.action_values[0]
        alone = model.stranded
        return Advice(np.where(alone, -1, policy), values, np.where(alone[..., None], -np.inf, q))

    def under(self, regularizer: str, **settings: Any) -> Case:
        """The same case with another regularizer."""
        return replace(self, regularizer=regularizer, settings=settings)


def case_of(learned: Advised) -> Case:
    """Read off how a policy was learned, from rows or from counts of them."""
    if not isinstance(learned, Advised):
        raise InputError(f"This asks about what certeq.learn returned; got {type(learned).__name__}.")
    chosen, rewards = learned.summary.settings, learned.rewards
    return Case(
        learned.counts,
        learned.table if learned.sums is None else learned.sums,
        chosen["discount"],
        chosen["regularizer"],
        {name: value for name, value in chosen.items() if name not in GENERAL},
        chosen["unvisited"],
        chosen["min_visits"],
        chosen["horizon"],
        "none" if rewards is None else rewards.pool,
        rewards is not None and rewards.arrival is not None,
        learned.state_names,
        learned.action_names,
    )


def case_of_counts(counts: Counts | ArrayLike, reward: ArrayLike | None, discount: float) -> Case:
    """Make a case of counts of one data set and known rewards."""
    table = as_counts(counts)
    if table.batch:
        raise InputError(f"This asks about one data set; the counts have the leading axes {table.batch}.")
    if reward is None:
        raise InputError("Counts do not tell what was earned: give reward=, a table of one number for each pair.")
    known = floats("reward", reward)
    if known.shape != (table.n_states, table.n_actions):
        raise InputError(f"Rewards need the shape ({table.n_states}, {table.n_actions}); got {known.shape}.")
    return Case(table, known, discount)
