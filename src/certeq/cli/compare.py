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
        list[str] | None, typer.Option(help="Compare only these. By default, all that need nothing from you.")
    ] = None,
    folds: Annotated[
        int, typer.Option(metavar="NUMBER", help="Parts to split the episodes into; each is predicted from the others.")
    ] = 5,
    request: Request,
    known: source.Known,
    rules: Annotated[Rules, Without.of("regularizer", "settings", "risk", "horizon", "average", "limit")],
    output: Annotated[Output, Without.of("checklist", "suppress_below")],
    work: Work,
) -> None:
    """Compare regularizers on your own data and recommend one.

    They are judged by how well they predict held-out episodes, and by what their advice is worth in models drawn from
    the posterior. Differences whose interval includes 0 are called ties. Writes compare.json, compare.csv, compare.svg
    and report.html, the page on the comparison; for a report on one policy, use certeq learn.
    """
    from certeq.base import texts, writing
    from certeq.cli import show
    from certeq.learning.learned import learn
    from certeq.questions.compare import compare as run
    from certeq.report import compared_page, comparing, style

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
        files[paths["report.html"]] = compared_page.render(found, learned, **show.heading(output, data))
    writing.write_files(files, force=output.force, last=True)
    first, *more = map(show.escape, found.lines())
    console.print(f"[bold]{first}[/bold]")
    for line in more:
        console.print(line)
    console.print()
    _table(console, found)
    console.print(f"Next: {found.command}, with the same file and options, for the policy and the report on it.")
    show.written(console, *paths.values())


def _table(console: Console, found: Comparison) -> None:
    """One line for each regularizer, compared with the recommended one."""
    from rich.table import Table

    from certeq.base.display import percent
    from certeq.report import comparing

    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("regularizer", no_wrap=True)
    for name in ("strength", "prediction (s.e.)", "value (90% interval)", "agrees"):
        table.add_column(name, justify="right" if name in ("strength", "agrees") else "left")
    for each in found.entries:
        table.add_row(
            f"[bold]{each.name}[/bold]" if each.name == found.recommended else each.name,
            f"{each.settings['strength']:g}" if each.settings else "",
            comparing.shown(found, each.name)[0],
            comparing.value_words(found, each.name),
            percent(found.agreement(each.name, found.recommended)),
        )
    console.print(table)
    console.print(
        "[dim]All compared with the recommended one. prediction: log probability of a held-out transition, standard "
        f"error in parentheses; value: in models drawn from what {found.entries[0].name} makes of the data, "
        "which favors its advice a little; agrees: share of recorded decisions with the same advice. More in "
        "compare.csv.[/dim]"
    )
