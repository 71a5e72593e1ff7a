"""A few rules: they are what trying everything finds, and say how often they agree."""

from dataclasses import replace

import numpy as np
import pytest

import certeq
from certeq.data.recipes import Bins, Labels, Recipe
from certeq.data.recipes.axes import OrMissing
from certeq.learning.learned import learn
from certeq.learning.policy import Policy
from certeq.questions.few_rules import LEAST, LEAVES, TIE, few_rules
from naive import few_rules as tried


def policy_on(axes, cells, advised, visits, chances=None):
    """A policy that advises so, where states were visited so often."""
    advised, A = np.asarray(advised), 3
    tried = np.zeros((len(cells), A), dtype=np.int64)
    tried[:, 0] = visits
    values = np.where(np.arange(A) == advised[:, None], 1.0, 0.0)
    return Policy(Recipe(axes, cells), ("a", "b", "c"), advised, tried, values, {}, {}, chances)


def grid(*sizes):
    return np.array(np.meshgrid(*map(range, sizes), indexing="ij")).reshape(len(sizes), -1).T


@pytest.mark.parametrize("seed", range(6))
def test_the_rules_are_those_that_trying_everything_finds(seed):
    random = np.random.default_rng(seed)
    axes = (Bins("x", (0.0, 1.0)), Labels("ward", "text", ("E", "N", "S")), Labels("day", "integer", (1, 2, 3)))
    cells = grid(3, 3, 3)[np.sort(random.permutation(27)[:22])]
    noise = random.random(22) < 0.15
    advised = np.where(noise, random.integers(3, size=22), (cells[:, 0] > seed % 2) ^ (cells[:, 1] == 1))
    chances = np.where(np.arange(3) == advised[:, None], 0.5 + 0.5 * (random.random((22, 1)) < 0.7), 0.3)
    policy = policy_on(axes, cells, advised, random.integers(1, 30, size=22), chances / chances.sum(1, keepdims=True))
    best = np.arange(3) == policy.actions[:, None]
    agree = policy.visits.sum(axis=1)[:, None] * policy.among
    leaning = agree + agree * best * TIE
    ways = [
        set(np.flatnonzero(cells[:, axis] <= code if axis != 1 else cells[:, axis] == code).tolist())
        for axis in range(3)
        for code in range(3 if axis == 1 else 2)
    ]
    order = np.argsort(-leaning.sum(axis=0), kind="stable")
    leaves = tried(leaning[:, order].tolist(), ways, LEAVES, LEAST)
    found = few_rules(policy)
    total = agree.max(axis=1).sum()
    assert [rule.share for rule in found.rules] == [agree[list(leaf)].max(axis=1).sum() / total for leaf in leaves]
    most = [agree[list(leaf), leaning[list(leaf)].sum(axis=0).argmax()].sum() for leaf in leaves]
    assert found.agreement == pytest.approx(sum(most) / total)
    assert [rule.agrees * rule.share for rule in found.rules] == pytest.approx([each / total for each in most])


def test_where_no_action_is_clearly_better_the_rules_say_the_one_of_most_value():
    cells, advised = grid(5), [0, 1, 1, 1, 0]
    chances = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0.4, 0.6, 0], [1, 0, 0]])
    policy = policy_on((Bins("x", (1.0, 2.0, 3.0, 4.0)),), cells, advised, [9] * 5, chances)
    values = np.where(chances > 0, chances, -np.inf)  # what was never tried may not be advised
    found = few_rules(replace(policy, action_values=values))
    assert found.agreement == 1
    assert [(rule.where, rule.action) for rule in found.rules] == [
        ((("x", "below 1"),), 0), ((("x", "1 to 4"),), 1), ((("x", "4 or more"),), 0)
    ]  # fmt: skip
    assert [rule.alone for rule in found.rules] == pytest.approx([1, 2 / 3, 1])


def test_columns_that_matter_only_together_are_found():
    cells = grid(2, 2, 2)
    policy = policy_on(tuple(Bins(name, (5.0,)) for name in "xyz"), cells, cells[:, 0] ^ cells[:, 2], [10] * 8)
    found = few_rules(policy)
    assert (found.agreement, len(found.rules)) == (1.0, 4)
    assert {rule.where: rule.action for rule in found.rules} == {
        (("x", low), ("z", "below 5")): a for low, a in (("below 5", 0), ("5 or more", 1))
    } | {(("x", low), ("z", "5 or more")): a for low, a in (("below 5", 1), ("5 or more", 0))}


def test_conditions_are_told_in_the_words_of_their_column():
    axes = (
        OrMissing(Bins("x", (1.0, 2.0, 3.0))),
        Labels("ward", "text", ("E", "N", "S")),
        Labels("day", "integer", (1, 2, 3)),
    )
    cells = grid(5, 3, 3)
    first = policy_on(axes, cells, (cells[:, 0] == 1) | (cells[:, 0] == 2), [1] * 45)
    assert [rule.where for rule in few_rules(first).rules] == [
        (("x", "below 1"),), (("x", "1 to 3"),), (("x", "3 or more or missing"),)
    ]  # fmt: skip
    second = policy_on(axes, cells, cells[:, 1] == 1, [1] * 45)
    assert [rule.where for rule in few_rules(second).rules] == [(("ward", "N"),), (("ward", "not N"),)]
    third = policy_on(axes, cells, cells[:, 2] > 0, [1] * 45)
    assert [rule.where for rule in few_rules(third).rules] == [(("day", "1"),), (("day", "2 or more"),)]
    measured = policy_on(
        (Bins("x", (1.0, 2.0, 3.0), "cm"), *axes[1:]), grid(4, 3, 3), grid(4, 3, 3)[:, 0] > 1, [1] * 36
    )
    assert [rule.where for rule in few_rules(measured).rules] == [(("x", "below 2 cm"),), (("x", "2 cm or more"),)]
    gone = policy_on(axes, cells, cells[:, 0] == 4, [1] * 45)
    assert [rule.where for rule in few_rules(gone).rules] == [(("x", "missing"),), (("x", "not missing"),)]


def test_an_order_that_the_user_gives_is_used_and_numbers_without_one_are_told_apart_one_by_one():
    random = np.random.default_rng(0)
    stage = random.choice(["mild", "bad", "worst"], size=600)
    treated = random.integers(2, size=600)
    reward = np.where((stage == "mild") == (treated == 0), 1.0, 0.0)
    rows = {"stage": stage, "action": treated, "reward": reward, "next_stage": np.roll(stage, -1)}
    batch = certeq.read(rows, state="stage", next_state="next_stage", ordered={"stage": ["mild", "bad", "worst"]})
    found = few_rules(*(lambda learned: (learned.policy, learned.counts.positions))(learn(batch)))
    assert [rule.where for rule in found.rules] == [(("stage", "mild"),), (("stage", "not mild"),)]
    assert found.agreement == 1


def test_one_action_everywhere_is_one_rule_and_chaos_is_said_to_be_none():
    cells = grid(6, 6)
    axes = tuple(Bins(name, (1.0, 2.0, 3.0, 4.0, 5.0)) for name in "xy")
    always = few_rules(policy_on(axes, cells, [2] * 36, [3] * 36))
    assert always.lines() == ["One rule, “c” everywhere, agrees with the advice in 100% of visits."]
    board = few_rules(policy_on(axes, cells, cells.sum(axis=1) % 2, [3] * 36))
    assert not board.good
    assert "No 6 rules or fewer reproduce the advice" in board.lines()[0]
    assert board.to_json()["agreement"] == board.agreement


def test_states_without_advice_do_not_count_and_all_of_them_leave_nothing_to_say():
    cells = grid(4)
    policy = policy_on((Bins("x", (1.0, 2.0, 3.0)),), cells, [0, 0, -1, 1], [5, 5, 80, 10])
    assert [rule.share for rule in few_rules(policy).rules] == [0.5, 0.5]
    with pytest.raises(certeq.InputError, match="Nothing is advised"):
        few_rules(replace(policy, actions=np.full(4, -1)))


def test_a_column_of_many_values_is_cut_at_even_shares_of_the_visits():
    cells = grid(3000)
    policy = policy_on((Bins("x", tuple(range(2999))),), cells, cells[:, 0] >= 1500, [1] * 3000)
    found = few_rules(policy)
    assert len(found.rules) == 2
    assert found.agreement > 0.95
