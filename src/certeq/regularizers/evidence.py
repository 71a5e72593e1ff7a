"""A prior whose strength the data choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.model.evidence import ODDS, STRUCTURES, learn_magnitudes
from certeq.model.kernel import Kernel
from certeq.model.possible import read_possible, uniform_over
from certeq.regularizers.shrinkage import Shrinkage, by_evidence


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

    The target is uniform, over the outcomes that are ``possible`` if that is said, unless an expert's rows are given as
    ``target``. ``details`` of the result holds the learned magnitudes and the probability of each structure.
    """
    if target is not None and possible is not None:
        raise InputError("An expert's rows say what is possible themselves; give target= or possible=, not both.")
    rows: Kernel | None = None
    if target is not None:
        rows = targets.expert(target, counts)
    elif possible is not None:
        rows = uniform_over(read_possible(possible, counts), counts)
    law: dict[str, Any] = {"structures": structures, "groups": groups, "odds": odds}
    found = learn_magnitudes(counts, rows, **law)
    pull = targets.uniform(counts) if rows is None else rows
    return Shrinkage(found.weight, pull, learned=True, details=found, beliefs=(by_evidence(counts, pull, **law),))
