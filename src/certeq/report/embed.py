"""The model as the page's own planner reads it: counts, rewards, weights and target, as compact as they are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.arrays import Floats
from certeq.model.kernel import Kernel, Rows
from certeq.report.maps import action_color, action_signs
from certeq.report.sheet import sheet

if TYPE_CHECKING:
    from certeq.learning.learned import Learned

MOST_STATES = 300  # that the page plans for
MOST_CELLS = 2_000_000  # S * A * S, what the page keeps in memory
MOST_NUMBERS = 40_000  # of a target that is written out


def why_not(learned: Learned, suppress_below: int) -> str:
    """Why the page cannot plan anew; an empty text where it can."""
    S, A = learned.policy.visits.shape
    if S > MOST_STATES or S * A * S > MOST_CELLS:
        return (
            f"The page replans for up to {MOST_STATES} states; here there are {S:,} states and {A:,} actions. "
            "certeq.audit answers the same question for data of any size."
        )
    if learned.case.peculiar:
        return "The page can replan only where rewards are discounted and all steps count alike."
    if learned.rules.discount == 0:
        return "With discount 0 nothing that comes later counts, and no planning discount could be lower."
    if suppress_below > 1:
        return "Small counts are hidden in this report, and without them the page cannot replan."
    return ""


def model(learned: Learned) -> dict[str, Any]:
    """What the page needs to plan anew under any planning discount, and to plan as was done here."""
    counts, rules = learned.counts, learned.rules
    S, A = learned.policy.visits.shape
    pair, following = np.nonzero(counts.transitions.reshape(S * A, S))
    thin = np.flatnonzero((counts.visits < rules.min_visits).ravel())
    paper = sheet(learned.policy.recipe)
    arrival, kinds = None if learned.rewards is None else learned.rewards.arrival, learned.case.by_outcome
    return {
        "states": S,
        "actions": A,
        "outcomes": counts.n_outcomes,
        "discount": rules.discount,
        "horizon": rules.horizon,
        "weightAtThin": 1 if rules.unvisited == "target" else 0,  # of a learned weight; see decision 0001
        "counts": {
            "begin": _begins(pair, S * A),
            "next": following.tolist(),
            "count": counts.transitions.reshape(S * A, S)[pair, following].tolist(),
        },
        "visits": counts.visits.ravel().tolist(),
        "thin": thin.tolist(),
        "thinRows": _rows(learned.model.data.dense().reshape(S * A, S)[thin]),
        "allowed": learned.model.allowed.astype(int).ravel().tolist(),
        "stranded": learned.model.stranded.astype(int).tolist(),
        "table": learned.table.ravel().tolist() if arrival is None and kinds is None else None,
        "going": None if kinds is None else kinds[0].ravel().tolist(),
        "ending": None if kinds is None else kinds[1].ravel().tolist(),
        "arrival": None if arrival is None else arrival.tolist(),
        "weight": np.broadcast_to(learned.shrinkage.weight, (S, A)).ravel().tolist(),
        "target": _target(learned.shrinkage.target),
        "reward": learned.reward.ravel().tolist(),
        "advice": learned.policy.first.actions.tolist(),
        "sheet": {
            "rows": paper.rows,
            "columns": paper.columns,
            "row": paper.row.tolist(),
            "column": paper.column.tolist(),
        },
        "colors": [action_color(a) for a in range(A)],
        "signs": action_signs(learned.policy.action_names),
    }


def _target(target: Kernel) -> dict[str, Any] | None:
    """Rows that are pulled toward, with 1 for an axis that does not matter; None where they are too many to write."""
    s_axis, a_axis, S = target.shape
    array = target.array if isinstance(target, Rows) else target.dense()
    rows = _rows(np.broadcast_to(array, target.shape).reshape(s_axis * a_axis, S))
    if len(rows["next"]) > MOST_NUMBERS:
        return None
    return {"s": s_axis, "a": a_axis, "rows": rows}


def _rows(array: Floats) -> dict[str, Any]:
    """Rows ``(L, S)``: one number where a row is flat, else its entries that are not 0."""
    flat = np.ptp(array, axis=1) == 0 if len(array) else np.zeros(0, dtype=bool)
    rest = np.where(flat[:, None], 0.0, array)
    line, following = np.nonzero(rest)
    return {
        "flat": np.where(flat, array[:, 0], 0.0).tolist() if len(array) else [],
        "begin": _begins(line, len(array)),
        "next": following.tolist(),
        "share": rest[line, following].tolist(),
    }


def _begins(line: Any, lines: int) -> list[int]:
    """Where each line's entries begin, and where the last one's end."""
    begins: list[int] = np.concatenate([[0], np.cumsum(np.bincount(line, minlength=lines))]).tolist()
    return begins
