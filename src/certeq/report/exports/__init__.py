"""Exports: a policy in forms that need no certeq, each of which says about a row what `apply` says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from certeq.base.errors import InputError, nearest
from certeq.learning.policy import Policy
from certeq.report.exports import card, python, sql, written

TARGETS: Mapping[str, Callable[..., str]] = {  # name -> rules and what was said -> the text of a file
    "sql": sql.write,
    "python": python.write,
    "json": written.write,
    "html-card": card.write,
}
ENDINGS = {"sql": "sql", "python": "py", "json": "json", "html-card": "html"}
TAKES = {"sql": ("table", "step")}  # what else may be said, for some


def export(policy: Policy, to: str, **said: Any) -> str:
    """Write a policy in a form that needs no certeq: the text of a file.

    Parameters
    ----------
    policy
        What is to be written, such as ``Policy.load("policy.json")``.
    to
        ``"sql"``: one query. ``"python"``: a file with a function `advise`, which needs Python alone. ``"json"``: rules
        for other programs. ``"html-card"``: a small page to print.
    said
        For SQL: ``table``, the table that holds the rows (``"rows"`` by default), and for a policy with a horizon
        ``step``, its column that says how many decisions were made before.
    """
    if to not in TARGETS:
        raise InputError(f"There is no export to {to!r}.{nearest(to, TARGETS)} There are: {', '.join(TARGETS)}.")
    odd = next((name for name, value in said.items() if value is not None and name not in TAKES.get(to, ())), None)
    if odd is not None:
        raise InputError(f"An export to {to} takes no {odd}; that is for SQL.")
    return TARGETS[to](written.of(policy), **{name: value for name, value in said.items() if value is not None})
