"""Tables: text that has no end, archives that unpack to gigabytes, columns by the thousand, names of other things."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HEADER = b"episode,time,state,action,reward\n"
ROW = b"1,0,A,x,1\n"
GOOD = HEADER + b"1,0,A,x,1\n1,1,B,x,2\n1,2,A,y,3\n"
Case = Callable[[Path], tuple[Any, ...]]
CASES: dict[str, Case] = {}


def case(name: str, file: str = "rows.csv") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register what makes the content of one file that ``certeq learn`` is given."""

    def keep(content: Callable[[], Any]) -> Callable[[], Any]:
        def make(folder: Path) -> tuple[Any, ...]:
            path, found = folder / file, content()
            if callable(found):
                found(path)
            else:
                path.write_bytes(found)
            return "learn", file

        CASES[f"table: {name}"] = make
        return content

    return keep


def given(name: str, file: str, content: Any) -> None:
    """The same, where the content is known at once."""
    case(name, file)(lambda: content)


# ---- text ----

given("empty", "rows.csv", b"")
given("a byte order mark and nothing else", "rows.csv", b"\xef\xbb\xbf")
given("UTF-16", "rows.csv", GOOD.decode().encode("utf-16"))
given("invalid UTF-8 in the header", "rows.csv", HEADER.replace(b"state", b"st\xffte") + ROW)
given("invalid UTF-8 in a label", "rows.csv", GOOD + b"1,3,\xc3\x28,x,1\n1,4,A,x,1\n")
given("NUL bytes in the header", "rows.csv", HEADER.replace(b"state", b"st\0te") + ROW)
given("nothing but NUL bytes", "rows.csv", bytes(5000))
given("a picture", "rows.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
given("a header and no rows", "rows.csv", HEADER)
given("two columns of one name", "rows.csv", GOOD.replace(b"time", b"state"))
given("more values than names", "rows.csv", GOOD + b"1,3,A,x,1,2,3\n")
given("infinite rewards", "rows.csv", GOOD.replace(b",3\n", b",inf\n1,3,A,x,1\n"))
given("a label of 10,001 letters", "rows.csv", GOOD.replace(b"B", b"B" * 10_001))


@case("100,000 columns")
def _() -> bytes:
    return b",".join(b"c%d" % i for i in range(100_000)) + b"\n" + b",".join([b"1"] * 100_000) + b"\n"


@case("2,000,000 columns")
def _() -> bytes:
    return b",".join(b"c%d" % i for i in range(2_000_000)) + b"\n" + b",".join([b"1"] * 2_000_000) + b"\n"


@case("a value of 64 MiB")
def _() -> bytes:
    return HEADER + b"1,0," + b"A" * (64 << 20) + b",x,1\n" + ROW


@case("a line of commas")
def _() -> bytes:
    return HEADER + b"," * (64 << 20) + b"\n"


@case("a quotation mark that is never closed")
def _() -> bytes:
    return HEADER + b'1,0,"' + b"A\n" * (20 << 20)


@case("a quotation mark that is never closed, with separators")
def _() -> bytes:
    return HEADER + b'1,0,"' + b"A,A,A,A\n" * (4 << 20)


@case("10,000,000 rows")
def _() -> bytes:
    return HEADER + ROW * 10_000_000


@case("50,000 states with an action each")
def _() -> bytes:
    return HEADER + b"".join(b"1,%d,s%d,a%d,1\n" % (i, i, i) for i in range(50_000))


@case("60,000 states")
def _() -> bytes:
    return HEADER + b"".join(b"1,%d,s%d,a,1\n" % (i, i) for i in range(60_000))


# ---- archives ----


@case("a gzip bomb of 1 GiB", "rows.csv.gz")
def _() -> bytes:
    return gzip.compress(HEADER) + gzip.compress(ROW * 1_600_000) * 64


@case("a gzip bomb without the name", "rows.csv")
def _() -> bytes:
    return gzip.compress(HEADER) + gzip.compress(ROW * 1_600_000) * 64


given("gzip within gzip", "rows.csv.gz", gzip.compress(gzip.compress(GOOD)))
given("gzip cut off", "rows.csv.gz", gzip.compress(GOOD)[:-12])
given("gzip with a wrong checksum", "rows.csv.gz", gzip.compress(GOOD)[:-8] + bytes(8))
given("zstandard", "rows.csv", b"\x28\xb5\x2f\xfd" + bytes(60))


@case("a zip bomb named CSV", "rows.csv")
def _() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../rows.csv", HEADER + ROW * 3_000_000)
    return held.getvalue()


@case("an npz bomb", "rows.npz")
def _() -> bytes:
    held = io.BytesIO()
    np.savez_compressed(held, rows=np.zeros(30_000_000))
    return held.getvalue()


@case("a pickle that runs a command", "rows.pkl")
def _() -> bytes:
    from trust.hostile import exploit

    return exploit()


@case("a pickle named CSV", "rows.csv")
def _() -> bytes:
    from trust.hostile import exploit

    return exploit()


@case("a pickle named Parquet", "rows.parquet")
def _() -> bytes:
    from trust.hostile import exploit

    return exploit()


# ---- JSON lines ----

given("JSON: one list", "rows.jsonl", b'[{"state": 1}]')
given("JSON: cut off", "rows.jsonl", b'{"state": 1}\n{"state":')
given("JSON: not numbers", "rows.jsonl", b'{"state": NaN, "action": 1, "reward": Infinity, "time": 0}\n')
given("JSON: lists 1,000 deep", "rows.jsonl", b'{"state":' + b"[" * 1000 + b"]" * 1000 + b',"action":1,"reward":1}\n')
given("JSON: objects 1,000 deep", "rows.jsonl", b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"\n")
given("JSON: lists 1,000,000 deep", "rows.jsonl", b'{"state":' + b"[" * 10**6 + b"]" * 10**6 + b"}\n")


@case("JSON: a new field on each of 20,000 lines", "rows.jsonl")
def _() -> bytes:
    return b"".join(b'{"k%d":1}\n' % i for i in range(20_000))


@case("JSON: 9,000 fields and 200,000 lines", "rows.jsonl")
def _() -> bytes:
    first = b"{" + b",".join(b'"k%d":1' % i for i in range(9_000)) + b"}\n"
    return first + b'{"k1":1}\n' * 200_000


# ---- Parquet and Arrow ----


def _repeated(how: str) -> Callable[[Path], None]:
    """One row that is a list of 100,000,000 zeros, in a few kilobytes."""

    def write(path: Path) -> None:
        import pyarrow as pa

        zeros = pa.array(np.zeros(100_000_000, dtype=np.int8))
        state = pa.ListArray.from_arrays(pa.array([0, len(zeros)], pa.int32()), zeros)
        _write(pa.table({"state": state, "action": ["x"], "reward": [1.0], "next_state": state}), path, how)

    return write


def _write(table: Any, path: Path, how: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if how == "parquet":
        pq.write_table(table, path, compression="zstd")
        return
    opened = pa.ipc.new_stream if how == "stream" else pa.ipc.new_file
    with opened(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)


given("Parquet: a list of 100,000,000 in 2 KB", "rows.parquet", _repeated("parquet"))
given("Arrow file: a list of 100,000,000", "rows.arrow", _repeated("file"))
given("Arrow stream: a list of 100,000,000", "rows.arrow", _repeated("stream"))


def _long_text(how: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow as pa

        text = pa.array(["A" * 600_000_000])
        _write(pa.table({"state": text, "action": ["x"], "reward": [1.0], "next_state": ["A"]}), path, how)

    return write


given("Parquet: a text of 600 MB", "rows.parquet", _long_text("parquet"))
given("Arrow: a text of 600 MB", "rows.arrow", _long_text("file"))


@case("Parquet: 1,000,000,000 blanks", "rows.parquet")
def _() -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow as pa

        nothing = pa.nulls(1_000_000_000)
        _write(pa.table(dict.fromkeys(("state", "action", "next_state"), nothing)), path, "parquet")

    return write


@case("Arrow: 2,000,000,000 blanks", "rows.arrow")
def _() -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow as pa

        _write(pa.table({"state": pa.nulls(2_000_000_000)}), path, "stream")

    return write


@case("Parquet: 5,000,000 labels of 10,001 letters in a dictionary", "rows.parquet")
def _() -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow as pa

        n = 5_000_000
        codes = pa.array(np.tile([0, 1], n // 2).astype(np.int32))
        state = pa.DictionaryArray.from_arrays(codes, pa.array(["a" * 10_001, "b" * 10_001]))
        columns = {"state": state, "action": pa.array(np.zeros(n, np.int8)), "reward": np.zeros(n)}
        _write(pa.table(columns | {"next_state": state}), path, "parquet")

    return write


@case("Parquet: columns within columns", "rows.parquet")
def _() -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow as pa

        kind, value = pa.int64(), 1
        for _ in range(60):
            kind, value = pa.list_(kind), [value]
        state = pa.array([value], kind)
        _write(pa.table({"state": state, "action": ["x"], "next_state": state}), path, "parquet")

    return write


given("Parquet: nothing between the marks", "rows.parquet", b"PAR1" + struct.pack("<I", 0) + b"PAR1")
given("Parquet: a footer longer than the file", "rows.parquet", b"PAR1" + bytes(9) + struct.pack("<I", 2**31) + b"PAR1")
given(
    "Parquet: a list without end in the footer",
    "rows.parquet",
    _footer := b"PAR1" + b"\x29\xf7" + b"\xff" * 8 + b"\x7f" + bytes(9) + struct.pack("<I", 20) + b"PAR1",
)
given("Parquet: encrypted", "rows.parquet", b"PARE" + bytes(20) + struct.pack("<I", 8) + b"PARE")
given("Arrow: nothing but the mark", "rows.arrow", b"ARROW1\0\0")
given("Arrow: a header that points outside", "rows.arrow", b"\xff\xff\xff\xff" + struct.pack("<i", 64) + b"\xff" * 64)
given("Parquet: CSV under another name", "rows.parquet", GOOD)


for _name in [name for name in CASES if "Parquet" in name]:  # counted without being held in memory
    CASES[_name.replace("table:", "counting:")] = lambda folder, make=CASES[_name]: ("count", *make(folder)[1:])  # type: ignore[misc]


# ---- names of other things ----


def named(name: str, words: Callable[[Path], tuple[Any, ...]]) -> None:
    """Register a case in which the name itself is the trouble."""
    CASES[f"name: {name}"] = words


for _address in ("https://example.org/rows.csv", "s3://bucket/rows.parquet", "file:///etc/passwd", "FTP://x/rows.csv"):
    named(_address, lambda folder, address=_address: ("learn", address))  # type: ignore[misc]
for _name in (
    "nowhere.csv",
    "../../nowhere/rows.csv",
    "*.csv",
    "~nobody-at-all/rows.csv",
    "x" * 5000 + ".csv",
    ".",
    "/",
):
    named(_name[:30], lambda folder, name=_name: ("learn", name))  # type: ignore[misc]
for _device in ("/dev/zero", "/dev/random", "/dev/stdin", "/proc/self/mem"):
    named(_device, lambda folder, device=_device: ("learn", device))  # type: ignore[misc]


def _link(name: str, target: str) -> None:
    def make(folder: Path) -> tuple[Any, ...]:
        (folder / "rows.csv").symlink_to(target)
        return "learn", "rows.csv"

    named(name, make)


_link("a link to itself", "rows.csv")
_link("a link to an endless device", "/dev/zero")
_link("a link to nowhere", "gone.csv")


def _pipe(folder: Path) -> tuple[Any, ...]:
    os.mkfifo(folder / "rows.csv")
    return "learn", "rows.csv"


named("a pipe that nobody writes to", _pipe)


# ---- folders of files, which are counted ----


def counted(name: str, put: Callable[[Path], Any]) -> None:
    """Register what somebody put into a folder that is counted, beside a sound file."""

    def make(folder: Path) -> tuple[Any, ...]:
        import polars as pl

        (folder / "rows").mkdir()
        columns = {"state": ["A", "B"], "action": ["x", "x"], "reward": [1.0, 2.0], "next_state": ["B", "A"]}
        pl.DataFrame(columns).write_parquet(folder / "rows" / "a.parquet")
        put(folder / "rows" / "b.parquet")
        return "count", "rows"

    CASES[f"counting: a folder with {name}"] = make


counted("a pipe that nobody writes to", os.mkfifo)
counted("a link to itself", lambda path: path.symlink_to(path.name))
counted("a link to an endless device", lambda path: path.symlink_to("/dev/zero"))
counted("a link to a folder above", lambda path: path.symlink_to("../../nowhere.parquet"))
counted("a folder named like a file", lambda path: path.mkdir())
counted("an empty file", lambda path: path.touch())
counted("a text", lambda path: path.write_bytes(GOOD))
counted("cut off Parquet", lambda path: path.write_bytes((path.parent / "a.parquet").read_bytes()[:-20]))
for _name in ("https://example.org/rows.parquet", "s3://bucket/rows/", "../../nowhere", "rows/*.parquet", "/dev/zero"):
    named(f"counting {_name}", lambda folder, name=_name: ("count", name))  # type: ignore[misc]
