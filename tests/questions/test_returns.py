"""Returns over many decisions: the literal comparison, and what it notices."""

import numpy as np
import pytest

from certeq import Batch, environment, learn, sampling
from certeq.data.order import episodes
from certeq.questions.episodes import behavior
from certeq.questions.returns import Returns, Stretch, returns
from logbook import logged


def literal(learned, k, onward):
    """From every row that was watched long enough: what happened, minus what is expected, each followed by hand."""
    batch, case, gamma = learned.batch, learned.case, learned.rules.discount
    rows, reward = case.model.transition.dense(), learned.reward
    chance, order = behavior(case.data.counts), episodes(batch)
    values = learned.plan.values if onward else np.zeros(batch.n_states)
    found = []
    for e in range(len(order.length)):
        mine = order.row[order.number == e]
        for t in range(len(mine)):
            window = mine[t : t + k]
            over = batch.next_state[mine[-1]] < 0
            if len(window) < k and not over:
                continue
            worth = sum(gamma**j * batch.reward[i] for j, i in enumerate(window))
            last = batch.next_state[window[-1]]
            if len(window) == k and last >= 0:
                worth += gamma**k * values[last]
            ahead = values
            for _ in range(k):
                ahead = np.array(
                    [
                        sum(chance[s, a] * (reward[s, a] + gamma * rows[s, a] @ ahead) for a in range(batch.n_actions))
                        for s in range(batch.n_states)
                    ]
                )
            found.append((e, worth - ahead[batch.state[window[0]]]))
    apart = np.array([d for _, d in found])
    total = {e: sum(d - apart.mean() for f, d in found if f == e) for e, _ in found}
    return apart.mean(), np.sqrt(sum(t**2 for t in total.values())) / len(apart)


@pytest.mark.parametrize("seed", [1, 2])
def test_differences_are_those_of_following_every_row_by_hand(seed):
    learned = learn(logged(seed, episodes=12), discount=0.9)
    found = returns(learned)
    assert {each.decisions for each in found.followed} >= {1, 2}
    for each in found.followed:
        mean, error = literal(learned, each.decisions, each.onward)
        assert each.difference == pytest.approx(mean, abs=1e-9)
        assert each.error == pytest.approx(error, abs=1e-9)


def test_a_markov_world_is_not_doubted():
    truth = environment("random_chain", rng=3)
    for seed in range(4):
        found = returns(learn(sampling.trajectories(truth, 40, 20, rng=seed), discount=0.95))
        assert found.agrees
        assert "earns what the episodes earned" in found.lines()[0]


def remembering(seed, n=150, length=12):
    """Episodes with a kind that no state shows: one kind earns always, the other never."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(rng.random(n) < 0.5, length)
    rich = np.where(kind, 1.0, 0.0)
    state = np.where(rng.random(n * length) < 0.9, kind, 1 - kind).astype(int)
    start = np.arange(n * length) % length == 0
    state[start] = 0
    then = np.append(state[1:], 0)
    then[np.append(start[1:], True)] = -1
    return Batch(
        state, rng.integers(2, size=n * length), then, 2, 2, reward=rich, episode=np.repeat(np.arange(n), length)
    )


def test_where_history_matters_it_is_said_that_intervals_cannot_be_trusted():
    found = returns(learn(remembering(0), discount=0.95))
    assert found.agrees is False
    assert found.worst.decisions > 1
    assert "no interval of its own can be trusted" in found.lines()[0]
    assert found.to_json()["agrees"] is False


def test_few_episodes_tell_nothing():
    found = Returns((Stretch(4, False, 9.0, 1.0),), 3)
    assert found.agrees is None
    assert "too few" in found.lines()[0]
