"""What the default is worth on messy tables with a known truth, beside other settings in hindsight.

``uv run python -m benchmarks.messy SEED [TABLE ...]`` prints, for each table of `certeq.worlds.messy`, the value of
what people did, of the default, and of other cuts, regularizers and rules: in the simulator, on new cases, at the
discount of the table. With ``right`` after the seed, only the columns that matter are named as the state.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import certeq
from certeq.base.errors import InputError
from certeq.worlds.messy import MESSY

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    **{f"{n} cells": {"bins": n} for n in (2, 3, 4)},
    "evidence": {"regularizer": "evidence"},
    "none": {"regularizer": "none"},
    "discount .9": {"regularizer": "discount", "planning_discount": 0.9},
    "uniform prior 5": {"regularizer": "uniform_prior", "magnitude": 5.0},
    "any share": {"min_share": 0.0},
}
RIGHT = {"clinic": ["sbp", "lactate"], "app": ["energy", "trust"], "machine": ["vibration_mm_s", "temperature_c"]}


def main(seed: int, tables: list[str], right: bool) -> None:
    for name in tables or list(MESSY):
        world = MESSY[name]
        table, reading = world.table(seed), world.said
        if right:
            reading["state"] = RIGHT[name]
        print(f"{name}: {len(table[reading['action']]):,} rows; what people did {world.value(None):.4f}", flush=True)
        for words, setting in SETTINGS.items():
            rules = {"discount": world.discount} | setting
            bins = rules.pop("bins", None)
            begin = time.perf_counter()
            try:
                batch = certeq.read(table, bins=bins, **reading)
                learned = certeq.learn(batch, draws=0, **rules)
            except InputError as error:
                print(f"  {words:16} refused: {str(error)[:90]}", flush=True)
                continue
            worth, seconds = world.value(learned.policy), time.perf_counter() - begin
            print(f"  {words:16} {worth:9.4f} in {batch.n_states:6,} states ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    words = sys.argv[2:]
    main(int(sys.argv[1]), [word for word in words if word != "right"], "right" in words)
