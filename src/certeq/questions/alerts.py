"""Alerts: what a reader must know before the advice, from all that was found; and which questions are still open."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from certeq.base.display import between, number, several
from certeq.learning.learned import SAME
from certeq.questions.asking import RECORDED
from certeq.questions.credible import credible
from certeq.questions.findings import Findings
from certeq.questions.sure import chance, net, period, withheld

EVEN = 0.5
SURE = 0.9  # that the advice beats what was recorded: below this it is said
MARKOV = "whether the states look Markov"
PEOPLE = "whether people acted on more than the states hold"


def alerts(findings: Findings) -> list[str]:
    """Everything that deserves a second look: what undoes the rest first, then what was decided unasked."""
    summary, first = findings.learned.summary, leading(findings)
    rest = [alert for alert in summary.alerts if alert not in (*first, summary.people)]
    found = [alert for name, tell in TELL.items() if findings.found.get(name) is not None for alert in tell(findings)]
    return [*first, *summary.decisions, *rest, *([] if findings.learned.indifferent else found)]


def leading(findings: Findings) -> list[str]:
    """What nobody may overlook: that there is no choice, no trust in the intervals, or likely worse to come."""
    if findings.learned.indifferent:
        return [SAME]
    found = [*filter(None, [findings.learned.summary.people])]
    if findings.returns is not None and findings.returns.agrees is False:
        found += findings.returns.lines()
    if findings.posterior is not None and findings.posterior.astray:
        claimed, value = findings.posterior.claimed[0], credible(findings.posterior.values[0])
        found.append(
            f"The model that gave the advice claims {number(claimed)} for it, and models drawn from the data "
            f"{between(value.low, value.high)}: what was borrowed or made up matters too much to trust "
            "either. The interval given allows for both."
        )
    better = chance(findings)
    if better is not None and better < EVEN:
        found.append(
            f"The advice is more likely worse than what was recorded{period(findings)}{net(findings).rstrip(',')}: the "
            f"chance that it is better is only {better:.0%}, by the model. Do what was done, or collect what is "
            "missing first."
        )
    return found


def checked(findings: Findings) -> list[str]:
    """What was looked at, in words."""
    from certeq.questions.examine import all_questions

    looked = [each.asks or each.doing for name, each in all_questions().items() if findings.found.get(name) is not None]
    summary = findings.learned.summary
    return [
        *([MARKOV] if summary.markov is not None else []),
        *([PEOPLE] if summary.people is not None else []),
        *looked,
    ]


def unasked(findings: Findings) -> dict[str, str]:
    """Questions that have no answer here, in words, with the reason."""
    from certeq.questions.examine import all_questions

    summary, open_ones = findings.learned.summary, {}
    if summary.markov is None:
        open_ones[MARKOV] = "It takes episodes, and enough rows but not too many."
    if summary.people is None:
        open_ones[PEOPLE] = (
            "It takes enough rows, but not too many, with columns that the states are cut from or leave out."
        )
    return open_ones | {
        each.asks or each.doing: findings.missing.get(name, "It was not asked.")
        for name, each in all_questions().items()
        if findings.found.get(name) is None and each.applies(findings.learned)
    }


def _posterior(findings: Findings) -> Iterator[str]:
    found = findings.posterior
    better = chance(findings)
    if better is not None and EVEN <= better < SURE:
        said = f"The chance that the advice beats what was recorded{period(findings)}{net(findings)}"
        yield f"{said} is only {better:.0%}, by the model."
    if found.watched is not None:
        decisions = "1 decision" if found.watched == 1 else f"{found.watched:,} decisions or fewer"
        yield (
            f"The advice is planned without end, but half of the episodes were watched for {decisions}: its value is "
            f"given for these alone. To plan for them alone as well, set --horizon {found.watched}."
        )
    if RECORDED in found.names and better is None and not leading(findings):  # else the reason stands first
        yield f"How likely the advice beats what was recorded is not given: {withheld(findings)}."


def _off_policy(findings: Findings) -> Iterator[str]:
    if not findings.off_policy.trust:
        apart = "do not agree with the model" if findings.off_policy.apart else "cannot confirm the advice"
        yield f"The episodes alone {apart}. {findings.off_policy.verdict}"


def _outer(findings: Findings) -> Iterator[str]:
    if findings.outer.wide:
        said = " ".join(findings.outer.lines()[1:])
        yield f"What the advice is worth depends heavily on rows that nobody saw. {said}"


def _fragility(findings: Findings) -> Iterator[str]:
    found = findings.fragility
    one, asked = int((found.observations[found.asked] <= 1).sum()), int(found.asked.sum())
    if one:
        yield f"In {one:,} of {several(asked, 'state')} a single contrary observation would change the advice."


def _frontier(findings: Findings) -> Iterator[str]:
    for each, likely in zip(findings.learned.rules.limit, findings.frontier.kept, strict=False):
        if likely < SURE:
            yield f"The chance that the advice keeps {each} is only {likely:.0%}, by the model."


def _conventions(findings: Findings) -> Iterator[str]:
    flips = len(findings.conventions.flips)
    if flips:
        states = several(len(findings.conventions.state_names), "state")
        yield f"What stands in for pairs that were never tried decides the advice in {flips:,} of {states}."


def _avoided(findings: Findings) -> Iterator[str]:
    found = findings.avoided
    kept = len(found.differs)
    if kept:
        habits, rare = (
            "that seems to have turned out better than the rest",
            "what the plan would choose was seldom tried",
        )
        why = habits if found.well else rare
        states = several(len(found.state_names), "state")
        said = f"In {kept:,} of {states} the advice keeps to what people did, since {why}."
        yield f"{said} To see the plan without that, set --min-share 0."


def _groups(findings: Findings) -> Iterator[str]:
    yield from findings.groups.alerts()


TELL: dict[str, Callable[[Findings], Iterator[str]]] = {  # name of a question -> what in its answer is an alert
    "posterior": _posterior,
    "outer": _outer,
    "off_policy": _off_policy,
    "fragility": _fragility,
    "conventions": _conventions,
    "avoided": _avoided,
    "groups": _groups,
    "frontier": _frontier,
}
