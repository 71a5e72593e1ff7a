"""Compare: every regularizer on one data set, judged by what it predicts and by what its advice is worth.

- *Held out*: episodes (or rows, where there are none; or sections of long episodes, where there are few of them)
  are split into folds; each fold is predicted from the
  others. The score is the mean log probability of a held-out transition; beside it stands the Brier score, whose
  differences between methods estimate differences in the squared error of whole rows.
- *Expected error*: the squared error of the rows of tried pairs (Eq. 4 with the posterior in place of the truth), in
  closed form given the prior magnitudes, and averaged over draws of these. This is `evidence`'s own posterior, so it
  flatters `evidence`; the held-out scores do not.
- *MSE*: Eq. 4 as the paper compares regularizers, that of `certeq.transition_mse`, averaged over tried pairs. Its
  plug-in is the one that ε* minimizes, so it flatters `least_mse`.
- *Value*: each policy in the same models drawn from the posterior, so that differences are paired.

Methods that need a strength get the one with the best held-out log probability (or Brier score, where all strengths
give something that happened no chance). Discount regularization predicts no next state at all (what it takes away ends
the episode); it is compared at the strength that suits `uniform_blend`, which by Theorem 1 plans alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certeq.base import places
from certeq.base.arrays import Floats, Integers, Rng, generator, whole
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.counts import Counts
from certeq.data.order import unit_of
from certeq.learning.case import Case
from certeq.learning.equivalence import Model
from certeq.learning.learned import Learned, asked
from certeq.model.evidence import Evidence, chances, draw_magnitudes
from certeq.questions.asking import RECORDED
from certeq.questions.comparison import Comparison, Entry
from certeq.questions.credible import Posterior
from certeq.questions.episodes import behavior, watched
from certeq.questions.posterior import posterior
from certeq.questions.row_errors import mse_of
from certeq.regularizers import ALIKE, DEFAULT, REGULARIZERS, needs_of, settings_of
from certeq.regularizers.learned_target import Believed

STRENGTHS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LARGEST = 8_000_000  # S * A * S above which models are not written out
MAGNITUDES = 64  # draws of the prior magnitudes that the expected error is averaged over


def compare(
    learned: Learned,
    *,
    regularizers: Sequence[str] | None = None,
    folds: int = 5,
    draws: int = 1000,
    rng: Rng = 0,
    threads: int | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    executor: Executor | None = None,
    notice: Callable[[str], None] = lambda step: None,
) -> Comparison:
    """Judge regularizers on the data of a learned policy, with everything else as it was learned.

    Parameters
    ----------
    learned
        What `certeq.learn` returned; not from counts, since some rows are held out.
    regularizers
        Names in ``REGULARIZERS``; all that need nothing from the user unless given.
    folds
        Parts that the episodes are dealt into, each predicted from the others. Where there are
        few, long ones are cut into sections.
    draws, rng
        How many models are drawn from the posterior, and the seed.
    threads, workers, scheduler, executor
        Where regularizers are judged, each by itself, and models drawn: on threads of this process, on local processes,
        on the Dask cluster of this address, or on an executor that is open already. The result does not depend on it.
        Where others work, they get the rows, as numbers of states and actions.
    notice
        Told what is being done.
    """
    with places.pool(executor, workers, scheduler) as pool:
        return _compare(learned, regularizers, folds, draws, rng, threads, pool, notice)


def _compare(
    learned: Learned,
    regularizers: Sequence[str] | None,
    folds: int,
    draws: int,
    rng: Rng,
    threads: int | None,
    pool: Executor | None,
    notice: Callable[[str], None],
) -> Comparison:
    case = asked(learned)
    batch = case.data.rows("Comparing holds some rows out and predicts them")
    data, S, A = case.data.bare(), batch.n_states, batch.n_actions
    if S * A * S > LARGEST:
        raise InputError(f"Comparing writes models out; {S:,} states x {A:,} actions are too many. Use fewer bins.")
    counts = data.counts.written_out
    base = Case(replace(data, counts=counts), case.rules)
    if base.rules.horizon is not None:
        raise InputError("Comparing is for plans without a horizon; learn without one first.")
    names = _names(regularizers)
    parts = _split(batch, whole("folds", folds, 2), generator(rng))
    run = map if pool is None else pool.map
    alike = {name: ALIKE.get(name, name) for name in names if "strength" in settings_of(name)}
    tried = list(dict.fromkeys(alike.values()))
    found = run(partial(_strength, base=base, parts=parts), tried)
    best = dict(zip(tried, _told("Choosing a strength for", tried, found, notice), strict=True))
    strengths = {name: best[other] for name, other in alike.items()}
    cases = {name: base.under(name, **_settings(strengths.get(name))) for name in names}
    models = {name: case.model for name, case in cases.items()}
    magnitudes = draw_magnitudes(counts, MAGNITUDES, rng=_seed(rng, 1))
    judge = partial(_entry, parts=parts, magnitudes=magnitudes)
    what = [[given.get(name) for name in names] for given in (cases, models, strengths)]
    judged = run(judge, names, *what)
    entries = _told(f"Predicting held-out {parts.units} with", names, judged, notice)
    chosen = {each.name: each.policy for each in entries} | {RECORDED: behavior(counts)}
    notice("Drawing models from the posterior")
    names_of = _distinct(chosen)
    values = posterior(
        models[names[0]], cases[names[0]].table, base.rules.discount, {same[0]: chosen[same[0]] for same in names_of},
        rewards=learned.rewards, batch=batch, draws=draws, rng=_seed(rng, 2), threads=threads,
        executor=pool, watched=watched(batch, base.rules.discount),
    )  # fmt: skip
    values = _repeat(values, chosen, names_of)
    return Comparison(
        tuple(entries), len(batch), parts.units, folds, values, *_structures(base),
        counts.visits.sum(axis=1), rng if isinstance(rng, int) else None,
    )  # fmt: skip


def _told(doing: str, names: Sequence[str], results: Iterable[Any], notice: Callable[[str], None]) -> list[Any]:
    """Wait for one result after another, telling which."""
    coming, found = iter(results), []
    for name in names:
        notice(f"{doing} {name}")
        found.append(next(coming))
    return found


def _settings(strength: float | None) -> dict[str, Any]:
    return {} if strength is None else {"strength": strength}


def _names(given: Sequence[str] | None) -> list[str]:
    """Which regularizers take part, the default first."""
    names = [name for name in REGULARIZERS if not needs_of(name)] if given is None else list(dict.fromkeys(given))
    for name in names:
        if needs := ", ".join(needs_of(name)):
            raise InputError(f"{name} needs your {needs}; compare it by learning with it and looking at its report.")
    if not names:
        raise InputError("Name at least one regularizer to compare.")
    if all(name in ALIKE for name in names):
        raise InputError(
            f"{' and '.join(names)} does not predict which state comes next; name at least one regularizer that does."
        )
    return sorted(names, key=lambda name: name != DEFAULT)


@dataclass(frozen=True)
class _Parts:
    """Counts with each fold left out, and the held-out transitions."""

    training: tuple[Counts, ...]
    rows: tuple[tuple[Integers, Integers, Integers, Integers], ...]  # of each fold: unit, state, action, outcome
    units: str
    number: int


def _split(batch: Batch, folds: int, random: np.random.Generator) -> _Parts:
    """Deal the episodes into folds: sections of long ones where there are few, and rows where there are none."""
    S, A = batch.n_states, batch.n_actions
    unit = unit_of(batch)
    number = int(unit.max()) + 1
    cut = batch.episode is not None and number > len(np.unique(batch.episode))
    units = "rows" if batch.episode is None else "sections of long episodes" if cut else "episodes"
    if number < folds:
        way_out = "Lower folds= or --folds" if number > 1 else "Collect more"
        if number == 1 and batch.episode is not None:
            way_out += ", or name the column that tells them apart"
        there = f"there {'is' if number == 1 else 'are'} only {number}"
        raise InputError(f"{folds} folds need at least as many {units}; {there}. {way_out}.")
    fold = random.permutation(np.arange(number) % folds)[unit]
    outcome = np.where(batch.ended, S, batch.next_state)
    cell = (batch.state * A + batch.action) * (S + 1) + outcome
    training, rows = [], []
    for k in range(folds):
        kept = fold != k
        table = np.bincount(cell[kept], minlength=S * A * (S + 1)).reshape(S, A, S + 1)
        training.append(Counts(table[..., :S], table[..., S] if batch.ended.any() else None, A, batch.positions))
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
    rules = case.ruled(unvisited="target", min_visits=1, settings=dict(case.rules.settings) | dict(settings)).rules
    return Case(replace(case.data, counts=counts), rules).model


def _strength(name: str, base: Case, parts: _Parts) -> float:
    """The strength that predicts best: by log probability, or by Brier score if all give what happened no chance."""
    case = base.under(name)
    found = [_predict(case, parts, strength=strength) for strength in STRENGTHS]
    scores = np.array([score.sum() for score, _, _ in found])
    if not np.isfinite(scores).any():
        scores = -np.array([brier for _, brier, _ in found])
    return STRENGTHS[int(np.argmax(scores))]


def _entry(name: str, case: Case, model: Model, strength: float | None, *, parts: _Parts, magnitudes: Floats) -> Entry:
    if name in ALIKE:
        score, brier, impossible = np.full(parts.number, np.nan), float("nan"), 0
    else:
        score, brier, impossible = _predict(case, parts)
    counts = case.data.counts
    error = _expected_error(counts, model, magnitudes)
    mse = float(mse_of(counts, model.shrinkage)[counts.visits > 0].mean())
    return Entry(name, _settings(strength), score, brier, impossible, error, mse, case.advise().policy)


def _expected_error(counts: Counts, model: Model, magnitudes: Floats) -> float:
    """Mean over tried pairs of E Σ (T_plan - T)², T from the posterior under each of the drawn magnitudes."""
    c = counts.transitions
    N, visits = counts.n_outcomes, counts.visits
    rows = np.broadcast_to(model.transition.dense(), c.shape)
    if counts.ended is not None:
        c = np.append(c, counts.ended[..., None], axis=-1)
        rows = np.append(rows, 1 - rows.sum(axis=-1, keepdims=True), axis=-1)
    total = np.zeros(visits.shape)
    for M in magnitudes:
        size = visits + M
        mean = (c + M[..., None] / N) / size[..., None]
        total += ((rows - mean) ** 2).sum(axis=-1) + (1 - (mean**2).sum(axis=-1)) / (size + 1)
    return float((total / len(magnitudes))[visits > 0].mean())


def _structures(base: Case) -> tuple[dict[str, float], dict[str, float]]:
    """Probability of each pooling structure under the uniform target, and the share of each part of a learned one."""
    found: Evidence = base.under("evidence").model.shrinkage.details
    borrowed: Believed = base.under("learned_target").model.shrinkage.details
    by_structure = dict(zip(found.structures, found.probability.tolist(), strict=True))
    share = dict(zip(borrowed.candidates, (borrowed.share.mean(axis=0) * borrowed.probability).tolist(), strict=True))
    return by_structure, share | {"uniform": share["uniform"] + 1 - float(borrowed.probability)}


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
