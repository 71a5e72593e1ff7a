"""xoshiro256++ in Numba: uniform numbers from a state that is a value, so that it can live in registers.

Why not NumPy's generators: inside a kernel they are a call through memory for each number, and one generator cannot be
shared by threads. Here each replication has its own four words, and so its own stream, whatever thread it runs on.

xoshiro256++ (Blackman and Vigna, 2021) has period 2^256 - 1 and passes the usual batteries of tests. Streams that start
from random words overlap with a chance far below any we could notice. The one forbidden state is four zeros, which
would stay zero forever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certeq.base.arrays import Floats
from certeq.base.compiling import njit

_17, _19, _23, _41, _45, _11 = (np.uint64(bits) for bits in (17, 19, 23, 41, 45, 11))
_UNIT = 2.0**-53


def words(rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """Draw the seeds of ``count`` streams, ``(count, 4)``; stream i is the same however many follow it."""
    return rng.integers(0, 2**64, size=(count, 4), dtype=np.uint64)


@njit(cache=True, nogil=True, error_model="numpy")
def seeded(seed: Any) -> Any:
    """Make the state of a stream from four uint64 words that are not all zero."""
    return seed[0], seed[1], seed[2], seed[3]


@njit(cache=True, nogil=True, error_model="numpy")
def uniform(state: Any) -> Any:
    """Give the next number in [0, 1) and the state after it: ``u, state = uniform(state)``.

    The upper 53 bits of the word make the number, so every multiple of 2^-53 below 1 is equally likely.
    """
    a, b, c, d = state
    total = a + d
    word = ((total << _23) | (total >> _41)) + a
    shifted = b << _17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << _45) | (d >> _19)
    # Through int64, because only signed integers turn into floats in one instruction on every machine.
    return np.int64(word >> _11) * _UNIT, (a, b, c, d)


@njit(cache=True, nogil=True, error_model="numpy")
def fill(seed: NDArray[np.uint64], out: Floats) -> None:
    """Fill ``out`` with the first numbers of a stream: the stream as seen from outside the kernels."""
    state = seeded(seed)
    for i in range(out.size):
        out[i], state = uniform(state)


def stream(seed: NDArray[np.uint64], count: int) -> Floats:
    """First ``count`` numbers of the stream that starts from four words."""
    out = np.empty(count)
    fill(seed, out)
    return out
