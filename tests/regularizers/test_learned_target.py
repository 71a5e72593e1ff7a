"""The learned target: it finds structure where there is some, leaves the rest alone, and says what it believes."""

import numpy as np
import pytest

from certeq import Counts, InputError, plan, shrink
from certeq.experiments.procedure import draw_counts, draw_truth
from certeq.worlds import environment


def river(tuples, data_sets, rng):
    truth = environment("river_swim")
    return truth, draw_counts(truth, {"kind": "tuples", "size": tuples}, data_sets, rng)


def row_error(truth, counts, name, **settings):
    """Mean squared error of the planned rows."""
    found = shrink(counts, name, **settings)
    visits = counts.visits[..., None]
    data = np.where(visits > 0, counts.transitions / np.maximum(visits, 1), 1 / counts.n_states)
    rows = (1 - found.weight[..., None]) * data + found.weight[..., None] * found.target.dense()
    return ((rows - truth.transition.dense()) ** 2).sum(axis=-1).mean()


def test_rows_of_an_ordered_world_are_estimated_far_better_than_toward_uniform():
    truth, counts = river(30, 200, 1)
    learned, plain = (row_error(truth, counts, name) for name in ("learned_target", "evidence"))
    assert learned < 0.5 * plain


def test_a_structureless_world_loses_nothing():
    truth = draw_truth("random_chain", {}, 400, 2)
    counts = draw_counts(truth, {"kind": "tuples", "size": 100}, 400, 3)
    learned, plain = (row_error(truth, counts, name) for name in ("learned_target", "evidence"))
    assert learned < 1.02 * plain
    assert shrink(counts, "learned_target").details.probability.mean() < 0.2


def test_false_positions_are_not_believed():
    truth = draw_truth("random_chain", {}, 400, 2)
    counts = draw_counts(truth, {"kind": "tuples", "size": 100}, 400, 3)
    lying = Counts(counts.transitions, positions=np.arange(10))
    assert shrink(lying, "learned_target").details.probability.mean() < 0.2
    assert row_error(truth, lying, "learned_target") < 1.02 * row_error(truth, counts, "evidence")


def test_with_many_rows_the_data_speak():
    truth, counts = river(200_000, 1, 4)
    assert shrink(counts, "learned_target").weight.max() < 0.01
    assert row_error(truth, counts, "learned_target") < 1e-4


def test_permuted_positions_give_what_a_permuted_line_gives():
    truth, counts = river(40, 1, 5)
    order = np.random.default_rng(0).permutation(6)
    table = counts.transitions[0]
    moved = Counts(table[order][:, :, order], positions=order)
    one, two = (
        plan(c, r, 0.99, regularizer="learned_target")
        for c, r in ((Counts(table, positions=np.arange(6)), truth.reward), (moved, truth.reward[order]))
    )
    np.testing.assert_allclose(two.action_values, one.action_values[order], rtol=1e-9)


def test_positions_may_be_left_aside():
    _, counts = river(40, 3, 6)
    without = Counts(counts.transitions)
    one, two = shrink(counts, "learned_target", positions=False), shrink(without, "learned_target")
    np.testing.assert_array_equal(one.weight, two.weight)
    assert "moves" not in one.details.candidates


def test_an_expert_who_knows_is_believed():
    truth = draw_truth("random_chain", {}, None, 7)
    counts = draw_counts(truth, {"kind": "tuples", "size": 200}, 1, 8)
    alone = Counts(counts.transitions[0])
    details = shrink(alone, "learned_target", expert=truth.transition.dense()).details
    assert details.probability > 0.99
    assert details.share[:, -1].min() > 0.5
    assert "the expert's rows" in details.words()


def test_what_is_believed_is_said_in_words():
    _, counts = river(200, 1, 9)
    alone = Counts(counts.transitions[0], positions=counts.positions)
    details = shrink(alone, "learned_target").details
    assert "has a probability of 100%" in details.words()
    assert "what this action does" in details.words(0)
    with pytest.raises(InputError, match="one data set"):
        shrink(counts, "learned_target").details.words()


@pytest.mark.parametrize("odds", [0, -1, np.nan, np.inf])
def test_odds_are_positive(odds):
    with pytest.raises(InputError, match="plain_odds must be a positive number"):
        shrink(np.ones((2, 1, 2), dtype=int), "learned_target", plain_odds=odds)


def test_odds_decide_where_data_do_not():
    table = np.zeros((3, 2, 3), dtype=int)
    assert shrink(table, "learned_target", plain_odds=3.0).details.probability == pytest.approx(0.25)
