"""The comparisons of the folder ``benchmarks`` at a small scale: its modules are beside the tests, not within."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
