"""The paper's remedy: for each pair, the weight with the least mean squared error."""

from __future__ import annotations

from typing import Any

from certeq.data.counts import Counts
from certeq.model import targets, weights
from certeq.model.moments import moments
from certeq.regularizers.shrinkage import Shrinkage, by_evidence


def least_mse(
    counts: Counts, *, plug_in: str = "posterior", pseudo_count: float = 0.5, target: Any = None
) -> Shrinkage:
    """Eq. 5: ε*(s, a) toward the uniform row, or toward a fixed target given by the user.

    These weights follow from no prior; where rows are to be drawn, the data say how strong one toward the target is.
    """
    rows = targets.uniform(counts) if target is None else targets.expert(target, counts)
    weight = weights.least_mse(moments(counts, rows, plug_in=plug_in, pseudo_count=pseudo_count))
    return Shrinkage(weight, rows, learned=True, beliefs=(by_evidence(counts, rows),))
