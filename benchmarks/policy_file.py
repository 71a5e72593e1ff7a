"""A policy file of 200 MB, declared with msgspec and with pydantic: reading, writing, memory, import and size.

Run with ``uv run --group bench python -m benchmarks.policy_file``. Each contender works in a process of its own, round
after round; decision 0013 rests on this. What checks nothing (json) and all that certeq does stand beside them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import files, version
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import numpy as np

STATES, ACTIONS, ROUNDS = 680_000, 8, 3
PACKAGES = {
    "msgspec": ("msgspec",),
    "pydantic": ("pydantic", "pydantic-core", "annotated-types", "typing-inspection", "typing-extensions"),
}


def policy() -> Any:
    """A policy such as counts of four columns would give."""
    from certeq import Policy
    from certeq.data.recipes import Bins, Labels, Recipe

    rng = np.random.default_rng(0)
    axes = (
        Bins("age", tuple(map(float, range(10, 100, 5)))),
        Bins("pressure", tuple(np.linspace(60, 200, 60).round(1).tolist())),
        Labels("ward", "text", tuple(f"ward {i:03}" for i in range(120))),
        Labels("week", "integer", tuple(range(52))),
    )
    sizes = [axis.size for axis in axes]
    cells = np.stack(np.unravel_index(np.sort(rng.choice(np.prod(sizes), STATES, replace=False)), sizes), axis=1)
    visits = rng.poisson(3, (STATES, ACTIONS))
    values = np.where(visits > 0, rng.normal(size=visits.shape), -np.inf)
    advice = np.where(visits.any(axis=1), values.argmax(axis=1), -1)
    names = tuple(f"treatment {i}" for i in range(ACTIONS))
    return Policy(Recipe(axes, cells), names, advice, visits, values, {"discount": 0.99}, {"rows": int(visits.sum())})


def with_json() -> tuple[Any, Any]:
    return json.loads, json.dumps


def with_msgspec() -> tuple[Any, Any]:
    import msgspec

    from certeq.learning.policy_file import PolicyForm

    return lambda data: msgspec.json.decode(data, type=PolicyForm), msgspec.json.encode


def with_pydantic() -> tuple[Any, Any]:
    from pydantic import BaseModel, ConfigDict, Field
    from typing_extensions import TypedDict

    finite = Annotated[float, Field(allow_inf_nan=False)]
    whole = Annotated[int, Field(ge=0, le=1 << 53)]

    class State(TypedDict):  # lighter than a model, of which there would be one for each state
        name: str
        cell: list[whole]
        visits: list[whole]

    class Recipe(BaseModel):
        version: whole
        axes: list[Any]
        cells: list[list[whole]]

    class File(BaseModel):
        model_config = ConfigDict(defer_build=False)
        format: str
        version: whole
        certeq: str
        actions: Annotated[list[str], Field(min_length=1)]
        horizon: whole | None
        states: list[State]
        advice: list[str | None] | list[list[str | None]]
        action_values: list[list[finite | None]] | list[list[list[finite | None]]]
        recipe: Recipe
        settings: dict[str, Any]
        data: dict[str, Any]

    return File.model_validate_json, File.model_dump_json


def with_certeq() -> tuple[Any, Any]:
    from certeq import Policy

    return Policy.from_json, Policy.to_bytes


CONTENDERS = {"json": with_json, "msgspec": with_msgspec, "pydantic": with_pydantic, "certeq": with_certeq}


def work(name: str, path: str) -> None:
    """Read and write in this process; print seconds of the processor, and megabytes at most."""
    data = Path(path).read_bytes()
    read, write = CONTENDERS[name]()
    start = process_time()
    found = read(data)
    middle = process_time()
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    begin = process_time()
    write(found)
    print(json.dumps([middle - start, process_time() - begin, int(peak.split()[1]) * 1024 / 1e6]))


def importing(name: str) -> float:
    """Seconds of the processor that importing what a form is made of takes, in a process that has NumPy already."""
    what = {"msgspec": "Struct", "pydantic": "BaseModel"}[name]
    code = f"import numpy, time; t = time.process_time(); from {name} import {what}; print(time.process_time() - t)"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))


def installed(name: str) -> float:
    """Megabytes on the disk, with what else it needs."""
    parts = [part.locate() for package in PACKAGES[name] for part in files(package) or []]
    return sum(Path(str(part)).stat().st_size for part in parts if Path(str(part)).is_file()) / 1e6


def main() -> None:
    found: dict[str, list[Any]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.json"
        path.write_bytes(policy().to_bytes())
        size = path.stat().st_size / 1e6
        for _ in range(ROUNDS):
            for name, rounds in found.items():
                command = [sys.executable, "-m", "benchmarks.policy_file", name, str(path)]
                environment = os.environ | {"CERTEQ_MAX_POLICY_BYTES": "1000000000"}
                rounds.append(json.loads(subprocess.check_output(command, env=environment)))
    print(f"{STATES:,} states, {ACTIONS} actions, {size:.0f} MB; processor seconds, median of {ROUNDS} rounds\n")
    print("| | read | write | peak memory, MB | import | installed, MB |\n|---|---:|---:|---:|---:|---:|")
    for name, rounds in found.items():
        read, write, peak = np.median(rounds, axis=0)
        extra = f"{importing(name):.3f} | {installed(name):.1f}" if name in PACKAGES else " | "
        words = f"{name} {version(name)}" if name in PACKAGES else name
        print(f"| {words} | {read:.2f} | {write:.2f} | {peak:.0f} | {extra} |")


if __name__ == "__main__":
    work(*sys.argv[1:]) if len(sys.argv) > 1 else main()
