"""What people hardly ever did is let in where its own rows show that it is better, by a rule done by hand as well."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from certeq import Batch, learn
from certeq.data.counts import Counts
from certeq.data.sums import Sums
from certeq.learning.case import Case, Data
from certeq.learning.proven import CAREFUL, FEW, LEAST, LIKELY, ROUNDS, SURE, TELLING
from certeq.learning.rules import Rules
from certeq.model import habits
from strategies import SEEDS, as_sparse

GAMMA = 0.8
HABITS = Rules(discount=GAMMA, regularizer="none", reward_pool="none")


def logged(seed, S=3, A=3, n=400, by_state=False):
    """Rows in which one action is usual, in all states or in each its own; some are far better, some rows end."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(S, size=n), rng.choice(A, size=n, p=[0.9, 0.07, 0.03])
    if by_state:
        action = (np.where(rng.random(n) < 0.5, 0, rng.integers(A, size=n)) + state) % A
    towards = rng.dirichlet(np.full(S + 1, 0.5), size=(S, A))
    after = np.array([rng.choice(S + 1, p=towards[s, a]) for s, a in zip(state, action, strict=True)])
    reward = rng.normal(size=(S, A))[state, action] + 0.3 * rng.normal(size=n)
    return Batch(state, action, np.where(after == S, -1, after), S, A, reward=reward)


def by_hand(batch, share):
    """What people's habits allow and t, then what is proven as well: frequencies, plain means by kind of outcome, the
    best plan among allowed pairs by many sweeps."""
    S, A = batch.n_states, batch.n_actions
    rows = [[[] for _ in range(A)] for _ in range(S)]
    for s, a, n, r in zip(batch.state, batch.action, batch.next_state, batch.reward, strict=True):
        rows[s][a].append((int(n), float(r)))
    visits = [[len(rows[s][a]) for a in range(A)] for s in range(S)]
    likely = naive.habits(visits, habits.LEANS, habits.ROWS, habits.APART, habits.OWN)
    allowed = [[visits[s][a] > 0 and likely[s][a] >= share * max(likely[s]) for a in range(A)] for s in range(S)]
    kinds = {(s, a, e): [r for n, r in rows[s][a] if (n < 0) == e] for s in range(S) for a in range(A) for e in (0, 1)}
    freedom = sum(max(len(each) - 1, 0) for each in kinds.values())
    noise = sum((r - np.mean(each)) ** 2 for each in kinds.values() for r in each) / freedom
    pays = {
        key: np.mean(each) if each else np.mean([r for _, r in rows[key[0]][key[1]]]) for key, each in kinds.items()
    }

    def worth(s, a, n, V):
        return pays[s, a, 1] if n < 0 else pays[s, a, 0] + GAMMA * V[n]

    def plan(allowed):
        V = [0.0] * S
        for _ in range(300):
            q = [[np.mean([worth(s, a, n, V) for n, _ in rows[s][a]]) for a in range(A)] for s in range(S)]
            V = [max(q[s][a] for a in range(A) if allowed[s][a]) for s in range(S)]
        return V, q

    close = [[ok and likely[s][a] >= CAREFUL * max(likely[s]) for a, ok in enumerate(allowed[s])] for s in range(S)]
    t = np.nan
    if close != allowed and habits.differ(np.array(visits)):
        V, _ = plan(close)
        gains = []
        for s in range(S):
            each = [(a, worth(s, a, n, V)) for a in range(A) for n, _ in rows[s][a]]
            more = [likely[s][a] - sum(v[a] for v in visits) / len(batch) for a, _ in each]
            gains.append(sum((m - np.mean(more)) * x for m, (_, x) in zip(more, each, strict=True)))
        t = sum(gains) / np.sqrt(sum(g * g for g in gains))
        allowed = close
    sure, least, more = (LIKELY, FEW, 0) if t <= TELLING else (SURE, LEAST, 1)
    by_habit = np.array(allowed)
    for _ in range(ROUNDS):
        V, q = plan(allowed)
        chosen = [max((a for a in range(A) if allowed[s][a]), key=lambda a, s=s: q[s][a]) for s in range(S)]
        spread = {
            (s, a): np.mean([(worth(s, a, n, V) - q[s][a]) ** 2 for n, _ in rows[s][a]]) + noise
            for s in range(S)
            for a in range(A)
        }
        usual = sum(visits[s][a] * spread[s, a] for s, a in spread) / len(batch)
        error = {
            (s, a): (visits[s][a] * each + LEAST * usual) / (visits[s][a] + LEAST) / visits[s][a]
            for (s, a), each in spread.items()
        }
        worst = min(worth(s, a, n, V) for s, a in spread for n, _ in rows[s][a])
        low = {(s, a): (visits[s][a] * q[s][a] + more * worst) / (visits[s][a] + more) for s, a in spread}
        better = [
            (s, a)
            for s, a in spread
            if not allowed[s][a]
            and visits[s][a] >= least
            and low[s, a] - V[s] > sure * (error[s, a] + error[s, chosen[s]]) ** 0.5
        ]
        for s, a in better:
            allowed[s][a] = True
    return by_habit, t, np.array(allowed)


@pytest.mark.parametrize("by_state", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_let_in_is_what_the_rule_says(seed, by_state):
    batch = logged(seed, by_state=by_state)
    case = Case(Data.of(batch), HABITS)
    _, t, expected = by_hand(batch, 0.2)
    np.testing.assert_array_equal(case.model.allowed, expected)
    assert case.habits == pytest.approx(t, rel=1e-9, abs=1e-12, nan_ok=True)


def test_neither_rule_is_idle():
    found = [by_hand(logged(seed), 0.2) for seed in range(6)]
    assert any((after > before).any() for before, _, after in found)
    told = [by_hand(logged(seed, by_state=True), 0.2)[1] for seed in range(6)]
    assert np.nanmin(told) < 0 < np.nanmax(told)


def test_habits_say_nothing_where_all_actions_are_worth_the_same():
    """Sums of tenths differ in their last digits; that is no finding."""
    batch = logged(0, by_state=True)
    case = Case(Data.of(replace(batch, reward=np.full(len(batch), 0.1), next_state=np.full(len(batch), -1))), HABITS)
    assert case.habits == 0.0


@pytest.mark.parametrize("well", [True, False])
def test_where_habits_turned_out_well_the_advice_keeps_to_them(well):
    """In every state people do one thing of three in six cases of ten; a slip that paid by luck is not advised then."""
    rng = np.random.default_rng(0)
    state = np.repeat(np.arange(40), 10)
    action = (np.tile([0, 0, 0, 0, 0, 0, 1, 1, 2, 2], 40) + state) % 3
    usual = np.tile([1.0] * 6 + [0.0] * 4, 40) == 1
    reward = (usual == well) + 2.0 * rng.normal(size=400)
    batch = Batch(state, action, np.full(400, -1), 40, 3, reward=reward)
    case = learn(batch, discount=0.9, draws=0, regularizer="none", reward_pool="none").case
    assert (case.habits > 0) == well
    kept = case.advise().policy == np.arange(40) % 3
    assert kept.mean() == 1 if well else kept.mean() < 0.5


def test_where_habits_differ_what_is_less_than_half_as_likely_needs_proof_though_habits_were_worth_nothing():
    """In every state people do one thing of three in six cases of ten, and all three are worth the same."""
    state = np.repeat(np.arange(40), 10)
    action = (np.tile([0, 0, 0, 0, 0, 0, 1, 1, 2, 2], 40) + state) % 3
    batch = Batch(state, action, np.full(400, -1), 40, 3, reward=np.tile([1.0, -1.0], 200))
    case = learn(batch, discount=0.9, draws=0, regularizer="none", reward_pool="none").case
    assert abs(case.habits) <= TELLING
    np.testing.assert_array_equal(case.model.allowed, np.eye(3, dtype=bool)[np.arange(40) % 3])


@settings(max_examples=10)
@given(SEEDS, st.permutations(range(3)), st.permutations(range(3)))
def test_renaming_and_reordering_change_nothing(seed, states, actions):
    batch, rng = logged(seed % 50), np.random.default_rng(seed)
    state, action = np.array(states), np.array(actions)
    order = rng.permutation(len(batch))
    after = np.where(batch.next_state < 0, -1, state[batch.next_state])
    other = Batch(
        state[batch.state][order], action[batch.action][order], after[order], 3, 3, reward=batch.reward[order]
    )
    one, two = (Case(Data.of(each), Rules(discount=GAMMA)).model.allowed for each in (batch, other))
    np.testing.assert_array_equal(one, two[np.ix_(state, action)])


def test_several_data_sets_together_are_let_in_as_each_alone():
    logs = [logged(seed, n=n, by_state=by_state) for seed in range(8) for n in (60, 400) for by_state in (False, True)]
    cases = [Case(Data.of(batch), HABITS) for batch in logs]
    asked = np.isfinite([case.habits for case in cases])
    differ = habits.differ(np.stack([case.data.counts.visits for case in cases]))
    assert asked.any()
    assert (differ & ~asked).any(), "habits may differ where half as likely leaves out no more than a fifth does"
    counts, sums = (
        Counts.stack([case.data.counts for case in cases]),
        Sums.stack([case.data.reward for case in cases]),
    )
    together = cases[0].given(counts, sums)
    np.testing.assert_array_equal(np.isfinite(together.habits), asked)
    for i, case in enumerate(cases):
        np.testing.assert_array_equal(together.model.allowed[i], case.model.allowed)
        np.testing.assert_array_equal(together.advise().policy[i], case.advise().policy)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("discount", [0.0, 0.99])
@pytest.mark.parametrize(("bold", "paid", "advised"), [(4, 1.0, 0), (40, 1.0, 1), (40, 0.55, 0)])
def test_a_habit_is_left_once_enough_rows_say_so_clearly(bold, paid, advised, discount):
    """The usual thing was done 400 times and paid one half, more or less; the bold one hardly ever."""
    rng = np.random.default_rng(0)
    action = np.repeat([0, 1], [400, bold])
    reward = np.where(action == 0, 0.5, paid) + 0.3 * rng.normal(size=len(action))
    batch = Batch(np.zeros_like(action), action, np.full_like(action, -1), 1, 2, reward=reward)
    learned = learn(batch, discount=discount, draws=0)
    assert learned.policy.actions.tolist() == [advised]
    assert learned.case.model.allowed.tolist() == [[True, advised == 1]]


@pytest.mark.parametrize("seed", range(3))
def test_sparse_counts_are_judged_as_dense_ones(seed):
    data = Data.of(logged(seed))
    dense, sparse = (
        Case(replace(data, counts=counts), Rules(discount=GAMMA, regularizer="none")).model.allowed
        for counts in (data.counts, as_sparse(data.counts))
    )
    np.testing.assert_array_equal(dense, sparse)


def test_what_has_too_few_visits_is_not_let_in():
    rng = np.random.default_rng(0)
    action = np.repeat([0, 1], [400, 40])
    reward = np.where(action == 0, 0.5, 1.0) + 0.3 * rng.normal(size=len(action))
    batch = Batch(np.zeros_like(action), action, np.full_like(action, -1), 1, 2, reward=reward)
    assert learn(batch, min_visits=40, draws=0).policy.actions.tolist() == [1]
    assert learn(batch, min_visits=41, draws=0).policy.actions.tolist() == [0]
