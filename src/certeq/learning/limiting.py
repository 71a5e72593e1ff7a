"""Limits: what a column beside the reward may add up to, and the price at which advice keeps to it.

A limit is kept by a price: every unit of the column is charged so much of the reward that the best policy, net of that,
stays within the limit (`certeq.planners.constrained`). What is learned then is an ordinary case of rows whose reward is
net, so everything that is asked of it again (draws, fragility, off-policy estimates) holds at that price. Mean rewards
add up only where they borrow from nowhere: with a limit nothing is pooled. And one action is advised in every state,
never a set: another one of the set might break the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certeq.base.display import number
from certeq.base.errors import InputError, unknown
from certeq.data.batch import Batch
from certeq.learning.case import Case, Data
from certeq.model.kernel import Rows
from certeq.planners.constrained import Constrained, Within, keep


@dataclass(frozen=True)
class Limited:
    """How limits were kept."""

    case: Case  # the rows as they are, reward and costs apart
    names: tuple[str, ...]  # of the columns with a limit
    kept: Within


def rows_of(case: Case) -> Batch:
    """The rows, with columns beside the reward; else an error that says how to get them."""
    batch = case.data.rows("What adds up beside the reward takes rows")
    if not batch.beside:
        raise InputError(
            "No column was read to be added up beside the reward. Name it when the rows are read: beside= (--beside), "
            "such as beside='dose'."
        )
    return batch


def cost_case(case: Case, name: str) -> Case:
    """The same case, with a column in place of the reward."""
    batch = rows_of(case)
    if name not in batch.beside:
        raise unknown("column beside the reward", name, tuple(batch.beside))
    return Case(Data.of_rows(replace(batch, reward=batch.beside[name], goal="")), case.rules, case.usual)


def constrained(case: Case, names: Sequence[str]) -> Constrained:
    """What was estimated, as a problem with these costs."""
    model, rules = case.model, case.rules
    if model.shrinkage.target.mass().max() == 0:
        raise InputError(
            f"The regularizer {rules.regularizer!r} lets the future end early, so costs would come out too low. Choose "
            "another one (regularizer=, --regularizer) to plan with costs."
        )
    tables = [model.reward(cost_case(case, name).table) for name in names]
    start, sparse = rows_of(case).starts, case.data.counts.sparse
    rows = model.transition if sparse else Rows.trusted(model.transition.dense())  # once, for many plans
    return Constrained(
        rows, model.reward(case.table), np.array(tables), rules.discount, start, model.allowed,
        rules.horizon, case.data.counts.visits,
    )  # fmt: skip


def limit(case: Case) -> tuple[Case, Limited | None]:
    """The case at the prices at which its limits are kept, and how that came about; as it is where there are none."""
    limits = case.rules.limits
    if not limits:
        return case, None
    if case.data.known_rewards:
        raise InputError("A limit needs rewards that are read with the rows, not a table of known rewards.")
    if case.rules.reward_pool not in ("auto", "none"):
        raise InputError(
            f"With a limit rewards are not pooled, so that they and costs add up: leave reward_pool={'none'!r} "
            f"(--reward-pool none) in place of {case.rules.reward_pool!r}."
        )
    plain = case.ruled(reward_pool="none", min_chance=0.0)
    names = tuple(each.column for each in limits)
    problem = constrained(plain, names)
    kept = keep(problem, np.array([each.most for each in limits]), case.rules.limit)
    if kept.corner is None:
        raise InputError(
            f"The limits {' and '.join(case.rules.limit)} are kept together by choosing between policies by lot, but "
            "no single policy was found that keeps them all. Raise one of them, or give only the one that matters most."
        )
    return _priced(plain, dict(zip(names, kept.corner.prices, strict=True))), Limited(plain, names, kept)


def _priced(case: Case, prices: dict[str, float]) -> Case:
    """The case of rows whose rewards are net of prices."""
    batch, charged = rows_of(case), {name: price for name, price in prices.items() if price > 0}
    one = "and one action is advised in every state, however close another comes"
    if not charged:
        said = f"The best policy keeps {' and '.join(case.rules.limit)} without being charged for it, {one}."
        return Case(replace(case.data, decisions=(said, *batch.decisions)), case.rules, case.usual)
    assert batch.reward is not None
    net = batch.reward - sum(price * batch.beside[name] for name, price in charged.items())
    each = " and ".join(f"{number(price)} for each unit of {name!r}" for name, price in charged.items())
    told = (
        f"To keep {' and '.join(case.rules.limit)}, rewards are charged {each}, {one}. All values and chances here "
        "are net of the charge; what the advice earns and what it costs are given separately, under value against cost."
    )
    data = Data.of_rows(replace(batch, reward=net, decisions=(told, *batch.decisions)))
    return Case(data, case.rules, case.usual)
