"""Followed: where people happened to do what is advised twice in a row, did the second decision pay what it should?

A model agrees with its rows one decision at a time. What states leave out shows only later, and if it shows only where
the advice is followed, no comparison with what people did can see it. But now and then people did as is advised, twice
in a row. With the values V of the advice in the model, a row that took the advised action is off by

    x = r + γV(s') - V(s)

and, if states hold what matters, by no more on average where the decision before was as advised, too:

    d = mean(x | the decision before as well) - mean(x)

Below 0, d says how much less each further decision pays than the model believes. What luck chose, and what was
borrowed, is in both means. What chance alone may do is left out, as James and Stein do: with the standard error e of d,
over episodes, the shortfall is -d·(1 - e²/d²), and 0 where that is negative.
"""

from __future__ import annotations

import numpy as np

from certeq.base.arrays import Booleans, Floats
from certeq.data.batch import Batch
from certeq.data.order import sections

FEWEST = 10  # rows after a decision that was as advised, without which nothing is told


def shortfall(batch: Batch, paid: Floats, advised: Booleans, values: Floats, discount: float) -> float:
    """How much less each further decision pays than the model believes; 0 if no less, or where nobody can tell.

    ``paid`` is what each row was paid, ``advised`` ``(S, A)`` what is advised, ``values`` what that is worth.
    """
    if batch.episode is None or len(batch) == 0:
        return 0.0
    order = sections(batch)
    at = order.row
    state, then = batch.state[at], batch.next_state[at]
    took = advised[state, batch.action[at]]
    after = np.zeros(len(at), dtype=bool)
    after[1:] = took[1:] & took[:-1] & (order.step[1:] > 0) & (then[:-1] == state[1:])
    if after.sum() < FEWEST:
        return 0.0
    off = paid[at] + discount * np.where(then >= 0, values[np.maximum(then, 0)], 0.0) - values[state]
    every, later = off[took].mean(), off[after].mean()
    if later >= every:
        return 0.0
    own = after * (off - later) / after.sum() - took * (off - every) / took.sum()  # what each row has to do with it
    square = (np.bincount(order.number, own) ** 2).sum()
    return max(0.0, float((every - later) - square / (every - later)))
