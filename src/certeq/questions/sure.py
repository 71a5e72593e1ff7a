"""How sure: the intervals and chances of a report, in the same words for page, terminal and file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from certeq.base.display import between, in_a_sentence, number, percent, several
from certeq.data.look import FEW
from certeq.questions.asking import ADVICE, RECORDED
from certeq.questions.credible import Posterior
from certeq.questions.findings import Findings
from certeq.questions.outer import Outer
from certeq.questions.returns import Returns

SEEN = 0.05  # of an interval's width: less than that need not be told
THIN = 0.25  # share of the advised decisions that are for pairs with few rows, above which no chance is told
EPISODES, ROWS = 30, 15  # and rows for each state, below which none is told where states are cut from numbers
HANGS = 0.1  # no chance is told that moves by more than this with what is taken off


def chance(findings: Findings) -> float | None:
    """Chance that the advice beats what was recorded; None where nobody can tell, or it is withheld."""
    found = findings.posterior
    if found is None or not {ADVICE, RECORDED} <= {*found.names} or withheld(findings):
        return None
    return float(found.difference(ADVICE, RECORDED).better)


def doubt(found: Posterior, returns: Returns | None) -> str:
    """Why the model is not to be trusted with an interval, in words; empty where nothing speaks against it."""
    if returns is not None and returns.agrees is False:
        return "over many decisions the model does not earn what the episodes earned"
    if found.astray:
        return "models drawn from the data disagree with the one that gave the advice"
    return ""


def printed(found: Posterior, outer: Outer | None, returns: Returns | None) -> Posterior:
    """The posterior as it is told: of a model in doubt the interval of the advice is the outer one, or wider."""
    if outer is None or not doubt(found, returns):
        return found
    _, low, high = found.interval(found.names[0])
    return replace(found, doubt=(max(0.0, low - outer.low), max(0.0, outer.high - high)))


def withheld(findings: Findings) -> str:
    """Why no chance is told that the advice is better, in words; empty where one is."""
    found, learned = findings.posterior, findings.learned
    if learned.indifferent:
        return "every reward is the same"
    if learned.summary.people:
        return "people acted on more than the states hold"
    if not (found.values[0] != found.values[found.names.index(RECORDED)]).any():
        return "it is what was done"
    if why := doubt(found, findings.returns):
        return why
    if found.thin > THIN:
        return f"{found.thin:.0%} of its decisions are for pairs with fewer than {FEW} rows"
    recipe, batch, counts = learned.policy.recipe, learned.batch, learned.counts
    if recipe.cut and batch is not None and batch.episode is not None and len(np.unique(batch.episode)) < EPISODES:
        return f"states are cut from numbers, and there are fewer than {EPISODES} episodes"
    if recipe.cut and counts.visits.sum() < ROWS * counts.n_states:
        return f"states are cut from numbers, and there are fewer than {ROWS} rows for each of them"
    bare, better = found.bare(RECORDED), found.difference(ADVICE, RECORDED).better
    if abs(bare - better) > HANGS:
        alone, less = (in_a_sentence(percent(share, found.draws)) for share in (bare, better))
        return f"the models alone say {alone}; corrected for what they tend to promise too much, {less}"
    return ""


def period(findings: Findings) -> str:
    """What the values are of, where that is not all that comes: as long as people were watched."""
    found = findings.posterior
    return "" if found is None or found.watched is None else f" over {several(found.watched, 'decision')}"


def net(findings: Findings) -> str:
    """What the values are net of, where limits have a price."""
    limited = findings.learned.limited
    charged = limited is not None and findings.learned.batch is not limited.case.data.batch
    return ", net of the charge for what is limited," if charged else ""


def sentences(findings: Findings) -> Iterator[str]:
    """What the advice is worth: as believed, whatever the unseen rows are like, and whether to trust either."""
    found = findings.posterior
    if found is None:
        return
    value, before = found.interval(ADVICE), found.interval(RECORDED)
    if findings.learned.indifferent:
        yield f"Whatever is done{period(findings)} is worth the same: {number(value.mean)}."
        return
    better = chance(findings)
    if better is not None:
        told = f": the advice is better with a chance of {in_a_sentence(percent(better, found.draws))}"
    else:
        told = f". How likely the advice is better is not given: {withheld(findings)}"
    yield (
        f"If rows are alike in the way the model believes, following the advice{period(findings)} is worth"
        f"{net(findings)} {number(value.mean)} (90% interval {between(value.low, value.high)}), while "
        f"doing what was recorded is worth {number(before.mean)} ({between(before.low, before.high, value[1:])}){told}."
    )
    if found.watched is not None:
        yield (
            f"Values are for {several(found.watched, 'decision')}, as long as half of the episodes were watched; "
            "how sure anything later is, nobody can say."
        )
    little = SEEN * (value.high - value.low)
    flattered = f"on average, advice looks {number(found.flattery)} too good in the data that it was chosen from"
    left_out = "where people did as advised twice in a row, the second decision paid less than the model expects"
    reasons = (
        (found.lowered, f"than the models alone put it: {flattered}"),
        (found.history, f"because of what the states leave out: {left_out}"),
        (found.overstated, "because the model, acted in as people acted, earns that much more than they did"),
    )
    for i, (much, why) in enumerate(each for each in reasons if each[0] > little):
        yield f"The low end is {'another ' if i else ''}{number(much)} lower {why}."
    if any(found.doubt):
        yield (
            "The interval for the advice allows for whatever the rows that nobody saw are like, since "
            f"{doubt(found, findings.returns)}."
        )
    if not found.again:
        yield "Counts alone cannot be resampled, so these intervals tend to be too narrow."
    if findings.learned.summary.people:
        yield "None of these intervals allows for what people saw but the states do not hold."
    elif findings.outer is not None and not any(found.doubt):
        yield findings.outer.lines()[0]
    if findings.frontier is not None and findings.frontier.kept:
        limits = zip(findings.learned.rules.limit, findings.frontier.kept, strict=True)
        kept = [
            f"{limit} is kept with a chance of {in_a_sentence(percent(share, found.draws))}" for limit, share in limits
        ]
        yield f"By the model, {' and '.join(kept)}."
        yield from findings.frontier.uncharged()


def to_json(findings: Findings) -> dict[str, Any]:
    """What a file holds of it."""
    found, outer, returns = findings.posterior, findings.outer, findings.returns
    if found is None:
        return {"missing": findings.missing.get("posterior", "It was not asked.")}
    return {
        "draws": found.draws,
        "data_drawn_again": found.again,
        "thin": found.thin,
        "decisions": found.watched,
        "flattery": found.flattery,
        "history": found.history,
        "overstated": found.overstated,
        "rests_on_rows": found.rests,
        "doubt": doubt(found, returns),
        "credible": {name: found.interval(name)._asdict() for name in found.names},
        "better": chance(findings),
        "outer": None if outer is None else outer.to_json(),
        "returns": None if returns is None else returns.to_json(),
        "words": list(sentences(findings)),
    }
