"""Pooling: a pair with few rows borrows from wider and wider groups that it belongs to.

A *chain* of groups leads from the pair to all rows: the pair, its state, the states up to one and two steps away, and
everything; or the pair, the same action one and two steps away, the action anywhere, and everything. Group l has n_l
rows that add up to t_l. From the widest to the narrowest, each group's mean is drawn toward that of the next by a
strength k_l, a number of rows:

    m_l = (t_l + k_l·m_{l+1}) / (n_l + k_l)

A group without rows takes the next one's mean. With one row r of the pair left out, every m_l is u_l - v_l·r, so the
squared errors of predicting each row from all others add up, over a pair with mean r̄ and scatter Σ(r - r̄)², to

    (1 + v)²·Σ(r - r̄)² + n·((1 + v)·r̄ - u)²

which needs no rows. Only what all pairs scatter is known, so (n - 1)·σ² stands for the scatter of a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.data.positions import Positions

STRENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
MANY = 200_000  # pairs, beyond which strengths are chosen by some of them
SAME = 1 - 1e-9  # of an error: what differs by rounding alone is no better, whatever the order of the rows
ROOMY = 300_000  # states, up to which neighbors two steps away are looked up


class Group(NamedTuple):
    """One group for each pair that it is a group of; the axes of states and actions may be 1."""

    rows: Any  # (..., S or 1, A or 1)
    total: Any


class Pooled(NamedTuple):
    """What pairs are expected to earn, and how well rows are predicted that way."""

    mean: Floats  # (..., S, A)
    error: Floats  # (...): squared errors of all rows, each predicted from the others, added up


def pair(rows: Integers, total: Floats) -> Group:
    """The pair itself."""
    return Group(rows, total)


def state(rows: Integers, total: Floats) -> Group:
    """The pairs of the same state."""
    return Group(rows.sum(axis=-1, keepdims=True), total.sum(axis=-1, keepdims=True))


def everything(rows: Integers, total: Floats) -> Group:
    """All pairs."""
    return Group(rows.sum(axis=(-2, -1), keepdims=True), total.sum(axis=(-2, -1), keepdims=True))


def through_states(rows: Integers, total: Floats, positions: Positions | None) -> list[Group]:
    """The chain from the pair over its state and the states around it, whatever the action."""
    own = state(rows, total)
    return [pair(rows, total), own, *_around(own, positions), everything(rows, total)]


def through_actions(rows: Integers, total: Floats, positions: Positions | None) -> list[Group]:
    """The chain from the pair over the same action in the states around it, and anywhere."""
    own = pair(rows, total)
    action = Group(rows.sum(axis=-2, keepdims=True), total.sum(axis=-2, keepdims=True))
    return [own, *_around(own, positions), action, everything(rows, total)]


def blend(chain: Sequence[Group], strengths: Sequence[Any]) -> Floats:
    """The mean m_0 of each pair, ``(..., S, A)``; strengths of all groups but the widest broadcast with them."""
    mean = chain[-1].total / np.maximum(chain[-1].rows, 1)
    for group, strength in zip(chain[-2::-1], list(strengths)[::-1], strict=True):
        size = group.rows + strength
        alone = size == 0
        drawn = group.total + np.where(np.isinf(strength), 0.0, strength) * mean
        mean = np.where(alone | np.isinf(strength), mean, drawn / np.where(alone, 1, size))
    return np.broadcast_to(mean, np.broadcast_shapes(*(np.shape(group.rows) for group in chain)))


def left_out(chain: Sequence[Group], strengths: Sequence[Any], noise: Floats) -> Floats:
    """Squared errors of all rows, each predicted from the others, added up, ``(...)``; ``noise`` is σ²."""
    return _error(chain[0], *_without_one(chain, strengths), noise)


def _without_one(chain: Sequence[Group], strengths: Sequence[Any]) -> tuple[Floats, Floats]:
    """u and v of the narrowest group: with a row r of the pair left out, its mean is u - v·r."""
    last = np.maximum(chain[-1].rows - 1, 1)
    u, v = chain[-1].total / last, 1 / last
    for group, strength in zip(chain[-2::-1], list(strengths)[::-1], strict=True):
        u, v = _toward(group, strength, u, v)
    return u, v


def _toward(group: Group, strength: Any, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """u and v of a group that is drawn toward one with these."""
    alone = (group.rows <= 1) | np.isinf(strength)  # without the row nothing is left: exactly, however small k is
    finite = np.where(np.isinf(strength), 0.0, strength)
    safe = np.where(alone, 1.0, np.maximum(group.rows - 1, 0) + strength)
    return np.where(alone, u, (group.total + finite * u) / safe), np.where(alone, v, (1 + finite * v) / safe)


def _error(own: Group, u: Floats, v: Floats, noise: Floats) -> Floats:
    """Squared errors of all rows of the pairs, given their u and v, added up, ``(...)``."""
    mean, spare = own.total / np.maximum(own.rows, 1), np.maximum(own.rows - 1, 0) * noise[..., None, None]
    error = (1 + v) ** 2 * spare + own.rows * ((1 + v) * mean - u) ** 2
    return np.asarray(np.where(own.rows > 0, error, 0.0).sum(axis=(-2, -1)))


def pool(chain: Sequence[Group], strengths: Sequence[Any], noise: Floats | None) -> Pooled:
    """Pool along a chain with given strengths; where nobody asks how well that predicts, there is no noise."""
    error = np.asarray(np.nan) if noise is None else left_out(chain, strengths, noise)
    return Pooled(blend(chain, strengths), error)


def best(chain: Sequence[Group], noise: Floats) -> Pooled:
    """Pool along a chain with the strengths that predict best: one for the pair, and one for all wider groups.

    The two are sought in turn, each of ``STRENGTHS`` given the other, twice; where pairs are many, by what predicts
    those of some states. Without noise there is nothing to average away, and a pair keeps its own mean.
    """
    some, strengths = _some(chain), np.array(STRENGTHS)
    each = strengths.reshape(-1, *[1] * (noise.ndim + 2))
    u, v = _without_one(some[1:], [each] * (len(chain) - 2))  # the same for every strength of the pair
    full = np.broadcast_shapes(each.shape, u.shape, some[0].rows.shape)
    u, v = (np.ascontiguousarray(np.broadcast_to(one, full)) for one in (u, v))  # or all loops are over actions
    inner = np.where(noise > 0, STRENGTHS.index(1.0), 0)
    for _ in range(2):
        outer = _least(_errors(some[0], u, v, noise, strengths[inner][..., None, None]))
        if noise.any():
            own_u, own_v = (np.take_along_axis(one, outer[None, ..., None, None], axis=0)[0] for one in (u, v))
            inner = np.where(noise > 0, _least(_errors(some[0], own_u, own_v, noise, each)), 0)
    first, rest = (strengths[which][..., None, None] for which in (inner, outer))
    return pool(chain, [first, *[rest] * (len(chain) - 2)], noise)


def _errors(own: Group, u: Floats, v: Floats, noise: Floats, strength: Floats) -> Floats:
    """What `_toward` and `_error` give for strengths of the pair, with what is divided by divided once."""
    rows, total = own
    alone = rows <= 1
    part = np.where(alone, 0.0, 1 / np.where(alone, 1.0, rows - 1 + strength))
    kept = np.where(alone, 1.0, strength * part)
    near = kept * v
    near += 1 + part  # 1 + v of the pair
    apart = near * (total / np.maximum(rows, 1))
    apart -= kept * u
    apart -= total * part
    spare = np.maximum(rows - 1, 0) * noise[..., None, None]
    found = np.einsum("...sa,...sa,...sa->...", near, near, spare)
    return np.asarray(found + np.einsum("...sa,...sa,...sa->...", apart, apart, rows))


def _least(error: Floats) -> Integers:
    """Which of the errors along the first axis is the least; a later one only if it is less beyond rounding."""
    which, least = np.zeros(error.shape[1:], dtype=np.int64), error[0]
    for i in range(1, len(error)):
        better = error[i] < least * SAME
        which, least = np.where(better, i, which), np.where(better, error[i], least)
    return which


def _some(chain: Sequence[Group]) -> Sequence[Group]:
    """The chains of evenly spaced states, where pairs are too many to try all strengths on."""
    step = -(-chain[0].rows.size // MANY)
    return [Group(*(part if part.shape[-2] == 1 else part[..., ::step, :] for part in group)) for group in chain]


def better_of(one: Pooled, other: Pooled, share: float) -> Pooled:
    """The second where it leaves less than a share of the first's error, data set by data set, and else the first."""
    gains = other.error < one.error * share
    return Pooled(np.where(gains[..., None, None], other.mean, one.mean), np.where(gains, other.error, one.error))


def _around(own: Group, positions: Positions | None) -> list[Group]:
    """The states up to one step away and up to two; none of them where the states have no places."""
    if positions is None or not positions.placed.any():
        return []
    steps = (1, 2) if positions.n_states <= ROOMY else (1,)
    return [Group(*(_gather(neighborhood(positions, step), part) for part in own)) for step in steps]


def _gather(around: Integers, table: Any) -> Any:
    """Sums over the states around each, ``(..., S, A or 1)``."""
    states = np.moveaxis(table, -2, 0)
    flat = states.reshape(len(states), -1)
    flat = np.append(flat, np.zeros_like(flat[:1]), axis=0)  # whom fewer are around adds nothing
    found = flat.take(around[0], axis=0)
    more = np.empty_like(found)
    for each in around[1:]:
        found += flat.take(each, axis=0, out=more, mode="clip")  # which takes no copies; nothing is clipped
    return np.moveaxis(found.reshape(states.shape), 0, -2)


@lru_cache(maxsize=4)
def neighborhood(positions: Positions, steps: int) -> Integers:
    """The states up to one or two steps away from each, itself among them, in order: ``(k, S)``, S for no more."""
    from certeq.model.lattice import RING, lattice  # which loads Numba: rules need the names of ways to pool alone

    S, grid = positions.n_states, lattice(positions, positions.n_states)
    at, size = np.flatnonzero(positions.placed), positions.sizes
    key = positions.places[at] @ grid.stride
    order = np.argsort(key)
    known, states = key[order], at[order]
    offsets = grid.offsets if steps > 1 else grid.offsets[: grid.near]
    around = np.full((len(offsets) + 1, S), S)
    around[-1] = np.arange(S)
    for row, offset in zip(around, offsets, strict=False):
        there = positions.places[at] + offset
        there = np.where(grid.axis == RING, there % size, there)
        inside = ((there >= 0) & (there < size)).all(axis=1)
        wanted = there[inside] @ grid.stride
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        taken = known[place] == wanted
        row[at[inside][taken]] = states[place][taken]
    around.sort(axis=0)
    return around
