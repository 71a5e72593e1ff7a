"""How results look in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from certeq.base.display import duration
from certeq.cli.watching import EVERY
from certeq.learning.screen import console as console
from certeq.learning.screen import escape as escape

if TYPE_CHECKING:
    from certeq.cli.options import Output, Work
    from certeq.learning.learned import Learned
    from certeq.planners import Progress
    from certeq.questions.findings import Findings

PATIENCE = 2.0  # seconds without a word


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


def page(
    learned: Learned, output: Output, work: Work, data: Path | None, planning_discount: float | None = None
) -> tuple[Findings, str]:
    """Ask all questions of a learned policy and write the report, telling what is being done if it takes a while.

    With a planning discount, the report is above all an audit of that. Gives what was found and the page.
    """
    from certeq.base import places
    from certeq.questions.examine import examine
    from certeq.report.learned_page import render

    with Steps() as steps:
        with places.executor(**work.places) as executor:
            how: dict[str, Any] = {"draws": output.draws, "rng": output.seed, "planning_discount": planning_discount}
            findings = examine(learned, notice=steps.begin, executor=executor, **how)
        steps.begin("Drawing and writing the report")
        about = heading(output, data) | {"audited": planning_discount is not None}
        return findings, render(findings, suppress_below=output.suppress_below, **about)


def heading(output: Output, data: Path | None) -> dict[str, Any]:
    """What a page says of itself."""
    return {
        "title": output.title,
        "author": output.author,
        "date": date.today().isoformat(),
        "source": "the bundled trial" if data is None else data.name,
        "manifest": {"seed": output.seed},
    }


def sure(learned: Learned, output: Output, work: Work) -> Learned:
    """Ask of a learned policy only how sure each action is."""
    from certeq.base import places
    from certeq.questions.examine import how_sure

    with Steps() as steps, places.executor(**work.places) as executor:
        return how_sure(learned, draws=output.draws, rng=output.seed, notice=steps.begin, executor=executor)


def worth(out: Console, findings: Findings) -> None:
    """Say what the advice is worth and how sure that is, and first what undoes the rest."""
    from certeq.questions.alerts import leading
    from certeq.questions.sure import sentences

    said = {*findings.learned.summary.alerts}
    for line in (line for line in leading(findings) if line not in said):
        out.print(f"[red]![/red] {escape(line)}")
    more = (line for part in (findings.risk, findings.groups) if part is not None for line in part.lines())
    for line in (*sentences(findings), *more):
        out.print(escape(line))


def written(out: Console, *paths: Path) -> None:
    """Say where the results are."""
    out.print(f"Written: {', '.join(escape(path) for path in paths)}", soft_wrap=True)
