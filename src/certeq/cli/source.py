"""Where rows come from: the options of every verb that reads logged decisions, and reading or counting them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.base.errors import InputError
from certeq.cli import options
from certeq.cli import watching as progress

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.base.arrays import Floats
    from certeq.data.batch import Batch
    from certeq.data.counting import Tallied
    from certeq.learning.learned import Advised

Data = Annotated[
    Path | None,
    typer.Argument(help="CSV, Parquet, Arrow or JSON lines, or a Minari data set. Without it: the bundled trial."),
]
DataOrCounts = Annotated[
    Path | None,
    typer.Argument(
        help="CSV, Parquet, Arrow or JSON lines, or a Minari data set; a folder of Parquet, which is counted; or a "
        "file of counts (.npz) that certeq count wrote. Without it: the bundled trial."
    ),
]
State = Annotated[str | None, typer.Option(help="State column(s), comma-separated.")]
Action = Annotated[str | None, typer.Option(help="Action column.")]
Reward = Annotated[str | None, typer.Option(help="Reward column.")]
NextState = Annotated[str | None, typer.Option(help="Next-state column(s), comma-separated.")]
Episode = Annotated[str | None, typer.Option(help="Episode (patient, user) column.")]
Time = Annotated[str | None, typer.Option(help="Time column; rows of an episode are sorted by it.")]
Done = Annotated[str | None, typer.Option(help="Column that says that the episode ended for good.")]
Truncated = Annotated[str | None, typer.Option(help="Column that says that watching stopped there.")]
Bins = Annotated[
    list[str] | None,
    typer.Option(help="How columns become states: a number of quantile bins for all, or COLUMN=quantile:4, ..."),
]
Gaps = Annotated[str, typer.Option(help="About gaps in time: error, allow, or cut there.")]
Layout = Annotated[str, typer.Option(help="The next state is in the row (explicit), the next row (long), or auto.")]
MaxStates = Annotated[
    int | None,
    typer.Option(help="More states than this are refused: 50,000 unless said; 1,000,000 where rows are counted."),
]
Discount = Annotated[float, typer.Option(help="Worth of a reward one step later; 1 if episodes surely end.")]
Unvisited = Annotated[
    str, typer.Option(help="For pairs without data: exclude, target, uniform, zero, self_loop or average.")
]
MinVisits = Annotated[int, typer.Option(help="Visits below which a pair counts as unvisited.")]
RewardBy = Annotated[str, typer.Option(help="Estimate rewards by pair or by next_state.")]
RewardPool = Annotated[str, typer.Option(help="Pool noisy rewards toward: none, state or overall.")]
RewardTable = Annotated[
    Path | None, typer.Option(help="Known rewards: a table with the state columns, the action and a reward.")
]
Horizon = Annotated[int | None, typer.Option(help="Plan for this many decisions instead of for ever.")]
Out = Annotated[Path, typer.Option(help="Folder for the results.")]
Report = Annotated[bool, typer.Option(help="Write report.html: what is advised, why, and how sure it is.")]
Draws = Annotated[
    int | None,
    typer.Option(min=0, help="Models drawn from the posterior for the report: 1,000, fewer of large ones; 0 for none."),
]
SuppressBelow = Annotated[
    int, typer.Option(min=0, help="In the report, do not tell counts below this. (The other files have all.)")
]
Workers = Annotated[
    int, typer.Option(min=1, help="Local processes to count a folder with, and to draw models for the report.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A running Dask scheduler, tcp://host:port or tls://host:port, for the same. Its workers read Parquet "
        "themselves, by the same path: no row leaves its worker, only counts do.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="For whatever is random.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite results that are there.")]

COUNTS = ".npz"
COLUMNS = ("state", "action", "reward", "next_state", "done", "truncated", "episode", "time")
UNSAID: dict[str, Any] = {"gaps": "error", "layout": "auto"}  # what options say when nobody said anything; else None
TOLD_BY = {name: f"--{name.replace('_', '-')}" for name in (*COLUMNS, "bins", "gaps", "layout", "max_states")}


def get(
    console: Console, data: Path | None, *, workers: int = 1, scheduler: str | None = None, **said: Any
) -> Batch | Tallied:
    """Read rows; or counts of them, from a file; or count them, where they are a folder or a cluster is to do it."""
    from certeq.base import places

    places.check_one(workers, scheduler)
    if data is not None and is_counts(data):
        return _load(data, said)
    if data is not None and _to_count(data, scheduler):
        return _count(data, workers, scheduler, **said)
    return read_rows(console, data, **said)


def learn(found: Batch | Tallied, *, reward_table: Path | None, **settings: Any) -> Advised:
    """Learn from rows or from counts of them."""
    from certeq.data.batch import Batch
    from certeq.learning.learned import learn, learn_counts

    known = None if reward_table is None else _known_rewards(found, reward_table)
    if isinstance(found, Batch):
        return learn(found, reward=known, **settings)
    return learn_counts(found, reward=known, **settings)


def read_rows(
    console: Console,
    data: Path | None,
    *,
    state: str | None,
    reward: str | None,
    next_state: str | None,
    bins: list[str] | None,
    max_states: int | None,
    reward_table: Path | None,
    seed: int,
    **roles: Any,
) -> Batch:
    """Read the rows, or the bundled example and say so."""
    from certeq.data.reading import read
    from certeq.data.recipes import MAX_STATES
    from certeq.worlds import examples

    if data is None:
        console.print("[bold]The bundled example[/bold]: a simulated trial of 50 tumor patients, treated at random.")
    return read(
        data or examples.path(),
        state=options.names(state),
        reward=False if reward_table is not None and reward is None else reward,
        next_state=options.names(next_state),
        bins=options.bins(bins or []),
        max_states=MAX_STATES if max_states is None else max_states,
        rng=seed,
        **roles,
    )


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


def _load(data: Path, said: Mapping[str, Any]) -> Tallied:
    from certeq.data.counting import Tallied

    why = f"{data.name} holds counts, and what was a state, an action or a reward was said when they were made"
    _refuse(said, tuple(TOLD_BY), f"{why}. Leave it out, or count the rows again with it")
    return Tallied.load(data)


def _count(
    data: Path,
    workers: int,
    scheduler: str | None,
    *,
    state: str | None,
    action: str | None,
    reward: str | None,
    next_state: str | None,
    done: str | None,
    truncated: str | None,
    bins: list[str] | None,
    max_states: int | None,
    reward_table: Path | None,
    **rest: Any,
) -> Tallied:
    """Count rows, telling how far it is if it takes a while."""
    from rich.console import Console

    from certeq.data import counting
    from certeq.data.counting.pieces import MAX_STATES

    if rest["layout"] == "explicit":
        rest["layout"] = UNSAID["layout"]  # which is what counting needs
    why = "rows are counted one by one here, and each must hold its own next state"
    _refuse(
        rest, ("episode", "time", "gaps", "layout"), f"{why}. Leave it out, or read a single file without a cluster"
    )
    with progress.watch(Console(stderr=True, highlight=False, emoji=False)) as watch:
        watch.begin("counting", "rows")
        return counting.count(
            data,
            state=options.names(state),
            action=options.names(action),
            reward=False if reward_table is not None and reward is None else reward,
            next_state=options.names(next_state),
            done=done,
            truncated=truncated,
            bins=options.bins(bins or []),
            max_states=MAX_STATES if max_states is None else max_states,
            workers=workers,
            scheduler=scheduler,
            progress=watch.progress,
        )


def _refuse(said: Mapping[str, Any], names: tuple[str, ...], why: str) -> None:
    """Refuse options that would be without effect."""
    for name in names:
        if said.get(name) not in (UNSAID.get(name), None, []):
            raise InputError(f"{TOLD_BY[name]} cannot be used: {why}.")


def _known_rewards(found: Batch | Tallied, table: Path) -> Floats:
    from certeq.data.batch import Batch
    from certeq.data.reading import known_rewards, rewards_of_pairs

    if isinstance(found, Batch):
        return known_rewards(found, table)
    return rewards_of_pairs(found.recipe, found.action_recipe, found.counts.visits, table)
