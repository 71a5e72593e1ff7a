"""``certeq audit``: what a planning discount assumes about a file of logged decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from certeq.base.errors import InputError
from certeq.cli import options, source
from certeq.cli.options import Output, Without, Work
from certeq.data.request import Request
from certeq.learning.rules import Rules


@options.expand
def audit(
    data: source.RowsOrCounts = None,
    *,
    planning_discount: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="The lower discount that was, or would be, used for planning."),
    ] = None,
    threshold: Annotated[
        int, typer.Option(metavar="NUMBER", help="Visits below which the shortcut 'threshold' drops a pair.")
    ] = 6,
    request: Request,
    known: source.Known,
    rules: Annotated[Rules, Without.of("regularizer", "settings", "risk", "min_share", "average", "limit")],
    output: Annotated[Output, Without.of("checklist")],
    work: Work,
) -> None:
    """Show what planning with a lower discount assumes about your data.

    For each pair, how many invented transitions the lower discount amounts to; how the advice would differ if as many
    were spread evenly, if the data chose their number, and without any; what common shortcuts mean in the same terms.
    Writes audit.json and report.html, the report on planning with that discount.
    """
    from certeq.base import texts, writing
    from certeq.cli import show
    from certeq.learning.learned import learn
    from certeq.questions.audit import audit as run

    if planning_discount is None:
        raise InputError("Say which discount to audit, for example --planning-discount 0.9.")
    paths = [output.out / name for name in ("audit.json", *(["report.html"] if output.report else []))]
    writing.check_free(paths, force=output.force)
    console = show.console()
    found, reward = source.get(console, data, request, known, work, output.seed)
    plain = replace(rules, min_share=0.0)  # as a paper plans
    learned = learn(found, plain, reward=reward, regularizer="discount", planning_discount=planning_discount)
    audited = run(learned, planning_discount, threshold=threshold)
    told = {"settings": dict(learned.summary.settings), "seed": output.seed, "data": dict(learned.policy.data)}
    files: dict[Path, str | bytes] = {paths[0]: texts.json_text(audited.to_json() | told)}
    if output.report:
        _, files[paths[1]] = show.page(learned, output, work, data, planning_discount=planning_discount)
    writing.write_files(files, force=output.force, last=True)
    for line in audited.lines():
        console.print(show.escape(line))
    show.written(console, *paths)
