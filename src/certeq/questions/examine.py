"""Examine: ask a learned policy everything that a report tells."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from certeq import questions as room
from certeq.base.arrays import Rng
from certeq.base.errors import InputError
from certeq.learning.learned import Learned, asked
from certeq.questions.asking import Asking, Question, check_work
from certeq.questions.comparison import Comparison
from certeq.questions.findings import Findings


@cache
def all_questions() -> dict[str, Question]:
    """Every question that a module of this room ends with, each after those whose answers it looks at."""
    names = [each.name for each in pkgutil.iter_modules(room.__path__)]
    modules = [importlib.import_module(f"{room.__name__}.{name}") for name in names if name != "examine"]
    found: dict[str, Question] = {each.ASKED.name: each.ASKED for each in modules if hasattr(each, "ASKED")}
    order = TopologicalSorter({name: question.after for name, question in found.items()}).static_order()
    return {name: found[name] for name in order}


def examine(
    learned: Learned,
    *,
    draws: int | None = None,
    rng: Rng = 0,
    planning_discount: float | None = None,
    comparison: Comparison | None = None,
    notice: Callable[[str], None] = lambda doing: None,
    executor: Executor | None = None,
) -> Findings:
    """Ask all questions of a learned policy.

    Parameters
    ----------
    learned
        What `certeq.learn` returned; of counts alone less can be said.
    draws, rng
        How many models are drawn from the posterior, 0 for none, and the seed: 1,000 unless said, and fewer where
        the model is large.
    planning_discount
        The one that is audited: 0.9 unless said, or nine tenths of a smaller discount.
    comparison
        What `certeq.questions.compare.compare` found on the same data, if it was asked.
    notice
        Told what is being done; two questions are asked at a time, so not always from this thread.
    executor
        Where models are drawn from the posterior; threads of this process unless given. No rows are sent there.
    """
    gamma = asked(learned).rules.discount
    lower = (0.9 if gamma > 0.9 else 0.9 * gamma) if planning_discount is None else planning_discount
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    asking = Asking(learned, draws, rng, lower, executor, found)
    questions = all_questions()

    def ask(names: list[str]) -> None:
        while names:
            question = questions[names.pop(0)]
            notice(question.doing)
            try:
                check_work(learned, question)
                found[question.name] = question.ask(asking)
            except InputError as error:
                missing[question.name] = str(error)

    linked = {name for each in questions.values() if each.after for name in (each.name, *each.after)}
    rest = [name for name in questions if name not in linked]
    with ThreadPoolExecutor(1) as other:  # posterior draws keep all processors busy, most other questions only one
        others = other.submit(ask, rest)
        try:
            ask([name for name in questions if name in linked])
        except BaseException:
            rest.clear()  # nobody waits for the answers any more
            raise
        others.result()
    answers = {name: found[name] for name in questions if name in found} | {"comparison": comparison}
    return Findings(learned, answers, {name: missing[name] for name in questions if name in missing})
