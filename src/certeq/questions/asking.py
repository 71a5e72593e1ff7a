"""Asking: what a question of the report is, what it may look at, and how much work it may be.

A module of this room that answers a question of the report ends with ``ASKED``, a `Question`. `examine` finds it there,
and the report's template shows what it found: a section is a question and a block.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Rng
from certeq.base.errors import InputError
from certeq.learning.learned import Learned
from certeq.questions.draws import check_writable
from certeq.questions.sparse_draws import unwritten

ADVICE, RECORDED, PLAIN = "the advice", "what was recorded", "without regularization"  # policies that are valued
WORK = 5e10  # plans times the effort of each that a part of a report may take: about ten seconds
SPARSE = 500_000  # pairs of a sparse model, above which it is planned in once
UNASKED = 8_000_000  # numbers in a model, above which it is not drawn unless it is said how often
DRAWS, FEWEST = 400, 40  # models drawn from the posterior where that is not much work, and at least
UNWRITTEN = 4_000_000  # draws times pairs and rows of models that are not written out: about ten processor seconds
LITTLE = 20_000  # pairs and rows that any such model takes as long as
MOST = 250_000  # pairs and rows: above, the fewest take over half a minute, and are drawn only if that is said


@dataclass(frozen=True)
class Asking:
    """What a question may look at."""

    learned: Learned
    draws: int | None  # models to draw from the posterior; None for as many as there is time for
    rng: Rng
    planning_discount: float  # the one that is audited
    executor: Executor | None  # where models are drawn
    found: dict[str, Any]  # answers so far


class Question(NamedTuple):
    """A question of the report."""

    name: str  # of the part of the findings
    ask: Callable[[Asking], Any]  # an answer, or an InputError that says why there is none
    doing: str  # in words, for whoever waits
    plans: int = 0  # about so many plans are made
    sparse: bool = False  # whether sparse models are planned in without writing their rows out
    after: tuple[str, ...] = ()  # questions whose answers it looks at
    by_itself: str = ""  # how it is asked in Python where it is too much for a report
    asks: str = ""  # in words, for whoever wants to know what was checked; what is being done by default
    anyhow: bool = False  # whether it is asked of averages as well: it adds no discounted rewards up
    applies: Callable[[Learned], bool] = lambda learned: True  # whether there is anything to ask about


def effort(learned: Learned) -> float:
    """About how many steps of arithmetic one plan takes: a linear system of S equations, and S * A rows."""
    S, A = learned.policy.visits.shape
    return float(S * S * (S + 30 * A))


def check_work(learned: Learned, question: Question) -> None:
    """Raise if a question is not for such a policy, or would take much longer than somebody waits for a report."""
    if learned.case.peculiar and not question.anyhow:
        raise InputError(learned.case.peculiar)
    S, A = learned.policy.visits.shape
    sparse = learned.counts.sparse and question.sparse
    if S * A > SPARSE if sparse else question.plans * effort(learned) > WORK:
        raise too_long(f"For {S:,} states and {A:,} actions", question.by_itself)


def too_long(much: str, by_itself: str) -> InputError:
    """Say why a report leaves a question out, and how to ask it."""
    return InputError(f"{much} this takes too long for a report. Ask for it by itself, in Python: {by_itself}.")


def check_draws(draws: int | None) -> None:
    """Raise if nothing is to be drawn from the posterior."""
    if draws == 0:
        raise InputError("No draws from the posterior were asked for.")


def affordable_draws(learned: Learned, draws: int | None) -> int:
    """How many models to draw: as many as the budget allows, which goes by the size of the work and not by a clock."""
    check_draws(draws)
    if unwritten(learned.counts):
        size = learned.policy.visits.size + learned.case.data.size
        if draws is None and size > MOST:
            raise InputError(
                f"{learned.policy.visits.size:,} pairs of states and actions and {learned.case.data.size:,} rows are "
                f"more than the {MOST:,} in all for which models are drawn unasked. Say how many to draw, and they "
                f"are, however long it takes: --draws {FEWEST}, or draws={FEWEST} in Python."
            )
        return int(np.clip(UNWRITTEN // (LITTLE + size), FEWEST, DRAWS)) if draws is None else draws
    check_writable(learned.counts)
    affordable = min(DRAWS, int(WORK / effort(learned))) if draws is None else draws
    S, A = learned.policy.visits.shape
    if draws is None and (affordable < FEWEST or S * A * S > UNASKED):
        raise InputError(
            f"Drawing models of {S:,} states and {A:,} actions from the posterior takes long, so it is only done where "
            "the number of draws is said (draws=, --draws)."
        )
    return affordable
