"""``certeq reproduce``: the paper's figures, each with a verdict."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certeq.base.display import duration
from certeq.base.errors import InputError
from certeq.cli import watching as progress

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.experiments.reproduce import Reproduced

COLORS = {"holds": "green", "holds in part": "yellow", "does not hold": "red", "undecided": "yellow"}


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE", help="Figures or studies by name, or all; see --list.")
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="TEXT", help="smoke (quick) or paper (the paper's scale or above).")
    ] = "smoke",
    data_sets: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Data sets per setting, instead of the profile's.")
    ] = None,
    workers: Annotated[int, typer.Option(metavar="NUMBER", help="Local processes to spread the work over.")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A running Dask scheduler, tcp://host:port or tls://host:port."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Folder for the results; certeq-out/reproduction-PROFILE by default."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Same seed, same tables, however many workers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Start over, replacing existing results.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Show the figures and their claims, and exit.")] = False,
) -> None:
    """Recompute the paper's figures and judge its claims.

    Writes for each figure its table, its picture and its verdicts, and index.html and verdicts.json over all of them. A
    run that was stopped picks up where it left off when it is started again.
    """
    from certeq.base.arrays import whole
    from certeq.cli import show
    from certeq.experiments import reproduce as driver

    console = show.console()
    if listing:
        _list(console)
        return
    whole("--workers", workers, 1)
    if scheduler is not None and workers > 1:
        raise InputError("--workers is for local processes and --scheduler for a cluster; choose one.")
    place = out or Path("certeq-out") / f"reproduction-{profile}"
    order = driver.Order(tuple(figures or ()), place, profile, data_sets, seed)
    begun = time.perf_counter()
    try:
        with progress.watch(console) as watch:
            outcome = driver.reproduce(order, watch, workers=workers, scheduler=scheduler, force=force)
    except KeyboardInterrupt:
        typer.echo("Stopped. What was finished is kept; the same command picks up from there.", err=True)
        raise typer.Exit(130) from None
    _verdicts(console, outcome)
    if outcome.records:
        console.print(f"Written: {place / driver.INDEX}, in {duration(time.perf_counter() - begun)}.", soft_wrap=True)
    for name, error in outcome.failures.items():
        typer.echo(f"{name} could not be finished: {error}", err=True)
    if outcome.failures:
        typer.echo("The same command tries what is missing again.", err=True)
        raise typer.Exit(1)


def _list(console: Console) -> None:
    """Names, titles and claims."""
    from rich.markup import escape
    from rich.padding import Padding

    from certeq.experiments.figures import FIGURES, STUDIES, figure

    for name in (*FIGURES, *STUDIES):
        module = figure(name)
        console.print(f"[bold]{escape(name)}[/bold]  {escape(module.TITLE)}")
        console.print(Padding(escape(module.CLAIM), (0, 0, 1, 4)))


def _verdicts(console: Console, outcome: Reproduced) -> None:
    """All verdicts in one table, and how many of each."""
    from rich.markup import escape
    from rich.table import Table

    from certeq.report import reproduction as page

    if not outcome.records:
        return
    table = Table(title="Verdicts", title_justify="left", header_style="bold", box=None, pad_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim", ratio=1, overflow="fold")
    table.add_column("measured", ratio=1, overflow="fold")
    for record in outcome.records:
        table.add_row("", f"[bold]{escape(record['figure'])}[/bold]", "")
        for verdict in record["verdicts"]:
            said = verdict["outcome"]
            sign = f"[{COLORS[said]}]{page.LOOKS[said][1]} {said}[/]"
            whose = f" ({verdict['paper']})" if verdict["paper"] else ""
            table.add_row(sign, escape(verdict["claim"] + whose), escape(verdict["measured"]))
    console.print(table)
    for whose, counts in page.counts(outcome.records).items():
        if total := sum(counts.values()):
            what = "on what the paper says" if whose == "paper" else "on what we ask beyond it"
            word = "verdict" if total == 1 else "verdicts"
            console.print(f"[bold]{total} {word}[/bold] {what}: {page.tally(counts)}")
