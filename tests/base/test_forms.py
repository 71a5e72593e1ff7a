"""Forms of files: what fits is read, what does not is named, and nothing may stand twice in one object."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from certeq import InputError
from certeq.base.forms import DEEPEST, Finite, Whole, check_json, fill, table, whole_table


class Box(Struct):
    size: Whole
    scale: list[Finite]


GOOD = {"size": 3, "scale": [1, 2.5]}


@pytest.mark.parametrize("pack", [lambda value: value, lambda value: json.dumps(value).encode()])
@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"size": 3}, "The box is damaged: object missing required field `scale`."),
        (GOOD | {"size": "3"}, "The box is damaged at size: expected `int | float`, got `str`."),
        (GOOD | {"size": True}, "The box is damaged at size: expected `int | float`, got `bool`."),
        (GOOD | {"size": -1}, "The box is damaged at size: expected `int` >= 0."),
        (GOOD | {"size": 2**53 + 1}, f"The box is damaged at size: expected `int` <= {2**53}."),
        (GOOD | {"scale": [1, None]}, "The box is damaged at scale[1]: expected `float`, got `null`."),
        (GOOD | {"scale": [10**400]}, "The box is damaged at scale[0]: number out of range."),
        ([GOOD], "This is not a box: expected `object`, got `array`."),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(pack, given_, says):
    assert fill(Box, pack(GOOD), "box") == Box(3, [1.0, 2.5])
    with pytest.raises(InputError) as caught:
        fill(Box, pack(given_), "box")
    assert str(caught.value) == says


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_refused_in_plain_values_too(odd):
    with pytest.raises(InputError, match=r"at scale\[0\]: expected `float`"):
        fill(Box, GOOD | {"scale": [odd]}, "box")


def test_a_place_within_a_file_is_told_in_full():
    with pytest.raises(
        InputError, match=r"The chest is damaged at boxes\[2\]\.scale\[0\]: expected `float`, got `str`"
    ):
        fill(Box, GOOD | {"scale": ["x"]}, "chest", "boxes[2]")
    with pytest.raises(InputError, match=r"The chest is damaged at boxes\[2\]: expected `object`, got `int`"):
        fill(Box, 7, "chest", "boxes[2]")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nonsense", b'{"size": 3, "scale": [NaN]}', b'{"more": ' + b"[" * 100_000]
)
def test_what_is_not_json_is_said_to_be_none(text):
    with pytest.raises(InputError, match="This is not a box: it is not JSON that can be read"):
        fill(Box, text, "box")


def test_the_place_of_what_is_not_json_is_shown():
    with pytest.raises(InputError, match=r'"scale": \[NaN\]'):
        fill(Box, b'{"size": 3, "scale": [NaN]}', "box")


def test_a_message_is_never_as_long_as_the_file():
    with pytest.raises(InputError) as caught:
        table("box", "x" * 10**6, [], (3,))
    assert len(str(caught.value)) < 1000


# ---- twice in one object ----

BLANKS = st.text(" \t\r\n", max_size=2)
NAMES = st.text('ab:{}"\\\u00e9\u2028', max_size=2)


def spelled(name):
    """A name as JSON may write it: as it is, or in ASCII, or in codes."""
    codes = "".join(f"\\u{ord(c):04x}" for c in name)
    return st.sampled_from([json.dumps(name), json.dumps(name, ensure_ascii=False), f'"{codes}"'])


def lists(inner):
    return st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]")


def objects(inner):
    pair = st.tuples(BLANKS, NAMES.flatmap(spelled), BLANKS, inner, BLANKS).map(
        lambda p: f"{p[0]}{p[1]}{p[2]}:{p[3]}{p[4]}"
    )
    return st.lists(pair, max_size=4).map(lambda pairs: f"{{{','.join(pairs)}}}")


VALUES = st.recursive(st.sampled_from(["1", "null", "1e3"]) | NAMES.flatmap(spelled), lambda x: lists(x) | objects(x))


def once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ZeroDivisionError
    return dict(pairs)


@given(VALUES)
def test_a_name_is_found_twice_where_pythons_json_finds_it_twice(text):
    try:
        json.loads(text, object_pairs_hook=once)
    except ZeroDivisionError:
        with pytest.raises(InputError, match="twice in one object"):
            check_json(text.encode(), "box")
    else:
        check_json(text.encode(), "box")


@pytest.mark.parametrize("text", [b'"\xff"', b'{"a": "\xc3"}', b'["\xed\xa0\x80"]'])
def test_what_is_not_utf_8_is_refused(text):
    with pytest.raises(InputError, match="not UTF-8"):
        check_json(text, "box")


@pytest.mark.parametrize("more", [b"[%s]", b'{"a":%s}', b'[{"b":%s}]'])
def test_what_is_nested_deeply_is_refused_whatever_python_could_read(more):
    def nested(times):
        text = b'"x"'
        for _ in range(times):
            text = more % text
        return text

    layers = more.count(b"[") + more.count(b"{")
    check_json(nested(DEEPEST // layers), "box")
    check_json(b"[%s]" % b",".join([nested(2)] * DEEPEST), "box")  # side by side is not deep
    with pytest.raises(InputError, match=r"it is not JSON that can be read \(it is nested more than 100 deep\)"):
        check_json(nested(DEEPEST // layers + 1), "box")


def test_brackets_within_texts_are_not_nesting():
    check_json(json.dumps({"[" * 200: "{" * 200}).encode(), "box")


# ---- tables ----


def test_lists_become_tables_of_the_shape_that_is_expected():
    np.testing.assert_array_equal(table("box", "x", [[1, None], [3, 4]], (2, 2), float), [[1, np.nan], [3, 4]])
    found = whole_table("box", "x", [[1, 2.0], [3, 4]], (2, 2))
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 2], [3, 4]]
    assert whole_table("box", "x", [], (0,)).dtype == np.int64


@pytest.mark.parametrize(
    "rows", [[], [[1]], [[1, 2], [3]], [[1, 2], 3], [[1, 2]] * 3, [[[1], [2]]] * 2, 5, [["a", {}]]]
)
def test_lists_of_another_shape_are_refused(rows):
    with pytest.raises(InputError, match="The box is damaged at x: it must be a table of 2 x 2"):
        whole_table("box", "x", rows, (2, 2))


def test_halves_are_not_whole():
    with pytest.raises(InputError, match=r"The box is damaged at x: it must be whole numbers; got 2\.5"):
        whole_table("box", "x", [[1, 2.5]], (1, 2))
