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

from certeq.arrays import Floats, Integers
from certeq.arrays import within as in_range
from certeq.batch import Batch
from certeq.errors import InputError, unknown

POOLS = ("none", "state", "overall")
LARGEST = 1e300  # rewards beyond this would overflow when they add up


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


def estimate(batch: Batch, *, pool: str = "none", by_next_state: bool = False) -> Rewards:
    """Estimate rewards from the rows of a batch (one data set)."""
    if pool not in POOLS:
        raise unknown("way of pooling rewards", pool, POOLS)
    if batch.reward is None:
        raise InputError("The rows have no rewards. Name the reward column, or give a known reward table.")
    if batch.data_set is not None:
        raise InputError("Rewards are estimated for one data set at a time; this batch holds several.")
    S, A = batch.n_states, batch.n_actions
    pair = batch.state * A + batch.action
    reward = in_range("reward", batch.reward, -LARGEST, LARGEST)
    size = float(np.abs(reward).max(initial=0)) or 1.0  # all is done in units of the largest, whose square may overflow
    units = reward / size
    visits, total = _sums(pair, units, S * A)
    raw = np.where(visits > 0, total / np.maximum(visits, 1), np.nan)
    spare = int(np.maximum(visits - 1, 0).sum())
    scatter = float(((units - raw[pair]) ** 2).sum())
    noise = scatter / spare if spare else 0.0
    own, seen = raw.reshape(S, A), visits.reshape(S, A)
    center = _center(own, seen, by_state=pool != "overall")
    keep, between = np.ones((S, A)), np.inf
    if pool != "none":
        between = _between(own, seen, center, noise, by_state=pool == "state")
        if noise > 0:  # without noise there is nothing to average away
            keep = between / (between + noise / np.maximum(seen, 1))
    mean = size * np.where(seen > 0, keep * np.nan_to_num(own) + (1 - keep) * center, center)
    arrival = size * _by_arrival(batch, units) if by_next_state else None
    square = min(size, 1e150) ** 2
    spread = between if np.isinf(between) else square * between
    return Rewards(mean, size * own, seen, square * noise, spread, pool, arrival)


def _sums(group: Integers, values: Floats, size: int) -> tuple[Integers, Floats]:
    """Count and sum of each group."""
    return np.bincount(group, minlength=size), np.bincount(group, values, minlength=size).astype(np.float64)


def _center(own: Floats, seen: Integers, *, by_state: bool) -> Floats:
    """What pairs are pulled toward, ``(S, A)``: the mean of their state, or of all rows."""
    rows = max(int(seen.sum()), 1)
    overall = float(np.nansum(own * seen)) / rows
    if not by_state:
        return np.full(own.shape, overall)
    tried = seen.sum(axis=1, keepdims=True)
    state = np.nansum(own * seen, axis=1, keepdims=True) / np.maximum(tried, 1)
    return np.broadcast_to(np.where(tried > 0, state, overall), own.shape)


def _between(own: Floats, seen: Integers, center: Floats, noise: float, *, by_state: bool) -> float:
    """τ² by the method of moments: what the spread of the pair means has beyond their noise, never below 0."""
    weight = seen.astype(np.float64)
    scatter = float(np.nansum(weight * (own - center) ** 2))
    groups = weight if by_state else weight.reshape(1, -1)
    total = groups.sum(axis=1)
    free = float(np.maximum((groups > 0).sum(axis=1) - 1, 0).sum())
    size = float((total - (groups**2).sum(axis=1) / np.maximum(total, 1)).sum())
    return max(0.0, (scatter - noise * free) / size) if size > 0 else 0.0


def _by_arrival(batch: Batch, reward: Floats) -> Floats:
    """Mean reward by next state, ``(S + 1,)``; a state never arrived in gets the overall mean."""
    arrived = np.where(batch.ended, batch.n_states, batch.next_state)
    count, total = _sums(arrived, reward, batch.n_states + 1)
    overall = total.sum() / max(int(count.sum()), 1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), overall))
