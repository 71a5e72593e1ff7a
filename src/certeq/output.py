"""Writing results: everything or nothing, and never over something that is there unless that was asked for."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from certeq.errors import InputError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula


def check_free(paths: Iterable[Path], *, force: bool) -> None:
    """Raise if something is in the way, before any work is done; with ``force`` files may be overwritten."""
    for path in paths:
        try:
            if path.is_dir():
                raise InputError(
                    f"Could not write {path}: a folder of that name is there already. Choose another place."
                )
            if path.exists() and not force:
                remedy = "Choose another place with --out, or overwrite with --force."
                raise InputError(f"{path} is there already. {remedy}")
        except OSError as error:
            raise _unwritable(path, error) from None


def write_files(files: Mapping[Path, str | bytes], *, force: bool = False) -> None:
    """Write all files under temporary names, then rename them; on any trouble all is as it was before."""
    check_free(files, force=force)
    waiting: list[tuple[Path, Path]] = []  # (temporary, final)
    before: list[tuple[Path | None, Path]] = []  # (copy of what was there, final), for those renamed already
    path = Path()
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            waiting.append((_write_aside(path, content), path))
        for temporary, path in waiting:
            before.append((_keep(path), path))
            temporary.replace(path)
    except (OSError, UnicodeEncodeError) as error:
        for kept, done in reversed(before):
            with contextlib.suppress(OSError):
                done.unlink(missing_ok=True) if kept is None else kept.replace(done)
        raise _unwritable(path, error) from None
    finally:
        for leftover in (*(temporary for temporary, _ in waiting), *(kept for kept, _ in before if kept is not None)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def _write_aside(path: Path, content: str | bytes) -> Path:
    """Write next to the final place, under a hidden temporary name, with the usual permissions."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(prefix=_hidden(path), dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return Path(temporary)


def _keep(path: Path) -> Path | None:
    """Keep what is there under another name, so that it can come back."""
    if not path.exists():
        return None
    aside = Path(tempfile.mkdtemp(prefix=_hidden(path), dir=path.parent))
    aside.rmdir()
    try:
        aside.hardlink_to(path)
    except OSError:  # a file system without hard links
        shutil.copy2(path, aside)
    return aside


def _hidden(path: Path) -> str:
    """How temporary names begin: they tell what they were for, should a run be killed."""
    return f".{path.name[:80]}."


def _unwritable(path: Path, error: OSError | UnicodeEncodeError) -> InputError:
    why = error.strerror if isinstance(error, OSError) else "it holds text that no file can hold"
    return InputError(f"Could not write {path}: {why}. Nothing was kept.")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV; text that a spreadsheet would run as a formula is led by an apostrophe."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def json_text(value: Any) -> str:
    """Write JSON that people can read; numbers that JSON does not have are an error."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _cell(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    if isinstance(cell, str) and text.startswith(FORMULA_STARTS) and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
