"""Headers in Thrift's compact protocol are read as they were written."""

from hypothesis import given
from hypothesis import strategies as st

from certeq.data.reading.sizes import VALUE, _pages, _struct

NUMBERS = st.integers(-(2**62), 2**62) | st.integers(-70, 70)
FIELDS = st.deferred(lambda: st.dictionaries(st.integers(1, 40), VALUES, max_size=6))
VALUES = NUMBERS | st.booleans() | st.binary(max_size=200) | st.lists(NUMBERS, max_size=20) | FIELDS


def varint(value):
    """Seven bits at a time, the lowest first; all bytes but the last have their top bit set."""
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def written(fields):
    """A structure: for each field its distance from the one before, its kind and its value; at the end a zero."""
    data, last = b"", 0
    for number, value in sorted(fields.items()):
        kind, body = coded(value)
        data += bytes([number - last << 4 | kind]) if number - last < 16 else bytes([kind]) + zigzag(number)
        data, last = data + body, number
    return data + b"\0"


def coded(value):
    match value:
        case bool():
            return (1 if value else 2), b""
        case int():
            return 6, zigzag(value)
        case bytes():
            return 8, varint(len(value)) + value
        case list():
            size = len(value)
            head = bytes([size << 4 | 6]) if size < 15 else bytes([0xF6]) + varint(size)
            return 9, head + b"".join(map(zigzag, value))
    return 12, written(value)


def expected(value):
    """What is read of it: of text, nothing."""
    if isinstance(value, dict):
        return {number: expected(each) for number, each in value.items()}
    return None if isinstance(value, bytes) else value


@given(FIELDS, st.binary(max_size=3))
def test_a_structure_is_read_as_it_was_written(fields, after):
    data = written(fields)
    assert _struct(memoryview(b"?" + data + after), 1) == (expected(fields), 1 + len(data))


PAGES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 70, 9000]), st.binary(max_size=2)), max_size=12)


@given(st.lists(PAGES, max_size=3))
def test_pages_are_as_large_as_their_headers_say_also_where_a_header_was_seen_before(columns):
    data, chunks, sizes = b"", [], []
    for pages in columns:
        start = len(data)
        for packed, values, text in pages:
            data += written({2: 10 * packed, 3: packed, 5: {1: values}, 9: text}) + b"\x15" * packed
            sizes.append(10 * packed + VALUE * values)
        chunks.append({3: {7: len(data) - start, 9: start}})
    assert list(_pages(memoryview(data), {1: chunks})) == sizes
