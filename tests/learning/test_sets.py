"""Where no action is clearly better the advice is a set: by chances, in every file and on every screen."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import certeq
from certeq.base.texts import csv_text
from certeq.cli import app
from certeq.learning.policy import Policy
from certeq.learning.sets import in_words, likely
from certeq.questions.examine import examine
from certeq.report.learned_page import render
from naive import likely_set
from strategies import SEEDS

WORDS = "no clear difference: a or b"


def rows(n=60, gain=2.0):
    """Two states, each episode one row: in "open" a and b earn the same on average, in "clear" a earns more."""
    random, noise = np.random.default_rng(4), 0.0
    table = {"state": [], "action": [], "reward": []}
    for i in range(n):
        noise = random.normal() if i % 3 == 0 else noise  # the same for all three, so that chance favors none
        for state in ("open", "clear"):
            action = "abc"[i % 3]
            worth = {"a": gain * (state == "clear") + 0.05, "b": 0.0, "c": -4.0}[action]
            for name, value in zip(table, (state, action, worth + noise), strict=True):
                table[name].append(value)
    return table | {"next": ["open", "clear"] * n, "done": [1] * (2 * n)}


def learned(**more):
    batch = certeq.read(rows(), state="state", action="action", reward="reward", next_state="next", done="done")
    return certeq.learn(batch, **more)


@given(seed=SEEDS, size=st.tuples(st.integers(1, 4), st.integers(1, 5)), limit=st.sampled_from([0, 0.3, 0.5, 0.8, 1]))
def test_sets_are_those_of_a_loop_and_reach_the_limit(seed, size, limit):
    random = np.random.default_rng(seed)
    chances = random.multinomial(10, random.dirichlet(np.ones(size[1])), size=size[0]) / 10
    actions = random.integers(-1, size[1], size=size[0])
    found = likely(chances, actions, limit)
    for s, a in enumerate(actions.tolist()):
        assert set(np.flatnonzero(found[s])) == likely_set(chances[s].tolist(), a, limit)
        assert a < 0 or chances[s, found[s]].sum() >= limit - 1e-9


@given(seed=SEEDS, A=st.integers(2, 5))
def test_names_do_not_decide_who_is_in(seed, A):
    random = np.random.default_rng(seed)
    chances = random.multinomial(6, np.ones(A) / A, size=1) / 6
    order, action = random.permutation(A), np.array([int(random.integers(A))])
    renamed = likely(chances[:, order], np.argsort(order)[action], 0.8)
    np.testing.assert_array_equal(renamed, likely(chances, action, 0.8)[:, order])


def test_words():
    assert in_words(["a", "b"]) == WORDS
    assert in_words(["a", "b", "c"]) == "no clear difference: a, b or c"
    assert in_words(["a", "b", "c"], tied=True) == "either of a, b, c"


def test_what_the_data_do_not_tell_apart_is_a_set_with_what_is_at_stake():
    found = learned()
    clear, undecided = found.policy.pieces()
    assert (clear.told, clear.among, clear.stake, clear.open) == ("a", (), None, False)
    assert clear.chance > 0.95
    assert set(undecided.among) == {"a", "b"}
    assert undecided.open
    assert undecided.told == f"no clear difference: {' or '.join(undecided.among)}"
    assert undecided.stake == pytest.approx(undecided.gap)
    assert found.summary.choices == 2
    assert found.summary.clear == 1
    assert "In 1 of 2 states with a choice no action" in found.summary.alerts[0]


def test_the_limit_is_a_rule_and_can_be_changed_later():
    found = learned(min_chance=0)
    assert next(found.policy.pieces()).told == "a"
    assert not found.policy.open.any()
    strict = found.policy.stricter(1.0)
    assert strict.open.tolist() == [bool(chance < 1) for chance in strict.chance]
    with pytest.raises(certeq.InputError, match="min_chance"):
        found.policy.stricter(1.1)
    with pytest.raises(certeq.InputError, match="min_chance"):
        learned(min_chance=-0.1)


def test_the_file_keeps_chances_and_one_without_them_says_that_it_does_not_know():
    policy = learned().policy
    again = Policy.from_json(policy.to_bytes())
    np.testing.assert_array_equal(again.chances, policy.chances)
    assert [piece.told for piece in again.pieces()] == [piece.told for piece in policy.pieces()]
    older = policy.to_json()
    del older["chances"], older["settings"]["min_chance"]
    plain = Policy.from_json(older)
    assert plain.chances is None
    advice = plain.apply({"state": ["open", "clear"]})
    assert np.isnan(advice.chance).all()
    assert not advice.open.any()
    for wrong in ([[1, 0, 0]], [[0, 0, 1.5], [0, 0, 1]], [[0, 0, -1], [0, 0, 1]], [[0, 0, None], [0, 0, 1]], 3):
        with pytest.raises(certeq.InputError, match="chances"):
            Policy.from_json(older | {"chances": wrong})


def test_without_draws_nothing_is_made_up_and_an_alert_says_so():
    found = learned(draws=0)
    assert found.policy.chances is None
    assert found.summary.clear is None
    assert found.summary.alerts[0].startswith("How sure each action is was not computed")
    asked = examine(found, draws=50)
    assert asked.learned.policy.chances is not None
    assert not any("not computed how sure" in alert for alert in asked.learned.summary.alerts)


def test_a_report_uses_the_chances_that_learn_found():
    found = learned(draws=60, rng=3)
    same, other = examine(found, draws=60, rng=3), examine(found, draws=60, rng=4)
    assert same.posterior is found.answers["posterior"]
    assert other.posterior is not same.posterior
    np.testing.assert_array_equal(other.learned.policy.chances, other.posterior.best)


def test_terminal_report_and_files_tell_the_set(tmp_path):
    table, out, told = tmp_path / "rows.csv", tmp_path / "out", tmp_path / "actions.csv"
    columns = rows()
    table.write_text(csv_text(tuple(columns), list(zip(*columns.values(), strict=True))))
    run = CliRunner().invoke
    said = run(app, ["learn", str(table), "--next-state", "next", "--out", str(out), "--no-report", "--draws", "200"])
    assert said.exit_code == 0, said.output
    words = " or ".join(learned().policy._set(1))
    assert f"no clear difference: {words}" in said.output
    with (out / "policy.csv").open() as file:
        clear, undecided = csv.DictReader(file)
    assert clear["advice"] == clear["action"] == "a"
    assert clear["set"] == clear["at_stake"] == ""
    assert undecided["advice"] == f"no clear difference: {words}"
    assert 0 < float(undecided["chance"]) < 0.8
    assert float(undecided["at_stake"]) > 0
    assert json.loads((out / "summary.json").read_text())["clear"] == 1
    run(app, ["apply", str(out / "policy.json"), str(table), "-o", str(told)])
    with told.open() as file:
        lines = list(csv.DictReader(file))
    assert lines[0]["advice"] == f"no clear difference: {words}"
    assert lines[0]["set"] == words.replace(" or ", " | ")
    assert float(lines[0]["chance"]) == float(undecided["chance"])
    assert lines[1]["advice"] == "a"
    loose = run(app, ["apply", str(out / "policy.json"), str(table), "-o", str(told), "--force", "--min-chance", "0"])
    assert "No clear difference" not in loose.output
    bare = run(app, ["learn", str(table), "--next-state", "next", "--out", str(out), "--no-report", "--draws", "0"])
    assert bare.exit_code == 2  # the files are there
    again = ["learn", str(table), "--next-state", "next", "--out", str(out), "--no-report", "--draws", "0", "--force"]
    assert "was not computed" in run(app, again).output
    empty = run(app, ["apply", str(out / "policy.json"), str(table), "-o", str(told), "--force"])
    assert "does not say how sure its actions are" in " ".join(empty.output.split())
    page = render(examine(learned(draws=100), draws=100))
    assert f"no clear difference: {words}" in page
    assert "Advice in 2 of 2 states, clear in 1 of 2 with a choice" in page
