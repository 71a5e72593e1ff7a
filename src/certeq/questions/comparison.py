"""Comparison: what `compare` found about the regularizers on one data set, and what to make of it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Floats, Integers
from certeq.base.display import between, in_a_sentence, number, percent, several, told
from certeq.base.errors import unknown
from certeq.base.texts import finite
from certeq.questions.asking import RECORDED
from certeq.questions.credible import Difference, Posterior
from certeq.regularizers import DEFAULT
from certeq.regularizers.learned_target import WORDS

BEYOND = "To see whether it beats what was recorded, run certeq learn: its intervals allow for more than these."
TIE = "a tie"  # of two whose difference may well be 0: its interval includes it


class Lead(NamedTuple):
    """How much better one predicts than another: log probability per held-out transition, and its standard error."""

    mean: float
    error: float  # NaN where one of them gave no chance to what happened

    @property
    def low(self) -> float:
        """Two standard errors less."""
        return self.mean - 2 * self.error

    @property
    def high(self) -> float:
        """Two standard errors more."""
        return self.mean + 2 * self.error


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
    units: str  # what the folds are made of: episodes, rows, or sections of long episodes
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

    def lead(self, first: str, second: str) -> Lead:
        """How much better the first predicts than the second, per transition, and the standard error of that."""
        apart = self.entry(first).held_out - self.entry(second).held_out
        if not np.isfinite(apart).all():
            return Lead(float(self.score(first) - self.score(second)), float("nan"))
        scale = self.transitions / len(apart)
        return Lead(float(apart.mean() / scale), float(apart.std(ddof=1) / np.sqrt(len(apart)) / scale))

    def prediction(self, name: str) -> tuple[str, Lead | None]:
        """How well it predicts compared with the recommended, in a word and, where both can be scored, in numbers."""
        entry = self.entry(name)
        if not entry.predicts:
            return "does not say what comes next", None
        if entry.impossible:
            return f"gave {several(entry.impossible, 'transition')} no chance", None
        if name == self.recommended:
            return "recommended", None
        lead = self.lead(name, self.recommended)
        return _verdict(lead, "better", "worse"), lead

    def worth(self, name: str) -> tuple[str, Difference]:
        """What its advice, or what was recorded, is worth compared with the recommended advice: a word, and numbers."""
        apart = self.values.difference(name, self.recommended)
        if name == self.recommended:
            return "recommended", apart
        same = name != RECORDED and (self.entry(name).policy == self.entry(self.recommended).policy).all()
        return "the same advice" if same else _verdict(apart, "worth more", "worth less"), apart

    def agreement(self, first: str, second: str) -> float:
        """Share of the visits whose state gets the same advice from both."""
        same = self.entry(first).policy == self.entry(second).policy
        return float((same * self.visits).sum() / self.visits.sum())

    @property
    def best(self) -> str:
        """Who predicts held-out transitions best."""
        able = [each for each in self.entries if each.predicts]
        return max(able, key=lambda each: (self.score(each.name), -each.brier)).name

    @property
    def recommended(self) -> str:
        """The default, unless another predicts better by more than two standard errors."""
        if DEFAULT not in [each.name for each in self.entries] or self.best == DEFAULT:
            return self.best
        lead = self.lead(self.best, DEFAULT)
        return self.best if lead.low > 0 or lead.mean == np.inf else DEFAULT

    @property
    def command(self) -> str:
        """How to learn with the recommended regularizer."""
        chosen = self.entry(self.recommended)
        said = "" if chosen.name == DEFAULT else f" --regularizer {chosen.name}"
        return "certeq learn" + said + "".join(f" --setting {name}={what:g}" for name, what in chosen.settings.items())

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """What was found, in words."""
        return [_recommendation(self), *_values(self), *_stakes(self), *_structure_words(self), BEYOND]

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
                    "against_recommended": self._against(each.name),
                    "policy": each.policy.tolist(),
                }
                for each in self.entries
            ],
            "agreement": {a: {b: self.agreement(a, b) for b in names} for a in names},
            "structures": dict(self.structures),
            "targets": dict(self.targets),
            "behavior": self.values.interval(RECORDED)._asdict(),
        }

    def _against(self, name: str) -> dict[str, Any]:
        """How it predicts compared with the recommended one, and the paired difference in value."""
        (word, lead), (worth, apart) = self.prediction(name), self.worth(name)
        mean, error = (None, None) if lead is None else lead
        return {
            "prediction": {"verdict": word, "lead": mean, "standard_error": error},
            "value": {"verdict": worth, **{key: finite(value) for key, value in apart._asdict().items()}},
        }


def _verdict(apart: Lead | Difference, more: str, less: str) -> str:
    """Which way a difference goes, if its interval leaves 0 out."""
    return more if apart.low > 0 else less if apart.high < 0 else TIE


def _recommendation(found: Comparison) -> str:
    """Which to use, and why: who predicts best, by how much, and how sure that is."""
    chosen, best = found.recommended, found.best
    if found.entry(chosen).impossible:
        why = "its Brier score is the best" if chosen == best else "it is the default"
        return f"Use {chosen}: all of them gave something that happened no chance, and {why}."
    if chosen != best:
        lead = found.lead(best, chosen)
        return (
            f"Use {chosen}, the default. {best} predicts held-out transitions a little better, but that is {TIE}: "
            f"log probability +{number(lead.mean)} per transition, standard error {number(lead.error, 2)}."
        )
    others = [each.name for each in found.entries if each.predicts and each.name != chosen]
    if not others:
        return f"Use {chosen}: it is the only one here that predicts."
    second = max(others, key=found.score)
    word, apart = found.prediction(second)
    if apart is None:
        return f"Use {chosen}: all others gave something that happened no chance."
    behind = f"{number(-apart.mean)} behind in log probability per transition, standard error {number(apart.error, 2)}"
    return (
        f"Use {chosen}: it predicts held-out transitions best. Next comes {second}, {behind}"
        f"{f': {TIE}' if word == TIE else ''}."
    )


def _values(found: Comparison) -> list[str]:
    """What the recommended advice is worth beside that of the others.

    Nothing is said about what was recorded: models drawn from one regularizer's own belief flatter its advice.
    """
    chosen, named = found.recommended, dict[str, list[str]]()
    for each in found.entries:
        named.setdefault(found.worth(each.name)[0], []).append(each.name)
    lines = []
    for name in named.get("worth more", ()):
        gap = found.worth(name)[1]
        lines.append(
            f"In the drawn models the advice of {name} is worth more than that of {chosen}: by {number(gap.mean)}, "
            f"90% interval {between(gap.low, gap.high)}. Look at where they differ before you choose."
        )
    told = [
        f"{words} {'every other' if 1 < len(named[word]) == len(found.entries) - 1 else _listed(named[word])}{why}"
        for word, words, why in (
            ("worth less", "is worth more than that of", ""),
            (TIE, "ties with that of", " (the 90% interval of the difference includes 0)"),
            ("the same advice", "is the same as that of", ""),
        )
        if word in named
    ]
    if told:
        lines.append(f"The advice of {chosen} {'; it '.join(told)}.")
    return lines


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _stakes(found: Comparison) -> list[str]:
    """How much the choice matters for the advice."""
    chosen = found.recommended
    others = [each.name for each in found.entries if each.name != chosen]
    if not others:
        return []
    least = min(others, key=lambda name: found.agreement(chosen, name))
    shared = found.agreement(chosen, least)
    if shared == 1:
        return ["All give the same advice for every decision on record: the data decide, not the method."]
    share = in_a_sentence(percent(shared))
    return [f"{least} differs most from {chosen}: the same advice for {share} of the decisions on record."]


def _structure_words(found: Comparison) -> list[str]:
    means = {
        "all": "all rows alike",
        "action": "the rows of each action alike",
        "state": "the rows of each state alike",
        "pair": "each row by itself",
    }
    structure = max(found.structures, key=lambda name: found.structures[name])
    target = max(found.targets, key=lambda name: found.targets[name])
    return [
        f"How strongly to regularize is best decided for {means.get(structure, structure)} "
        f"(probability {percent(found.structures[structure])}); the largest part of a learned target "
        f"({percent(found.targets[target])}) comes {WORDS[target]}."
    ]
