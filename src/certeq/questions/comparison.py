"""Comparison: what `compare` found about the regularizers on one data set, and what to make of it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.display import told
from certeq.base.errors import unknown
from certeq.base.texts import finite
from certeq.questions.asking import RECORDED
from certeq.questions.credible import Posterior
from certeq.regularizers import DEFAULT
from certeq.regularizers.learned_target import WORDS

SLIGHT = 1e-3  # of log probability per transition: not worth a word


@dataclass(frozen=True)
class Entry:
    """One regularizer on this data."""

    name: str
    settings: Mapping[str, Any]  # as used; a strength that was chosen here included
    held_out: Floats  # (units,): summed log probability of each held-out episode or row; NaN where none is defined
    brier: float  # mean over held-out transitions; NaN where none is defined
    impossible: int  # held-out transitions that it gave no chance
    expected_error: float  # mean over tried pairs of the squared error of the row, given these data
    mse: float  # mean over tried pairs of Eq. 4: of the squared error over data sets like these
    policy: Integers  # (S,)

    @property
    def predicts(self) -> bool:
        """Whether the method says what comes next at all."""
        return not bool(np.isnan(self.held_out).any())


@dataclass(frozen=True)
class Comparison:
    """All regularizers on one data set."""

    entries: tuple[Entry, ...]
    transitions: int  # held out in all
    units: str  # what the folds are made of: episodes or rows
    folds: int
    values: Posterior  # of every policy, and of the recorded behavior
    structures: Mapping[str, float]  # probability of each pooling structure
    targets: Mapping[str, float]  # share of each part in a target that is learned
    visits: Integers  # (S,): how often each state was seen
    seed: int | None = None

    def entry(self, name: str) -> Entry:
        """One regularizer by name."""
        for each in self.entries:
            if each.name == name:
                return each
        raise unknown("regularizer in this comparison", name, [each.name for each in self.entries])

    def score(self, name: str) -> float:
        """Mean log probability of a held-out transition."""
        return float(self.entry(name).held_out.sum() / self.transitions)

    def lead(self, first: str, second: str) -> tuple[float, float]:
        """How much better the first predicts than the second, per transition, and the standard error of that."""
        apart = self.entry(first).held_out - self.entry(second).held_out
        if not np.isfinite(apart).all():
            return float(self.score(first) - self.score(second)), float("nan")
        scale = self.transitions / len(apart)
        return float(apart.mean() / scale), float(apart.std(ddof=1) / np.sqrt(len(apart)) / scale)

    def agreement(self, first: str, second: str) -> float:
        """Share of the visits whose state gets the same advice from both."""
        same = self.entry(first).policy == self.entry(second).policy
        return float((same * self.visits).sum() / self.visits.sum())

    @property
    def best(self) -> str:
        """Who predicts held-out transitions best."""
        able = [each.name for each in self.entries if each.predicts]
        return max(able, key=self.score)

    @property
    def recommended(self) -> str:
        """The default, unless another predicts better by more than two standard errors."""
        if DEFAULT not in [each.name for each in self.entries] or self.best == DEFAULT:
            return self.best
        lead, error = self.lead(self.best, DEFAULT)
        return self.best if lead > 2 * error else DEFAULT

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """What was found, in words."""
        return [_recommendation(self), *_stakes(self), *_structure_words(self)]

    def to_json(self) -> dict[str, Any]:
        """Write everything as plain values."""
        names = [each.name for each in self.entries]
        return {
            "format": "certeq-comparison",
            "version": 1,
            "seed": self.seed,
            "recommended": self.recommended,
            "best_prediction": self.best,
            "words": self.lines(),
            "held_out": {"transitions": self.transitions, "units": self.units, "folds": self.folds},
            "regularizers": [
                {
                    "name": each.name,
                    "settings": dict(each.settings),
                    "log_probability": finite(self.score(each.name)),
                    "impossible": each.impossible,
                    "brier": finite(each.brier),
                    "expected_error": each.expected_error,
                    "mse": each.mse,
                    "value": self.values.interval(each.name)._asdict(),
                    "against_default": self._against(each.name),
                    "policy": each.policy.tolist(),
                }
                for each in self.entries
            ],
            "agreement": {a: {b: self.agreement(a, b) for b in names} for a in names},
            "structures": dict(self.structures),
            "targets": dict(self.targets),
            "behavior": self.values.interval(RECORDED)._asdict(),
        }

    def _against(self, name: str) -> dict[str, float | None]:
        """Paired difference in value to the recommended policy."""
        found = self.values.difference(name, self.recommended)
        return {key: finite(value) for key, value in found._asdict().items()}


def _recommendation(found: Comparison) -> str:
    best, chosen = found.best, found.recommended
    if chosen == DEFAULT and best == DEFAULT:
        return f"Use {DEFAULT}: of all regularizers it predicts held-out transitions best."
    lead, error = found.lead(best, DEFAULT) if DEFAULT in [e.name for e in found.entries] else (0.0, 0.0)
    if chosen == DEFAULT and lead < SLIGHT:
        return f"Use {DEFAULT}: no other predicts held-out transitions better ({best} predicts them as well)."
    if chosen == DEFAULT:
        return (
            f"Use {DEFAULT}. {best} predicts held-out transitions a little better (log probability +{lead:.3g} per "
            f"transition), but by no more than two standard errors ({error:.2g} each)."
        )
    return f"Use {chosen}: it predicts held-out transitions best."


def _stakes(found: Comparison) -> list[str]:
    """How much the choice matters for the advice."""
    chosen = found.recommended
    others = [each.name for each in found.entries if each.name != chosen]
    lines = []
    if others:
        least = min(others, key=lambda name: found.agreement(chosen, name))
        lines.append(
            f"The advice of {chosen} and of {least}, which differs most from it, is the same for "
            f"{found.agreement(chosen, least):.0%} of the decisions on record."
        )
        surest = max(others, key=lambda name: found.values.difference(name, chosen).better)
        gap = found.values.difference(surest, chosen)
        if gap.low > 0:
            lines.append(
                f"Under the posterior the policy of {surest} is worth more than that of {chosen}: by {gap.mean:.3g}, "
                f"90 % interval {gap.low:.3g} to {gap.high:.3g}. Look at where they differ before you choose."
            )
        else:
            lines.append(f"No other policy is clearly worth more than that of {chosen} under the posterior.")
    against = found.values.difference(chosen, RECORDED)
    lines.append(
        f"The chance that it is worth more than what was recorded is {against.better:.0%}; the difference is "
        f"{against.mean:.3g}, 90 % interval {against.low:.3g} to {against.high:.3g}."
    )
    return lines


def _structure_words(found: Comparison) -> list[str]:
    means = {
        "all": "all rows alike",
        "action": "the rows of each action alike",
        "state": "the rows of each state alike",
        "pair": "each row for itself",
    }
    structure = max(found.structures, key=lambda name: found.structures[name])
    target = max(found.targets, key=lambda name: found.targets[name])
    return [
        f"How strongly to regularize is best decided for {means.get(structure, structure)} "
        f"(probability {found.structures[structure]:.0%}); a target that is learned comes mostly {WORDS[target]} "
        f"({found.targets[target]:.0%})."
    ]
