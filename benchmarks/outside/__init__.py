"""Worlds, logs and methods that others made, and how certeq fares among them; see docs/outside.md.

``uv run --group outside python -m benchmarks.outside NAME --profile paper --seed 2`` runs one of the contests and keeps
what it found in ``results/NAME.json``; ``python docs/make_outside.py`` writes the page from these files.
"""
