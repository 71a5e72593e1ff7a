"""The files that are counted: which they are, what they hold, and the pieces that they are read in."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certeq.base.doors import reason
from certeq.base.errors import InputError, nearest
from certeq.data.reading.files import check_digits, check_groups, parse, resolve

PIECE = 1 << 21  # rows that are read and counted at a time
MOST_PIECES = 1 << 20
SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class File:
    """A Parquet file as it was found; workers open it by its path, and it must still be the same."""

    path: str
    size: int  # bytes
    rows: int
    kinds: Mapping[str, str]  # column -> text, numbers, dates, nothing, or a type that cannot be counted

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return Path(self.path).name


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, from row ``start``, counted from 0."""

    file: File
    start: int
    rows: int


def find(source: Any) -> tuple[File, ...]:
    """Find the Parquet files of a folder, in the order of their names, or one file."""
    path = resolve(source)
    if not path.is_dir():
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(
                f"{path.name} is not Parquet (.parquet), which is what certeq counts without holding it in memory. "
                "Write the table as Parquet, or let certeq learn read it as a whole."
            )
        return (look(path),)
    names = sorted(
        part.name for part in path.iterdir() if part.suffix.lower() in SUFFIXES and not part.name.startswith((".", "_"))
    )
    if not names:
        raise InputError(f"There is no Parquet file (.parquet) in {path}. Folders inside it are not looked into.")
    files = tuple(file for file in (look(path / name) for name in names) if file.rows)
    if not files:
        raise InputError(f"The Parquet files in {path} have no rows. There is nothing to count.")
    return files


def look(path: Path) -> File:
    """Ask a file for its columns and its number of rows; no row is read."""
    with opened(str(path)) as handle:
        schema, rows = parse(_ask, path, handle, 0)
        size = os.fstat(handle.fileno()).st_size
    if rows > PIECE * MOST_PIECES:
        raise InputError(f"{path.name} says that it has {rows:,} rows, which cannot be. It is damaged.")
    return File(str(path), size, rows, {name: _kind(dtype) for name, dtype in schema.items()})


def _ask(path: Path, handle: io.BufferedReader, _: int) -> tuple[Any, int]:
    import polars as pl

    check_groups(path, handle)
    lazy = pl.scan_parquet(handle, hive_partitioning=False)
    schema = lazy.collect_schema()
    check_digits(path.name, schema)
    return schema, int(lazy.select(pl.len()).collect().item())


def pieces(files: Sequence[File], rows: int) -> list[Piece]:
    """Cut files into pieces of so many rows; the last piece of a file may be shorter."""
    return [Piece(file, start, min(rows, file.rows - start)) for file in files for start in range(0, file.rows, rows)]


def read(piece: Piece, columns: Sequence[str]) -> dict[str, Any]:
    """Read some columns of a piece, each a polars Series."""

    def rows(_: Path, handle: io.BufferedReader, __: int) -> Any:
        import polars as pl

        lazy = pl.scan_parquet(handle, hive_partitioning=False).select(columns)
        return lazy.slice(piece.start, piece.rows).collect().to_dict()

    with opened(piece.file.path, piece.file.size) as handle:
        found: dict[str, Any] = parse(rows, Path(piece.file.path), handle, 0)
    if any(len(column) != piece.rows for column in found.values()):
        raise InputError(f"{piece.file.name} has changed while it was counted. Count it again.")
    return found


def digest(file: File) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with opened(file.path, file.size) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def opened(path: str, size: int | None = None) -> Iterator[io.BufferedReader]:
    """Open a regular file that is, where ``size`` is given, still the one that was found."""
    where = Path(path)
    try:
        status = where.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{where.name} is not a regular file.")
        if size is not None and status.st_size != size:
            raise InputError(
                f"{path} has {status.st_size:,} bytes here and had {size:,} where counting was started: it is another "
                "file, or it has changed. All workers must see the same files under the same path."
            )
        with where.open("rb") as handle:
            yield handle
    except FileNotFoundError:
        raise InputError(f"There is no file {path} here. All workers must see the files under the same path.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from None


def check_columns(files: Sequence[File], together: Sequence[Sequence[str]]) -> None:
    """All files need the columns; those that are put together, over all files, must hold the same kind of thing."""
    for names in together:
        known: tuple[str, str] | None = None  # what it holds, and where
        for file, name in ((file, name) for file in files for name in names):
            if name not in file.kinds:
                close = nearest(name, file.kinds)
                raise InputError(f"{file.name} has no column {name!r}, as {files[0].name} has.{close}")
            kind = file.kinds[name]
            if kind == "nothing":
                continue
            if known is not None and kind != known[0]:
                raise InputError(
                    f"Column {name!r} of {file.name} holds {kind}, but {known[1]} holds {known[0]}. Write both in the "
                    "same way."
                )
            known = known or (kind, f"{name!r} of {file.name}")
        if known is None and names:
            raise InputError(f"Column {names[0]!r} is blank in every row: there is nothing to count.")


def _kind(dtype: Any) -> str:
    """What a column holds, as far as it matters whether two columns can be put together."""
    import polars as pl

    if dtype == pl.Null:
        return "nothing"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype in (pl.Date, pl.Datetime):
        return "dates"
    return "numbers" if dtype.is_numeric() or dtype in (pl.Boolean, pl.Duration, pl.Time) else str(dtype)
