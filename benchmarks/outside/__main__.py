"""Run a contest and keep what it found: ``python -m benchmarks.outside NAME --profile smoke|paper --seed N``."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

CONTESTS = {
    "icu_sepsis": ("certeq", "numpy", "icu-sepsis"),
    "gymnasium_tables": ("certeq", "numpy", "gymnasium"),
    "spibb_suite": ("certeq", "numpy"),
    "deep": ("certeq", "numpy", "d3rlpy", "torch"),
    "off_policy": ("certeq", "numpy", "scope-rl", "offline-rl-ope", "torch"),
}
RESULTS = Path(__file__).parent / "results"


def main(words: list[str]) -> None:
    """Read the command and run the contest."""
    said = argparse.ArgumentParser(prog="python -m benchmarks.outside", description=__doc__)
    said.add_argument("name", choices=sorted(CONTESTS))
    said.add_argument("--profile", choices=("smoke", "paper"), default="smoke")
    said.add_argument("--seed", type=int, default=2)
    said.add_argument("--out", type=Path, default=RESULTS, help="folder for NAME.json")
    asked = said.parse_args(words)
    begin = time.perf_counter()
    found = run(asked.name, asked.profile, asked.seed)
    about = {
        "command": f"python -m benchmarks.outside {asked.name} --profile {asked.profile} --seed {asked.seed}",
        "seed": asked.seed,
        "profile": asked.profile,
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in CONTESTS[asked.name]},
        "processors": os.cpu_count(),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"{asked.name}.json").write_text(json.dumps(about | found, ensure_ascii=False) + "\n", "utf-8")


def run(name: str, profile: str, seed: int) -> dict[str, Any]:
    """What a contest found, as plain values."""
    return importlib.import_module(f"benchmarks.outside.{name}").run(profile, seed, _tell)


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main(sys.argv[1:])
