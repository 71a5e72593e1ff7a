"""Evidence: let the data say how strong the prior on their transitions should be.

Each row is taken as drawn from a Dirichlet prior with mean q (the target) and magnitude M. Some rows share their M:
all of them, those of one action, of one state, or none. Under each such *structure* the marginal likelihood of the
counts, which has a closed form, weighs a grid of magnitudes; the weight M/(M + visits) is averaged over them; and the
structures are averaged by their evidence, with prior odds that favor the simplest. Nothing is tuned, sampled or split.

A pair without visits has weight 1. A pair that was followed by an outcome which the target excludes has weight 0: no
prior of that mean can explain it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Integers, Rng, floats, generator, whole
from certeq.base.errors import InputError, unknown
from certeq.data.counts import Counts
from certeq.model.kernel import Kernel, Mixture, Rows, entries, one_of
from certeq.model.nonzeros import NonZeros, one_table, places, table_of

STRUCTURES = ("all", "action", "state", "pair")
ODDS = 10.0  # of one magnitude for all pairs, against each of the other structures
# SPREAD and the center N / 2 were chosen by looking at losses: docs/decisions/0007-evidence-prior.md
CENTER = 0.5  # of log M before any data, as a share of N
SPREAD = 2.5  # standard deviation of log M around it
POINTS = 33  # of the grid, over eight units of log M to either side
ROUNDING = 1e-15  # a target gives an outcome no chance if it gives it less
BLOCK = 8192  # states of a large data set that are read together
MOST_NUMBERS = 8_000_000  # that the blocks of one data set may keep


@dataclass(frozen=True)
class Evidence:
    """What the counts say about prior magnitudes, and why."""

    weight: Floats  # (..., S, A): average of M/(M + visits)
    magnitude: Floats  # (..., S, A): geometric mean of M
    structures: tuple[str, ...]
    log_evidence: Floats  # (..., structures), prior odds included
    grid: Floats  # (G,)

    @property
    def probability(self) -> Floats:
        """Posterior probability of each structure, ``(..., structures)``."""
        return _shares(self.log_evidence)


def learn_magnitudes(
    counts: Counts,
    target: Kernel | None = None,
    *,
    judged: Floats | None = None,
    table: NonZeros | None = None,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, ArrayLike] | None = None,
    odds: float = ODDS,
    center: float = CENTER,
    spread: float = SPREAD,
    points: int = POINTS,
    threads: int | None = None,
) -> Evidence:
    """Weigh magnitudes and structures by their marginal likelihood.

    ``groups`` adds structures of the user's own: a name, and for each pair a group number, broadcastable to ``(S, A)``.
    ``target`` is the mean of the prior, uniform over the outcomes unless given; it may differ between data sets. Where
    the target was made from the very rows it is to explain, ``judged`` gives the chances to judge it by instead: one
    for each non-zero of ``table``, which is `table_of` the counts. ``odds`` are those of the
    first structure against each of the others; log M is normal around log(``center`` N) with deviation ``spread``.
    """
    from certeq.base import threads as pool
    from certeq.model import dirichlet

    S, A = counts.n_states, counts.n_actions
    names, wide, sizes = _structures(structures, groups or {}, S, A)
    grid, prior = _prior(counts.n_outcomes, odds, center, spread, points)
    table = table_of(counts) if table is None else table
    pointer, count, share = table.pointer, table.count, _shares_of(counts, table, target, judged)
    plain = target is None and judged is None
    D, P, G = int(np.prod(counts.batch)), S * A, len(grid)
    visits = counts.visits.reshape(D, P).astype(np.float64)
    blocks = _blocks(D, S, int(sizes.sum()) * G)
    likelihood, local = np.zeros((D * blocks, int(sizes.sum()), G)), np.zeros((D * blocks, 2))
    weight, logs = np.zeros((D, P, 2)), np.zeros((D, P, 2))
    pool.run(
        dirichlet.gather, D * blocks, blocks, A, pointer, count, share, plain, visits, wide, prior, grid,
        "state" in names, "pair" in names, likelihood, local, weight, logs,
        grain=64 if blocks == 1 else 1, threads=threads,
    )  # fmt: skip
    posterior = likelihood.reshape(D, blocks, int(sizes.sum()), G).sum(axis=1) + prior
    group_evidence = _normalize(posterior)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    by_structure = [group_evidence[:, i:j].sum(axis=1) for i, j in pairwise(ends)]
    within = dict(zip(("state", "pair"), local.reshape(D, blocks, 2).sum(axis=1).T, strict=True))
    reaching = iter(by_structure)
    evidence = np.stack([within[name] if name in within else next(reaching) for name in names], axis=1)
    evidence[:, 0] += np.log(odds)
    chance = _shares(evidence)
    column = {name: chance[:, k] for k, name in enumerate(names)}
    none = np.zeros(D)
    ordered = [column[name] for name in names if name not in within] + [column.get(name, none) for name in within]
    mean, middle = np.empty((D, P)), np.empty((D, P))
    pool.run(
        dirichlet.spread, D * P, visits, wide, posterior, np.stack(ordered, axis=1), grid, weight, logs, mean, middle,
        grain=4096, threads=threads,
    )  # fmt: skip
    mean[visits == 0] = 1.0
    mean.ravel()[_contradicted(pointer, share)] = 0.0
    shape = (*counts.batch, S, A)
    magnitude = np.exp(middle).reshape(shape)
    return Evidence(mean.reshape(shape), magnitude, names, evidence.reshape(*counts.batch, len(names)), grid)


def draw_magnitudes(
    counts: Counts,
    draws: int,
    *,
    rng: Rng = None,
    target: Kernel | None = None,
    judged: Floats | None = None,
    table: NonZeros | None = None,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, ArrayLike] | None = None,
    odds: float = ODDS,
    center: float = CENTER,
    spread: float = SPREAD,
    points: int = POINTS,
    data_set: int | None = None,
) -> Floats:
    """Draw prior magnitudes from their posterior, ``(draws, S, A)``: a structure first, then an M for each group.

    ``learn_magnitudes`` averages over what is drawn here: the mean of M/(M + visits) is its weight. ``judged`` are the
    chances that the target gives to each non-zero of ``table``, where it was made from the very rows. Of several data
    sets, ``data_set`` says which.
    """
    from certeq.model import dirichlet

    if data_set is not None:
        if table is not None:
            table, own = one_table(table, data_set)
            judged = None if judged is None else judged[own]
        counts, target = counts[data_set], None if target is None else one_of(target, data_set)
    if counts.batch:
        raise InputError("Magnitudes are drawn for one data set at a time.")
    S, A = counts.n_states, counts.n_actions
    random = generator(rng)
    grid, prior = _prior(counts.n_outcomes, odds, center, spread, points)
    listed = table_of(counts) if table is None else table
    pointer, count, share = listed.pointer, listed.count, _shares_of(counts, listed, target, judged)
    rows = np.empty((S * A, len(grid)))
    visits = counts.visits.ravel().astype(np.float64)
    dirichlet.row_likelihoods(0, S * A, pointer, count, share, target is None and judged is None, visits, grid, rows)
    chosen = _sorted(tuple(structures), S, A) if not groups else _sort(_groups(structures, groups, S, A))
    posteriors, evidence = [], np.zeros((1, len(chosen)))
    for k, (_, order, begin) in enumerate(chosen):
        posterior = np.add.reduceat(rows[order], begin, axis=0) + prior
        evidence[0, k] = _normalize(posterior).sum()
        posteriors.append(posterior)
    evidence[0, 0] += np.log(odds)
    which = random.choice(len(chosen), size=whole("draws", draws, 1), p=_shares(evidence)[0])
    out = np.empty((draws, S * A))
    for k, (group, _, _) in enumerate(chosen):
        places = np.flatnonzero(which == k)
        if not len(places):
            continue
        level = np.cumsum(posteriors[k], axis=1)
        level[:, -1] = 1.0
        for i in places:
            at = (random.random((len(level), 1)) > level).sum(axis=1)  # inverse of the distribution function
            out[i] = grid[at][group]
    return out.reshape(draws, S, A)


def _prior(N: int, odds: float, center: float, spread: float, points: int) -> tuple[Floats, Floats]:
    """Magnitudes ``(G,)`` and the log probability of each before any data."""
    for name, value in (("odds", odds), ("center", center), ("spread", spread)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive number; got {value}.")
    steps = np.linspace(-8, 8, whole("points", points, 2))
    prior = -0.5 * (steps / spread) ** 2
    return center * N * np.exp(steps), prior - np.log(np.exp(prior).sum())


def _blocks(D: int, S: int, groups: int) -> int:
    """In how many parts the states of one large data set are read: as many as pay, whatever the number of threads."""
    return 1 if D > 1 else max(1, min(S // BLOCK, MOST_NUMBERS // max(groups, 1)))


def _normalize(log_weights: Floats) -> Floats:
    """Turn logs of weights along the last axis into probabilities, in place; return the logs of their sums."""
    top = log_weights.max(axis=-1, keepdims=True)
    np.exp(np.subtract(log_weights, top, out=log_weights), out=log_weights)
    total = log_weights.sum(axis=-1, keepdims=True)
    log_weights /= total
    return np.asarray((top + np.log(total))[..., 0])


def _shares(evidence: Floats) -> Floats:
    """Probabilities of the structures from their log evidence."""
    shares = evidence.copy()
    _normalize(shares)
    return shares


def _contradicted(pointer: Integers, share: Floats) -> Integers:
    """Rows with an outcome that the target excludes."""
    return np.searchsorted(pointer, np.flatnonzero(share <= 0), side="right") - 1


def _groups(structures: Sequence[str], groups: Mapping[str, ArrayLike], S: int, A: int) -> dict[str, Integers]:
    """The group of each pair under each structure, ``(S, A)``."""
    state, action = np.indices((S, A), sparse=True)
    known = {"all": 0 * state, "action": action, "state": state, "pair": state * A + action}
    chosen = {}
    for name in structures:
        if name not in known:
            raise unknown("pooling structure", name, known)
        chosen[name] = np.broadcast_to(known[name], (S, A))
    for name, given in groups.items():
        if name in known:
            raise InputError(f"A structure is called {name!r} already; give your groups another name.")
        try:
            table = np.broadcast_to(floats(f"groups[{name!r}]", given), (S, A))
        except ValueError:
            raise InputError(f"groups[{name!r}] must give a group number for each of ({S}, {A}) pairs.") from None
        chosen[str(name)] = np.unique(table, return_inverse=True)[1].reshape(S, A)
    if not chosen:
        raise InputError("evidence needs at least one structure.")
    return chosen


@lru_cache(maxsize=8)  # data sets drawn again have the same
def _sorted(structures: tuple[str, ...], S: int, A: int) -> list[tuple[Integers, Integers, Integers]]:
    return _sort(_groups(structures, {}, S, A))


def _sort(groups: Mapping[str, Integers]) -> list[tuple[Integers, Integers, Integers]]:
    """Of each structure: the group of each pair, ``(S * A,)``; pairs in order of groups; where each group begins."""
    found = []
    for group in (table.ravel() for table in groups.values()):
        order = np.argsort(group, kind="stable")
        found.append((group, order, np.searchsorted(group[order], np.arange(int(group.max()) + 1))))
    return found


def _structures(
    structures: Sequence[str], groups: Mapping[str, ArrayLike], S: int, A: int
) -> tuple[tuple[str, ...], Integers, Integers]:
    """Names of the structures; for those that reach across states, the group of each pair, and how many there are.

    Their groups are numbered one structure after another, ``(K, S * A)``.
    """
    chosen = _groups(structures, groups, S, A)
    reaching = [table for name, table in chosen.items() if name not in ("state", "pair")]
    sizes = np.array([int(table.max()) + 1 for table in reaching], dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    wide = [table.ravel() + start for table, start in zip(reaching, first, strict=True)]
    return tuple(chosen), np.array(wide, dtype=np.int64).reshape(len(wide), S * A), sizes


def _shares_of(counts: Counts, table: NonZeros, target: Kernel | None, judged: Floats | None) -> Floats:
    """The target's probability of each non-zero; of the uniform target, one for all."""
    if judged is not None:
        share = judged
    elif target is None:
        return np.array([1 / counts.n_outcomes])
    else:
        share = chances(target, counts.batch, *places(table), table.outcome)
    return share if share.min(initial=1.0) > ROUNDING else np.where(share > ROUNDING, share, 0.0)


def chances(
    rows: Kernel, batch: tuple[int, ...], data_set: Integers, state: Integers, action: Integers, outcome: Integers
) -> Floats:
    """Probability of each outcome under the rows of its pair; outcome S is ending."""
    if isinstance(rows, Mixture):
        weight = _pick(rows.weight[..., None], batch, data_set, state, action, 0)
        data, pull = (chances(part, batch, data_set, state, action, outcome) for part in (rows.data, rows.target))
        return np.asarray((1 - weight) * data + weight * pull)
    ending = outcome == rows.shape[-1]
    inside = np.where(ending, 0, outcome)
    if isinstance(rows, Rows):
        found = _pick(rows.array, batch, data_set, state, action, inside)
    else:
        found = entries(rows, state, action, inside)
    if not ending.any():
        return found
    end = 1 - _pick(rows.mass()[..., None], batch, data_set, state, action, 0)
    return np.asarray(np.where(ending, end, found), dtype=np.float64)


def _pick(array: Floats, batch: tuple[int, ...], data_set: Integers, *place: Any) -> Floats:
    """Entries of ``(..., S or 1, A or 1, N or 1)``, where the leading axes are those of the data sets or none."""
    *lead, s_axis, a_axis, _ = array.shape
    state, action, outcome = place
    at = np.minimum(state, s_axis - 1), np.minimum(action, a_axis - 1), outcome
    if all(n == 1 for n in lead):
        return np.asarray(array.reshape(array.shape[-3:])[at])
    if tuple(lead) != batch:
        raise InputError(f"A target for each data set needs the leading axes {batch} of the counts; got {tuple(lead)}.")
    return np.asarray(array.reshape(-1, *array.shape[-3:])[(data_set, *at)])
