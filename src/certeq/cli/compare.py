"""``certeq compare``: all regularizers on a file of logged decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certeq.base.errors import InputError
from certeq.cli import options, source
from certeq.cli.options import Output, Without, Work
from certeq.data.request import Request
from certeq.learning.rules import Rules

if TYPE_CHECKING:
    from rich.console import Console

    from certeq.questions.comparison import Comparison


@options.expand
def compare(
    data: source.OnlyRows = None,
    *,
    regularizer: Annotated[
        list[str] | None, typer.Option(help="Compare only these; all that need nothing from you unless said.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that the episodes are dealt into, each predicted in turn.")] = 5,
    request: Request,
    known: source.Known,
    rules: Annotated[Rules, Without.of("regularizer", "settings", "risk", "horizon", "average", "limit")],
    output: Annotated[Output, Without.of("checklist")],
    work: Work,
) -> None:
    """Compare regularizers on your own data and recommend one.

    Judged by how well they predict held-out episodes, by their expected error, and by what their advice is worth under
    the posterior. Writes compare.json, compare.csv, compare.svg and report.html.
    """
    from certeq.base import texts, writing
    from certeq.cli import show
    from certeq.learning.learned import learn
    from certeq.questions.compare import compare as run
    from certeq.report import comparing, style

    if data is not None and source.is_counts(data):
        raise InputError(
            f"{data.name} holds counts. Comparing predicts some episodes, or rows, from the others, and counts do not "
            "tell them apart. Give it the rows, or as many of them as can be read at once."
        )
    names = ("compare.json", "compare.csv", "compare.svg", *(["report.html"] if output.report else []))
    paths = {name: output.out / name for name in names}
    writing.check_free(paths.values(), force=output.force)
    console = show.console()
    rows, reward = source.get(console, data, request, known, None, output.seed)
    learned = learn(rows, rules, reward=reward)
    how: dict[str, Any] = {"regularizers": regularizer or None, "folds": folds}
    how |= {} if output.draws is None else {"draws": output.draws}
    with show.Steps() as steps:
        found = run(learned, rng=output.seed, notice=steps.begin, **how, **work.places)
    told = {"settings": dict(learned.summary.settings), "data": dict(learned.policy.data)}
    files: dict[Path, str | bytes] = {
        paths["compare.json"]: texts.json_text(found.to_json() | told),
        paths["compare.csv"]: texts.csv_text(*comparing.table(found)),
        paths["compare.svg"]: style.to_svg(comparing.comparison(found)),
    }
    if output.report:
        _, files[paths["report.html"]] = show.page(learned, output, work, data, comparison=found)
    writing.write_files(files, force=output.force)
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
    for name in ("strength", "log prob.", "brier", "exp. error", "MSE", "value (90 %)", "difference (90 %)", "agrees"):
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
            f"{each.mse:.3f}",
            f"{value.mean:.3g} ({value.low:.3g}, {value.high:.3g})",
            f"{apart.mean:+.2g} ({apart.low:+.2g}, {apart.high:+.2g})" if apart.mean or apart.high else "the same",
            f"{found.agreement(each.name, found.recommended):.0%}",
        )
    console.print(table)
    console.print(
        "[dim]log prob.: of a held-out transition, more is better; brier, exp. error, MSE: squared error of rows,"
    )
    console.print("[dim]less is better; difference: in value to the recommended policy, in the same drawn models[/dim]")
