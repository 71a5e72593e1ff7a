"""A claim holds when the whole interval says so, fails when all of it says the contrary, and is open otherwise.

Along a setting that the paper does not print it may hold in part."""

import math

import pytest

from certeq.base.texts import json_text
from certeq.experiments.statistics import Interval
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, OUTCOMES, PART, Verdict, below, exactly, strip, strips
from certeq.report import reproduction as page


@pytest.mark.parametrize(
    ("low", "high", "margin", "outcome"),
    [
        (-2, -1, 0, HOLDS),
        (-2, 1, 0, OPEN),
        (1, 2, 0, FAILS),
        (0, 0, 0, FAILS),  # two methods that never differ: neither loses less
        (-1, 0, 0, OPEN),
        (-2, 0.5, 0.5, HOLDS),
        (0, 0, 0.5, HOLDS),
        (0, 1, 0.5, OPEN),
        (0.6, 1, 0.5, FAILS),
        (-math.inf, math.inf, 0, OPEN),
        (-math.inf, math.inf, 0.5, OPEN),
    ],
)
def test_the_interval_decides(low, high, margin, outcome):
    verdict = below("a < b", Interval(low, low, high), "difference", margin=margin)
    assert verdict.outcome == outcome
    assert verdict.interval == Interval(low, low, high)


def test_arithmetic_is_never_undecided():
    assert exactly("1 + 1 = 2", True, "2").outcome == HOLDS
    assert exactly("1 + 1 = 3", False, "2").outcome == FAILS


def test_a_verdict_is_written_as_plain_values():
    verdict = below("a < b", Interval(-1, -math.inf, math.inf), "difference", note="one data set only")
    assert verdict.to_json() == {
        "claim": "a < b",
        "measured": "difference: -1 [-inf, inf]",
        "outcome": OPEN,
        "interval": {"mean": -1, "low": None, "high": None},
        "note": "one data set only",
        "paper": "",
    }
    json_text(verdict.to_json())  # JSON has no infinity
    assert Verdict("c", "m", HOLDS).to_json()["interval"] is None


@pytest.mark.parametrize(
    ("outcomes", "outcome", "said"),
    [
        ({1: HOLDS, 2: HOLDS, 4: HOLDS}, HOLDS, "holds from 1 to 4 rows"),
        ({1: FAILS, 2: FAILS}, FAILS, "does not hold from 1 to 2 rows"),
        ({1: OPEN, 2: OPEN}, OPEN, "undecided from 1 to 2 rows"),
        ({2: OPEN, 1: HOLDS, 4: FAILS}, PART, "holds at 1, undecided at 2, does not hold at 4 rows"),
        ({1: HOLDS, 2: HOLDS, 4: OPEN}, PART, "holds from 1 to 2, undecided at 4 rows"),
        ({1: OPEN, 2: FAILS}, FAILS, "undecided at 1, does not hold at 2 rows"),  # it holds nowhere
        ({0.5: HOLDS}, HOLDS, "holds at 0.5 rows"),
    ],
)
def test_a_strip_tells_from_where_to_where(outcomes, outcome, said):
    verdict = strip("a < b", outcomes, "rows", paper="Sec. 9")
    assert (verdict.outcome, verdict.measured, verdict.paper) == (outcome, said, "Sec. 9")


def test_strips_side_by_side_are_judged_together():
    verdict = strips("a < b", {"x": {1: HOLDS, 2: HOLDS}, "y": {1: HOLDS, 2: FAILS}}, "rows")
    assert verdict.outcome == PART
    assert verdict.measured == "x: holds from 1 to 2; y: holds at 1, does not hold at 2 (rows)"
    assert strips("", {"x": {1: FAILS}, "y": {1: FAILS}}, "rows").outcome == FAILS


def test_the_papers_claims_and_ours_are_counted_apart():
    verdicts = [Verdict("", "", HOLDS, paper="Sec. 1").to_json(), Verdict("", "", FAILS).to_json()]
    counts = page.counts([{"verdicts": verdicts}])
    assert counts["paper"] == {HOLDS: 1, PART: 0, FAILS: 0, OPEN: 0}
    assert counts["ours"] == {HOLDS: 0, PART: 0, FAILS: 1, OPEN: 0}
    assert page.tally({HOLDS: 2, PART: 1, FAILS: 3, OPEN: 0}) == "2 hold, 1 holds in part, 3 do not hold"


def test_the_page_knows_every_outcome_and_tells_them_apart_without_color():
    assert tuple(page.LOOKS) == OUTCOMES
    assert len({sign for _, sign in page.LOOKS.values()}) == len(OUTCOMES)
