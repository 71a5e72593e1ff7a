"""Forms of files: declared as types, checked by msgspec. What does not fit is an error that names the field."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from certeq.base.arrays import Integers
from certeq.base.display import shorten
from certeq.base.errors import InputError

LARGEST, EXACT = sys.float_info.max, 1 << 53  # the largest float, and how far floats tell whole numbers apart
Finite: TypeAlias = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Whole: TypeAlias = Annotated[int, Meta(ge=0, le=EXACT)] | Annotated[float, Meta(ge=0, le=EXACT)]  # some write 3.0 for 3
Form = TypeVar("Form")

TOLD = 400  # characters of a message that quotes a file
DEEPEST = 100  # lists and objects within one another; decoders have limits of their own, which differ between Pythons
BYTE = re.compile(r"\(byte (\d+)\)$")
# a list of numbers is one token, which saves time and is no nesting
TOKEN = re.compile(rb'[{}]|\[(?:[^][{}"]*+\])?+|\]|"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:\s*+:)?+', re.DOTALL)


def fill(form: type[Form], given: Any, what: str, where: str = "") -> Form:
    """Read plain values, or JSON in bytes, as a form; messages say ``what`` it is, and ``where`` it was found."""
    try:
        return msgspec.json.decode(given, type=form) if isinstance(given, bytes) else msgspec.convert(given, form)
    except msgspec.ValidationError as error:
        words, _, path = str(error).partition(" - at `")
        place = where + path.removeprefix("key in ").strip("$`")
        if not place and words.startswith("Expected"):
            raise InputError(f"This is not a {what}: {words.lower()}.") from None
        raise damaged(what, place.removeprefix("."), words[:1].lower() + words[1:]) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:  # half a surrogate pair is none either
        at = BYTE.search(str(error))
        near = f", at {given[max(0, int(at[1]) - 20) : int(at[1]) + 20]!r}" if at else ""
        raise InputError(f"This is not a {what}: it is not JSON that can be read ({error}{near}).") from None


def damaged(what: str, place: str, words: object) -> InputError:
    """Build the error for a place of a file that does not fit."""
    at = f" at {shorten(place, TOLD)}" if place else ""
    return InputError(f"The {what} is damaged{at}: {shorten(words, TOLD).removesuffix('.')}.")


def check_json(data: bytes, what: str) -> None:
    """Refuse what the decoder lets pass in well-formed JSON: what is not UTF-8, nested deeply, or in one object twice.

    What stands there twice would mean one thing to us and another to the next reader.
    """
    try:
        data.decode("utf-8")  # the decoder looks only at the texts that it is asked for
    except UnicodeDecodeError as error:
        raise InputError(f"This is not a {what}: it is not UTF-8 ({error}).") from None
    outer: list[set[bytes]] = []
    fields: set[bytes] = set()
    for found in TOKEN.finditer(data):
        token = found[0]
        if token == b"[" or token == b"{":
            outer.append(fields)
            fields = set()
            if len(outer) > DEEPEST:
                raise InputError(
                    f"This is not a {what}: it is not JSON that can be read (it is nested more than {DEEPEST} deep)."
                )
        elif token == b"]" or token == b"}":
            fields = outer.pop()
        elif token.endswith(b":"):
            if b"\\" in token or not token.endswith(b'":'):  # one name may be spelled in several ways
                token = msgspec.json.encode(msgspec.json.decode(token.rstrip(b": \t\r\n"))) + b":"
            if token in fields:
                raise damaged(what, "", f"it has {token[:-1].decode()} twice in one object")
            fields.add(token)


def table(what: str, place: str, rows: Any, shape: tuple[int, ...], dtype: Any = None) -> NDArray[Any]:
    """Nested lists of a file as an array of this shape, with nan for null among floats."""
    try:
        found = np.array(rows, dtype=dtype)
    except (TypeError, ValueError):  # lists of several lengths
        found = np.zeros(())
    if found.shape != shape:
        size = " x ".join(f"{length:,}" for length in shape)
        raise damaged(what, place, f"it must be a {'list' if len(shape) == 1 else 'table'} of {size}")
    return found


def whole_table(what: str, place: str, rows: list[list[int | float]], shape: tuple[int, ...]) -> Integers:
    """Nested lists of `Whole` as an array of this shape."""
    found = table(what, place, rows, shape)
    broken = found % 1 != 0
    if broken.any():
        raise damaged(what, place, f"it must be whole numbers; got {found[broken][0]}")
    return found.astype(np.int64)
