"""Writing results: everything or nothing, and never over something that is there unless that was asked for."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from certeq.errors import InputError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula


def check_free(paths: Iterable[Path], *, force: bool) -> None:
    """Raise if a file is there already and ``force`` was not said, before any work is done."""
    taken = [path for path in paths if path.exists()]
    if taken and not force:
        raise InputError(f"{taken[0]} is there already. Choose another place with --out, or overwrite with --force.")


def write_files(files: Mapping[Path, str | bytes], *, force: bool = False) -> None:
    """Write all files under temporary names, then rename them; on any trouble nothing is left behind."""
    check_free(files, force=force)
    waiting: list[tuple[str, Path]] = []
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content.encode("utf-8") if isinstance(content, str) else content
            handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            waiting.append((temporary, path))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in waiting:
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
    except OSError as error:
        raise InputError(
            f"Could not write {error.filename or 'the output'}: {error.strerror}. Nothing was kept."
        ) from None
    finally:
        for temporary, _ in waiting:
            Path(temporary).unlink(missing_ok=True)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_harmless(cell) for cell in header])
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def json_text(value: Any) -> str:
    """Write JSON that people can read; numbers that JSON does not have are an error."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS):
        return f"'{cell}"
    return "" if cell is None else cell
