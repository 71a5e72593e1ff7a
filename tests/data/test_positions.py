"""Where states lie: what is read, what is refused, and who carries it."""

import numpy as np
import pytest

from certeq import Batch, Counts, InputError, read, tally
from certeq.data.positions import Positions
from certeq.data.recipes import Bins, Labels, Recipe
from certeq.data.recipes.axes import Clusters
from certeq.worlds import ENVIRONMENTS, environment


def test_places_are_counted_from_the_lowest():
    found = Positions([[3, -1], [5, 0], [4, 7]])
    np.testing.assert_array_equal(found.places, [[0, 0], [2, 1], [1, 8]])
    np.testing.assert_array_equal(found.sizes, [3, 9])
    assert found.axes == ("line", "line")
    assert found.n_states == 3


def test_a_row_of_nan_is_no_place():
    found = Positions([[0.0], [np.nan], [2]])
    np.testing.assert_array_equal(found.placed, [True, False, True])
    again = Positions(found.places, found.axes, found.placed)
    assert again == found
    assert hash(again) == hash(found)
    assert found != Positions([[0.0], [1], [2]])


BAD = {
    "text": ((["a", "b"],), "must be numbers"),
    "three axes": ((np.zeros((2, 2, 2)),), r"shape \(states, axes\)"),
    "a fraction": (([[0.5], [1]],), r"state 0 is \[0.5\]; places are whole numbers"),
    "too far": (([[0], [1e12]],), "places are whole numbers"),
    "half a place": (([[0, np.nan], [1, 1]],), "State 0 has a place on some axes only"),
    "one place twice": (([[1, 1], [0, 2], [1, 1]],), "States 0 and 2 have the same place"),
    "axes of another number": (([[0], [1]], ("line", "line")), "a word for each of 1 axes; got 2"),
    "an unknown axis": (([[0], [1]], ("lines",)), "Did you mean 'line'"),
    "a small ring": (([[0], [1], [2], [3]], ("ring",)), "at least 5 places; axis 0 has 4"),
    "too many places": ((2**20 * np.eye(5),), "too many places"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused(name):
    given, message = BAD[name]
    with pytest.raises(InputError, match=message):
        Positions(*given)


def test_counts_refuse_positions_of_other_states():
    with pytest.raises(InputError, match="a row for each of 2 states; got 3"):
        Counts(np.zeros((2, 1, 2), dtype=int), positions=[0, 1, 2])


def test_a_batch_passes_its_positions_on_to_its_counts():
    batch = Batch([0, 1], [0, 0], [1, 2], 3, 1, positions=[2, 0, 1])
    np.testing.assert_array_equal(tally(batch).positions.places[:, 0], [2, 0, 1])
    assert tally(batch, sparse=True).positions == batch.positions
    assert tally([0], [0], [0]).positions is None


def test_a_recipe_knows_where_its_cells_lie():
    ward, stage, age = (
        Labels("ward", "text", ("A", "B")),
        Labels("stage", "integer", (2, 3, 5)),
        Bins("age", (40.0, 60)),
    )
    cells = np.array([[0, 0, 0], [0, 2, 1], [1, 1, 2]])
    found = Recipe((ward, stage, age), cells).positions
    assert found.axes == ("label", "line", "line")
    np.testing.assert_array_equal(found.places, [[0, 0, 0], [0, 3, 1], [1, 1, 2]])
    batch = Batch([0], [0], [1], 3, 1, recipe=Recipe((ward, stage, age), cells))
    assert batch.positions == found


@pytest.mark.parametrize(
    ("axis", "places"),
    [
        (Labels("x", "integer", (0, 1, 4)), [0, 1, 4]),
        (Labels("x", "integer", (0, 1, 10**9)), [0, 1, 2]),
        (Labels("x", "float", (0.5, 0.7, 9.0)), [0, 1, 2]),
        (Labels("x", "date", ("2024-01-01", "2024-01-02", "2025-01-01")), [0, 1, 2]),
        (Labels("x", "boolean", (False, True)), None),
        (Labels("x", "text", ("a", "b")), None),
        (Bins("x", (1.0, 2.0)), [0, 1, 2]),
        (Clusters(("x", "y"), ((0.0, 1.0), (2.0, 1.0)), (1.0, 1.0)), None),
    ],
)
def test_columns_with_an_order_are_lines_and_others_are_not(axis, places):
    found = axis.places
    assert found is None if places is None else found.tolist() == places


def test_without_any_order_there_are_no_positions():
    assert Recipe((Labels("x", "text", ("a", "b")),), np.array([[0], [1]])).positions is None
    wide = tuple(Labels(f"x{k}", "integer", tuple(range(100))) for k in range(10))
    assert Recipe(wide, np.array([[0] * 10, [99] * 10])).positions is None, "too many columns to tell moves apart"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_worlds_with_an_order_carry_it_to_their_data(name):
    from certeq.worlds import sampling

    world = environment(name, **({"episodes": 500} if name == "tumor" else {}))
    if name == "random_chain":
        assert world.positions is None
        return
    assert world.positions.n_states == world.n_states
    assert tally(sampling.uniform_pairs(world, 10, rng=0)).positions == world.positions


def test_a_move_of_the_grid_is_one_step():
    where = environment("grid", rng=0).positions.places
    assert where.tolist()[5] == [1, 1]
    assert where.tolist()[6] == [1, 2]


def staged():
    return {
        "stage": ["mild", "severe", "moderate", "mild", "severe", "moderate"],
        "ward": [1, 2, 3, 3, 2, 1],
        "action": ["a", "b", "a", "b", "a", "b"],
        "reward": [0.0, 1, 0, 1, 0, 1],
        "episode": [1, 1, 1, 2, 2, 2],
        "time": [0, 1, 2, 0, 1, 2],
    }


def test_labels_lie_in_the_order_that_is_said_and_numbers_without_one_in_none():
    how = {"state": ["stage", "ward"], "bins": {"ward": "labels"}, "done": False}
    plain = read(staged(), **how)
    assert plain.positions.axes == ("label", "line")
    asked = read(staged(), ordered={"stage": ["mild", "moderate", "severe"]}, unordered="ward", **how)
    assert asked.positions.axes == ("line", "label")
    names = [name.split(",")[0] for name in asked.state_names]
    words = {"stage=mild": 0, "stage=moderate": 1, "stage=severe": 2}
    assert asked.positions.places[:, 0].tolist() == [words[name] for name in names]
    assert read(staged(), unordered=["ward"], **how).positions.axes == ("label", "label")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"ordered": {"stag": ["mild"]}}, r"no column 'stag' to order\. Did you mean 'stage'"),
        ({"ordered": {"stage": ["mild", "severe"]}}, "leaves out 'moderate'"),
        ({"ordered": {"stage": ["mild"]}, "unordered": ["stage"]}, "ordered and unordered"),
        ({"ordered": {"ward": [1, 2]}, "bins": {"ward": "edges:2"}}, "cut into cells"),
    ],
)
def test_an_order_that_cannot_be_is_refused_in_words(said, message):
    with pytest.raises(InputError, match=message):
        read(staged(), state=["stage", "ward"], done=False, **said)
