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

import numpy as np

from certeq.arrays import ArrayLike, Floats, Integers, floats, whole
from certeq.counts import Counts
from certeq.errors import InputError, unknown
from certeq.kernel import Rows, SparseRows

STRUCTURES = ("all", "action", "state", "pair")
ODDS = 10.0  # of one magnitude for all pairs, against each of the other structures
# SPREAD and the center N / 2 were chosen by looking at losses: docs/decisions/0007-evidence-prior.md
SPREAD = 2.5  # standard deviation of log M around log(N / 2) before any data
POINTS = 33  # of the grid, over eight units of log M to either side


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
        relative = np.exp(self.log_evidence - self.log_evidence.max(axis=-1, keepdims=True))
        return np.asarray(relative / relative.sum(axis=-1, keepdims=True))


def learn_magnitudes(
    counts: Counts,
    target: Rows | SparseRows | None = None,
    *,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, ArrayLike] | None = None,
    odds: float = ODDS,
    spread: float = SPREAD,
    points: int = POINTS,
    threads: int | None = None,
) -> Evidence:
    """Weigh magnitudes and structures by their marginal likelihood.

    ``groups`` adds structures of the user's own: a name, and for each pair a group number, broadcastable to ``(S, A)``.
    ``target`` is the mean of the prior, uniform over the outcomes unless given. ``odds`` are those of the first
    structure against each of the others.
    """
    from certeq.fast import threads as pool
    from certeq.fast.dirichlet import weigh

    S, A, N = counts.n_states, counts.n_actions, counts.n_outcomes
    names, labels = _structures(structures, groups or {}, S, A)
    if not (np.isfinite(odds) and odds > 0 and np.isfinite(spread) and spread > 0):
        raise InputError(f"odds and spread must be positive numbers; got {odds} and {spread}.")
    steps = np.linspace(-8, 8, whole("points", points, 2))
    grid = N / 2 * np.exp(steps)
    prior = -0.5 * (steps / spread) ** 2
    prior -= np.log(np.exp(prior).sum())
    pointer, count, share = _nonzeros(counts, target)
    D = int(np.prod(counts.batch))
    visits = counts.visits.reshape(D, S * A).astype(np.float64)
    weight, center = np.empty((D, S * A)), np.empty((D, S * A))
    evidence = np.empty((D, len(names)))
    log_odds = np.where(np.arange(len(names)) == 0, np.log(odds), 0.0)
    sizes = labels.max(axis=1) + 1
    pool.run(
        weigh, D, pointer, count, share, target is None, visits, labels, sizes, prior, log_odds, grid,
        weight, center, evidence, grain=64, threads=threads,
    )  # fmt: skip
    shape = (*counts.batch, S, A)
    magnitude = np.exp(center).reshape(shape)
    return Evidence(weight.reshape(shape), magnitude, names, evidence.reshape(*counts.batch, len(names)), grid)


def _structures(
    structures: Sequence[str], groups: Mapping[str, ArrayLike], S: int, A: int
) -> tuple[tuple[str, ...], Integers]:
    """Names of the structures, and the group of each pair under each, ``(K, S * A)``."""
    state, action = np.indices((S, A))
    known = {
        "all": np.zeros((S, A), dtype=np.int64),
        "action": action,
        "state": state,
        "pair": state * A + action,
    }
    chosen = {}
    for name in structures:
        if name not in known:
            raise unknown("pooling structure", name, known)
        chosen[name] = known[name]
    for name, given in groups.items():
        try:
            table = np.broadcast_to(floats(f"groups[{name!r}]", given), (S, A))
        except ValueError:
            raise InputError(f"groups[{name!r}] must give a group number for each of ({S}, {A}) pairs.") from None
        chosen[str(name)] = np.unique(table, return_inverse=True)[1].reshape(S, A)
    if not chosen:
        raise InputError("evidence needs at least one structure.")
    return tuple(chosen), np.stack([table.ravel() for table in chosen.values()]).astype(np.int64)


def _nonzeros(counts: Counts, target: Rows | SparseRows | None) -> tuple[Integers, Floats, Floats]:
    """All rows one after another: where each begins, its non-zero counts, and the target's share of each outcome."""
    S, A = counts.n_states, counts.n_actions
    pairs = int(np.prod(counts.batch)) * S * A
    if counts.sparse:
        line = np.repeat(np.arange(pairs), np.diff(counts.transitions.indptr))
        outcome, count = counts.transitions.indices, counts.transitions.data
    else:
        flat = counts.transitions.reshape(pairs, S)
        line, outcome = np.nonzero(flat)
        count = flat[line, outcome]
    if counts.ended is not None:
        over = np.flatnonzero(counts.ended.ravel())
        line = np.concatenate([line, over])
        outcome = np.concatenate([outcome, np.full(len(over), S)])
        count = np.concatenate([count, counts.ended.ravel()[over]])
        order = np.argsort(line, kind="stable")
        line, outcome, count = line[order], outcome[order], count[order]
    pointer = np.concatenate([[0], np.cumsum(np.bincount(line, minlength=pairs))]).astype(np.int64)
    share = np.array([1 / counts.n_outcomes]) if target is None else _share(target, line % (S * A), outcome, A)
    return pointer, count.astype(np.float64), share


def _share(target: Rows | SparseRows, pair: Integers, outcome: Integers, A: int) -> Floats:
    """Probability of each outcome under the target row of its pair; outcome S is ending."""
    s_axis, a_axis, S = target.shape[-3:]
    if target.batch:
        raise InputError("evidence takes one target for all data sets.")
    state, action = np.minimum(pair // A, s_axis - 1), np.minimum(pair % A, a_axis - 1)
    ending = outcome == S
    inside = np.where(ending, 0, outcome)
    if isinstance(target, Rows):
        found = target.array[state, action, inside]
    else:
        found = np.asarray(target.matrix[state * a_axis + action, inside]).ravel()
    return np.asarray(np.where(ending, 1 - target.mass()[state, action], found), dtype=np.float64)
