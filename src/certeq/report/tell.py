"""Sentences of the report: what is advised, on what, how sure, and what a reader should mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from certeq.base.display import between, harmless, in_a_sentence, number, percent, several, shorten
from certeq.data.look import FEW
from certeq.learning.learned import SAME, Learned, Summary
from certeq.questions import sure
from certeq.questions.asking import ADVICE, PLAIN, RECORDED
from certeq.questions.findings import Findings
from certeq.regularizers.learned_target import Believed

LABEL = 60  # characters of a label in a sentence
LISTED = 6  # actions that a sentence lists
NEARLY = 0.95  # share of states from which on something holds nearly everywhere
LONGEST = 200  # characters of a title
NEXT = 3  # observations that the first page names


def title(findings: Findings, *, audited: bool = False) -> str:
    """What the page is about."""
    if audited and findings.audit is not None:
        return f"Audit: what planning with discount {number(findings.audit.planning_discount)} assumes"
    if findings.learned.indifferent:
        return "Nothing to choose: every reward is the same"
    advised, choices = int((findings.advised >= 0).sum()), int(findings.choice.sum())
    undecided = findings.unclear if len(findings.open) else 0
    clear = f", clear in {choices - undecided:,} of {choices:,} with a choice" if undecided else ""
    total = len(findings.advised)
    some = "all " if advised == total > 2 else f"{advised:,} of "
    return f"Advice in {some}{several(total, 'state')}{clear}"


def about(summary: Summary, source: str, date: str | None, author: str | None) -> Iterator[tuple[str, str]]:
    """What the page is about: which data, what counts as better, and who made it when."""
    of = f" in {several(summary.episodes, 'episode')}" if summary.episodes is not None else ""
    rows = f"{several(summary.rows, 'logged decision')}{of}"
    yield "Data", f"{shorten(source, LABEL)}: {rows}" if source else rows
    yield "Outcome", harmless(summary.goal).replace(" '", " “").replace("' ", "” ")
    yield from ((name, shorten(said, LONGEST)) for name, said in (("Date", date), ("By", author)) if said)


def manifest(learned: Learned, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """With which versions and of which data the page was made, and what else is told of that."""
    yield from ((name, harmless(value)) for name, value in learned.summary.to_json()["versions"].items())
    fingerprint = learned.policy.data["fingerprint"]
    if fingerprint is not None:
        yield "SHA-256 of the data", fingerprint
    yield from ((harmless(name), harmless(value)) for name, value in given.items())


def unit(learned: Learned) -> str:
    """What the discount is for each of: a unit of time where steps have a duration, otherwise a decision."""
    batch = learned.batch
    return "decision" if batch is None or batch.duration is None else batch.unit


def settings(summary: Summary) -> dict[str, str]:
    """How the policy was learned."""
    return {name: shorten(value, 300) for name, value in summary.settings.items() if value is not None}


def advice(findings: Findings) -> str:
    """What is advised, in a sentence."""
    if findings.learned.indifferent:
        return SAME
    horizon, silent = findings.learned.policy.horizon, int((findings.advised < 0).sum())
    first = f"At the first of {several(horizon, 'decision')}, the advice" if horizon else "The advice"
    without = f"; in {several(silent, 'state')} no action was tried often enough to be advised" if silent else ""
    states = several(findings.usual, "state")
    why = "all else was tried too seldom to be advised"
    kept = f" In {states} that only repeats what was usual: {why}." if findings.usual else ""
    listed = _listed(findings)
    if not horizon and listed.startswith("that "):  # and so there is nothing that it is
        return f"{listed[5:].capitalize()}{without}.{kept}"
    return f"{first} is {listed}{without}.{kept}"


def shortsighted(findings: Findings, least: float = 0.0) -> str:
    """In how many states the immediate reward alone would advise the same, if in at least such a share of them."""
    there = findings.advised >= 0
    if findings.audit is None or findings.learned.indifferent or not there.any():
        return ""
    same, total = int((findings.audit.plan("bandit").policy == findings.advised)[there].sum()), int(there.sum())
    said = f"Looking at immediate reward alone would give the same advice in {same:,} of {several(total, 'state')}"
    return "" if same < least * total else f"{said}: planning ahead changes little here." if least else f"{said}."


def typical(findings: Findings, few: int = FEW) -> str:
    """How often the advised actions had been tried."""
    kept = findings.support[findings.advised >= 0]
    if not len(kept):
        return ""
    median = float(np.median(kept))
    often = "once" if median == 1 else f"{median:g} times"
    return (
        f"In the typical state, the advised action had been tried {often}; in {int((kept < few).sum()):,} of "
        f"{several(len(kept), 'state')} fewer than {few} times."
    )


def worth(findings: Findings) -> Iterator[str]:
    """What the advice is worth beside what was done, in a few words; `sure.sentences` say all."""
    found = findings.posterior
    if found is None:
        yield f"It was not computed. {findings.missing.get('posterior', '')}".strip()
        return
    if findings.learned.indifferent:
        yield from sure.sentences(findings)
        return
    if findings.learned.summary.people:
        yield f"It is not compared with what was done: {sure.withheld(findings)}, and a plan cannot see what they saw."
        yield "No interval on this page allows for that: the advice may be worth far less, or more."
        return
    gain, better = found.difference(ADVICE, RECORDED), sure.chance(findings)
    more = "less" if gain.mean < 0 else "more"
    ends = between(gain.low, gain.high)
    yield (
        f"By the model, following the advice{sure.period(findings)} is worth{sure.net(findings)} "
        f"{number(abs(gain.mean))} {more} than what was done (90% interval of the difference: {ends})."
    )
    if better is not None:
        yield f"The chance that it is better is {in_a_sentence(percent(better, found.draws))}."
    else:
        yield f"How likely it is to be better is not given: {sure.withheld(findings)}."
    if findings.frontier is not None and findings.frontier.kept:
        yield from findings.frontier.uncharged()
    if findings.outer is not None:
        yield findings.outer.lines()[0]


def next_steps(findings: Findings) -> Iterator[str]:
    """The observations that would help most."""
    found = findings.collect
    if found is None:
        yield f"It was not computed. {findings.missing.get('collect', '')}".strip()
        return
    useful = int((found.gain > 0).sum())
    if not useful:
        yield "No single observation of any pair would change what is best to do."
    for i in range(min(NEXT, useful)):
        action, state = found.action_names[found.action[i]], found.state_names[found.state[i]]
        yield f"“{shorten(action, LABEL)}” {_where(findings)} {shorten(state, 2 * LABEL)}"


def _where(findings: Findings) -> str:
    """What leads to the name of a state: the column where there is one, and the name does not tell."""
    first, *more = findings.learned.policy.recipe.axis_names
    return "with" if more else "in state" if first == "state" else f"where {shorten(first, LABEL)} is"


def _listed(findings: Findings) -> str:
    """Actions by how often they are advised alone, and how often the advice is a set."""
    names, undecided = findings.learned.policy.action_names, findings.open
    advised = findings.advised.copy()
    advised[undecided] = -1
    often = np.bincount(advised[advised >= 0], minlength=len(names))
    order = [a for a in np.argsort(-often, kind="stable") if often[a]]
    states = several(len(undecided), "state")
    if not order and len(undecided):
        return f"that no action is clearly better in {states}"
    if not order:
        return "to do nothing in particular: no state has an action that may be advised"
    every = "all " if often.max() == len(advised) > 1 else ""
    parts = [f"“{shorten(names[a], LABEL)}” in {every}{several(int(often[a]), 'state')}" for a in order[:LISTED]]
    rest = len(order) - LISTED
    listed = ", ".join(parts) + (f" and {several(rest, 'other action')} elsewhere" if rest > 0 else "")
    return f"{listed}; in {states} no action is clearly better" if len(undecided) else listed


def how_sure(findings: Findings) -> Iterator[str]:
    """What the advice is worth, all of it, and how sure it is state by state."""
    if findings.posterior is None:
        return
    yield from sure.sentences(findings)
    open_states, total = findings.unclear, int(findings.choice.sum())
    policy = findings.learned.policy
    limit = percent(policy.clear)
    if findings.learned.indifferent:
        return
    if open_states:
        then = "a set of actions, with what is at stake between them" if policy.min_chance else "one all the same"
        yield (
            f"State by state it is less sure: in {open_states:,} of {several(total, 'state')} with a choice no action "
            f"is the best one in {limit} of the models that the data allow. There the advice is {then}."
        )
    elif total:
        yield (
            f"In every state with a choice the advised action is the best one in at least {limit} of the models that "
            "the data allow."
        )


def in_short(findings: Findings, alerts: int, opened: int) -> Iterator[tuple[str, str]]:
    """What each section found, in a line."""
    summary, choices = findings.learned.summary, int(findings.choice.sum())
    parts = [f"{several(alerts, 'thing')} to watch for"] if alerts else []
    parts += [f"{several(opened, 'question is', 'questions are')} open"] if opened else []
    yield "alerts", "; ".join(parts) or "None of the checks calls for a warning"
    clear = f"{choices - findings.unclear:,} of {several(choices, 'state')} with a choice"
    if findings.learned.indifferent:
        yield "policy", SAME.rstrip(".")
        yield "sure", "Whatever is done is worth the same"
    elif findings.posterior is not None and choices:
        kept = f"; in {findings.usual:,} more, only the usual one may be advised" if findings.usual else ""
        yield "policy", f"One action is clearly best in {clear}{kept}"
        better = sure.chance(findings)
        told = "not given" if better is None else in_a_sentence(percent(better, findings.posterior.draws))
        yield "sure", f"The chance that the advice beats what was done{sure.net(findings)} is {told}"
    else:
        yield "policy", f"{several(choices, 'state')} with a choice"
        yield "sure", "It was not computed" if findings.posterior is None else "There is no choice in any state"
    yield "why", next(reasons(findings), "There is nothing to compare").rstrip(".").split(";")[0]
    tried = f"{summary.pairs_seen:,} of {several(summary.pairs, 'pair')} of state and action ever tried"
    yield "data", f"{several(summary.rows, 'decision')}, {several(summary.states, 'state')}, {tried}"
    plain = None if findings.plain is None else int((findings.plain != findings.advised).sum())
    states = several(len(findings.advised), "state")
    told = "" if plain is None else f"; without it, the advice would differ in {plain:,} of {states}"
    yield "regularization", f"By “{findings.learned.rules.regularizer}”{told}"
    truth = None if findings.collect is None else f"To know the truth would be worth {regret(findings)} on average"
    yield "collect", truth or "It was not computed"
    yield "limits", "What was not recorded, what the states blur, what was never tried"
    yield "methods", "Settings and versions, so that it can be made again"


def regret(findings: Findings) -> str:
    """What not knowing the truth costs: nothing, whatever rounding leaves of it, where there is nothing to choose."""
    return number(0 if findings.learned.indifferent else findings.collect.regret)


def regularization(findings: Findings) -> Iterator[str]:
    """What regularization did, in words."""
    learned = findings.learned
    name, weight = learned.rules.regularizer, learned.shrinkage.weight
    tried = learned.policy.visits > 0
    shares = np.broadcast_to(weight, tried.shape)[tried]
    yield (
        f"The regularizer “{name}” replaces part of what was seen after each pair with its target. Over the pairs that "
        f"were tried, that part is {number(float(shares.mean()))} on average, from {number(float(shares.min()))} to "
        f"{number(float(shares.max()))}."
    )
    evidence = learned.shrinkage.details
    if evidence is not None and hasattr(evidence, "structures"):
        likely = sorted(zip(evidence.probability.tolist(), evidence.structures, strict=True), reverse=True)
        parts = [f"{MEANS.get(which, which)} ({percent(chance)})" for chance, which in likely if chance >= 0.01]
        yield f"The data chose its strength themselves. How pairs share a strength: {', '.join(parts)}."
    if isinstance(evidence, Believed):
        yield f"The data chose target and strength themselves. {evidence.words()}"
    if findings.plain is None:
        return
    changed = int((findings.plain != findings.advised).sum())
    states = several(len(findings.advised), "state")
    yield f"Without regularization the advice would change in {changed:,} of {states}."
    if changed and findings.posterior is not None and PLAIN in findings.posterior.names:
        gain = findings.posterior.difference(ADVICE, PLAIN)
        yield (
            f"Under the posterior, the regularized advice is worth {number(abs(gain.mean))} "
            f"{'less' if gain.mean < 0 else 'more'} (90% interval of the gain {between(gain.low, gain.high)})."
        )


MEANS = {
    "all": "one for all pairs",
    "action": "one for each action",
    "state": "one for each state",
    "pair": "one for each pair",
}


def reasons(findings: Findings) -> Iterator[str]:
    """How much of the lead comes at once, in words."""
    runner, gap = findings.runner_up
    there = (runner >= 0) & (gap > 0)
    if not there.any():
        return
    at_once = int((findings.now[there] > 0).sum())
    patient = int((findings.now[there] < 0).sum())
    states = several(int(there.sum()), "state")
    yield (
        f"In {at_once:,} of {states} with a runner-up the advised action also earns more at once; in {patient:,} it "
        "earns less now and makes up for it later."
    )
    if told := shortsighted(findings):
        yield told
