import datetime
import itertools
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certeq.base.errors import InputError
from certeq.data.recipes import Bins, Clusters, Labels, Recipe, column, fit, fit_encode
from certeq.data.recipes.axes import shortest
from certeq.data.recipes.columns import pool
from certeq.data.recipes.fitting import k_means

FLOATS = st.floats(-1e6, 1e6, allow_subnormal=False)


def saved(recipe):
    """A recipe that went through a file, and through someone's editor."""
    return Recipe.from_json(json.loads(json.dumps(json.loads(json.dumps(recipe.to_json())), indent=3)))


# ---- what columns become by themselves ----


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        (["low", "high", "low"], "text", ("high", "low")),
        ([3, 1, 3], "integer", ("1", "3")),
        ([3.0, 1.0, 3.0], "integer", ("1", "3")),
        ([True, False, True], "boolean", ("false", "true")),
        ([datetime.date(2024, 3, 1), datetime.date(2023, 1, 2)], "date", ("2023-01-02", "2024-03-01")),
        (
            [datetime.datetime(2024, 3, 1, 12, 30), datetime.datetime(2023, 1, 2)],
            "date",
            ("2023-01-02", "2024-03-01T12:30:00"),
        ),
        (np.array(["b", "a"], dtype="U1"), "text", ("a", "b")),
        (np.array([b"b", b"a"]), "text", ("a", "b")),
        (np.array(["b", "a"], dtype=np.dtypes.StringDType()), "text", ("a", "b")),
        (pl.Series(["b", "a"], dtype=pl.Categorical), "text", ("a", "b")),
        (pl.Series(["b", "a"], dtype=pl.Enum(["z", "b", "a"])), "text", ("a", "b")),
        (np.array([2**63 + 5, 7], dtype=np.uint64), "text", ("7", "9223372036854775813")),
    ],
)
def test_few_different_values_are_labels(values, kind, names):
    recipe = fit({"x": values})
    assert isinstance(recipe.axes[0], Labels)
    assert recipe.axes[0].kind == kind
    assert recipe.names == names


def test_numbers_with_many_values_are_cut_at_their_quantiles():
    assert fit({"x": np.arange(51)}).axes[0] == Bins("x", (12.5, 25.0, 37.5))
    assert fit({"x": np.arange(21.0)}, bins=2).axes[0] == Bins("x", (10.0,))
    assert fit({"x": [0.5, 1.5]}, bins=2).axes[0] == Bins("x", (1.0,))


@pytest.mark.parametrize(
    ("different", "rows_each", "kind", "alone", "labels"),
    [
        (12, 1, int, True, True),
        (12, 1, float, False, True),
        (13, 4, int, False, False),
        (13, 5, int, False, True),
        (20, 5, int, False, True),
        (21, 100, int, False, False),
        (21, 100, float, True, True),
        (500, 1, int, True, False),
        (500, 2, int, True, True),
    ],
)
def test_whole_numbers_are_labels_where_they_are_few_for_their_rows(different, rows_each, kind, alone, labels):
    table = {"x": np.repeat(np.arange(different), rows_each).astype(kind)}
    table |= {} if alone else {"y": ["same"] * different * rows_each}
    assert isinstance(fit(table).axes[0], Labels if labels else Bins)
    assert isinstance(fit(table, {"x": "labels"}).axes[0], Labels)


def test_whole_numbers_that_name_states_are_labels_unless_asked():
    numbers, other = np.arange(716), np.linspace(0, 1, 716)
    assert fit({"ward": np.tile(numbers, 2)}).axes[0].size == 716
    assert fit({"ward": numbers}).axes[0].size == 4  # if none comes again, they name nothing
    assert fit({"State": numbers, "x": other}).axes[0].size == 716
    assert fit({"ward": numbers, "x": other}).axes[0].size == 4
    assert fit({"state": numbers}, bins=5).axes[0].size == 5
    assert fit({"state": numbers}, {"state": "quantile:3"}).axes[0].size == 3
    assert fit({"state": other}).axes[0].size == 4  # these are amounts


def test_equal_quantiles_merge_and_a_common_smallest_value_gets_its_own_cell():
    assert fit({"x": [1.5] * 9}).axes[0] == Bins("x", ())
    assert fit({"x": [1.5] * 9}).names == ("any value",)
    mostly_zero = fit({"dose": [0.0] * 90 + [0.5 + i for i in range(10)]})
    assert mostly_zero.axes[0] == Bins("dose", (0.5,))
    assert mostly_zero.names == ("below 0.5", "0.5 or more")


def test_infinite_values_fall_in_the_end_cells():
    recipe, states = fit_encode({"x": [-np.inf, 0.5, 1.5, 2.5, 3.5, np.inf]}, bins=2)
    np.testing.assert_array_equal(states, [0, 0, 0, 1, 1, 1])
    assert recipe.axes[0] == Bins("x", (2.0,))
    with pytest.raises(InputError, match="cannot be a label"):
        fit({"x": [1.5, np.inf]}, {"x": "labels"})


@pytest.mark.parametrize(
    ("how", "axis"),
    [
        ("edges:1,2.5,7", Bins("x", (1.0, 2.5, 7.0))),
        ([1, 2.5], Bins("x", (1.0, 2.5))),
        (2, Bins("x", (5.0,))),
        ("quantile:2", Bins("x", (5.0,))),
        ("labels", Labels("x", "integer", tuple(range(11)))),
    ],
)
def test_how_says_what_becomes_of_a_column(how, axis):
    assert fit({"x": np.arange(11)}, {"x": how}).axes[0] == axis
    clusters = fit({"x": [0, 2, 10, 12]}, {"x": "kmeans:2"}).axes[0]
    assert isinstance(clusters, Clusters)
    np.testing.assert_allclose(clusters.centers, [[1], [11]])


@pytest.mark.parametrize(
    "how", ["quantiles:4", "quantile", "quantile:0", "quantile:x", "edges:", "edges:a", "edges:inf", "labels:3", ""]
)
def test_an_unknown_way_to_bin_is_refused_with_the_known_ones(how):
    with pytest.raises(InputError, match=r"how to bin 'x'.*'quantile:4'"):
        fit({"x": [1.5, 2.5]}, {"x": how})


@pytest.mark.parametrize("how", ["edges:5,3", "edges:1,5,5", [5, 3]])
def test_edges_that_do_not_rise_are_refused(how):
    with pytest.raises(InputError, match=r"edges of column 'x' must increase; got 5, then [35]\."):
        fit({"x": [1.5, 2.5]}, {"x": how})


def test_an_unknown_column_to_bin_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"no column 'agee'.*Did you mean 'age'"):
        fit({"age": [1.5, 2.5]}, {"agee": "labels"})


# ---- states are combinations that occur ----


def test_states_are_the_combinations_that_occur_sorted_and_named():
    recipe, states = fit_encode({"dose": ["low", "high", "low"], "age": [41.0, 57.0, 80.0]}, {"age": "edges:40,55"})
    np.testing.assert_array_equal(recipe.cells, [[0, 2], [1, 1], [1, 2]])
    assert recipe.names == ("dose=high, age 55 or more", "dose=low, age 40 to 55", "dose=low, age 55 or more")
    np.testing.assert_array_equal(states, [1, 0, 2])
    assert recipe.possible == 6


def test_names_are_different_even_where_labels_run_together():
    recipe = fit({"a": ["x, b=y", "x"], "b": ["z", "y, b=z"]})
    assert len(set(recipe.names)) == 2


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ((3.2137, 7.9412), ["3.2", "7.9"]),
        ((40, 55), ["40", "55"]),
        ((0.5,), ["0.5"]),
        ((1.0000001, 1.0000002), ["1.0000001", "1.0000002"]),
        ((1e-9, 2e-9), ["1e-09", "2e-09"]),
        ((1234.5, 5678.9), ["1234", "5679"]),
        ((0.0,), ["0"]),
        ((-0.04, 3.0), ["0", "3"]),
        ((1e12, 3e12), ["1e+12", "3e+12"]),
    ],
)
def test_edges_have_as_few_digits_as_tell_them_apart(edges, words):
    assert shortest(edges) == words


@given(st.lists(FLOATS, min_size=1, max_size=6, unique=True).map(sorted))
def test_words_of_edges_are_all_different(edges):
    assert len(set(shortest(edges))) == len(edges)


def test_many_axes_do_not_overflow():
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.integers(40, size=300) for i in range(30)}  # 40**30 combinations
    recipe, states = fit_encode(table, dict.fromkeys(table, "labels"))
    np.testing.assert_array_equal(recipe.encode(table), states)
    np.testing.assert_array_equal(recipe.cells[states], np.stack([recipe_codes(table[c]) for c in table], axis=1))
    assert recipe.possible > 2**63


def recipe_codes(values):
    return np.unique(values, return_inverse=True)[1]


# ---- new rows ----


@given(
    values=st.lists(FLOATS, min_size=1, max_size=60),
    new=st.lists(st.one_of(FLOATS, st.sampled_from([np.nan, np.inf, -np.inf])), max_size=20),
    k=st.integers(1, 40),
)
def test_bins_count_the_edges_at_or_below_a_value_also_outside_the_range(values, new, k):
    recipe, states = fit_encode({"x": values}, {"x": f"quantile:{k}"})
    again = saved(recipe)
    assert again == recipe
    assert again.names == recipe.names
    np.testing.assert_array_equal(again.encode({"x": values}), states)
    edges = recipe.axes[0].edges
    codes = recipe.axes[0].codes({"x": column(np.array(new))})
    for value, code in zip(new, codes, strict=True):
        assert code == (-1 if np.isnan(value) else sum(edge <= value for edge in edges))
    assert all(a < b for a, b in itertools.pairwise(edges))
    assert len(edges) < max(k, 2)


@given(st.data())
def test_a_saved_recipe_maps_all_kinds_of_columns_as_before(data):
    n = data.draw(st.integers(1, 30))
    table = {
        "text": data.draw(
            st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=n, max_size=n)
        ),
        "flag": data.draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        "day": data.draw(st.lists(st.dates(datetime.date(1900, 1, 1)), min_size=n, max_size=n)),
        "number": data.draw(st.lists(FLOATS, min_size=n, max_size=n)),
        "x": data.draw(st.lists(FLOATS, min_size=n, max_size=n)),
        "y": data.draw(st.lists(FLOATS, min_size=n, max_size=n)),
    }
    recipe, states = fit_encode(table, {"text": "labels", "x": "kmeans:3", "y": "kmeans:3"})
    again = saved(recipe)
    assert again == recipe
    assert hash(again) == hash(recipe)
    np.testing.assert_array_equal(again.encode(table), states)
    order = np.random.default_rng(0).permutation(n)
    one_by_one = [again.encode({k: v[i : i + 1] for k, v in table.items()})[0] for i in order]
    np.testing.assert_array_equal(one_by_one, states[order])


def test_new_rows_may_come_as_other_types_than_the_old_ones():
    assert list(fit({"s": [1, 2]}).encode({"s": ["2", "1", "3", "x", "1.0"]})) == [1, 0, -1, -1, 0]
    assert list(fit({"s": ["1", "2"]}).encode({"s": [2, 1, 3]})) == [1, 0, -1]
    assert list(fit({"s": ["1", "2"]}).encode({"s": [2.0, np.nan]})) == [1, -1]
    assert list(fit({"s": [True, False]}).encode({"s": [0, 1, 2]})) == [0, 1, -1]
    assert list(fit({"s": [True, False]}).encode({"s": ["no", "TRUE", "perhaps"]})) == [0, 1, -1]
    days = fit({"s": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]})
    assert list(days.encode({"s": ["2024-01-02", "2024-01-01T00:00:00", "never"]})) == [1, 0, -1]
    assert list(fit({"s": ["2024-01-02"]}).encode({"s": np.array(["2024-01-02"], dtype="datetime64[ns]")})) == [0]
    assert list(fit({"s": [0.5, 2.5]}, {"s": "labels"}).encode({"s": ["2.5", "0.50"]})) == [1, 0]
    assert list(fit({"s": [1.5, 2.5]}, {"s": "edges:2"}).encode({"s": ["0", "9", "x"]})) == [0, 1, -1]


def test_unknown_rows_get_no_state_and_an_explanation():
    table = {"dose": ["low", "high"], "age": [30.0, 60.0]}
    recipe = fit(table, {"age": "edges:50"})
    new = {"dose": ["low", "huge", "low", None], "age": [20.0, 60.0, 99.0, 1.0]}
    np.testing.assert_array_equal(recipe.encode(new), [1, -1, -1, -1])
    assert recipe.explain(new, 0) == ""
    assert recipe.explain(new, 1) == "'dose' is 'huge', which never occurred in the data (known: high, low)"
    assert recipe.explain(new, 2) == "the combination dose=low, age 50 or more never occurred in the data"
    assert recipe.explain(new, 3) == "'dose' is missing"
    assert recipe.explain({"dose": ["low"], "age": ["old"]}, 0) == "'age' is 'old', which is not a number"
    frame = pl.DataFrame(new)
    assert recipe.explain({name: frame[name] for name in frame.columns}, 3) == "'dose' is missing"


def test_many_rows_are_explained_as_one_by_one():
    rng = np.random.default_rng(0)
    known = {"a": rng.choice(["x", "y", "z"], 30), "b": rng.normal(size=30), "c": rng.normal(size=30)}
    known |= {"d": rng.normal(size=30)}
    recipe = fit(known, {"c": "kmeans:3", "d": "kmeans:3"})
    new = {"a": rng.choice(np.array(["x", "y", "z", "w", None], dtype=object), 200), "b": rng.normal(size=200)}
    new |= {name: np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200)) for name in ("c", "d")}
    unknown = np.flatnonzero(recipe.encode(new) < 0)
    assert len(unknown) > 50
    one_by_one = [recipe.explain(new, int(row)) for row in unknown]
    assert recipe.explain_many(new, unknown) == one_by_one
    assert all(one_by_one)


def test_new_rows_without_a_column_are_told_which():
    recipe = fit({"dose": ["low"], "age": [1]})
    with pytest.raises(InputError, match=r"no column 'dose'.*Did you mean 'Dose'.*They have: Dose, age"):
        recipe.encode({"Dose": ["low"], "age": [1]})
    with pytest.raises(InputError, match="no column 'dose'"):
        recipe.explain({"age": [1]}, 0)
    with pytest.raises(InputError, match=r"one length.*dose: 2, age: 1"):
        recipe.encode({"dose": ["low", "low"], "age": [1]})


# ---- refusals ----


def test_a_missing_value_is_named_with_its_row_and_how_many_more():
    with pytest.raises(InputError, match=r"Row 2 \(counting from 1.*'x' is missing, and 1 further row of this"):
        fit({"x": [1.5, np.nan, None]})
    with pytest.raises(InputError, match=r"'x' is missing, and 2 further rows.* others with state= \(--state\)"):
        fit({"x": ["", " ", None]})


def test_numbers_with_a_word_among_them_are_refused_unless_called_labels():
    table = {"x": ["1", "2", "3", "oops"]}
    with pytest.raises(
        InputError, match=r"Row 4 .*'x' is 'oops', but most.*bins=\{'x': 'labels'\} \(--bins x=labels\)"
    ):
        fit(table)
    with pytest.raises(InputError, match="'oops', but quantile needs numbers"):
        fit(table, {"x": "quantile:2"})
    with pytest.raises(InputError, match=r"--bins 'Age \[y\]=labels'"):
        fit({"Age [y]": table["x"]})
    assert fit(table, {"x": "labels"}).names == ("1", "2", "3", "oops")
    assert fit({"x": ["a", "b", "3"]}).names == ("3", "a", "b")


def test_too_many_states_are_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"more than 50,000 states.*'x'.*1,000,000.*--bins x=quantile:8"):
        fit({"x": np.arange(1_000_000), "y": np.zeros(1_000_000, dtype=int)}, {"x": "labels"})
    with pytest.raises(InputError, match=r"more than 5 states.*'x'.*Group its labels"):
        fit({"x": list("abcdef")}, max_states=5)


@pytest.mark.parametrize("values", [[[1], [2]], [{}, {}], [1 + 2j], np.zeros((2, 2)), np.array([1j])])
def test_values_that_are_no_values_are_refused(values):
    with pytest.raises(InputError, match="Column 'x'"):
        fit({"x": values})


def test_a_label_as_long_as_a_document_is_refused():
    with pytest.raises(InputError, match="row 2, holds a text of 10,001 characters"):
        fit({"x": ["a", "b" * 10_001]})
    assert fit({"x": ["a", "b" * 10_000]}).n_states == 2


def test_no_columns_no_rows_and_uneven_columns_are_refused():
    for table in ({}, {"x": []}, {"x": [1], "y": [1, 2]}):
        with pytest.raises(InputError, match=r"no column|one length"):
            fit(table)


GOOD = fit({"a": ["x", "y"], "b": [1.5, 2.5], "c": [1, 2], "d": [1, 2]}, {"c": "kmeans:2", "d": "kmeans:2"}).to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: None, "not a recipe: expected `object`, got `null`"),
        (lambda r: [r], "not a recipe: expected `object`, got `array`"),
        (lambda r: {k: v for k, v in r.items() if k != "cells"}, "missing required field `cells`"),
        (lambda r: r | {"version": 2}, "version 2"),
        (lambda r: r | {"axes": "x"}, "at axes: expected `array`, got `str`"),
        (lambda r: r | {"axes": []}, "at axes: expected `array` of length >= 1"),
        (lambda r: r | {"axes": ["x"]}, r"at axes\[0\]: expected `object`, got `str`"),
        (lambda r: r | {"axes": [{"column": "a"}]}, "needs 'labels', 'edges' or 'clusters'"),
        (lambda r: r | {"axes": [{"labels": ["x"], "kind": "text"}]}, "missing required field `column`"),
        (
            lambda r: r | {"axes": [{"column": "a", "labels": ["x"], "kind": "odd"}]},
            r"at axes\[0\]\.kind: invalid enum value 'odd'",
        ),
        (lambda r: r | {"axes": [{"column": "a", "labels": [1], "kind": "text"}]}, "labels of kind text; got 1"),
        (lambda r: r | {"axes": [{"column": "a", "labels": [True], "kind": "integer"}]}, "labels of kind integer"),
        (lambda r: r | {"axes": [{"column": "a", "labels": [], "kind": "text"}]}, "column 'a' needs labels"),
        (lambda r: r | {"axes": [{"column": "a", "labels": ["x", "x"], "kind": "text"}]}, "all of them different"),
        (lambda r: r | {"axes": [{"column": "a", "edges": [2, 1]}]}, "must increase"),
        (lambda r: r | {"axes": [{"column": "a", "edges": ["1"]}]}, r"at axes\[0\]\.edges\[0\]: .*got `str`"),
        (lambda r: r | {"axes": [{"column": "a", "edges": [float("nan")]}]}, r"at axes\[0\]\.edges\[0\]"),
        (lambda r: r | {"axes": [{"column": "a", "edges": [10**400]}]}, "number out of range"),
        (lambda r: r | {"axes": [{"column": "a", "edges": [10**5000]}]}, "number out of range"),
        (lambda r: r | {"axes": [{"clusters": ["a"], "centers": [[1, 2]], "scale": [1]}]}, "'centers' of that size"),
        (lambda r: r | {"axes": [{"clusters": ["a"], "centers": [[1]], "scale": [0]}]}, "positive 'scale'"),
        (lambda r: r | {"axes": [{"clusters": ["a"], "centers": [[1]]}]}, "missing required field `scale`"),
        (lambda r: r | {"cells": [[0, 0]]}, "at cells: it must be a table of 1 x 3"),
        (lambda r: r | {"cells": [[0], [0, 1]]}, "at cells: it must be a table of 2 x 3"),
        (lambda r: r | {"cells": [[0.5, 0, 0]]}, "whole numbers"),
        (lambda r: r | {"cells": [[0, 0, 9]]}, "out of range"),
        (lambda r: r | {"cells": [[0, 0, 0], [0, 0, 0]]}, "sorted"),
        (lambda r: r | {"cells": [[1, 0, 0], [0, 0, 0]]}, "sorted"),
        (lambda r: r | {"cells": []}, "at cells: expected `array` of length >= 1"),
    ],
)
def test_a_damaged_recipe_is_refused_with_the_place(change, words):
    assert Recipe.from_json(GOOD).to_json() == GOOD
    with pytest.raises(InputError, match=words):
        Recipe.from_json(change(dict(GOOD)))


# ---- clusters ----


def test_k_means_finds_what_is_plainly_there():
    rng = np.random.default_rng(0)
    middles = np.array([[0, 0], [10, 0], [0, 10], [10, 10]])
    points = np.concatenate([m + rng.normal(size=(50, 2)) for m in middles])
    table = {"x": points[:, 0] * 1000, "y": points[:, 1]}  # the scale of a column does not matter
    recipe, states = fit_encode(table, {"x": "kmeans:4", "y": "kmeans:4"}, rng=1)
    assert recipe.n_states == 4
    assert all(len(set(states[i : i + 50])) == 1 for i in range(0, 200, 50))
    assert len(recipe.axes) == 1
    assert recipe.names[0].startswith("cluster 1 (x ")
    assert recipe == fit(table, {"x": "kmeans:4", "y": "kmeans:4"}, rng=1)
    far = recipe.encode({"x": [20_000.0], "y": [-3.0]})
    assert far[0] == states[50]


def test_columns_with_different_numbers_of_clusters_are_clustered_apart():
    table = {"x": [0.5, 9.5, 0.6], "y": [1.5, 2.5, 3.5], "z": [0.0, 9.0, 0.0]}
    recipe = fit(table, {"x": "kmeans:2", "y": "kmeans:3", "z": "kmeans:2"})
    assert [axis.columns for axis in recipe.axes] == [("x", "z"), ("y",)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 12))
def test_there_are_never_more_clusters_than_different_points(values, k):
    centers = k_means(np.array(values, dtype=float)[:, None], k)
    assert len(centers) == min(k, len(set(values)))
    if k >= len(set(values)):
        np.testing.assert_array_equal(centers[:, 0], sorted(set(values)))


@given(st.integers(0, 2**32), st.integers(1, 9))
def test_centers_are_those_of_the_seed_and_rest_among_their_points_in_any_order(seed, k):
    random = np.random.default_rng(seed)
    points = random.normal(size=(60, 2)).round(1)
    centers = k_means(points, k, rng=seed)
    np.testing.assert_array_equal(k_means(random.permutation(points), k, rng=seed), centers)
    nearest = ((points[:, None] - centers) ** 2).sum(axis=-1).argmin(axis=1)
    for i in set(nearest.tolist()):
        np.testing.assert_allclose(centers[i], points[nearest == i].mean(axis=0), atol=1e-9)


def test_clusters_refuse_infinite_values_and_a_constant_column_does_no_harm():
    with pytest.raises(InputError, match="'x' is inf, which is not a finite number"):
        fit({"x": [1.5, np.inf, 2.5]}, {"x": "kmeans:2"})
    assert fit({"x": [1.0, 5.0], "y": [3.0, 3.0]}, {"x": "kmeans:2", "y": "kmeans:2"}).n_states == 2


# ---- pooling states with next states ----


def test_pooling_reconciles_kinds_without_losing_anything():
    whole = pool(column([1, 2]), column([2.0, np.nan]))
    assert fit({"s": whole.take(np.array([0, 1, 2]))}).axes[0] == Labels("s", "integer", (1, 2))
    text = pool(column([1, 2]), column(["2", "end"]).without(np.array([False, True])))
    assert text.kind == "float"
    assert pool(column([1, 2]), column(["a", "b"])).labels == ("1", "2", "a", "b")
    assert pool(column(["b", "a"]), column([None, "c"])).labels == ("a", "b", "c")
    assert pool(column(["a"]), column([None])).kind == "text"
    assert pool(column([True]), column([2])).kind == "float"


def test_units_stand_after_numbers_and_travel_in_the_file():
    plain = fit({"x": np.arange(21.0), "n": [1, 2, 3] * 7}, bins=3)
    recipe = plain.measured({"x": "mmHg", "n": "beds", "elsewhere": "kg"})
    assert recipe.axes[0].words(alone=True) == ["below 6.7 mmHg", "6.7 to 13.3 mmHg", "13.3 mmHg or more"]
    assert recipe.axes[1].words(alone=False) == ["n=1 beds", "n=2 beds", "n=3 beds"]
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe != plain
    assert "unit" not in str(plain.to_json())
    table = {"x": [0.5, 20.0], "n": [2, 3]}
    assert recipe.encode(table).tolist() == plain.encode(table).tolist()


def test_only_numbers_have_units():
    with pytest.raises(InputError, match="'ward' is not a column of numbers"):
        fit({"ward": ["a", "b"]}).measured({"ward": "kg"})
