"""How large a Parquet or Arrow file will be in memory, told by its own headers before anything is unpacked.

A few hundred bytes of Parquet can stand for a billion equal values, and of compressed Arrow for gigabytes of zeros. So
every page of a Parquet file and every batch of an Arrow file is asked how many values it holds and how many bytes it
unpacks to; that is what a decoder goes by too, whatever the file says elsewhere. Only the few fields that are needed
are read: Parquet's headers are in Thrift's compact protocol, Arrow's are flat buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

VALUE = 8  # bytes of a value in memory, at least
PIECE = 1024  # bytes of whatever is kept about a page or a batch
FOOTER = 32 << 20  # bytes of a Parquet footer: more than 100,000 column chunks
HEADER, HEADERS = 1024, 1024  # bytes of a page's header that is remembered, at most, and how many are
DEEPEST = 64  # levels of a Parquet schema; a list takes two
Thrift = dict[int, Any]
NONE: Thrift = {}
INTEGERS = (4, 5, 6)  # of two, four and eight bytes, in Thrift
NONSENSE = (IndexError, KeyError, struct.error, RecursionError, AttributeError, TypeError, OverflowError)


class Damaged(ValueError):  # noqa: N818 - it says what the file is
    """The headers make no sense."""


def parquet(data: memoryview, limit: int) -> int:
    """Bytes that a Parquet file unpacks to, or the first sum beyond the limit."""
    return _total((size for group in _groups(data) for size in _pages(data, group)), limit)


def group_sizes(data: memoryview, limit: int) -> Iterator[int]:
    """Bytes that each group of rows of a Parquet file unpacks to, or the first sum beyond the limit."""
    return (_total(_pages(data, group), limit) for group in _groups(data))


def arrow(data: memoryview, limit: int) -> int:
    """Bytes that an Arrow file or stream unpacks to, or the first sum beyond the limit."""
    return _total((_batch(data, at) for at in _messages(data)), limit)


def _total(pieces: Iterator[int], limit: int) -> int:
    total = 0
    try:
        for size in pieces:
            total += PIECE + size
            if total > limit:
                break
    except NONSENSE:
        raise Damaged("its headers make no sense") from None
    return total


# ---- Parquet ----


def _groups(data: memoryview) -> list[Thrift]:
    """The groups of rows that the footer lists."""
    if len(data) < 12 or bytes(data[-4:]) != b"PAR1":
        raise Damaged("it has no Parquet footer")
    (length,) = struct.unpack_from("<I", data, len(data) - 8)
    if length > FOOTER:
        raise Damaged(f"its footer has {length:,} bytes, more than {FOOTER:,}")
    try:
        footer, _ = _struct(data, max(len(data) - 8 - length, 0))
        _check_depth([element.get(5, 0) for element in footer[2]])
        return list(footer.get(4, []))
    except NONSENSE:
        raise Damaged("its footer makes no sense") from None


def _pages(data: memoryview, group: Thrift) -> Iterator[int]:
    """Bytes of each page of each column of a group, from where a decoder begins to where it stops.

    Most headers say, byte for byte, what one before them said, and that is not read again.
    """
    known: dict[bytes, tuple[int, int]] = {}  # what a header says: bytes of the page, and to where the next one begins
    length = 0  # of the header that was read last
    for about in (chunk.get(3, {}) for chunk in group.get(1, [])):
        at = about.get(11, about[9])
        end = min(at + about[7], len(data))
        while at < end:
            said = known.get(bytes(data[at : at + length]))
            if said is None:
                page, after = _struct(data, at)
                values = max(page.get(5, NONE).get(1, 0), page.get(7, NONE).get(1, 0), page.get(8, NONE).get(1, 0))
                if min(page[2], page[3], values) < 0:
                    raise Damaged("a page has a negative size")
                said, length = (page[2] + VALUE * values, after - at + page[3]), min(after - at, HEADER)
                if after - at == length and len(known) < HEADERS:
                    known[bytes(data[at:after])] = said
            yield said[0]
            at += said[1]


def _check_depth(children: list[int]) -> None:
    """Refuse columns within columns without end: a decoder goes down into each."""
    open_lists: list[int] = []  # how many children each level still expects
    for number in children:
        if open_lists:
            open_lists[-1] -= 1
        open_lists.append(number)
        if len(open_lists) > DEEPEST:
            raise Damaged(f"its columns lie within one another, deeper than {DEEPEST}")
        while open_lists and open_lists[-1] <= 0:
            open_lists.pop()


def _struct(data: memoryview, at: int) -> tuple[Thrift, int]:
    """The fields of a structure; a large file has many thousands, so what is common is read here, as `_value` does."""
    fields: Thrift = {}
    number = 0
    while head := data[at]:
        if head > 15:
            number += head >> 4
            at += 1
        else:
            number, at = _zigzag(data, at + 1)
        kind = head & 15
        if kind in (1, 2):
            fields[number] = kind == 1
        elif (kind == 8 or kind in INTEGERS) and (byte := data[at]) < 128:
            fields[number], at = (None, at + 1 + byte) if kind == 8 else ((byte >> 1) ^ -(byte & 1), at + 1)
        else:
            fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _value(data: memoryview, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2, 3):  # a boolean in a list, or a byte
        return data[at], at + 1
    if kind in INTEGERS:
        return _zigzag(data, at)
    if kind == 7:
        return data[at + 7], at + 8  # no fraction is needed, but it must be there
    if kind == 8:
        length, at = _varint(data, at)
        return None, at + length  # no text is needed
    if kind == 12:
        return _struct(data, at)
    if kind in (9, 10):
        head, at = data[at], at + 1
        size, at = (head >> 4, at) if head >> 4 < 15 else _varint(data, at)
        items = []
        for _ in range(size):
            item, at = _value(data, at, head & 15)
            items.append(item)
        return items, at
    raise Damaged("its headers hold what Parquet has no use for")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise Damaged("its headers hold a number without end")


def _zigzag(data: memoryview, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


# ---- Arrow ----


def _messages(data: memoryview) -> Iterator[int]:
    """Where the messages begin: as the footer of a file lists them, or one after the other in a stream."""
    if bytes(data[:6]) == b"ARROW1":
        (length,) = struct.unpack_from("<i", data, len(data) - 10)
        footer = _root(data, len(data) - 10 - length)
        for field in (2, 3):  # dictionaries and batches
            yield from (at for at, _, _ in _vector(data, footer, field, "<qi4xq"))
        return
    at = 0
    while at + 8 <= len(data):
        yield at
        start, length = _head(data, at)
        if length <= 0:
            return
        body = _scalar(data, _root(data, start), 3, "<q")
        if body < 0:
            raise Damaged("a batch has a negative size")
        at = start + length + body


def _batch(data: memoryview, at: int) -> int:
    """Bytes of the values and of the unpacked buffers of a batch, or of the dictionary in it; a schema has none."""
    start, length = _head(data, at)
    if length <= 0:
        return 0
    message = _root(data, start)
    kind, body = _scalar(data, message, 1, "<B"), start + length
    batch = _table(data, message, 2)
    if kind == 2 and batch is not None:
        batch = _table(data, batch, 1)
    if kind not in (2, 3) or batch is None:
        return 0
    total = sum(VALUE * max(count, 0) for count, _ in _vector(data, batch, 1, "<qq"))
    packed = _table(data, batch, 3) is not None
    for offset, size in _vector(data, batch, 2, "<qq"):
        unpacked = struct.unpack_from("<q", data, body + offset)[0] if packed and size >= 8 else -1
        total += unpacked if unpacked >= 0 else max(size, 0)
    return total


def _head(data: memoryview, at: int) -> tuple[int, int]:
    """Where the header of a message begins, and how long it is; older files lack the leading sign."""
    if at < 0:
        raise Damaged("a batch lies outside of the file")
    (length,) = struct.unpack_from("<i", data, at)
    return (at + 8, struct.unpack_from("<i", data, at + 4)[0]) if length == -1 else (at + 4, length)


def _root(data: memoryview, at: int) -> int:
    return int(at + _unsigned(data, at))


def _field(data: memoryview, table: int, field: int) -> int:
    """Where a field of a table lies; 0 where it is left out."""
    entries = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, entries)
    if 4 + 2 * field >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, entries + 4 + 2 * field)
    return int(table + offset) if offset else 0


def _scalar(data: memoryview, table: int, field: int, kind: str) -> int:
    at = _field(data, table, field)
    return int(struct.unpack_from(kind, data, at)[0]) if at else 0


def _table(data: memoryview, table: int, field: int) -> int | None:
    at = _field(data, table, field)
    return _root(data, at) if at else None


def _vector(data: memoryview, table: int, field: int, kind: str) -> Iterator[tuple[int, ...]]:
    at = _field(data, table, field)
    if not at:
        return
    start = _root(data, at)
    size, step = _unsigned(data, start), struct.calcsize(kind)
    if start + 4 + size * step > len(data):
        raise Damaged("its headers reach beyond the file")
    for i in range(size):
        yield struct.unpack_from(kind, data, start + 4 + i * step)


def _unsigned(data: memoryview, at: int) -> int:
    if at < 0:
        raise Damaged("its headers point outside of the file")
    return int(struct.unpack_from("<I", data, at)[0])
