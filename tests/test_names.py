"""One word for one thing: the name of a class, and that of a file, occurs once, or the vocabulary says why not."""

import ast
import re
from collections import Counter
from pathlib import Path

import certeq

ROOT = Path(certeq.__file__).parent
VOCABULARY = Path(__file__).parents[1] / "docs" / "vocabulary.md"


def twice(names):
    return {name for name, times in Counter(names).items() if times > 1}


def types_in(path):
    """Names of the classes and type aliases of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and re.fullmatch("[A-Z][A-Za-z]*[a-z][A-Za-z]*", target.id):
                yield target.id


def test_the_name_of_a_type_occurs_once():
    names = [name for path in ROOT.rglob("*.py") for name in types_in(path)]
    assert {"Rows", "Policy", "Advance"} <= set(names)
    assert twice(names) == set()


def test_the_name_of_a_file_occurs_once_or_the_vocabulary_says_what_it_is_twice():
    paths = [path.parent if path.name == "__init__.py" else path for path in ROOT.rglob("*.py")]
    names = [path.stem for path in paths if path.name != "__main__.py"]
    told = VOCABULARY.read_text(encoding="utf-8").split("## Names in the code")[1]
    meant = {name for line in re.findall(r"^\| (`.*?) \|", told, re.M) for name in re.findall(r"`(\w+)`", line)}
    assert twice(names) == meant
