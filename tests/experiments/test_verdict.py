"""A claim holds when the whole interval says so, fails when all of it says the contrary, and is open otherwise."""

import math

import pytest

from certeq.base.texts import json_text
from certeq.experiments.statistics import Interval
from certeq.experiments.verdict import FAILS, HOLDS, OPEN, OUTCOMES, Verdict, below, exactly
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
    }
    json_text(verdict.to_json())  # JSON has no infinity
    assert Verdict("c", "m", HOLDS).to_json()["interval"] is None


def test_the_page_knows_every_outcome_and_tells_them_apart_without_color():
    assert tuple(page.LOOKS) == OUTCOMES
    assert len({sign for _, sign in page.LOOKS.values()}) == len(OUTCOMES)
