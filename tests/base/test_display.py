"""Labels and small tables as people see them, in a terminal, a page or a notebook."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import certeq
from certeq import InputError
from certeq.base.display import (
    LONGEST,
    MOST,
    ROUNDING,
    between,
    duration,
    harmless,
    notebook,
    number,
    percent,
    several,
    shorten,
    told,
    tried,
)
from certeq.base.texts import csv_text
from certeq.cli import app

HOSTILE = ["<script>alert(1)</script>", "\u202eabc", "\x1b[2J", "a\nb", "[/bold]", "x" * 10_000, "&lt;"]


@pytest.mark.parametrize("label", HOSTILE)
def test_a_harmless_text_commands_nothing(label):
    assert all(c.isprintable() or c == "\n" for c in harmless(label))
    assert all(c.isprintable() for c in shorten(label, 30))
    assert len(shorten(label, 30)) <= 30


@pytest.mark.parametrize(
    ("value", "said"),
    [(1234, "1,234"), (0.0, "0"), (0.12345, "0.123"), (-0.5, "−0.5"), (98765.4, "98,765"), (0.00001234, "1.2e−05")],
)
def test_numbers_are_written_for_people(value, said):
    assert number(value) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (8.473, 14.103, "8.5 to 14.1"),
        (-0.2041, 1.0, "−0.2 to 1.0"),
        (-0.04, 1.2, "−0.04 to 1.20"),
        (0.0, 1.2, "0.0 to 1.2"),
        (100.00001, 100.00009, "100.000010 to 100.000090"),
        (-7.501, 27.41, "−8 to 27"),
        (1234.567, 1234.789, "1,234.57 to 1,234.79"),
        (-12_345.0, 54_321.0, "−12,000 to 54,000"),
        (3.0, 3.0, "3 to 3"),
        (36.743693100305, 36.743693100315, "36.7 to 36.7"),
        (1e-7, 2e-7, "1.0e−07 to 2.0e−07"),
        (0.0, 1e300, "0 to 1e+300"),
    ],
)
def test_ends_of_intervals_have_two_digits_of_their_width(low, high, said):
    assert between(low, high) == said


def test_intervals_side_by_side_have_the_same_decimals_if_they_are_about_as_wide():
    assert [between(166.1, 178.2), between(134.9, 144.3), between(134.9, 144.3, (166.1, 178.2))] == [
        "166 to 178", "134.9 to 144.3", "135 to 144",
    ]  # fmt: skip
    with pytest.raises(InputError, match="infinite"):
        between(0.0, np.inf)
    assert between(134.9, 134.95, (166.1, 178.2)) == "134.900 to 134.950"
    assert between(-0.2, 9.4, (166.1, 178.2)) == "−0.2 to 9.4"  # on which side of 0 it ends is told


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_ends_are_told_to_a_tenth_of_the_width_or_nearer(low, width):
    high = low + width
    assume(width > 2 * ROUNDING * max(abs(low), abs(high)))
    told = [float(end.replace("−", "-").replace(",", "")) for end in between(low, high).split(" to ")]
    assert np.abs(np.subtract(told, (low, high))).max() <= 0.05 * (high - low) + 1e-9 * max(abs(low), abs(high))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.3, "less than a second"), (1.2, "1 s"), (75, "75 s"), (125, "2 min"), (5999, "100 min"), (9000, "2.5 h")],
)
def test_lengths_of_time_are_written_for_people(seconds, said):
    assert duration(seconds) == said


def test_shares_of_draws_are_never_certain_and_round_to_the_safe_side():
    assert [percent(share, draws) for share in (0.0, 1.0) for draws in (60, 400)] == [
        "<1.7%", "<0.3%", ">98.3%", ">99.7%",
    ]  # fmt: skip
    assert percent(0.5, 60) == "50%"
    assert percent(1.0) == "100%"


def test_one_thing_is_no_plural():
    assert [several(n, "state") for n in (0, 1, 2000)] == ["0 states", "1 state", "2,000 states"]
    assert several(2, "pair has", "pairs have") == "2 pairs have"


def test_a_notebook_shows_the_first_rows_and_how_many_are_left():
    html = notebook("A <b>", ("x",), ([i] for i in range(25)), 25)
    assert html.count("<tr>") == MOST + 1
    assert f"… and {25 - MOST} more." in html
    assert "A &lt;b&gt;" in html


@pytest.fixture
def batch():
    label = "<img src=x onerror=alert(1)>" + "z" * 500
    random = np.random.default_rng(0)
    state, action = random.integers(12, size=200), random.integers(2, size=200)
    names = tuple(f"{i}{label}" for i in range(12))
    return certeq.Batch(
        state,
        action,
        np.roll(state, -1),
        12,
        2,
        reward=random.random(200),
        state_names=names,
        action_names=(label, "y"),
    )


def test_objects_show_themselves_in_a_notebook_without_harm(batch):
    learned = certeq.learn(batch)
    for shown in (learned, learned.policy, learned.counts, learned.plan):
        html = shown._repr_html_()
        assert "<img" not in html
        assert html.count("<div") == html.count("</div>")
        assert max(map(len, re.findall(r"<td>(.*?)</td>", unescape(html)))) <= LONGEST + 30
    first = re.findall(r"<td>(.*?)</td>", learned.policy._repr_html_())
    assert float(first[2]) == pytest.approx(learned.policy.chance[0], abs=1e-3)
    assert first[3] == str(learned.policy.visits[0, learned.policy.actions[0]])


def test_batches_of_plans_and_counts_tell_their_shape():
    counts = np.ones((3, 2, 1, 2), dtype=int)
    assert "(3,) data sets" in certeq.Counts(counts)._repr_html_()
    assert "one for each of (3,)" in certeq.plan(counts, [[0.0], [1.0]], 0.9)._repr_html_()
    assert (
        "at the first of 4 decisions"
        in certeq.learn(certeq.Batch([0, 1], [0, 0], [1, 0], 2, 1, reward=[0.0, 1.0]), horizon=4).policy._repr_html_()
    )


def test_answers_tell_themselves_in_a_notebook(batch):
    learned = certeq.learn(replace(batch, episode=np.arange(200) // 10, time=np.arange(200) % 10))
    found = certeq.examine(learned, draws=20)
    for part in ("posterior", "audit", "path", "fragility", "conventions", "collect"):
        html = getattr(found, part)._repr_html_()
        assert html.startswith("<div>")
        assert "<img" not in html
    assert "20 drawn models" in found.posterior._repr_html_()
    assert told(["a <b>", "\u202e"]) == "<div><p>a &lt;b&gt;</p><p>\\u202e</p></div>"


def test_objects_tell_themselves_in_a_line_of_text(batch):
    learned = certeq.learn(replace(batch, episode=np.arange(200) // 10, time=np.arange(200) % 10), draws=50)
    undecided = int(learned.policy.open.sum())
    alerts = len(learned.summary.alerts)
    assert repr(learned.batch) == "Batch(200 rows, 12 states, 2 actions, 20 episodes, 0 ended, rewards)"
    assert repr(learned.counts).startswith("Counts(12 states, 2 actions: 200 rows, ")
    assert repr(learned.policy) == f"Policy(12 states, 2 actions: advice in 12, no clear difference in {undecided})"
    clear = f"advice in 12, one action clearly best in {learned.summary.clear} of {learned.summary.choices}"
    known = f"learned_target, discount 0.99; {several(alerts, 'alert')})"
    assert repr(learned) == f"Learned(200 rows, 12 states, 2 actions; {clear}; {known}"
    assert repr(learned.plan) == "<Plan for 12 states, optimal (policy iteration)>"
    assert "chances not computed" in repr(replace(learned.policy, chances=None))
    several_sets = certeq.Counts(np.ones((3, 2, 1, 2), dtype=int))
    assert repr(several_sets) == "Counts(2 states, 1 action, (3,) data sets: 12 rows, 6 of 6 pairs tried)"
    assert len(repr(learned.summary)) < 5000


def test_a_summary_prints_what_the_terminal_shows(tmp_path, capsys):
    table = {"state": list("ABAB"), "action": list("xyyx"), "reward": [0.0, 1.0, 0.5, 0.0], "next_state": list("BABA")}
    (tmp_path / "rows.csv").write_text(csv_text(tuple(table), list(zip(*table.values(), strict=True))))
    learned = certeq.learn(certeq.read(tmp_path / "rows.csv"))
    learned.summary()
    printed = capsys.readouterr().out
    shown = CliRunner().invoke(
        app, ["learn", str(tmp_path / "rows.csv"), "--no-report", "--out", str(tmp_path / "out")]
    )
    assert shown.output.startswith(printed)
    assert shown.output.removeprefix(printed).startswith("Written: ")
    assert "Advice" in printed
    with pytest.raises(certeq.InputError, match="stands alone"):
        replace(learned.summary, of=None)()


def test_a_plan_that_takes_what_nobody_tried_says_so_and_learn_does_not():
    counts = np.zeros((2, 2, 2), dtype=int)
    counts[:, 0, 0] = 5
    reward = np.array([[0.0, 1.0], [0.0, 0.0]])
    plan = certeq.plan(counts, reward, 0.5)
    assert plan.policy[0] == 1
    assert plan.untried.tolist() == [True, False]
    assert "in 1 state the action was never tried" in repr(plan)
    assert "in 1 state the action was never tried" in plan._repr_html_()
    cautious = certeq.plan(counts, reward, 0.5, unvisited="exclude")
    assert cautious.policy.tolist() == [0, 0]
    assert not cautious.untried.any()
    assert "never tried" not in repr(cautious)
    rows = certeq.Batch([0] * 5 + [1] * 5, [0] * 10, [0] * 10, 2, 2)
    assert certeq.learn(rows, reward=reward, discount=0.5).policy.actions.tolist() == [0, 0]
    both = certeq.plan(np.stack([counts, counts + 1]), reward, 0.5)
    assert both.untried.tolist() == [[True, False], [False, False]]


def test_one_pair_was_tried_and_two_were():
    assert tried(1, 1, 1) == "1 state x 1 action: 1 of 1 pair was tried (100%)."
    assert tried(11, 3, 32) == "11 states x 3 actions: 32 of 33 pairs were tried (97%)."
