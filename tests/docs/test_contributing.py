"""What CONTRIBUTING.md tells people to run and read is there, and what pages say to add obeys the laws of the house."""

import importlib
import inspect
import os
import re
import sys
import tomllib
import types
from unittest.mock import patch

import docs_pages
import pytest
import typer
from typer.testing import CliRunner

import certeq
from certeq import ENVIRONMENTS, REGULARIZERS, CertaintyEquivalence, InputError, learn
from certeq.base import fields
from certeq.base.fields import takes
from certeq.cli import app, options
from certeq.data.request import Request
from certeq.learning.rules import Rules

ROOT = docs_pages.ROOT
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_file_that_is_named_is_there():
    named = set(re.findall(r"(?:docs|tests|src)/[\w./-]+\w", GUIDE)) | {".ci/run"}
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).exists(), name
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_dependency_group_that_is_named_is_there():
    assert set(re.findall(r"--group (\w+)", GUIDE)) <= set(PROJECT["dependency-groups"])


def test_the_version_is_the_same_wherever_a_release_sets_it():
    assert PROJECT["project"]["version"] == certeq.__version__


def test_every_issue_template_says_what_it_is_for():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"):
        assert re.match(r"---\nname: .+\nabout: .+\nlabels: .+\n---\n", path.read_text(encoding="utf-8")), path


def written(page, file, name):
    """A function that a page tells people to write."""
    [code] = [block.code for block in docs_pages.blocks(docs_pages.DOCS / "how-to" / page) if block.file == file]
    names = {"__name__": "page"}
    exec(compile(code, file, "exec"), names)
    return names[name]


def test_the_rule_of_the_guide_is_one_field_and_all_else_follows(monkeypatch):
    [code] = [block.code for block in docs_pages.blocks(ROOT / "CONTRIBUTING.md") if block.file == "rules.py"]
    names = {"__name__": "page"}
    exec(compile(code, "rules.py", "exec"), names)
    rules = names["Rules"]
    monkeypatch.setitem(sys.modules, "page", types.SimpleNamespace(**names))
    got = []

    @options.expand
    def verb(*, chosen: rules) -> None:
        got.append(chosen)

    own = typer.Typer(rich_markup_mode=None)
    own.command(cls=options.Verb)(verb)
    own(["--reward-cap", "0.2", "--regularizer", "none"], standalone_mode=False)
    assert (got[0].reward_cap, got[0].regularizer) == (0.2, "none")
    assert got[0].to_json()["reward_cap"] == 0.2
    told = CliRunner().invoke(own, ["--help"]).output
    assert "--reward-cap NUMBER" in told.split("Planning:")[1]
    assert rules.of(reward_cap=0.3, strength=0.1, regularizer="uniform_prior").settings == {"strength": 0.1}
    with pytest.raises(InputError, match="reward_cap must be finite"):
        rules(reward_cap=float("nan"))
    parameters = inspect.signature(takes(rules)(lambda **said: None)).parameters
    assert parameters["reward_cap"].default is None
    assert fields.told(rules)["reward_cap"][1].help.startswith("Count no reward")


@pytest.mark.parametrize("name", ["learn", "audit", "compare"])
def test_every_rule_is_an_option_of_the_verbs_that_plan(name):
    asked = next(each.callback for each in app.registered_commands if each.callback.__name__ == name)
    found = inspect.signature(asked).parameters
    for rule in fields.told(Rules):
        audited = ("regularizer", "settings", "risk", "min_share", "average", "limit")
        compared = ("settings", "risk", "horizon", "average", "limit")
        chosen_by_the_verb = {"audit": audited, "compare": compared}.get(name, ())
        assert rule in found or rule in chosen_by_the_verb
    assert set(fields.told(Request)) <= set(found)


@pytest.mark.parametrize("asked", [learn, CertaintyEquivalence.__init__])
def test_every_rule_is_a_parameter_in_python(asked):
    assert set(fields.told(Rules)) <= set(inspect.signature(asked).parameters)


@pytest.fixture
def contracts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "contracts"))
    return importlib.import_module


def test_the_regularizer_of_the_page_obeys_the_contract(contracts):
    laws = contracts("test_regularizers")
    page = written("add-a-regularizer.md", "good_turing.py", "good_turing")
    example = {"good_turing": [{}, {"floor": 0.1}]}
    with patch.dict(REGULARIZERS, good_turing=page), patch.dict(laws.EXAMPLES, example):
        tried = [
            law("good_turing") for law in vars(laws).values() if getattr(law, "pytestmark", None) == [laws.each.mark]
        ]
    assert len(tried) >= 9


def test_the_environment_of_the_page_obeys_the_contract(contracts):
    laws = contracts("test_environments")
    with patch.dict(ENVIRONMENTS, shop=written("add-an-environment.md", "shop.py", "shop")):
        for name, law in vars(laws).items():
            if name.startswith("test_"):
                law("shop")
    laws.world.cache_clear()
