"""Long campaigns that try to break certeq: kills, faults, hostile files, fuzzing, load. `python -m trust` runs them."""
