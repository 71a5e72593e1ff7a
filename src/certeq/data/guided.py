"""Guided: whether people acted on more than the states hold.

Where a column is cut into cells, or left out, people still saw it. If they acted on it, the rows of an action within a
state are of other cases than those of another action: what followed is partly due to why it was chosen. A plan takes
all of it for the action's doing, and may claim to beat people who knew better.

They may also have acted on what was before: on what they remembered of somebody, of which a noisy value of today tells
only a part. That misleads a plan if what was before tells what follows as well, given the state and the action.

Within each state the rows are split by where they lie on a column. Pearson's statistics of place against action, added
up over the states, are compared with what shuffling the actions within each state would give. Its mean and variance are
known exactly, however few rows a state has, since the statistic is a sum over pairs of rows with the same place and the
same action (Mantel 1967). Nothing is shuffled, so that neither the order of rows nor anybody's name matters. The tail
is that of the chi-squared distribution with as many degrees of freedom as the tables of all states have together.
Values of the row before are followed by rank (`rising`).

Rows are taken one by one. Where a person (an episode) has a level of the column and a habit of its own, and neither has
to do with the other, few persons with many rows each may look as if they acted on the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import erfc, lgamma, sqrt

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.data.batch import Batch
from certeq.data.order import episodes
from certeq.data.recipes.fitting import say_bins

FEW = 100  # rows, below which nothing is said
DOUBT = 0.1  # chance of a false alarm, over all columns; one that is missed costs more
ROUNDING = 1e-12
TRIFLE = 0.01  # share of what the state leaves open about the action, below which nothing is said


@dataclass(frozen=True)
class Guided:
    """How much a column still tells about the action that was taken, given the state."""

    column: str
    used: bool  # whether the column is part of the state, which then is coarser
    share: float  # of what the state leaves open about the action, beyond what chance would seem to tell
    p_value: float
    rows: int
    before: bool = False  # whether it is the column's value in the row before

    @property
    def line(self) -> str:
        """The finding in words."""
        which = f"within a state {self.column!r}" if self.used else f"{self.column!r}, which is not part of them,"
        which = f"what {self.column!r} was one row before" if self.before else which
        also = ", and tells what follows as well" * self.before
        return (
            f"People acted on more than the states hold: {which} removes {self.share:.0%} of what the state leaves "
            f"open about the action{also} ({self.rows:,} rows, p = {self.p_value:.2g})."
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.before:
            return f"Add a column with what {self.column!r} was before, and make it part of the state (--state)"
        if self.used:
            return "Cut it more finely (--bins)"
        return (
            f"Make it part of the state by {say_bins(self.column, 'quantile:3')}, or by labels in place of quantile:3"
        )


def guided(batch: Batch) -> tuple[Guided, ...]:
    """What each column that the states cut or leave out, and each before, tells about the action, given the state."""
    used = () if batch.recipe is None else {name for axis in batch.recipe.axes for name in axis.columns}
    now = (
        Guided(name, name in used, *telling(batch.state, place, batch.action), len(batch))
        for name, place in batch.within.items()
        if len(batch) >= FEW and place.min() < place.max()
    )
    then = (_before(batch, name, places, name in used) for name, places in batch.history.items())
    return (*now, *(each for each in then if each is not None))


def _before(batch: Batch, name: str, ranks: Integers, used: bool) -> Guided | None:
    """What a column's value in the row before tells about the action, if it tells what follows too.

    What follows is the column's next value, and what this row and the two after it earn.
    """
    there = np.flatnonzero(ranks[:, 0] >= 0)
    if len(there) < FEW:
        return None
    state, action, (before, after) = batch.state[there], batch.action[there], ranks[there].T
    pair, goes_on = state * batch.n_actions + action, after >= 0
    acted = [rising(state, before, action == a) for a in np.unique(action)]
    follows = [rising(pair[goes_on], before[goes_on], after[goes_on])]
    if batch.reward is not None:
        follows.append(rising(pair, before, np.unique(_earned(batch)[there], return_inverse=True)[1]))
    p_value = max(min(1.0, len(found) * min(found)) for found in (acted, follows))
    share, _ = telling(state, above(before, state), action)
    return Guided(name, used, share, p_value, len(there), before=True)


def rising(group: Integers, one: Integers, other: Integers) -> float:
    """Chance that two numbers rise and fall together as much, within groups, if one is shuffled in each of them.

    Their covariances, added up over the groups, are held against mean and variance over all shuffles, which are exact.
    Where it rises in all groups, that tells more than `telling` can, which asks each for itself.
    """
    if not len(group):
        return 1.0
    member = np.unique(group, return_inverse=True)[1]
    n = np.bincount(member).astype(np.float64)
    x, y = (each - (np.bincount(member, each) / n)[member] for each in (one, other))
    together = float((x * y).sum())
    squares = [np.bincount(member, each**2) for each in (x, y)]
    variance = float((squares[0] * squares[1] / np.maximum(n - 1, 1)).sum())
    return erfc(abs(together) / sqrt(2 * variance)) if variance > 0 else 1.0


def _earned(batch: Batch) -> Floats:
    """What each row and the two after it in its episode earn."""
    assert batch.reward is not None
    order = episodes(batch)
    paid = batch.reward[order.row]
    total = paid.copy()
    for ahead in (1, 2):
        same = order.number[ahead:] == order.number[:-ahead]
        total[:-ahead] += np.where(same, paid[ahead:], 0.0)
    earned = np.empty_like(total)
    earned[order.row] = total
    return earned


def above(rank: Integers, state: Integers) -> Integers:
    """Which rows lie above the mean rank of their state; whole numbers add up to the same in any order."""
    rows, ranks = np.zeros((2, int(state.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(rows, state, 1)
    np.add.at(ranks, state, rank)
    return np.asarray(rank * rows[state] > ranks[state], dtype=np.int64)


def strongest(found: Sequence[Guided]) -> Guided | None:
    """The column that tells most, of those that surely tell something worth a word; None where there is none.

    What was before is asked after all else: of what cells leave out, some can be seen in the row before as well.
    """
    for before in (False, True):
        asked = [each for each in found if each.before == before]
        sure = [each for each in asked if each.p_value * len(asked) <= DOUBT and each.share >= TRIFLE]
        if sure:
            return max(sure, key=lambda each: each.share)
    return None


def telling(state: Integers, place: Integers, action: Integers) -> tuple[float, float]:
    """Share of what the state leaves open about the action that the place within it removes, and the p value.

    What is open is the chance that a guess by the shares of actions errs (Goodman and Kruskal's tau), less what chance
    would seem to remove.
    """
    spots, actions = int(place.max()) - int(place.min()) + 1, int(action.max()) + 1
    state = np.unique(state, return_inverse=True)[1]
    spot = state * spots + (place - place.min())
    both, one, other = (_count(keys) for keys in (spot * actions + action, spot, state * actions + action))
    of = [keys // size for (keys, _), size in zip((both, one, other), (spots * actions, spots, actions), strict=True)]
    n = np.bincount(state).astype(np.float64)

    def total(which: int, values: Floats) -> Floats:
        return np.asarray(np.bincount(of[which], values, minlength=len(n)), dtype=np.float64)

    c, p, q = (each[1] for each in (both, one, other))
    pairs = n * (n - 1)
    three, four = pairs * (n - 2), pairs * (n - 2) * (n - 3)
    (x, xx, rx), (y, yy, ry) = (_sums(partial(total, i), each) for i, each in ((1, p), (2, q)))
    expected = x * y / np.maximum(pairs, 1)
    square = 2 * xx * yy / np.maximum(pairs, 1) + 4 * (rx - xx) * (ry - yy) / np.maximum(three, 1)
    square += (x**2 + 2 * xx - 4 * rx) * (y**2 + 2 * yy - 4 * ry) / np.maximum(four, 1)
    at = p[np.searchsorted(one[0], both[0] // actions)]
    done = q[np.searchsorted(other[0], of[0] * actions + both[0] % actions)]
    kinds, acts = total(1, np.ones(len(p))), total(2, np.ones(len(q)))
    freedom = float(((kinds - 1) * (acts - 1)).sum())
    spread = float((n**2 * (square - expected**2)).clip(0).sum())
    if not freedom or spread <= ROUNDING * float((n**2 * square).sum()):  # however they are shuffled, it is the same
        return 0.0, 1.0
    beyond = float((n * (total(0, c * (c - 1) / (at * done)) - expected)).sum()) / np.sqrt(spread)
    guessed = total(2, q**2) / n
    told = total(0, c**2 / at) - guessed
    by_chance = (kinds - 1) * (n - guessed) / np.maximum(n - 1, 1)
    share = float((told - by_chance).sum() / (n - guessed).sum())
    return max(share, 0.0), chi_square_above(freedom, max(freedom + beyond * np.sqrt(2 * freedom), 0.0))


def chi_square_above(freedom: float, x: float) -> float:
    """Chance that χ² with so many degrees of freedom, a whole number, is above x.

    In closed form, the sum of e⁻ʸ·yⁱ / Γ(i + 1) with y = x / 2, over i = 0, 1, ... < freedom / 2 where that is a whole
    number, else over i = ½, 1½, ... and with erfc(√y). (SciPy has it too, and takes a tenth of a second to load.)
    """
    y = x / 2
    if y <= 0:
        return 1.0
    i = np.arange(freedom % 2 / 2, freedom / 2)
    first = -y + i[:1] * np.log(y) - lgamma(1 + freedom % 2 / 2)
    terms = np.exp(np.cumsum(np.append(first, np.log(y / i[1:]))))
    return min(1.0, float(terms.sum()) + (erfc(sqrt(y)) if freedom % 2 else 0.0))


def _sums(total: Callable[[Floats], Floats], size: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums over ordered pairs of rows in one group, each weighing 1 / size: of weights, squares, squared row sums."""
    return total(size - 1), total((size - 1) / size), total((size - 1) ** 2 / size)


def _count(keys: Integers) -> tuple[Integers, Floats]:
    found, often = np.unique(keys, return_counts=True)
    return found, often.astype(np.float64)
