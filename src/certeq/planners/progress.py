"""How a long plan is watched: what it tells on its way, and what becomes of it when somebody stops it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from time import perf_counter
from types import TracebackType


@dataclass(frozen=True)
class Progress:
    """Where a planner stands after an iteration."""

    iteration: int
    residual: float  # largest |max Q - V|
    bound: float  # certified distance to the optimal values
    goal: float  # the bound at which it will stop
    seconds: float  # since it began
    seconds_left: float | None  # at the pace so far; None as long as there is no pace


@dataclass
class Watch:
    """What the caller of a planner wants to hear, and whether Ctrl-C should give back what is there.

    As a context around the iterations, it ends them when they are interrupted, provided that ``returns`` says so and
    that there is something to give back: one report was made.
    """

    tell: Callable[[Progress], None] | None = None
    returns: bool = False
    interrupted: bool = False
    began: float = field(default_factory=perf_counter)
    first: tuple[float, float] | None = None  # seconds and bound of the first report

    def report(self, iteration: int, residual: float, bound: float, goal: float) -> None:
        """Tell where things stand. The bound is taken to go on falling by equal factors in equal times."""
        seconds = perf_counter() - self.began
        self.first = self.first or (seconds, bound)
        if self.tell is None:
            return
        fell = self.first[1] / bound if bound > 0 else 1.0
        pace = log(fell) / (seconds - self.first[0]) if fell > 1 else 0.0
        left = max(log(bound / goal), 0.0) / pace if pace and goal > 0 else None
        self.tell(Progress(iteration, residual, bound, goal, seconds, left))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        self.interrupted = kind is KeyboardInterrupt and self.returns and self.first is not None
        return self.interrupted
