"""Errors are written to the person who meets them."""

import numpy as np
import pytest

from certeq.base.arrays import first, floats, names, whole, within
from certeq.base.errors import InputError, nearest, unknown


def test_an_input_error_is_a_value_error():
    assert issubclass(InputError, ValueError)


def test_the_nearest_name_is_suggested_and_nothing_when_none_is_near():
    assert nearest("discont", ["discount", "none"]) == " Did you mean 'discount'?"
    assert nearest("zzz", ["discount", "none"]) == ""


def test_an_unknown_name_is_answered_with_all_there_are():
    message = str(unknown("method", "value", ["value_iteration", "policy"]))
    assert message == (
        "There is no method named 'value'. Did you mean 'value_iteration'? There are: policy, value_iteration."
    )


def test_the_first_bad_place_is_found():
    assert first(np.array([[False, False], [True, True]])) == (1, 0)
    assert first(np.array(True)) == ()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([[0, 1], [np.nan, 2]], r"x must be finite; x\[1, 0\] is nan"),
        (np.inf, "x must be finite; x is inf"),
        ("word", "x must be an array of numbers; got str"),
        ([[1], [1, 2]], "x must be an array of numbers; got list"),
        (None, "x must be"),
    ],
)
def test_numbers_that_are_not_are_named(value, says):
    with pytest.raises(InputError, match=says):
        floats("x", value)


def test_limits_are_told_with_the_place_that_breaks_them():
    np.testing.assert_array_equal(within("x", [0, 0.5, 1], 0, 1), [0, 0.5, 1])
    with pytest.raises(InputError, match=r"x must lie between 0 and 1; x\[2\] is 1\.5"):
        within("x", [0, 0.5, 1.5], 0, 1)
    with pytest.raises(InputError, match=r"x must lie between 0 and 1; x is -1"):
        within("x", -1, 0, 1)


@pytest.mark.parametrize("value", [1.5, "2", None, np.array([1, 2])])
def test_what_is_not_a_whole_number_is_named(value):
    with pytest.raises(InputError, match="n must be a whole number, at least 1"):
        whole("n", value, 1)


def test_whole_numbers_have_limits():
    assert whole("n", np.int32(3), 1) == 3
    with pytest.raises(InputError, match="n must be at least 1; got 0"):
        whole("n", 0, 1)
    with pytest.raises(InputError, match="n must be between 1 and 4; got 5"):
        whole("n", 5, 1, at_most=4)


def test_names_are_numbers_unless_given_and_all_different():
    assert names("state", (), 3) == ("0", "1", "2")
    assert names("state", ["a", "b"], 2) == ("a", "b")
    for wrong in (("a",), ("a", "a")):
        with pytest.raises(InputError, match="state_names needs 2 different names"):
            names("state", wrong, 2)
