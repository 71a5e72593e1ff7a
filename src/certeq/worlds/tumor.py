"""The tumor simulator as a table of 256 states, made as the paper's authors made it.

The world itself, its equations and its noise are told in ``certeq.worlds.tumor_model``. A patient there is four
numbers. Simulated patients, who are treated each month by the toss of a coin, are pooled over all their months, and the
quartiles of each number cut it into four bins: 4⁴ = 256 states, numbered with C slowest, then P, Q, D (damaged), and
named such as "C2 P0 Q3 D1". A second simulation, of patients followed for 0 to 30 months, all lengths equally likely,
is counted: frequencies are the transitions and mean rewards the rewards. This is what stands for the truth.

What was decided, and why:

- A pair that the simulation never visits has a uniform row and the reward 0, as in the authors' code.
- The authors' follow-up weighs losses by how often the simulated patients were in each state (at a decision), and so
  these frequencies are the MDP's ``start``. They are not where a patient starts.
- The follow-up adds up rewards at the pair (next state, action) but divides by the visits of (state, action), and has a
  dose penalty of 10. With each reward credited to the pair where it was earned, at penalty 10 it is best never to treat
  anyone, and there is nothing to learn. So the default is a penalty of 1 with rewards as earned. The follow-up's table
  is ``rewards="miscredited"`` with ``dose_penalty=10``, for replication only; as simulated here it, too, is best
  answered by never treating, whereas at a penalty of 1 the two tables advise differently.
- The process between states is not quite Markov: a row averages over where in its state a patient is. Data sets
  therefore come from the simulator, ``tumor_trials``, as the authors' do, and not from the table.
- A number exactly on an edge belongs to the bin below, so that a patient without drug is in the lowest bin even where
  doses are so rare that the first edge is 0. With the default settings there are no such ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Integers, Rng, first, floats, generator, whole
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.positions import Positions
from certeq.model.kernel import Rows
from certeq.model.mdp import MDP
from certeq.worlds.settings import one_of
from certeq.worlds.tumor_model import (
    COLUMNS,
    DRUGS,
    INTEGRATORS,
    PCV,
    TMZ,
    Drug,
    Study,
    StudyLog,
    TumorModel,
    by_patient,
    trial,
)

__all__ = [
    "COLUMNS",
    "DRUGS",
    "INTEGRATORS",
    "PCV",
    "TMZ",
    "Drug",
    "TumorModel",
    "trial",
    "tumor",
    "tumor_bins",
    "tumor_state",
    "tumor_trials",
]

REWARDS = ("earned", "miscredited")
MOST_BINS = 8  # 4096 states
LETTERS = "CPQD"
Answer = TypeVar("Answer")


def tumor(
    *,
    drug: str | Drug = "TMZ",
    process_noise: float = 0.25,
    start_noise: float = 0.25,
    dose_penalty: float = 1.0,
    treatment_probability: float = 0.5,
    months: int = 30,
    bins: int = 4,
    episodes: int = 100_000,
    discount: float = 0.99,
    integrator: str = "printed",
    penalty_on: str = "concentration",
    rewards: str = "earned",
    rng: Rng = 0,
) -> MDP:
    """Build the table by simulation; its actions are "none" and the drug's name, its ``start`` the state frequencies.

    ``episodes`` patients are simulated for the bins and as many for the table. ``rewards`` is ``"earned"`` or
    ``"miscredited"``, the authors' slip (see above). With a whole number as ``rng`` the answer is kept, and asking
    again is free; its arrays are read-only.
    """
    model = TumorModel(drug, process_noise, start_noise, dose_penalty, integrator, penalty_on)
    design = Design(Study(model, treatment_probability, months), bins, episodes)
    credited = one_of("rewards", rewards, REWARDS)
    table = _table(design, rng)
    return MDP(
        Rows.trusted(table.transition),
        table.earned if credited == "earned" else table.miscredited,
        discount,
        start=table.frequency,
        state_names=_state_names(design.bins),
        action_names=_action_names(model),
        positions=_places(design.bins),
    )


def tumor_bins(
    *,
    drug: str | Drug = "TMZ",
    process_noise: float = 0.25,
    start_noise: float = 0.25,
    treatment_probability: float = 0.5,
    months: int = 30,
    bins: int = 4,
    episodes: int = 100_000,
    integrator: str = "printed",
    rng: Rng = 0,
) -> Floats:
    """Edges between the bins of C, P, Q and D, ``(4, bins - 1)``: those of ``tumor`` with these settings and seed."""
    model = TumorModel(drug, process_noise, start_noise, integrator=integrator)
    return _edges(Design(Study(model, treatment_probability, months), bins, episodes), rng)


def tumor_state(states: ArrayLike, edges: ArrayLike) -> Integers:
    """Number of the table's state in which each raw state ``(..., 4)`` lies."""
    raw, cuts = np.asarray(states, dtype=np.float64), _cuts(edges)
    if raw.shape[-1:] != (4,):
        raise InputError(f"A raw state is four numbers, {', '.join(COLUMNS)}; got the shape {raw.shape}.")
    if np.isnan(raw).any():
        raise InputError(f"states must be numbers; states{list(first(np.isnan(raw)))} is nan.")
    return _place(raw, cuts)


def tumor_trials(
    data_sets: int | None = None,
    *,
    patients: int = 50,
    months: int = 30,
    random_length: bool = True,
    treatment_probability: float = 0.5,
    drug: str | Drug = "TMZ",
    process_noise: float = 0.25,
    start_noise: float = 0.25,
    dose_penalty: float = 1.0,
    integrator: str = "printed",
    penalty_on: str = "concentration",
    edges: ArrayLike | None = None,
    rng: Rng = None,
) -> Batch:
    """Simulate trials with the continuous model, then bin them: data sets as the authors draw them.

    With ``data_sets`` the rows of that many trials come in one batch, labeled by ``data_set``. Without ``edges`` they
    are those of ``tumor_bins`` with the same settings. Rewards are as earned in the simulator, month by month. Patients
    (``episode``) are numbered through all data sets; one followed for 0 months leaves no row.
    """
    n = whole("patients", patients, 1)
    trials = 1 if data_sets is None else whole("data_sets", data_sets, 0)
    model = TumorModel(drug, process_noise, start_noise, dose_penalty, integrator, penalty_on)
    study = Study(model, treatment_probability, months, random_length)
    cuts = _edges(Design(study), 0) if edges is None else _cuts(edges)
    rows = [_binned(by_patient(log), cuts) for log in study.follow(trials * n, generator(rng))]
    patient, month, state, treat, reward, after = (np.concatenate(column) for column in zip(*rows, strict=True))
    bins = cuts.shape[1] + 1
    return Batch(
        state,
        treat,
        after,
        n_states=bins**4,
        n_actions=2,
        reward=reward,
        episode=patient,
        time=month,
        data_set=None if data_sets is None else patient // n,
        n_data_sets=None if data_sets is None else trials,
        state_names=_state_names(bins),
        action_names=_action_names(model),
        positions=_places(bins),
    )


@dataclass(frozen=True)
class Design:
    """What a table is made of."""

    study: Study
    bins: int = 4
    episodes: int = 100_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", whole("bins", self.bins, 1, at_most=MOST_BINS))
        object.__setattr__(self, "episodes", whole("episodes", self.episodes, 1))


class Census(NamedTuple):
    """Everything that is counted in the large simulation."""

    transition: Floats  # (S, 2, S)
    earned: Floats  # (S, 2)
    miscredited: Floats  # (S, 2)
    frequency: Floats  # (S,)


def _once(build: Callable[[Design, Rng], Answer]) -> Callable[[Design, Rng], Answer]:
    """Remember what was built with a seed; what was built with a generator or with no seed is new each time."""
    remembered = lru_cache(maxsize=16)(build)

    @wraps(build)
    def answer(design: Design, rng: Rng) -> Answer:
        return remembered(design, int(rng)) if isinstance(rng, int | np.integer) else build(design, rng)

    return answer


def _edges(design: Design, rng: Rng) -> Floats:
    """Quantiles of the four numbers, (4, bins - 1), which no penalty can change."""
    model = replace(design.study.model, dose_penalty=0)
    return _quantiles(replace(design, study=replace(design.study, model=model, random_length=False)), rng)


@_once
def _quantiles(design: Design, rng: Rng) -> Floats:
    """Pool the states of patients who are all followed to the end, the first and the last state included."""
    random, _ = generator(rng).spawn(2)
    pool, filled = np.empty((4, design.episodes * (design.study.months + 1))), 0
    for log in design.study.follow(design.episodes, random):
        for states in (log.state[log.month == 0], log.after):
            pool[:, filled : filled + len(states)] = states.T
            filled += len(states)
    levels = np.arange(1, design.bins) / design.bins
    return _fixed(np.quantile(pool[:, :filled], levels, axis=1, overwrite_input=True).T)


@_once
def _table(design: Design, rng: Rng) -> Census:
    """Count what happens to patients who are followed for a random time."""
    cuts = _edges(design, rng)
    _, random = generator(rng).spawn(2)
    study, S = replace(design.study, random_length=True), design.bins**4
    counts = np.zeros(S * 2 * S, dtype=np.int64)
    totals = np.zeros((2, S * 2))
    for log in study.follow(design.episodes, random):
        _, _, state, treat, reward, after = _binned(log, cuts)
        pair = state * 2 + treat
        counts += np.bincount(pair * S + after, minlength=counts.size)
        totals[0] += np.bincount(pair, reward, minlength=S * 2)
        totals[1] += np.bincount(after * 2 + treat, reward, minlength=S * 2)  # the slip: next state for state
    visits = counts.reshape(S, 2, S).sum(axis=-1)
    seen, divisor = visits > 0, np.maximum(visits, 1)
    earned, miscredited = np.where(seen, totals.reshape(2, S, 2) / divisor, 0)
    return Census(
        transition=_fixed(np.where(seen[..., None], counts.reshape(S, 2, S) / divisor[..., None], 1 / S)),
        earned=_fixed(earned),
        miscredited=_fixed(miscredited),
        frequency=_fixed(visits.sum(axis=1) / visits.sum() if seen.any() else np.full(S, 1 / S)),
    )


def _fixed(array: Floats) -> Floats:
    """Make an array read-only, since it is handed out more than once."""
    array.flags.writeable = False
    return array


def _binned(log: StudyLog, cuts: Floats) -> tuple[Integers, Integers, Integers, Integers, Floats, Integers]:
    """A log's columns, with states by number."""
    return log.patient, log.month, _place(log.state, cuts), log.treat, log.reward, _place(log.after, cuts)


def _place(raw: Floats, cuts: Floats) -> Integers:
    """How many edges lie below each number, read as a numeral with C as its first digit."""
    bins = cuts.shape[1] + 1
    place = np.zeros(raw.shape[:-1], dtype=np.int64)
    for i, cut in enumerate(cuts):
        place = place * bins + np.searchsorted(cut, raw[..., i], side="left")
    return place


def _cuts(edges: ArrayLike) -> Floats:
    """Read the edges, (4, bins - 1)."""
    cuts = floats("edges", edges)
    if cuts.ndim != 2 or cuts.shape[0] != 4 or cuts.shape[1] >= MOST_BINS:
        raise InputError(
            f"edges needs a line for each of {', '.join(COLUMNS)}, with at most {MOST_BINS - 1} edges each; "
            f"got the shape {cuts.shape}."
        )
    if (np.diff(cuts, axis=1) < 0).any():
        line, _ = first(np.diff(cuts, axis=1) < 0)
        raise InputError(f"edges must rise along each line; those of {COLUMNS[line]} are {cuts[line].tolist()}.")
    return cuts


def _state_names(bins: int) -> tuple[str, ...]:
    return tuple(
        " ".join(f"{letter}{bin}" for letter, bin in zip(LETTERS, place, strict=True))
        for place in product(range(bins), repeat=4)
    )


def _places(bins: int) -> Positions:
    return Positions(list(product(range(bins), repeat=4)))


def _action_names(model: TumorModel) -> tuple[str, str]:
    return "none", model.rates.name
