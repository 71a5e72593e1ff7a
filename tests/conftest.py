"""Hypothesis settings for the whole suite; in CI every run draws the same examples."""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=50, derandomize=bool(os.environ.get("CI")))
settings.load_profile("default")
