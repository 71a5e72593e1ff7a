"""Earned: what rows tell of a model that one row at a time does not.

What people earned. A model agrees with its rows one decision at a time; followed as people acted, from where episodes
began and for as long as they were watched, it should also earn what they earned. Where states are cells cut from
numbers it tends to earn more: cells mix what is near their edges. What it says too much of what was done, it is taken
to say too much of what is advised.

What a value rests on. By the delta method a row (s, a, r, s') moves the value of a policy by

    x = often(s, a) / visits(s, a) · (y - mean of y over the rows of the pair),  y = r + γV(s')

where the policy takes the pair ``often`` times, discounted. Rows that all count the same make (Σx²)² / Σx⁴ the number
of them; if a few count for most of it, it is the number of those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certeq.base.arrays import Floats
from certeq.data.batch import Batch
from certeq.data.order import episodes, sections

LONGEST = 200  # decisions that are compared


def overstated(
    batch: Batch, paid: Floats, step: Callable[[Floats], Floats], discount: float, decisions: int | None
) -> float:
    """How much more a model says that people earned in an episode than they did, on average; 0 if no more.

    ``paid`` is what each row was paid, ``step`` what one more decision makes of values ``(S,)`` where people act as
    they did. Of an episode that was cut off before so many ``decisions``, as many are compared as it has. Where they
    are few, sections of long ones are compared, and what these tell is scaled up to the time that an episode takes.
    """
    if batch.episode is None or len(batch) == 0:
        return 0.0
    order, most = sections(batch), min(decisions or LONGEST, LONGEST)
    counted = order.step < most
    earned = np.bincount(order.number, counted * discount**order.step * paid[order.row])
    expected = [np.zeros(batch.n_states)]
    for _ in range(most):
        expected.append(step(expected[-1]))
    last = batch.ended[order.row[order.last]] & (order.length <= most)
    compared = np.where(last, most, np.minimum(order.length, most))
    says = np.array(expected)[compared, batch.state[order.row[order.begin]]]
    time = np.cumsum(discount ** np.arange(most))
    whole, part = (time[np.minimum(each.length, most) - 1].mean() for each in (episodes(batch), order))
    return max(0.0, float(np.mean(says - earned) * whole / part))


def resting(batch: Batch, paid: Floats, often: Floats, values: Floats, discount: float) -> float:
    """How many rows the doubt about a value rests on; 0 where rows leave no doubt.

    ``often`` ``(S, A)`` is how often the policy takes each pair, discounted; ``values`` ``(S,)`` what it is worth.
    """
    pair = batch.state * often.shape[1] + batch.action
    worth = paid + discount * np.where(batch.next_state >= 0, values[np.maximum(batch.next_state, 0)], 0.0)
    visits, total = (np.bincount(pair, weights, minlength=often.size) for weights in (None, worth))
    moved = (often.ravel() / np.maximum(visits, 1))[pair] * (worth - (total / np.maximum(visits, 1))[pair])
    largest = np.abs(moved).max(initial=0.0)
    if not largest > 1e-9 * np.abs(often).max() * max(np.abs(worth).max(), 1e-300):  # rounding
        return 0.0
    square = (moved / largest) ** 2
    return float(square.sum() ** 2 / (square**2).sum())
