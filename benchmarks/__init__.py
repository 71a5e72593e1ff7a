"""Each workload against its peers, as ratios within one run: ``python -m benchmarks``, or one script by name."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: matrices are small, and one thread is compared
