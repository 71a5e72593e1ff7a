import numpy as np
import pytest

from certeq.base.random import stream, words

MASK = 2**64 - 1


def rotate(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


def xoshiro256pp(state, count):
    """Blackman and Vigna's xoshiro256++ on plain integers."""
    a, b, c, d = (int(word) for word in state)
    for _ in range(count):
        yield (rotate((a + d) & MASK, 23) + a) & MASK
        t = (b << 17) & MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = rotate(d, 45)


def test_the_plain_twin_is_xoshiro256pp():
    # first outputs from the state 1, 2, 3, 4, as other implementations publish them
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205, 9973669472204895162]
    assert list(xoshiro256pp((1, 2, 3, 4), 6)) == expected


@pytest.mark.parametrize("seed", [(1, 2, 3, 4), (MASK, MASK, MASK, MASK), (0, 0, 0, 1), (2**63, 7, 2**40 + 3, 99)])
def test_the_stream_is_the_upper_53_bits_of_the_twin(seed):
    numbers = stream(np.array(seed, dtype=np.uint64), 1000)
    assert numbers.tolist() == [(word >> 11) * 2.0**-53 for word in xoshiro256pp(seed, 1000)]


def test_numbers_fill_the_unit_interval_evenly():
    numbers = stream(words(np.random.default_rng(5), 1)[0], 200_000)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    cells = np.bincount((numbers * 20).astype(int), minlength=20)
    assert ((cells - 10_000) ** 2 / 10_000).sum() < 45.3  # chi-square, 19 degrees of freedom, upper 0.06%
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.01


def test_seeds_of_a_stream_do_not_depend_on_how_many_streams_follow():
    few, many = words(np.random.default_rng(3), 2), words(np.random.default_rng(3), 9)
    assert few.dtype == np.uint64
    assert np.array_equal(few, many[:2])
    assert len(np.unique(many)) == many.size
