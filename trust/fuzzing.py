"""Fuzzing: whatever is given, the answer is a result or an `InputError`, and never anything else.

Each target takes one drawn value and tries it. Hypothesis draws the values; the number of tries is counted.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from certeq import Counts, InputError, Policy, learn, plan, read, solve, tally
from certeq.cli.options import value
from certeq.data.counting import Tallied
from certeq.worlds import examples

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import strategies as drawn

TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {}


def target(name: str, strategy: st.SearchStrategy[Any]) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register what is tried with values of a strategy."""

    def keep(attempt: Callable[[Any], None]) -> Callable[[Any], None]:
        TARGETS[name] = (strategy, attempt)
        return attempt

    return keep


@cache
def policy_json() -> Any:
    """A policy as plain values: labels, flags and bins."""
    rows = {
        "episode": [1] * 8,
        "time": list(range(8)),
        "ward": list("ABABBABA"),
        "flag": [True, False] * 4,
        "age": [40.5, 61.5, 39.5, 70.5, 45.5, 66.5, 41.5, 60.5],
        "action": list("xyxxyyxy"),
        "reward": [0, 1, 0, 1, 1, 0, 1, 0],
    }
    return json.loads(json.dumps(learn(read(rows, bins={"age": "edges:50"})).policy.to_json()))


@cache
def counts_json() -> Any:
    """A file of counts as plain values: what it says about itself, and its arrays as lists."""
    from trust.hostile.counts import sound

    about, arrays = sound()
    return [about, {name: array.tolist() for name, array in arrays.items()}]


def counts_file(about: Any, arrays: Any) -> bytes:
    """A file of counts with these values, as far as they are arrays of numbers at all."""
    from certeq.data.counting.tallied import ARRAYS
    from trust.hostile.counts import archive, text

    given_: dict[str, np.ndarray] = {"about": text(json.dumps(about))}
    for name, values in arrays.items() if isinstance(arrays, dict) else ():
        try:
            given_[name] = np.array(values, dtype=ARRAYS.get(name))
        except (ValueError, TypeError, OverflowError):
            given_[name] = np.zeros(0)
    return archive(given_)


@cache
def files() -> dict[str, bytes]:
    """Sound files of every kind, small enough that a few wrong bytes matter."""
    import polars as pl

    frame = pl.read_csv(examples.path()).head(60)
    found = {"rows.csv": frame.write_csv().encode(), "policy.json": json.dumps(policy_json()).encode()}
    for name, write in (
        ("rows.parquet", "write_parquet"),
        ("rows.arrow", "write_ipc"),
        ("rows.feather", "write_ipc_stream"),
    ):
        file = io.BytesIO()
        getattr(frame, write)(file)
        found[name] = file.getvalue()
    found["rows.jsonl"] = frame.write_ndjson().encode()
    file = io.BytesIO()
    np.save(file, np.eye(4))
    found["array.npy"] = file.getvalue()
    with tempfile.TemporaryDirectory() as place:
        pl.DataFrame({"s": [0, 1, 0], "a": [0, 0, 1], "r": [1.0, 2.0, 0.5], "n": [1, 0, 1]}).write_parquet(
            Path(place) / "x.parquet"
        )
        from certeq.data.counting import count

        found["counts.npz"] = count(
            Path(place) / "x.parquet", state="s", action="a", reward="r", next_state="n"
        ).to_bytes()
        from trust.hostile.minari import sound

        found["main_data.hdf5"] = (sound(Path(place)) / "main_data.hdf5").read_bytes()
    return found


def open_file(name: str, content: bytes) -> None:
    """Open a file as whoever gets it would."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / name
        if name == "main_data.hdf5":
            from trust.hostile.minari import sound

            path = sound(Path(place)) / name
        path.write_bytes(content)
        if name == "policy.json":
            Policy.load(path)
        elif name == "counts.npz":
            Tallied.load(path)
        elif name == "array.npy":
            value(str(path))
        else:
            read(path.parents[1] if name == "main_data.hdf5" else path)


@target("tables", drawn.tables())
def _(table: Any) -> None:
    learn(read(table))


@target("tables with other settings", st.tuples(drawn.tables(), drawn.learning_settings()))
def _(given_: Any) -> None:
    table, chosen = given_
    learn(read(table), **chosen)


@target("text files", st.tuples(st.sampled_from(["rows.csv", "rows.tsv", "rows.jsonl", "rows.txt"]), drawn.csv_texts()))
def _(given_: Any) -> None:
    open_file(*given_)


@target("policy files with a few places spoiled", st.deferred(lambda: drawn.spoiled(policy_json())))
def _(spoiled: Any) -> None:
    policy = Policy.from_json(spoiled)
    policy.apply({name: ["A", "B", 45, None, True] for name in policy.recipe.column_names})
    policy.runner_up()
    Policy.from_json(json.loads(json.dumps(policy.to_json())))


def _spoiled_counts() -> st.SearchStrategy[Any]:
    """What a file of counts says about itself or its arrays, either of them spoiled."""
    about, arrays = counts_json()
    sound = st.just((about, arrays))
    return sound | st.tuples(drawn.spoiled(about), st.just(arrays)) | st.tuples(st.just(about), drawn.spoiled(arrays))


@target("files of counts with a few places spoiled", st.deferred(_spoiled_counts))
def _(spoiled: Any) -> None:
    about, arrays = spoiled
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "counts.npz"
        path.write_bytes(counts_file(about, arrays))
        found = Tallied.load(path)
    found.to_bytes()
    learn(found, reward=np.zeros(found.counts.visits.shape) if found.rewards is None else None)


@target("policies applied to any rows", st.tuples(drawn.tables(), st.lists(drawn.SCALARS, max_size=5)))
def _(given_: Any) -> None:
    table, column = given_
    policy = Policy.from_json(policy_json())
    policy.apply(dict.fromkeys(policy.recipe.column_names, column))
    policy.apply(table | dict.fromkeys(policy.recipe.column_names, column))


DISCOUNTS = st.floats(0, 1) | drawn.SCALARS


@target("counts", st.tuples(drawn.arrays_of_any_kind(3, 2, 3), drawn.arrays_of_any_kind(3, 2), DISCOUNTS))
def _(given_: Any) -> None:
    counts, reward, discount = given_
    found = Counts(counts)
    plan(found, reward if np.ndim(reward) >= 2 else np.zeros(found.visits.shape), discount)


CODES = st.integers(0, 4) | drawn.NUMBERS
COLUMNS = st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 3))


@target("rows of three columns", COLUMNS | st.tuples(*[st.lists(CODES, max_size=6)] * 3))
def _(given_: Any) -> None:
    tally(*given_)


SOUND = st.just((np.full((3, 2, 3), 1 / 3), np.ones((3, 2)), 0.9))


@target("worlds", SOUND | st.tuples(drawn.arrays_of_any_kind(3, 2, 3), drawn.arrays_of_any_kind(3, 2), DISCOUNTS))
def _(given_: Any) -> None:
    rows, reward, discount = given_
    solve(rows, reward, discount, max_iterations=50)


@target("words for a setting", st.text(max_size=30) | st.sampled_from(["x.npy", "1e999", "0x10", "9" * 5000]))
def _(text: Any) -> None:
    value(text)


@target("files with a few bytes changed", st.tuples(st.integers(0, 9), drawn.SEEDS))
def _(given_: Any) -> None:
    which, number = given_
    name = sorted(files())[which % len(files())]
    content, rng = bytearray(files()[name]), np.random.default_rng(number)
    if rng.random() < 0.2:
        content = content[: int(rng.integers(len(content)))]
    for at in rng.integers(max(len(content), 1), size=int(rng.integers(1, 6))) if content else ():
        content[at] = rng.integers(256)
    open_file(name, bytes(content))


@dataclass(frozen=True)
class Found:
    """What came of a target."""

    name: str
    tried: int
    refused: int
    failure: str  # the smallest value that went wrong, and how; empty where none did


def fuzz(name: str, examples_: int, root: int = 0) -> Found:
    """Try a target with so many values."""
    strategy, attempt = TARGETS[name]
    tried = refused = 0

    @seed(root)
    @settings(max_examples=examples_, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def run(drawn_value: Any) -> None:
        nonlocal tried, refused
        tried += 1
        try:
            quietly(attempt, drawn_value)
        except InputError:
            refused += 1

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run()
    except Exception as error:  # whatever it is, it should not have come this far
        notes = " ".join(getattr(error, "__notes__", []))
        return Found(name, tried, refused, f"{type(error).__name__}: {error} {notes}"[:2000])
    return Found(name, tried, refused, "")


def quietly(attempt: Callable[[Any], None], drawn_value: Any) -> None:
    """A warning that people would see is a failure as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attempt(drawn_value)
