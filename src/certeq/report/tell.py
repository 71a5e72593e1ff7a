"""Sentences of the report: what is advised, on what, how sure, and what a reader should mind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certeq.base.display import harmless, number, percent, several, shorten
from certeq.data.look import FEW
from certeq.questions import sure
from certeq.questions.asking import ADVICE, PLAIN
from certeq.questions.findings import Findings
from certeq.regularizers.learned_target import Believed

LABEL = 60  # characters of a label in a sentence
LISTED = 6  # actions that a sentence lists


def title(findings: Findings) -> str:
    """What the page is about."""
    advised, undecided = int((findings.advised >= 0).sum()), len(findings.open)
    clear = f", a clear one in {advised - undecided:,}" if undecided else ""
    return f"Advice in {advised:,} of {several(len(findings.advised), 'state')}{clear}"


def lead(findings: Findings, few: int = FEW) -> Iterator[str]:
    """What is advised, on how much data, and how sure; a few sentences each."""
    summary, advised, support = findings.learned.summary, findings.advised, findings.support
    of = f" in {several(summary.episodes, 'episode')}" if summary.episodes is not None else ""
    horizon = findings.learned.policy.horizon
    first = f" At the first of {several(horizon, 'decision')}, it" if horizon else " It"
    silent = int((advised < 0).sum())
    without = f"; in {several(silent, 'state')} no action was tried often enough to be advised" if silent else ""
    rows = several(summary.rows, "logged decision")
    goal = harmless(summary.goal).replace(" '", " “").replace("' ", "” ")
    yield f"{goal} This advice comes from {rows}{of}.{first} is {_listed(findings)}{without}."
    if (advised >= 0).any():
        kept = support[advised >= 0]
        thin = int((kept < few).sum())
        median = float(np.median(kept))
        typical = "once" if median == 1 else f"{median:g} times"
        yield (
            f"In the typical state the advised action had been tried {typical}; in {thin:,} of "
            f"{several(len(kept), 'state')} fewer than {few} times."
        )
    if findings.posterior is not None:
        yield " ".join(_sure(findings))


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


def _sure(findings: Findings) -> Iterator[str]:
    found = findings.posterior
    if found is None:
        return
    yield from sure.sentences(findings)
    open_states, total = findings.unclear, int(findings.choice.sum())
    policy = findings.learned.policy
    limit = percent(policy.clear)
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


def tiles(findings: Findings) -> Iterator[tuple[str, str]]:
    """The numbers that a reader looks for first."""
    summary = findings.learned.summary
    yield f"{summary.rows:,}", "decision" if summary.rows == 1 else "decisions"
    if summary.episodes is not None:
        yield f"{summary.episodes:,}", "episode" if summary.episodes == 1 else "episodes"
    yield f"{summary.pairs_seen / summary.pairs:.0%}".replace("%", " %"), "of state–action pairs were ever tried"
    if findings.posterior is not None:
        total, open_states = int(findings.choice.sum()), findings.unclear
        better = sure.chance(findings)
        if better is not None:
            told = percent(better, findings.posterior.draws)
            of = f"{sure.period(findings)}{sure.net(findings) or ','}"
            yield told, f"chance that the advice beats what was recorded{of} by the model"
        if total:
            yield f"{total - open_states:,} of {total:,}", "states with a choice where one action is clearly best"
    if findings.off_policy is not None:
        yield f"{findings.off_policy.effective_size:.1f}", "episodes in effect for off-policy estimates"


def regularization(findings: Findings) -> Iterator[str]:
    """What regularization did, in words."""
    learned = findings.learned
    name, weight = learned.rules.regularizer, learned.shrinkage.weight
    tried = learned.policy.visits > 0
    shares = np.broadcast_to(weight, tried.shape)[tried]
    yield (
        f"The regularizer “{name}” replaces a part of what was seen after each pair by its target. Over the pairs that "
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
    yield f"Without any regularization the advice would be another in {changed:,} of {states}."
    if changed and findings.posterior is not None and PLAIN in findings.posterior.names:
        gain = findings.posterior.difference(ADVICE, PLAIN)
        yield (
            f"Under the posterior, the regularized advice is worth {number(gain.mean)} more (90 % interval "
            f"{number(gain.low)} to {number(gain.high)})."
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
    if findings.audit is not None:
        near = findings.audit.plan("bandit").policy
        same = int((near == findings.advised)[findings.advised >= 0].sum())
        yield (
            f"Looking at the immediate reward alone would advise the same in {same:,} of "
            f"{several(int((findings.advised >= 0).sum()), 'state')}."
        )
