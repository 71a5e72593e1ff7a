"""What a run promises before it puts several files into their places, so that another can finish it if it is killed.

A promise is kept in a place of this user alone, never beside the files: it names the folder, the hidden folder in which
the files wait (by its number on the disk), and each file with its SHA-256. Only what is promised so is ever moved.
Whatever else lies in a folder, an unpacked archive for example, cannot have been promised and is left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from certeq.base.private import private

STALE = 3600.0  # seconds after which a promise that nothing waits for is forgotten


def promise(folder: Path, waiting: Path) -> Path | None:
    """Note that the files that wait are to lie in the folder; None where there is no place to note it."""
    place = private("promises")
    if place is None:
        return None
    said = {
        "folder": str(folder.resolve()),
        "waiting": number(waiting),
        "files": {file.name: _digest(file) for file in waiting.iterdir()},
    }
    note = place / f"{_mark(folder)}-{secrets.token_hex(8)}.json"
    try:
        with note.open("x", encoding="utf-8") as file:
            json.dump(said, file)
            file.flush()
            os.fsync(file.fileno())
    except OSError:  # a full disk: the run goes on, and only a kill in the next millisecond would be noticed
        note.unlink(missing_ok=True)
        return None
    return note


def forget(note: Path | None) -> None:
    """The promise has been kept, or taken back."""
    if note is not None:
        with contextlib.suppress(OSError):
            note.unlink()


def fulfil(folder: Path, waiting: Path) -> None:
    """Move what this user's own killed run promised, and nothing else."""
    for note, said in list(_notes(folder)):
        with contextlib.suppress(OSError):  # others may be finishing it as well
            if said["waiting"] == number(waiting):
                _move(folder, waiting, said["files"])
                waiting.rmdir()
                note.unlink()
            elif time.time() - note.lstat().st_mtime > STALE:
                note.unlink()


def _move(folder: Path, waiting: Path, files: Mapping[str, str]) -> None:
    for name, digest in files.items():
        with contextlib.suppress(FileNotFoundError):
            if _digest(waiting / name) == digest:
                (waiting / name).replace(folder / name)


def _notes(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    place = private("promises")
    if place is None:
        return
    for note in place.glob(f"{_mark(folder)}-*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # torn, or gone meanwhile
            said = json.loads(note.read_text(encoding="utf-8"))
            plain = all(Path(name).name == name and isinstance(digest, str) for name, digest in said["files"].items())
            if plain and said["folder"] == str(folder.resolve()) and said["waiting"]:
                yield note, said


def _mark(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]


def number(folder: Path) -> list[int]:
    """What the disk knows a folder by, whatever its name: nobody who packs an archive can choose it."""
    status = folder.lstat()
    return [status.st_dev, status.st_ino]


def _digest(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        raise FileNotFoundError(2, "not a regular file", str(file))
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
