"""A table of real shapes: each format, each layout and each type of label, read end to end, gives the same counts.

The three are tried in pairs: every two of them meet, but not every three.
"""

import datetime
import gzip
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certeq.data.counts import tally
from certeq.data.reading import columns, read

RNG = np.random.default_rng(5)
STATES, ACTIONS = 4, 2
EPISODES = [(7, True), (5, False), (6, True), (2, False), (9, False)]  # rows, and whether the last one ends for good

LABELS = {
    "text": ["high", "low", "middle", "out"],
    "integer": [-3, 0, 2, 10],
    "boolean": [False, True],
    "whole floats": [0.0, 1.0, 2.0, 7.0],
    "date": [
        datetime.date(2023, 12, 31),
        datetime.date(2024, 1, 1),
        datetime.date(2024, 2, 29),
        datetime.date(2025, 1, 1),
    ],
    "datetime": [datetime.datetime(2024, 1, d, 12 * (d % 2)) for d in range(1, 5)],
}


def world(kind):
    """A long table as lists, and what counting it by hand gives."""
    labels = LABELS[kind]
    S = len(labels)
    table = {"patient": [], "week": [], "state": [], "action": [], "reward": [], "done": []}
    counts, ended = np.zeros((S, ACTIONS, S), dtype=int), np.zeros((S, ACTIONS), dtype=int)
    for e, (n, ends) in enumerate(EPISODES):
        s, a = RNG.integers(S, size=n), RNG.integers(ACTIONS, size=n)
        s[: min(n, S)] = RNG.permutation(S)[: min(n, S)]
        for t in range(n):
            table["patient"].append(f"p{9 - e}")
            table["week"].append(3 + 2 * t)
            table["state"].append(labels[s[t]])
            table["action"].append(["placebo", "drug"][a[t]])
            table["reward"].append(0.25 * t - e)
            table["done"].append(ends and t == n - 1)
            b = 1 - a[t]  # 'drug' comes before 'placebo'
            if t < n - 1:
                counts[s[t], b, s[t + 1]] += 1
            elif ends:
                ended[s[t], b] += 1
    return table, counts, ended


WORLDS = {kind: world(kind) for kind in LABELS}


def explicit(table):
    """The same rows with their next states beside them; the last row of a cut episode has none, so it is gone."""
    rows = list(zip(*table.values(), strict=True))
    wide = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        follows = after is not None and after[0] == row[0]
        if follows or row[5]:
            wide.append((*row, after[2] if follows else None))
    return dict(zip([*table, "next_state"], map(list, zip(*wide, strict=True)), strict=True))


def shuffled(table):
    order = np.random.default_rng(1).permutation(len(table["state"]))
    return {name: [values[i] for i in order] for name, values in table.items()}


LAYOUTS = {
    "long": dict,
    "long, shuffled": shuffled,
    "explicit": explicit,
    "explicit, shuffled": lambda t: shuffled(explicit(t)),
}


def frame(table):
    return pl.DataFrame(table)


def file(write, name):
    def make(table, tmp_path):
        path = tmp_path / name
        write(table, path)
        return path

    return make


def text_file(table, path, separator=","):
    data = frame(table).write_csv(separator=separator).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def spaced_csv(table, path):
    lines = [
        ", ".join(table),
        *(", ".join("" if v is None else str(v) for v in row) for row in zip(*table.values(), strict=True)),
    ]
    path.write_text("﻿" + "\r\n".join(lines) + "\r\n\r\n", encoding="utf-8")


CONTAINERS = {
    "csv": file(text_file, "rows.csv"),
    "csv.gz": file(text_file, "rows.csv.gz"),
    "tsv": file(lambda t, p: text_file(t, p, "\t"), "rows.tsv"),
    "csv with semicolons": file(lambda t, p: text_file(t, p, ";"), "rows.CSV"),
    "csv with spaces, BOM and blank lines": file(spaced_csv, "rows.csv"),
    "parquet": file(lambda t, p: frame(t).write_parquet(p), "rows.parquet"),
    "arrow": file(lambda t, p: frame(t).write_ipc(p), "rows.arrow"),
    "arrow stream": file(lambda t, p: frame(t).write_ipc_stream(p), "rows.arrow"),
    "feather": file(lambda t, p: frame(t).write_ipc(p, compression="lz4"), "rows.feather"),
    "jsonl": file(lambda t, p: frame(t).write_ndjson(p), "rows.jsonl"),
    "polars": lambda t, _: frame(t),
    "polars lazy": lambda t, _: frame(t).lazy(),
    "pandas": lambda t, _: pd.DataFrame(t),
    "pandas objects": lambda t, _: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in t.items()}),
    "pandas nullable": lambda t, _: pd.DataFrame(t).convert_dtypes(),
    "pyarrow": lambda t, _: pa.table(t),
    "lists": lambda t, _: t,
    "arrays": lambda t, _: {k: np.array(v) for k, v in t.items()},
}
TEXT_ONLY = {
    "pandas category": lambda t, _: pd.DataFrame(t).astype(
        {k: "category" for k in t if "state" in k or k in ("action", "patient")}
    ),
    "polars categorical": lambda t, _: frame(t).with_columns(pl.col(pl.String).cast(pl.Categorical)),
    "polars enum": lambda t, _: frame(t).with_columns(
        pl.col("^.*state$").cast(pl.Enum(["unused", "out", "middle", "low", "high"]))
    ),
    "pyarrow dictionary": lambda t, _: pa.table(
        {k: pa.array(v).dictionary_encode() if isinstance(v[0], str) else v for k, v in t.items()}
    ),
}


def check(batch, counts, ended, kind):
    found = tally(batch, sparse=False)
    np.testing.assert_array_equal(found.transitions, counts)
    np.testing.assert_array_equal(found.ended, ended)
    assert batch.action_names == ("drug", "placebo")
    assert batch.n_states == len(LABELS[kind])
    order = np.lexsort((batch.time, batch.episode))
    np.testing.assert_array_equal(order, np.arange(len(batch)))


PAIRS = [  # each container with each kind, the layouts in turn
    (container, list(LAYOUTS)[(c + k) % len(LAYOUTS)], kind)
    for c, container in enumerate(CONTAINERS)
    for k, kind in enumerate(LABELS)
]


def test_every_two_of_format_layout_and_label_meet():
    containers, layouts, kinds = zip(*PAIRS, strict=True)
    for some, others, expected in (
        (containers, layouts, itertools.product(CONTAINERS, LAYOUTS)),
        (containers, kinds, itertools.product(CONTAINERS, LABELS)),
        (layouts, kinds, itertools.product(LAYOUTS, LABELS)),
    ):
        assert set(zip(some, others, strict=True)) == set(expected)


@pytest.mark.parametrize(("container", "layout", "kind"), PAIRS)
def test_each_format_layout_and_label_gives_the_same_counts(container, layout, kind, tmp_path):
    table, counts, ended = WORLDS[kind]
    batch = read(CONTAINERS[container](LAYOUTS[layout](table), tmp_path))
    check(batch, counts, ended, kind)
    rows = sum(n - (not ends) for n, ends in EPISODES)
    assert len(batch) == rows
    assert batch.reward.sum() == sum(
        0.25 * t - e for e, (n, ends) in enumerate(EPISODES) for t in range(n - (not ends))
    )
    dropped = {} if "explicit" in layout else {"last row of an episode without a next state": 3}
    if "blank lines" in container:
        dropped |= {"blank row": 1}
    assert batch.dropped == dropped
    assert "blank lines" in container or batch.n_rows_read == len(LAYOUTS[layout](table)["state"])
    assert (batch.fingerprint is not None) == (len(CONTAINERS[container].__code__.co_freevars) > 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("container", TEXT_ONLY)
def test_categoricals_give_the_same_counts(container, layout, tmp_path):
    table, counts, ended = WORLDS["text"]
    batch = read(TEXT_ONLY[container](LAYOUTS[layout](table), tmp_path))
    check(batch, counts, ended, "text")
    assert batch.state_names == ("high", "low", "middle", "out")


@pytest.mark.parametrize("kind", [kind for kind in LABELS if kind != "datetime"])  # text files keep what is written
def test_names_of_states_do_not_depend_on_the_container(kind, tmp_path):
    table = WORLDS[kind][0]
    assert len({read(make(table, tmp_path)).state_names for make in CONTAINERS.values()}) == 1


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_recipe_of_one_container_maps_the_rows_of_every_other(container, tmp_path):
    for kind in ("text", "integer", "boolean", "whole floats", "date"):
        table = WORLDS[kind][0]
        learned = read(table)
        states = learned.recipe.encode(columns(CONTAINERS[container](table, tmp_path)))
        known = np.array([learned.recipe.names.index(name) for name in shown(table["state"])])
        np.testing.assert_array_equal(states[: len(known)], known)


def shown(values):
    return [str(v).lower() if isinstance(v, bool) else str(int(v)) if isinstance(v, float) else str(v) for v in values]


def test_several_state_columns_in_both_layouts_give_the_same_counts():
    rng = np.random.default_rng(0)
    long = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(30), 10),
            "visit": np.tile(np.arange(10), 30),
            "pain": rng.choice(["mild", "severe"], 300),
            "age": rng.normal(60, 9, 300),
            "arm": rng.choice(["a", "b"], 300),
            "score": rng.normal(size=300),
        }
    )
    wide = long.copy()
    wide[["age_next", "next_pain"]] = long.groupby("subject")[["age", "pain"]].shift(-1)
    wide = wide.dropna()
    one = read(long, bins={"age": "edges:50,60,70"})
    two = read(wide, bins={"age": "edges:50,60,70"})
    three = read(
        wide,
        state=["age", "pain"],
        next_state=["age_next", "next_pain"],
        bins={"age": "edges:50,60,70"},
        layout="explicit",
    )
    assert one.state_names == two.state_names
    assert one.state_names[0] == "pain=mild, age below 50"
    np.testing.assert_array_equal(tally(one).transitions, tally(two).transitions)
    np.testing.assert_array_equal(one.reward, two.reward)
    assert three.state_names[0] == "age below 50, pain=mild"
    np.testing.assert_array_equal(np.sort(tally(two).visits.ravel()), np.sort(tally(three).visits.ravel()))


@given(st.data())
def test_long_rows_link_as_a_plain_loop_links_them(data):
    n = data.draw(st.integers(2, 30))
    episode = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    order = data.draw(st.permutations(range(n)))
    rows = [
        {"episode": episode[i], "time": i, "state": data.draw(st.integers(0, 2)), "action": i % 2} for i in range(n)
    ]
    expected = []
    for e in sorted(set(episode)):
        mine = [row for row in rows if row["episode"] == e]
        expected += [(a["state"], a["action"], b["state"]) for a, b in itertools.pairwise(mine)]
    table = {key: np.array([rows[i][key] for i in order]) for key in rows[0]}
    table["reward"] = np.zeros(n)
    assume(expected)
    batch = read(table, gaps="allow")
    found = [
        (int(batch.state_names[s]), int(batch.action_names[a]), int(batch.state_names[b]))
        for s, a, b in zip(batch.state, batch.action, batch.next_state, strict=True)
    ]
    assert sorted(found) == sorted(expected)
    assert sum(batch.dropped.values()) + len(batch) == n
