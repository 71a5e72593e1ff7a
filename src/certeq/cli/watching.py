"""How far a long job is: a bar on a terminal, and where there is none a line now and then."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from certeq.base.display import duration
from certeq.base.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

EVERY = 10.0  # seconds between words about the same thing, where there is no terminal


def watch(console: Console) -> ProgressBars | ProgressLines:
    """What suits this console."""
    return ProgressBars(console) if console.is_terminal else ProgressLines(console)


def tally(verdicts: Any) -> str:
    """How many of each, in words."""
    from certeq.report import reproduction as page

    return page.tally(page.count(verdicts))


def _explain(error: Exception) -> None:
    """What is nobody's input, nor the machine's (without memory, libraries cannot be loaded), is ours; show where."""
    from certeq.experiments.shards import Unfinished

    if not isinstance(error, InputError | Unfinished | MemoryError | ImportError | OSError):
        traceback.print_exception(error, file=sys.stderr)


class ProgressLines:
    """Progress where there is no terminal: a line now and then."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.clock = console, clock

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, name: str, unit: str) -> None:
        """Start counting."""
        self.name, self.unit = name, unit
        self.first: tuple[float, int] | None = None
        self.last = self.clock()

    def progress(self, done: int, total: int) -> None:
        """Say how much is done, how fast, and how long it will take."""
        now = self.clock()
        if self.first is None:
            self.first = (now, done)
            if done:
                self._say(f"{done:,} of {total:,} {self.unit} were done before")
        elif done < total and now - self.last >= EVERY:
            self.last = now
            start, before = self.first
            rate = (done - before) / (now - start)
            self._say(
                f"{done:,} of {total:,} {self.unit}, {rate:,.1f} per second, {duration((total - done) / rate)} left"
            )

    def end(self, record: Mapping[str, Any], seconds: float) -> None:
        """Say what came out."""
        self._say(f"{tally(record['verdicts'])} ({duration(seconds)})")

    def failed(self, name: str, error: Exception) -> None:
        """Say that nothing came out."""
        self._say("failed")
        _explain(error)

    def _say(self, what: str) -> None:
        self.console.print(f"{self.name}: {what}", markup=False, soft_wrap=True)


class ProgressBars:
    """Progress on a terminal: a bar for each figure."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
        from rich.text import Text

        class Rate(ProgressColumn):
            def render(self, task: Task) -> Text:
                speed = task.finished_speed or task.speed
                return Text(f"{speed:,.0f} {task.fields['unit']}/s" if speed else "", style="dim")

        self.bars = Progress(
            TextColumn("{task.description:<17}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            Rate(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("[dim]{task.fields[said]}"),
            console=console,
        )

    def __enter__(self) -> ProgressBars:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def begin(self, name: str, unit: str) -> None:
        """Wait for the first number, which tells where the bar starts."""
        self.name, self.unit = name, unit
        self.task: Any = None

    def progress(self, done: int, total: int) -> None:
        """Move the bar."""
        if self.task is None:
            self.task = self.bars.add_task(self.name, total=total, completed=done, unit=self.unit, said="")
        else:
            self.bars.update(self.task, completed=done)

    def end(self, record: Mapping[str, Any], seconds: float) -> None:
        """Write the verdicts beside the bar."""
        if self.task is not None:
            self.bars.update(self.task, said=tally(record["verdicts"]))

    def failed(self, name: str, error: Exception) -> None:
        """Write that beside the bar."""
        if self.task is not None:
            self.bars.update(self.task, said="failed")
        _explain(error)
