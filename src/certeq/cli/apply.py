"""``certeq apply``: a policy's advice for new rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer


def apply(
    policy: Annotated[Path, typer.Argument(help="policy.json, as written by certeq learn.")],
    rows: Annotated[Path, typer.Argument(help="New rows with the same state columns.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the advice.")] = Path("actions.csv"),
    step: Annotated[
        str | None, typer.Option(help="For a policy with a horizon: decisions made before, a number or a column.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
) -> None:
    """Advise on new rows: one line per row with the state, the action and the support behind it.

    Rows with unknown labels and states without advice are listed with the reason; nothing is guessed.
    """
    from certeq import output
    from certeq.cli import show
    from certeq.policy import Policy
    from certeq.reading import columns

    output.check_free([out], force=force)
    advisor = Policy.load(policy)
    table = columns(rows)
    made = None if step is None else int(step) if step.isdigit() else table[step]
    advice = advisor.apply(table, step=made)
    states, names = advisor.state_names, advisor.action_names
    lines = [
        (row + 1, states[s] if s >= 0 else None, names[a] if a >= 0 else None, int(visits) if a >= 0 else None, reason)
        for row, (s, a, visits, reason) in enumerate(
            zip(advice.state, advice.action, advice.visits, advice.reason, strict=True)
        )
    ]
    header = ("row", "state", "action", "visits", "reason")
    output.write_files({out: output.csv_text(header, lines)}, force=force)
    console = show.console()
    console.print(f"{len(lines):,} rows, advice for {int((advice.action >= 0).sum()):,}. Written: {out}", markup=False)
    for reason, count in Counter(filter(None, advice.reason)).most_common(10):
        console.print(f"No advice for {count:,}: {reason}", markup=False)
