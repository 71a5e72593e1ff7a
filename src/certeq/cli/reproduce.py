"""``certeq reproduce``: the paper's figures, each with a verdict."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.experiments.reproduce import Outcome

EVERY = 10.0  # seconds between lines on progress where there is no terminal
COLORS = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE", help="Figures or studies by name, or all; see --list.")
    ] = None,
    profile: Annotated[str, typer.Option(help="smoke (quick) or paper (the paper's scale or above).")] = "smoke",
    data_sets: Annotated[int | None, typer.Option(help="Data sets per setting, instead of the profile's.")] = None,
    workers: Annotated[int, typer.Option(help="Local processes to spread the work over.")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A running Dask scheduler, tcp://host:port or tls://host:port."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; certeq-out/reproduction-PROFILE unless said.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same tables, whatever the workers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Start again, over results that are there.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Show the figures and their claims, and leave.")] = False,
) -> None:
    """Compute the paper's figures again and judge what it claims.

    Writes for each figure its table, its picture and its verdicts, and index.html and verdicts.json over all of them. A
    run that was stopped goes on where it was when it is started again.
    """
    from certeq.arrays import whole
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
    watch = Bars(console) if console.is_terminal else Lines(console)
    try:
        with watch:
            outcome = driver.reproduce(order, watch, workers=workers, scheduler=scheduler, force=force)
    except KeyboardInterrupt:
        typer.echo("Stopped. What was finished is kept; the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    _verdicts(console, outcome)
    if outcome.records:
        console.print(f"Written: {place / driver.INDEX}, in {_time(time.perf_counter() - begun)}.", soft_wrap=True)
    for name, error in outcome.failures.items():
        typer.echo(f"{name} could not be finished: {error}", err=True)
    if outcome.failures:
        typer.echo("The same command tries again what is missing.", err=True)
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


def _verdicts(console: Console, outcome: Outcome) -> None:
    """All verdicts in one table, and how many of each."""
    from rich.markup import escape
    from rich.table import Table

    from certeq.report.page import LOOKS

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
            sign = f"[{COLORS[said]}]{LOOKS[said][1]} {said}[/]"
            table.add_row(sign, escape(verdict["claim"]), escape(verdict["measured"]))
    console.print(table)
    verdicts = [verdict for record in outcome.records for verdict in record["verdicts"]]
    console.print(f"[bold]{len(verdicts)} verdicts[/bold]: {_tally(verdicts)}")


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _tally(verdicts: Any) -> str:
    """How many of each, in words."""
    from certeq.report.page import count

    many = {"holds": "hold", "does not hold": "do not hold"}
    counts = {said: number for said, number in count(verdicts).items() if number}
    return ", ".join(f"{number} {said if number == 1 else many.get(said, said)}" for said, number in counts.items())


def _explain(error: Exception) -> None:
    """What is nobody's input is a fault of ours; show where."""
    from certeq.experiments.shards import Unfinished

    if not isinstance(error, InputError | Unfinished):
        traceback.print_exception(error, file=sys.stderr)


class Lines:
    """Progress where there is no terminal: a line now and then."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.clock = console, clock

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, name: str, unit: str) -> None:
        """Start counting."""
        self.name, self.unit = name, unit
        self.first: tuple[float, int] | None = None
        self.last = self.clock()

    def progress(self, done: int, total: int) -> None:
        """Say how much is done, how fast, and how long it will take."""
        now = self.clock()
        if self.first is None:
            self.first = (now, done)
            if done:
                self._say(f"{done:,} of {total:,} {self.unit} were done before")
        elif done < total and now - self.last >= EVERY:
            self.last = now
            start, before = self.first
            rate = (done - before) / (now - start)
            self._say(f"{done:,} of {total:,} {self.unit}, {rate:,.1f} per second, {_time((total - done) / rate)} left")

    def end(self, record: Mapping[str, Any], seconds: float) -> None:
        """Say what came out."""
        self._say(f"{_tally(record['verdicts'])} ({_time(seconds)})")

    def failed(self, name: str, error: Exception) -> None:
        """Say that nothing came out."""
        self._say("failed")
        _explain(error)

    def _say(self, what: str) -> None:
        self.console.print(f"{self.name}: {what}", markup=False, soft_wrap=True)


class Bars:
    """Progress on a terminal: a bar for each figure."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
        from rich.text import Text

        class Rate(ProgressColumn):
            def render(self, task: Task) -> Text:
                speed = task.finished_speed or task.speed
                return Text(f"{speed:,.0f} {task.fields['unit']}/s" if speed else "", style="dim")

        self.bars = Progress(
            TextColumn("{task.description:<17}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            Rate(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("[dim]{task.fields[said]}"),
            console=console,
        )

    def __enter__(self) -> Bars:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def begin(self, name: str, unit: str) -> None:
        """Wait for the first number, which tells where the bar starts."""
        self.name, self.unit = name, unit
        self.task: Any = None

    def progress(self, done: int, total: int) -> None:
        """Move the bar."""
        if self.task is None:
            self.task = self.bars.add_task(self.name, total=total, completed=done, unit=self.unit, said="")
        else:
            self.bars.update(self.task, completed=done)

    def end(self, record: Mapping[str, Any], seconds: float) -> None:
        """Write the verdicts beside the bar."""
        if self.task is not None:
            self.bars.update(self.task, said=_tally(record["verdicts"]))

    def failed(self, name: str, error: Exception) -> None:
        """Write that beside the bar."""
        if self.task is not None:
            self.bars.update(self.task, said="failed")
        _explain(error)
