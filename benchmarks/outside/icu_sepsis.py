"""ICU-Sepsis (Choudhary, Gupta and Thomas 2024): sepsis treatment, 713 states and 25 actions, made from MIMIC-III.

The package's clinicians (its expert policy) treat patients, and write down the usual rows: state, action, and on the
last row of a patient the reward (1 if the patient lives) and that it was the last. Advice is learned at discount .99
and valued exactly in the package's own model, from its distribution of first states, at .99 and at 1, where a value is
the chance to live.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import certeq
from benchmarks.outside.contest import World, entries, hold
from certeq.data.batch import ENDED, Batch

DEATH, SURVIVAL = 713, 714  # the states after them are the end itself
LONGEST = 1000  # decisions; hardly anybody stays a tenth as long
PUBLISHED = {"random": 0.78, "behavior": 0.78, "optimum": 0.88}  # survival, to the digits of the paper
PROFILES = {"smoke": ((100,), (1, 2)), "paper": ((100, 500, 2_000, 10_000, 50_000), (6, 20))}
OTHERS = ("SPIBB ≤b", "LCB", "DUIPI")  # soft SPIBB takes minutes for each data set here


def world(sizes: tuple[int, ...] = (100,)) -> World:
    """The package's model. Its file is read directly: importing the package brings the old gym along, which warns."""
    found = find_spec("icu_sepsis")
    if found is None or found.origin is None:
        raise SystemExit("ICU-Sepsis is not installed: uv run --group outside ...")
    with np.load(Path(found.origin).parent / "envs" / "assets" / "dynamics.npz") as file:
        rows, gains, start, expert = (file[name] for name in ("tx_mat", "r_mat", "d_0", "expert_policy"))
    S = DEATH
    reward = np.einsum("san,san->sa", rows[:S], gains[:S])
    truth = certeq.MDP(rows[:S, :, :S], reward, 0.99, start=start[:S])
    log = _logbook(rows, start, expert)
    return World("ICU-Sepsis", truth, expert[:S], log, sizes, (0.99, 1.0))


def _logbook(rows: np.ndarray, start: np.ndarray, expert: np.ndarray) -> Callable[[int, np.random.Generator], Batch]:
    """Follow patients until they die or leave: those are states here, and turned into endings in the log."""
    kept = SURVIVAL + 1
    until = rows[:kept, :, :kept].copy()
    until[DEATH:] = 0  # nobody decides there
    behavior = expert[:kept].copy()
    behavior[DEATH:] = 1 / behavior.shape[1]
    clinic = certeq.MDP(until, np.zeros(until.shape[:2]), 1.0, start=start[:kept])

    def log(patients: int, rng: np.random.Generator) -> Batch:
        all_rows = certeq.sampling.trajectories(clinic, patients, LONGEST, behavior=behavior, rng=rng)
        told = all_rows.take(all_rows.state < DEATH)
        last = told.next_state >= DEATH
        return Batch(
            told.state,
            told.action,
            np.where(last, ENDED, told.next_state),
            DEATH,
            told.n_actions,
            reward=(told.next_state == SURVIVAL).astype(float),
            episode=told.episode,
            time=told.time,
        )

    return log


def published(marks: dict[str, tuple[float, ...]]) -> list[str]:
    """What the paper says of survival beside what is found here; raises where the digits differ."""
    said = []
    for name, survival in PUBLISHED.items():
        found = marks[name][1]
        assert round(found, 2) == survival, (name, found, survival)
        said.append(f"{name} {found:.4f} (published {survival:.2f})")
    return said


def run(profile: str, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Hold the contest at each number of patients."""
    sizes, sets = PROFILES[profile]
    here, who = world(sizes), list(entries(OTHERS))
    checked = published(here.landmarks())
    return {"sets": sets, "checked": checked, "held": [hold(here, size, seed, sets, who, tell) for size in sizes]}
