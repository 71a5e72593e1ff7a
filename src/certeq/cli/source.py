"""Where rows come from: reading or counting the logged decisions that a verb is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from certeq.base.errors import InputError
from certeq.base.fields import said
from certeq.cli import watching
from certeq.cli.options import Work
from certeq.data.request import COLUMNS, Request

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.base.arrays import Floats
    from certeq.data.batch import Batch
    from certeq.data.counting import Tallied

OnlyRows = Annotated[
    Path | None,
    typer.Argument(help="CSV, Parquet, Arrow or JSON lines, or a Minari data set. Without it: the bundled trial."),
]
RowsOrCounts = Annotated[
    Path | None,
    typer.Argument(
        help="CSV, Parquet, Arrow or JSON lines, or a Minari data set; a folder of Parquet, which is counted; or a "
        "file of counts (.npz) that certeq count wrote. Without it: the bundled trial."
    ),
]
COUNTS = ".npz"
ONE_BY_ONE = (
    "episode",
    "time",
    "gaps",
    "layout",
    "ends",
    "missing",
    "by",
)  # what only rows that are read together need
ORDERS = ("ordered", "unordered", "unit")  # what is not kept with counts
BESIDE = ("beside", "duration")  # what only rows that are read can add up
SMALL = 1_000_000  # bytes of a file that a copy of this process reads: the rows have to come back


@dataclass(frozen=True)
class Known:
    """What is known besides the rows."""

    reward_table: Path | None = said(
        None, "Known rewards: a table with the state columns, the action and a reward.", panel=COLUMNS
    )


def get(
    console: Console,
    data: Path | None,
    request: Request,
    known: Known,
    work: Work | None,
    seed: int,
    meanwhile: Callable[[], object] | None = None,
) -> tuple[Batch | Tallied, Floats | None]:
    """Read rows; or counts of them, from a file; or count them, where they are a folder or a cluster is to do it.

    Without ``work`` nothing is counted. Where something can be done ``meanwhile``, such as loading libraries, a copy of
    this process reads a small file. Gives the known rewards as well, where a table of them was named.
    """
    if known.reward_table is not None and request.reward is None:
        request = replace(request, reward=False)
    found: Batch | Tallied
    if data is not None and is_counts(data):
        found = _load(data, request)
    elif data is not None and work is not None and _to_count(data, work.scheduler):
        found = _count(data, request, work)
    else:
        found = read_rows(console, data, request, seed, meanwhile)
    return found, None if known.reward_table is None else _known_rewards(found, known.reward_table)


def read_rows(
    console: Console, data: Path | None, request: Request, seed: int, meanwhile: Callable[[], object] | None
) -> Batch:
    """Read the rows, or the bundled example and say so."""
    from certeq.base import copies

    def rows(*_: object) -> Batch:
        from certeq.data.reading import read
        from certeq.worlds import examples

        return read(data or examples.path(), request, rng=seed)

    if data is None:
        console.print("[bold]The bundled example[/bold]: a simulated trial of 50 tumor patients, treated at random.")
    small = data is None or (data.is_file() and data.stat().st_size <= SMALL)
    if meanwhile is None or not small or "polars" in sys.modules:  # whose threads would not come along
        return rows()
    with copies.copy(rows) as copy:
        meanwhile()
        if copy is not None:
            with suppress(copies.LostError):  # as where it cannot read them: then the reason is told from here
                return cast("Batch", copy.result(lambda _: None))
    return rows()


def is_counts(data: Path) -> bool:
    """Whether this is a file of counts, by its name."""
    return data.suffix.lower() == COUNTS


def _to_count(data: Path, scheduler: str | None) -> bool:
    """Whether rows are counted where they lie rather than read: all folders of Parquet, and files if others do it."""
    from certeq.data.counting.parquet import SUFFIXES
    from certeq.data.reading.files import resolve
    from certeq.data.reading.minari import is_minari

    path = resolve(data)
    if path.is_dir():
        return not is_minari(path)
    return scheduler is not None and path.suffix.lower() in SUFFIXES


def _load(data: Path, request: Request) -> Tallied:
    from certeq.data.counting import Tallied

    why = f"{data.name} holds counts, and what was a state, an action or a reward was said when they were made"
    said = {name: value for name, value in request.changes().items() if value is not False}
    _refuse(said, f"{why}. Leave it out, or count the rows again with it")
    return Tallied.load(data)


def _count(data: Path, request: Request, work: Work) -> Tallied:
    """Count rows, telling how far it is if it takes a while."""
    from rich.console import Console

    from certeq.data import counting

    said = request.changes()
    if request.layout == "explicit":
        said.pop("layout")  # which is what counting needs
    why = "rows are counted one by one here, and each must hold its own next state"
    idle = {name: said[name] for name in ONE_BY_ONE if name in said}
    _refuse(idle, f"{why}. Leave it out, or read a single file without a cluster")
    _refuse({name: said[name] for name in BESIDE if name in said}, "counts keep states, actions and rewards alone")
    _refuse({name: said[name] for name in ORDERS if name in said}, "counts keep no more of a column than its cells")
    with watching.watch(Console(stderr=True, highlight=False, emoji=False)) as watch:
        watch.begin("counting", "rows")
        return counting.count(data, **said, **work.places, progress=watch.progress)


def _refuse(said: dict[str, Any], why: str) -> None:
    """Refuse options that would be without effect."""
    for name in said:
        raise InputError(f"--{name.replace('_', '-')} cannot be used: {why}.")


def _known_rewards(found: Batch | Tallied, table: Path) -> Floats:
    from certeq.data.batch import Batch
    from certeq.data.reading import known_rewards, rewards_of_pairs

    if isinstance(found, Batch):
        return known_rewards(found, table)
    return rewards_of_pairs(found.recipe, found.action_recipe, found.counts.visits, table)
