"""Exports: SQL, a Python file, JSON and a card say about every row what `apply` says about it."""

import datetime
import json
import sqlite3
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import InputError, Policy, export
from certeq.data.recipes import Recipe
from certeq.data.recipes.axes import Bins, Clusters, Labels, OrMissing
from certeq.data.recipes.columns import text_numbers
from certeq.report.exports import advising, sql, written

HOSTILE = (
    "'; DROP TABLE rows; --",
    'say "hi"',
    "two\nlines",
    "\U0001f9ea",
    "a\\b",
    "${x} {y} %s",
    "</script><b>",
    "'''",
)
WARD, NOTE, DAY = 'wa"rd', "; no'te\n--", "day"
EDGES = (0.1, 63.21739130434783, 1e17 / 3)
DAYS = ("2024-01-01", "2024-02-29T13:30:00", "2024-02-29T13:30:00.250000")
EXTREME = [np.nan, np.inf, -np.inf, 0.0, -0.0, *EDGES, *np.nextafter(EDGES, np.inf), *np.nextafter(EDGES, -np.inf)]
AXES = (
    Labels(WARD, "text", tuple(sorted(HOSTILE))),
    OrMissing(Bins("pressure", EDGES)),
    OrMissing(Labels("stage", "integer", (-3, 1, 2, 4))),
    Labels("smoker", "boolean", (False, True)),
    Labels(NOTE, "float", (0.1, 0.30000000000000004, 2.0)),
)


def policy(axes=AXES, *, horizon=None, seed=0, **data):
    """A policy over most combinations of the codes, some without advice, some with sets of actions."""
    rng = np.random.default_rng(seed)
    cells = np.stack(np.meshgrid(*(np.arange(axis.size) for axis in axes), indexing="ij"), -1).reshape(-1, len(axes))
    cells = cells[rng.random(len(cells)) < 0.8]
    shape = (len(cells),) if horizon is None else (horizon, len(cells))
    values = rng.normal(size=(*shape, 3)).round(1)
    actions = np.where(rng.random(shape) < 0.2, -1, values.argmax(-1))
    chances = rng.multinomial(400, rng.dirichlet(np.ones(3) / 2, size=shape)) / 400
    visits = rng.integers(0, 99, (len(cells), 3))
    names = ("Ann's", 'wa"it', "\U0001f48a; --")
    return Policy(Recipe(axes, cells), names, actions, visits, values, {"min_chance": 0.8}, data, chances)


def rows(n, seed=1):
    """Rows with labels that were never seen, blanks, nulls, numbers on edges and beside them."""
    rng = np.random.default_rng(seed)
    blanks = ["", " ", "\t\n", "\u2003", None, "never seen", *(f" {label}\u3000" for label in HOSTILE)]
    pressures = [*EXTREME, None]
    draws = rng.normal(60, 60, n)
    return {
        WARD: [HOSTILE[i] if i < len(HOSTILE) else blanks[i % len(blanks)] for i in rng.integers(0, 14, n)],
        "pressure": [
            pressures[i] if i < len(pressures) else float(x) for i, x in zip(rng.integers(0, 30, n), draws, strict=True)
        ],
        "stage": [(-3, 1, 2, 4, 3, 10**12, None)[i] for i in rng.integers(0, 7, n)],
        "smoker": [(True, False, None)[i] for i in rng.integers(0, 3, n)],
        NOTE: [(0.1, 0.30000000000000004, 0.3, 2.0, float("nan"), None)[i] for i in rng.integers(0, 6, n)],
    }


def told(found, table, step=None):
    """What `apply` says, row by row."""
    said = found.apply(table, step=step)
    names, states = [*found.action_names, None], [*found.state_names, None]
    parts = (said.state, said.told, said.action, said.among, said.chance, said.visits.tolist(), said.out_of_range)
    return [
        (states[s], words or None, names[a], among, None if np.isnan(c) else round(c, 6), v if a >= 0 else None, far)
        for s, words, a, among, c, v, far in zip(*parts, strict=True)
    ]


def by_python(text, table, step=None):
    space = {}
    exec(compile(text, "exported", "exec"), space)
    listed = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    steps = [step] * len(listed) if np.ndim(step) == 0 else step
    for row, when in zip(listed, steps, strict=True):
        one = space["advise"](row, when)
        assert bool(one["reason"]) == (one["action"] is None)
        chance = None if one["chance"] is None else round(one["chance"], 6)
        yield (
            one["state"],
            one["advice"],
            one["action"],
            tuple(one["set"]),
            chance,
            one["visits"],
            tuple(one["out_of_range"]),
        )


def by_sql(database, text, table):
    """Run the query on a table ``rows`` of a database that is there."""
    if database == "sqlite":
        with sqlite3.connect(":memory:") as lite:
            kinds = {
                WARD: "TEXT",
                "pressure": "REAL",
                "stage": "INTEGER",
                "smoker": "BOOLEAN",
                NOTE: "DOUBLE",
                DAY: "TEXT",
            }
            columns = ", ".join(f"{sql._name(name)} {kinds.get(name, '')}" for name in table)
            lite.execute(f"CREATE TABLE rows (certeq_row INTEGER, {columns})")
            marks = ", ".join("?" * (len(table) + 1))
            lite.executemany(f"INSERT INTO rows VALUES ({marks})", zip(range(10**9), *table.values(), strict=False))
            lines = lite.execute(text).fetchall()
    else:
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        frame = pl.DataFrame(table, strict=False).with_row_index("certeq_row").to_arrow()
        with duckdb.connect() as duck:
            duck.execute("CREATE TABLE rows AS SELECT * FROM frame")
            lines = duck.execute(text).fetchall()
        assert frame.num_rows == len(lines)
    for _, *line in sorted(line[:1] + line[1 + len(table) :] for line in _keyed(lines)):
        state, words, action, among, chance, visits, *far = line
        beyond = tuple(far[0].split(", ")) if far and far[0] else ()
        yield (
            state,
            words,
            action,
            tuple(among.split(" | ")) if among else (),
            None if chance is None else round(chance, 6),
            visits,
            beyond,
        )


def _keyed(lines):
    assert len({line[0] for line in lines}) == len(lines)
    return lines


def agree(found, n, *, step=None, seed=1):
    table = rows(n, seed)
    steps = None if step is None else np.array(step)
    expected = told(found, table, steps)
    assert {line[2] for line in expected} >= {None, *found.action_names}
    assert any(line[3] for line in expected)
    assert list(by_python(export(found, "python"), table, step)) == expected
    with_steps = table if step is None else table | {"when": step}
    query = export(found, "sql", step=None if step is None else "when")
    for database in ("sqlite", "duckdb"):
        assert list(by_sql(database, query, with_steps)) == expected, database


def test_python_sqlite_and_duckdb_say_what_apply_says():
    agree(policy(ranges={"pressure": [-50, EDGES[1]]}), 3000)


def test_with_a_horizon_they_say_it_of_each_decision():
    steps = np.random.default_rng(2).integers(-1, 5, 1000).tolist()
    agree(policy(horizon=3), 1000, step=steps)


@pytest.mark.slow
def test_on_100000_rows_they_say_what_apply_says():
    agree(policy(seed=5, ranges={"pressure": [-50, EDGES[1]]}), 100_000, seed=6)


def test_dates_and_clusters_too():
    dates = policy((Labels(DAY, "date", DAYS), Labels("stage", "integer", (2**60, 2**60 + 1))))
    moments = [*map(datetime.datetime.fromisoformat, DAYS), None, datetime.datetime(2024, 1, 2)]
    stages = [2**60, 2**60 + 1, 2**60 + 2, None]
    table = {DAY: [moment for moment in moments for _ in stages], "stage": stages * len(moments)}
    expected = told(dates, table)
    assert sum(line[0] is not None for line in expected) == len(dates.visits)
    assert list(by_python(export(dates, "python"), table)) == expected
    assert list(by_sql("duckdb", export(dates, "sql"), table)) == expected
    written = table | {DAY: [None if moment is None else moment.isoformat() for moment in table[DAY]]}
    assert list(by_python(export(dates, "python"), written)) == told(dates, written) == expected
    assert list(by_sql("sqlite", export(dates, "sql"), written)) == expected
    near = policy((OrMissing(Clusters(("x", "y"), ((0.0, 0), (1, 1), (2, 0)), (1.0, 3.0))),))
    x = np.random.default_rng(3).normal(1, 1, (500, 2))
    x[:4] = [[np.nan, 0], [np.inf, 0], [0.5, 0.5], [1, 1]]
    points = {"x": x[:, 0].tolist(), "y": x[:, 1].tolist()}
    assert list(by_python(export(near, "python"), points)) == told(near, points)
    for to in ("sql", "html-card"):
        with pytest.raises(InputError, match=r"nearest of 3 centers of x, y.*--bins"):
            export(near, to)


@given(st.text(max_size=8) | st.from_regex(r"[ +-]?[0-9.eEinfa_ ]{1,7}", fullmatch=True))
def test_text_is_read_as_a_number_as_apply_reads_it(text):
    assert np.array_equal(advising._number(text), text_numbers([text])[0], equal_nan=True)


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_numbers_are_written_so_that_every_database_reads_them_exactly(database):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63 - 2**53, 300).view(np.float64)
    numbers = [
        *EDGES,
        0.5,
        -90.25,
        5e-324,
        1.7976931348623157e308,
        *bits.tolist(),
        *(-rng.lognormal(0, 9, 300)).tolist(),
    ]
    text = f"SELECT * FROM (VALUES {', '.join(f'({sql.exact(x)})' for x in numbers)})"
    if database == "sqlite":
        read = [value for (value,) in sqlite3.connect(":memory:").execute(text)]
    else:
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        read = [value for (value,) in duckdb.connect().execute(text).fetchall()]
    assert read == numbers


def test_numbers_kept_as_text_in_sqlite_are_numbers_and_words_are_not():
    found = policy((OrMissing(Bins("pressure", (9.0, 100.0))),), seed=3, ranges={"pressure": [1, 200]})
    table = {"pressure": ["10", "9", "8.5", " 1e3 ", "abc", "12abc", "", None]}
    with sqlite3.connect(":memory:") as lite:
        lite.execute("CREATE TABLE rows (pressure TEXT)")
        lite.executemany("INSERT INTO rows VALUES (?)", [(x,) for x in table["pressure"]])
        states = [line[1] for line in lite.execute(export(found, "sql"))]
    assert states == [line[0] for line in told(found, table)]


def test_a_column_that_the_table_lacks_is_an_error_of_the_database_and_of_the_function():
    found = policy((Labels("ward", "text", ("ward", "x")),))
    with sqlite3.connect(":memory:") as lite:
        lite.execute("CREATE TABLE rows (other TEXT)")
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            lite.execute(export(found, "sql"))
    space = {}
    exec(export(found, "python"), space)
    with pytest.raises(KeyError, match="no column 'ward'"):
        space["advise"]({"other": "x"})


def test_the_python_file_runs_alone(tmp_path):
    (tmp_path / "advice.py").write_text(export(policy(), "python"), encoding="utf-8")
    code = "import sys, advice; row = {by['column']: None for by in advice.RULES['codes']}; "
    code += "print(advice.advise(row)['reason']); print({'certeq', 'numpy', 'msgspec'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
    assert "is missing" in done.stdout


def test_the_json_fits_its_schema_and_the_schema_refuses_what_does_not():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    check = jsonschema.Draft202012Validator(written.schema())
    for found in (
        policy(ranges={"pressure": [0, 1]}),
        policy(horizon=2),
        policy((Clusters(("x",), ((0.0,), (2.0,)), (1.0,)),)),
    ):
        value = json.loads(export(found, "json"))
        check.validate(value)
        assert len(value["rules"]) == found.actions.size
        for broken in ({**value, "version": 2}, {**value, "rules": [{}]}, {**value, "codes": [{"by": "magic"}]}):
            assert not check.is_valid(broken)


def test_the_card_is_one_page_without_scripts_and_shows_every_state_once():
    found = policy(AXES[:2], ranges={"pressure": [0, 1]})
    page = export(found, "html-card")
    assert page.count("<tr>") == 1 + len(found.visits)
    assert "<script" not in page
    assert "<b>" not in page.replace("<bdi>", "")
    assert "http" not in page.replace("http-equiv", "")
    assert "no advice" in page
    assert export(policy(AXES[:1], horizon=2), "html-card").count("<caption>Decision") == 2


def test_what_cannot_be_exported_is_refused_in_words():
    steady, timed = policy(AXES[:1]), policy(AXES[:1], horizon=2)
    spelled = policy((Labels("Age", "text", ("a",)), Labels("age", "text", ("b", "c"))))
    nul = replace(steady, action_names=("a\0", "b", "c"))
    for found, to, said, says in (
        (steady, "sqll", {}, "no export to 'sqll'. Did you mean 'sql'"),
        (steady, "json", {"table": "t"}, "takes no table"),
        (steady, "sql", {"step": "when"}, "leave --step out"),
        (timed, "sql", {}, "with --step COLUMN"),
        (spelled, "sql", {}, "'age' is there in several spellings"),
        (nul, "sql", {}, "the character NUL"),
        (steady, "sql", {"table": ""}, "cannot have a table or column called ''"),
        (policy(AXES), "html-card", {}, "up to 200 lines"),
    ):
        with pytest.raises(InputError, match=says.replace("(", r"\(")):
            export(found, to, **said)
    space = {}
    exec(export(timed, "python"), space)
    for step in (None, 0.5, "1"):
        with pytest.raises(ValueError, match="plan for 2 decisions"):
            space["advise"]({WARD: "x"}, step)
    with pytest.raises(TypeError, match="got \\[1\\]"):
        space["advise"]({WARD: [1]}, 0)
