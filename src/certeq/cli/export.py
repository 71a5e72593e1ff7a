"""``certeq export``: a policy in forms that need no certeq."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certeq.cli import options


def export(
    policy: Annotated[Path, typer.Argument(help="policy.json or policy.npz, as written by certeq learn.")],
    to: Annotated[str, typer.Option(help="sql, python, json or html-card.", metavar="FORM")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="Where to write it; next to the policy by default."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For SQL: the table that holds the rows; rows by default.")
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            help="For SQL and a policy with a horizon: the column of decisions made before.", metavar="COLUMN"
        ),
    ] = None,
    min_chance: options.MinChance = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Write a policy in a form that needs no certeq: SQL, a Python file, JSON, or a card to print.

    Each says about a row what certeq apply says about it, and nothing where certeq apply says nothing.
    """
    from certeq.base import writing
    from certeq.cli import show
    from certeq.learning.policy import Policy
    from certeq.report import exports

    advisor = Policy.load(policy)
    if min_chance is not None:
        advisor = advisor.stricter(min_chance)
    text = exports.export(advisor, to, table=table, step=step)
    place = policy.with_name(f"{policy.stem}-{to}.{exports.ENDINGS[to]}") if out is None else out
    writing.write_files({place: text}, force=force, last=True)
    show.written(show.console(), place)
