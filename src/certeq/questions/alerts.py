"""Alerts: what a reader must know before the advice, from all that was found; and which questions are still open."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from certeq.base.display import several
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.findings import Findings

SURE = 0.9  # that the advice beats what was recorded: below this it is said
MARKOV = "whether the states look Markov"


def alerts(findings: Findings) -> list[str]:
    """Everything that deserves a second look, what was decided unasked first."""
    summary = findings.learned.summary
    found = [alert for name, tell in TELL.items() if findings.found.get(name) is not None for alert in tell(findings)]
    return [*summary.decisions, *summary.alerts, *found]


def checked(findings: Findings) -> list[str]:
    """What was looked at, in words."""
    from certeq.questions.examine import all_questions

    looked = [each.asks or each.doing for name, each in all_questions().items() if findings.found.get(name) is not None]
    return [*([] if findings.learned.summary.markov is None else [MARKOV]), *looked]


def unasked(findings: Findings) -> dict[str, str]:
    """Questions that have no answer here, in words, with the reason."""
    from certeq.questions.examine import all_questions

    open_ones = {MARKOV: "It takes episodes, and enough but not too many rows."}
    open_ones = {} if findings.learned.summary.markov is not None else open_ones
    return open_ones | {
        each.asks or each.doing: findings.missing.get(name, "It was not asked.")
        for name, each in all_questions().items()
        if findings.found.get(name) is None
    }


def _posterior(findings: Findings) -> Iterator[str]:
    found = findings.posterior
    if {ADVICE, RECORDED} <= {*found.names}:
        better = found.difference(ADVICE, RECORDED).better
        if better < SURE:
            yield f"That the advice beats what was recorded has a probability of only {better:.0%}, by the model."


def _off_policy(findings: Findings) -> Iterator[str]:
    if not findings.off_policy.trust:
        yield f"The episodes themselves do not back the advice. {findings.off_policy.verdict}"


def _fragility(findings: Findings) -> Iterator[str]:
    found = findings.fragility
    one, asked = int((found.observations[found.asked] <= 1).sum()), int(found.asked.sum())
    if one:
        yield f"In {one:,} of {several(asked, 'state')} a single contrary observation would change the advice."


def _conventions(findings: Findings) -> Iterator[str]:
    flips = len(findings.conventions.flips)
    if flips:
        states = several(len(findings.conventions.state_names), "state")
        yield f"What stands for pairs that were never tried decides the advice in {flips:,} of {states}."


TELL: dict[str, Callable[[Findings], Iterator[str]]] = {  # name of a question -> what in its answer is an alert
    "posterior": _posterior,
    "off_policy": _off_policy,
    "fragility": _fragility,
    "conventions": _conventions,
}
