"""Hypothesis settings for the whole suite; in CI every run draws the same examples.

``HYPOTHESIS_PROFILE=thorough`` draws many more, for an occasional long look.
"""

import os
import signal
from importlib.util import find_spec

import pytest

if find_spec("certeq") is None or find_spec("hypothesis") is None:  # it is some other pytest, found on the path
    pytest.exit("certeq is not installed beside this pytest. Run: uv run --group test pytest", returncode=4)

from hypothesis import settings

from certeq.questions import again, asking

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line has it: with more, last digits may differ

settings.register_profile("default", deadline=None, max_examples=30, derandomize=bool(os.environ.get("CI")))
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell lets what it runs in the background ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

# models that tell how sure an action is, and how many for one learned data set: with all, tests take minutes more
asking.DRAWS, again.EACH = 40, 20
