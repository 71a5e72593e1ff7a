"""Examine: ask a learned policy everything that a report tells, or only how sure each action is."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any

from certeq import questions as room
from certeq.base import copies
from certeq.base.arrays import ArrayLike, Rng
from certeq.base.errors import InputError
from certeq.base.fields import takes
from certeq.base.threads import plain_algebra
from certeq.data.batch import Batch
from certeq.data.counting.tallied import Tallied
from certeq.learning.learned import Learned, asked
from certeq.learning.learned import learn as plain_learn
from certeq.learning.rules import Rules
from certeq.planners import Progress
from certeq.questions.asking import ADVICE, Asking, Question, check_work
from certeq.questions.findings import Findings
from certeq.questions.sure import printed

APART = ("examine", "compare", "comparison")  # modules that no report asks
SURE = ("plain", "posterior", "risk")  # questions that tell how sure each action is, and so what is advised alone


@cache
def all_questions() -> dict[str, Question]:
    """Every question that a module of this room ends with, each after those whose answers it looks at."""
    names = [each.name for each in pkgutil.iter_modules(room.__path__)]
    modules = [importlib.import_module(f"{room.__name__}.{name}") for name in names if name not in APART]
    found: dict[str, Question] = {each.ASKED.name: each.ASKED for each in modules if hasattr(each, "ASKED")}
    order = TopologicalSorter({name: question.after for name, question in found.items()}).static_order()
    return {name: found[name] for name in order}


def examine(
    learned: Learned,
    *,
    draws: int | None = None,
    rng: Rng = 0,
    planning_discount: float | None = None,
    notice: Callable[[str], None] = lambda doing: None,
    executor: Executor | None = None,
) -> Findings:
    """Ask all questions of a learned policy.

    Parameters
    ----------
    learned
        What `certeq.learn` returned; of counts alone less can be said.
    draws, rng
        How many models are drawn from the posterior, 0 for none, and the seed: 400 by default, and fewer where
        the model is large.
    planning_discount
        The one that is audited: 0.9 by default, or nine tenths of a smaller discount.
    notice
        Told what is being done; two questions are asked at a time, so not always from this thread.
    executor
        Where models are drawn from the posterior; threads of this process unless given. No rows are sent there.
    """
    gamma = asked(learned, anyhow=True).rules.discount
    lower = (0.9 if gamma > 0.9 else 0.9 * gamma) if planning_discount is None else planning_discount
    asking = Asking(learned, draws, rng, lower, executor, _asked_before(learned, draws, rng))
    missing: dict[str, str] = {}
    questions = {name: each for name, each in all_questions().items() if each.applies(learned)}
    open_ones = [name for name in questions if name not in asking.found]
    linked = {name for each in questions.values() if each.after for name in (each.name, *each.after)}
    rest = sorted(set(open_ones) - linked, key=lambda name: (-questions[name].plans, name))  # the longest first
    with closing(copies.Queue(rest)) as queue, plain_algebra(), ThreadPoolExecutor(1) as other:
        # posterior draws keep one process, or all processors, busy; who has an executor has threads of others as well
        with copies.copy(partial(_answers, asking, queue)) if executor is None else nullcontext() as copy:
            others = other.submit(_beside, copy, asking, queue, missing, notice)
            try:
                _ask(asking, chain((name for name in open_ones if name in linked), queue), missing, notice)
            except BaseException:
                list(queue)  # nobody waits for the answers any more
                raise
            others.result()
        lost = [name for name in rest if name not in asking.found and name not in missing]  # with a copy
        _ask(asking, lost, missing, notice)
    found = {name: asking.found[name] for name in questions if name in asking.found}
    if (drawn := found.get("posterior")) is not None:
        told = found["posterior"] = printed(drawn, found.get("outer"), found.get("returns"))
        if found.get("off_policy") is not None:
            found["off_policy"] = replace(found["off_policy"], model=told.interval(ADVICE))
    unanswered = {name: missing[name] for name in questions if name in missing}
    return Findings(_sure(asking, missing), found, unanswered)


def how_sure(
    learned: Learned,
    *,
    draws: int | None = None,
    rng: Rng = 0,
    notice: Callable[[str], None] = lambda doing: None,
    executor: Executor | None = None,
) -> Learned:
    """Ask of a learned policy only how sure each action is: the same, with the chance that each action is best.

    What it takes is limited as in a report: fewer models are drawn of large ones, and of very large ones none unless
    ``draws`` says how many. The alerts of the result then say so.
    """
    asked(learned, anyhow=True)
    asking = Asking(learned, draws, rng, 0.0, executor, _asked_before(learned, draws, rng))
    missing: dict[str, str] = {}
    open_ones = [name for name in SURE if name not in asking.found and all_questions()[name].applies(learned)]
    with plain_algebra():
        _ask(asking, open_ones, missing, notice)
    return _sure(asking, missing)


@takes(Rules)
def learn(
    source: Batch | Tallied,
    rules: Rules | None = None,
    *,
    reward: ArrayLike | None = None,
    draws: int | None = None,
    rng: Rng = 0,
    progress: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
    **said: Any,
) -> Learned:
    """Learn a policy from a batch of rows, or from counts of rows, and say how sure each action is.

    Parameters
    ----------
    source
        What `certeq.read` or `certeq.sampling` returned: one data set. Or counts of rows, as `certeq.data.counting`
        makes them; what only rows can tell is then missing, such as whether the states look Markov.
    rules
        What was decided about estimating, regularizing and planning; keywords change single rules.
    reward
        Known rewards ``(S, A)``; estimated from the rows unless given.
    draws, rng
        How many models are drawn from the posterior to tell how sure each action is, and the seed: 400 by default,
        and fewer where the model is large; 0 for none.
    progress, on_interrupt
        Who is told how planning goes on, and what Ctrl-C does to it: see `certeq.solve`.
    said
        Rules by name, see `certeq.learning.rules.Rules`, and settings of the regularizer.
    """
    found = plain_learn(source, rules, reward=reward, progress=progress, on_interrupt=on_interrupt, **said)
    return found if found.interrupted else how_sure(found, draws=draws, rng=rng)


def _ask(asking: Asking, names: Iterable[str], missing: dict[str, str], notice: Callable[[str], None]) -> None:
    """Ask some questions, one after the other."""
    for name in names:
        question = all_questions()[name]
        notice(question.doing)
        try:
            check_work(asking.learned, question)
            asking.found[name] = question.ask(asking)
        except InputError as error:
            missing[name] = str(error)


def _answers(
    asking: Asking, queue: copies.Queue, notice: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Ask questions in a copy of this process: answers, and why there are none to some."""
    alone, missing = replace(asking, found={}), dict[str, str]()
    _ask(alone, queue, missing, notice)
    return alone.found, missing


def _beside(
    copy: copies.Copy | None,
    asking: Asking,
    queue: copies.Queue,
    missing: dict[str, str],
    notice: Callable[[str], None],
) -> None:
    """Take over what a copy of this process answers; without one, ask here."""
    if copy is None:
        _ask(asking, queue, missing, notice)
        return
    with suppress(copies.LostError):
        found, unanswered = copy.result(notice)
        asking.found.update(found)
        missing.update(unanswered)


def _asked_before(learned: Learned, draws: int | None, rng: Rng) -> dict[str, Any]:
    """Answers that are known already, if they were asked for in the same way."""
    kept = learned.answers
    same = isinstance(rng, int) and kept.get("asked") == (draws, rng)
    return {name: kept[name] for name in SURE if name in kept} if same else {}


def _sure(asking: Asking, missing: Mapping[str, str]) -> Learned:
    """The learned policy with the chances that were found, or with the reason for none."""
    found, risk, learned = asking.found.get("posterior"), asking.found.get("risk"), asking.learned
    if learned.rules.risk is not None and risk is None:
        why = missing.get("posterior") or missing.get("risk", "")
        raise InputError(f"The risk cannot be computed. {why} Leave risk= out (--risk), or change that.")
    kept = {name: asking.found[name] for name in SURE if name in asking.found} | {"asked": (asking.draws, asking.rng)}
    return learned.with_chances(
        None if found is None else found.best,
        missing.get("posterior", ""),
        kept,
        None if risk is None else risk.min_chance,
    )
