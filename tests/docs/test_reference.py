"""Reference pages name the fields, columns and variables that there are: no more and no fewer."""

import csv
import inspect
import json
import re

import docs_pages
import pytest
from typer.testing import CliRunner

import certeq
from certeq.base import limits, threads
from certeq.cli import app
from certeq.data.counting.tallied import ARRAYS
from certeq.experiments.figures import FIGURES, STUDIES

FILES = (docs_pages.DOCS / "reference" / "files.md").read_text(encoding="utf-8")
SETTINGS = (docs_pages.DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
JSON = ("policy.json", "summary.json", "audit.json", "compare.json", "verdicts.json")


def told(name):
    """First column of the table about a file."""
    [section] = re.findall(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", FILES, re.M | re.S)
    first, *_ = re.split(r"\n\nAn axis", section)
    return re.findall(r"^\| `([^`]+)` \|", first, re.M)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder in which every verb has left its files."""
    out = tmp_path_factory.mktemp("files")
    rows, results = out / "rows.csv", out / "out"
    for words in (
        f"simulate river_swim --episodes 12 -o {rows}",
        f"learn {rows} --no-report --out {results}",
        f"audit {rows} --planning-discount 0.9 --no-report --out {results}",
        f"compare {rows} --draws 20 --folds 2 --regularizer evidence --regularizer none --no-report --out {results}",
        f"apply {results}/policy.json {rows} -o {results}/actions.csv",
        f"reproduce implied_prior --out {results}",
    ):
        done = CliRunner().invoke(app, words.split())
        assert done.exit_code == 0, done.output
    return results


def fields(value, at=""):
    """Paths of all fields: ``a``, ``a.b``, ``a[].b``."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{at}{name}"
            yield from fields(inner, f"{at}{name}.")
    elif isinstance(value, list) and value:
        yield from fields(value[0], at.removesuffix(".") + "[].")


@pytest.mark.slow
@pytest.mark.parametrize("name", JSON)
def test_the_fields_of_a_json_file_are_those_on_the_page(written, name):
    value = json.loads((written / name).read_text(encoding="utf-8"))
    there = set(fields(value))
    assert set(told(name)) <= there
    assert {field for field in there if re.fullmatch(r"\w+", field)} <= set(told(name))
    if "format" in value:
        assert f'"{value["format"]}"' in FILES


@pytest.mark.parametrize("name", ["policy.csv", "actions.csv"])
def test_the_columns_of_a_table_are_those_on_the_page(written, name):
    with (written / name).open(encoding="utf-8") as file:
        header = next(csv.reader(file))
    known = told(name)
    assert header[-len(known) + 1 :] == known[1:]


def test_the_arrays_of_counts_are_those_on_the_page():
    assert set(told("counts.npz")) == set(ARRAYS)


def test_every_variable_and_limit_is_on_the_page():
    named = set(re.findall(r"`(CERTEQ_\w+)`", SETTINGS))
    assert named == {"CERTEQ_THREADS", *(limits.PREFIX + name.upper() for name in limits.DEFAULTS)}
    assert "CERTEQ_THREADS" in inspect.getsource(threads)


def test_a_limit_that_is_told_is_the_limit_there_is(monkeypatch):
    monkeypatch.setattr(limits, "memory", lambda: 1 << 40)
    assert limits.most("bytes") == 8 << 30
    assert limits.most("policy_bytes") == 1 << 30
    assert limits.most("pairs") == 100_000_000
    assert limits.most("columns") == limits.most("label") == 10_000
    monkeypatch.setattr(limits, "memory", lambda: 1 << 30)
    assert [limits.most(name) for name in ("bytes", "rows", "pairs", "policy_bytes")] == [
        (1 << 30) // share for share in (8, 512, 1024, 64)
    ]


def test_the_catalogue_page_has_every_name():
    page = (docs_pages.DOCS / "reference" / "catalogues.md").read_text(encoding="utf-8")
    for name in (*certeq.REGULARIZERS, *certeq.ENVIRONMENTS, *FIGURES, *STUDIES):
        assert f"| `{name}` |" in page
