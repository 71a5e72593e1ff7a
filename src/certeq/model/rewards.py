"""Rewards: what a decision earned on average, estimated from the rows.

The plain estimate is the mean of the rows of a pair. With few rows that mean is noisy, and empirical Bayes can pull
it toward the mean of the state (``pool="state"``) or of everything (``pool="overall"``): with σ² the variance within
pairs and τ² the variance between the pairs' true means, both estimated from the rows, a pair with c rows keeps the
share τ² / (τ² + σ²/c) of its own mean. A pair without rows gets its state's mean, and the overall mean in a state
where nothing was tried; with ``pool="overall"`` it gets the overall mean in every state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.errors import unknown
from certeq.data.batch import Batch
from certeq.data.sums import Sums, add_up

POOLS = ("none", "state", "overall")


@dataclass(frozen=True)
class Rewards:
    """Mean reward of each pair, with what is needed to say how sure it is."""

    mean: Floats  # (S, A), after pooling
    raw: Floats  # (S, A), mean of the pair's own rows; NaN without rows
    visits: Integers  # (S, A)
    within: float  # σ²: variance of one row around its pair's mean
    between: float  # τ²: variance of the pairs' true means around what they are pooled toward
    pool: str
    arrival: Floats | None = None  # (S + 1,): mean reward by next state, the last entry for an ending


def estimate(rows: Batch | Sums, *, pool: str = "none", by_next_state: bool = False) -> Rewards:
    """Estimate rewards from the rows of a batch (one data set), or from what they add up to."""
    if pool not in POOLS:
        raise unknown("way of pooling rewards", pool, POOLS)
    sums = rows if isinstance(rows, Sums) else add_up(rows)
    own, noise, between = _own(sums), float(_noise(sums)), np.inf
    if pool != "none":
        between = float(_between(sums, own, by_state=pool == "state"))
    arrival = arrival_means(sums) if by_next_state else None
    square = min(sums.size, 1e150) ** 2
    spread = between if np.isinf(between) else square * between
    return Rewards(means(sums, pool), sums.size * own, sums.visits, square * noise, spread, pool, arrival)


def means(sums: Sums, pool: str = "none") -> Floats:
    """Mean reward of each pair, ``(..., S, A)``, after pooling; a pair without rows gets what it is pooled toward."""
    own, seen = _own(sums), sums.visits
    center = _center(sums, by_state=pool != "overall")
    keep = np.ones(seen.shape)
    if pool != "none":
        noise = np.broadcast_to(_noise(sums)[..., None, None], seen.shape)
        between = _between(sums, own, by_state=pool == "state")[..., None, None]
        noisy = noise > 0  # without noise there is nothing to average away
        keep = np.where(noisy, between / np.where(noisy, between + noise / np.maximum(seen, 1), 1), 1.0)
    return sums.size * np.where(seen > 0, keep * np.nan_to_num(own) + (1 - keep) * center, center)


def arrival_means(sums: Sums) -> Floats:
    """Mean reward by next state, ``(..., S + 1)``; a state never arrived in gets the overall mean."""
    count, total = sums.arrivals, sums.arrived
    overall = total.sum(axis=-1, keepdims=True) / np.maximum(count.sum(axis=-1, keepdims=True), 1)
    return sums.size * np.where(count > 0, total / np.maximum(count, 1), overall)


def _own(sums: Sums) -> Floats:
    """Mean of each pair's own rows, ``(..., S, A)``; NaN without rows."""
    return np.where(sums.visits > 0, sums.total / np.maximum(sums.visits, 1), np.nan)


def _noise(sums: Sums) -> Floats:
    """σ²: variance of one row around its pair's mean, ``(...)``; 0 where no pair has two rows."""
    spare = np.maximum(sums.visits - 1, 0).sum(axis=(-2, -1))
    return np.asarray(sums.scatter / np.maximum(spare, 1))


def _center(sums: Sums, *, by_state: bool) -> Floats:
    """What pairs are pulled toward, ``(..., S, A)``: the mean of their state, or of all rows."""
    rows = np.maximum(sums.visits.sum(axis=(-2, -1), keepdims=True), 1)
    overall = sums.total.sum(axis=(-2, -1), keepdims=True) / rows
    if not by_state:
        return np.broadcast_to(overall, sums.total.shape)
    tried = sums.visits.sum(axis=-1, keepdims=True)
    state = sums.total.sum(axis=-1, keepdims=True) / np.maximum(tried, 1)
    return np.broadcast_to(np.where(tried > 0, state, overall), sums.total.shape)


def _between(sums: Sums, own: Floats, *, by_state: bool) -> Floats:
    """τ² by the method of moments, ``(...)``: what the spread of the means has beyond their noise, never below 0."""
    weight = sums.visits.astype(np.float64)
    scatter = np.nansum(weight * (own - _center(sums, by_state=by_state)) ** 2, axis=(-2, -1))
    groups = weight if by_state else weight.reshape(*weight.shape[:-2], 1, -1)
    total = groups.sum(axis=-1)
    free = np.maximum((groups > 0).sum(axis=-1) - 1, 0).sum(axis=-1)
    size = (total - (groups**2).sum(axis=-1) / np.maximum(total, 1)).sum(axis=-1)
    excess = (scatter - _noise(sums) * free) / np.where(size > 0, size, 1)
    return np.asarray(np.where(size > 0, np.maximum(excess, 0), 0.0))
