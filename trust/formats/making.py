"""Files of every format from a number: sound ones, ones of odd types, and ones with damage."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trust.formats import extremes
from trust.formats.values import TEXTS, column

ROLES = ("state", "action", "reward", "next_state", "episode", "time", "done")
SCALARS = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 1e-320, "", "A"),
    *("x" * 300, "\ud800", "\u0000", "NaN", [], {}, [[]], [[1]], [1, [2]], {"a": 1}, "²", "²5", "1" * 5000),
)


def made(kind: str, number: int, folder: Path) -> Path:
    """Make a file of some kind in a folder, the same one for the same number."""
    return MAKERS[kind](np.random.default_rng([number, len(kind), ord(kind[0])]), folder)


# ---- tables ----


def plain(rng: np.random.Generator, n: int) -> dict[str, pa.Array]:
    """A sound table: what is spoiled afterwards is then the only thing that is wrong."""
    table = {
        "state": pa.array(rng.choice(["A", "B", "C"], n)),
        "action": pa.array(rng.integers(0, 2, n)),
        "reward": pa.array(rng.random(n).round(2)),
        "next_state": pa.array(rng.choice(["A", "B", "C"], n)),
    }
    if rng.random() < 0.4:
        table |= {"episode": pa.array(np.arange(n) // 4), "time": pa.array(np.arange(n) % 4)}
        if rng.random() < 0.5:
            del table["next_state"]
    return table | ({"done": pa.array(np.zeros(n, dtype=bool))} if rng.random() < 0.3 else {})


def arrow_table(rng: np.random.Generator, spoil: float = 0.9) -> pa.Table:
    """A table of which some columns are of any type."""
    n = int(rng.choice([1, 2, 8, 30]))
    columns = plain(rng, n)
    while rng.random() < spoil:
        columns[str(rng.choice(ROLES))] = column(rng, n)
        spoil *= 0.5
    if rng.random() < 0.1:
        columns[str(rng.choice(TEXTS))] = column(rng, n)
    return pa.table(columns)


def parquet(rng: np.random.Generator, table: pa.Table) -> bytes:
    """As Parquet, in one of its many ways."""
    import pyarrow.parquet as pq

    file = io.BytesIO()
    how: dict[str, Any] = {
        "compression": str(rng.choice(["none", "snappy", "zstd", "gzip", "lz4"])),
        "use_dictionary": bool(rng.random() < 0.7),
        "version": str(rng.choice(["1.0", "2.4", "2.6"])),
        "data_page_version": str(rng.choice(["1.0", "2.0"])),
        "row_group_size": int(rng.choice([1, 5, 1000])),
    }
    try:
        table.validate(full=True)  # the library writes from wherever an index points, and may crash
        pq.write_table(table, file, **how)
    except (pa.ArrowException, ValueError, TypeError, OSError):
        return arrow(rng, table)
    return file.getvalue()


def arrow(rng: np.random.Generator, table: pa.Table) -> bytes:
    """As an Arrow file or stream."""
    file = io.BytesIO()
    packed = rng.choice(["none", "lz4", "zstd"])
    options = pa.ipc.IpcWriteOptions(compression=None if packed == "none" else str(packed))
    make = pa.ipc.new_file if rng.random() < 0.6 else pa.ipc.new_stream
    with make(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue()


def text(rng: np.random.Generator, table: pa.Table, suffix: str) -> bytes:
    """As CSV or JSON lines, with values of any kind."""
    names = table.column_names
    n = len(table)
    columns = []
    for name in names:
        try:
            table[name].validate(full=True)  # as above
            values = table[name].to_pylist()
        except Exception:  # the file could not have been written by this library
            values = [str(rng.choice(TEXTS)) for _ in range(n)]
        columns.append(values)
    rows = list(zip(*columns, strict=True))
    if suffix in ("jsonl", "ndjson"):
        lines = [json.dumps(dict(zip(names, map(_plain, row), strict=True))) for row in rows]
        if rng.random() < 0.3:
            lines[int(rng.integers(n))] = dumped(spoiled(rng, json.loads(lines[0])))
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    separator = str(rng.choice([",", ";", "\t", "|"]))
    ends = str(rng.choice(["\n", "\r\n", "\r"], p=[0.8, 0.1, 0.1]))
    quote = (lambda cell: f'"{cell}"') if rng.random() < 0.2 else (lambda cell: cell)
    lines = [separator.join(quote(str("" if cell is None else cell)) for cell in row) for row in (names, *rows)]
    return ends.join(lines).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)


def table_bytes(rng: np.random.Generator, suffix: str, spoil: float = 0.9) -> bytes:
    """A file of a format, of sound or odd types."""
    table = arrow_table(rng, spoil)
    try:
        if suffix == "parquet":
            return parquet(rng, table)
        if suffix in ("arrow", "feather"):
            return arrow(rng, table)
        return text(rng, table, suffix)
    except (pa.ArrowException, NotImplementedError, UnicodeError, ValueError, TypeError, OverflowError):
        return parquet(rng, pa.table(plain(rng, 8)))


def damaged(rng: np.random.Generator, data: bytes, other: bytes = b"") -> bytes:
    """Flip bits, cut, repeat, splice, blank; mostly little, so that the damage is met late."""
    content = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not content:
            return b""
        at, length = int(rng.integers(len(content))), int(rng.integers(1, 9))
        match int(rng.integers(8)):
            case 0:
                del content[at:]
            case 1:
                content[at : at + length] = bytes(length)
            case 2:
                content[at : at + length] = b"\xff" * length
            case 3:
                content[at:at] = content[at : at + 20 * length]
            case 4 if other:
                content[at:] = other[min(at, len(other)) :]
            case 5:
                del content[at : at + length]
            case _:
                for place in rng.integers(len(content), size=length):
                    content[place] ^= 1 << int(rng.integers(8))
    return bytes(content)


def _table(rng: np.random.Generator, folder: Path) -> Path:
    suffix = str(
        rng.choice(
            ["parquet", "arrow", "feather", "csv", "tsv", "jsonl", "ndjson"], p=[0.3, 0.2, 0.1, 0.2, 0.05, 0.1, 0.05]
        )
    )
    data = table_bytes(rng, suffix, spoil=float(rng.choice([0.0, 0.9])))
    if rng.random() < 0.5:
        data = damaged(rng, data, table_bytes(rng, suffix))
    return _written(folder / f"rows.{suffix}", data)


def _counting(rng: np.random.Generator, folder: Path) -> Path:
    table = arrow_table(rng, float(rng.choice([0.0, 0.9]))).drop_columns([])
    try:
        data = parquet(rng, table)
    except (pa.ArrowException, NotImplementedError):
        data = parquet(rng, pa.table(plain(rng, 8)))
    if rng.random() < 0.5:
        data = damaged(rng, data, data)
    return _written(folder / "rows.parquet", data)


def _written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# ---- JSON, archives, arrays ----


def spoiled(rng: np.random.Generator, value: Any, depth: int = 0) -> Any:
    """JSON with one place changed: another type, another name, deeper, longer, gone."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = list(keys)[int(rng.integers(len(value)))]
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        match int(rng.integers(12)):
            case 0:
                del copy[key]
            case 1 if isinstance(copy, dict):
                copy[str(rng.choice(["", "x", "version", "type", "²"]))] = copy.pop(key)
            case 2 if isinstance(copy, list):
                copy += copy[: int(rng.integers(1, 4))]
            case _:
                copy[key] = spoiled(rng, value[key], depth + 1)
        return copy
    if rng.random() < 0.15:
        for _ in range(int(rng.choice([1, 3, 20, 40, 70, 3000]))):
            value = [value]
        return value
    return SCALARS[int(rng.integers(len(SCALARS)))]


@cache
def policies() -> tuple[Any, ...]:
    """Sound policies: labels and bins, with a horizon and without."""
    from certeq import learn, read
    from trust.fuzzing import policy_json

    rows = {"state": list("ABAB"), "action": list("xyxy"), "reward": [0, 1, 1, 0], "next_state": list("BABA")}
    timed = learn(read(rows), horizon=3).policy.to_json()
    return policy_json(), json.loads(json.dumps(timed))


def dumped(value: Any) -> str:
    """JSON, or what stands for what Python will not write: too deep, or a number of thousands of digits."""
    try:
        return json.dumps(value)
    except (RecursionError, ValueError):
        return "[" * 5000 + "]" * 5000


def _json_bytes(rng: np.random.Generator, value: Any) -> bytes:
    for _ in range(int(rng.integers(0, 4))):
        value = spoiled(rng, value)
    data = dumped(value).encode("utf-8", "surrogatepass")
    return damaged(rng, data, data) if rng.random() < 0.4 else data


def _policy(rng: np.random.Generator, folder: Path) -> Path:
    return _written(folder / "policy.json", _json_bytes(rng, policies()[int(rng.integers(len(policies())))]))


def _counts(rng: np.random.Generator, folder: Path) -> Path:
    from trust.hostile.counts import sound

    return _written(folder / "counts.npz", _archive(rng, *sound()))


def _arrays(rng: np.random.Generator, folder: Path) -> Path:
    from certeq import Policy

    file = io.BytesIO()
    Policy.from_json(policies()[int(rng.integers(len(policies())))]).to_archive(file)
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    about = json.loads(arrays.pop("about").tobytes())
    return _written(folder / "policy.npz", _archive(rng, about, arrays))


def _archive(rng: np.random.Generator, about: Any, arrays: dict[str, Any]) -> bytes:
    """Arrays and what they are about, any of them perhaps spoiled."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", _npy(rng, array))
        said = _json_bytes(rng, about)
        archive.writestr("about.npy", _npy(rng, np.frombuffer(said, dtype=np.uint8), 0.0))
    data = file.getvalue()
    return damaged(rng, data, data) if rng.random() < 0.4 else data


def _npy(rng: np.random.Generator, array: Any, spoil: float = 0.3) -> bytes:
    """An array in a file of its own, perhaps of another type or shape, perhaps with a header that lies."""
    if rng.random() < spoil:
        kinds = ("f8", "f2", "i1", "u8", "c16", "?", "S3", "U2", "M8[us]", "m8", ">i4", "V3", "O")
        kind = str(rng.choice(kinds))
        array = array.astype(kind) if kind not in ("M8[us]", "m8", "V3", "O") else np.zeros(3, dtype=kind)
        if rng.random() < 0.3:
            array = array.reshape(1, -1)
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    data = file.getvalue()
    if rng.random() < spoil / 2:
        changed = bytearray(data)
        for at in rng.integers(10, min(len(data), 80), size=3):
            changed[at] = int(rng.choice(list(b"(),'<>0129ifO \x00")))
        data = bytes(changed)
    return data


def _array(rng: np.random.Generator, folder: Path) -> Path:
    data = _npy(rng, rng.random((2, 3)), 0.7)
    return _written(folder / "x.npy", damaged(rng, data, data) if rng.random() < 0.5 else data)


# ---- Minari ----


def _minari(rng: np.random.Generator, folder: Path) -> Path:
    data = folder / "set" / "data"
    kind = str(rng.choice(["hdf5", "arrow", "parquet"]))
    data.mkdir(parents=True)
    about = {"data_format": kind, "observation_space": _space(rng), "action_space": _space(rng), "total_steps": 3}
    said = _json_bytes(rng, about) if rng.random() < 0.5 else dumped(about).encode()
    (data / "metadata.json").write_bytes(said)
    if kind == "hdf5":
        _hdf5(rng, data / "main_data.hdf5")
        return folder / "set"
    for episode in range(int(rng.integers(1, 3))):
        names = ["observations", "actions", "rewards", "terminations", "truncations"]
        columns = dict(zip(names, [[0, 1, 2, 0], [0, 1, 1, 0], [1.0, 0.0, 2.0, 0.0], *[[False] * 4] * 2], strict=True))
        table: dict[str, Any] = {name: pa.array(values) for name, values in columns.items()}
        while rng.random() < 0.6:
            table[str(rng.choice(names))] = column(rng, 4)
        if rng.random() < 0.1:
            del table[str(rng.choice(list(table)))]
        try:
            content = (parquet if kind == "parquet" else arrow)(rng, pa.table(table))
        except (pa.ArrowException, NotImplementedError):
            content = b""
        name = str(episode) if rng.random() < 0.8 else str(rng.choice(["²", "٣", "00", "1e3", "-1", "x" * 200]))
        _written(data / name / f"part-0.{kind}", damaged(rng, content) if rng.random() < 0.3 else content)
        if rng.random() < 0.3:
            (data / name / "metadata.json").write_bytes(_json_bytes(rng, {"total_steps": 3, "id": 0}))
    return folder / "set"


def _space(rng: np.random.Generator) -> Any:
    box = {"type": "Box", "shape": [2], "dtype": "float32", "low": [0.0, 0.0], "high": [1.0, 1.0]}
    one = {"type": "Discrete", "n": 3, "start": 0, "dtype": "int64", "shape": []}
    both = {"type": "Tuple", "subspaces": [box, one]}
    space: Any = [box, one, both, {"type": "Dict", "subspaces": {"a": both}}][int(rng.integers(4))]
    space = spoiled(rng, space) if rng.random() < 0.4 else space
    return dumped(space) if rng.random() < 0.8 else space


def _hdf5(rng: np.random.Generator, path: Path) -> None:
    import h5py

    sound = {
        "observations": np.array([0, 1, 2, 0]),
        "actions": np.array([0, 1, 1]),
        "rewards": np.array([1.0, 0.0, 2.0]),
        "terminations": np.array([False, False, True]),
        "truncations": np.zeros(3, dtype=bool),
    }
    with h5py.File(path, "w") as file:
        for i in range(int(rng.integers(1, 3))):
            group = file.create_group(f"episode_{i if rng.random() < 0.9 else '²٣'[i]}")
            for name, values in sound.items():
                _dataset(h5py, rng, group, name, values)
    if rng.random() < 0.4:
        path.write_bytes(damaged(rng, path.read_bytes()))


def _dataset(h5py: Any, rng: np.random.Generator, group: Any, name: str, values: Any) -> None:
    if rng.random() < 0.7:
        group[name] = values
        return
    n = len(values)
    odd: list[Callable[[], Any]] = [
        lambda: np.zeros((n, 3), dtype=str(rng.choice(["f2", "u1", "i8", "S2"]))),
        lambda: np.zeros(()),
        lambda: np.zeros((0,)),
        lambda: np.zeros((n, 0)),
        lambda: np.zeros(n, dtype=[("a", "i4"), ("b", "f8")]),
        lambda: np.array(["a", "b", "c", "d"][:n], dtype=h5py.string_dtype()),
        lambda: np.array([b"\xff\xfe", b"b", b"c", b"d"][:n], dtype="S2"),
        lambda: np.array([1 + 2j] * n),
        lambda: np.array([2**64 - 1] * n, dtype="u8"),
        lambda: h5py.Empty("f8"),
        lambda: np.full(n, np.nan),
    ]
    group[name] = odd[int(rng.integers(len(odd)))]()


# ---- names ----


def _name(rng: np.random.Generator, folder: Path) -> Path:
    """A sound file under a name that nobody would choose."""
    pieces = [
        b"rows",
        b"\xff",
        b"\xc3\x28",
        "²".encode(),
        b" ",
        b"\n",
        b"\x1b[31m",
        "\u202e".encode(),
        b"'",
        b"-",
        b"a" * 200,
        b"%s",
        b"{x}",
        b"\x7f",
    ]
    stem = b"".join(pieces[int(i)] for i in rng.integers(len(pieces), size=int(rng.integers(1, 4))))[:240]
    suffix = str(rng.choice(["csv", "parquet", "jsonl"]))
    data = table_bytes(rng, suffix, 0.0) if rng.random() < 0.7 else damaged(rng, table_bytes(rng, suffix, 0.0))
    return _written(Path(os.fsdecode(os.fsencode(folder) + b"/" + stem + b"." + suffix.encode())), data)


MAKERS: dict[str, Callable[[np.random.Generator, Path], Path]] = {
    "table": _table,
    "counting": _counting,
    "policy": _policy,
    "arrays": _arrays,
    "counts": _counts,
    "array": _array,
    "Minari": _minari,
    "name": _name,
    "extremes": extremes.made,
}
