"""``certeq compare``: all regularizers on a file of logged decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.base.errors import InputError
from certeq.cli import source

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.questions.comparison import Comparison


def compare(
    data: source.Data = None,
    state: source.State = None,
    action: source.Action = None,
    reward: source.Reward = None,
    next_state: source.NextState = None,
    episode: source.Episode = None,
    time: source.Time = None,
    done: source.Done = None,
    truncated: source.Truncated = None,
    bins: source.Bins = None,
    gaps: source.Gaps = "error",
    layout: source.Layout = "auto",
    max_states: source.MaxStates = None,
    discount: source.Discount = 0.99,
    regularizer: Annotated[
        list[str] | None, typer.Option(help="Compare only these; all that need nothing from you unless said.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that the episodes are dealt into, each predicted in turn.")] = 5,
    draws: Annotated[int, typer.Option(help="Models drawn from the posterior.")] = 1000,
    unvisited: source.Unvisited = "exclude",
    min_visits: source.MinVisits = 1,
    reward_by: source.RewardBy = "pair",
    reward_pool: source.RewardPool = "none",
    reward_table: source.RewardTable = None,
    out: source.Out = Path("certeq-out"),
    report: source.Report = True,
    suppress_below: source.SuppressBelow = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Local processes to judge regularizers and draw models with.")
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A running Dask scheduler, tcp://host:port or tls://host:port, for the same. The rows are read here; "
            "its workers get them as numbers of states and actions.",
        ),
    ] = None,
    seed: source.Seed = 0,
    force: source.Force = False,
) -> None:
    """Compare regularizers on your own data and recommend one.

    Judged by how well they predict held-out episodes, by their expected error, and by what their advice is worth under
    the posterior. Writes compare.json, compare.csv, compare.svg and report.html.
    """
    from certeq.base import texts, writing
    from certeq.cli import show
    from certeq.data.reading import known_rewards
    from certeq.learning.learned import learn
    from certeq.questions.compare import compare as run
    from certeq.report import comparing as comparison
    from certeq.report import drawing as pictures

    if data is not None and source.is_counts(data):
        raise InputError(
            f"{data.name} holds counts. Comparing predicts some episodes, or rows, from the others, and counts do not "
            "tell them apart. Give it the rows, or as many of them as can be read at once."
        )
    names = ("compare.json", "compare.csv", "compare.svg", *(["report.html"] if report else []))
    paths = {name: out / name for name in names}
    writing.check_free(paths.values(), force=force)
    console = show.console()
    batch = source.read_rows(
        console, data, state=state, action=action, reward=reward, next_state=next_state, episode=episode, time=time,
        done=done, truncated=truncated, bins=bins, gaps=gaps, layout=layout, max_states=max_states,
        reward_table=reward_table, seed=seed,
    )  # fmt: skip
    learned = learn(
        batch,
        reward=None if reward_table is None else known_rewards(batch, reward_table),
        discount=discount,
        unvisited=unvisited,
        min_visits=min_visits,
        reward_by=reward_by,
        reward_pool=reward_pool,
    )
    how: dict[str, Any] = {"regularizers": regularizer or None, "folds": folds, "draws": draws}
    where: dict[str, Any] = {"workers": workers, "scheduler": scheduler}
    with show.Steps() as steps:
        found = run(learned, rng=seed, notice=steps.begin, **how, **where)
    told = {"settings": dict(learned.summary.settings), "data": dict(learned.policy.data)}
    files: dict[Path, str | bytes] = {
        paths["compare.json"]: texts.json_text(found.to_json() | told),
        paths["compare.csv"]: texts.csv_text(*comparison.table(found)),
        paths["compare.svg"]: pictures.to_svg(comparison.comparison(found)),
    }
    if report:
        extra: dict[str, Any] = {"suppress_below": suppress_below, "comparison": found}
        files[paths["report.html"]] = show.page(learned, draws=draws, seed=seed, **extra, **where)
    writing.write_files(files, force=force)
    for line in found.lines():
        console.print(show.escape(line))
    console.print()
    _table(console, found)
    show.written(console, *paths.values())


def _table(console: Console, found: Comparison) -> None:
    """One line for each regularizer."""
    import numpy as np
    from rich.table import Table

    table = Table(title="Regularizers", title_justify="left", header_style="bold", box=None, pad_edge=False)
    table.add_column("regularizer", no_wrap=True)
    for name in ("strength", "log prob.", "brier", "exp. error", "value (90 %)", "difference (90 %)", "agrees"):
        table.add_column(name, justify="right")
    for each in found.entries:
        value, apart = found.values.interval(each.name), found.values.difference(each.name, found.recommended)
        score = found.score(each.name)
        table.add_row(
            f"[bold]{each.name}[/bold]" if each.name == found.recommended else each.name,
            f"{each.settings['strength']:g}" if each.settings else "",
            f"{score:.3f}" if np.isfinite(score) else f"rules out {each.impossible}" if each.predicts else "",
            f"{each.brier:.3f}" if each.predicts else "",
            f"{each.expected_error:.3f}",
            f"{value.mean:.3g} ({value.low:.3g}, {value.high:.3g})",
            f"{apart.mean:+.2g} ({apart.low:+.2g}, {apart.high:+.2g})" if apart.mean or apart.high else "the same",
            f"{found.agreement(each.name, found.recommended):.0%}",
        )
    console.print(table)
    console.print("[dim]log prob.: of a held-out transition, more is better; brier, exp. error: squared error of rows,")
    console.print("[dim]less is better; difference: in value to the recommended policy, in the same drawn models[/dim]")
