"""What the binning does to the rows: how thin it spreads them, and how Markov the states look."""

import dataclasses

import numpy as np
import pytest

from certeq.data.batch import Batch
from certeq.data.binning import binning_report, markov_check
from certeq.data.recipes import fit


def chain(order, seed=0, episodes=200, length=60):
    """A process whose next state depends on the last ``order`` states and the action."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(3, 0.4), size=(3, 3, 2))
    if order == 1:
        rows = np.broadcast_to(rows[0], rows.shape)
    last, state = rng.integers(3, size=(2, episodes))
    steps = []
    for t in range(length):
        action, u = rng.integers(2, size=episodes), rng.random((episodes, 1))
        after = np.minimum((rows[last, state, action].cumsum(axis=-1) < u).sum(axis=-1), 2)
        steps.append((np.arange(episodes), np.full(episodes, t), state, action, after))
        last, state = state, after
    episode, time, state, action, after = (np.concatenate(c) for c in zip(*steps, strict=True))
    return rows_of(state, action, after, episode, time)


def rows_of(state, action, next_state, episode=None, time=None, n_states=3):
    columns = {"state": state, "action": action, "next_state": next_state, "episode": episode, "time": time}
    arrays = {k: None if v is None else np.asarray(v) for k, v in columns.items()}
    return Batch(**arrays, n_states=n_states, n_actions=2)


def test_the_markov_check_tells_a_second_order_process_from_a_first_order_one():
    second, first = markov_check(chain(2)), markov_check(chain(1))
    assert second.p_value < 0.01
    assert second.excess > 0.1
    assert "not quite Markov" in second.lines()[0]
    assert first.p_value > 0.05
    assert abs(first.excess) < 0.01
    assert "look Markov" in first.lines()[0]
    assert first.rows == second.rows == 200 * 59


def test_the_p_value_of_a_markov_process_is_about_uniform():
    values = [markov_check(chain(1, seed, 10, 20), permutations=40, rng=seed).p_value for seed in range(60)]
    assert 0.3 < np.mean(values) < 0.7
    assert np.mean(np.array(values) <= 0.1) < 0.25


def test_few_rows_do_not_tell_how_markov_the_states_are():
    few, enough = (markov_check(chain(2, episodes=1, length=n + 1)) for n in (99, 100))
    assert (few.rows, enough.rows) == (99, 100)
    assert few.lines() == ["There are too few rows to check whether the states are Markov (99; it takes 100)."]
    assert "too few" not in enough.lines()[0]


def literal_information(batch):
    """I(next; previous | state, action) from its definition, in bits."""
    from collections import Counter

    rows = []
    by_key = {(e, t): i for i, (e, t) in enumerate(zip(batch.episode, batch.time, strict=True))}
    for (e, t), i in by_key.items():
        if (e, t - 1) in by_key:
            j = by_key[e, t - 1]
            rows.append((batch.state[j], (batch.state[i], batch.action[i]), batch.next_state[i]))
    joint, n = Counter(rows), len(rows)
    pz, xz, yz = (
        Counter(z for _, z, _ in rows),
        Counter((x, z) for x, z, _ in rows),
        Counter((z, y) for _, z, y in rows),
    )
    return sum(c / n * np.log2(c * pz[z] / (xz[x, z] * yz[z, y])) for (x, z, y), c in joint.items())


def test_the_information_is_that_of_the_definition():
    batch = chain(2, episodes=20, length=15)
    assert markov_check(batch, permutations=1).observed == pytest.approx(literal_information(batch))


def test_rows_that_do_not_follow_one_another_are_no_evidence():
    assert markov_check(rows_of([0, 1], [0, 0], [1, 0])).rows == 0
    assert "cannot be checked" in markov_check(rows_of([0], [0], [1])).lines()[0]
    apart = rows_of([0, 1, 2, 0], [0] * 4, [1, 0, 0, -1], episode=[0, 0, 0, 1])  # the second row leads to 0, not to 2
    assert markov_check(apart).rows == 1
    steps = rows_of([0, 1, 0, 1], [0] * 4, [1, 0, 1, -1], episode=[0] * 4, time=[0, 7, 14, 28])
    assert markov_check(steps).rows == 2
    certain = markov_check(rows_of([0, 1, 0], [0] * 3, [1, 0, 1], episode=[0] * 3))
    assert (certain.observed, certain.p_value) == (0.0, 1.0)


def test_the_report_tells_how_the_rows_are_spread():
    recipe = fit({"a": ["x", "y"], "b": ["u", "v"]})
    batch = rows_of([0, 0, 0, 1], [0] * 4, [1, 0, 0, -1], n_states=2)
    report = binning_report(dataclasses.replace(batch, recipe=recipe))
    assert (report.used, report.possible, report.never_seen) == (2, 4, 2)
    assert (report.fewest, report.median, report.most, report.rows) == (1, 2.0, 3, 4)
    assert report.markov is None
    assert report.lines() == [
        "2 states occur of 4 possible combinations (2 were never seen).",
        "4 rows: between 1 and 3 in a state, median 2.",
    ]
    even = binning_report(rows_of([0, 0, 1, 1], [0] * 4, [1, 0, 0, -1], n_states=2))
    assert "4 rows: 2 in each state." in even.lines()
    lone = binning_report(rows_of([0, 0, 0], [0] * 3, [0, 0, -1], n_states=1))
    assert "3 rows: all in one state." in lone.lines()
    linked = binning_report(chain(1, episodes=5, length=5), permutations=5)
    assert linked.markov is not None
    assert len(linked.lines()) == 3
    assert linked.lines()[0] == "3 states occur."
