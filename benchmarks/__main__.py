"""Run every script of this folder, each in a process of its own: ``python -m benchmarks``."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HELPERS = {"__init__", "__main__", "opponents", "peers", "rewards", "timing"}  # rewards.py measures advice, not time


def main() -> None:
    versions = ", ".join(f"{name} {version(name)}" for name in ("certeq", "numpy", "numba"))
    print(f"{os.cpu_count()} processors, Python {platform.python_version()}, {versions}")
    for script in sorted(path.stem for path in Path(__file__).parent.glob("*.py")):
        if script not in HELPERS:
            print(f"\n## {script}\n", flush=True)
            subprocess.run([sys.executable, "-m", f"benchmarks.{script}"], check=True)


if __name__ == "__main__":
    main()
