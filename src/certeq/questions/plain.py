"""Plain: what would be advised without regularization."""

from __future__ import annotations

from certeq.questions.asking import Question

ASKED = Question(
    "plain",
    lambda asking: asking.learned.case.under("none").advise().policy,
    doing="Planning without regularization",
    asks="what is advised without regularization",
    by_itself='learned.case.under("none").advise()',
    sparse=True,
    anyhow=True,
)
