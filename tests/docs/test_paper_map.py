"""The paper map is true: what it names exists, and it leaves nothing out."""

import ast
import pkgutil
import re
from functools import cache

import docs_pages
import pytest

from certeq.experiments.figures import FIGURES

MAP = (docs_pages.DOCS / "paper-map.md").read_text(encoding="utf-8")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in MAP.splitlines()
    if line.startswith("|") and not line.startswith(("| ---", "| paper |"))
]
CODE = sorted({name for line in LINES for name in re.findall(r"`(certeq[\w.]+)`", line[2])})
TESTS = sorted({name for line in LINES for name in re.findall(r"`(tests/[^`]+)`", line[3])})
NUMBERED = (
    *(f"Eq. {n}" for n in range(1, 7)),
    "Theorem 1",
    *(f"Algorithm {n}" for n in range(1, 4)),
    *(f"Fig. {n}" for n in range(1, 12)),
)


def test_every_numbered_item_of_the_paper_has_a_line():
    assert {line[0] for line in LINES} >= set(NUMBERED)


def test_every_line_names_code_and_a_test():
    for line in LINES:
        assert len(line) == 5, line
        assert re.search(r"`certeq\.", line[2]), line
        assert "`tests/" in line[3], line


@pytest.mark.parametrize("name", CODE)
def test_every_function_is_there(name):
    home, _, attribute = name.rpartition(".")
    assert callable(getattr(pkgutil.resolve_name(home), attribute))


@cache
def functions_in(path):
    tree = ast.parse((docs_pages.ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", TESTS)
def test_every_test_is_there(name):
    path, _, test = name.partition("::")
    assert functions_in(path)
    assert not test or test in functions_in(path)


def test_every_picture_is_a_figure_and_every_figure_is_on_the_map():
    shown = {name for line in LINES for name in re.findall(r"`(\w+)`", line[4])}
    assert shown == set(FIGURES)


def test_every_file_of_tests_on_the_paper_is_on_the_map():
    files = {f"tests/paper/{path.name}" for path in (docs_pages.ROOT / "tests" / "paper").glob("test_*.py")}
    assert files <= {name.partition("::")[0] for name in TESTS}


def test_equations_that_the_code_cites_are_those_of_the_map():
    """One function per equation: what says "Eq. n" first in its docstring is named on that line."""
    from certeq import weights

    named = 0
    for name, function in vars(weights).items():
        cited = re.match(r"Eq\. (\d)", getattr(function, "__doc__", None) or "") if callable(function) else None
        if cited and "solved for" not in function.__doc__:
            [line] = [line for line in LINES if line[0] == f"Eq. {cited[1]}"]
            assert f"certeq.weights.{name}" in line[2]
            named += 1
    assert named > 3
