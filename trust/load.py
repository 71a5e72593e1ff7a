"""Load: very many calls in one process, many processes at once, a cluster that is used again and again.

``python -m trust.load 1000`` is the process that learns and says how much memory it has after each step.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trust.running import certeq, end, start

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Memory:
    """Memory of a process over its calls."""

    calls: list[int]
    bytes: list[int]

    def growth(self) -> float:
        """Bytes for each call once it is warm: the slope over the last three quarters, which hardly sees one jump."""
        late = [i for i, call in enumerate(self.calls) if call >= self.calls[-1] / 4]
        x, y = np.array(self.calls)[late], np.array(self.bytes)[late]
        slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x))]
        return float(np.median(slopes))

    def later(self) -> int:
        """Bytes at the end above those after a quarter of the calls."""
        quarter = next(i for i, call in enumerate(self.calls) if call >= self.calls[-1] / 4)
        return self.bytes[-1] - self.bytes[quarter]


def learn_often(calls: int) -> Memory:
    """Read, learn, advise and write so often, in one process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "trust.load", str(calls)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return Memory(told["calls"], told["bytes"])


def _learn_often(calls: int) -> Memory:
    from certeq import Policy, learn, read
    from certeq.base.texts import json_text
    from certeq.worlds import examples

    seen = Memory([], [])
    every = max(1, calls // 40)
    for call in range(1, calls + 1):
        learned = learn(read(examples.path()), discount=0.9 + 0.09 * (call % 7) / 7)
        policy = Policy.from_json(json.loads(json_text(learned.policy.to_json())))
        policy.act({name: np.zeros(3) for name in policy.recipe.column_names})
        if call % every == 0:
            gc.collect()
            seen.calls.append(call)
            seen.bytes.append(_resident())
    return seen


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def apply_at_once(folder: Path, processes: int) -> list[str]:
    """Let many processes advise on one policy at the same time: in files of their own, and all in one place."""
    problems = []
    for name, place in (("own", "out/own-{}.csv"), ("shared", "out/shared.csv")):
        words = ("apply", "policy.json", "rows.csv", "--force", "--out")
        alone = certeq(*words, "alone.csv", cwd=folder)
        running = [start((*words, place.format(i)), folder) for i in range(processes)]
        for ended in map(end, running):
            if ended.code != 0 or ended.err:
                problems.append(f"{name}: {ended}")
        right = (folder / "alone.csv").read_bytes()
        written = sorted((folder / "out").glob(f"{name}*.csv"))
        if alone.code or len(written) != (processes if name == "own" else 1):
            problems.append(f"{name}: {len(written)} files were written")
        problems += [f"{path.name} differs" for path in written if path.read_bytes() != right]
        problems += [f"{path.name} is left" for path in (folder / "out").glob(".*")]
    return problems


def soak(folder: Path, rounds: int) -> tuple[list[str], dict[str, float]]:
    """Count and reproduce on one cluster again and again; results stay the same bytes, and its memory stays flat."""
    problems: list[str] = []
    _rows(folder / "rows")
    certeq("count", "rows", "--out", "here.npz", "--force", cwd=folder)
    certeq("reproduce", "diagrams", "--out", "here", cwd=folder)
    with cluster(folder) as (address, processes):
        used: dict[int, list[int]] = {process: [] for process in processes}
        for turn in range(rounds):
            for words in (
                ("count", "rows", "--out", "there.npz", "--force"),
                ("reproduce", "diagrams", "--out", "there", "--force"),
            ):
                ended = certeq(*words, "--scheduler", address, cwd=folder)
                if ended.code or ended.crashed:
                    problems.append(f"round {turn + 1}: {ended}")
            for name in ("{}.npz", "{}/diagrams/table.parquet"):
                here, there = (folder / name.format(place) for place in ("here", "there"))
                if not there.exists() or here.read_bytes() != there.read_bytes():
                    problems.append(f"round {turn + 1}: {there.name} is not what it is without a cluster")
            for process, sizes in used.items():
                sizes.append(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    growth = {str(i): Memory(list(range(1, rounds + 1)), sizes).growth() for i, sizes in enumerate(used.values())}
    return problems, growth


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """A scheduler and two workers on this machine; its address, and the numbers of the worker processes."""
    sys.path.insert(0, str(ROOT / "tests"))
    from clusters import two_workers

    with two_workers(folder, ROOT) as (address, workers):
        yield address, [worker.pid for worker in workers]


def _rows(folder: Path) -> None:
    """Parquet files to count."""
    import polars as pl

    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for part in range(4):
        n = 200_000
        columns = {
            "state": rng.integers(50, size=n),
            "action": rng.choice(["a", "b", "c"], size=n),
            "reward": rng.normal(size=n),
            "next_state": rng.integers(50, size=n),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{part}.parquet")


if __name__ == "__main__":
    found = _learn_often(int(sys.argv[1]))
    print(json.dumps({"calls": found.calls, "bytes": found.bytes}))
