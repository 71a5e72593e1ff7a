"""Memory does not depend on the number of rows: shown under a limit that the rows themselves would break."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are told by Linux"),
]

MORE = 64 << 20  # bytes that may be added once everything is loaded and has been used once
ROWS = 8_000_000  # of 32 bytes each, four times the limit
LIMITED = """
import resource, sys
from pathlib import Path
import polars as pl
from certeq.data.counting import count

def memory(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10

def counted(path):
    return len(count(path, piece_rows=1 << 17, threads=2))

def held(path):
    return pl.read_parquet(path).height

work, more, warm, path = globals()[sys.argv[1]], int(sys.argv[2]), *sys.argv[3:]
work(warm)
limit = memory("VmData") + more
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
print(work(path), memory("VmHWM"))
"""


def write(path, rows):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "state": rng.integers(0, 100, rows),
            "action": rng.integers(0, 3, rows),
            "reward": rng.random(rows),
            "next_state": rng.integers(0, 100, rows),
        }
    )
    frame.write_parquet(path, row_group_size=1 << 16, compression="lz4")
    return path


def run(work, *paths):
    command = [sys.executable, "-c", LIMITED, work, str(MORE), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_rows_that_do_not_fit_into_memory_are_counted_within_a_limit(tmp_path):
    warm, few, many = (write(tmp_path / f"{n}.parquet", n) for n in (1 << 18, ROWS // 4, ROWS))
    peaks = []
    for path, rows in ((few, ROWS // 4), (many, ROWS)):
        done = run("counted", warm, path)
        assert done.returncode == 0, done.stderr
        number, peak = map(int, done.stdout.split())
        assert number == rows
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 32 << 20, peaks  # the further rows have 192 MB
    assert run("held", warm, many).returncode != 0, "the limit is one that matters"
