"""No regularization: plan in the estimated model as if it were true."""

from __future__ import annotations

import numpy as np

from certeq.data.counts import Counts
from certeq.model import targets
from certeq.regularizers.shrinkage import Shrinkage, constant


def none(counts: Counts) -> Shrinkage:
    """Plain certainty equivalence: weight 0."""
    return Shrinkage(constant(counts, np.zeros(())), targets.uniform(counts), learned=False)
