"""The paper's figures, one module each.

A figure module has

- ``TITLE``, ``CLAIM``: what it is, and what the paper says with it, in our words;
- ``SETTINGS``: ``{"smoke": {...}, "paper": {...}}``, plain values; ``data_sets`` is what ``--data-sets`` sets;
- ``cells(settings) -> list``: the work, as plain descriptions (see ``experiments.shards``);
- ``work(cell, rng) -> columns``: one cell's table; a module-level function, so that any worker can run it;
- ``holds(table) -> list[Verdict]`` and ``draw(table) -> matplotlib figure``: they read the table, nothing else.

It may also have

- ``ALT``: what the picture shows, for those who cannot see it (the title and the claim stand in for it);
- ``NOTES``: a few sentences on how it was done here, such as settings that the paper leaves open;
- ``VALUES``: the columns that were measured, where that is not just ``loss``. A table too large for a CSV is summarized
  over data sets: means and 95% half widths of these columns for each combination of the others.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from certeq.base.errors import unknown

FIGURES: dict[str, str] = {  # in the paper's order
    name: f"{__name__}.{name}"
    for name in (
        "heat_map",
        "implied_prior",
        "diagrams",
        "equal_counts",
        "loss_by_strength",
        "rows_per_pair",
        "expert_prior",
        "tumor",
        "tumor_sweep",
        "epsilon_greedy",
        "controlled",
        "q_learning",
        "follow_up",
    )
}
STUDIES: dict[str, str] = {  # ours, beyond the paper: made like figures, but only when asked for by name
    name: f"{__name__}.{name}" for name in ("study", "numeric", "coverage")
}


def figure(name: str) -> ModuleType:
    """Load a figure or a study by name."""
    homes = FIGURES | STUDIES
    if name not in homes:
        raise unknown("figure", name, homes)
    return importlib.import_module(homes[name])
