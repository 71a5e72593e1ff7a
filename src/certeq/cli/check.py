"""``certeq check``: look at a file of logged decisions before learning from it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certeq.cli import options, source
from certeq.data.request import Request

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.data.check import Checked


@options.expand
def check(
    data: source.OnlyRows = None,
    *,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write it as an HTML page.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the page if it exists.")] = False,
    request: Request,
) -> None:
    """Look at logged decisions before planning.

    Says what each column was read as, what the rows show (episodes, rewards, actions, how many rows a pair has,
    whether the states look Markov), what deserves a second look, what certeq learn would refuse, and a command that it
    would accept. The exit code is 0 if certeq learn would take the rows as they are, and 2 if not.
    """
    from certeq.base import writing
    from certeq.cli import show
    from certeq.data.check import check as run
    from certeq.report.checked_page import render
    from certeq.worlds import examples

    if page is not None:
        writing.check_free([page], force=force)
    console = show.console()
    found = run(data or examples.path(), request)
    name = "" if data is None else shlex.quote(str(data))
    tell(console, found, name)
    if page is not None:
        writing.write_files({page: render(found, name)}, force=force, last=True)
        show.written(console, page)
    if not found.ready:
        raise typer.Exit(2)


def tell(console: Console, found: Checked, name: str) -> None:
    """Write what was found to a terminal."""
    from rich.table import Table

    from certeq.cli import show

    table = Table(header_style="bold", box=None, pad_edge=False)
    for head in ("column", "read as", "kind", "different", "missing", "values"):
        table.add_column(head, justify="right" if head in ("different", "missing") else "left", overflow="fold")
    for each in found.columns:
        numbers = f"{each.different:,}", f"{each.missing:,}" if each.missing else ""
        table.add_row(show.escape(each.name), each.role, each.kind, *numbers, show.escape(each.span))
    for why in found.refused:
        console.print(f"[red]✗[/red] {show.escape(why)}")
    for alert in found.alerts():
        console.print(f"[yellow]![/yellow] {show.escape(alert)}")
    console.print(table)
    for line in found.lines():
        console.print(show.escape(line))
    way = found.command(name)
    if way is not None:
        console.print(f"{'Next' if found.ready else 'This would be accepted'}: {show.escape(way)}", soft_wrap=True)
