"""How results look in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape as _escape
from rich.table import Table

from certeq.base.display import duration, of_draws
from certeq.cli.options import harmless
from certeq.cli.watching import EVERY

if TYPE_CHECKING:
    from certeq.cli.options import Output, Work
    from certeq.learning.learned import Learned, Summary
    from certeq.planners import Progress

PATIENCE = 2.0  # seconds without a word
MOST_STATES = 15  # lines of the policy table that a terminal gets; the CSV has all


def console() -> Console:
    """Where to write; wide enough for a table also when the output is a file."""
    plain = Console(highlight=False, emoji=False)
    return plain if plain.is_terminal else Console(highlight=False, emoji=False, width=120)


def escape(text: object) -> str:
    """Text from somebody's data, safe among the marks that color a terminal."""
    return _escape(harmless(text))


class Steps:
    """What is being done, if it takes a while: one changing line on a terminal, else a line for each step.

    It goes to the error stream, so that it disturbs nobody who reads the results, or only the first of them.
    """

    def __init__(self, out: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.out = Console(stderr=True, highlight=False, emoji=False) if out is None else out
        self.clock, self.start = clock, clock()
        self.status = self.out.status("", spinner="dots") if self.out.is_terminal else None

    def __enter__(self) -> Steps:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()

    def begin(self, step: str) -> None:
        """Begin a step."""
        if self.status is not None:
            self.status.update(f"{escape(step)} ...")
        elif self.clock() - self.start > PATIENCE:
            self.out.print(f"{step} ...", markup=False, soft_wrap=True)


class Planning:
    """How a plan that takes a while goes on, and what becomes of it when somebody stops it."""

    def __init__(self, out: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps = Steps(out, clock)
        self.last: float | None = None  # when something was said

    def __enter__(self) -> Planning:
        self.steps.__enter__()
        self.steps.begin("Estimating")
        return self

    def __exit__(self, *_: object) -> None:
        self.steps.__exit__()

    def progress(self, at: Progress) -> None:
        """Say where the planner stands: always on a terminal, now and then in a log."""
        now = self.steps.clock()
        pause = EVERY if self.steps.status is None else 0.0
        over = at.bound <= at.goal
        if at.seconds > PATIENCE and not over and (self.last is None or now - self.last >= pause):
            self.last = now
            self.steps.begin(how_far(at))

    def check(self, learned: Learned) -> None:
        """Stop for good if planning was stopped before anybody was told that something would be kept."""
        if learned.interrupted and self.last is None:
            raise KeyboardInterrupt
        if self.steps.status is not None:
            self.steps.begin("Writing the policy")


def how_far(at: Progress) -> str:
    """Where a planner stands, in words."""
    left = "" if at.seconds_left is None else f", about {duration(at.seconds_left)} left"
    return (
        f"Planning: iteration {at.iteration}, residual {at.residual:.1e}, values within {at.bound:.1e} of the best "
        f"(until {at.goal:.1e}){left}; Ctrl-C keeps this"
    )


def page(learned: Learned, output: Output, work: Work, **asked: Any) -> tuple[Learned, str]:
    """Ask all questions of a learned policy and write the report, telling what is being done if it takes a while.

    The policy comes back with what was found out about how sure its actions are.
    """
    from certeq.base import places
    from certeq.questions.examine import examine
    from certeq.report.learned_page import render

    with Steps() as steps:
        with places.executor(**work.places) as executor:
            findings = examine(
                learned, draws=output.draws, rng=output.seed, notice=steps.begin, executor=executor, **asked
            )
        steps.begin("Drawing and writing the report")
        return findings.learned, render(findings, suppress_below=output.suppress_below, manifest={"seed": output.seed})


def sure(learned: Learned, output: Output, work: Work) -> Learned:
    """Ask of a learned policy only how sure each action is."""
    from certeq.base import places
    from certeq.questions.examine import how_sure

    with Steps() as steps, places.executor(**work.places) as executor:
        return how_sure(learned, draws=output.draws, rng=output.seed, notice=steps.begin, executor=executor)


def written(out: Console, *paths: Path) -> None:
    """Say where the results are."""
    out.print(f"Written: {', '.join(escape(path) for path in paths)}", soft_wrap=True)


def summary(out: Console, found: Summary) -> None:
    """Tell what was read and noticed."""
    for line in found.decisions:
        out.print(f"[yellow]![/yellow] {escape(line)}")
    out.print(escape(found.goal))
    of = f" in {found.episodes:,} episodes" if found.episodes is not None else ""
    out.print(f"[bold]{found.rows:,} transitions[/bold]{of}, {found.endings:,} of them ending an episode.")
    share = found.pairs_seen / found.pairs
    out.print(
        f"{found.states:,} states x {found.actions:,} actions: {found.pairs_seen:,} of {found.pairs:,} pairs were "
        f"tried ({share:.0%})."
    )
    for line in found.seen:
        out.print(escape(line))
    for why, count in found.dropped.items():
        out.print(f"Left out: {count:,} x {escape(why)}.")
    for note in found.notes:
        out.print(f"[dim]{escape(note)}[/dim]")
    settings = ", ".join(f"{name} {value}" for name, value in found.settings.items() if value is not None)
    out.print(f"[dim]{escape(settings)}[/dim]")


def policy(out: Console, learned: Learned) -> None:
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
        second = "[dim]nothing else tried[/dim]" if piece.runner_up is None else escape(piece.runner_up)
        difference = "" if piece.gap is None else f"{piece.gap:.3g}"
        advised = escape(piece.told) if piece.open else f"[bold]{escape(piece.told)}[/bold]"
        chance = "" if piece.chance is None else of_draws(piece.chance)
        table.add_row(*state, advised, chance, f"{piece.visits:,}", f"{piece.weight:.2f}", second, difference)
    out.print(table)
    if len(order) > MOST_STATES:
        out.print(f"[dim]... and {len(order) - MOST_STATES:,} more states, in policy.csv[/dim]")
    out.print("[dim]chance: that the action with the most value is really the best; visits: how often it was tried")
    out.print("[dim]there; weight: how much of its outcome is the regularizer's guess rather than the data; gap: how")
    out.print("[dim]much more it is worth than the runner-up[/dim]")


def alerts(out: Console, found: Summary) -> None:
    """Point out what deserves a second look."""
    for alert in found.alerts:
        out.print(f"[yellow]![/yellow] {escape(alert)}")
