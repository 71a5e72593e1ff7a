"""The checklist: what guidelines for reporting ask, answered from this run where software can, else left to the author.

The questions are ours. Beside each stands who asks for it: DECIDE-AI (early clinical evaluation of decision support),
TRIPOD+AI (prediction models), and the guidelines for reinforcement learning in health by Gottesman and others (2019).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import certeq
from certeq.base.display import between, harmless, number, percent, several
from certeq.data.look import FEW
from certeq.data.recipes.axes import OrMissing
from certeq.questions import sure
from certeq.questions.findings import Findings
from certeq.report import tell

D, T, G = "DECIDE-AI", "TRIPOD+AI", "Gottesman 2019"
MARKUP = re.compile(r"([\\`*_\[\]<>#|!~&])")
LONGEST = 1500  # characters of an answer


class Item(NamedTuple):
    """Something to report, and how this run answers it; without an answer it is for the author."""

    asks: str
    by: tuple[str, ...]
    answer: Callable[[Findings], str] | None = None  # an empty text where this run has none
    rest: str = ""  # what remains for the author


def write(findings: Findings, *, seed: int | None = None) -> str:
    """The checklist in Markdown: items that this run answers, then those for the author."""
    answered = [(item, _plain(item.answer(findings))) for item in ITEMS if item.answer is not None]
    parts = [
        "# Reporting checklist",
        f"Filled in by certeq {certeq.__version__}{'' if seed is None else f' (seed {seed})'}. The questions are in "
        f"our words; beside each stands which guideline asks for it: {D}, {T}, or {G} (reinforcement learning in "
        "health). Items of those guidelines that are about text alone, such as title and abstract, are not here.",
        "## Answered from this run",
        *(_line(item, told) for item, told in answered if told),
        "## Not answered by this run",
        *(_line(item, "") for item, told in answered if not told),
        "## For the author",
        *(_line(item, "") for item in ITEMS if item.answer is None),
        *(f"- [ ] {item.rest} ({', '.join(item.by)})" for item in ITEMS if item.rest),
    ]
    if all(told for _, told in answered):
        parts.remove("## Not answered by this run")
    return "\n\n".join(parts) + "\n"


def _line(item: Item, told: str) -> str:
    asked = f"- [{'x' if told else ' '}] **{item.asks}** ({', '.join(item.by)})"
    return f"{asked}\n  {told}" if told else asked


def _plain(text: str) -> str:
    """Words in which somebody's labels may stand, on one line and without markup."""
    line = " ".join(harmless(text).split())
    return MARKUP.sub(r"\\\1", line if len(line) <= LONGEST else line[:LONGEST].rstrip() + " …")


def _size(findings: Findings) -> str:
    summary = findings.learned.summary
    episodes = "" if summary.episodes is None else f" in {several(summary.episodes, 'episode')}"
    return f"{several(summary.rows, 'decision')}{episodes}; {several(summary.endings, 'episode')} ended while watched."


def _source(findings: Findings) -> str:
    mark = findings.learned.policy.data.get("fingerprint")
    return f"The file has the SHA-256 {mark}." if mark else ""


def _support(findings: Findings) -> str:
    summary, advised = findings.learned.summary, findings.support[findings.advised >= 0]
    were = "was" if summary.pairs_seen == 1 else "were"
    told = f"{summary.pairs_seen:,} of {several(summary.pairs, 'pair')} of state and action {were} ever tried."
    if len(advised):
        thin = int((advised < FEW).sum())
        told += (
            f" The advised action had been tried {np.median(advised):g} times in the typical state, and fewer than "
            f"{FEW} times in {thin:,} of {len(advised):,}."
        )
    found = findings.off_policy
    effect = "" if found is None else f" For weighing episodes, {found.effective_size:.1f} of {found.episodes:,} count."
    return told + effect


def _missing(findings: Findings) -> str:
    learned = findings.learned
    left = "; ".join(f"{count:,} × {why}" for why, count in learned.summary.dropped.items())
    coded = [name for axis in learned.policy.recipe.axes if isinstance(axis, OrMissing) for name in axis.columns]
    apart = f" Missing values are states of their own in: {', '.join(coded)}." if coded else ""
    carried = learned.policy.carried
    last = "" if carried is None else f" The last value of the episode was taken in: {', '.join(carried.columns)}."
    return f"Left out: {left or 'no rows'}.{last}{apart}"


def _state(findings: Findings) -> str:
    recipe = findings.learned.policy.recipe
    parts = "; ".join(
        f"{name} ({several(axis.size, 'value')})" for name, axis in zip(recipe.axis_names, recipe.axes, strict=True)
    )
    return f"{several(recipe.n_states, 'state')}, made of {parts}."


def _markov(findings: Findings) -> str:
    verdict = findings.learned.summary.markov
    if verdict is None:
        return ""
    return "As far as a test can tell, they do." if verdict else "Not quite: by a test, history matters beyond them."


def _actions(findings: Findings) -> str:
    names = findings.learned.policy.action_names
    return f"{len(names)}: {', '.join(names[:30])}{', ...' if len(names) > 30 else ''}."


def _goal(findings: Findings) -> str:
    learned, rules = findings.learned, findings.learned.rules
    goal = " ".join([learned.summary.goal, *(f"{each} is kept by the model." for each in rules.limit)])
    if rules.average:
        return f"{goal} What counts is the reward per decision in the long run."
    ahead = f"over {several(rules.horizon, 'decision')}" if rules.horizon else "over all that follows"
    return f"{goal} Rewards are added up {ahead}, each {tell.unit(learned)} discounted by {rules.discount:g}."


def _method(findings: Findings) -> str:
    told = (f"{name} {value}" for name, value in findings.learned.summary.settings.items() if value is not None)
    return f"Counts, a regularized model, and a plan as if it were true. Settings: {'; '.join(told)}."


def _again(findings: Findings) -> str:
    versions = findings.learned.summary.to_json()["versions"]
    return "; ".join(f"{name} {version}" for name, version in versions.items()) + "; policy.json holds the policy."


def _worth(findings: Findings) -> str:
    return " ".join(sure.sentences(findings))


def _held(findings: Findings) -> str:
    return "" if findings.off_policy is None else findings.off_policy.verdict


def _fit(findings: Findings) -> str:
    return "" if findings.returns is None else " ".join(findings.returns.lines())


def _sensitive(findings: Findings) -> str:
    told = []
    if findings.fragility is not None:
        asked = findings.fragility.asked
        one = int((findings.fragility.observations[asked] <= 1).sum())
        told.append(
            f"One contrary observation would change the advice in {one:,} of {several(int(asked.sum()), 'state')}."
        )
    if findings.conventions is not None:
        flips = len(findings.conventions.flips)
        told.append(f"What stands in for pairs that were never tried decides the advice in {several(flips, 'state')}.")
    if findings.posterior is not None:
        told.append(f"No action is clearly the best one in {several(findings.unclear, 'state')}.")
    return " ".join(told)


def _departs(findings: Findings) -> str:
    visits, advised = findings.learned.policy.visits, findings.advised
    there = advised >= 0
    same = int(findings.support[there].sum())
    usual = int((visits.argmax(axis=1) != advised)[there].sum())
    total = max(int(visits[there].sum()), 1)
    return (
        f"{same / total:.0%} of the logged decisions in states with advice were as advised. In {usual:,} of "
        f"{several(int(there.sum()), 'state')} the advice is not what was done most often; the report lists "
        "every state with its support."
    )


def _silent(findings: Findings) -> str:
    silent, sets = int((findings.advised < 0).sum()), " Sets of actions are advised where none is clearly best."
    return (
        f"Nothing is advised in {several(silent, 'state')}, in states that never occurred, and on rows with labels "
        "that were never seen; the reason is given."
        f"{'' if findings.learned.policy.chances is None else sets}"
    )


def _range(findings: Findings) -> str:
    spans = (f"{name} {low:g} to {high:g}" for name, (low, high) in findings.learned.policy.ranges.items())
    told = "; ".join(spans)
    return f"Numbers outside the range of the data are pointed out ({told})." if told else ""


def _alerts(findings: Findings) -> str:
    from certeq.questions.alerts import alerts

    found = alerts(findings)
    return f"{several(len(found), 'alert')}. " + " ".join(found) if found else "None of the checks calls for a warning."


def _gain(findings: Findings) -> str:
    if findings.posterior is None or not {"the advice", "what was recorded"} <= {*findings.posterior.names}:
        return ""
    if findings.learned.indifferent:
        return " ".join(sure.sentences(findings))
    gain = findings.posterior.difference("the advice", "what was recorded")
    better = sure.chance(findings)
    told = (
        f" Chance that it is better: {percent(better, findings.posterior.draws)}."
        if better is not None
        else f" {sure.withheld(findings).capitalize()}."
    )
    return f"The advice is worth {number(gain.mean)} more ({between(gain.low, gain.high)}, 90%).{told}"


def _groups(findings: Findings) -> str:
    return "" if findings.groups is None else " ".join(findings.groups.lines())


ITEMS = (
    Item("Which data were used, and can others check that they are the same?", (T,), _source,
         "Where, when and by whom were the data collected, and whom do they stand for?"),
    Item("How many cases and decisions are there?", (T, G), _size),
    Item("How much data is behind each piece of advice?", (G, T), _support),
    Item("What became of missing values and of rows that could not be used?", (T,), _missing,
         "Why are values missing, and could that depend on what was decided or on the outcome?"),
    Item("What does the system know about a case when it advises?", (T, D, G), _state,
         "Did those who decided know anything else that made them act, and that is not among these columns?"),
    Item("Do the states hold what matters of the past?", (G,), _markov),
    Item("Which actions are chosen from?", (D, G), _actions,
         "Are these the actions that people have, and are they recorded as they were carried out?"),
    Item("What is to be improved, and over what time?", (T, G), _goal,
         "Does the reward say what matters to those concerned, and who was asked?"),
    Item("How were the model and the advice made?", (T, D), _method),
    Item("Which versions were used, and can the result be made again?", (D, T), _again,
         "Are code, data and policy open to others, and where?"),
    Item("What is the advice worth, with what uncertainty?", (T, G), _worth),
    Item("How does it compare with what was done?", (D, G), _gain),
    Item("Was it checked by something other than the model that it was planned in?", (G, T), _held,
         "Was it checked on cases that it was not learned from: another time, another place?"),
    Item("Does the model fit over many decisions?", (T, G), _fit),
    Item("How little would change the advice?", (G,), _sensitive),
    Item("How far does the advice depart from what people do?", (G, D), _departs,
         "Does it make sense to somebody who knows the field, above all where it departs from usual practice?"),
    Item("When does the system say nothing, or less?", (D,), _silent),
    Item("Does it notice cases unlike those it learned from?", (D,), _range),
    Item("What went wrong or looks doubtful?", (D, T), _alerts),
    Item("Does it serve groups of people equally well?", (T, D), _groups),
    Item("What is it for, in whose hands, and at what point in the work?", (D, T)),
    Item("How were users trained, and how do they see the advice?", (D,)),
    Item("Which errors and harms were looked for and found, and how would they be noticed in use?", (D,)),
    Item("How often do users follow the advice, and why not where they do not?", (D,)),
    Item("Who approved the work, who paid, who has interests, and where was it registered?", (D, T)),
    Item("How were patients or the public involved?", (T, D)),
    Item("What follows for practice, and what must be studied first?", (D, T, G)),
)  # fmt: skip
