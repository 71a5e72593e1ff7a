"""What people hardly ever did is let in where its own rows show that it is better, by a rule done by hand as well."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certeq import Batch, learn
from certeq.data.counts import Counts
from certeq.data.sums import Sums
from certeq.learning.case import Case, Data
from certeq.learning.proven import LEAST, ROUNDS, SURE
from certeq.learning.rules import Rules
from strategies import SEEDS, as_sparse

GAMMA = 0.8


def logged(seed, S=3, A=3, n=400):
    """Rows in which one action is usual, others rare; some are far better, some rows end."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(S, size=n), rng.choice(A, size=n, p=[0.9, 0.07, 0.03])
    towards = rng.dirichlet(np.full(S + 1, 0.5), size=(S, A))
    after = np.array([rng.choice(S + 1, p=towards[s, a]) for s, a in zip(state, action, strict=True)])
    reward = rng.normal(size=(S, A))[state, action] + 0.3 * rng.normal(size=n)
    return Batch(state, action, np.where(after == S, -1, after), S, A, reward=reward)


def by_hand(batch, share):
    """Allowed pairs: frequencies, plain means by kind of outcome, the best plan among allowed pairs by enumeration."""
    S, A = batch.n_states, batch.n_actions
    rows = [[[] for _ in range(A)] for _ in range(S)]
    for s, a, n, r in zip(batch.state, batch.action, batch.next_state, batch.reward, strict=True):
        rows[s][a].append((int(n), float(r)))
    visits = [[len(rows[s][a]) for a in range(A)] for s in range(S)]
    allowed = [[0 < visits[s][a] >= share * max(visits[s]) for a in range(A)] for s in range(S)]
    kinds = {(s, a, e): [r for n, r in rows[s][a] if (n < 0) == e] for s in range(S) for a in range(A) for e in (0, 1)}
    freedom = sum(max(len(each) - 1, 0) for each in kinds.values())
    noise = sum((r - np.mean(each)) ** 2 for each in kinds.values() for r in each) / freedom
    pays = {
        key: np.mean(each) if each else np.mean([r for _, r in rows[key[0]][key[1]]]) for key, each in kinds.items()
    }

    def worth(s, a, n, V):
        return pays[s, a, 1] if n < 0 else pays[s, a, 0] + GAMMA * V[n]

    for _ in range(ROUNDS):
        V = [0.0] * S
        for _ in range(300):
            q = [[np.mean([worth(s, a, n, V) for n, _ in rows[s][a]]) for a in range(A)] for s in range(S)]
            V = [max(q[s][a] for a in range(A) if allowed[s][a]) for s in range(S)]
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
        low = {(s, a): (visits[s][a] * q[s][a] + worst) / (visits[s][a] + 1) for s, a in spread}
        better = [
            (s, a)
            for s, a in spread
            if not allowed[s][a]
            and visits[s][a] >= LEAST
            and low[s, a] - V[s] > SURE * (error[s, a] + error[s, chosen[s]]) ** 0.5
        ]
        for s, a in better:
            allowed[s][a] = True
    return np.array(allowed)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_let_in_is_what_the_rule_says(seed):
    batch = logged(seed)
    case = Case(Data.of(batch), Rules(discount=GAMMA, regularizer="none", reward_pool="none"))
    expected = by_hand(batch, 0.2)
    np.testing.assert_array_equal(case.model.allowed, expected)


def test_the_rule_is_not_idle():
    found = [by_hand(logged(seed), 0.2).sum() - by_hand_usual(logged(seed)) for seed in range(6)]
    assert sum(each > 0 for each in found) > 0, found


def by_hand_usual(batch):
    visits = np.zeros((batch.n_states, batch.n_actions), dtype=int)
    np.add.at(visits, (batch.state, batch.action), 1)
    return (visits >= 0.2 * visits.max(axis=1, keepdims=True)).sum()


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
    cases = [Case(Data.of(logged(seed)), Rules(discount=GAMMA)) for seed in range(4)]
    counts, sums = (
        Counts.stack([case.data.counts for case in cases]),
        Sums.stack([case.data.reward for case in cases]),
    )
    together = cases[0].given(counts, sums)
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
