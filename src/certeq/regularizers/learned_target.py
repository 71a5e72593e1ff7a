"""A prior whose mean is learned too: rows are pulled toward what other pairs say, as far as that has proved true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certeq.base.arrays import Floats
from certeq.base.errors import InputError
from certeq.data.counts import Counts
from certeq.model import targets
from certeq.model.evidence import ODDS, STRUCTURES, Evidence, learn_magnitudes
from certeq.model.kernel import Kernel, Mixture, Rows
from certeq.regularizers.shrinkage import Shrinkage, by_evidence

PLAIN_ODDS = 100.0  # of the uniform target against the borrowed one
PLAIN_SPREAD = 1.0  # of log M toward the uniform row: a strength that no data are needed to find comes from the prior
MOST_KEPT = 8_000_000  # non-zeros whose chances are kept, so that rows can be drawn
CENTER, SPREAD = 1.0, 1.5  # of log M toward borrowed rows; docs/decisions/0014-learned-target.md
WORDS = {
    "uniform": "from nowhere: every outcome alike",
    "arrivals": "from where one arrives in general",
    "action": "from where this action leads, wherever it is taken",
    "state": "from the other actions of the state",
    "stay": "from staying put",
    "moves": "from the usual moves, whatever the action",
    "action_moves": "from what this action does everywhere",
    "wider_moves": "from what this action does up to two cells away",
    "near_moves": "from what this action does in neighboring cells",
    "near": "from where this action leads in neighboring cells",
    "expert": "from the expert's rows",
}


@dataclass(frozen=True)
class Believed:
    """What the borrowed target is made of, how much it is believed, and the magnitudes under both targets."""

    candidates: tuple[str, ...]
    share: Floats  # (..., A, candidates): of the borrowed target
    probability: Floats  # (...): of the borrowed target against the uniform one
    plain: Evidence
    borrowed: Evidence

    def words(self, action: int | None = None) -> str:
        """Say where the rows of an action, or of all on average, borrow from: the candidates in order of their say."""
        if self.probability.ndim:
            raise InputError("Words are for one data set; take one out of the batch.")
        share = self.share.mean(axis=0) if action is None else self.share[action]
        order = np.argsort(-share, kind="stable")
        said = [f"{share[j]:.0%} {WORDS[self.candidates[j]]}" for j in order if share[j] >= 0.1]
        sure = f"The borrowed target has a probability of {float(self.probability):.0%}; it comes "
        return sure + (", ".join(said) if said else "from a little of everything") + "."


def learned_target(
    counts: Counts,
    *,
    expert: Any = None,
    positions: bool = True,
    structures: Sequence[str] = STRUCTURES,
    groups: Mapping[str, Any] | None = None,
    odds: float = ODDS,
    plain_odds: float = PLAIN_ODDS,
) -> Shrinkage:
    """Evidence toward a target that is learned, averaged with evidence toward the uniform row.

    The target is a mix of what the state's other actions, its neighbors and the usual moves of the action say, where
    the counts carry positions; without them, or with ``positions=False``, of what needs none. An expert's rows are one
    more candidate. ``plain_odds`` are those of the uniform target against the learned one, before any data.
    ``details`` of the result tells what was believed, and says it in words.
    """
    from certeq.model.believed import borrow

    if not (np.isfinite(plain_odds) and plain_odds > 0):
        raise InputError(f"plain_odds must be a positive number; got {plain_odds}.")
    found = borrow(counts if positions else replace(counts, positions=None), expert=expert)
    rules: dict[str, Any] = {"table": found.table, "structures": structures, "groups": groups, "odds": odds}
    apart: dict[str, Any] = {"spread": PLAIN_SPREAD} | rules
    alike: dict[str, Any] = {"judged": found.judged, "center": CENTER, "spread": SPREAD} | rules
    plain = learn_magnitudes(counts, **apart)
    borrowed = learn_magnitudes(counts, **alike)
    gain = _total(borrowed.log_evidence) - _total(plain.log_evidence) - np.log(plain_odds)
    chance = 1 / (1 + np.exp(-np.clip(gain, -700, 700)))  # (...)
    details = Believed(found.names, found.share, chance, plain, borrowed)
    pull = chance[..., None, None] * borrowed.weight
    weight = np.minimum((1 - chance[..., None, None]) * plain.weight + pull, 1.0)
    share = np.minimum(np.divide(pull, weight, out=np.zeros_like(pull), where=weight > 0), 1.0)
    weight = np.where(counts.unvisited, 1.0, weight)
    beliefs = (
        by_evidence(counts, targets.uniform(counts), 1 - chance, **apart),
        by_evidence(counts, found.rows, chance, **alike),
    )
    kept = beliefs if len(found.judged) <= MOST_KEPT else ()  # a longer list is not worth its memory: nobody draws then
    return Shrinkage(weight, _mixed(counts, share, found.rows), learned=True, details=details, beliefs=kept)


def _mixed(counts: Counts, share: Floats, rows: Kernel) -> Kernel:
    """The uniform row with a share of borrowed ones; written out where it is small."""
    plain = targets.uniform(counts)
    if counts.sparse:
        return Mixture(plain, share, rows)
    target = share[..., None] * rows.dense()
    target += (1 - share)[..., None] * plain.array
    return Rows.trusted(target)


def _total(log_evidence: Floats) -> Floats:
    """Log of the sum over the last axis."""
    top = log_evidence.max(axis=-1, keepdims=True)
    return np.asarray((top + np.log(np.exp(log_evidence - top).sum(axis=-1, keepdims=True)))[..., 0])
