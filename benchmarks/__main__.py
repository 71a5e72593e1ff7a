"""Run every script of this folder that measures time, each in a process of its own: ``python -m benchmarks``."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HELPERS = {"__init__", "__main__", "opponents", "peers", "timing"}
ADVICE = {"avoided", "chances", "cuts", "guided", "messy", "rewards", "safe"}  # measure advice, not time; want a seed


def main() -> None:
    versions = ", ".join(f"{name} {version(name)}" for name in ("certeq", "numpy", "numba"))
    print(f"{os.cpu_count()} processors, Python {platform.python_version()}, {versions}")
    failed = []
    for script in sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - HELPERS - ADVICE):
        print(f"\n## {script}\n", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{script}"]).returncode:
            failed.append(script)
    if failed:
        sys.exit(f"These failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
