"""The Python file: rules as literals, and a function that advises by them; it imports the standard library alone."""

from __future__ import annotations

from importlib.resources import files

import certeq
from certeq.report.exports.written import Written, plain


def write(rules: Written) -> str:
    """The text of a module with a function `advise`."""
    reader = files("certeq.report.exports").joinpath("advising.py").read_text(encoding="utf-8").split('"""', 2)[2]
    told = plain(rules)
    lines = "".join(f"    {name!r}: {_laid_out(value)},\n" for name, value in told.items())
    return (
        f'"""Advice by a policy that certeq {certeq.__version__} wrote down: advise({{column: value}}) says what it '
        f'advises.\n\nIt needs Python 3.11 or newer, and nothing else.\n"""\n{reader}\n\n'
        f"RULES = {{\n{lines}}}\nadvise = advisor(RULES)\n"
    )


def _laid_out(value: object) -> str:
    """A literal; a list has a line for each entry."""
    if isinstance(value, list) and value:
        return "[\n" + "".join(f"        {entry!r},\n" for entry in value) + "    ]"
    return repr(value)
