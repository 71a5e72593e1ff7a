"""Columns of any type that a file can hold, with values at the ends of the type's range and beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
ZONES = (
    None,
    "UTC",
    "Europe/Paris",
    "+05:30",
    "-23:59",
    "Mars/Olympus",
    "",
    "utc",
    "Etc/GMT+12",
    "\udcff".encode(errors="replace").decode(),
)
UNITS = ("s", "ms", "us", "ns")
TEXTS = (
    "A",
    "B",
    "",
    " ",
    "NA",
    "1",
    "1.0",
    "true",
    "=1+1",
    "é",
    "e\u0301",
    "\u202e",
    "\x00",
    "x" * 300,
    "2020-01-01",
    "\u00b2",
    "1e999",
)


def column(rng: np.random.Generator, n: int, depth: int = 0) -> pa.Array:
    """A column of n values of some type."""
    while True:
        maker = MAKERS[int(rng.integers(len(MAKERS)))]
        if depth < 2 or maker not in (_list, _struct, _dictionary, _map, _runs, _union):
            break
    try:
        found = maker(rng, n, depth)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        found = pa.array(rng.integers(0, 3, n))
    return _with_blanks(rng, found)


def _with_blanks(rng: np.random.Generator, array: pa.Array) -> pa.Array:
    if rng.random() < 0.7 or not len(array):
        return array
    blank = rng.random(len(array)) < rng.choice([0.1, 0.5, 1.0])
    try:
        return array.take(pa.array([None if b else i for i, b in enumerate(blank)], pa.int64()))
    except (pa.ArrowException, NotImplementedError):
        return array


def _choice(rng: np.random.Generator, some: Any) -> Any:
    return some[int(rng.integers(len(some)))]


def _integer(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    kind = _choice(rng, INTEGERS)
    ends = np.iinfo(kind.to_pandas_dtype())
    few = [ends.min, ends.max, 0, 1, 2, max(ends.min, -1), ends.max - 1]
    return pa.array([int(_choice(rng, few)) for _ in range(n)], kind)


def _small(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.array(rng.integers(0, 4, n), _choice(rng, INTEGERS))


def _float(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    few = [0.0, -0.0, 0.5, 1.0, 2.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e155, 2.0**53, 0.1]
    values = np.array([_choice(rng, few[: int(rng.integers(2, len(few)))]) for _ in range(n)])
    with np.errstate(over="ignore"):
        kind = _choice(rng, (np.float16, np.float32, np.float64))
        return pa.array(values.astype(kind))


def _decimal(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    from decimal import Decimal, localcontext

    wide = rng.random() < 0.3
    precision = int(rng.integers(1, 77 if wide else 39))
    scale = int(rng.integers(0, precision + 1))
    with localcontext() as context:
        context.prec = 80
        base = 10**precision - 1
        few = [base, base - 1, -base, 0, 1, -1]
        values = [Decimal(_choice(rng, few)).scaleb(-scale) for _ in range(n)]
        return pa.array(values, (pa.decimal256 if wide else pa.decimal128)(precision, scale))


def _date(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    days = [0, 1, 2, 18000, -719163, -719162, 2932896, 2932897, 2**31 - 1, -(2**31)]
    numbers = [_choice(rng, days if rng.random() < 0.3 else days[:4]) for _ in range(n)]
    if rng.random() < 0.5:
        return pa.array(numbers, pa.int32()).cast(pa.date32())
    return pa.array([number * 86_400_000 for number in numbers], pa.int64()).cast(pa.date64())


def _timestamp(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    few = [0, 1, 2, 999, 1000, 1_600_000_000, -62_135_596_801, 253_402_300_800, 2**63 - 1, -(2**63) + 1, 2**62]
    top = len(few) if rng.random() < 0.3 else 6
    numbers = pa.array([int(_choice(rng, few[:top])) for _ in range(n)], pa.int64())
    return numbers.view(pa.timestamp(_choice(rng, UNITS), _choice(rng, ZONES)))


def _clock(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    few = [0, 1, 2, 999, 86_399, 86_400, 2**31 - 1, -1]
    kind = _choice(rng, (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *map(pa.duration, UNITS)))
    numbers = [int(_choice(rng, few)) for _ in range(n)]
    return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def _text(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    kind = _choice(rng, (pa.string(), pa.large_string(), pa.string_view()))
    return pa.array([_choice(rng, TEXTS) for _ in range(n)], kind)


def _labels(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.array([_choice(rng, "ABC") for _ in range(n)])


def _bytes(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    """Bytes, half of the time under the name of text, which they are not."""
    values = [rng.integers(0, 256, int(rng.integers(0, 4))).astype(np.uint8).tobytes() for _ in range(n)]
    array = pa.array(values, pa.binary())
    if rng.random() < 0.5:
        return pa.StringArray.from_buffers(n, array.buffers()[1], array.buffers()[2])
    return array if rng.random() < 0.5 else array.cast(pa.large_binary())


def _fixed(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.array([rng.integers(0, 256, 3).astype(np.uint8).tobytes() for _ in range(n)], pa.binary(3))


def _boolean(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.array(rng.random(n) < 0.5)


def _null(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.nulls(n)


def _interval(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.array([(int(rng.integers(3)), 1, 2**40) for _ in range(n)], pa.month_day_nano_interval())


def _dictionary(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    inner = column(rng, 3, depth + 1) if rng.random() < 0.5 else pa.array(["A", "B", "A"])
    codes = rng.integers(0, 3, n) if rng.random() < 0.8 else rng.integers(-2, 9, n)  # some point nowhere
    index = pa.array(codes, _choice(rng, (pa.int8(), pa.int32(), pa.int64())))
    return pa.DictionaryArray.from_arrays(index, inner, safe=False)


def _list(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    sizes = np.full(n, rng.integers(0, 4)) if rng.random() < 0.6 else rng.integers(0, 4, n)
    inner = column(rng, int(sizes.sum()), depth + 1)
    if rng.random() < 0.4 and n and len(set(sizes.tolist())) == 1 and sizes[0]:
        return pa.FixedSizeListArray.from_arrays(inner, int(sizes[0]))
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(sizes)), pa.int32()), inner)


def _struct(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    names = ["x", "y", "0", ""][: int(rng.integers(1, 5))]
    return pa.StructArray.from_arrays([column(rng, n, depth + 1) for _ in names], names)


def _map(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.array([[("k", int(rng.integers(3)))] for _ in range(n)], pa.map_(pa.string(), pa.int64()))


def _runs(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), column(rng, 1, depth + 1))


def _union(rng: np.random.Generator, n: int, depth: int) -> pa.Array:
    types = pa.array(rng.integers(0, 2, n), pa.int8())
    return pa.UnionArray.from_sparse(types, [pa.array(rng.integers(0, 3, n)), pa.array(["A"] * n)])


MAKERS = (
    *(_small, _small, _labels, _labels, _integer, _float, _decimal, _date, _timestamp, _timestamp, _clock, _text),
    *(_bytes, _fixed, _boolean, _null, _interval, _dictionary, _list, _struct, _map, _runs, _union),
)  # fmt: skip
