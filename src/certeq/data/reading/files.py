"""Table files: CSV, Parquet, Arrow and JSON lines. We open them; the parser never sees a name, a URL or a pattern."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import mmap
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from certeq.base.doors import door, reason
from certeq.base.errors import InputError, nearest
from certeq.base.limits import most, way_out
from certeq.data.reading import sizes

WINDOW = 16 << 20  # bytes of text in which a line and a value must end somewhere
DIGITS = 38  # of a decimal that polars can hold
DEEPEST = 16  # lists and objects within one another, in JSON
TEXT = ("csv", "tsv", "txt")
FORMATS = "CSV (.csv, .tsv, .csv.gz), Parquet (.parquet), Arrow or Feather (.arrow, .feather), JSON lines (.jsonl)"
COMPRESSED = (b"\x28\xb5\x2f\xfd", b"x\x01", b"x\x9c", b"x\xda")  # zstandard and zlib, which the parser would unpack


def resolve(source: Any) -> Path:
    """Find out which file or folder is meant; it must be there, and it must be on this machine."""
    text = str(source)
    if text == "-" or re.match(r"/dev/(stdin|fd/)", text):
        raise InputError(f"{text} is a pipe, and certeq reads only files. Write it to a file first.")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        raise InputError(f"{text} is an address, and certeq reads only files on this machine. Download it first.")
    try:
        return Path(source).expanduser().resolve(strict=True)
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{text} cannot be opened: {reason(error)}.") from None
    path = Path(source).expanduser()
    try:
        near = nearest(path.name, [other.name for other in path.parent.iterdir()])
    except OSError:
        near = f" There is no folder {path.parent} either."
    raise InputError(f"There is no file {text}.{near}")


def read_file(path: Path, limit_bytes: int | None = None) -> tuple[Any, bool, str]:
    """Read a table file: a polars DataFrame, whether it came from text, and the SHA-256 of the file."""
    limit = most("bytes") if limit_bytes is None else limit_bytes
    if path.is_dir():
        raise InputError(f"{path.name or path} is a folder. Give the name of a table file inside it.")
    suffix = _format(path)
    reader = READERS.get(suffix)
    if reader is None:
        other = " ".join(filter(None, [_other(suffix), f"It reads {FORMATS}."]))
        raise InputError(f"{path.name} is not a kind of file that certeq reads. {other}")
    with _open(path, limit) as handle, _open(path, limit) as again, ThreadPoolExecutor(1) as beside, door(path.name):
        digest = beside.submit(hashlib.file_digest, again, "sha256")
        frame = parse(reader, path, handle, limit)
        fingerprint = digest.result().hexdigest()
    if frame.height == 0:
        raise InputError(f"{path.name} has a header but no rows. There is nothing to read.")
    return frame, suffix in TEXT, fingerprint


def _open(path: Path, limit_bytes: int) -> io.BufferedReader:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                f"{path.name} is not a regular file. Give the name of a table file, or of a Minari data set."
            )
        if status.st_size > limit_bytes:
            raise InputError(
                f"{path.name} has {status.st_size:,} bytes, more than the limit of {limit_bytes:,}. Split it, keep "
                f"only the columns that are needed, or {way_out('bytes')}."
            )
        if status.st_size == 0:
            raise InputError(f"{path.name} is empty. There is nothing to read.")
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path.name} cannot be opened: {reason(error)}.") from None


def parse(reader: Callable[..., Any], path: Path, handle: io.BufferedReader, limit_bytes: int) -> Any:
    """Let a reader read, and tell its complaints in our words."""
    import polars as pl

    with door(path.name):
        try:
            return reader(path, handle, limit_bytes)
        except pl.exceptions.NoDataError:
            raise InputError(f"{path.name} is empty. There is nothing to read.") from None


def check_columns(number: int) -> None:
    """Refuse a table that is wider than anything that people mean."""
    if number > most("columns"):
        raise InputError(
            f"The table has {number:,} columns; certeq takes {most('columns'):,}. Keep those that matter, or "
            f"{way_out('columns')}."
        )


def check_size(name: str, rows: int, columns: int, limit_bytes: int) -> None:
    """Refuse a table that would not fit, before it is unpacked."""
    check_columns(columns)
    if rows > most("rows"):
        raise InputError(
            f"{name} has {rows:,} rows; certeq takes {most('rows'):,} at once on a machine like this one. Count them "
            f"part by part, or {way_out('rows')}."
        )
    if rows * columns * sizes.VALUE > limit_bytes:
        raise InputError(
            f"{name} unpacks to {rows:,} rows of {columns:,} columns, more than {limit_bytes:,} bytes. Keep only the "
            f"columns that are needed, or {way_out('bytes')}."
        )


def _csv(path: Path, handle: io.BufferedReader, limit_bytes: int) -> Any:
    """CSV, in whatever way its first line suggests."""
    data = _unpacked(path, handle.read(), limit_bytes)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in data[:1000]:
        raise InputError(f"{path.name} is not plain UTF-8 text. Save it as 'CSV UTF-8'.")
    if data.isspace():
        raise InputError(f"{path.name} is empty. There is nothing to read.")
    if b"\r" in data and b"\n" not in data:  # lines as old Macintoshes end them
        data = data.replace(b"\r", b"\n")
    how = _dialect(path, data)
    _check_text(path, data, how["separator"].encode(), limit_bytes)
    frame = _parsed(path, data, how)
    if any("_duplicated_" in name for name in frame.columns):  # so the parser calls the second of two, unless it is
        twice = [name for name, often in Counter(_header(data, how["separator"])).items() if often > 1]
        if twice:
            raise InputError(f"{path.name} has two columns named {twice[0]!r}. Rename one of them.")
    trimmed = [name.strip() for name in _names(data, how["separator"], frame.columns)]
    return frame.rename(dict(zip(frame.columns, trimmed, strict=True))) if len(set(trimmed)) == len(trimmed) else frame


def _parsed(path: Path, data: bytes, how: Mapping[str, Any], **types: Any) -> Any:
    """Types from the first rows; where a later row contradicts them, everything is read as text and sorted out."""
    import polars as pl

    try:
        return pl.read_csv(data, **(types or {"infer_schema_length": 1000}), **how)
    except pl.exceptions.ComputeError as error:
        if "utf-8" in str(error) or "utf8" in str(error):
            raise InputError(f"{path.name} is not plain UTF-8 text. Save it as 'CSV UTF-8'.") from None
        if "more fields" in str(error):
            raise InputError(
                f"{_too_long(path.name, data, how['separator'])}. Put names into the first line, and quotes around "
                "values that contain the separator."
            ) from None
        if types:
            raise
    return _parsed(path, data, how, infer_schema=False)


def _too_long(name: str, data: bytes, separator: str) -> str:
    """Say which line is the first with more values than the header has names; lines are counted as editors do."""
    lines = csv.reader(io.StringIO(data.decode("utf-8-sig", "replace"), newline=""), delimiter=separator)
    with contextlib.suppress(csv.Error):
        names, before = len(next(lines)), lines.line_num
        for values in lines:
            if len(values) > names:
                return f"Line {before + 1} of {name} has {len(values)} values, and the header has {names} names"
            before = lines.line_num
    return f"A line of {name} has more values than the header has names"


def _names(data: bytes, separator: str, found: list[str]) -> list[str]:
    """Names of the columns; a quotation mark that is doubled in the header is one, which the parser does not know."""
    if not any('""' in name for name in found):
        return found
    header = _header(data, separator)
    return header if len(header) == len(found) else found


def _header(data: bytes, separator: str) -> list[str]:
    """The names in the first line, as they stand there; none where they cannot be told."""
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
    try:
        return next(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _dialect(path: Path, data: bytes) -> dict[str, Any]:
    """The separator that the first line uses most, and whether numbers have a decimal comma."""
    start = data[:65536].decode("utf-8", "replace")
    header = re.sub(r'"[^"]*"', "", start.splitlines()[0])
    separator = "\t" if _format(path) == "tsv" else max(",;\t|", key=header.count)
    comma = separator != "," and bool(re.search(r"\d,\d", start)) and not re.search(r"\d\.\d", start)
    return {"separator": separator, "decimal_comma": comma}


def _unpacked(path: Path, data: bytes, limit_bytes: int) -> bytes:
    if data[:2] == b"\x1f\x8b" or path.suffix.lower() == ".gz":
        try:
            with gzip.open(io.BytesIO(data)) as stream:
                data = stream.read(limit_bytes + 1)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{path.name} is damaged or cut off: it cannot be unpacked. Write it again.") from None
        if len(data) > limit_bytes:
            raise InputError(
                f"{path.name} unpacks to more than {limit_bytes:,} bytes. Split it, or {way_out('bytes')}."
            )
    if data.startswith(COMPRESSED):
        raise InputError(f"{path.name} is compressed in a way that certeq does not read. Unpack it, or use gzip.")
    return data


def _check_text(path: Path, data: bytes, separator: bytes, limit_bytes: int) -> None:
    """Refuse a text that the parser would choke on: too many lines or columns, or values without end."""
    head = data[: data.find(b"\n")] if b"\n" in data else data
    columns = head.count(separator) + 1
    if columns > most("columns"):  # unless the separators stand in quotes
        columns = re.sub(rb'"[^"]*"', b"", head).count(separator) + 1
    check_size(path.name, data.count(b"\n") - data.endswith(b"\n"), columns, limit_bytes)
    _check_ends(path, data, b"\n", separator)


def _check_ends(path: Path, data: bytes, *signs: bytes) -> None:
    """Refuse lines or values without end: these signs must occur in every window of the text."""
    for start in range(0, len(data) - WINDOW + 1, WINDOW):
        if any(data.find(sign, start, start + WINDOW) < 0 for sign in signs):
            raise InputError(
                f"{path.name} has a line or a value that does not end within {WINDOW:,} bytes. Look for a quotation "
                "mark that is not closed."
            )


def _columnar(measure: Callable[[memoryview, int], int], scan: str) -> Callable[..., Any]:
    """Parquet or Arrow: a small file can mean a very large table, so ask how large before unpacking it."""

    def reader(path: Path, handle: io.BufferedReader, limit_bytes: int) -> Any:
        import polars as pl

        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            size = measure(view, limit_bytes)
            stream = scan == "scan_ipc" and bytes(view[:6]) != b"ARROW1"
        if size > limit_bytes:
            raise InputError(
                f"{path.name} unpacks to more than {limit_bytes:,} bytes. Keep only the columns that are needed, or "
                f"{way_out('bytes')}."
            )
        handle.seek(0)
        if stream:
            frame = pl.read_ipc_stream(io.BytesIO(handle.read()))
            check_size(path.name, frame.height, frame.width, limit_bytes)
            return frame
        lazy = getattr(pl, scan)(handle)
        schema = lazy.collect_schema()
        check_digits(path.name, schema)
        check_size(path.name, lazy.select(pl.len()).collect().item(), len(schema), limit_bytes)
        return lazy.collect()

    return reader


def check_digits(name: str, schema: Mapping[str, Any]) -> None:
    """Refuse decimals with more digits than the library holds, also within lists: it may end the process over them."""
    for column, kind in schema.items():
        inside = [kind]
        for each in inside:  # which grows
            inside += [one.dtype for one in getattr(each, "fields", ())] + [
                *filter(None, [getattr(each, "inner", None)])
            ]
            if (getattr(each, "precision", None) or 0) > DIGITS:
                raise InputError(
                    f"{name} cannot be read: column {column!r} holds decimals of {each.precision} digits, and at most "
                    f"{DIGITS} can be read. Write them as floating-point numbers or as text, or leave the column out."
                )


def check_groups(path: Path, handle: io.BufferedReader) -> None:
    """Refuse a Parquet file of which a single group of rows, which is unpacked at once, would not fit into memory."""
    limit = most("bytes")
    with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
        for size in sizes.group_sizes(view, limit):
            if size > limit:
                raise InputError(
                    f"{path.name} has a group of rows that unpacks to more than {limit:,} bytes. Write it in smaller "
                    f"groups, or {way_out('bytes')}."
                )
            if hasattr(mmap, "MADV_DONTNEED"):  # or the whole file would seem to be in this process's memory
                data.madvise(mmap.MADV_DONTNEED)


def _json(path: Path, handle: io.BufferedReader, limit_bytes: int) -> Any:
    import polars as pl

    data = handle.read()
    if data[:1] == b"[":
        raise InputError(f"{path.name} holds one list. Write JSON lines: one object, {{...}}, on each line.")
    _check_json(path, data, limit_bytes)
    return pl.read_ndjson(data, infer_schema_length=None)  # a field may first occur in the last row


def _check_json(path: Path, data: bytes, limit_bytes: int) -> None:
    """Refuse JSON lines that would make a column of every line, or that are lists within lists within lists."""
    fields: set[bytes] = set()
    for start in range(0, len(data), WINDOW):
        fields.update(re.findall(rb'"([^"]*)"\s*:', data[start : start + WINDOW]))
        check_columns(len(fields))
    check_size(path.name, data.count(b"\n") + (not data.endswith(b"\n")), len(fields), limit_bytes)
    _check_ends(path, data, b"\n")
    brackets = data.translate(None, bytes(set(range(256)) - set(b"[]{}\n")))
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if len(max(brackets.split(b"\n"), key=len)) > 4 * DEEPEST:  # a few may be left from texts
        raise InputError(f"{path.name} has lists or objects within one another, deeper than {DEEPEST}. Flatten them.")


READERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(TEXT, _csv),
    **dict.fromkeys(("parquet", "pq"), _columnar(sizes.parquet, "scan_parquet")),
    **dict.fromkeys(("arrow", "feather", "ipc"), _columnar(sizes.arrow, "scan_ipc")),
    **dict.fromkeys(("jsonl", "ndjson", "json"), _json),
}


def _format(path: Path) -> str:
    suffixes = [suffix.lower().lstrip(".") for suffix in path.suffixes]
    if suffixes and suffixes[-1] == "gz":
        suffixes = suffixes[:-1] if len(suffixes) > 1 and suffixes[-2] in TEXT else suffixes
    return suffixes[-1] if suffixes else ""


def _other(suffix: str) -> str:
    if suffix in ("xls", "xlsx", "ods"):
        return "Save the sheet as CSV."
    if suffix in ("pkl", "pickle", "joblib", "pt", "npy", "npz", "rds", "rdata"):
        return "Such files may hold code; save the table as CSV or Parquet."
    if suffix in ("h5", "hdf5"):
        return "For a Minari data set give its folder."
    return ""
