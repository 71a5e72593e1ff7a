"""Rewards: what a decision earned on average, estimated from the rows.

The plain estimate is the mean of the rows of a pair. With few rows that mean is noisy, and it can borrow (``pool``):

- ``state``, ``overall``: empirical Bayes toward the mean of the state, or of everything. With σ² the variance within
  pairs and τ² that between the pairs' true means, both estimated from the rows, a pair with c rows keeps the share
  τ² / (τ² + σ²/c) of its own mean.
- ``near``: from the state, its neighbors and everything, or from the same action in neighboring states, with the
  strengths that predict each row best from all others (`certeq.model.pooling`).
- ``auto``: near where that predicts better than no borrowing; the other two where they predict clearly better still.

A pair without rows gets its state's mean, and the overall mean in a state where nothing was tried; with ``overall`` it
gets the overall mean in every state, and with ``near`` what it would borrow.

A reward belongs to its outcome. Where rows ended, those that went on and those that ended are estimated apart: what a
pair earns then follows from its row, as far as that has the pair go on or end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.errors import unknown
from certeq.data.batch import Batch
from certeq.data.positions import Positions
from certeq.data.sums import ENDED, WENT_ON, Sums, add_up
from certeq.model import pooling
from certeq.model.pooling import Pooled

POOLS = ("none", "state", "overall", "near", "auto")
DOUBT = 0.9  # what predicts the rows better is followed if it leaves less than this of the error: see `_near`
CLEARLY = {"near": pooling.SAME, "state": DOUBT, "overall": DOUBT}  # what auto asks in turn, and the error it may leave


@dataclass(frozen=True)
class Rewards:
    """Mean reward of each pair, with what is needed to say how sure it is."""

    mean: Floats  # (S, A), after pooling
    raw: Floats  # (S, A), mean of the pair's own rows; NaN without rows
    visits: Integers  # (S, A)
    within: float  # σ²: variance of one row around its pair's mean
    between: float  # τ²: variance of the pairs' true means around what they are pooled toward; infinite if not asked
    pool: str  # what was done: none, state, overall or near
    span: tuple[float, float]  # least and greatest
    arrival: Floats | None = None  # (S + 1,): mean reward by next state, the last entry for an ending
    kinds: tuple[Rewards, Rewards] | None = None  # the same of rows that went on, and of those that ended, if any did


class _Paid(NamedTuple):
    """Rows of one kind, or of both."""

    rows: Integers  # (..., S, A)
    total: Floats  # (..., S, A)
    spread: Floats  # (...): squared distances from the means of the pairs
    span: tuple[float, float]
    ended: bool = False  # whether these are the rows that ended


def estimate(
    rows: Batch | Sums, *, pool: str = "none", by_next_state: bool = False, positions: Positions | None = None
) -> Rewards:
    """Estimate rewards from the rows of a batch (one data set), or from what they add up to.

    ``positions`` tell where the states lie; those of a batch are its own.
    """
    if pool not in POOLS:
        raise unknown("way of pooling rewards", pool, POOLS)
    sums = rows if isinstance(rows, Sums) else add_up(rows)
    where = rows.positions if isinstance(rows, Batch) and positions is None else positions
    kinds = None
    if sums.ends:
        went_on, ended = (_told(_kind(sums, kind), sums.size, pool, where) for kind in (WENT_ON, ENDED))
        kinds = went_on, ended
    arrival = arrival_means(sums) if by_next_state else None
    return _told(_all(sums), sums.size, pool, where, arrival, kinds)


def means(sums: Sums, pool: str = "none", positions: Positions | None = None) -> Floats:
    """Mean reward of each pair, whatever the outcome, ``(..., S, A)``, after pooling."""
    return sums.size * _pooled(_all(sums), pool, positions)[0].mean


def outcome_means(sums: Sums, pool: str = "none", positions: Positions | None = None) -> tuple[Floats, Floats]:
    """What each pair earns when it goes on, and when the episode ends, ``(..., S, A)`` each, after pooling.

    Where nothing went on, going on pays nothing; where nothing ended, an ending pays what going on does.
    """
    went_on, ended = (_kind(sums, kind) for kind in (WENT_ON, ENDED))
    going, ending = (sums.size * _pooled(kind, pool, positions)[0].mean for kind in (went_on, ended))
    there = ended.rows.any(axis=(-2, -1), keepdims=True)
    return going, np.where(there, ending, going)


def arrival_means(sums: Sums) -> Floats:
    """Mean reward by next state, ``(..., S + 1)``; a state never arrived in gets the overall mean."""
    count, total = sums.arrivals, sums.arrived
    overall = total.sum(axis=-1, keepdims=True) / np.maximum(count.sum(axis=-1, keepdims=True), 1)
    return sums.size * np.where(count > 0, total / np.maximum(count, 1), overall)


def _all(sums: Sums) -> _Paid:
    return _Paid(sums.visits, sums.total, sums.scatter, (float(sums.span[:, 0].min()), float(sums.span[:, 1].max())))


def _kind(sums: Sums, kind: int) -> _Paid:
    rows, total = sums.number[..., kind, :, :], sums.earned[..., kind, :, :]
    low, high = sums.span[kind].tolist()
    return _Paid(rows, total, sums.spread[..., kind], (low, high), kind == ENDED)


def _told(
    earned: _Paid,
    size: float,
    pool: str,
    positions: Positions | None,
    arrival: Floats | None = None,
    kinds: tuple[Rewards, Rewards] | None = None,
) -> Rewards:
    own, between, square = _own(earned), np.inf, min(size, 1e150) ** 2
    if pool in ("state", "overall"):
        between = square * float(_between(earned, by_state=pool == "state"))
    found, done = _pooled(earned, pool, positions)
    noise = square * float(_noise(earned))
    return Rewards(size * found.mean, size * own, earned.rows, noise, between, done, earned.span, arrival, kinds)


# ---- ways of pooling ----


def _pooled(earned: _Paid, pool: str, positions: Positions | None) -> tuple[Pooled, str]:
    """Pool; and say how, of one data set."""
    if pool != "auto" or not earned.span[0] < earned.span[1]:  # where all are the same, there is nothing to choose
        name = "none" if pool == "auto" else pool
        return _by_name(name, earned, positions, compared=False), name
    found, chosen = _by_name("none", earned, positions), "none"
    for name, share in CLEARLY.items():
        other = _by_name(name, earned, positions)
        chosen = name if (other.error < found.error * share).all() else chosen
        found = pooling.better_of(found, other, share)
    return found, chosen


def _by_name(pool: str, earned: _Paid, positions: Positions | None, compared: bool = True) -> Pooled:
    """Pool; how well that predicts is only worked out where ways are ``compared``."""
    rows, total = earned.rows, earned.total
    if pool == "near":
        return _near(earned, positions, _noise(earned))
    noise = _noise(earned) if compared else None
    if pool == "overall":
        chain = [pooling.pair(rows, total), pooling.everything(rows, total)]
        return pooling.pool(chain, [_strength(earned, by_state=False)], noise)
    chain = [pooling.pair(rows, total), pooling.state(rows, total), pooling.everything(rows, total)]
    return pooling.pool(chain, [_strength(earned, by_state=True) if pool == "state" else 0.0, 0.0], noise)


def _near(earned: _Paid, positions: Positions | None, noise: Floats) -> Pooled:
    """Pool over states, or over the same action elsewhere where that predicts clearly better.

    Clearly, because rows are of actions that were chosen for their state. How they are predicted says little about the
    actions that were not, which the action's rows elsewhere, in states where it was chosen, would flatter. What endings
    pay is pooled over the state and over everything alone: neighbors helped their estimates and not the advice.
    """
    rows, total = earned.rows, earned.total
    center = total.sum(axis=(-2, -1), keepdims=True) / np.maximum(rows.sum(axis=(-2, -1), keepdims=True), 1)
    aside = total - center * rows  # amounts far from zero then lose no digits
    found = pooling.best(pooling.through_states(rows, aside, None if earned.ended else positions), noise)
    if not earned.ended:
        over_actions = pooling.best(pooling.through_actions(rows, aside, positions), noise)
        found = pooling.better_of(found, over_actions, DOUBT)
    return found._replace(mean=found.mean + center)


def _own(earned: _Paid) -> Floats:
    """Mean of each pair's own rows, ``(..., S, A)``; NaN without rows."""
    return np.where(earned.rows > 0, earned.total / np.maximum(earned.rows, 1), np.nan)


def _noise(earned: _Paid) -> Floats:
    """σ²: variance of one row around its pair's mean, ``(...)``; 0 where no pair has two rows."""
    spare = np.maximum(earned.rows - 1, 0).sum(axis=(-2, -1))
    return np.asarray(earned.spread / np.maximum(spare, 1))


def _strength(earned: _Paid, *, by_state: bool) -> Floats:
    """σ² / τ², in rows, ``(..., 1, 1)``: 0 without noise, when there is nothing to average away."""
    noise, between = _noise(earned), _between(earned, by_state=by_state)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(noise > 0, noise / between, 0.0)[..., None, None]


def _center(earned: _Paid, *, by_state: bool) -> Floats:
    """What pairs are pulled toward, ``(..., S, A)``: the mean of their state, or of all rows."""
    rows = np.maximum(earned.rows.sum(axis=(-2, -1), keepdims=True), 1)
    overall = earned.total.sum(axis=(-2, -1), keepdims=True) / rows
    if not by_state:
        return np.broadcast_to(overall, earned.total.shape)
    tried = earned.rows.sum(axis=-1, keepdims=True)
    state = earned.total.sum(axis=-1, keepdims=True) / np.maximum(tried, 1)
    return np.broadcast_to(np.where(tried > 0, state, overall), earned.total.shape)


def _between(earned: _Paid, *, by_state: bool) -> Floats:
    """τ² by the method of moments, ``(...)``: what the spread of the means has beyond their noise, never below 0."""
    weight = earned.rows.astype(np.float64)
    scatter = np.nansum(weight * (_own(earned) - _center(earned, by_state=by_state)) ** 2, axis=(-2, -1))
    groups = weight if by_state else weight.reshape(*weight.shape[:-2], 1, -1)
    total = groups.sum(axis=-1)
    free = np.maximum((groups > 0).sum(axis=-1) - 1, 0).sum(axis=-1)
    size = (total - (groups**2).sum(axis=-1) / np.maximum(total, 1)).sum(axis=-1)
    excess = (scatter - _noise(earned) * free) / np.where(size > 0, size, 1)
    return np.asarray(np.where(size > 0, np.maximum(excess, 0), 0.0))
