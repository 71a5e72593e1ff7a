"""Where rows come from: the options of every verb that reads logged decisions, and reading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.batch import Batch

Data = Annotated[
    Path | None,
    typer.Argument(help="CSV, Parquet, Arrow or JSON lines, or a Minari data set. Without it: the bundled trial."),
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
MaxStates = Annotated[int, typer.Option(help="More states than this are refused.")]
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
Seed = Annotated[int, typer.Option(min=0, help="For whatever is random.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite results that are there.")]


def read_rows(
    console: Console,
    data: Path | None,
    *,
    state: str | None,
    reward: str | None,
    next_state: str | None,
    bins: list[str] | None,
    reward_table: Path | None,
    seed: int,
    **roles: Any,
) -> Batch:
    """Read the rows, or the bundled example and say so."""
    from certeq import examples
    from certeq.reading import read

    if data is None:
        console.print("[bold]The bundled example[/bold]: a simulated trial of 50 tumor patients, treated at random.")
    return read(
        data or examples.path(),
        state=options.names(state),
        reward=False if reward_table is not None and reward is None else reward,
        next_state=options.names(next_state),
        bins=options.bins(bins or []),
        rng=seed,
        **roles,
    )
