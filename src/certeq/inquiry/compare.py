"""Compare: every regularizer on one data set, judged by what it predicts and by what its advice is worth.

- *Held out*: episodes (or rows, where there are no episodes) are split into folds; each fold is predicted from the
  others. The score is the mean log probability of a held-out transition; beside it stands the Brier score, whose
  differences between methods estimate differences in the squared error of whole rows.
- *Expected error*: the squared error of the rows of tried pairs (Eq. 4 with the posterior in place of the truth), in
  closed form given the prior magnitudes, and averaged over draws of these. This is `evidence`'s own posterior, so it
  flatters `evidence`; the held-out scores do not.
- *Value*: each policy in the same models drawn from the posterior, so that differences are paired.

Methods that need a strength get the one with the best held-out log probability (or Brier score, where all strengths
rule out something that happened). Discount regularization predicts no
next state at all (what it takes away ends the episode); it is compared at the strength that suits `uniform_blend`,
which by Theorem 1 plans alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certeq.arrays import Floats, Integers, Rng, generator, whole
from certeq.batch import Batch
from certeq.candidates import NAMES as TARGETS
from certeq.certainty import Model
from certeq.counts import Counts
from certeq.display import told
from certeq.errors import InputError, unknown
from certeq.evaluation.episodes import behavior
from certeq.evaluation.posterior import Posterior, posterior
from certeq.evidence import Evidence, chances, draw_magnitudes
from certeq.inquiry.case import Advice, Case, case_of
from certeq.learned import Learned
from certeq.regularizers import DEFAULT, REGULARIZERS, settings_of
from certeq.regularizers.evidence import TargetEvidence

STRENGTHS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
RECORDED = "what was recorded"
LARGEST = 8_000_000  # S * A * S above which models are not written out
SLIGHT = 1e-3  # of log probability per transition: not worth a word
MAGNITUDES = 64  # draws of the prior magnitudes that the expected error is averaged over


@dataclass(frozen=True)
class Entry:
    """One regularizer on this data."""

    name: str
    settings: Mapping[str, Any]  # as used; a strength that was chosen here included
    held_out: Floats  # (units,): summed log probability of each held-out episode or row; NaN where none is defined
    brier: float  # mean over held-out transitions; NaN where none is defined
    impossible: int  # held-out transitions that it gave no chance
    expected_error: float  # mean over tried pairs of the squared error of the row
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
    targets: Mapping[str, float]  # probability of each target
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
                    "log_probability": _finite(self.score(each.name)),
                    "impossible": each.impossible,
                    "brier": _finite(each.brier),
                    "expected_error": each.expected_error,
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
        return {key: _finite(value) for key, value in found._asdict().items()}


def compare(
    learned: Learned,
    *,
    regularizers: Sequence[str] | None = None,
    folds: int = 5,
    draws: int = 1000,
    rng: Rng = 0,
    threads: int | None = None,
    notice: Callable[[str], None] = lambda step: None,
) -> Comparison:
    """Judge regularizers on the data of a learned policy, with everything else as it was learned.

    ``regularizers`` are names in ``REGULARIZERS``; all that need nothing from the user unless given. ``notice`` is told
    what is being done.
    """
    base = case_of(learned)
    S, A = base.counts.n_states, base.counts.n_actions
    if S * A * S > LARGEST:
        raise InputError(f"Comparing writes models out; {S:,} states x {A:,} actions are too many. Use fewer bins.")
    if base.horizon is not None:
        raise InputError("Comparing is for plans without a horizon; learn without one first.")
    names = _names(regularizers)
    parts = _split(learned.batch, whole("folds", folds, 2), generator(rng))
    cases = {name: base.under(name) for name in names}
    strengths: dict[str, float] = {}
    for name in names:
        if "strength" in settings_of(name):
            notice(f"Choosing a strength for {name}")
            strengths[name] = _strength("uniform_blend" if name == "discount" else name, base, parts)
            cases[name] = base.under(name, strength=strengths[name])
    models = {name: case.model() for name, case in cases.items()}
    magnitudes = draw_magnitudes(base.counts, MAGNITUDES, rng=_seed(rng, 1))
    entries = []
    for name in names:
        notice(f"Predicting held-out {parts.units} with {name}")
        entries.append(_entry(name, cases[name], models[name], parts, magnitudes, strengths.get(name)))
    chosen = {each.name: each.policy for each in entries} | {RECORDED: behavior(base.counts)}
    notice("Drawing models from the posterior")
    first, names_of = models[names[0]], _distinct(chosen)
    values = posterior(
        first, base.table(first), base.discount, {same[0]: chosen[same[0]] for same in names_of},
        rewards=learned.rewards, batch=learned.batch, draws=draws, rng=_seed(rng, 2), threads=threads,
    )  # fmt: skip
    values = _repeat(values, chosen, names_of)
    return Comparison(
        tuple(entries), len(learned.batch), parts.units, folds, values, *_structures(base),
        base.counts.visits.sum(axis=1), rng if isinstance(rng, int) else None,
    )  # fmt: skip


def _names(given: Sequence[str] | None) -> list[str]:
    """Which regularizers take part, the default first."""
    names = [name for name in REGULARIZERS if name != "expert_prior"] if given is None else list(dict.fromkeys(given))
    for name in names:
        if name not in REGULARIZERS:
            raise unknown("regularizer", name, REGULARIZERS)
        if name == "expert_prior":
            raise InputError("expert_prior needs your rows; compare it by learning with it and looking at its report.")
    if not names:
        raise InputError("Name at least one regularizer to compare.")
    return sorted(names, key=lambda name: name != DEFAULT)


@dataclass(frozen=True)
class _Parts:
    """Counts with each fold left out, and the held-out transitions."""

    training: tuple[Counts, ...]
    rows: tuple[tuple[Integers, Integers, Integers, Integers], ...]  # of each fold: unit, state, action, outcome
    units: str
    number: int


def _split(batch: Batch, folds: int, random: np.random.Generator) -> _Parts:
    """Deal the episodes, or the rows where there are none, into folds."""
    S, A = batch.n_states, batch.n_actions
    unit = np.arange(len(batch)) if batch.episode is None else np.unique(batch.episode, return_inverse=True)[1]
    number = int(unit.max()) + 1
    units = "rows" if batch.episode is None else "episodes"
    if number < folds:
        raise InputError(f"{folds} folds need at least as many {units}; there are {number}. Lower folds= or --folds.")
    fold = random.permutation(np.arange(number) % folds)[unit]
    outcome = np.where(batch.ended, S, batch.next_state)
    cell = (batch.state * A + batch.action) * (S + 1) + outcome
    training, rows = [], []
    for k in range(folds):
        kept = fold != k
        table = np.bincount(cell[kept], minlength=S * A * (S + 1)).reshape(S, A, S + 1)
        training.append(Counts(table[..., :S], table[..., S] if batch.ended.any() else None))
        rows.append((unit[~kept], batch.state[~kept], batch.action[~kept], outcome[~kept]))
    return _Parts(tuple(training), tuple(rows), units, number)


def _predict(case: Case, parts: _Parts, **settings: Any) -> tuple[Floats, float, int]:
    """Log probability of each unit, the Brier score, and how many held-out transitions had no chance.

    A pair without training data is predicted by the target.
    """
    score, brier, impossible = np.zeros(parts.number), 0.0, 0
    for counts, (unit, state, action, outcome) in zip(parts.training, parts.rows, strict=True):
        model = _refit(case, counts, settings)
        chance = chances(model.transition, (), np.zeros_like(state), state, action, outcome)
        rows = model.transition.dense()
        square = (rows**2).sum(axis=-1) + np.maximum(1 - rows.sum(axis=-1), 0) ** 2
        impossible += int((chance <= 0).sum())
        with np.errstate(divide="ignore"):
            np.add.at(score, unit, np.log(np.maximum(chance, 0.0)))
        brier += float((square[state, action] - 2 * chance + 1).sum())
    return score, brier / sum(len(rows[0]) for rows in parts.rows), impossible


def _refit(case: Case, counts: Counts, settings: Mapping[str, Any]) -> Model:
    """The model from other counts; rewards, which some regularizers look at, stay those of all rows."""
    with_rewards = replace(case, counts=counts, unvisited="target", min_visits=1)
    return replace(with_rewards, settings=dict(case.settings) | dict(settings)).model()


def _strength(name: str, base: Case, parts: _Parts) -> float:
    """The strength that predicts best: by log probability, or by Brier score if all rule out what happened."""
    case = base.under(name)
    found = [_predict(case, parts, strength=strength) for strength in STRENGTHS]
    scores = np.array([score.sum() for score, _, _ in found])
    if not np.isfinite(scores).any():
        scores = -np.array([brier for _, brier, _ in found])
    return STRENGTHS[int(np.argmax(scores))]


def _entry(name: str, case: Case, model: Model, parts: _Parts, magnitudes: Floats, strength: float | None) -> Entry:
    if name == "discount":
        score, brier, impossible = np.full(parts.number, np.nan), float("nan"), 0
    else:
        score, brier, impossible = _predict(case, parts)
    advice: Advice = case.advise()
    settings = {} if strength is None else {"strength": strength}
    error = _expected_error(case.counts, model, magnitudes)
    return Entry(name, settings, score, brier, impossible, error, advice.policy)


def _expected_error(counts: Counts, model: Model, magnitudes: Floats) -> float:
    """Mean over tried pairs of E Σ (T_plan - T)², T from the posterior under each of the drawn magnitudes."""
    c = counts.transitions if counts.ended is None else np.append(counts.transitions, counts.ended[..., None], axis=-1)
    N, visits = counts.n_outcomes, counts.visits
    rows = np.broadcast_to(model.transition.dense(), counts.transitions.shape)
    if counts.ended is not None:
        rows = np.append(rows, 1 - rows.sum(axis=-1, keepdims=True), axis=-1)
    total = np.zeros(visits.shape)
    for M in magnitudes:
        size = visits + M
        mean = (c + M[..., None] / N) / size[..., None]
        total += ((rows - mean) ** 2).sum(axis=-1) + (1 - (mean**2).sum(axis=-1)) / (size + 1)
    return float((total / len(magnitudes))[visits > 0].mean())


def _structures(base: Case) -> tuple[dict[str, float], dict[str, float]]:
    """Probability of each pooling structure under the uniform target, and of each target."""
    found: Evidence = replace(base, regularizer="evidence", settings={}).model().shrinkage.details
    compared: TargetEvidence = replace(base, regularizer="evidence_targets", settings={}).model().shrinkage.details
    by_structure = dict(zip(found.structures, found.probability.tolist(), strict=True))
    return by_structure, dict(zip(compared.targets, compared.probability.tolist(), strict=True))


def _distinct(policies: Mapping[str, Any]) -> list[list[str]]:
    """Names of policies, those that are the same together: each is valued once."""
    groups: dict[bytes, list[str]] = {}
    for name, policy in policies.items():
        groups.setdefault(np.ascontiguousarray(policy).tobytes(), []).append(name)
    return list(groups.values())


def _repeat(values: Posterior, policies: Mapping[str, Any], names_of: list[list[str]]) -> Posterior:
    """Values of all policies from those of the distinct ones."""
    place = {name: k for k, same in enumerate(names_of) for name in same}
    at = [place[name] for name in policies]
    return replace(values, names=tuple(policies), state_values=values.state_values[at], claimed=values.claimed[at])


def _seed(rng: Rng, which: int) -> Any:
    """A seed of its own for each use."""
    return np.random.default_rng([rng, which]) if isinstance(rng, int) else generator(rng)


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
    told = {
        "all": "all rows alike",
        "action": "the rows of each action alike",
        "state": "the rows of each state alike",
        "pair": "each row for itself",
    }
    structure = max(found.structures, key=lambda name: found.structures[name])
    target = max(found.targets, key=lambda name: found.targets[name])
    return [
        f"How strongly to regularize is best decided for {told.get(structure, structure)} "
        f"(probability {found.structures[structure]:.0%}); of the targets {', '.join(TARGETS)} the data favor "
        f"{target} ({found.targets[target]:.0%})."
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
