"""Ties in what users see: told as what they are, and settled by support, never by the alphabet."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import certeq
from certeq.base.texts import csv_text
from certeq.cli import app
from certeq.learning.policy import Policy
from certeq.planners.backup import best_supported
from certeq.questions.examine import examine
from certeq.report.learned_page import render
from strategies import SEEDS

NAMES = ("b", "a", "c")  # of three actions, not in the order of the alphabet


def rows(names=NAMES, often=(1, 3, 2)):
    """Two states in a ring; the first two actions do the same everywhere, the third earns less."""
    columns = {"state": [], "action": [], "reward": [], "next": []}
    for state, after in (("here", "there"), ("there", "here")):
        for name, times, reward in zip(names, often, (1, 1, 0), strict=True):
            for key, value in zip(columns, (state, name, reward, after), strict=True):
                columns[key] += [value] * times
    return columns


def learned(table, **rules):
    batch = certeq.read(table, state="state", action="action", reward="reward", next_state="next")
    return certeq.learn(batch, regularizer="none", **rules)


@given(seed=SEEDS, size=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_the_best_supported_is_found_as_in_a_loop(seed, size):
    rng = np.random.default_rng(seed)
    tie, visits = rng.random(size) < 0.6, rng.integers(3, size=size)
    tie[np.arange(size[0]), rng.integers(size[1], size=size[0])] = True
    for s, found in enumerate(best_supported(tie, visits)):
        keys = [(visits[s, a], visits[:, a].sum(), -a) for a in range(size[1]) if tie[s, a]]
        assert (visits[s, found], visits[:, found].sum(), -found) == max(keys)


@pytest.mark.parametrize("horizon", [None, 2])
@pytest.mark.parametrize("names", [("b", "a", "c"), ("a", "b", "c"), ("y", "x", "z")])
def test_what_was_tried_most_is_advised_whatever_it_is_called(names, horizon):
    found = learned(rows(names), horizon=horizon).policy
    both = tuple(sorted(names[:2]))
    for piece in found.pieces():
        assert piece.advised == names[1]
        assert set(piece.among) == set(both)
        assert not piece.open
        assert piece.told == f"either of {', '.join(piece.among)}"
        assert piece.gap == 0
    assert next(Policy.from_json(found.to_bytes()).pieces()).among == both


def test_a_clear_best_action_is_no_tie():
    found = learned(rows(often=(0, 3, 2))).policy
    assert [piece.among for piece in found.pieces()] == [(), ()]
    assert found.apply({"state": ["here"]}).told == ("a",)


def test_advice_for_new_rows_says_tied():
    found = learned(rows()).policy.apply({"state": ["here", "nowhere"]})
    assert found.told == ("either of a, b", "")
    assert found.among == (("a", "b"), ())
    assert found.stake.tolist()[0] == 0
    timed = learned(rows(), horizon=2).policy.apply({"state": ["here", "there"]}, step=[1, 5])
    assert timed.told == ("either of a, b", "")


def test_report_terminal_and_files_say_either_of(tmp_path):
    table, out = tmp_path / "rows.csv", tmp_path / "out"
    columns = rows()
    table.write_text(csv_text(tuple(columns), list(zip(*columns.values(), strict=True))))
    run = CliRunner().invoke
    said = run(
        app, ["learn", str(table), "--next-state", "next", "--regularizer", "none", "--out", str(out), "--no-report"]
    )
    assert said.exit_code == 0, said.output
    assert "either of a, b" in said.output
    assert "several actions are equally good; the one tried most often is advised" in " ".join(said.output.split())
    assert re.search(r'\nhere,"either of a, b",a,[\d.]+,a \| b,0.0,3,', (out / "policy.csv").read_text())
    told = run(app, ["apply", str(out / "policy.json"), str(table), "-o", str(tmp_path / "actions.csv")])
    assert "Tied for 12" in told.output
    assert re.search(r'\n1,here,"either of a, b",a,[\d.]+,a \| b,0.0,3,', (tmp_path / "actions.csv").read_text())
    assert "either of a, b" in render(examine(learned(columns), draws=0))
