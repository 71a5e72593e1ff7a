"""Examples in docstrings say what happens."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import certeq

PLACE = Path(certeq.__file__).parent
MODULES = sorted(
    ".".join(["certeq", *path.relative_to(PLACE).with_suffix("").parts]).removesuffix(".__init__")
    for path in PLACE.rglob("*.py")
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.M)
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    failed, tried = doctest.testmod(importlib.import_module(name), verbose=False)
    assert tried
    assert not failed


def test_there_are_examples():
    assert len(MODULES) >= 5
