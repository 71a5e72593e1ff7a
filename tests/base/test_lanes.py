"""Lanes are eight plain floats: every intrinsic against Python's own arithmetic."""

import operator

import numpy as np
import pytest
from numba import njit

from certeq.base.lanes import (
    WIDTH,
    anywhere,
    as_written,
    fill,
    gather,
    larger,
    largest,
    load,
    room,
    scatter,
    smaller,
    store,
    where_equal,
    where_greater,
)

RNG = np.random.default_rng(0)
ODD = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-310])
PAIRS = [
    (RNG.normal(size=WIDTH), RNG.normal(size=WIDTH)),
    (ODD, RNG.normal(size=WIDTH)),
    (ODD, ODD[::-1].copy()),
    (ODD, ODD),
]
each_pair = pytest.mark.parametrize(("a", "b"), PAIRS)


@njit
def arithmetic(a, b, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 1, x - y)
    store(out, 2, x * y)
    store(out, 3, x / y)


@njit
def choices(a, b, x, y, out):
    store(out, 0, where_greater(load(a, 0), load(b, 0), load(x, 0), load(y, 0)))
    store(out, 1, where_equal(load(a, 0), load(b, 0), load(x, 0), load(y, 0)))


@njit
def extremes(a, b, out):
    store(out, 0, larger(load(a, 0), load(b, 0)))
    store(out, 1, smaller(load(a, 0), load(b, 0)))


@njit
def the_largest(a, at):
    return largest(load(a, at))


@njit
def filled(number, out):
    store(out, 1, fill(number))


@njit
def copied(a, out):
    for i in range(a.size // WIDTH):
        store(out, a.size // WIDTH - 1 - i, load(a, i))


@each_pair
def test_arithmetic_is_that_of_floats(a, b):
    out = np.empty(4 * WIDTH)
    arithmetic(a, b, out)
    with np.errstate(all="ignore"):
        for line, operation in enumerate((operator.add, operator.sub, operator.mul, operator.truediv)):
            np.testing.assert_array_equal(out.reshape(4, WIDTH)[line], operation(a, b))


@each_pair
def test_choices_are_those_of_if_and_a_nan_is_never_greater_or_equal(a, b):
    x, y, out = np.arange(WIDTH) + 0.5, -np.arange(WIDTH) - 0.5, np.empty(2 * WIDTH)
    choices(a, b, x, y, out)
    assert out[:WIDTH].tolist() == [x[i] if a[i] > b[i] else y[i] for i in range(WIDTH)]
    assert out[WIDTH:].tolist() == [x[i] if a[i] == b[i] else y[i] for i in range(WIDTH)]


@each_pair
def test_the_larger_and_the_smaller_are_those_of_if(a, b):
    out = np.empty(2 * WIDTH)
    extremes(a, b, out)
    np.testing.assert_array_equal(out[:WIDTH], [a[i] if a[i] > b[i] else b[i] for i in range(WIDTH)])
    np.testing.assert_array_equal(out[WIDTH:], [a[i] if b[i] > a[i] else b[i] for i in range(WIDTH)])


@pytest.mark.parametrize("place", range(WIDTH))
def test_the_largest_is_found_in_any_lane(place):
    a = RNG.normal(size=3 * WIDTH)
    a[WIDTH + place] = 7.0
    assert the_largest(a, 1) == 7.0
    assert the_largest(-np.abs(a), 1) == -np.abs(a[WIDTH : 2 * WIDTH]).min()


def test_a_number_fills_all_lanes_and_no_other():
    out = np.zeros(3 * WIDTH)
    filled(2.5, out)
    assert out.tolist() == [0] * WIDTH + [2.5] * WIDTH + [0] * WIDTH


def test_groups_of_eight_are_read_and_written_where_they_lie():
    a, out = RNG.normal(size=5 * WIDTH), np.empty(5 * WIDTH)
    copied(a, out)
    np.testing.assert_array_equal(out.reshape(5, WIDTH), a.reshape(5, WIDTH)[::-1])


@njit
def somewhere(a):
    return anywhere(load(a, 0))


def test_anywhere_is_where_a_lane_is_not_zero():
    assert not somewhere(np.array([0.0, -0.0] * 4))
    for lane in range(WIDTH):
        for number in (1.0, -1.0, np.nan, np.inf, 5e-324):
            assert somewhere(np.where(np.arange(WIDTH) == lane, number, 0.0))


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 15, 16, 17, 24, 40, 100])
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_scattering_turns_lanes_into_lines_and_writes_nothing_else(m, kind):
    source = RNG.integers(-9, 9, size=(m + 5, WIDTH)) + (0.5 if kind == np.float64 else 0.0)
    of = np.array([3, 5, 4, 0, 10, 7, 1, 2])
    out = np.full((12, m), 99, dtype=kind)
    scatter(source.ravel(), 3, of, out)
    np.testing.assert_array_equal(out[of], source[3 : 3 + m].T)
    assert (out[[6, 8, 9, 11]] == 99).all()


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 15, 16, 17, 24, 40, 100])
@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_gathering_turns_lines_into_lanes_and_writes_nothing_else(m, at, kind):
    source = (1e6 * RNG.normal(size=(11, m))).astype(kind)
    for of in (np.arange(8), np.array([3, 3, 3, 0, 10, 10, 1, 2]), np.full(8, 10)):
        out = np.full((at + m + 2) * WIDTH, 99.0)
        gather(source, of, out, at)
        groups = out.reshape(-1, WIDTH)
        np.testing.assert_array_equal(groups[at : at + m], source[of].T)
        assert (groups[:at] == 99).all()
        assert (groups[at + m :] == 99).all()


@pytest.mark.parametrize("n", [1, 3, 50])
def test_room_is_for_so_many_groups_at_a_multiple_of_sixty_four_bytes(n):
    for space in (room(n) for _ in range(5)):
        assert space.shape == (n * WIDTH,)
        assert space.ctypes.data % 64 == 0


@njit
def added_as_written(numbers):
    total = 0.0
    for number in numbers:
        as_written()
        total += number
    return total


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_a_loop_that_is_left_as_it_is_written_does_what_is_written(n):
    assert added_as_written(np.arange(float(n))) == n * (n - 1) / 2
