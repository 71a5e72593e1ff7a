"""``certeq apply``: a policy's advice for new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from certeq.base.errors import InputError, nearest
from certeq.cli import options

NAME, SENTENCE = 400, 1_000  # characters of a state or an action, and of the advice in words, at most


def apply(
    policy: Annotated[Path, typer.Argument(help="policy.json or policy.npz, as written by certeq learn.")],
    rows: Annotated[Path, typer.Argument(help="New rows with the same state columns.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="Where to write the advice.")] = Path(
        "actions.csv"
    ),
    step: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="For a policy with a horizon: decisions made before, a number or a column."),
    ] = None,
    min_chance: options.MinChance = None,
    keep: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Columns of the rows to copy beside the advice.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Advise on new rows: one line per row with the state, the action and the support behind it.

    Rows with unknown labels and states without advice are listed with the reason; nothing is guessed.
    """
    import numpy as np

    from certeq.base import texts, writing
    from certeq.base.display import several
    from certeq.cli import show
    from certeq.data.reading import columns
    from certeq.data.recipes.columns import clipped, shown
    from certeq.learning.policy import Policy

    writing.check_free([out], force=force)
    advisor = Policy.load(policy)
    if min_chance is not None:
        advisor = advisor.stricter(min_chance)
    table = columns(rows)
    kept = options.names(keep) or []
    for name in kept:
        _check_column(name, table, "--keep takes columns of the rows")
    _check_copies([table[name] for name in kept])
    advice = advisor.apply(table, step=_steps(step, table))
    given = advisor.state_names, advisor.action_names
    states, names = ([*shown(each, NAME), None] for each in given)  # None: not known
    copied = [np.asarray(table[name]).tolist() for name in kept]
    parts = (advice.state, advice.action, advice.visits, advice.rival)
    numbers = (advice.chance, advice.stake, advice.gap)
    words = (advice.told, advice.among, advice.out_of_range, advice.reason)
    told = (*(part.tolist() for part in parts), *(map(_written, part.tolist()) for part in numbers), *words)
    lines: list[tuple[Any, ...]] = []
    for *others, s, a, visits, b, chance, stake, gap, said, among, far, why in zip(*copied, *told, strict=True):
        advised = (clipped(said, SENTENCE), names[a], chance, " | ".join(clipped(each, NAME) for each in among), stake)
        support = (visits if a >= 0 else None, names[b], gap, ", ".join(far))
        lines.append((len(lines) + 1, *others, states[s], *advised, *support, why))
    header = ("row", *kept, "state", "advice", "action", "chance", "set", "at_stake", "visits", "runner_up", "gap")
    header += ("out_of_range", "reason")
    writing.write_files({out: texts.csv_text(header, lines)}, force=force, last=True)
    console = show.console()
    console.print(f"{several(len(lines), 'row')}, advice for {int((advice.action >= 0).sum()):,}.")
    if count := int(advice.open.sum()):
        console.print(f"No clear difference for {count:,}: the advice is a set, and `action` only the best guess.")
    if count := sum(map(bool, advice.among)) - int(advice.open.sum()):
        console.print(
            f"Tied for {count:,}: several actions are equally good, and `action` is the one tried most often."
        )
    if advisor.chances is None:
        console.print("[yellow]![/yellow] This policy does not say how sure its actions are: the column is empty.")
    for reason, count in Counter(filter(None, advice.reason)).most_common(10):
        console.print(f"No advice for {count:,}: {show.escape(reason)}")
    for name, count in Counter(name for names_of in advice.out_of_range for name in names_of).most_common():
        low, high = advisor.ranges[name]
        console.print(
            f"[yellow]![/yellow] {show.escape(name)} is out of range in {several(count, 'row')}: the data had "
            f"{low:g} to {high:g}. Advice there is that of the outermost cell."
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


def _check_copies(columns: Sequence[Any]) -> None:
    """Refuse to copy more than could have been read: a small file can name a long label in many rows."""
    import numpy as np

    from certeq.base.limits import most, way_out

    texts = [column for column in columns if getattr(column, "labels", ())]
    size = sum(int(np.array([*map(len, text.labels), 0])[text.values].sum()) for text in texts)
    if size > most("bytes"):
        raise InputError(
            f"The columns to keep hold {size:,} characters, more than the {most('bytes'):,} bytes that a table may "
            f"have. Keep fewer, or {way_out('bytes')}."
        )


def _written(value: float) -> float | None:
    """A number as a table holds it; nothing where there is none."""
    return None if value != value else float(f"{value:.6g}")
