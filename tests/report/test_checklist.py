"""The checklist: what software can answer is answered from the run, and what it cannot is the author's."""

import re
from dataclasses import replace

from hostile_labels import HOSTILE

import certeq
from certeq.base.display import percent
from certeq.questions.findings import Findings
from certeq.report import checklist


def part(text, heading):
    """The lines under a heading."""
    return text.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_every_item_is_there_once_and_answered_or_left_to_the_author(found):
    text = checklist.write(found, seed=7)
    for item in checklist.ITEMS:
        assert text.count(f"**{item.asks}**") == 1
        assert not item.rest or text.count(item.rest) == 1
    answered = part(text, "Answered from this run")
    assert answered.count("- [x]") == len(re.findall(r"\*\*[^*]+\*\*", answered))
    assert "- [x]" not in part(text, "For the author")
    assert "(seed 7)" in text


def test_answers_are_those_of_this_run(found):
    text = checklist.write(found)
    summary, posterior = found.learned.summary, found.posterior
    assert f"{summary.rows:,} decisions in {summary.episodes} episodes" in text
    assert f"{summary.pairs_seen} of {summary.pairs} pairs" in text
    better = posterior.difference("the advice", "what was recorded").better
    told = re.search(r"Chance that it is better: ([^.]*\.?\d*%)", text)
    assert told[1].endswith(percent(better, posterior.draws).lstrip(">"))
    assert ", ".join(found.learned.policy.action_names) in text
    as_advised = found.support.sum() / found.learned.policy.visits.sum()
    assert f"{as_advised:.0%} of the logged decisions" in text


def test_what_was_not_found_out_is_not_answered(found):
    bare = checklist.write(Findings(found.learned))
    asked = part(bare, "Not answered by this run")
    for words in ("something other than the model", "worth, with what uncertainty", "How little would change"):
        assert words in asked
    assert "Chance that it is better" not in bare


def test_labels_cannot_write_markup(hostile):
    text = checklist.write(Findings(hostile))
    assert all(line.startswith(("#", "- [", "  ", "Filled in by")) for line in text.splitlines() if line)
    assert not re.search(r"(?<!\\)<", text)
    names = tuple(f"{i}\n- [x] **done** <b> `{label}`" for i, label in enumerate(HOSTILE.values()))
    named = replace(hostile.policy, action_names=names[: len(hostile.policy.action_names)])
    assert "- [x] **done**" not in checklist.write(Findings(replace(hostile, policy=named)))


def test_counts_alone_have_a_checklist_too():
    rows = {"state": [0, 1, 0, 1], "action": [0, 1, 1, 0], "reward": [0.0, 1, 2, 3], "next_state": [1, 0, 1, 0]}
    text = checklist.write(certeq.examine(certeq.learn(certeq.read(rows), draws=0), draws=0))
    assert "4 decisions;" in text
    assert "Did those who decided know anything else" in part(text, "For the author")
