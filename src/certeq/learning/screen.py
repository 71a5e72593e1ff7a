"""What was learned, as a terminal shows it: the same for ``certeq learn`` and for ``learned.summary()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape as _escape
from rich.table import Table

from certeq.base.display import harmless, of_draws, several, tried

if TYPE_CHECKING:
    from certeq.learning.learned import Learned, Summary

MOST_STATES = 15  # lines of the policy table that a terminal gets; the CSV has all


def console() -> Console:
    """Where to write; wide enough for a table also when the output is a file or a notebook."""
    plain = Console(highlight=False, emoji=False)
    return plain if plain.is_terminal else Console(highlight=False, emoji=False, width=120)


def escape(text: object) -> str:
    """Text from somebody's data, safe among the marks that color a terminal."""
    return _escape(harmless(text))


def show(learned: Learned, out: Console | None = None) -> None:
    """Tell what was read and noticed, what is advised, and what deserves a second look."""
    out = console() if out is None else out
    _facts(out, learned.summary)
    out.print()
    _advice(out, learned)
    out.print()
    _alerts(out, learned.summary)


def _facts(out: Console, found: Summary) -> None:
    """Tell what was read and noticed."""
    for line in found.decisions:
        out.print(f"[yellow]![/yellow] {escape(line)}")
    out.print(escape(found.goal))
    of = f" in {several(found.episodes, 'episode')}" if found.episodes is not None else ""
    ending = f"{found.endings:,} of them ending an episode"
    out.print(f"[bold]{several(found.rows, 'transition')}[/bold]{of}, {ending}.")
    out.print(tried(found.states, found.actions, found.pairs_seen))
    for line in found.seen:
        out.print(escape(line))
    for why, count in found.dropped.items():
        out.print(f"Left out: {count:,} x {escape(why)}.")
    for note in found.notes:
        out.print(f"[dim]{escape(note)}[/dim]")
    settings = ", ".join(f"{name} {value}" for name, value in found.settings.items() if value is not None)
    out.print(f"[dim]{escape(settings)}[/dim]")


def _advice(out: Console, learned: Learned) -> None:
    """Show the advice, best-observed states first."""
    found = learned.policy
    title = "Advice" if found.horizon is None else f"Advice at the first of {found.horizon} decisions"
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for name in (*found.recipe.axis_names, "advised", "chance", "visits", "weight", "runner-up", "gap"):
        number = name in ("chance", "visits", "weight", "gap")
        table.add_column(escape(name), justify="right" if number else "left", overflow="fold")
    order = np.argsort(-found.visits.sum(axis=1), kind="stable")
    for piece in found.first.pieces(order[:MOST_STATES], weight=learned.shrinkage.weight):
        state = [escape(part) for part in piece.words]
        if piece.advised is None:
            table.add_row(*state, "[dim]no advice[/dim]", "", "", "", "", "")
            continue
        second = f"[dim]{piece.no_rival}[/dim]" if piece.runner_up is None else escape(piece.runner_up)
        difference = "" if piece.gap is None else f"{piece.gap:.3g}"
        advised = escape(piece.told) if piece.open else f"[bold]{escape(piece.told)}[/bold]"
        chance = "" if piece.chance is None else of_draws(piece.chance)
        table.add_row(*state, advised, chance, f"{piece.visits:,}", f"{piece.weight:.2f}", second, difference)
    out.print(table)
    if len(order) > MOST_STATES:
        where = "policy.csv" if found.readable else "policy.npz"
        out.print(f"[dim]... and {len(order) - MOST_STATES:,} more states, in {where}[/dim]")
    out.print("[dim]chance: that the action with the most value is the best of those tried often enough; visits:")
    out.print("[dim]how often it was tried there; weight: how much of its outcome is the regularizer's guess rather")
    out.print("[dim]than the data; gap: how much more it is worth than the runner-up[/dim]")


def _alerts(out: Console, found: Summary) -> None:
    """Point out what deserves a second look."""
    for alert in found.alerts:
        out.print(f"[yellow]![/yellow] {escape(alert)}")
