"""The tumor simulator: chemotherapy of low-grade glioma, month by month (Ribba et al. 2012).

A patient is four numbers: the drug concentration C (one dose adds 1) and the tumor's tissue in mm of mean diameter,
proliferative P, quiescent Q and damaged quiescent D (Ribba's Q_P); the tumor's size is P + Q + D. Each month one
decides whether to give a dose. In continuous time, with rates per month,

    dC/dt = −KDE · C
    dP/dt = λ P (1 − (P + Q + D) / K) + k_DP D − k_PQ P − kill P        kill = γ · KDE · C
    dQ/dt = k_PQ P − kill Q
    dD/dt = kill Q − k_DP D − δ D

``INTEGRATORS`` has three ways to take these through a month. In all of them a dose is given at the month's start.

- ``printed``: the step in the public code of Gottesman et al. (2020) and of the paper's authors. The dose decays before
  it acts, then P, Q, D are replaced one after the other, each from what is already new. So it leaks: D gains kill · Q
  with the new Q, but Q lost it with the old, and a treated tumor shrinks far more than the equations say (monthly TMZ:
  22.6 mm after 10 months, where the equations have 35.1).
- ``simultaneous``: the same, but the tissues are replaced all at once. Nothing leaks.
- ``exact``: the equations themselves, solved.

The reward of a month is how much the tumor shrank, less a penalty. ``penalty_on="dose"`` is what the paper prints:
``dose_penalty`` for each dose, when it is given. ``penalty_on="concentration"`` is what its authors' code computes:
``dose_penalty`` times the concentration at the month's end, so that a dose is paid for again every month until it has
decayed. Then noise sets in: each of the four numbers is multiplied by 1 + ``process_noise`` · z with its own standard
normal z. Nothing is clipped, so numbers below 0 or above K occur. A patient starts with C = D = 0, and with P and Q
multiplied by 1 + ``start_noise`` · z.

Whether one must look ahead depends on the step. The printed one leaks: what a dose kills is gone within the month, so
that a dose pays at once, and the policy that looks no further than a month is nearly the best. With ``simultaneous`` or
``exact`` steps a dose only turns quiescent tissue into damaged tissue, which dies over years: it costs now and pays
later, and the shortsighted policy never treats.

What is uncertain, and what was decided:

- The rates of TMZ are those of the authors' journal follow-up. Gottesman's public code calls itself the TMZ simulator
  but has the PCV numbers; they are here as ``PCV``. Radiotherapy's numbers were not found.
- The noise and the penalty of the paper's own figure are not known. Noise .25, of both kinds, is the follow-up's, whose
  penalty is 10; why 1 is the default here is told in ``certeq.worlds.tumor``.
- Far above K the growth term overshoots, and strong noise (from about .3 on) now and then throws a patient there, on
  the way to infinity within months. A patient of whom a number passes ``LIMIT`` is lost to the trial before that month.
  With the default noise that is rarer than one patient in 100,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Integers, Rng, floats, generator, whole
from certeq.base.errors import InputError
from certeq.worlds.settings import number, one_of

PENALTIES = ("concentration", "dose")  # what ``dose_penalty`` is multiplied by
COLUMNS = ("drug_concentration", "proliferative", "quiescent", "damaged")  # what a state's four numbers are
LIMIT = 10_000.0  # a hundred times K: no tumor
CHUNK = 8_192  # patients simulated together: enough to be quick, few enough to stay in the processor's cache
STEPS = 16  # in a month of the exact equations: good to 1e-8 mm


class Drug(NamedTuple):
    """Rates per month, and the tumor that an average patient comes with."""

    name: str
    elimination: float  # KDE
    growth: float  # λ
    repair: float  # k_DP, from damaged to proliferative
    quiescence: float  # k_PQ, from proliferative to quiescent
    potency: float  # γ
    death: float  # δ, of damaged tissue
    proliferative: float  # P at the start, mm
    quiescent: float  # Q at the start, mm
    capacity: float = 100  # K, the largest size, mm


TMZ = Drug("TMZ", 0.32, 0.114, 0.0045, 0.0226, 0.842, 0.0214, proliferative=0.924, quiescent=42.3)
PCV = Drug("PCV", 0.24, 0.121, 0.0031, 0.0295, 0.729, 0.00867, proliferative=7.13, quiescent=41.2)
DRUGS = {drug.name: drug for drug in (TMZ, PCV)}


def printed(drug: Drug, C: Floats, P: Floats, Q: Floats, D: Floats) -> tuple[Floats, ...]:
    """A month in the printed order: each line uses what the lines above it have made new."""
    size = P + Q + D
    C = (1 - drug.elimination) * C
    kill = drug.potency * drug.elimination * C
    P = P + drug.growth * P * (1 - size / drug.capacity) + drug.repair * D - drug.quiescence * P - kill * P
    Q = Q + drug.quiescence * P - kill * Q
    D = D + kill * Q - drug.repair * D - drug.death * D
    return C, P, Q, D


def simultaneous(drug: Drug, C: Floats, P: Floats, Q: Floats, D: Floats) -> tuple[Floats, ...]:
    """A month by one explicit Euler step of the three tissues, after the dose has decayed as in the printed order."""
    C = (1 - drug.elimination) * C
    kill = drug.potency * drug.elimination * C
    growing = drug.growth * P * (1 - (P + Q + D) / drug.capacity)
    return (
        C,
        P + growing + drug.repair * D - drug.quiescence * P - kill * P,
        Q + drug.quiescence * P - kill * Q,
        D + kill * Q - drug.repair * D - drug.death * D,
    )


def exact(drug: Drug, C: Floats, P: Floats, Q: Floats, D: Floats) -> tuple[Floats, ...]:
    """A month of the differential equations, by Runge-Kutta with a coarse and a fine step and the limit of the two."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # some run away in the equations too
        coarse, fine = (_runge_kutta(drug, C, P, Q, D, steps) for steps in (STEPS // 2, STEPS))
        P, Q, D = (16 * fine - coarse) / 15  # the method's error is of fourth order
    return C * np.exp(-drug.elimination), P, Q, D


def _runge_kutta(drug: Drug, C: Floats, P: Floats, Q: Floats, D: Floats, steps: int) -> Floats:
    """Tissue after a month, (3, ...).

    The fast part, the killing, is solved by hand: by the time t the month's drug has spared the share
    E(t) = exp(−γ C (1 − exp(−KDE t))). What is left to solve is slow: p = P / E, q = Q / E and w = Q + D, with
    p' = (λ (1 − (P + w) / K) − k_PQ) p + k_DP D / E, q' = k_PQ p, w' = k_PQ P − (k_DP + δ) D.
    """

    def spared(t: float) -> Floats:
        return np.asarray(np.exp(-drug.potency * C * -np.expm1(-drug.elimination * t)))

    def slope(y: Floats, E: Floats) -> Floats:
        p, q, w = y
        P, D = E * p, w - E * q
        growing = drug.growth * (1 - (P + w) / drug.capacity) - drug.quiescence
        return np.stack(
            [
                growing * p + drug.repair * D / E,
                drug.quiescence * p,
                drug.quiescence * P - (drug.repair + drug.death) * D,
            ]
        )

    h, y, E = 1 / steps, np.stack([P, Q, Q + D]), spared(0)
    for k in range(steps):
        middle, end = spared((k + 0.5) * h), spared((k + 1) * h)
        one = slope(y, E)
        two = slope(y + h / 2 * one, middle)
        three = slope(y + h / 2 * two, middle)
        four = slope(y + h * three, end)
        y, E = y + h / 6 * (one + 2 * two + 2 * three + four), end
    p, q, w = y
    return np.stack([E * p, E * q, w - E * q])


INTEGRATORS: dict[str, Callable[[Drug, Floats, Floats, Floats, Floats], tuple[Floats, ...]]] = {
    "printed": printed,
    "simultaneous": simultaneous,
    "exact": exact,
}


@dataclass(frozen=True)
class TumorModel:
    """The continuous simulator, for any number of patients at once: a state is ``(..., 4)``, as in ``COLUMNS``."""

    drug: str | Drug = "TMZ"  # a name in ``DRUGS``, or rates of your own
    process_noise: float = 0.25
    start_noise: float = 0.25
    dose_penalty: float = 1.0
    integrator: str = "printed"
    penalty_on: str = "concentration"  # at the month's end, or each "dose"

    def __post_init__(self) -> None:
        if not isinstance(self.drug, Drug):
            one_of("drug", self.drug, DRUGS)
        one_of("integrator", self.integrator, INTEGRATORS)
        one_of("penalty_on", self.penalty_on, PENALTIES)
        for name, most in (("process_noise", 1), ("start_noise", 1), ("dose_penalty", np.inf)):
            object.__setattr__(self, name, number(name, getattr(self, name), 0, most))

    @property
    def rates(self) -> Drug:
        """The drug's numbers."""
        return self.drug if isinstance(self.drug, Drug) else DRUGS[self.drug]

    def start(self, patients: int, rng: Rng = None) -> Floats:
        """First states of new patients, ``(patients, 4)``."""
        state = np.zeros((patients, 4))
        tumor = np.array([self.rates.proliferative, self.rates.quiescent])
        state[:, 1:3] = tumor * (1 + self.start_noise * generator(rng).standard_normal((patients, 2)))
        return state

    def step(self, state: ArrayLike, treat: ArrayLike, rng: Rng = None) -> tuple[Floats, Floats]:
        """Take patients ``(..., 4)`` through a month, with a dose where ``treat`` is 1.

        Gives the next states ``(..., 4)`` and the rewards ``(...)``. The reward is reckoned before the noise sets in.
        """
        before, dose = floats("state", state), floats("treat", treat)
        if before.shape[-1:] != (4,) or dose.shape != before.shape[:-1]:
            raise InputError(
                f"step takes states of shape (..., 4) with one treat for each; got {before.shape} and {dose.shape}."
            )
        if not ((dose == 0) | (dose == 1)).all():
            raise InputError("treat must be 1 where a dose is given and 0 where none is; there is something else.")
        C, P, Q, D = np.moveaxis(before, -1, 0)
        after = np.stack(INTEGRATORS[self.integrator](self.rates, C + dose, P, Q, D), axis=-1)
        shrunk = before[..., 1:].sum(axis=-1) - after[..., 1:].sum(axis=-1)
        reward = shrunk - self.dose_penalty * (dose if self.penalty_on == "dose" else after[..., 0])
        if self.process_noise:
            after *= 1 + self.process_noise * generator(rng).standard_normal(after.shape)
        return after, reward


@dataclass(frozen=True)
class Study:
    """A model, and how its patients are treated and followed: each month a dose, or not, by the toss of a coin."""

    model: TumorModel = TumorModel()
    treatment_probability: float = 0.5
    months: int = 30
    random_length: bool = False  # each patient is followed for 0, 1, ..., ``months`` months, all equally likely

    def __post_init__(self) -> None:
        chance = number("treatment_probability", self.treatment_probability, 0, 1)
        object.__setattr__(self, "treatment_probability", chance)
        object.__setattr__(self, "months", whole("months", self.months, 1))
        if not isinstance(self.random_length, bool):
            raise InputError(f"random_length must be True or False; got {self.random_length!r}.")

    def follow(self, patients: int, random: np.random.Generator) -> Iterator[StudyLog]:
        """Simulate patients 0, 1, ..., a chunk at a time, so that memory stays small however many there are."""
        for first in range(0, max(patients, 1), CHUNK):
            yield self._follow(np.arange(first, min(first + CHUNK, patients)), random)

    def _follow(self, going: Integers, random: np.random.Generator) -> StudyLog:
        state = self.model.start(len(going), random)
        limit = np.full(len(going), self.months)
        if self.random_length:
            limit = random.integers(self.months + 1, size=len(going))
        logs = [StudyLog(going[:0], going[:0], state[:0], going[:0], state[:0, 0], state[:0])]  # no rows yet
        for t in range(self.months):
            keep = limit > t
            going, limit, state = going[keep], limit[keep], state[keep]
            treat = (random.random(len(going)) < self.treatment_probability).astype(np.int64)
            after, reward = self.model.step(state, treat, random)
            kept = (np.abs(after) <= LIMIT).all(axis=-1)  # the others are lost, see the module's docstring
            going, limit, after = going[kept], limit[kept], after[kept]
            logs.append(StudyLog(going, np.full_like(going, t), state[kept], treat[kept], reward[kept], after))
            state = after
        return joined(logs)


class StudyLog(NamedTuple):
    """Rows of a study, one for each patient and month, in columns of one length n."""

    patient: Integers
    month: Integers
    state: Floats  # (n, 4)
    treat: Integers
    reward: Floats
    after: Floats  # (n, 4)


def joined(logs: Iterator[StudyLog] | list[StudyLog]) -> StudyLog:
    """Put logs one after the other."""
    return StudyLog._make(np.concatenate(column) for column in zip(*logs, strict=True))


def by_patient(log: StudyLog) -> StudyLog:
    """Order the rows by patient, which keeps each patient's months in order."""
    order = np.argsort(log.patient, kind="stable")
    return StudyLog._make(column[order] for column in log)


def trial(
    patients: int = 50,
    months: int = 30,
    *,
    treatment_probability: float = 0.5,
    random_length: bool = False,
    drug: str | Drug = "TMZ",
    process_noise: float = 0.25,
    start_noise: float = 0.25,
    dose_penalty: float = 1.0,
    integrator: str = "printed",
    penalty_on: str = "concentration",
    rng: Rng = None,
) -> dict[str, Any]:
    """Simulate a trial and give its rows as columns, the raw data that a data scientist would have.

    One row per patient (numbered from 1) and month (from 0): ``patient``, ``month``, the four numbers of ``COLUMNS``,
    ``treat`` (1: a dose), ``reward``, and the four numbers a month later, ``next_drug_concentration`` and so on. Each
    month a patient is treated with ``treatment_probability``. With ``random_length`` patients are followed for 0 to
    ``months`` months, as in the authors' data; one followed for 0 months leaves no row.
    """
    n = whole("patients", patients, 1)
    model = TumorModel(drug, process_noise, start_noise, dose_penalty, integrator, penalty_on)
    study = Study(model, treatment_probability, months, random_length)
    log = by_patient(joined(study.follow(n, generator(rng))))
    return {
        "patient": log.patient + 1,
        "month": log.month,
        **dict(zip(COLUMNS, log.state.T, strict=True)),
        "treat": log.treat,
        "reward": log.reward,
        **dict(zip((f"next_{name}" for name in COLUMNS), log.after.T, strict=True)),
    }
