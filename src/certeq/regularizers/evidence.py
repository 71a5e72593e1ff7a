"""A prior whose strength the data choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certeq import targets
from certeq.counts import Counts
from certeq.evidence import ODDS, STRUCTURES, learn_magnitudes
from certeq.regularizers.shrinkage import Shrinkage


def evidence(
    counts: Counts,
    *,
    target: Any = None,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, Any] | None = None,
    odds: float = ODDS,
) -> Shrinkage:
    """Dirichlet weights with magnitudes learned by marginal likelihood, averaged over pooling structures.

    ``details`` of the result holds the learned magnitudes and the probability of each structure.
    """
    rows = targets.uniform(counts) if target is None else targets.expert(target, counts)
    found = learn_magnitudes(counts, None if target is None else rows, structures=structures, groups=groups, odds=odds)
    return Shrinkage(found.weight, rows, learned=True, details=found)
