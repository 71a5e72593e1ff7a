"""Data to try things on: files that come with the package, and how each was made.

``tumor_trial.csv`` is a trial of 50 patients over 30 months, simulated with ``certeq.worlds.tumor_model`` under the
settings ``MODEL``. Each row is a decision: ``patient``, ``month``, the raw continuous measurements
``drug_concentration``, ``proliferative_mm``, ``quiescent_mm``, ``damaged_mm``, then ``treatment`` ("TMZ" by chance in
one month of four, else "none") and ``reward``. What came of it is in the patient's next row; of the last row of each
patient the outcome is not recorded.

The settings are not those of the paper's table (``certeq.worlds.tumor``), whose printed step lets treated tissue vanish
within the month, so that looking a month ahead is nearly enough. Here the tissues follow the differential equations, a
dose costs 1 when it is given, as the paper prints it, and a month's noise is 5%, not 25%. A dose then pays only over
years: whoever looks one month ahead never treats anyone. Discounted by .99 a month and simulated for 30 / 300 months,
that earns -3 / -26, treating by chance as in the trial 8 / 5, treating every month -6 / -64, and treating only where
little drug is left (below .2) and the living tumor is larger than 2 mm about 11 / 14.

``python -m certeq.worlds.examples`` makes the files anew; with a directory, it makes them there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from certeq.base.arrays import Floats, Rng, generator
from certeq.base.errors import unknown

SEED = 2023
TREATED = 0.25  # chance of a dose, month by month
MEASURED = ("drug_concentration", "proliferative_mm", "quiescent_mm", "damaged_mm")
MODEL: dict[str, Any] = {"integrator": "exact", "process_noise": 0.05, "penalty_on": "dose", "dose_penalty": 1.0}


def path(name: str = "tumor_trial.csv") -> Path:
    """Where an example lies on disk."""
    if name not in EXAMPLES:
        raise unknown("example", name, EXAMPLES)
    return Path(str(files(__name__).joinpath(name)))


def write(directory: Path | None = None) -> list[Path]:
    """Make every example anew, in its place in the package or in another directory."""
    places = [path(name) if directory is None else directory / name for name in EXAMPLES]
    for place in places:
        place.write_text(EXAMPLES[place.name](), encoding="utf-8", newline="\n")
    return places


def tumor_trial() -> str:
    """Simulate the text of ``tumor_trial.csv``."""
    columns = tumor_columns(SEED)
    lines = [columns, *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def tumor_columns(rng: Rng) -> dict[str, list[Any]]:
    """Simulate the columns of a trial of this design."""
    from certeq.worlds.tumor_model import trial  # looking for a file needs no simulator

    rows = trial(treatment_probability=TREATED, rng=rng, **MODEL)
    return {
        "patient": rows["patient"].tolist(),
        "month": rows["month"].tolist(),
        "drug_concentration": _rounded(rows["drug_concentration"]),
        "proliferative_mm": _rounded(rows["proliferative"]),
        "quiescent_mm": _rounded(rows["quiescent"]),
        "damaged_mm": _rounded(rows["damaged"]),
        "treatment": ["TMZ" if dose else "none" for dose in rows["treat"]],
        "reward": _rounded(rows["reward"]),
    }


def tumor_value(treat: Callable[[dict[str, Floats]], Floats], months: int, *, patients: int = 2000, rng: Rng) -> float:
    """What patients earn in so many months, discounted by .99, treated with the chance that their measurements get."""
    from certeq.worlds.tumor_model import TumorModel

    model, random = TumorModel(**MODEL), generator(rng)
    state, total = model.start(patients, random), 0.0
    for month in range(months):
        chance = treat(dict(zip(MEASURED, state.T, strict=True)))
        state, reward = model.step(state, random.random(patients) < chance, random)
        total += 0.99**month * float(reward.mean())
    return total


def _rounded(values: Floats) -> list[float]:
    """Four decimals, and no -0.0: fine enough for any use, coarse enough to be the same on every machine."""
    return [round(value, 4) + 0.0 for value in values.tolist()]


EXAMPLES: dict[str, Callable[[], str]] = {"tumor_trial.csv": tumor_trial}
