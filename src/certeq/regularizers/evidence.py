"""Priors whose strength, and if asked whose mean, the data choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model import candidates, targets
from certeq.model.candidates import Candidate
from certeq.model.evidence import ODDS, STRUCTURES, Evidence, learn_magnitudes
from certeq.model.kernel import Kernel, Mixture, Rows
from certeq.regularizers.shrinkage import Shrinkage


def evidence(
    counts: Counts,
    *,
    target: Any = None,
    possible: Any = None,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, Any] | None = None,
    odds: float = ODDS,
) -> Shrinkage:
    """Dirichlet weights with magnitudes learned by marginal likelihood, averaged over pooling structures.

    ``target`` is the name of a candidate or an expert's rows, uniform unless given; ``possible`` says which outcomes
    are. ``details`` of the result holds the learned magnitudes and the probability of each structure.
    """
    known = isinstance(target, str)
    if possible is None and not known:
        rows = targets.uniform(counts) if target is None else targets.expert(target, counts)
        chosen = Candidate(rows)
    elif known or target is None:
        [chosen] = candidates.candidates(counts, [target or "uniform"], possible=possible).values()
    else:
        raise InputError("An expert's rows say what is possible themselves; give target= or possible=, not both.")
    plain = target is None and possible is None
    found = learn_magnitudes(
        counts, None if plain else chosen.rows, judged=chosen.judged, structures=structures, groups=groups, odds=odds
    )
    return Shrinkage(found.weight, chosen.rows, learned=True, details=found)


@dataclass(frozen=True)
class TargetEvidence:
    """What the counts say about targets, and about magnitudes under each of them."""

    targets: tuple[str, ...]
    log_evidence: Floats  # (..., targets), prior odds included
    probability: Floats  # (..., targets)
    under: Mapping[str, Evidence]


def evidence_targets(
    counts: Counts,
    *,
    compare: Sequence[str] = candidates.NAMES,
    expert: Any = None,
    possible: Any = None,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, Any] | None = None,
    odds: float = ODDS,
) -> Shrinkage:
    """Evidence that also compares targets, and averages what each of them leads to.

    T_plan = Σ pⱼ·((1 - wⱼ)·T_data + wⱼ·qⱼ) over candidates with rows qⱼ and probability pⱼ is once more one line: its
    weight is Σ pⱼwⱼ and its target the average of the qⱼ by pⱼwⱼ. The first candidate has the prior odds ``odds``
    against each of the others.
    """
    pool = candidates.candidates(counts, compare, expert=expert, possible=possible)
    found = {
        name: learn_magnitudes(counts, each.rows, judged=each.judged, structures=structures, groups=groups, odds=odds)
        for name, each in pool.items()
    }
    total = np.stack([_total(each.log_evidence) for each in found.values()], axis=-1)  # (..., J)
    total[..., 0] += np.log(odds)
    chance = np.exp(total - _total(total)[..., None])
    pulls = [chance[..., j, None, None] * each.weight for j, each in enumerate(found.values())]
    details = TargetEvidence(tuple(pool), total, chance, found)
    weight = np.where(counts.unvisited, 1.0, np.minimum(sum(pulls[1:], pulls[0]), 1.0))
    return Shrinkage(weight, _average([each.rows for each in pool.values()], pulls, counts), True, details=details)


def _total(log_evidence: Floats) -> Floats:
    """Log of the sum over the last axis."""
    top = log_evidence.max(axis=-1, keepdims=True)
    return np.asarray((top + np.log(np.exp(log_evidence - top).sum(axis=-1, keepdims=True)))[..., 0])


def _average(rows: list[Kernel], pulls: list[Floats], counts: Counts) -> Kernel:
    """Rows averaged by their pulls ``(..., S, A)``; dense ones are written out, sparse ones stay a mixture."""
    blend, sofar = rows[0], pulls[0]
    for each, pull in zip(rows[1:], pulls[1:], strict=True):
        sofar = sofar + pull
        share = np.divide(pull, sofar, out=np.zeros_like(sofar), where=sofar > 0)
        blend = Mixture(blend, np.minimum(share, 1.0), each)
    return blend if counts.sparse else Rows.trusted(blend.dense())
