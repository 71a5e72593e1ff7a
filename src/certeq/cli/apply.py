"""``certeq apply``: a policy's advice for new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from certeq.base.errors import InputError, nearest
from certeq.cli import options


def apply(
    policy: Annotated[Path, typer.Argument(help="policy.json, as written by certeq learn.")],
    rows: Annotated[Path, typer.Argument(help="New rows with the same state columns.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the advice.")] = Path("actions.csv"),
    step: Annotated[
        str | None, typer.Option(help="For a policy with a horizon: decisions made before, a number or a column.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="Columns of the rows to copy beside the advice.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
) -> None:
    """Advise on new rows: one line per row with the state, the action and the support behind it.

    Rows with unknown labels and states without advice are listed with the reason; nothing is guessed.
    """
    import numpy as np

    from certeq.base import texts, writing
    from certeq.base.display import several
    from certeq.cli import show
    from certeq.data.reading import columns
    from certeq.learning.policy import Policy

    writing.check_free([out], force=force)
    advisor = Policy.load(policy)
    table = columns(rows)
    kept = options.names(keep) or []
    for name in kept:
        _check_column(name, table, "--keep takes columns of the rows")
    advice = advisor.apply(table, step=_steps(step, table))
    states, names = [*advisor.state_names, None], [*advisor.action_names, None]  # the last for what is not known
    copied = [np.asarray(table[name]).tolist() for name in kept]
    told = (advice.state, advice.action, advice.visits, advice.rival)
    beyond = [", ".join(names_of) for names_of in advice.out_of_range]
    gaps = [None if b < 0 else float(f"{gap:.6g}") for b, gap in zip(advice.rival, advice.gap, strict=True)]
    parts = (*(part.tolist() for part in told), advice.tied, gaps, beyond, advice.reason)
    lines = [
        (row, *others, states[s], names[a], visits if a >= 0 else None, tied, names[b], gap, far, why)
        for row, (*others, s, a, visits, b, tied, gap, far, why) in enumerate(
            zip(*copied, *parts, strict=True), start=1
        )
    ]
    header = ("row", *kept, "state", "action", "visits", "tied", "runner_up", "gap", "out_of_range", "reason")
    writing.write_files({out: texts.csv_text(header, lines)}, force=force)
    console = show.console()
    console.print(f"{len(lines):,} rows, advice for {int((advice.action >= 0).sum()):,}.")
    if equal := sum(map(bool, advice.tied)):
        console.print(f"Tied for {equal:,}: several actions are equally good, and the one tried most often is given.")
    for reason, count in Counter(filter(None, advice.reason)).most_common(10):
        console.print(f"No advice for {count:,}: {show.escape(reason)}")
    for name, count in Counter(name for names_of in advice.out_of_range for name in names_of).most_common():
        low, high = advisor.ranges[name]
        console.print(
            f"[yellow]![/yellow] {show.escape(name)} is out of range in {several(count, 'row')}: the data had "
            f"{low:g} to {high:g}. Advice there is what the outermost cell says."
        )
    show.written(console, out)


def _steps(said: str | None, table: Mapping[str, Any]) -> Any:
    """Decisions made before each row: one number, or a column."""
    import numpy as np

    from certeq.base.arrays import whole

    if said is None:
        return None
    if said.removeprefix("-").isdecimal() and said.isascii():
        return whole("--step", int(said), 0)
    _check_column(said, table, "--step takes a whole number of decisions, or a column of the rows")
    return np.asarray(table[said])


def _check_column(name: str, table: Mapping[str, Any], takes: str) -> None:
    if name not in table:
        raise InputError(f"{takes}; there is no {name!r}.{nearest(name, table)} There are: {', '.join(table)}.")
