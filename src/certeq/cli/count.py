"""``certeq count``: from Parquet with any number of rows to counts that a policy can be learned from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.cli import options, watching
from certeq.cli.options import Without, Work
from certeq.cli.source import BESIDE, ONE_BY_ONE, ORDERS
from certeq.data.request import Request

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.data.counting import Tallied


@options.expand
def count(
    data: Annotated[Path, typer.Argument(help="A Parquet file, or a folder of them.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="Where to write the counts.")] = Path(
        "counts.npz"
    ),
    fingerprint: Annotated[
        bool, typer.Option(help="Record a SHA-256 of the files, which means reading them again.")
    ] = True,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep counts of parts of the files there; the same command then picks up where it stopped.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    request: Annotated[Request, Without.of(*ONE_BY_ONE, *ORDERS, *BESIDE)],
    work: Work,
) -> None:
    """Count transitions in Parquet files that are too large for memory.

    Each row holds its own next state. Nothing but pieces of the files is held in memory. On a cluster the workers read
    the files themselves, by the same path, and only counts travel.
    """
    from certeq.base import manners, writing
    from certeq.cli import show
    from certeq.data import counting

    writing.check_free([out], force=force)
    console = show.console()
    begun = time.perf_counter()
    with watching.watch(console) as watch:
        watch.begin("counting", "rows")
        how: dict[str, Any] = {"fingerprint": fingerprint, "resume": resume, "progress": watch.progress}
        tallied = counting.count(data, **request.changes(), **work.places, **how)
    tallied.save(out, force=force)
    manners.complete(out)
    tell(console, tallied, time.perf_counter() - begun)
    show.written(console, out)


def tell(console: Console, tallied: Tallied, seconds: float) -> None:
    """Say what was counted."""
    from certeq.base.display import several, tried
    from certeq.cli import show

    counts = tallied.counts
    files = f" in {len(tallied.files):,} files" if len(tallied.files) > 1 else ""
    console.print(
        f"[bold]{several(tallied.rows, 'row')}[/bold]{files}: {several(len(tallied), 'transition')}, "
        f"{tallied.endings:,} of them ending an episode, in {seconds:.1f} s."
    )
    console.print(tried(counts.n_states, counts.n_actions, int((counts.visits > 0).sum())))
    for why, number in tallied.dropped.items():
        console.print(f"Left out: {number:,} x {show.escape(why)}.")
    for note in tallied.notes:
        console.print(f"[dim]{show.escape(note)}[/dim]")
