"""Cells of work for the tests of shards, in a module of their own so that other processes can import it."""

import os
import time
from pathlib import Path

import numpy as np


def cells(number=6, **more):
    return [{"place": i, "data_sets": 3 + i, "grid": [0.1, 0.2], **more} for i in range(number)]


def work(cell, rng):
    """A table that depends on the cell's own stream and on nothing else."""
    random, size = np.random.default_rng(rng), cell["data_sets"]
    time.sleep(cell.get("seconds", 0))
    if trace := os.environ.get("TRACE"):
        (Path(trace) / str(os.getpid())).touch()
    return {
        "data_set": np.arange(size),
        "method": np.full(size, f"method {cell['place'] % 2}"),
        "strength": np.where(np.arange(size) % 2 == 0, np.nan, 0.5),
        "loss": random.random(size),
        "good": random.random(size) < 0.5,
    }


def work_with_trouble(cell, rng):
    if cell["place"] == 2:
        raise ArithmeticError("the river is dry")
    return work(cell, rng)


def work_that_dies(cell, rng):
    """Take the whole process down, as the kernel does when memory runs out."""
    if cell["place"] == 2:
        os._exit(7)
    return work(cell, rng)


def forbidden(cell, rng):
    raise AssertionError("this cell was done already")
