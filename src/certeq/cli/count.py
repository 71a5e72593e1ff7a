"""``certeq count``: from Parquet with any number of rows to counts that a policy can be learned from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certeq.cli import options
from certeq.cli import watching as progress
from certeq.cli.source import Action, Done, Force, NextState, Reward, State, Truncated

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.data.counting import Tallied


def count(
    data: Annotated[Path, typer.Argument(help="A Parquet file, or a folder of them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the counts.")] = Path("counts.npz"),
    state: State = None,
    action: Action = None,
    reward: Reward = None,
    next_state: NextState = None,
    done: Done = None,
    truncated: Truncated = None,
    bins: Annotated[
        list[str] | None, typer.Option(help="Where to cut a column of numbers: COLUMN=edges:1,2.5,7.")
    ] = None,
    max_states: Annotated[int, typer.Option(help="More states than this are refused.")] = 1_000_000,
    workers: Annotated[
        int, typer.Option(help="Local processes to spread the work over, instead of threads of this one.")
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A running Dask scheduler, tcp://host:port or tls://host:port."),
    ] = None,
    fingerprint: Annotated[
        bool, typer.Option(help="Keep a SHA-256 of the files, for which they are read again.")
    ] = True,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep counts of parts of the files there; the same command then goes on where it was stopped.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Count transitions in Parquet files that are too large for memory.

    Each row holds its own next state. Nothing but pieces of the files is held in memory. On a cluster the workers read
    the files themselves, by the same path, and only counts travel.
    """
    from certeq.base import writing
    from certeq.cli import show
    from certeq.data import counting

    writing.check_free([out], force=force)
    console = show.console()
    begun = time.perf_counter()
    with progress.watch(console) as watch:
        watch.begin("counting", "rows")
        tallied = counting.count(
            data,
            state=options.names(state),
            action=options.names(action),
            reward=reward,
            next_state=options.names(next_state),
            done=done,
            truncated=truncated,
            bins=options.bins(bins or []),
            max_states=max_states,
            workers=workers,
            scheduler=scheduler,
            fingerprint=fingerprint,
            resume=resume,
            progress=watch.progress,
        )
    tallied.save(out, force=force)
    tell(console, tallied, time.perf_counter() - begun)
    show.written(console, out)


def tell(console: Console, tallied: Tallied, seconds: float) -> None:
    """Say what was counted."""
    from certeq.cli import show

    counts = tallied.counts
    files = f" in {len(tallied.files):,} files" if len(tallied.files) > 1 else ""
    console.print(
        f"[bold]{tallied.rows:,} rows[/bold]{files}: {len(tallied):,} transitions, {tallied.endings:,} of them ending "
        f"an episode, in {seconds:.1f} s."
    )
    tried = int((counts.visits > 0).sum())
    console.print(
        f"{counts.n_states:,} states x {counts.n_actions:,} actions: {tried:,} of {counts.visits.size:,} pairs were "
        f"tried ({tried / counts.visits.size:.0%})."
    )
    for why, number in tallied.dropped.items():
        console.print(f"Left out: {number:,} x {show.escape(why)}.")
    for note in tallied.notes:
        console.print(f"[dim]{show.escape(note)}[/dim]")
