"""Conventions: the table is what learning with each of them advises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq import Batch, compare_conventions
from certeq.learning.learned import learn
from certeq.model.unvisited import CONVENTIONS
from logbook import logged
from strategies import SEEDS


@pytest.mark.slow
@given(SEEDS, st.integers(1, 4), st.sampled_from(["evidence", "discount", "none"]))
def test_each_line_of_the_table_is_what_would_be_learned(seed, min_visits, regularizer):
    batch = logged(seed, episodes=4)
    way = {"discount": 0.9, "regularizer": regularizer, "min_visits": min_visits}
    way |= {"strength": 0.3} if regularizer == "discount" else {}
    learned = learn(batch, unvisited="average", **way)
    found = compare_conventions(learned)
    assert found.chosen == "average"
    assert found.thin == (learned.counts.visits < min_visits).sum()
    assert list(found.policies) == list(CONVENTIONS)
    for name, policy in found.policies.items():
        assert policy.tolist() == learn(batch, unvisited=name, min_share=0, **way).policy.actions.tolist()
        apart = [s for s in range(3) if policy[s] != found.policies["average"][s]]
        assert found.differs(name).tolist() == apart
    table = [[int(policy[s]) for policy in found.policies.values()] for s in range(3)]
    assert found.flips.tolist() == [s for s, actions in enumerate(table) if len(set(actions) - {-1}) > 1]


def test_a_state_where_conventions_disagree_is_named():
    """Action 1 was never tried in state 'bad': ending looks better than losing 1 for ever, nothing tried does."""
    batch = Batch([0, 0, 1], [0, 0, 0], [0, 0, 0], 2, 2, reward=np.array([-1.0, -1, -1]), state_names=("bad", "worse"))
    found = compare_conventions(learn(batch, discount=0.9, reward=[[-1, -1], [-1, -1]]))
    assert found.policies["exclude"].tolist() == [0, 0]
    assert found.policies["zero"].tolist() == [1, 1]
    assert "changes the advised action in 2 of 2 states: 'bad', 'worse'." in found.lines()[0]
    assert any(line.startswith("Under 'zero' instead of 'exclude'") for line in found.lines())
    assert found.to_json()["flips"] == ["bad", "worse"]


def test_where_everything_was_tried_no_convention_plays_a_part():
    found = compare_conventions(learn(Batch([0, 0], [0, 1], [0, 0], 1, 2, reward=np.array([0.0, 1])), discount=0.5))
    assert found.flips.tolist() == []
    assert found.lines() == ["Every pair was tried often enough, so no convention for pairs without data plays a part."]
